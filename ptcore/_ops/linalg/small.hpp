/* Elimination and substitution for real matrices so small that the calls of a library, or its
 * copies into blocks, would take most of the time.
 *
 * A matrix is stored in rows of a multiple of W elements, so that every loop along a row has whole
 * vectors and no remainder; what pads a row is finite, and its results are not used. The right-hand
 * sides stand behind the matrix in the same rows and are eliminated with it. Errors are not decided
 * here: the caller is told of a zero pivot or a NaN among the factors, and asks LAPACK.
 */
#ifndef PTCORE_KERNELS_SMALL_HPP
#define PTCORE_KERNELS_SMALL_HPP
#include "lapack.hpp"

namespace {

constexpr int64_t TINY =
    4; /* smaller matrices are padded to this order, for which loops are unrolled */
template <class T>
constexpr int64_t SMALL = is_complex<T> ? 0 : 64;
template <class T, int N>
constexpr int64_t WIDTH = N ? TINY : int64_t(32 / sizeof(T));

template <class T, int N>
inline int64_t padded(int64_t n) { return ceil_div(n, WIDTH<T, N>) * WIDTH<T, N>; }

/* f(integral constant): TINY for a tiny matrix, else 0, which means any order. */
template <class F>
inline auto by_order(int64_t n, F &&f) {
    return n <= TINY ? f(std::integral_constant<int, int(TINY)>{})
                     : f(std::integral_constant<int, 0>{});
}

/* Whether matrices of order n with k right-hand sides are small: their
 * rows fit into the L1 cache. */
template <class T>
inline bool is_small(int64_t n, int64_t k) {
    return n > 0 && n <= SMALL<T> && n * (n + k) * int64_t(sizeof(T)) <= 49152;
}

/* x -= f y, for n elements; n is a multiple of W */
template <int64_t W, class T>
inline void subtract(T *PT_RESTRICT x, const T *PT_RESTRICT y, T f, int64_t n) {
    for (int64_t c = 0; c < n; c += W)
        for (int64_t l = 0; l < W; ++l) x[c + l] = x[c + l] - f * y[c + l];
}
template <int64_t W, class T>
inline void divide(T *x, T by, int64_t n) {
    for (int64_t c = 0; c < n; c += W)
        for (int64_t l = 0; l < W; ++l) x[c + l] = x[c + l] / by;
}
template <int64_t W, class T>
inline void swap_rows(T *PT_RESTRICT x, T *PT_RESTRICT y, int64_t n) {
    for (int64_t c = 0; c < n; c += W)
        for (int64_t l = 0; l < W; ++l) {
            const T t = x[c + l];
            x[c + l] = y[c + l];
            y[c + l] = t;
        }
}

/* Copies `rows` rows of `columns` elements to rows of `width`, padded with zeros; rows
 * up to order N are zero too. */
template <int N, class T>
PT_NOINLINE void load_rows(T *PT_RESTRICT to, const T *PT_RESTRICT from, int64_t rows,
                           int64_t columns, int64_t down, int64_t across, int64_t width) {
    const int64_t wide = padded<T, N>(columns);
    if (N && rows == N && columns == N && across == 1) {
        for (int64_t i = 0; i < N; ++i)
            for (int64_t j = 0; j < N; ++j) to[i * width + j] = from[i * down + j];
        return;
    }
    for (int64_t i = 0; i < rows; ++i) {
        T *row = to + i * width;
        if (across == 1)
            for (int64_t j = 0; j < columns; ++j) row[j] = from[i * down + j];
        else
            for (int64_t j = 0; j < columns; ++j) row[j] = from[i * down + j * across];
        for (int64_t j = columns; j < wide; ++j) row[j] = T(0);
    }
    for (int64_t i = rows; i < N; ++i)
        for (int64_t j = 0; j < wide; ++j) to[i * width + j] = T(0);
}
template <int N, class T>
inline void pad_identity(T *a, int64_t n, int64_t width) {
    for (int64_t i = n; i < N; ++i) a[i * width + i] = T(1);
}
template <int N, class T>
PT_NOINLINE void store_rows_of(T *PT_RESTRICT to, const T *PT_RESTRICT from, int64_t rows,
                               int64_t columns, int64_t width) {
    if (N && rows == N && columns == N) {
        for (int64_t i = 0; i < N; ++i)
            for (int64_t j = 0; j < N; ++j) to[i * N + j] = from[i * width + j];
        return;
    }
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = from[i * width + j];
}

/* Elimination with partial pivoting of n columns in rows of `width`; if KEEP, the multipliers
 * stay below the diagonal. Returns 0, the number of a pivot that is zero (counted from 1), or
 * -1 if a multiplier is NaN. */
template <int N, bool KEEP, class T>
PT_NOINLINE int eliminate(T *a, int64_t order, int64_t width, int *pivots) {
    constexpr int64_t W = WIDTH<T, N>;
    const int64_t n = N ? N : order;
    T column[N ? N : SMALL<T>];
    for (int64_t k = 0; k < n; ++k) {
        int64_t best = k;
        T most = 0;
        for (int64_t i = k; i < n; ++i) {
            column[i] = a[i * width + k];
            const T size = pt::abs(column[i]);
            best = size > most ? i : best;
            most = size > most ? size : most;
        }
        pivots[k] = int(best + 1);
        if (!(most > 0)) return column[k] == column[k] ? int(k + 1) : -1;
        if (best != k) {
            swap_rows<W>(a + k * width, a + best * width, width);
            const T t = column[k];
            column[k] = column[best];
            column[best] = t;
        }
        const T pivot = column[k];
        if (!(pivot == pivot)) return -1;
        bool sound = true;
        for (int64_t i = k + 1; i < n; ++i) {
            column[i] = column[i] / pivot;
            sound = sound & (column[i] == column[i]);
        }
        if (!sound) return -1;
        const int64_t from = k / W * W;
        if constexpr (KEEP) {
            T first[W];
            for (int64_t l = 0; l < W; ++l)
                first[l] = from + l > k ? a[k * width + from + l] : T(0);
            for (int64_t i = k + 1; i < n; ++i) {
                subtract<W>(a + i * width + from, first, column[i], W);
                subtract<W>(a + i * width + from + W, a + k * width + from + W, column[i],
                            width - from - W);
                a[i * width + k] = column[i];
            }
        }
        else
            for (int64_t i = k + 1; i < n; ++i)
                subtract<W>(a + i * width + from, a + k * width + from, column[i], width - from);
    }
    return 0;
}

/* b = A^-1 b for a triangular A with element (i, j) at
 * i * down + j * across; b has rows of `width`. */
template <int N, class T, int64_t W = WIDTH<T, N>>
PT_NOINLINE void substitute(const T *a, int64_t down, int64_t across, T *b, int64_t order,
                            int64_t width, int64_t columns, bool upper, bool unit) {
    const int64_t n = N ? N : order;
    if (upper)
        for (int64_t i = n - 1; i >= 0; --i) {
            if (!unit) divide<W>(b + i * width, a[i * down + i * across], columns);
            for (int64_t r = 0; r < i; ++r)
                subtract<W>(b + r * width, b + i * width, a[r * down + i * across], columns);
        }
    else
        for (int64_t i = 0; i < n; ++i) {
            if (!unit) divide<W>(b + i * width, a[i * down + i * across], columns);
            for (int64_t r = i + 1; r < n; ++r)
                subtract<W>(b + r * width, b + i * width, a[r * down + i * across], columns);
        }
}

/* The rows of U with A = U^T U, from the upper triangle of `a`. Returns 0, or the order of a minor
 * that is not positive. Elements below the diagonal are overwritten. */
template <int N, class T>
PT_NOINLINE int factor_positive(T *a, int64_t order, int64_t width) {
    constexpr int64_t W = WIDTH<T, N>;
    const int64_t n = N ? N : order;
    for (int64_t k = 0; k < n; ++k) {
        T *row = a + k * width;
        if (!(row[k] > 0)) return int(k + 1);
        const T root = pt::sqrt(row[k]);
        const int64_t from = k / W * W;
        divide<W>(row + from, root, width - from);
        row[k] = root;
        for (int64_t i = k + 1; i < n; ++i) {
            const int64_t at = i / W * W;
            subtract<W>(a + i * width + at, row + at, row[i], width - at);
        }
    }
    return 0;
}

} // namespace
#endif
