// Padding: a number everywhere, a tensor's own elements at its edges, and these added up where they came from.
#include "base.cuh"
#include "pad_args.h"

namespace {

typedef PT_T T;

PT_DEVICE T value_of(const PadFillArgs &a) {
#if PT_TCODE == 0
    return a.value[0] != 0;
#elif PT_TCODE < 9
    return (T)a.whole;
#elif PT_TCODE < 13
    return down<T>((opmath<T>::type)a.value[0]);
#else
    return T(complex128(a.value[0], a.value[1]));
#endif
}
PT_DEVICE void fill(const PadFillArgs &a) {
    const T value = value_of(a);
    for (int64_t i = thread_index(); i < a.n; i += thread_count()) reinterpret_cast<T *>(a.out)[i] = value;
}

PT_DEVICE int64_t modulo(int64_t x, int64_t n) {
    const int64_t r = x % n;
    return r < 0 ? r + n : r;
}

// Where place j of the padded dim comes from; pads of more than there is turn as often as they need.
PT_DEVICE int64_t source(const PadAxis &a, int64_t j, int mode) {
    int64_t i = j - a.before;
    if (mode == PT_PAD_REPLICATE || a.small == 1) return i < 0 ? 0 : i < a.small ? i : a.small - 1;
    if (mode == PT_PAD_CIRCULAR) return modulo(i, a.small);
    const int64_t turn = 2 * a.small - 2;
    i = modulo(i, turn);
    return i < a.small ? i : turn - i;
}

// The first place from j on that comes from place i; a.large or more if there is none.
PT_DEVICE int64_t next(const PadAxis &a, int64_t i, int64_t j, int mode) {
    if (a.small == 1) return j;
    if (mode == PT_PAD_REPLICATE) {
        const int64_t own = a.before + i;
        if (j <= own) return i == 0 ? j : own;
        return i == a.small - 1 ? j : a.large;
    }
    const int64_t turn = mode == PT_PAD_CIRCULAR ? a.small : 2 * a.small - 2;
    const int64_t forth = j + modulo(a.before + i - j, turn);
    if (mode == PT_PAD_CIRCULAR) return forth;
    const int64_t back = j + modulo(a.before - i - j, turn);
    return forth < back ? forth : back;
}

PT_DEVICE void edges(const PadArgs &a) {
    for (int64_t k = thread_index(); k < a.total; k += thread_count()) {
        int64_t rest = k, from = 0;
        for (int d = a.ndim - 1; d >= 0; d--) {
            const int64_t q = rest / a.axis[d].large;
            from += source(a.axis[d], rest - q * a.axis[d].large, a.mode) * a.axis[d].stride;
            rest = q;
        }
        reinterpret_cast<T *>(a.out)[k] = reinterpret_cast<const T *>(a.x)[from];
    }
}

#if PT_TCODE > 8
// Places are added up in the order that they have in memory.
PT_DEVICE void edges_transposed(const PadArgs &a) {
    typedef opmath<T>::type C;
    const T *x = reinterpret_cast<const T *>(a.x);
    for (int64_t k = thread_index(); k < a.total; k += thread_count()) {
        int64_t rest = k, base = 0, target[PT_PADDED_DIMS], at[PT_PADDED_DIMS];
        int dims[PT_PADDED_DIMS], padded = 0;           // innermost first
        for (int d = a.ndim - 1; d >= 0; d--) {
            const int64_t q = rest / a.axis[d].small, i = rest - q * a.axis[d].small;
            rest = q;
            if (a.axis[d].large == a.axis[d].small) base += i * a.axis[d].stride;
            else {
                dims[padded] = d, target[padded] = i;
                at[padded] = next(a.axis[d], i, 0, a.mode);
                base += at[padded++] * a.axis[d].stride;
            }
        }
        C sum = C(0);
        for (bool more = true; more;) {
            sum = sum + up(x[base]);
            more = false;
            for (int p = 0; p < padded && !more; p++) {
                const PadAxis &axis = a.axis[dims[p]];
                int64_t to = next(axis, target[p], at[p] + 1, a.mode);
                more = to < axis.large;
                if (!more) to = next(axis, target[p], 0, a.mode);
                base += (to - at[p]) * axis.stride;
                at[p] = to;
            }
        }
        reinterpret_cast<T *>(a.out)[k] = down<T>(sum);
    }
}
#endif

}  // namespace

PT_KERNEL(pad_fill, PadFillArgs, a, 256) { fill(a); }
PT_KERNEL(pad_edges, PadArgs, a, 256) { edges(a); }
#if PT_TCODE > 8
PT_KERNEL(pad_edges_transposed, PadArgs, a, 256) { edges_transposed(a); }
#endif
