/* Elimination and substitution in real matrices so small that a library's calls, or its copies into
 * blocks, would take most of the time.
 *
 * A matrix lies row by row, in rows of a multiple of W elements, so that every loop along a row has
 * whole lanes and no rest; what pads a row is finite and its results are not read. The right-hand
 * sides stand behind the matrix in the same rows and are eliminated with it. Nothing here decides
 * what an error is: a pivot of zero or a NaN among the factors is told, and the caller asks LAPACK.
 */
#ifndef PTCORE_KERNELS_SMALL_HPP
#define PTCORE_KERNELS_SMALL_HPP
#include "lapack.hpp"

namespace {

constexpr int64_t TINY =
    4; /* up to this order a matrix is made one of this order, whose loops are unrolled */
template <class T>
constexpr int64_t SMALL = is_complex<T> ? 0 : 64;
template <class T, int N>
constexpr int64_t WIDTH = N ? TINY : int64_t(32 / sizeof(T));

template <class T, int N>
inline int64_t padded(int64_t n) { return ceil_div(n, WIDTH<T, N>) * WIDTH<T, N>; }

/* f(integral constant): TINY for a tiny matrix, else 0, which stands for any order. */
template <class F>
inline auto by_order(int64_t n, F &&f) {
    return n <= TINY ? f(std::integral_constant<int, int(TINY)>{})
                     : f(std::integral_constant<int, 0>{});
}

/* Whether matrices of order n with k right-hand sides are small: their rows fit into the first
 * cache. */
template <class T>
inline bool is_small(int64_t n, int64_t k) {
    return n > 0 && n <= SMALL<T> && n * (n + k) * int64_t(sizeof(T)) <= 49152;
}

/* x -= f y, of n elements, a multiple of W */
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

/* `rows` rows of `columns` elements to rows of `width`, padded with zeros, and with rows of the
 * identity up to order N */
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

/* Elimination with partial pivoting of n columns of rows of `width`; the multipliers stay below the
 * diagonal if KEEP. 0, the number of a pivot that is zero, or -1 where a multiplier is NaN. Pivots
 * count from 1. */
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

/* b = A^-1 b for a triangle A, of which element (i, j) lies at i * down + j * across; b has rows of
 * `width` */
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

/* The rows of U with A = U^T U, from the upper triangle of `a`; 0, or the order of a minor that is
 * not positive. What lies below the diagonal is overwritten. */
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
