/* Singular value decomposition of a batch of matrices by LAPACK's gesdd (divide and conquer).
 *
 *    _linalg_svd(A; full_matrices, compute_uv) -> U, S, Vh      A = U diag(S) Vh
 *
 * LAPACK sees a row-major matrix as its transpose, and A^T = Vh^T diag(S) U^T: asked to decompose
 * the transpose, gesdd writes Vh and U row-major where they belong. Matrices are checked for NaN
 * and inf before, because LAPACK libraries differ in how they handle them.
 */
#include "lapack.hpp"

namespace {

/* The SVD of an m x n row-major matrix; lwork = -1 asks for the size of the workspace. */
template <class T>
inline int gesdd(char job, int64_t m, int64_t n, T *a, real_type<T> *s, T *u, T *vh, T *work,
                 int64_t lwork, real_type<T> *rwork, int *iwork) {
    int rows = int(n), columns = int(m), ld_u = int(job == 'A' ? m : min64(m, n)),
        size = int(lwork), info = 0;
    if constexpr (is_complex<T>)
        routine<T>(PT_GESDD, &job, &rows, &columns, a, &rows, s, vh, &rows, u, &ld_u, work, &size,
                   rwork, iwork, &info);
    else
        routine<T>(PT_GESDD, &job, &rows, &columns, a, &rows, s, vh, &rows, u, &ld_u, work, &size,
                   iwork, &info);
    return info;
}

template <class T>
struct svd_factor {
    using R = real_type<T>;
    pt_call *call;
    char job;
    int64_t m, n, k, lwork;
    scratch<T> a, work;
    scratch<R> rwork;
    scratch<int> iwork;
    svd_factor(pt_call *c, char j, int64_t m_, int64_t n_, int64_t l)
        : call(c), job(j), m(m_), n(n_), k(min64(m_, n_)), lwork(l), a(m_ * n_), work(l),
          rwork(real_work(j, m_, n_)), iwork(8 * k) {}
    explicit operator bool() const { return a && work && rwork && iwork; }
    static int64_t real_work(char job, int64_t m, int64_t n) {
        const int64_t k = min64(m, n);
        return !is_complex<T> ? 0
               : job == 'N'   ? 7 * k
                              : max64(5 * k * k + 7 * k, 2 * max64(m, n) * k + 2 * k * k + k);
    }
    int run(int64_t number, const int64_t *offset) {
        stack turned(call->in[0]);
        std::swap(turned.rows, turned.columns);
        std::swap(turned.down, turned.across);
        load_columns(a.data, call->in[0], turned, offset[0]);
        if (!all_finite(a.data, m * n)) return NOT_FINITE;
        T *u = a.data, *vh = a.data;            /* not used if there are no vectors */
        if (job != 'N') {
            u = output<T>(call) + number * m * (job == 'A' ? m : k);
            vh = output<T>(call, 2) + number * n * (job == 'A' ? n : k);
        }
        return gesdd<T>(job, m, n, a.data, output<R>(call, 1) + number * k, u, vh, work.data, lwork,
                        rwork.data, iwork.data);
    }
};

template <class T>
inline void fill_identity(T *out, int64_t batch, int64_t n) {
    for (int64_t i = 0; i < batch * n * n; ++i)
        out[i] = convert<T>(i % (n * n) % (n + 1) == 0 ? 1 : 0);
}

template <class T>
int svd(pt_call *call) {
    const pt_view &x = call->in[0];
    const int64_t m = x.sizes[x.ndim - 2], n = x.sizes[x.ndim - 1], k = min64(m, n),
                  batch = batch_of(x);
    const bool full = call->params[0].i != 0, vectors = call->params[1].i != 0;
    if (k == 0 && vectors && full) { /* an empty matrix: its factors may be any unitary ones */
        fill_identity(output<T>(call), batch, m);
        fill_identity(output<T>(call, 2), batch, n);
    }
    if (k == 0 || batch == 0) return PT_OK;
    const char job = !vectors ? 'N' : full ? 'A' : 'S';
    T best = convert<T>(0), none = best;
    real_type<T> none_s = 0, none_r = 0;
    int none_i = 0;
    gesdd<T>(job, m, n, &none, &none_s, &none, &none, &best, -1, &none_r, &none_i);
    const int64_t lwork = workspace(best);
    if (lwork < 0) return too_large_for_lapack(call);
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, m * n * k, infos,
                                    [&] { return svd_factor<T>(call, job, m, n, lwork); }))
        return status;
    return report(call, infos, batch, NO_SINGULAR_VALUES);
}

int svd_kernel(pt_call *call) {
    return with_lapack(call, [&](auto tag) { return svd<PT_TYPE(tag)>(call); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_svd_, PT_ISA)[] = {
    {"svd", svd_kernel},
    {nullptr, nullptr},
};
