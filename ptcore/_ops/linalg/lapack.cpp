/* Equations and factors of batches of matrices by LAPACK.
 *
 *    solve(A, B) -> X                           A X = B
 *    solve_triangular(A, B; upper, unit) -> X   the same for a triangle of A
 *    cholesky(A; upper, check) -> L, info       A = L L^H, or U^H U
 *    qr(A; mode) -> Q, R                        mode: reduced, complete, r
 *    eigh(A; lower, vectors) -> L, Q            A = Q diag(L) Q^H, from a triangle of A
 *    det(A) -> det;  slogdet(A) -> sign, logabsdet
 *    solve_ex(A, B; check) -> X, info           as solve; a singular matrix is an error only if check
 */
#include "lapack.hpp"

namespace {

enum : int { REDUCED = 0, COMPLETE, ONLY_R };

/* ---- equations ------------------------------------------------------------------------------ */

template <class T>
struct solver {
    pt_call *call;
    int64_t n, k;
    bool always;                        /* divides by a pivot of zero as well */
    scratch<T> a, b;
    scratch<int> pivots;
    solver(pt_call *c, int64_t n_, int64_t k_, bool always_) : call(c), n(n_), k(k_), always(always_), a(n_ * n_), b(n_ * k_), pivots(n_) {}
    explicit operator bool() const { return a && b && pivots; }
    int run(int64_t number, const int64_t *offset) {
        int info = 0, in = int(n), ik = int(k);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        load_columns(b.data, call->in[1], stack(call->in[1]), offset[1]);
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
int solve(pt_call *call, bool always) {
    const int64_t n = call->in[0].sizes[call->in[0].ndim - 1], k = call->in[1].sizes[call->in[1].ndim - 1], batch = batch_of(call->in[0]);
    if (call->nout > 1)
        for (int64_t b = 0; b < batch; ++b) output<int32_t>(call, 1)[b] = 0;
    if (batch * n == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status = each_matrix<2>(call, n * n * (n + k), infos, [&] { return solver<T>(call, n, k, always); })) return status;
    if (always) keep_infos(call, infos, batch, 1);
    return report(call, infos, batch, "is singular: pivot %d of its elimination is zero");
}

template <class T>
struct triangular_solver {
    pt_call *call;
    int64_t n, k;
    bool upper, unit;
    scratch<T> a, b;
    triangular_solver(pt_call *c, int64_t n_, int64_t k_)
        : call(c), n(n_), k(k_), upper(c->params[0].i != 0), unit(c->params[1].i != 0), a(n_ * n_), b(n_ * k_) {}
    explicit operator bool() const { return a && b; }
    int run(int64_t number, const int64_t *offset) {
        int in = int(n), ik = int(k);
        char left = 'L', triangle = upper ? 'U' : 'L', as_is = 'N', diagonal = unit ? 'U' : 'N';
        T one = convert<T>(1);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        load_columns(b.data, call->in[1], stack(call->in[1]), offset[1]);
        routine<T>(PT_TRSM, &left, &triangle, &as_is, &diagonal, &in, &ik, &one, a.data, &in, b.data, &in);
        store_rows(output<T>(call) + number * n * k, b.data, n, k, n);
        return 0;
    }
};

template <class T>
int solve_triangular(pt_call *call) {
    const int64_t n = call->in[0].sizes[call->in[0].ndim - 1], k = call->in[1].sizes[call->in[1].ndim - 1], batch = batch_of(call->in[0]);
    if (batch * n * k == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status = each_matrix<2>(call, n * n * k, infos, [&] { return triangular_solver<T>(call, n, k); })) return status;
    return report(call, infos, batch, "failed (%d)");
}

/* ---- factors -------------------------------------------------------------------------------- */

template <class T>
struct cholesky_factor {
    pt_call *call;
    int64_t n;
    bool upper;
    scratch<T> a;
    cholesky_factor(pt_call *c, int64_t n_) : call(c), n(n_), upper(c->params[0].i != 0), a(n_ * n_) {}
    explicit operator bool() const { return bool(a); }
    int run(int64_t number, const int64_t *offset) {
        int info = 0, in = int(n);
        char triangle = upper ? 'U' : 'L';
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        routine<T>(PT_POTRF, &triangle, &in, a.data, &in, &info);
        T *to = output<T>(call) + number * n * n;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) to[i * n + j] = (upper ? j >= i : j <= i) ? a[j * n + i] : convert<T>(0);
        return info;
    }
};

template <class T>
int cholesky(pt_call *call) {
    const int64_t n = call->in[0].sizes[call->in[0].ndim - 1], batch = batch_of(call->in[0]);
    int32_t *info = output<int32_t>(call, 1);
    for (int64_t b = 0; b < batch; ++b) info[b] = 0;
    if (batch * n == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, n * n * n / 3, infos, [&] { return cholesky_factor<T>(call, n); })) return status;
    if (!call->params[1].i) keep_infos(call, infos, batch, 1);
    return report(call, infos, batch, "is not positive-definite: its leading minor of order %d is not positive");
}

template <class T>
struct qr_factor {
    pt_call *call;
    int64_t m, n, k, wide, work_size;
    int mode;
    scratch<T> a, tau, work;
    qr_factor(pt_call *c, int64_t m_, int64_t n_, int mode_, int64_t lwork)
        : call(c), m(m_), n(n_), k(min64(m_, n_)), wide(mode_ == COMPLETE ? m_ : k), work_size(lwork), mode(mode_), a(m_ * max64(n_, wide)),
          tau(max64(1, k)), work(lwork) {}
    explicit operator bool() const { return a && tau && work; }
    int run(int64_t number, const int64_t *offset) {
        int info = 0, im = int(m), in = int(n), ik = int(k), iw = int(wide), lwork = int(work_size);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        routine<T>(PT_GEQRF, &im, &in, a.data, &im, tau.data, work.data, &lwork, &info);
        T *r = output<T>(call, 1) + number * wide * n;
        for (int64_t i = 0; i < wide; ++i)
            for (int64_t j = 0; j < n; ++j) r[i * n + j] = j >= i ? a[j * m + i] : convert<T>(0);
        if (mode == ONLY_R || info) return info;
        routine<T>(PT_ORGQR, &im, &iw, &ik, a.data, &im, tau.data, work.data, &lwork, &info);
        store_rows(output<T>(call) + number * m * wide, a.data, m, wide, m);
        return info;
    }
};

template <class T>
int qr(pt_call *call) {
    const pt_view &x = call->in[0];
    const int64_t m = x.sizes[x.ndim - 2], n = x.sizes[x.ndim - 1], k = min64(m, n), batch = batch_of(x);
    const int mode = int(call->params[0].i);
    if (batch == 0 || m == 0) return PT_OK;
    if (n == 0) {
        if (mode == COMPLETE)
            for (int64_t i = 0; i < batch * m * m; ++i) output<T>(call)[i] = convert<T>(i % (m * m) % (m + 1) == 0 ? 1 : 0);
        return PT_OK;
    }
    T best = convert<T>(0), none = best;
    int info = 0, im = int(m), in = int(n), ik = int(k), iw = int(mode == COMPLETE ? m : k), query = -1;
    routine<T>(PT_GEQRF, &im, &in, &none, &im, &none, &best, &query, &info);
    int64_t lwork = workspace(best);
    if (mode != ONLY_R) {
        routine<T>(PT_ORGQR, &im, &iw, &ik, &none, &im, &none, &best, &query, &info);
        lwork = lwork < 0 ? lwork : max64(lwork, workspace(best));
    }
    if (lwork < 0) return too_large_for_lapack(call);
    scratch<int> infos(batch);
    const int status = each_matrix<1>(call, m * n * k, infos, [&] { return qr_factor<T>(call, m, n, mode, lwork); });
    return status ? status : report(call, infos, batch, "failed (%d)");
}

template <class T>
struct eigen_factor {
    pt_call *call;
    int64_t n, lwork, lrwork, liwork;
    bool lower, vectors;
    scratch<T> a, work;
    scratch<real_type<T>> rwork;
    scratch<int> iwork;
    eigen_factor(pt_call *c, int64_t n_, int64_t l, int64_t lr, int64_t li)
        : call(c), n(n_), lwork(l), lrwork(lr), liwork(li), lower(c->params[0].i != 0), vectors(c->params[1].i != 0), a(n_ * n_), work(l), rwork(lr),
          iwork(li) {}
    explicit operator bool() const { return a && work && rwork && iwork; }
    int syevd(T *matrix, real_type<T> *values) {
        int info = 0, in = int(n), il = int(lwork), ilr = int(lrwork), ili = int(liwork);
        char job = vectors ? 'V' : 'N', triangle = lower ? 'L' : 'U';
        if constexpr (is_complex<T>)
            routine<T>(PT_SYEVD, &job, &triangle, &in, matrix, &in, values, work.data, &il, rwork.data, &ilr, iwork.data, &ili, &info);
        else routine<T>(PT_SYEVD, &job, &triangle, &in, matrix, &in, values, work.data, &il, iwork.data, &ili, &info);
        return info;
    }
    int run(int64_t number, const int64_t *offset) {
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        if (!all_finite(a.data, n * n)) return NOT_FINITE;
        const int info = syevd(a.data, output<real_type<T>>(call) + number * n);
        if (vectors) store_rows(output<T>(call, 1) + number * n * n, a.data, n, n, n);
        return info;
    }
};

template <class T>
int eigh(pt_call *call) {
    const int64_t n = call->in[0].sizes[call->in[0].ndim - 1], batch = batch_of(call->in[0]);
    if (batch * n == 0) return PT_OK;
    /* the sizes that LAPACK documents for the divide and conquer of both kinds */
    const double most = 1.0 + 6.0 * double(n) + 2.0 * double(n) * double(n) + 64.0 * double(n);
    if (!(most < INT_MAX)) return too_large_for_lapack(call);
    const int64_t lwork = int64_t(most), lrwork = is_complex<T> ? 1 + 5 * n + 2 * n * n : 0, liwork = 3 + 5 * n;
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, 4 * n * n * n, infos, [&] { return eigen_factor<T>(call, n, lwork, lrwork, liwork); })) return status;
    return report(call, infos, batch, "has eigenvalues that did not converge (error code %d)");
}

/* ---- determinants --------------------------------------------------------------------------- */

/* getrf of a matrix so small that LAPACK's calls would take most of the time; 1-based pivots, columns in order */
template <class T>
inline void eliminate(T *a, int64_t n, int *pivots) {
    for (int64_t k = 0; k < n; ++k) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; ++i)
            if (pt::abs(a[k * n + i]) > pt::abs(a[k * n + best])) best = i;
        pivots[k] = int(best + 1);
        if (pt::abs(a[k * n + best]) == 0) continue;
        if (best != k)
            for (int64_t j = 0; j < n; ++j) std::swap(a[j * n + k], a[j * n + best]);
        for (int64_t i = k + 1; i < n; ++i) a[k * n + i] = a[k * n + i] / a[k * n + k];
        for (int64_t j = k + 1; j < n; ++j)
            for (int64_t i = k + 1; i < n; ++i) a[j * n + i] = a[j * n + i] - a[k * n + i] * a[j * n + k];
    }
}

template <class T>
struct eliminator {
    pt_call *call;
    int64_t n;
    bool logarithm;
    scratch<T> a;
    scratch<int> pivots;
    eliminator(pt_call *c, int64_t n_, bool l) : call(c), n(n_), logarithm(l), a(n_ * n_), pivots(n_) {}
    explicit operator bool() const { return a && pivots; }
    int run(int64_t number, const int64_t *offset) {
        int info = 0, in = int(n);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        if (n <= 8) eliminate(a.data, n, pivots.data);
        else routine<T>(PT_GETRF, &in, &in, a.data, &in, pivots.data, &info);
        if (info < 0) return info;
        T product = convert<T>(1);
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
            T d = a[i * (n + 1)];
            if (pivots[i] != int(i + 1)) product = convert<T>(0) - product;
            if (logarithm) {
                const double size = double(pt::abs(d));
                sum += log(size);
                if (size == 0) d = convert<T>(0);
                else if constexpr (is_complex<T>) d = {real_type<T>(double(d.re) / size), real_type<T>(double(d.im) / size)};
                else d = T(double(d) / size);
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
    const int64_t n = call->in[0].sizes[call->in[0].ndim - 1], batch = batch_of(call->in[0]);
    scratch<int> infos(batch);
    if (batch == 0) return PT_OK;
    if (int status = each_matrix<1>(call, n * n * n / 3, infos, [&] { return eliminator<T>(call, n, logarithm); })) return status;
    return report(call, infos, batch, "failed (%d)");
}

template <class F>
int with_type(pt_call *call, bool square, F &&f) {
    const pt_view &x = call->in[0];
    if (x.ndim < 2) return fail(call, PT_RUNTIME_ERROR, "expected a matrix or a batch of them, got %d dimensions", x.ndim);
    if (square && x.sizes[x.ndim - 1] != x.sizes[x.ndim - 2]) return fail(call, PT_RUNTIME_ERROR, "expected square matrices");
    if (call->nin > 1) {
        const pt_view &b = call->in[1];
        bool fits = b.ndim == x.ndim && b.dtype == x.dtype && b.sizes[b.ndim - 2] == x.sizes[x.ndim - 1];
        for (int d = 0; fits && d < x.ndim - 2; ++d) fits = b.sizes[d] == x.sizes[d];
        if (!fits) return fail(call, PT_RUNTIME_ERROR, "expected two batches of matrices of one dtype that fit");
        if (too_large(b.sizes[b.ndim - 1])) return fail(call, PT_RUNTIME_ERROR, "too many columns for LAPACK");
    }
    return with_lapack(call, f);
}

int solve_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return solve<PT_TYPE(tag)>(call, false); });
}
int solve_ex_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return solve<PT_TYPE(tag)>(call, !call->params[0].i); });
}
int solve_triangular_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return solve_triangular<PT_TYPE(tag)>(call); });
}
int cholesky_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return cholesky<PT_TYPE(tag)>(call); });
}
int qr_kernel(pt_call *call) {
    return with_type(call, false, [&](auto tag) { return qr<PT_TYPE(tag)>(call); });
}
int eigh_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return eigh<PT_TYPE(tag)>(call); });
}
int det_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return determinant<PT_TYPE(tag)>(call, false); });
}
int slogdet_kernel(pt_call *call) {
    return with_type(call, true, [&](auto tag) { return determinant<PT_TYPE(tag)>(call, true); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_lapack_, PT_ISA)[] = {
    {"solve", solve_kernel}, {"solve_triangular", solve_triangular_kernel}, {"cholesky", cholesky_kernel}, {"qr", qr_kernel},
    {"eigh", eigh_kernel},   {"det", det_kernel},                           {"slogdet", slogdet_kernel},   {"solve_ex", solve_ex_kernel},
    {nullptr, nullptr},
};
