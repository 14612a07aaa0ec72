/* Further factors and functions of batches of matrices by LAPACK; lapack.cpp and elimination.cpp
 * have the common ones.
 *
 *    eig(A; vectors) -> L, V                         A V = V diag(L), complex
 *    pivot_order(pivots; rows) -> order              P[order[i], i] = 1
 *    ldl(A; hermitian, check) -> LD, pivots, info    A = L D L^H, or L D L^T, by the lower triangle
 *    ldl_solve(LD, pivots, B; hermitian) -> X
 *    geqrf(A) -> a, tau;  householder(A, tau) -> Q   a QR factorisation's reflectors; their product
 *    matrix_exp(A) -> exp(A)                         by scaling, Taylor's polynomial and squaring
 *
 * Pivots may come from the user. They are checked before LAPACK gets them, as LAPACK would
 * write to wherever they point.
 */
#include "lapack.hpp"

#include "ptcore/exponential.h"

namespace {

template <class T> using complex_of =
    std::conditional_t<is_same<real_type<T>, float>, complex64, complex128>;

inline int64_t last(const pt_view &v, int back = 1) { return v.sizes[v.ndim - back]; }

PT_NOINLINE void no_infos(pt_call *call, int64_t batch) {
    for (int64_t b = 0; b < batch; ++b) output<int32_t>(call, 2)[b] = 0;
}

/* ---- eigenvalues ---------------------------------------------------------------------------- */

template <class T>
struct general_eigen {
    pt_call *call;
    int64_t n, lwork;
    bool vectors;
    scratch<T> a, v, work, values;  /* values: real and imaginary parts of a real matrix's values */
    scratch<real_type<T>> rwork;
    general_eigen(pt_call *c, int64_t n_, int64_t l)
        : call(c), n(n_), lwork(l), vectors(c->params[0].i != 0), a(n_ * n_),
          v(vectors ? n_ * n_ : 1), work(l), values(2 * n_), rwork(2 * n_) {}
    explicit operator bool() const { return a && v && work && values && rwork; }
    int run(int64_t number, const int64_t *offset) {
        using C = complex_of<T>;
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        if (!all_finite(a.data, n * n)) return NOT_FINITE;
        int info = 0, in = int(n), il = int(lwork), one = 1;
        char none = 'N', job = vectors ? 'V' : 'N';
        T unused;
        C *l = output<C>(call) + number * n,
          *to = vectors ? output<C>(call, 1) + number * n * n : nullptr;
        if constexpr (is_complex<T>) {
            routine<T>(PT_GEEV, &none, &job, &in, a.data, &in, l, &unused, &one, v.data, &in,
                       work.data, &il, rwork.data, &info);
            if (vectors && !info) store_rows(to, v.data, n, n, n);
        }
        else {
            T *re = values.data, *im = re + n;
            routine<T>(PT_GEEV, &none, &job, &in, a.data, &in, re, im, &unused, &one, v.data, &in,
                       work.data, &il, &info);
            if (info) return info;
            for (int64_t j = 0; j < n; ++j) l[j] = {re[j], im[j]};
            /* a conjugate pair of vectors is two columns of v: the real and the imaginary part */
            for (int64_t j = 0; vectors && j < n; ++j) {
                const T sign = im[j] < 0 ? T(-1) : T(im[j] > 0);
                const T *r = v.data + (sign < 0 ? j - 1 : j) * n, *i = r + (sign == 0 ? 0 : n);
                for (int64_t d = 0; d < n; ++d)
                    to[d * n + j] = {r[d], sign == 0 ? T(0) : sign * i[d]};
            }
        }
        return info;
    }
};

template <class T>
int eig(pt_call *call) {
    const int64_t n = last(call->in[0]), batch = batch_of(call->in[0]);
    if (batch * n == 0) return PT_OK;
    T best = convert<T>(0), none = best;
    real_type<T> real = 0;
    int info = 0, in = int(n), query = -1;
    char job = call->params[0].i ? 'V' : 'N', left = 'N';
    if constexpr (is_complex<T>)
        routine<T>(PT_GEEV, &left, &job, &in, &none, &in, &none, &none, &in, &none, &in, &best,
                   &query, &real, &info);
    else
        routine<T>(PT_GEEV, &left, &job, &in, &none, &in, &none, &none, &none, &in, &none, &in,
                   &best, &query, &info);
    const int64_t lwork = workspace(best);
    if (lwork < 0) return too_large_for_lapack(call);
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, 20 * n * n * n, infos,
                                    [&] { return general_eigen<T>(call, n, lwork); }))
        return status;
    return report(call, infos, batch, NO_EIGENVALUES);
}

/* ---- pivots ---------------------------------------------------------------------------------- */

int pivot_order_kernel(pt_call *call) {
    const pt_view &p = call->in[0];
    const int64_t k = last(p), rows = call->params[0].i;
    if (p.dtype != PT_INT32 || !p.contiguous || rows < k)
        return fail(call, PT_RUNTIME_ERROR, "expected contiguous int32 pivots, at most one a row");
    const int64_t batch = k ? p.numel / k : (rows ? call->out[0].numel / rows : 0);
    int64_t *out = output<int64_t>(call);
    for (int64_t b = 0; b < batch; ++b, out += rows) {
        for (int64_t i = 0; i < rows; ++i) out[i] = i;
        for (int64_t i = 0; i < k; ++i) {
            const int64_t with = reinterpret_cast<const int32_t *>(p.data)[b * k + i] - 1;
            if (with < 0 || with >= rows)
                return fail(call, PT_RUNTIME_ERROR, "pivots must be in [1, %lld], got %lld",
                            (long long)rows, (long long)with + 1);
            const int64_t t = out[i];
            out[i] = out[with];
            out[with] = t;
        }
    }
    return PT_OK;
}

template <class T>
struct ldl_factor {
    pt_call *call;
    int64_t n, lwork;
    bool hermitian;
    scratch<T> a, work;
    ldl_factor(pt_call *c, int64_t n_, int64_t l)
        : call(c), n(n_), lwork(l), hermitian(c->params[0].i != 0), a(n_ * n_), work(l) {}
    explicit operator bool() const { return a && work; }
    int run(int64_t number, const int64_t *offset) {
        int info = 0, in = int(n), il = int(lwork);
        char lower = 'L';
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        routine<T>(hermitian ? PT_HETRF : PT_SYTRF, &lower, &in, a.data, &in,
                   output<int32_t>(call, 1) + number * n, work.data, &il, &info);
        T *to = output<T>(call) + number * n * n;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) to[i * n + j] = j <= i ? a[j * n + i] : convert<T>(0);
        return info;
    }
};

template <class T>
int ldl(pt_call *call) {
    const int64_t n = last(call->in[0]), batch = batch_of(call->in[0]), lwork = 64 * n;
    no_infos(call, batch);
    if (batch * n == 0) return PT_OK;
    if (lwork > INT_MAX) return too_large_for_lapack(call);
    scratch<int> infos(batch);
    if (int status = each_matrix<1>(call, n * n * n / 3, infos,
                                    [&] { return ldl_factor<T>(call, n, lwork); }))
        return status;
    if (!call->params[1].i) keep_infos(call, infos, batch, 2);
    return report(call, infos, batch, SINGULAR_D);
}

template <class T>
struct ldl_solver {
    enum : int { BAD_PIVOTS = -2000 };
    pt_call *call;
    int64_t n, k;
    bool hermitian;
    scratch<T> a, b;
    scratch<int> pivots;
    ldl_solver(pt_call *c, int64_t n_, int64_t k_)
        : call(c), n(n_), k(k_), hermitian(c->params[0].i != 0), a(n_ * n_), b(n_ * k_),
          pivots(n_) {}
    explicit operator bool() const { return a && b && pivots; }
    /* a negative pivot belongs to a block of two rows and occurs twice */
    bool sound() const {
        for (int64_t i = 0; i < n; ++i) {
            const int64_t p = pivots[i];
            if (p == 0 || p > n || p < -n) return false;
            if (p > 0) continue;
            if (++i == n || pivots[i] >= 0 || pivots[i] < -n) return false;
        }
        return true;
    }
    int run(int64_t number, const int64_t *offset) {
        const pt_view &p = call->in[1];
        for (int64_t i = 0; i < n; ++i)
            pivots[i] =
                reinterpret_cast<const int32_t *>(p.data)[offset[1] + i * p.strides[p.ndim - 1]];
        if (!sound()) return BAD_PIVOTS;
        int info = 0, in = int(n), ik = int(k);
        char lower = 'L';
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        load_columns(b.data, call->in[2], stack(call->in[2]), offset[2]);
        routine<T>(hermitian ? PT_HETRS : PT_SYTRS, &lower, &in, &ik, a.data, &in, pivots.data,
                   b.data, &in, &info);
        store_rows(output<T>(call) + number * n * k, b.data, n, k, n);
        return info;
    }
};

template <class T>
int ldl_solve(pt_call *call) {
    const int64_t n = last(call->in[0]), k = last(call->in[2]), batch = batch_of(call->in[0]);
    if (call->in[1].dtype != PT_INT32 || call->in[2].dtype != call->in[0].dtype)
        return fail(call, PT_RUNTIME_ERROR, "expected int32 pivots and one dtype");
    if (batch * n * k == 0) return PT_OK;
    if (too_large(k))
        return fail(call, PT_RUNTIME_ERROR, "B must have fewer than %d columns, got %lld",
                    INT_MAX / 16, (long long)k);
    scratch<int> infos(batch);
    if (int status =
            each_matrix<3>(call, n * n * k, infos, [&] { return ldl_solver<T>(call, n, k); }))
        return status;
    for (int64_t b = 0; b < batch; ++b)
        if (infos[b] == ldl_solver<T>::BAD_PIVOTS)
            return fail(call, PT_RUNTIME_ERROR,
                        "pivots must be those of an LDL factorisation of order %lld", (long long)n);
    return report(call, infos, batch, OTHERWISE);
}

/* ---- reflectors ----------------------------------------------------------------------------- */

template <class T>
struct reflectors {
    pt_call *call;
    int64_t m, n, k, lwork;
    bool product;
    scratch<T> a, tau, work;
    reflectors(pt_call *c, int64_t m_, int64_t n_, int64_t k_, int64_t l, bool p)
        : call(c), m(m_), n(n_), k(k_), lwork(l), product(p), a(m_ * n_), tau(max64(1, k_)),
          work(l) {}
    explicit operator bool() const { return a && tau && work; }
    int run(int64_t number, const int64_t *offset) {
        int info = 0, im = int(m), in = int(n), ik = int(k), il = int(lwork);
        load_columns(a.data, call->in[0], stack(call->in[0]), offset[0]);
        if (product) {
            const pt_view &t = call->in[1];
            load(tau.data, reinterpret_cast<const T *>(t.data) + offset[1],
                 k == 1 ? 1 : t.strides[t.ndim - 1], k);
            routine<T>(PT_ORGQR, &im, &in, &ik, a.data, &im, tau.data, work.data, &il, &info);
        } else
            routine<T>(PT_GEQRF, &im, &in, a.data, &im, output<T>(call, 1) + number * k, work.data,
                       &il, &info);
        store_rows(output<T>(call) + number * m * n, a.data, m, n, m);
        return info;
    }
};

template <class T>
PT_NOINLINE int reflect(pt_call *call, bool product) {
    const pt_view &x = call->in[0];
    const int64_t m = last(x, 2), n = last(x), k = product ? last(call->in[1]) : min64(m, n),
                  batch = batch_of(x);
    if (product &&
        (k > n || n > m || call->in[1].dtype != x.dtype || call->in[1].ndim != x.ndim - 1))
        return fail(
            call, PT_RUNTIME_ERROR,
            "expected one dtype and at most as many reflectors as columns, and columns as rows");
    if (batch * m * n == 0) return PT_OK;
    T best = convert<T>(0), none = best;
    int info = 0, im = int(m), in = int(n), ik = int(k), query = -1;
    if (product) routine<T>(PT_ORGQR, &im, &in, &ik, &none, &im, &none, &best, &query, &info);
    else routine<T>(PT_GEQRF, &im, &in, &none, &im, &none, &best, &query, &info);
    const int64_t lwork = workspace(best);
    if (lwork < 0) return too_large_for_lapack(call);
    scratch<int> infos(batch);
    const auto make = [&] { return reflectors<T>(call, m, n, k, lwork, product); };
    const int status = product ? each_matrix<2>(call, m * n * k, infos, make)
                               : each_matrix<1>(call, m * n * k, infos, make);
    return status ? status : report(call, infos, batch, OTHERWISE);
}

/* ---- exponentials --------------------------------------------------------------------------- */

/* Taylor's polynomial of degree 18 by five products (Bader, Blanes and Casas, 2019). Without a
 * solver it is exact where the series ends: squarings raise a rounding of the identity to 2**s. */
template <class T>
struct exponential {
    pt_call *call;
    int64_t n, size;
    scratch<T> memory;
    T *a, *a2, *a3, *a6, *u, *v, *w;
    exponential(pt_call *c, int64_t n_) : call(c), n(n_), size(n_ * n_), memory(7 * n_ * n_) {
        T **parts[] = {&a, &a2, &a3, &a6, &u, &v, &w};
        for (int i = 0; i < 7; ++i) *parts[i] = memory ? memory.data + i * size : nullptr;
    }
    explicit operator bool() const { return bool(memory); }
    void multiply(T *to, T *x, T *y) const {
        const pt_gemm gemm[] = {pt_blas.sgemm, pt_blas.dgemm, pt_blas.cgemm, pt_blas.zgemm};
        int in = int(n);
        char as_is = 'N';
        T one = convert<T>(1), zero = convert<T>(0);
        gemm[TYPE<T>](&as_is, &as_is, &in, &in, &in, &one, x, &in, y, &in, &zero, to, &in);
    }
    /* to = c1 a + c2 a2 + c3 a3 + c6 a6; if `add`, it is added to `to` */
    void combine(T *to, bool add, double c1, double c2, double c3, double c6) const {
        using R = real_type<T>;
        const R one = R(c1), two = R(c2), three = R(c3), six = R(c6);
        for (int64_t i = 0; i < size; ++i) {
            const T sum = scaled(a[i], one) + scaled(a2[i], two) + scaled(a3[i], three) +
                          scaled(a6[i], six);
            to[i] = add ? to[i] + sum : sum;
        }
    }
    static T scaled(T x, real_type<T> by) {
        if constexpr (is_complex<T>) return {x.re * by, x.im * by};
        else return x * by;
    }
    int run(int64_t number, const int64_t *offset) {
        using R = real_type<T>;
        T *to = output<T>(call) + number * size;
        load_columns(a, call->in[0], stack(call->in[0]), offset[0]);
        double norm = 0;
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += double(pt::abs(a[j * n + i]));
            norm = sum > norm || sum != sum ? sum : norm;
        }
        if (!(norm < HUGE_VAL)) {       /* not finite, or too large to be scaled */
            for (int64_t i = 0; i < size; ++i) to[i] = convert<T>(R(NAN));
            return 0;
        }
        int squarings = 0; /* limit: the norm up to which the polynomial is exact to rounding */
        for (const double limit = sizeof(R) == 8 ? 1.090863719290036 : 3.010066362817634;
             norm > limit && squarings < 2000; ++squarings)
            norm *= 0.5;
        for (int64_t i = 0; squarings && i < size; ++i)
            a[i] = scaled(a[i], R(ldexp(1.0, -squarings)));
        multiply(a2, a, a);
        multiply(a3, a2, a);
        multiply(a6, a3, a3);
        combine(w, false, 0, PT_EXP_5);
        combine(v, false, PT_EXP_1, 0);
        multiply(u, v, w);
        combine(w, false, PT_EXP_4);
        combine(v, false, PT_EXP_3);
        for (int64_t i = 0; i < size; ++i) {
            w[i] = w[i] + u[i];
            v[i] = v[i] + w[i];
            u[i] = scaled(u[i], R(PT_EXP_FACTOR));
        }
        combine(u, true, 0, PT_EXP_2);
        multiply(a2, v, w);
        for (int64_t i = 0; i < size; ++i) {
            w[i] = a[i] + (u[i] + a2[i]);
            if (i % (n + 1) == 0) w[i] = w[i] + convert<T>(R(1));
        }
        for (; squarings > 0; --squarings) {
            multiply(v, w, w);
            T *t = v;
            v = w;
            w = t;
        }
        store_rows(to, w, n, n, n);
        return 0;
    }
};

template <class T>
int matrix_exp(pt_call *call) {
    const int64_t n = last(call->in[0]), batch = batch_of(call->in[0]);
    if (batch * n == 0) return PT_OK;
    scratch<int> infos(batch);
    if (int status =
            each_matrix<1>(call, 14 * n * n * n, infos, [&] { return exponential<T>(call, n); }))
        return status;
    return report(call, infos, batch, OTHERWISE);
}

int eig_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return eig<PT_TYPE(tag)>(call); });
}
int ldl_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return ldl<PT_TYPE(tag)>(call); });
}
int ldl_solve_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &p = call->in[1], &b = call->in[2];
    bool fits = x.ndim > 1 && p.ndim == x.ndim - 1 && b.ndim == x.ndim && last(b, 2) == last(x);
    for (int d = 0; fits && d < x.ndim - 1; ++d)
        fits = p.sizes[d] == x.sizes[d] && b.sizes[d] == x.sizes[d];
    if (!fits)
        return fail(call, PT_RUNTIME_ERROR,
                    "expected factors, pivots and matrices of one batch that fit");
    return with_squares(call, [&](auto tag) { return ldl_solve<PT_TYPE(tag)>(call); });
}
int geqrf_kernel(pt_call *call) {
    return with_lapack(call, [&](auto tag) { return reflect<PT_TYPE(tag)>(call, false); });
}
int householder_kernel(pt_call *call) {
    const pt_view &x = call->in[0], &t = call->in[1];
    bool fits = x.ndim > 1 && t.ndim == x.ndim - 1;
    for (int d = 0; fits && d < x.ndim - 2; ++d) fits = t.sizes[d] == x.sizes[d];
    if (!fits)
        return fail(call, PT_RUNTIME_ERROR, "expected matrices and a vector for each of them");
    return with_lapack(call, [&](auto tag) { return reflect<PT_TYPE(tag)>(call, true); });
}
int matrix_exp_kernel(pt_call *call) {
    return with_squares(call, [&](auto tag) { return matrix_exp<PT_TYPE(tag)>(call); });
}

} // namespace

extern "C" const pt_kernel_entry PT_CAT(pt_kernels_decompose_, PT_ISA)[] = {
    {"eig", eig_kernel},
    {"pivot_order", pivot_order_kernel},
    {"ldl", ldl_kernel},
    {"ldl_solve", ldl_solve_kernel},
    {"geqrf", geqrf_kernel},
    {"householder", householder_kernel},
    {"matrix_exp", matrix_exp_kernel},
    {nullptr, nullptr},
};
