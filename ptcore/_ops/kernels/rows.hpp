/* Row and column pieces of softmax, log_softmax and cross_entropy over float or double tiles.
 *
 * exp runs in loops of a fixed trip count so that it vectorises; a tail is padded to 16 lanes.
 * Sums are taken in LANES lanes over runs of 8192 elements and in float64 beyond.
 */
#ifndef PTCORE_KERNELS_ROWS_HPP
#define PTCORE_KERNELS_ROWS_HPP
#include "lanes.hpp"

namespace {

constexpr int64_t ROW_RUN = 8192;

template <class E>
inline E row_max(const E *x, int64_t n) { return fold<max_fold>(x, n, limits<E>::lowest()); }

/* sum of exp(x - top); the terms are kept in out when STORE (out may be x) */
template <bool STORE, class E>
inline double row_exp_sum(const E *x, E *out, int64_t n, E top) {
    constexpr int L = LANES<E>, PAD = 16;
    double total = 0;
    for (int64_t start = 0; start < n; start += ROW_RUN) {
        const int64_t end = min64(n, start + ROW_RUN);
        alignas(64) E lane[L];
        for (int l = 0; l < L; ++l) lane[l] = 0;
        int64_t i = start;
        for (; i + L <= end; i += L) {
            alignas(64) E term[L];
            for (int l = 0; l < L; ++l) {
                term[l] = pt::exp(x[i + l] - top);
                lane[l] += term[l];
            }
            if (STORE) memcpy(out + i, term, sizeof term);
        }
        for (; i < end; i += PAD) {
            const int64_t rest = min64(PAD, end - i);
            alignas(64) E term[PAD];
            for (int l = 0; l < PAD; ++l) term[l] = -HUGE_VALF;
            memcpy(term, x + i, size_t(rest) * sizeof(E));
            for (int l = 0; l < PAD; ++l) term[l] = pt::exp(term[l] - top);
            for (int64_t l = 0; l < rest; ++l) lane[l] += term[l];
            if (STORE) memcpy(out + i, term, size_t(rest) * sizeof(E));
        }
        total += double(fold<add_fold>(lane, L, E(0)));
    }
    return total;
}

/* sum over a row of map(x[i], y[i]) for vectors and scalars alike: lanes, float64 beyond a run */
template <class E, class Map>
inline double row_sum(const E *x, const E *y, int64_t n, Map &&map) {
    using V = simd<E>;
    constexpr int W = V::width, REGS = LANES<E> / W;
    double total = 0;
    for (int64_t start = 0; start < n; start += ROW_RUN) {
        const int64_t end = min64(n, start + ROW_RUN);
        typename V::vector acc[REGS];
        alignas(64) E lane[LANES<E>];
        for (int r = 0; r < REGS; ++r) acc[r] = V::fill(E(0));
        int64_t i = start;
        for (; i + LANES<E> <= end; i += LANES<E>)
            for (int r = 0; r < REGS; ++r) acc[r] += map(V::load(x + i + r * W), V::load(y + i + r * W));
        for (int r = 0; r < REGS; ++r) V::store(lane + r * W, acc[r]);
        for (int l = 0; i < end; ++i, ++l) lane[l] += map(x[i], y[i]);
        total += double(fold<add_fold>(lane, LANES<E>, E(0)));
    }
    return total;
}

/* Block of `width` columns, n rows, `stride` apart: the columns' maxima. */
template <class E>
inline void columns_max(E *PT_RESTRICT top, const E *PT_RESTRICT x, int64_t stride, int64_t n, int64_t width) {
    for (int64_t j = 0; j < width; ++j) top[j] = limits<E>::lowest();
    for (int64_t r = 0; r < n; ++r)
        PT_IVDEP
        for (int64_t j = 0; j < width; ++j) top[j] = select_max(top[j], x[r * stride + j]);
}

} // namespace
#endif
