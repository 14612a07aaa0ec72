/* Singular value decomposition of a batch of matrices by LAPACK's gesdd (divide and conquer).
 *
 *    _linalg_svd(A; full_matrices, compute_uv) -> U, S, Vh      A = U diag(S) Vh
 *
 * A row-major matrix is its transpose to LAPACK, and A^T = Vh^T diag(S) U^T: asked for the
 * decomposition of the transpose, gesdd writes Vh and U row-major where they belong. It destroys its
 * input, so each matrix is copied, and checked for NaN and inf on the way, which LAPACK
 * libraries do not survive alike.
 *
 * LAPACK runs on one BLAS thread; the batch is spread over the pool. The first failing matrix
 * of the batch is reported, whichever thread met it.
 */
#include "blas.hpp"
#include "common.hpp"

namespace {

enum : int { NOT_FINITE = -1000, NO_MEMORY = -1001 };

template <class T> auto gesdd();
template <> auto gesdd<float>() { return pt_blas.sgesdd; }
template <> auto gesdd<double>() { return pt_blas.dgesdd; }
template <> auto gesdd<complex64>() { return pt_blas.cgesdd; }
template <> auto gesdd<complex128>() { return pt_blas.zgesdd; }

/* One decomposition of an m x n row-major matrix; lwork = -1 asks for the size of the workspace. */
template <class T>
inline int decompose(char job, int m, int n, T *a, real_type<T> *s, T *u, T *vh, T *work, int lwork, real_type<T> *rwork, int *iwork) {
    const int k = m < n ? m : n;
    int rows = n, columns = m, lda = n, info = 0;
    int ld_vh = n, ld_u = job == 'A' ? m : k;
    if constexpr (is_complex<T>) gesdd<T>()(&job, &rows, &columns, a, &lda, s, vh, &ld_vh, u, &ld_u, work, &lwork, rwork, iwork, &info);
    else gesdd<T>()(&job, &rows, &columns, a, &lda, s, vh, &ld_vh, u, &ld_u, work, &lwork, iwork, &info);
    return info;
}

template <class T>
inline bool finite_row(const T *x, int64_t n) {
    real_type<T> sum = 0;               /* x - x is 0 or NaN */
    for (int64_t i = 0; i < n; ++i) {
        if constexpr (is_complex<T>) sum += (x[i].re - x[i].re) + (x[i].im - x[i].im);
        else sum += x[i] - x[i];
    }
    return sum == 0;
}

template <class T>
inline void fill_identity(T *out, int64_t batch, int64_t n) {
    for (int64_t i = 0; i < batch * n * n; ++i) out[i] = convert<T>(i % (n * n) % (n + 1) == 0 ? 1 : 0);
}

template <class T>
int svd(pt_call *call, bool full, bool vectors) {
    using R = real_type<T>;
    const pt_view &x = call->in[0];
    const int64_t m = x.sizes[x.ndim - 2], n = x.sizes[x.ndim - 1], k = min64(m, n), longest = max64(m, n);
    space<1> outer;
    for (int d = 0; d < x.ndim - 2; ++d) outer.push(x.sizes[d], {x.strides[d]});
    const int64_t batch = outer.numel();
    T *u = vectors ? output<T>(call, 0) : nullptr, *vh = vectors ? output<T>(call, 2) : nullptr;
    R *s = output<R>(call, 1);
    const int64_t u_columns = full ? m : k, vh_rows = full ? n : k;
    if (k == 0) {                       /* the factors of an empty matrix are any unitary ones */
        if (vectors && full) {
            fill_identity(u, batch, m);
            fill_identity(vh, batch, n);
        }
        return PT_OK;
    }
    if (batch == 0) return PT_OK;
    if (!gesdd<T>()) return PT_NEED_BLAS;
    if (longest > INT_MAX / 16)
        return fail(call, PT_RUNTIME_ERROR, "sizes must be below %d, got %lld and %lld", INT_MAX / 16, (long long)m, (long long)n);
    const char job = !vectors ? 'N' : full ? 'A' : 'S';
    T best = convert<T>(0), none_a = best;
    R none_s = 0, none_r = 0;
    int none_i = 0;
    decompose<T>(job, int(m), int(n), &none_a, &none_s, &none_a, &none_a, &best, -1, &none_r, &none_i);
    /* a float cannot hold every size: LAPACK rounds it down */
    const double wanted = double(convert<real_type<T>>(best)) * (1 + 1e-6) + 16;
    if (!(wanted < INT_MAX)) return fail(call, PT_RUNTIME_ERROR, "a %lldx%lld matrix is too large for LAPACK", (long long)m, (long long)n);
    const int64_t lwork = int64_t(wanted);
    const int64_t lrwork = !is_complex<T> ? 0 : !vectors ? 7 * k : max64(5 * k * k + 7 * k, 2 * longest * k + 2 * k * k + k);

    scratch<int> infos(batch);
    if (!infos) return no_memory(call, batch * int64_t(sizeof(int)));
    one_blas_thread guard;
    auto body = [&](int64_t begin, int64_t end) {
        scratch<T> a(m * n), work(lwork);
        scratch<R> rwork(lrwork);
        scratch<int> iwork(8 * k);
        cursor<1> at(outer, begin);
        for (int64_t b = begin; b < end; ++b, at.next()) {
            if (!a || !work || !rwork || !iwork) {
                infos[b] = NO_MEMORY;
                continue;
            }
            const T *from = input<T>(call) + at.offset[0];
            bool finite = true;
            for (int64_t i = 0; i < m; ++i) {
                load(a.data + i * n, from + i * x.strides[x.ndim - 2], n == 1 ? 1 : x.strides[x.ndim - 1], n);
                finite = finite && finite_row(a.data + i * n, n);
            }
            infos[b] = !finite ? int(NOT_FINITE)
                               : decompose<T>(job, int(m), int(n), a.data, s + b * k, vectors ? u + b * m * u_columns : &a[0],
                                              vectors ? vh + b * vh_rows * n : &a[0], work.data, int(lwork), rwork.data, iwork.data);
        }
    };
    const int64_t cost = m * n * k;     /* of one matrix, about a nanosecond a unit */
    if (pt_blas.set_threads) parallel_for(batch, max64(1, 16384 / max64(1, cost)), [&](int64_t begin, int64_t end) { body(begin, end); });
    else body(0, batch);

    for (int64_t b = 0; b < batch; ++b) {
        if (infos[b] == 0) continue;
        char which[48] = "input";
        if (x.ndim > 2) snprintf(which, sizeof which, "matrix %lld of the batch", (long long)b);
        if (infos[b] == NO_MEMORY) return no_memory(call, int64_t(sizeof(T)) * (m * n + lwork));
        if (infos[b] == NOT_FINITE) return fail(call, PT_LINALG_ERROR, "%s contains values that are not finite", which);
        if (infos[b] > 0)
            return fail(call, PT_LINALG_ERROR, "the decomposition of %s did not converge (error code %d)", which, infos[b]);
        return fail(call, PT_RUNTIME_ERROR, "LAPACK refused argument %d", -infos[b]);
    }
    return PT_OK;
}

int svd_kernel(pt_call *call) {
    const pt_view &x = call->in[0];
    if (x.ndim < 2) return fail(call, PT_RUNTIME_ERROR, "expected a matrix or a batch of them, got %d dimensions", x.ndim);
    const bool full = call->params[0].i != 0, vectors = call->params[1].i != 0;
    switch (x.dtype) {
    case PT_FLOAT32: return svd<float>(call, full, vectors);
    case PT_FLOAT64: return svd<double>(call, full, vectors);
    case PT_COMPLEX64: return svd<complex64>(call, full, vectors);
    case PT_COMPLEX128: return svd<complex128>(call, full, vectors);
    default: return bad_dtype(call, x.dtype);
    }
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_svd_, PT_ISA)[] = {
    {"svd", svd_kernel},
    {nullptr, nullptr},
};
