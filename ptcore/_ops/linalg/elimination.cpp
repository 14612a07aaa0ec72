/* Equations, triangles and determinants of batches of matrices: small matrices are
 * solved here, others by LAPACK.
 *
 *    solve(A, B) -> X                           A X = B
 *    solve_ex(A, B; check) -> X, info           a singular matrix is an error only if check
 *    inv(A; check) -> A^-1, info
 *    solve_triangular(A, B; upper, unit) -> X   the same for a triangle of A
 *    cholesky(A; upper, check) -> L, info       A = L L^H, or U^H U
 *    det(A) -> det;  slogdet(A) -> sign, logabsdet
 *    lu(A; check, pivot) -> LU, pivots, info    A = P L U with L's ones left out
 *    lu_solve(LU, pivots, B; transposed) -> X   A X = B, or A^T X = B, from the factors of A
 *
 * A small matrix without an inverse, or with a NaN, goes to LAPACK: its results and error numbers
 * are then the same as for large matrices.
 */
#include "small.hpp"

namespace {

inline int64_t last(const pt_view &v, int back = 1) { return v.sizes[v.ndim - back]; }
template <class T>
inline const T *at_offset(const pt_call *call, int which, const int64_t *offset) {
    return input<T>(call, which) + offset[which];
}
PT_NOINLINE void no_infos(pt_call *call, int64_t batch, int which) {
    for (int64_t b = 0; b < batch; ++b) output<int32_t>(call, which)[b] = 0;
}

/* The number of elements in the rows of matrices of order n with k right-hand
 * sides; 0 if they are not small. */
template <class T>
inline int64_t room(int64_t n, int64_t k) {
    if (!is_small<T>(n, k)) return 0;
    return by_order(n, [&](auto N) { return max64(N, n) * (padded<T, N>(n) + padded<T, N>(k)); });
}

/* ---- equations ------------------------------------------------------------------------------ */

template <class T>
struct solver {
    pt_call *call;
    int64_t n, k, space;
    bool inverse, always;               /* always: a pivot of zero is divided by, too */
    scratch<T> rows, a, b;
    scratch<int> pivots;
    solver(pt_call *c, int64_t n_, int64_t k_, bool inverse_, bool always_)
        : call(c), n(n_), k(k_), space(room<T>(n_, k_)), inverse(inverse_), always(always_),
          rows(space), a(n_ * n_), b(n_ * k_), pivots(max64(TINY, n_)) {}
    explicit operator bool() const { return rows && a && b && pivots; }

    template <int N>
    bool small(int64_t number, const int64_t *offset) {
        const stack s(call->in[0]);
        const int64_t wide = padded<T, N>(n), columns = padded<T, N>(k), width = wide + columns,
                      order = N ? N : n;
        T *x = rows.data + wide;
        load_rows<N>(rows.data, at_offset<T>(call, 0, offset), n, n, s.down, s.across, width);
        pad_identity<N>(rows.data, n, width);
        if (inverse)
            for (int64_t i = 0; i < order; ++i)
                for (int64_t j = 0; j < columns; ++j) x[i * width + j] = convert<T>(i == j ? 1 : 0);
        else {
            const stack right(call->in[1]);
            load_rows<N>(x, at_offset<T>(call, 1, offset), n, k, right.down, right.across, width);
        }
        if (eliminate<N, false>(rows.data, n, width, pivots.data)) return false;
        substitute<N>(rows.data, width, 1, x, n, width, columns, true, false);
        store_rows_of<N>(output<T>(call) + number * n * k, x, n, k, width);
        return true;
    }
    int run(int64_t number, const int64_t *offset) {
        if constexpr (SMALL<T> > 0)
            if (space && by_order(n, [&](auto N) { return small<N>(number, offset); })) return 0;
        int info = 0, in = int(n), ik = int(k);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        if (inverse) {          /* by the factors alone: 3/4 of the products of n equations */
            int room = int(min64(n * n, INT_MAX));
            routine<T>(PT_GETRF, &in, &in, a.data, &in, pivots.data, &info);
            if (!info) {
                routine<T>(PT_GETRI, &in, a.data, &in, pivots.data, b.data, &room, &info);
                store_rows(output<T>(call) + number * n * n, a.data, n, n, n);
                return info;
            }
            if (!always) return info;
            load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        }
        if (inverse)
            for (int64_t i = 0; i < n * n; ++i) b[i] = convert<T>(i % (n + 1) == 0 ? 1 : 0);
        else load_columns(b.data, call->in[1], stack(call->in[1]), offset[1]);
        routine<T>(PT_GESV, &in, &ik, a.data, &in, pivots.data, b.data, &in, &info);
        if (info > 0 && always) {
            int ignored = 0;
            char as_is = 'N';
            routine<T>(PT_GETRS, &as_is, &in, &ik, a.data, &in, pivots.data, b.data, &in, &ignored);
        }
        store_rows(output<T>(call) + number * n * k, b.data, n, k, n);
        return info;
    }
};

template <class T>
int solve(pt_call *call, bool inverse, bool always) {
    const int64_t n = last(call->in[0]), k = inverse ? n : last(call->in[1]),
                  batch = batch_of(call->in[0]);
    if (call->nout > 1) no_infos(call, batch, 1);
    if (batch * n == 0) return PT_OK;
    scratch<int> infos(batch);
    const auto make = [&] { return solver<T>(call, n, k, inverse, always); };
    const int64_t cost = n * n * (n + k);
    if (int status = inverse ? each_matrix<1>(call, cost, infos, make)
                             : each_matrix<2>(call, cost, infos, make))
        return status;
    if (always) keep_infos(call, infos, batch, 1);
    return report(call, infos, batch, SINGULAR);
}

template <class T>
struct triangular_solver {
    pt_call *call;
    int64_t n, k, space;
    bool upper, unit;
    scratch<T> rows, a;
    triangular_solver(pt_call *c, int64_t n_, int64_t k_)
        : call(c), n(n_), k(k_), space(room<T>(n_, k_)), upper(c->params[0].i != 0),
          unit(c->params[1].i != 0), rows(space), a(space ? 0 : n_ * n_) {}
    explicit operator bool() const { return rows && a; }

    template <int N>
    int small(int64_t number, const int64_t *offset) {
        const stack s(call->in[0]), right(call->in[1]);
        const int64_t width = padded<T, N>(k);
        load_rows<N>(rows.data, at_offset<T>(call, 1, offset), n, k, right.down, right.across,
                     width);
        substitute<0, T, WIDTH<T, N>>(at_offset<T>(call, 0, offset), s.down, s.across, rows.data, n,
                                      width, width, upper, unit);
        store_rows_of<N>(output<T>(call) + number * n * k, rows.data, n, k, width);
        return 0;
    }
    int run(int64_t number, const int64_t *offset) {
        if constexpr (SMALL<T> > 0)
            if (space) return by_order(n, [&](auto N) { return small<N>(number, offset); });
        /* X^T A^T = B^T: to LAPACK rows are the columns of the transpose, so none is moved */
        int in = int(n), ik = int(k);
        char right = 'R', triangle = upper ? 'L' : 'U', as_is = 'N', diagonal = unit ? 'U' : 'N';
        T one = convert<T>(1), *to = output<T>(call) + number * n * k;
        stack rows_of_a(call->in[0]), rows_of_b(call->in[1]);
        std::swap(rows_of_a.down, rows_of_a.across);
        std::swap(rows_of_b.down, rows_of_b.across);
        std::swap(rows_of_b.rows, rows_of_b.columns);
        load_columns(a.data, call->in[0], rows_of_a, offset[0]);
        load_columns(to, call->in[1], rows_of_b, offset[1]);
        routine<T>(PT_TRSM, &right, &triangle, &as_is, &diagonal, &ik, &in, &one, a.data, &in, to,
                   &ik);
        return 0;
    }
};

template <class T>
int solve_triangular(pt_call *call) {
    const int64_t n = last(call->in[0]), k = last(call->in[1]), batch = batch_of(call->in[0]);
    if (batch * n * k == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status = each_matrix<2>(call, n * n * k, infos,
                                    [&] { return triangular_solver<T>(call, n, k); }))
        return status;
    return report(call, infos, batch, OTHERWISE);
}

/* ---- factors -------------------------------------------------------------------------------- */

template <class T>
struct cholesky_factor {
    pt_call *call;
    int64_t n, space;
    bool upper;
    scratch<T> rows, a;
    cholesky_factor(pt_call *c, int64_t n_)
        : call(c), n(n_), space(room<T>(n_, 0)), upper(c->params[0].i != 0), rows(space),
          a(n_ * n_) {}
    explicit operator bool() const { return rows && a; }

    template <int N>
    bool small(int64_t number, const int64_t *offset) {
        const stack s(call->in[0]);
        const int64_t width = padded<T, N>(n);
        load_rows<N>(rows.data, at_offset<T>(call, 0, offset), n, n, upper ? s.down : s.across,
                     upper ? s.across : s.down, width);
        pad_identity<N>(rows.data, n, width);
        if (factor_positive<N>(rows.data, n, width)) return false;
        T *to = output<T>(call) + number * n * n;
        for (int64_t i = 0; i < n; ++i) {
            if (upper)
                for (int64_t j = 0; j < n; ++j)
                    to[i * n + j] = j >= i ? rows[i * width + j] : convert<T>(0);
            else
                for (int64_t j = 0; j < n; ++j)
                    to[i * n + j] = j <= i ? rows[j * width + i] : convert<T>(0);
        }
        return true;
    }
    int run(int64_t number, const int64_t *offset) {
        if constexpr (SMALL<T> > 0)
            if (space && by_order(n, [&](auto N) { return small<N>(number, offset); })) return 0;
        int info = 0, in = int(n);
        char triangle = upper ? 'U' : 'L';
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        routine<T>(PT_POTRF, &triangle, &in, a.data, &in, &info);
        T *to = output<T>(call) + number * n * n;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j)
                to[i * n + j] = (upper ? j >= i : j <= i) ? a[j * n + i] : convert<T>(0);
        for (int64_t i = 0; info == 0 && i < n;
             ++i) /* some LAPACKs do not report a NaN pivot as not positive */
            if (!(a[i * (n + 1)] == a[i * (n + 1)])) info = int(i + 1);
        return info;
    }
};

template <class T>
int cholesky(pt_call *call) {
    const int64_t n = last(call->in[0]), batch = batch_of(call->in[0]);
    no_infos(call, batch, 1);
    if (batch * n == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status =
            each_matrix<1>(call, n * n * n / 3, infos, [&] { return cholesky_factor<T>(call, n); }))
        return status;
    if (!call->params[1].i) keep_infos(call, infos, batch, 1);
    return report(call, infos, batch, NOT_POSITIVE);
}

template <class T>
struct lu_factor {
    pt_call *call;
    int64_t m, n, k, space;
    scratch<T> rows, a;
    lu_factor(pt_call *c, int64_t m_, int64_t n_)
        : call(c), m(m_), n(n_), k(min64(m_, n_)), space(m_ == n_ ? room<T>(n_, 0) : 0),
          rows(space), a(m_ * n_) {}
    explicit operator bool() const { return rows && a; }

    template <int N>
    bool small(int64_t number, const int64_t *offset) {
        const stack s(call->in[0]);
        const int64_t width = padded<T, N>(n);
        int pivots[SMALL<T>];
        load_rows<N>(rows.data, at_offset<T>(call, 0, offset), n, n, s.down, s.across, width);
        pad_identity<N>(rows.data, n, width);
        if (eliminate<N, true>(rows.data, n, width, pivots)) return false;
        store_rows_of<N>(output<T>(call) + number * n * n, rows.data, n, n, width);
        for (int64_t i = 0; i < n; ++i) output<int32_t>(call, 1)[number * n + i] = pivots[i];
        return true;
    }
    int run(int64_t number, const int64_t *offset) {
        if constexpr (SMALL<T> > 0)
            if (space && by_order(n, [&](auto N) { return small<N>(number, offset); })) return 0;
        int info = 0, im = int(m), in = int(n);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        routine<T>(PT_GETRF, &im, &in, a.data, &im, output<int32_t>(call, 1) + number * k, &info);
        store_rows(output<T>(call) + number * m * n, a.data, m, n, m);
        return info;
    }
};

template <class T>
int lu(pt_call *call) {
    if (!call->params[1].i)
        return fail(call, PT_RUNTIME_ERROR, "LU without pivoting is not implemented on the CPU");
    const int64_t m = last(call->in[0], 2), n = last(call->in[0]), batch = batch_of(call->in[0]);
    no_infos(call, batch, 2);
    if (batch * m * n == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, m * n * min64(m, n), infos,
                                    [&] { return lu_factor<T>(call, m, n); }))
        return status;
    if (!call->params[0].i) keep_infos(call, infos, batch, 2);
    return report(call, infos, batch, SINGULAR_U);
}

/* Pivots may come from the user: they are checked before anything is written to where they
 * point. */
template <class T>
struct factored_solver {
    enum : int { BAD_PIVOT = -2000 };
    pt_call *call;
    int64_t n, k, space;
    bool transposed;
    scratch<T> rows, a, b;
    scratch<int> pivots;
    factored_solver(pt_call *c, int64_t n_, int64_t k_)
        : call(c), n(n_), k(k_), space(room<T>(n_, k_)), transposed(c->params[0].i != 0),
          rows(space), a(space ? 0 : n_ * n_), b(space ? 0 : n_ * k_), pivots(n_) {}
    explicit operator bool() const { return rows && a && b && pivots; }

    template <int N>
    int small(int64_t number, const int64_t *offset) {
        constexpr int64_t W = WIDTH<T, N>;
        const stack s(call->in[0]), right(call->in[2]);
        const T *factors = at_offset<T>(call, 0, offset);
        const int64_t width = padded<T, N>(k);
        load_rows<N>(rows.data, at_offset<T>(call, 2, offset), n, k, right.down, right.across,
                     width);
        const auto exchange = [&](int64_t i) {
            if (pivots[i] != int(i + 1))
                swap_rows<W>(rows.data + i * width, rows.data + (pivots[i] - 1) * width, width);
        };
        if (transposed) {
            substitute<0, T, W>(factors, s.across, s.down, rows.data, n, width, width, false,
                                false);
            substitute<0, T, W>(factors, s.across, s.down, rows.data, n, width, width, true, true);
            for (int64_t i = n - 1; i >= 0; --i) exchange(i);
        }
        else {
            for (int64_t i = 0; i < n; ++i) exchange(i);
            substitute<0, T, W>(factors, s.down, s.across, rows.data, n, width, width, false, true);
            substitute<0, T, W>(factors, s.down, s.across, rows.data, n, width, width, true, false);
        }
        store_rows_of<N>(output<T>(call) + number * n * k, rows.data, n, k, width);
        return 0;
    }
    int run(int64_t number, const int64_t *offset) {
        const pt_view &p = call->in[1];
        for (int64_t i = 0; i < n; ++i) {
            pivots[i] = at_offset<int32_t>(call, 1, offset)[i * p.strides[p.ndim - 1]];
            if (pivots[i] < 1 || pivots[i] > n) return BAD_PIVOT;
        }
        if constexpr (SMALL<T> > 0)
            if (space) return by_order(n, [&](auto N) { return small<N>(number, offset); });
        int info = 0, in = int(n), ik = int(k);
        char as_is = transposed ? 'T' : 'N';
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        load_columns(b.data, call->in[2], stack(call->in[2]), offset[2]);
        routine<T>(PT_GETRS, &as_is, &in, &ik, a.data, &in, pivots.data, b.data, &in, &info);
        store_rows(output<T>(call) + number * n * k, b.data, n, k, n);
        return info;
    }
};

template <class T>
int lu_solve(pt_call *call) {
    const pt_view &x = call->in[0], &p = call->in[1], &b = call->in[2];
    bool fits = p.ndim == x.ndim - 1 && b.ndim == x.ndim && last(b, 2) == last(x) &&
                p.dtype == PT_INT32 && b.dtype == x.dtype;
    for (int d = 0; fits && d < x.ndim - 1; ++d)
        fits = p.sizes[d] == x.sizes[d] && b.sizes[d] == x.sizes[d];
    if (!fits)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected factors, int32 pivots and matrices of one batch and dtype that fit");
    const int64_t n = last(x), k = last(b), batch = batch_of(x);
    if (batch * n * k == 0) return PT_OK;
    if (too_large(k))
        return fail(call, PT_RUNTIME_ERROR, "B must have fewer than %d columns, got %lld",
                    INT_MAX / 16, (long long)k);
    scratch<int> infos(batch);
    if (int status = each_matrix<3>(call, 2 * n * n * k, infos,
                                    [&] { return factored_solver<T>(call, n, k); }))
        return status;
    space<1> all;
    for (int d = 0; d < p.ndim; ++d) all.push(p.sizes[d], {p.strides[d]});
    for (int64_t i = 0; i < batch; ++i) {
        if (infos[i] != factored_solver<T>::BAD_PIVOT) continue;
        int pivot = 1;
        for (cursor<1> at(all, i * n); pivot >= 1 && pivot <= n; at.next())
            pivot = input<int32_t>(call, 1)[at.offset[0]];
        return fail(call, PT_RUNTIME_ERROR, "pivots must be in [1, %lld], got %d", (long long)n,
                    pivot);
    }
    return report(call, infos, batch, OTHERWISE);
}

/* ---- determinants --------------------------------------------------------------------------- */

template <class T>
struct eliminator {
    pt_call *call;
    int64_t n, space;
    bool logarithm;
    scratch<T> rows, a;
    scratch<int> pivots;
    eliminator(pt_call *c, int64_t n_, bool l)
        : call(c), n(n_), space(room<T>(n_, 0)), logarithm(l), rows(space), a(n_ * n_),
          pivots(max64(TINY, n_)) {}
    explicit operator bool() const { return rows && a && pivots; }

    template <int N>
    bool small(const int64_t *offset, int64_t width) {
        const stack s(call->in[0]);
        load_rows<N>(rows.data, at_offset<T>(call, 0, offset), n, n, s.down, s.across, width);
        pad_identity<N>(rows.data, n, width);
        return eliminate<N, false>(rows.data, n, width, pivots.data) == 0;
    }
    int run(int64_t number, const int64_t *offset) {
        int64_t width = 0;
        const T *factors = rows.data;
        if constexpr (SMALL<T> > 0) {
            width = by_order(n, [&](auto N) { return padded<T, N>(n); });
            if (!space || !by_order(n, [&](auto N) { return small<N>(offset, width); })) width = 0;
        }
        if (width == 0) {
            int info = 0, in = int(n);
            load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
            if (n > 0) routine<T>(PT_GETRF, &in, &in, a.data, &in, pivots.data, &info);
            if (info < 0) return info;
            factors = a.data;
            width = n;
        }
        T product = convert<T>(1);
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            T d = factors[i * (width + 1)];
            if (pivots[i] != int(i + 1)) product = convert<T>(0) - product;
            if (logarithm) {
                const double size = double(pt::abs(d));
                sum += log(size);
                if (size == 0) d = convert<T>(0);
                else if constexpr (is_complex<T>)
                    d = {real_type<T>(double(d.re) / size), real_type<T>(double(d.im) / size)};
                else d = size == HUGE_VAL ? pt::copysign(T(1), d) : T(double(d) / size);
            }
            product = product * d;
        }
        output<T>(call)[number] = product;
        if (logarithm) output<real_type<T>>(call, 1)[number] = real_type<T>(sum);
        return 0;
    }
};

template <class T>
PT_NOINLINE int determinant(pt_call *call, bool logarithm) {
    const int64_t n = last(call->in[0]), batch = batch_of(call->in[0]);
    scratch<int> infos(batch);
    if (batch == 0) return PT_OK;
    if (int status = each_matrix<1>(call, n * n * n / 3, infos,
                                    [&] { return eliminator<T>(call, n, logarithm); }))
        return status;
    return report(call, infos, batch, OTHERWISE);
}

/* ---- kernels -------------------------------------------------------------------------------- */

template <class F>
int with_pair(pt_call *call, F &&f) {
    const pt_view &x = call->in[0], &b = call->in[1];
    bool fits = x.ndim > 1 && b.ndim == x.ndim && b.dtype == x.dtype && last(b, 2) == last(x);
    for (int d = 0; fits && d < x.ndim - 2; ++d) fits = b.sizes[d] == x.sizes[d];
    if (!fits)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected two batches of matrices of one dtype that fit");
    if (too_large(last(b))) return fail(call, PT_RUNTIME_ERROR, "too many columns for LAPACK");
    return with_squares(call, f);
}

int solve_kernel(pt_call *call) {
    return with_pair(call, [&](auto tag) { return solve<PT_TYPE(tag)>(call, false, false); });
}
int solve_ex_kernel(pt_call *call) {
    return with_pair(call, [&](auto tag) {
        return solve<PT_TYPE(tag)>(call, false, !call->params[0].i);
    });
}
int inv_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) {
        return solve<PT_TYPE(tag)>(call, true, !call->params[0].i);
    });
}
int solve_triangular_kernel(pt_call *call) {
    return with_pair(call, [&](auto tag) { return solve_triangular<PT_TYPE(tag)>(call); });
}
int cholesky_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return cholesky<PT_TYPE(tag)>(call); });
}
int lu_kernel(pt_call *call) {
    return with_lapack(call, [&](auto tag) { return lu<PT_TYPE(tag)>(call); });
}
int lu_solve_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return lu_solve<PT_TYPE(tag)>(call); });
}
int det_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return determinant<PT_TYPE(tag)>(call, false); });
}
int slogdet_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return determinant<PT_TYPE(tag)>(call, true); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_elimination_, PT_ISA)[] = {
    {"solve", solve_kernel},       {"solve_ex", solve_ex_kernel},
    {"inv", inv_kernel},           {"solve_triangular", solve_triangular_kernel},
    {"cholesky", cholesky_kernel}, {"lu", lu_kernel},
    {"lu_solve", lu_solve_kernel}, {"det", det_kernel},
    {"slogdet", slogdet_kernel},   {nullptr, nullptr},
};
