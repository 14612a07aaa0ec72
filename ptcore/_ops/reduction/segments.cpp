/* Reductions of consecutive pieces of a dim, and their derivative.
 *
 *    segments(data, offsets; axis, reduce, start, given) -> out
 *    segments_slope(g, data, out, offsets; axis, reduce, start, given) -> the gradient of data
 *
 * Piece i of a row of offsets is [offsets[i], offsets[i + 1]). Offsets are int64 and have the
 * dims of data in front of the axis. Parts of a piece outside the dim do not count. Each
 * reduction begins with `start`; the divisor of a mean is the piece's length, at least 1 if
 * `given`. Among extremes NaN wins, and equal elements share the gradient. All tensors are
 * contiguous. Compiled for the base level alone.
 */
#include "common.hpp"

namespace {

enum : int { SUM = 0, MEAN, PROD, MAX, MIN };

struct pieces {
    int64_t outer = 1, size, inner = 1, count;
    const int64_t *offsets;
    int reduce;
    double start;
    bool given;
    pieces(const pt_call *call, int data, int which) {
        const pt_view &x = call->in[data], &o = call->in[which];
        const int64_t axis = wrap_dim(call->params[0].i, x.ndim);
        for (int d = 0; d < axis; ++d) outer *= x.sizes[d];
        for (int d = int(axis) + 1; d < x.ndim; ++d) inner *= x.sizes[d];
        size = x.sizes[axis];
        count = o.sizes[o.ndim - 1] - 1;
        offsets = input<int64_t>(call, which);
        reduce = int(call->params[1].i);
        start = call->params[2].d;
        given = call->params[3].i != 0;
    }
    /* the first element of a piece, and the one behind its last */
    void bounds(int64_t row, int64_t piece, int64_t &first, int64_t &last) const {
        const int64_t *at = offsets + row * (count + 1) + piece;
        first = min64(max64(at[0], 0), size);
        last = max64(first, min64(at[1], size));
    }
    double divisor(int64_t row, int64_t piece) const {
        const int64_t *at = offsets + row * (count + 1) + piece, length = at[1] - at[0];
        return double(given ? max64(length, 1) : length);
    }
};

template <class A>
inline A wins(A a, A b, bool greatest) {
    return b != b || (a == a && (greatest ? b > a : b < a)) ? b : a;
}

/* folds the product or the extreme of n neighbouring elements into `value` */
template <class T, class A>
A along(const T *x, int64_t n, A value, int reduce) {
    if (reduce == PROD)
        for (int64_t s = 0; s < n; ++s) value = value * convert<A>(x[s]);
    else if (reduce == MAX)
        for (int64_t s = 0; s < n; ++s) value = wins(value, convert<A>(x[s]), true);
    else
        for (int64_t s = 0; s < n; ++s) value = wins(value, convert<A>(x[s]), false);
    return value;
}

template <class T>
int reduce(pt_call *call) {
    using A = compute<T>;
    const pieces p(call, 0, 1);
    const T *data = input<T>(call);
    T *out = output<T>(call);
    constexpr int64_t TILE = 64;
    if (p.count < 1) return PT_OK;
    parallel_for(
        p.outer * p.count, grain_rows(p.size * p.inner / max64(1, p.count)),
        [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                int64_t first, last;
                p.bounds(i / p.count, i % p.count, first, last);
                const T *x = data + i / p.count * p.size * p.inner;
                const A divisor = p.reduce == MEAN ? A(p.divisor(i / p.count, i % p.count)) : A(1);
                if (p.inner == 1 && p.reduce > MEAN) {
                    out[i] = convert<T>(along(x + first, last - first, A(p.start), p.reduce));
                    continue;
                }
                for (int64_t c = 0; c < p.inner; c += TILE) {
                    const int64_t m = min64(TILE, p.inner - c);
                    double sums[TILE];
                    A values[TILE];
                    for (int64_t l = 0; l < m; ++l) {
                        sums[l] = p.start;
                        values[l] = A(p.start);
                    }
                    int64_t begun = first;
                    if (p.inner == 1 &&
                        p.reduce <= MEAN) {     /* four sums do not wait for each other */
                        double parts[4] = {};
                        for (; begun + 4 <= last; begun += 4)
                            for (int l = 0; l < 4; ++l)
                                parts[l] += double(convert<A>(x[begun + l]));
                        sums[0] += (parts[0] + parts[1]) + (parts[2] + parts[3]);
                    }
                    for (int64_t s = begun; s < last; ++s) {
                        const T *from = x + s * p.inner + c;
                        if (p.reduce <= MEAN)
                            for (int64_t l = 0; l < m; ++l) sums[l] += double(convert<A>(from[l]));
                        else if (p.reduce == PROD)
                            for (int64_t l = 0; l < m; ++l)
                                values[l] = values[l] * convert<A>(from[l]);
                        else
                            for (int64_t l = 0; l < m; ++l)
                                values[l] = wins(values[l], convert<A>(from[l]), p.reduce == MAX);
                    }
                    for (int64_t l = 0; l < m; ++l)
                        out[i * p.inner + c + l] =
                            convert<T>(p.reduce <= MEAN ? A(sums[l]) / divisor : values[l]);
                }
            }
        });
    return PT_OK;
}

template <class T>
int slope(pt_call *call) {
    using A = compute<T>;
    const pieces p(call, 1, 3);
    const T *g = input<T>(call), *data = input<T>(call, 1);
    const pt_view &found = call->in[2];
    T *out = output<T>(call);
    memset(static_cast<void *>(out), 0, size_t(p.outer * p.size * p.inner) * sizeof(T));
    if (p.count < 1) return PT_OK;
    /* pieces of a row may overlap if the user's offsets do: each row is one thread's work */
    parallel_for(p.outer, grain_rows(p.size * p.inner), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * p.count; i < end * p.count; ++i) {
            int64_t first, last;
            p.bounds(i / p.count, i % p.count, first, last);
            const int64_t base = i / p.count * p.size * p.inner;
            const A divisor = p.reduce == MEAN ? A(p.divisor(i / p.count, i % p.count)) : A(1);
            if (p.reduce <= MEAN) {
                for (int64_t s = first; s < last; ++s)
                    for (int64_t l = 0; l < p.inner; ++l) {
                        T &to = out[base + s * p.inner + l];
                        to = convert<T>(convert<A>(to) + convert<A>(g[i * p.inner + l]) / divisor);
                    }
                continue;
            }
            for (int64_t l = 0; l < p.inner; ++l) {
                const A up = convert<A>(g[i * p.inner + l]),
                        result = A(get_real(found, i * p.inner + l));
                int64_t special = 0,
                        unknown = 0; /* extremes: number of equals; products: zeros, NaN */
                A others = A(p.start);
                const bool simple = p.reduce == PROD && result != 0 && result == result;
                for (int64_t s = first; s < last && !simple; ++s) {
                    const A x = convert<A>(data[base + s * p.inner + l]);
                    if (p.reduce == PROD) {
                        special += x == 0;
                        unknown += x != x;
                        others = x == 0 || x != x ? others : others * x;
                    }
                    else special += x == result || (x != x && result != result);
                }
                const A equal = special ? up / A(special) : A(0), scaled = up * result;
                for (int64_t s = first; s < last; ++s) {
                    const A x = convert<A>(data[base + s * p.inner + l]);
                    A share;
                    if (p.reduce == PROD) {     /* the product of the other elements */
                        const bool zero = x == 0, nan = x != x;
                        if (zero || nan)
                            share = up * others * A(special > zero ? 0 : 1) *
                                    (unknown > nan ? A(NAN) : A(1));
                        else share = scaled / x;
                    }
                    else share = x == result || (x != x && result != result) ? equal : A(0);
                    T &to = out[base + s * p.inner + l];
                    to = convert<T>(convert<A>(to) + share);
                }
            }
        }
    });
    return PT_OK;
}

int check(pt_call *call, int data, int which) {
    const pt_view &x = call->in[data], &o = call->in[which];
    const int64_t axis = call->params[0].i;
    bool fits = o.dtype == PT_INT64 && x.ndim > 0 && o.ndim > 0 &&
                wrap_dim(axis, x.ndim) == o.ndim - 1 && o.sizes[o.ndim - 1] > 0;
    for (int d = 0; fits && d < o.ndim - 1; ++d) fits = o.sizes[d] == x.sizes[d];
    if (!fits)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected int64 offsets for the rows of data in front of the axis");
    return PT_OK;
}
int segments_kernel(pt_call *call) {
    if (int status = check(call, 0, 1)) return status;
    return visit<FLOATS>(call, call->in[0].dtype,
                         [&](auto tag) { return reduce<PT_TYPE(tag)>(call); });
}
int segments_slope_kernel(pt_call *call) {
    if (int status = check(call, 1, 3)) return status;
    const pt_view &g = call->in[0], &x = call->in[1], &found = call->in[2];
    if (g.dtype != x.dtype || !pt_is(found.dtype, FLOATS) || g.numel != found.numel)
        return fail(call, PT_RUNTIME_ERROR, "expected one dtype");
    return visit<FLOATS>(call, x.dtype, [&](auto tag) { return slope<PT_TYPE(tag)>(call); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_segments_, PT_ISA)[] = {
    {"segments", segments_kernel},
    {"segments_slope", segments_slope_kernel},
    {nullptr, nullptr},
};
