// Padding by a number, padding by a tensor's own elements, and the transpose of the latter, which
// adds padded elements to their sources.
#include "pack.cuh"
#include "pad_args.h"

namespace {

typedef PT_T T;

// The position of an output element in its innermost line (j), the offset of the line's input
// (base), and whether the line has an input (inside).
struct Place {
    int64_t j, base;
    bool inside;
};
template <class I> PT_DEVICE Place place_of(const PadArgs &a, I k) {
    Place p = {0, 0, true};
    for (int d = a.ndim - 1; d >= 0; d--) {
        const I q = k / (I)a.axis[d].large;
        const int64_t j = (int64_t)(k - q * (I)a.axis[d].large), i = j - a.axis[d].before;
        k = q;
        if (d == a.ndim - 1) {
            p.j = j;
            continue;
        }
        p.inside = p.inside && i >= 0 && i < a.axis[d].small;
        p.base += i * a.axis[d].stride;
    }
    return p;
}

// A thread computes a few neighbours, which saves divisions and stores. I is a type that can count
// all elements.
template <class I> PT_DEVICE void constant(const PadArgs &a) {
    constexpr int V = vector_of<T>::size > 4 ? 4 : vector_of<T>::size;
    const PadAxis &inner = a.axis[a.ndim - 1];
    T value;
    memcpy((void *)&value, (const void *)a.value, sizeof(T));
    const bool aligned = reinterpret_cast<uint64_t>(a.out) % 16 == 0;
    const int64_t packs = (a.total + V - 1) / V;
    PT_GRID_STRIDE(p, packs) {
        Elements<T, V> e;
        Place at = place_of<I>(a, (I)(p * V));
        for (int v = 0; v < V; v++, at.j++) {
            if (at.j == inner.large && p * V + v < a.total) at = place_of<I>(a, (I)(p * V + v));
            const int64_t i = at.j - inner.before;
            const bool has = at.inside && i >= 0 && i < inner.small && p * V + v < a.total;
            e.v[v] = has ? reinterpret_cast<const T *>(a.x)[at.base + i * inner.stride] : value;
        }
        T *out = reinterpret_cast<T *>(a.out) + p * V;
        if (aligned && p * V + V <= a.total) {
            store_pack<V>(out, e);
        } else {
            for (int v = 0; v < V; v++)
                if (p * V + v < a.total) out[v] = e.v[v];
        }
    }
}

// I can hold the absolute value of x, and n.
template <class I> PT_DEVICE int64_t modulo(int64_t x, int64_t n) {
    if (x >= 0 && x < n) return x;                      // most cases: no division
    const int64_t r = (int64_t)((I)(x < 0 ? -x : x) % (I)n);
    return x < 0 && r ? n - r : r;
}

// The input index from which index j of the padded dim comes. Pads larger than the input go round
// as often as they need.
template <class I> PT_DEVICE int64_t source(const PadAxis &a, int64_t j, int mode) {
    int64_t i = j - a.before;
    if (mode == PT_PAD_REPLICATE || a.small == 1) return i < 0 ? 0 : i < a.small ? i : a.small - 1;
    if (mode == PT_PAD_CIRCULAR) return modulo<I>(i, a.small);
    const int64_t turn = 2 * a.small - 2;
    i = modulo<I>(i, turn);
    return i < a.small ? i : turn - i;
}

// The first padded index from j on that comes from input index i; a.large or more if none does.
template <class I> PT_DEVICE int64_t next(const PadAxis &a, int64_t i, int64_t j, int mode) {
    if (a.small == 1) return j;
    if (mode == PT_PAD_REPLICATE) {
        const int64_t own = a.before + i;
        if (j <= own) return i == 0 ? j : own;
        return i == a.small - 1 ? j : a.large;
    }
    const int64_t turn = mode == PT_PAD_CIRCULAR ? a.small : 2 * a.small - 2;
    const int64_t forth = j + modulo<I>(a.before + i - j, turn);
    if (mode == PT_PAD_CIRCULAR) return forth;
    const int64_t back = j + modulo<I>(a.before - i - j, turn);
    return forth < back ? forth : back;
}

template <class I> PT_DEVICE void edges(const PadArgs &a) {
    PT_GRID_STRIDE(k, a.total) {
        I rest = (I)k;
        int64_t from = 0;
        for (int d = a.ndim - 1; d >= 0; d--) {
            const I q = rest / (I)a.axis[d].large;
            from += source<I>(a.axis[d], (int64_t)(rest - q * (I)a.axis[d].large), a.mode) *
                    a.axis[d].stride;
            rest = q;
        }
        reinterpret_cast<T *>(a.out)[k] = reinterpret_cast<const T *>(a.x)[from];
    }
}

#if PT_TCODE > 8
// The elements of a sum are added in their order in memory.
template <class I> PT_DEVICE void edges_transposed(const PadArgs &a) {
    typedef opmath<T>::type C;
    const T *x = reinterpret_cast<const T *>(a.x);
    PT_GRID_STRIDE(k, a.total) {
        I rest = (I)k;
        int64_t base = 0, target[PT_PADDED_DIMS], at[PT_PADDED_DIMS];
        int dims[PT_PADDED_DIMS], padded = 0;           // innermost first
        for (int d = a.ndim - 1; d >= 0; d--) {
            const I q = rest / (I)a.axis[d].small;
            const int64_t i = (int64_t)(rest - q * (I)a.axis[d].small);
            rest = q;
            if (a.axis[d].large == a.axis[d].small) base += i * a.axis[d].stride;
            else {
                dims[padded] = d, target[padded] = i;
                at[padded] = next<I>(a.axis[d], i, 0, a.mode);
                base += at[padded++] * a.axis[d].stride;
            }
        }
        C sum = C(0);
        for (bool more = true; more;) {
            sum = sum + up(x[base]);
            more = false;
            for (int p = 0; p < padded && !more; p++) {
                const PadAxis &axis = a.axis[dims[p]];
                int64_t to = next<I>(axis, target[p], at[p] + 1, a.mode);
                more = to < axis.large;
                if (!more) to = next<I>(axis, target[p], 0, a.mode);
                base += (to - at[p]) * axis.stride;
                at[p] = to;
            }
        }
        reinterpret_cast<T *>(a.out)[k] = down<T>(sum);
    }
}
#endif

}  // namespace

// The kernels named far are for more elements, inside or out, than 32 bits can count.
PT_KERNEL(pad_constant, PadArgs, a, 256) { constant<uint32_t>(a); }
PT_KERNEL(pad_constant_far, PadArgs, a, 256) { constant<int64_t>(a); }
PT_KERNEL(pad_edges, PadArgs, a, 256) { edges<uint32_t>(a); }
PT_KERNEL(pad_edges_far, PadArgs, a, 256) { edges<int64_t>(a); }
#if PT_TCODE > 8
PT_KERNEL(pad_edges_transposed, PadArgs, a, 256) { edges_transposed<uint32_t>(a); }
PT_KERNEL(pad_edges_transposed_far, PadArgs, a, 256) { edges_transposed<int64_t>(a); }
#endif
