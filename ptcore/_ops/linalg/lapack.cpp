/* Orthogonal factors and eigenvalues of batches of matrices by LAPACK; elimination.cpp has
 * equations.
 *
 *    qr(A; mode) -> Q, R                        mode: reduced, complete, r
 *    eigh(A; lower, vectors) -> L, Q            A = Q diag(L) Q^H, from a triangle of A
 */
#include "lapack.hpp"

namespace {

enum : int { REDUCED = 0, COMPLETE, ONLY_R };

/* ---- factors -------------------------------------------------------------------------------- */

template <class T>
struct qr_factor {
    pt_call *call;
    int64_t m, n, k, wide, work_size;
    int mode;
    scratch<T> a, tau, work;
    qr_factor(pt_call *c, int64_t m_, int64_t n_, int mode_, int64_t lwork)
        : call(c), m(m_), n(n_), k(min64(m_, n_)), wide(mode_ == COMPLETE ? m_ : k),
          work_size(lwork), mode(mode_), a(m_ * max64(n_, wide)), tau(max64(1, k)), work(lwork) {}
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
    const int64_t m = x.sizes[x.ndim - 2], n = x.sizes[x.ndim - 1], k = min64(m, n),
                  batch = batch_of(x);
    const int mode = int(call->params[0].i);
    if (batch == 0 || m == 0) return PT_OK;
    if (n == 0) {
        if (mode == COMPLETE)
            for (int64_t i = 0; i < batch * m * m; ++i)
                output<T>(call)[i] = convert<T>(i % (m * m) % (m + 1) == 0 ? 1 : 0);
        return PT_OK;
    }
    T best = convert<T>(0), none = best;
    int info = 0, im = int(m), in = int(n), ik = int(k), iw = int(mode == COMPLETE ? m : k),
        query = -1;
    routine<T>(PT_GEQRF, &im, &in, &none, &im, &none, &best, &query, &info);
    int64_t lwork = workspace(best);
    if (mode != ONLY_R) {
        routine<T>(PT_ORGQR, &im, &iw, &ik, &none, &im, &none, &best, &query, &info);
        lwork = lwork < 0 ? lwork : max64(lwork, workspace(best));
    }
    if (lwork < 0) return too_large_for_lapack(call);
    scratch<int> infos(batch);
    const int status = each_matrix<1>(call, m * n * k, infos,
                                      [&] { return qr_factor<T>(call, m, n, mode, lwork); });
    return status ? status : report(call, infos, batch, OTHERWISE);
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
        : call(c), n(n_), lwork(l), lrwork(lr), liwork(li), lower(c->params[0].i != 0),
          vectors(c->params[1].i != 0), a(n_ * n_), work(l), rwork(lr), iwork(li) {}
    explicit operator bool() const { return a && work && rwork && iwork; }
    int syevd(T *matrix, real_type<T> *values) {
        int info = 0, in = int(n), il = int(lwork), ilr = int(lrwork), ili = int(liwork);
        char job = vectors ? 'V' : 'N', triangle = lower ? 'L' : 'U';
        if constexpr (is_complex<T>)
            routine<T>(PT_SYEVD, &job, &triangle, &in, matrix, &in, values, work.data, &il,
                       rwork.data, &ilr, iwork.data, &ili, &info);
        else
            routine<T>(PT_SYEVD, &job, &triangle, &in, matrix, &in, values, work.data, &il,
                       iwork.data, &ili, &info);
        return info;
    }
    int run(int64_t number, const int64_t *offset) {
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        /* elements of the other triangle are not read, and may be anything */
        for (int64_t j = 0; j < n; ++j)
            if (!all_finite(a.data + j * n + (lower ? j : 0), lower ? n - j : j + 1))
                return NOT_FINITE;
        const int info = syevd(a.data, output<real_type<T>>(call) + number * n);
        if (vectors) store_rows(output<T>(call, 1) + number * n * n, a.data, n, n, n);
        return info;
    }
};

template <class T>
int eigh(pt_call *call) {
    const int64_t n = call->in[0].sizes[call->in[0].ndim - 1], batch = batch_of(call->in[0]);
    if (batch * n == 0) return PT_OK;
    /* the workspace sizes that LAPACK documents for divide and conquer, real and complex */
    const double most = 1.0 + 6.0 * double(n) + 2.0 * double(n) * double(n) + 64.0 * double(n);
    if (!(most < INT_MAX)) return too_large_for_lapack(call);
    const int64_t lwork = int64_t(most), lrwork = is_complex<T> ? 1 + 5 * n + 2 * n * n : 0,
                  liwork = 3 + 5 * n;
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, 4 * n * n * n, infos, [&] {
            return eigen_factor<T>(call, n, lwork, lrwork, liwork);
        }))
        return status;
    return report(call, infos, batch, NO_EIGENVALUES);
}

int qr_kernel(pt_call *call) {
    return with_lapack(call, [&](auto tag) { return qr<PT_TYPE(tag)>(call); });
}
int eigh_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return eigh<PT_TYPE(tag)>(call); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_lapack_, PT_ISA)[] = {
    {"qr", qr_kernel},
    {"eigh", eigh_kernel},
    {nullptr, nullptr},
};
