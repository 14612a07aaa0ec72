/* Folds over contiguous runs with a fixed number of virtual lanes (256 bytes: 64 float, 32 double)
 * and a fixed tree, so that a result does not depend on the vector width of the machine. */
#ifndef PTCORE_KERNELS_LANES_HPP
#define PTCORE_KERNELS_LANES_HPP
#include "common.hpp"
#include "ptcore/simd.h"

namespace {

template <class T>
constexpr int LANES = 256 / int(sizeof(T));

struct add_fold {
    template <class V>
    static V apply(V a, V b) { return a + b; }
};
struct multiply_fold {
    template <class V>
    static V apply(V a, V b) { return a * b; }
};
/* the first NaN wins; of equals the earlier one stays */
struct max_fold {
    template <class V>
    static V apply(V a, V b) { return select_max(a, b); }
};
struct min_fold {
    template <class V>
    static V apply(V a, V b) { return select_min(a, b); }
};

/* Folds n elements; the last `keep` lanes are left apart (2 folds re and im of complex data). The
 * values are written to result[0...keep). Map is applied to each vector as it is read. */
template <class Fold, class T, class Map>
inline void fold_lanes(const T *PT_RESTRICT x, int64_t n, T identity, T *result, int keep, Map &&map) {
    using V = simd<T>;
    constexpr int W = V::width, REGS = LANES<T> / W;
    alignas(64) T lane[LANES<T>];
    int64_t i = 0;
    if (n >= LANES<T>) {
        typename V::vector acc[REGS];
        for (int r = 0; r < REGS; ++r) acc[r] = map(V::load(x + r * W));
        for (i = LANES<T>; i + LANES<T> <= n; i += LANES<T>)
            for (int r = 0; r < REGS; ++r) acc[r] = Fold::apply(acc[r], map(V::load(x + i + r * W)));
        for (int r = 0; r < REGS; ++r) V::store(lane + r * W, acc[r]);
    }
    else
        for (int l = 0; l < LANES<T>; ++l) lane[l] = identity;
    for (int l = 0; i < n; ++i, ++l) lane[l] = Fold::apply(lane[l], map(x[i]));
    if constexpr (LANES<T> >= 64)
        for (int l = 0; l < 32; ++l) lane[l] = Fold::apply(lane[l], lane[l + 32]);
    for (int l = 0; l < 16; ++l) lane[l] = Fold::apply(lane[l], lane[l + 16]);
    for (int l = 0; l < 8; ++l) lane[l] = Fold::apply(lane[l], lane[l + 8]);
    for (int l = 0; l < 4; ++l) lane[l] = Fold::apply(lane[l], lane[l + 4]);
    for (int l = 0; l < 2; ++l) lane[l] = Fold::apply(lane[l], lane[l + 2]);
    if (keep == 1) result[0] = Fold::apply(lane[0], lane[1]);
    else {
        result[0] = lane[0];
        result[1] = lane[1];
    }
}

struct identity_map {
    template <class V>
    V operator()(V v) const { return v; }
};

template <class Fold, class T>
inline T fold(const T *x, int64_t n, T identity) {
    T result[2];
    fold_lanes<Fold>(x, n, identity, result, 1, identity_map{});
    return result[0];
}

template <class T>
struct limits;
template <> struct limits<float> { static float lowest() { return -HUGE_VALF; } static float highest() { return HUGE_VALF; } };
template <> struct limits<double> { static double lowest() { return -HUGE_VAL; } static double highest() { return HUGE_VAL; } };
template <> struct limits<uint8_t> { static uint8_t lowest() { return 0; } static uint8_t highest() { return UINT8_MAX; } };
template <> struct limits<int8_t> { static int8_t lowest() { return INT8_MIN; } static int8_t highest() { return INT8_MAX; } };
template <> struct limits<int32_t> { static int32_t lowest() { return INT32_MIN; } static int32_t highest() { return INT32_MAX; } };
template <> struct limits<int64_t> { static int64_t lowest() { return INT64_MIN; } static int64_t highest() { return INT64_MAX; } };
template <> struct limits<uint64_t> { static uint64_t lowest() { return 0; } static uint64_t highest() { return UINT64_MAX; } };

} // namespace
#endif
