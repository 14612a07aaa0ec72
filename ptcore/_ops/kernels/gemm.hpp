/* Matrix products of our own for sizes where a BLAS call does not pay: C (n, m) = alpha A (n, k)
 * B (k, m) [+ C], C with unit column stride.
 *
 * Register-blocked kernels and plain ones:
 *    row     one row of A, rows of B added up as they stream by
 *    outer   rows of B are vectors, elements of A are broadcast: any strides, B panels packed
 *    dot     A rows and B columns are contiguous along k: no packing, B streams through once
 *    plain   integers and complex numbers: rows of B scaled and added
 * An element's sum over k has one fixed order that depends on k only, whichever tile, column
 * block or thread computes it.
 */
#ifndef PTCORE_KERNELS_GEMM_HPP
#define PTCORE_KERNELS_GEMM_HPP
#include "common.hpp"
#include "copy_row.hpp"
#include "ptcore/simd.h"

namespace {

template <class T>
struct matrix {
    T *data;
    int64_t row, column;        /* strides */
    T &at(int64_t i, int64_t j) const { return data[i * row + j * column]; }
    matrix block(int64_t i, int64_t j) const { return {&at(i, j), row, column}; }
    matrix transposed() const { return {data, column, row}; }
};
template <class T>
struct product {
    int64_t n, m, k;
    matrix<const T> a, b;
    matrix<T> c;                /* c.column is 1 */
    T alpha;
    bool accumulate;            /* add to C; otherwise C is never read */
};

/* k is cut into pieces, since a long sum of floats whose roundings all go one way loses digits.
 * With GEMM_DEPTH a packed panel stays in L1/L2; DOT_DEPTH is shared by the lanes of a vector. */
constexpr int64_t GEMM_DEPTH = 256, ROW_DEPTH = 512, DOT_DEPTH = 2048;

/* Calls run for each piece of the product along k. */
template <class T, class Run>
inline void in_depths(const product<T> &q, int64_t depth, Run &&run) {
    product<T> part = q;
    for (int64_t p = 0; p < q.k || p == 0; p += depth) {
        part.k = min64(depth, q.k - p);
        part.a = q.a.block(0, p);
        part.b = q.b.block(p, 0);
        part.accumulate = q.accumulate || p > 0;
        run(part);
    }
}

/* ---- outer ------------------------------------------------------------------------------- */

#if PT_VECTOR_BYTES == 64
constexpr int OUTER_ROWS = 6, OUTER_VECTORS = 4;
#elif PT_VECTOR_BYTES == 32
constexpr int OUTER_ROWS = 4, OUTER_VECTORS = 3;
#else
constexpr int OUTER_ROWS = 4, OUTER_VECTORS = 2;
#endif

template <class T>
using outer_kernel = void (*)(int64_t k, const T *a, int64_t row, int64_t column, const T *b,
                              int64_t ldb, T *c, int64_t ldc, T alpha, bool accumulate);

template <class T, int MR, int NV>
void outer_tile(int64_t k, const T *a, int64_t row, int64_t column, const T *b, int64_t ldb, T *c,
                int64_t ldc, T alpha, bool accumulate) {
    using V = simd<T>;
    constexpr int W = V::width;
    typename V::vector acc[MR][NV];
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NV; ++j) acc[i][j] = V::fill(T(0));
    for (int64_t p = 0; p < k; ++p) {
        typename V::vector right[NV];
        for (int j = 0; j < NV; ++j) right[j] = V::load(b + p * ldb + j * W);
        for (int i = 0; i < MR; ++i) {
            const typename V::vector left = V::fill(a[i * row + p * column]);
            for (int j = 0; j < NV; ++j) acc[i][j] += left * right[j];
        }
    }
    const typename V::vector scale = V::fill(alpha);
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NV; ++j) {
            T *to = c + i * ldc + j * W;
            V::store(to, accumulate ? V::load(to) + scale * acc[i][j] : scale * acc[i][j]);
        }
}

template <class T, int NV, int... MR>
inline outer_kernel<T> outer_of_rows(int rows, std::integer_sequence<int, MR...>) {
    static constexpr outer_kernel<T> kernels[] = {outer_tile<T, MR + 1, NV>...};
    return kernels[rows - 1];
}
template <class T, int... NV>
inline outer_kernel<T> outer_of(int rows, int vectors, std::integer_sequence<int, NV...>) {
    using choose = outer_kernel<T> (*)(int, std::make_integer_sequence<int, OUTER_ROWS>);
    static constexpr choose by_vectors[] = {
        [](int r, std::make_integer_sequence<int, OUTER_ROWS> s) {
            return outer_of_rows<T, NV + 1>(r, s);
        }...};
    return by_vectors[vectors - 1](rows, {});
}

/* The outer kernels compiled in matmul.cpp: one more call, but smaller code in other families. */
} // namespace
extern "C" void (*PT_CAT(pt_outer_tile_, PT_ISA)(int wide, int rows, int vectors))(void);
namespace {
template <class T>
inline outer_kernel<T> shared_outer(int rows, int vectors) {
    return reinterpret_cast<outer_kernel<T>>(PT_CAT(pt_outer_tile_, PT_ISA)(is_same<T, double>,
                                                                            rows, vectors));
}

/* panel[k][width]; columns from w on are 0 */
template <class T>
inline void pack_panel(T *PT_RESTRICT panel, const matrix<const T> &b, int64_t k, int64_t w,
                       int64_t width) {
    if (b.column == 1)
        for (int64_t p = 0; p < k; ++p) {
            T *to = panel + p * width;
            copy_row(reinterpret_cast<char *>(to),
                     reinterpret_cast<const char *>(b.data + p * b.row), size_t(w) * sizeof(T));
            for (int64_t j = w; j < width; ++j) to[j] = T(0);
        }
    else {
        for (int64_t j = 0; j < w; ++j)
            for (int64_t p = 0; p < k; ++p) panel[p * width + j] = b.data[p * b.row + j * b.column];
        for (int64_t j = w; j < width; ++j)
            for (int64_t p = 0; p < k; ++p) panel[p * width + j] = T(0);
    }
}

template <class T>
inline void outer_gemm(const product<T> &q) {
    constexpr int W = simd<T>::width, PANEL = OUTER_VECTORS * W;
    alignas(64) T panel[GEMM_DEPTH * PANEL];
    for (int64_t p0 = 0; p0 < q.k || p0 == 0; p0 += GEMM_DEPTH) {
        const int64_t depth = min64(GEMM_DEPTH, q.k - p0);
        const bool accumulate = q.accumulate || p0 > 0;
        for (int64_t j0 = 0; j0 < q.m; j0 += PANEL) {
            const int64_t w = min64(PANEL, q.m - j0);
            const int vectors = int(ceil_div(w, W));
            const matrix<const T> from = q.b.block(p0, j0);
            const bool whole = w == vectors * W,
                       in_place = whole && from.column == 1 && q.n <= 2 * OUTER_ROWS;
            if (!in_place) pack_panel(panel, from, depth, w, vectors * W);
            const T *b = in_place ? from.data : panel;
            const int64_t ldb = in_place ? from.row : vectors * W;
            for (int64_t i0 = 0; i0 < q.n; i0 += OUTER_ROWS) {
                const int rows = int(min64(OUTER_ROWS, q.n - i0));
                const matrix<const T> a = q.a.block(i0, p0);
                const outer_kernel<T> kernel =
                    outer_of<T>(rows, vectors, std::make_integer_sequence<int, OUTER_VECTORS>{});
                T *c = &q.c.at(i0, j0);
                if (whole) {
                    kernel(depth, a.data, a.row, a.column, b, ldb, c, q.c.row, q.alpha, accumulate);
                    continue;
                }
                alignas(64) T edge[OUTER_ROWS * PANEL];
                kernel(depth, a.data, a.row, a.column, b, ldb, edge, PANEL, q.alpha, false);
                for (int i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < w; ++j) {
                        const T v = edge[i * PANEL + j];
                        c[i * q.c.row + j] = accumulate ? c[i * q.c.row + j] + v : v;
                    }
            }
        }
    }
}

/* ---- dot --------------------------------------------------------------------------------- */

#if PT_VECTOR_BYTES == 64
constexpr int DOT_ROWS = 4, DOT_COLUMNS = 4;
#else
constexpr int DOT_ROWS = 2, DOT_COLUMNS = 4;
#endif

template <class T, int MR, int NR>
inline void dot_tile(const product<T> &q, int64_t i0, int64_t j0) {
    using V = simd<T>;
    constexpr int W = V::width;
    const T *a[MR], *b[NR];
    for (int i = 0; i < MR; ++i) a[i] = &q.a.at(i0 + i, 0);
    for (int j = 0; j < NR; ++j) b[j] = &q.b.at(0, j0 + j);
    typename V::vector acc[MR][NR];
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NR; ++j) acc[i][j] = V::fill(T(0));
    int64_t p = 0;
    for (; p + W <= q.k; p += W) {
        typename V::vector right[NR];
        for (int j = 0; j < NR; ++j) right[j] = V::load(b[j] + p);
        for (int i = 0; i < MR; ++i) {
            const typename V::vector left = V::load(a[i] + p);
            for (int j = 0; j < NR; ++j) acc[i][j] += left * right[j];
        }
    }
    for (int i = 0; i < MR; ++i)
        for (int j = 0; j < NR; ++j) {
            T sum = V::sum(acc[i][j]);
            for (int64_t t = p; t < q.k; ++t) sum += a[i][t] * b[j][t];
            T &to = q.c.at(i0 + i, j0 + j);
            to = q.accumulate ? to + q.alpha * sum : q.alpha * sum;
        }
}
template <class T, int MR>
inline void dot_row(const product<T> &q, int64_t i0) {
    int64_t j = 0;
    for (; j + DOT_COLUMNS <= q.m; j += DOT_COLUMNS) dot_tile<T, MR, DOT_COLUMNS>(q, i0, j);
    for (; j < q.m; ++j) dot_tile<T, MR, 1>(q, i0, j);
}
template <class T>
inline void dot_gemm(const product<T> &q) {
    /* column blocks that stay in cache while all rows pass */
    const int64_t block =
        max64(DOT_COLUMNS, 262144 / int64_t(sizeof(T)) / max64(1, q.k) / DOT_COLUMNS * DOT_COLUMNS);
    for (int64_t j = 0; j < q.m; j += block) {
        product<T> part = q;
        part.m = min64(block, q.m - j);
        part.b = q.b.block(0, j);
        part.c = q.c.block(0, j);
        int64_t i = 0;
        for (; i + DOT_ROWS <= q.n; i += DOT_ROWS) dot_row<T, DOT_ROWS>(part, i);
        for (; i < q.n; ++i) dot_row<T, 1>(part, i);
    }
}

/* ---- row --------------------------------------------------------------------------------- */

/* n = 1 and contiguous rows of B: eight rows at a time stream past a piece of C that stays in L1 */
template <class T>
inline void row_gemm(const product<T> &q) {
    constexpr int64_t WIDTH = 2048;
    alignas(64) T acc[WIDTH];
    for (int64_t j0 = 0; j0 < q.m; j0 += WIDTH) {
        const int64_t w = min64(WIDTH, q.m - j0);
        for (int64_t j = 0; j < w; ++j) acc[j] = T(0);
        int64_t p = 0;
        for (; p + 8 <= q.k; p += 8) {
            const T *PT_RESTRICT b[8];
            T a[8];
            for (int r = 0; r < 8; ++r) {
                b[r] = &q.b.at(p + r, j0);
                a[r] = q.a.at(0, p + r);
            }
            PT_IVDEP
            for (int64_t j = 0; j < w; ++j) {
                T s = acc[j];
                for (int r = 0; r < 8; ++r) s += a[r] * b[r][j];
                acc[j] = s;
            }
        }
        for (; p < q.k; ++p) {
            const T a = q.a.at(0, p);
            const T *PT_RESTRICT b = &q.b.at(p, j0);
            for (int64_t j = 0; j < w; ++j) acc[j] += a * b[j];
        }
        T *c = &q.c.at(0, j0);
        for (int64_t j = 0; j < w; ++j)
            c[j] = q.accumulate ? c[j] + q.alpha * acc[j] : q.alpha * acc[j];
    }
}

/* ---- plain ------------------------------------------------------------------------------- */

/* Unsigned types of less than 32 bits would become ints, which must not overflow. */
template <class T>
inline T times(T a, T b) {
    using U = std::conditional_t<std::is_integral<T>::value && sizeof(T) < 4, uint32_t, T>;
    return T(U(a) * U(b));
}
template <class T>
inline void add_scaled_row(T *PT_RESTRICT c, const T *PT_RESTRICT b, int64_t column, T a,
                           int64_t m) {
    if (column == 1)
        for (int64_t j = 0; j < m; ++j) c[j] = T(c[j] + times(a, b[j]));
    else
        for (int64_t j = 0; j < m; ++j) c[j] = T(c[j] + times(a, b[j * column]));
}
template <class T>
inline void plain_gemm(const product<T> &q) {
    constexpr int64_t WIDTH = 1024;
    T row[WIDTH];
    for (int64_t j0 = 0; j0 < q.m; j0 += WIDTH) {
        const int64_t w = min64(WIDTH, q.m - j0);
        for (int64_t i = 0; i < q.n; ++i) {
            for (int64_t j = 0; j < w; ++j) row[j] = T{};
            for (int64_t p = 0; p < q.k; ++p)
                add_scaled_row(row, &q.b.at(p, j0), q.b.column, q.a.at(i, p), w);
            T *c = &q.c.at(i, j0);
            for (int64_t j = 0; j < w; ++j)
                c[j] = q.accumulate ? T(c[j] + times(q.alpha, row[j])) : times(q.alpha, row[j]);
        }
    }
}

template <class T>
inline void own_gemm(const product<T> &q) {
    if constexpr (is_same<T, float> || is_same<T, double>) {
        /* dot tiles end in horizontal sums: they need a long k, or so few rows that
         * packing B would cost more */
        const bool along_k = q.a.column == 1 && q.b.row == 1;
        if (along_k && (q.k >= 16 * simd<T>::width || (q.n <= 2 && q.k >= simd<T>::width)))
            in_depths(q, DOT_DEPTH, [](const product<T> &part) { dot_gemm(part); });
        else if (q.n == 1 && q.b.column == 1)
            in_depths(q, ROW_DEPTH, [](const product<T> &part) { row_gemm(part); });
        else outer_gemm(q);
    }
    else plain_gemm(q);
}

} // namespace
#endif
