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
/* the first NaN wins; of equal values the earlier one stays */
struct max_fold {
    template <class V>
    static V apply(V a, V b) { return select_max(a, b); }
};
struct min_fold {
    template <class V>
    static V apply(V a, V b) { return select_min(a, b); }
};

/* Folds map(x[i], y[i]) over n elements and writes the last KEEP lanes (2: re and im of complex
 * data) to result. Map takes vectors. Element i goes to lane i % LANES; padding never counts. */
template <class Fold, int KEEP, class T, class Map>
inline void fold_lanes(const T *x, const T *y, int64_t n, T identity, T *result, Map &&map) {
    using V = simd<T>;
    constexpr int W = V::width, REGS = LANES<T> / W;
    auto last = [](auto p, auto q) { return Fold::apply(p, q); };
    auto part = [&](int64_t at, int count) {
        return V::blend(map(V::load_part(x + at, count), V::load_part(y + at, count)),
                        V::fill(identity), count);
    };
    if (n <= W) { /* the other registers would only hold the identity */
        const auto v = n == W ? map(V::load(x), V::load(y)) : part(0, int(n));
        V::template fold<KEEP>(Fold::apply(V::fill(identity), v), result, last);
        return;
    }
    typename V::vector acc[REGS];
    int64_t i = 0;
    if (n >= LANES<T>) {
        for (int r = 0; r < REGS; ++r) acc[r] = map(V::load(x + r * W), V::load(y + r * W));
        for (i = LANES<T>; i + LANES<T> <= n; i += LANES<T>)
            for (int r = 0; r < REGS; ++r)
                acc[r] = Fold::apply(acc[r], map(V::load(x + i + r * W), V::load(y + i + r * W)));
    }
    else
        for (int r = 0; r < REGS; ++r) acc[r] = V::fill(identity);
    for (int r = 0; r < REGS && i < n; ++r, i += W) {
        if (n - i >= W) {
            acc[r] = Fold::apply(acc[r], map(V::load(x + i), V::load(y + i)));
            continue;
        }
        acc[r] = Fold::apply(acc[r], part(i, int(n - i)));
    }
    for (int half = REGS / 2; half > 0; half /= 2)
        for (int r = 0; r < half; ++r) acc[r] = Fold::apply(acc[r], acc[r + half]);
    V::template fold<KEEP>(acc[0], result, last);
}

struct identity_map {
    template <class V>
    V operator()(V v, V) const { return v; }
};

/* result[0...KEEP) = the sum of map(x[i], y[i]) over n elements (KEEP = 2: of re and of im).
 *
 * Floats are added eight at a time in float, and the sums of eight in 32 lanes of double. So three
 * roundings, of 2^-24 each, change the result, whatever n and the numbers are. Lanes of float lose
 * digits when numbers are equal, because all roundings go the same way. Doubles are added as
 * doubles. */
template <int KEEP, class T, class Map>
inline void sum_lanes(const T *x, const T *y, int64_t n, double *result, Map &&map) {
    if constexpr (!is_same<T, float>) fold_lanes<add_fold, KEEP>(x, y, n, T(0), result, map);
    else {
        using V = simd<float>;
        using D = simd<double>;
        constexpr int L = 32, W = V::width, REGS = L / W;
        typename D::vector acc[2 * REGS], first, second;
        for (int r = 0; r < 2 * REGS; ++r) acc[r] = D::fill(0);
        auto at = [&](int64_t i) { return map(V::load(x + i), V::load(y + i)); };
        auto last = [](auto a, auto b) { return a + b; };
        auto four = [&](int64_t k) {
            return (at(k) + at(k + L)) + (at(k + 2 * L) + at(k + 3 * L));
        };
        int64_t i = 0;
        for (; i + 8 * L <= n; i += 8 * L)
            for (int r = 0; r < REGS; ++r) {
                widen(four(i + r * W) + four(i + 4 * L + r * W), first, second);
                acc[2 * r] += first;
                acc[2 * r + 1] += second;
            }
        for (; i + 4 * L <= n; i += 4 * L)
            for (int r = 0; r < REGS; ++r) {
                widen(four(i + r * W), first, second);
                acc[2 * r] += first;
                acc[2 * r + 1] += second;
            }
        for (; i + L <= n; i += L)
            for (int r = 0; r < REGS; ++r) {
                widen(at(i + r * W), first, second);
                acc[2 * r] += first;
                acc[2 * r + 1] += second;
            }
        for (int r = 0; r < REGS && i < n; ++r, i += W) {
            const int rest = int(n - i);
            widen(rest >= W ? at(i)
                            : V::blend(map(V::load_part(x + i, rest), V::load_part(y + i, rest)),
                                       V::fill(0), rest),
                  first, second);
            acc[2 * r] += first;
            acc[2 * r + 1] += second;
        }
        for (int half = REGS; half > 0; half /= 2)
            for (int r = 0; r < half; ++r) acc[r] += acc[r + half];
        D::template fold<KEEP>(acc[0], result, last);
    }
}
template <class T>
inline double sum_of(const T *x, int64_t n) {
    double result;
    sum_lanes<1>(x, x, n, &result, identity_map{});
    return result;
}

/* The sum of map(x[i]) over n elements, `stride` apart, for floats that leave their range: all is
 * computed in double. */
template <class T, class Map>
inline double sum_in_double(const T *x, int64_t stride, int64_t n, Map &&map) {
    constexpr int L = 8;                        /* sums that do not wait for each other */
    double lane[L] = {}, total = 0;
    int64_t i = 0;
    for (; i + L <= n; i += L)
        for (int l = 0; l < L; ++l) lane[l] += map(double(x[(i + l) * stride]));
    for (; i < n; ++i) lane[0] += map(double(x[i * stride]));
    for (int l = 0; l < L; ++l) total += lane[l];
    return total;
}
/* Whether a sum of floats is infinite, or NaN, where the sum of the numbers need not be. */
template <class T>
inline bool sum_overflowed(double sum) { return is_same<T, float> && !(fabs(sum) < HUGE_VAL); }
/* Whether squares of floats have left the range in which they keep their digits. */
template <class T>
inline bool squares_lost(double sum) {
    return is_same<T, float> && !(sum >= 1e-30 && sum <= 1e37);
}

/* sum[j] += the sum of map(x[j], j) over rows that are `stride` apart, four at a time in T */
template <class T, class Map>
inline void sum_columns(double *PT_RESTRICT sum, const T *PT_RESTRICT x, int64_t stride,
                        int64_t rows, int64_t width, Map &&map) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const T *a = x + r * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        PT_IVDEP
        for (int64_t j = 0; j < width; ++j)
            sum[j] += double((map(a[j], j) + map(b[j], j)) + (map(c[j], j) + map(d[j], j)));
    }
    for (; r < rows; ++r) {
        const T *a = x + r * stride;
        PT_IVDEP
        for (int64_t j = 0; j < width; ++j) sum[j] += double(map(a[j], j));
    }
}

/* Maximum or minimum of n elements. NaN if there is one; if NANS is false, NaNs are ignored.
 * Numbers and NaNs are tracked apart, so that an element costs one native maximum: `taint` is -0 in
 * lanes without a NaN, and x + -0 is x. */
template <bool MAX, bool NANS, class T>
inline T extremum_lanes(const T *x, int64_t n, T identity) {
    using V = simd<T>;
    using vector = typename V::vector;
    constexpr int W = V::width, REGS = LANES<T> / W;
    constexpr bool tainted = NANS && std::is_floating_point<T>::value;
    auto better = [](auto a, auto b) { return MAX ? maximum(a, b) : minimum(a, b); };
    vector acc[REGS], taint[REGS];
    for (int r = 0; r < REGS; ++r) {
        acc[r] = V::fill(identity);
        if (tainted) taint[r] = V::fill(T(-0.0));
    }
    int64_t i = 0;
    for (; i + LANES<T> <= n; i += LANES<T>)
        for (int r = 0; r < REGS; ++r) {
            const vector v = V::load(x + i + r * W);
            acc[r] = better(acc[r], v);
            if (tainted) taint[r] = keep_nan(taint[r], v);
        }
    for (; i < n; i += W) {
        const vector v =
            n - i >= W ? V::load(x + i)
                       : V::blend(V::load_part(x + i, int(n - i)), V::fill(identity), int(n - i));
        acc[0] = better(acc[0], v);
        if (tainted) taint[0] = keep_nan(taint[0], v);
    }
    for (int half = REGS / 2; half > 0; half /= 2)
        for (int r = 0; r < half; ++r) {
            acc[r] = better(acc[r], acc[r + half]);
            if (tainted) taint[r] += taint[r + half];
        }
    T best;
    V::template fold<1>(acc[0], &best, better);
    if constexpr (tainted) return best + V::sum(taint[0]);
    else return best;
}

template <class Fold, class T>
inline T fold(const T *x, int64_t n, T identity) {
    if constexpr (is_same<Fold, max_fold>) return extremum_lanes<true, true>(x, n, identity);
    else if constexpr (is_same<Fold, min_fold>) return extremum_lanes<false, true>(x, n, identity);
    else {
        T result;
        fold_lanes<Fold, 1>(x, x, n, identity, &result, identity_map{});
        return result;
    }
}

template <class T>
struct limits;
template <> struct limits<float> {
    static float lowest() { return -HUGE_VALF; }
    static float highest() { return HUGE_VALF; }
};
template <> struct limits<double> {
    static double lowest() { return -HUGE_VAL; }
    static double highest() { return HUGE_VAL; }
};
template <> struct limits<uint8_t> {
    static uint8_t lowest() { return 0; }
    static uint8_t highest() { return UINT8_MAX; }
};
template <> struct limits<int8_t> {
    static int8_t lowest() { return INT8_MIN; }
    static int8_t highest() { return INT8_MAX; }
};
template <> struct limits<int16_t> {
    static int16_t lowest() { return INT16_MIN; }
    static int16_t highest() { return INT16_MAX; }
};
template <> struct limits<int32_t> {
    static int32_t lowest() { return INT32_MIN; }
    static int32_t highest() { return INT32_MAX; }
};
template <> struct limits<int64_t> {
    static int64_t lowest() { return INT64_MIN; }
    static int64_t highest() { return INT64_MAX; }
};
template <> struct limits<uint64_t> {
    static uint64_t lowest() { return 0; }
    static uint64_t highest() { return UINT64_MAX; }
};

} // namespace
#endif
