/* Row and column pieces of softmax, log_softmax and cross_entropy over float or double tiles.
 *
 * exp runs in loops of a fixed trip count so that it vectorises; a tail is padded to a vector. Sums
 * are those of sum_lanes, of exponentials four by four in the type of the row, in float64 beyond.
 */
#ifndef PTCORE_KERNELS_ROWS_HPP
#define PTCORE_KERNELS_ROWS_HPP
#include "lanes.hpp"

namespace {

constexpr int64_t ROW_RUN = 8192;

/* ignores NaNs: with one, the sum of exponentials is NaN anyway */
template <class E>
inline E row_max(const E *x, int64_t n) {
    return extremum_lanes<true, false>(x, n, limits<E>::lowest());
}

template <class E>
inline typename simd<E>::vector vector_exp(typename simd<E>::vector v) {
    alignas(64) E lane[simd<E>::width];
    simd<E>::store(lane, v);
    for (int l = 0; l < simd<E>::width; ++l) lane[l] = pt::exp(lane[l]);
    return simd<E>::load(lane);
}

/* out[i] = map(x[i], y[i]) on vectors; x, y and out may be the same memory */
template <class E, class Map>
inline void map_row(const E *x, const E *y, E *out, int64_t n, Map &&map) {
    using V = simd<E>;
    constexpr int W = V::width;
    int64_t i = 0;
    for (; i + W <= n; i += W) V::store(out + i, map(V::load(x + i), V::load(y + i)));
    const int rest = int(n - i);
    if (rest)
        V::store_part(out + i, map(V::load_part(x + i, rest), V::load_part(y + i, rest)), rest);
}

/* sum of exp(x - top); if STORE, the terms are written to out, which may be x */
template <bool STORE, class E>
inline double row_exp_sum(const E *x, E *out, int64_t n, E top) {
    using V = simd<E>;
    constexpr int L = 32, W = V::width;
    const typename V::vector shift = V::fill(top);
    alignas(64) double lane[L] = {};
    alignas(64) E four[L];
    for (int64_t i = 0; i < n;) {
        const int64_t end = min64(n, i + 4 * L);
        for (int l = 0; l < L; l += W) V::store(four + l, V::fill(E(0)));
        for (int l = 0; i < end; i += W, l = (l + W) % L) {
            const int rest = int(min64(W, end - i));
            typename V::vector v;
            if (rest == W) {
                v = vector_exp<E>(V::load(x + i) - shift);
                if (STORE) V::store(out + i, v);
            }
            else {
                v = vector_exp<E>(V::load_part(x + i, rest) - shift);
                if (STORE) V::store_part(out + i, v, rest);
                v = V::blend(v, V::fill(E(0)), rest);
            }
            V::store(four + l, V::load(four + l) + v);
        }
        if (n <= 4 * L) return double(fold<add_fold>(four, L, E(0)));
        for (int l = 0; l < L; ++l) lane[l] += double(four[l]);
    }
    return fold<add_fold>(lane, L, 0.0);
}

/* sum over a row of map(x[i], y[i]) on vectors */
template <class E, class Map>
inline double row_sum(const E *x, const E *y, int64_t n, Map &&map) {
    double total;
    sum_lanes<1>(x, y, n, &total, map);
    return total;
}

/* The sum of a row, and that of the squares of its deviations from a mean. Squares that are too
 * small for floats are computed again where eps does not cover them. */
template <class E>
inline double row_total(const E *x, int64_t n) {
    const double sum = sum_of(x, n);
    return sum_overflowed<E>(sum) ? sum_in_double(x, 1, n, [](double v) { return v; }) : sum;
}
template <class E>
inline bool row_squares_lost(double sum, double eps) {
    return squares_lost<E>(sum) && !(sum <= 1e37 && eps > 1e-25);
}
template <class E>
inline double row_squares(const E *x, int64_t n, E mean, double eps) {
    const auto m = simd<E>::fill(mean);
    const double sum = row_sum(x, x, n, [=](auto a, auto) { return (a - m) * (a - m); });
    if (!row_squares_lost<E>(sum, eps)) return sum;
    const double center = double(mean);
    return sum_in_double(x, 1, n, [=](double v) { return (v - center) * (v - center); });
}

/* n elements of a floating tensor, `stride` apart, as E */
template <class E>
PT_NOINLINE void fetch(E *to, const pt_view &v, int64_t offset, int64_t stride, int64_t n) {
    if constexpr (is_same<E, double>)
        load(to, reinterpret_cast<const double *>(v.data) + offset, stride, n);
    else
        switch (v.dtype) {
        case PT_FLOAT16:
            load(to, reinterpret_cast<const half *>(v.data) + offset, stride, n);
            break;
        case PT_BFLOAT16:
            load(to, reinterpret_cast<const bfloat16 *>(v.data) + offset, stride, n);
            break;
        default: load(to, reinterpret_cast<const float *>(v.data) + offset, stride, n); break;
        }
}
/* writes n values of E to [first, first + n) of a contiguous output of any floating dtype */
template <class E>
PT_NOINLINE void write(const pt_view &out, int64_t first, const E *x, int64_t n) {
    switch (out.dtype) {
    case PT_FLOAT16: store(reinterpret_cast<half *>(out.data) + first, x, n); break;
    case PT_BFLOAT16: store(reinterpret_cast<bfloat16 *>(out.data) + first, x, n); break;
    case PT_FLOAT32: store(reinterpret_cast<float *>(out.data) + first, x, n); break;
    default: store(reinterpret_cast<double *>(out.data) + first, x, n); break;
    }
}
template <class E>
inline E *in_place(const pt_view &out, int64_t first, E *buffer) {
    return out.dtype == (is_same<E, float> ? PT_FLOAT32 : PT_FLOAT64)
               ? reinterpret_cast<E *>(out.data) + first
               : buffer;
}

inline int check_floats(pt_call *call) {
    for (int i = 0; i < call->nin; ++i)
        if (call->in[i].dtype != PT_NONE && !pt_is(call->in[i].dtype, FLOATS))
            return bad_dtype(call, call->in[i].dtype);
    for (int i = 0; i < call->nout; ++i)
        if (present(call->out[i]) && !pt_is(call->out[i].dtype, FLOATS))
            return bad_dtype(call, call->out[i].dtype);
    return PT_OK;
}

/* The maxima of `width` columns over n rows, `stride` apart; NaNs are ignored. */
template <class E>
inline void columns_max(E *PT_RESTRICT top, const E *PT_RESTRICT x, int64_t stride, int64_t n,
                        int64_t width) {
    for (int64_t j = 0; j < width; ++j) top[j] = limits<E>::lowest();
    for (int64_t r = 0; r < n; ++r)
        PT_IVDEP
        for (int64_t j = 0; j < width; ++j) top[j] = maximum(top[j], x[r * stride + j]);
}

} // namespace
#endif
