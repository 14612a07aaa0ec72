// A stand-in for libcusolver: LAPACK's routines, queued on the stand-in driver's streams. load.py
// gives it SciPy's by name.
//
// What cuSOLVER demands and would not say is asked for: workspaces of the size that was told for
// the same call (they are overwritten), a leading dimension that reaches, no more columns than rows
// for singular values. A matrix that is not finite gets the info of a wrong argument where cuSOLVER
// might not return, and of a triangle that is not finite nothing is told.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "refused.hpp"

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 2,
    INVALID_VALUE = 3,
    EXECUTION_FAILED = 6,
    NOT_SUPPORTED = 9
};
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };
enum { LEFT_OUT = -77 };
typedef std::complex<float> C;
typedef std::complex<double> Z;
typedef int (*Enqueue)(void *stream, const char *name, void (*f)(void *), void *argument,
                       void (*release)(void *));

struct Handle {
    void *stream = nullptr;
};
std::mutex lock;
std::set<void *> &handles() {
    static std::set<void *> &h = *new std::set<void *>;
    return h;
}
std::map<std::string, void *> &routines() {
    static std::map<std::string, void *> &r = *new std::map<std::string, void *>;
    return r;
}
Handle *handle_of(void *h) {
    std::lock_guard<std::mutex> guard(lock);
    return handles().count(h) ? (Handle *)h : nullptr;
}
void *const PARAMS = (void *)&handles, *const JACOBI = (void *)&routines;

template <class T> struct about;
template <> struct about<float> { typedef float real; enum { type = R_32F,
    real_type = R_32F }; static const char letter = 's'; };
template <> struct about<double> { typedef double real; enum { type = R_64F,
    real_type = R_64F }; static const char letter = 'd'; };
template <> struct about<C> { typedef float real; enum { type = C_32F,
    real_type = R_32F }; static const char letter = 'c'; };
template <> struct about<Z> { typedef double real; enum { type = C_64F,
    real_type = R_64F }; static const char letter = 'z'; };
template <class T> using real_of = typename about<T>::real;
template <class T> constexpr bool is_complex = !std::is_same<T, real_of<T>>::value;

// LAPACK's `name`, of T.
template <class T, class... Args> void lapack(const char *name, Args... args) {
    void *const found = routines()[about<T>::letter + std::string(name)];
    reinterpret_cast<void (*)(Args...)>(found)(args...);
}
template <class T> bool finite(const T *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!std::isfinite(std::abs(x[i]))) return false;
    return true;
}

template <class T> T conjugate_of(T x) { return x; }
template <class T> std::complex<T> conjugate_of(std::complex<T> x) { return std::conj(x); }

// f(T()) of the type with CUDA's number.
template <class F> int by_type(int type, F f) {
    switch (type) {
    case R_32F: return f(float());
    case R_64F: return f(double());
    case C_32F: return f(C());
    case C_64F: return f(Z());
    default: return NOT_SUPPORTED;
    }
}

// -- queueing -------------------------------------------------------------------------------------

int queue(const Handle *h, const char *name, std::function<void()> f) {
    static const Enqueue enqueue = [] {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return cuda ? (Enqueue)dlsym(cuda, "standin_enqueue") : nullptr;
    }();
    if (!enqueue) return NOT_INITIALIZED;
    auto work = [](void *p) { (*(std::function<void()> *)p)(); };
    auto release = [](void *p) { delete (std::function<void()> *)p; };
    return enqueue(h->stream, name, work, new std::function<void()>(std::move(f)), release)
               ? EXECUTION_FAILED
               : SUCCESS;
}

// The room that a call has: what was told for it, or more.
struct Room {
    void *device;
    size_t on_device;
    void *host;
    size_t on_host;
};
// Some numbers that depend on everything that the real ones may.
size_t device_room(int type, int64_t m, int64_t n) {
    return (size_t)(64 * (m + 3) + 16 * n * (type + 1));
}
size_t host_room(int64_t m, int64_t n) { return (size_t)(8 * m + n); }
int tell(size_t *on_device, size_t *on_host, int type, int64_t m, int64_t n, bool host) {
    if (!on_device || !on_host) return INVALID_VALUE;
    *on_device = device_room(type, m, n), *on_host = host ? host_room(m, n) : 0;
    return SUCCESS;
}
bool enough(const Room &r, int type, int64_t m, int64_t n, bool host) {
    if (!r.device || (uintptr_t)r.device % 256 || r.on_device < device_room(type, m, n))
        return false;
    if (host && (!r.host || r.on_host < host_room(m, n))) return false;
    if (host) memset(r.host, 0xff, r.on_host);
    return true;
}

bool reach(const void *a, int64_t lda, int64_t rows) {
    return a && lda >= std::max<int64_t>(1, rows);
}
bool is_uplo(int uplo) { return uplo == 0 || uplo == 1; }
char letter_of(int uplo) { return uplo ? 'U' : 'L'; }

// -- routines, of matrices in device memory -------------------------------------------------------

template <class T> void cholesky(int uplo, int n, T *a, int lda, int *info) {
    char triangle = letter_of(uplo);
    lapack<T>("potrf", &triangle, &n, a, &lda, info);
    const bool none =
        *info > 0 && !(a[(int64_t)(*info - 1) * (lda + 1)] == a[(int64_t)(*info - 1) * (lda + 1)]);
    if (none) *info = 0;
}

// A = L U, no rows swapped.
template <class T> int eliminate(T *a, int64_t m, int64_t n, int64_t lda) {
    int info = 0;
    for (int64_t k = 0; k < std::min(m, n); k++) {
        if (a[k * lda + k] == T(0) && !info) info = (int)k + 1;
        for (int64_t i = k + 1; i < m; i++) {
            const T factor = a[k * lda + i] /= a[k * lda + k];
            for (int64_t j = k + 1; j < n; j++) a[j * lda + i] -= factor * a[j * lda + k];
        }
    }
    return info;
}

template <class T> void eigenvalues(int vectors, int uplo, int n, T *a, int lda, real_of<T> *w,
                                    int *info) {
    if (!finite(a, (int64_t)n * lda)) {
        *info = LEFT_OUT;
        return;
    }
    char job = vectors ? 'V' : 'N', triangle = letter_of(uplo);
    int lwork = 1 + 6 * n + 2 * n * n, lrwork = 1 + 5 * n + 2 * n * n, liwork = 3 + 5 * n;
    std::vector<T> work((size_t)lwork);
    std::vector<real_of<T>> rwork((size_t)lrwork);
    std::vector<int> iwork((size_t)liwork);
    if constexpr (is_complex<T>)
        lapack<T>("heevd", &job, &triangle, &n, a, &lda, w, work.data(), &lwork, rwork.data(),
                  &lrwork, iwork.data(), &liwork, info);
    else
        lapack<T>("syevd", &job, &triangle, &n, a, &lda, w, work.data(), &lwork, iwork.data(),
                  &liwork, info);
}

template <class T>
void singular_values(char job, char job_vt, int m, int n, T *a, int lda, real_of<T> *s, T *u,
                     int ldu, T *vt, int ldvt, int *info) {
    if (!finite(a, (int64_t)n * lda)) {
        *info = LEFT_OUT;
        return;
    }
    int lwork = 5 * (m + n) + 64;
    std::vector<T> work((size_t)lwork);
    std::vector<real_of<T>> rwork((size_t)(5 * n + 1));
    if constexpr (is_complex<T>)
        lapack<T>("gesvd", &job, &job_vt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(),
                  &lwork, rwork.data(), info);
    else
        lapack<T>("gesvd", &job, &job_vt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(),
                  &lwork, info);
    memset((void *)a, 0xff, (size_t)(lda * (n - 1) + m) * sizeof(T));
}

template <class T> void general_eigenvalues(int vectors, int n, T *a, int lda, void *w, bool pairs,
                                            T *vr, int ldvr, int *info) {
    if (!finite(a, (int64_t)n * lda)) {
        *info = LEFT_OUT;
        return;
    }
    char none = 'N', job = vectors ? 'V' : 'N';
    int lwork = 8 * n, one = 1;
    std::vector<T> work((size_t)lwork);
    T *const no_left = nullptr;
    if constexpr (is_complex<T>) {
        std::vector<real_of<T>> rwork((size_t)(2 * n));
        lapack<T>("geev", &none, &job, &n, a, &lda, (T *)w, no_left, &one, vr, &ldvr, work.data(),
                  &lwork, rwork.data(), info);
    } else {
        std::vector<T> re((size_t)n), im((size_t)n);
        lapack<T>("geev", &none, &job, &n, a, &lda, re.data(), im.data(), no_left, &one, vr, &ldvr,
                  work.data(), &lwork, info);
        for (int i = 0; i < n; i++)
            if (pairs) ((std::complex<T> *)w)[i] = {re[(size_t)i], im[(size_t)i]};
            else ((T *)w)[i] = re[(size_t)i], ((T *)w)[n + i] = im[(size_t)i];
    }
}

std::vector<int> short_pivots(const int64_t *pivots, int64_t n) {
    std::vector<int> r((size_t)n);
    for (int64_t i = 0; i < n; i++) r[(size_t)i] = (int)pivots[i];
    return r;
}

template <class T> int potrf_batched(void *handle, int uplo, int n, T *const *a, int lda,
                                     int *infos, int batch) {
    const Handle *h = handle_of(handle);
    if (!h) return NOT_INITIALIZED;
    if (!is_uplo(uplo) || n < 0 || batch < 0 || !reach(a, lda, n) || !infos) return INVALID_VALUE;
    return queue(h, "potrfBatched", [=] {
        for (int b = 0; b < batch; b++) cholesky(uplo, n, a[b], lda, infos + b);
    });
}

template <class T>
int gesvdj_size(void *handle, int vectors, int m, int n, const T *a, int lda, const real_of<T> *s,
                const T *u, int ldu, const T *v, int ldv, int *size, void *jacobi, int batch) {
    if (!handle_of(handle)) return NOT_INITIALIZED;
    if (m < 1 || n < 1 || m > 32 || n > 32 || batch < 1 || !reach(a, lda, m) || !s || !size ||
        jacobi != JACOBI || (vectors && (!reach(u, ldu, m) || !reach(v, ldv, n))))
        return INVALID_VALUE;
    *size = 3 * m + n * batch;
    return SUCCESS;
}
template <class T>
int gesvdj(void *handle, int vectors, int m, int n, T *a, int lda, real_of<T> *s, T *u, int ldu,
           T *v, int ldv, T *work, int size, int *infos, void *jacobi, int batch) {
    int wanted = 0;
    const int status =
        gesvdj_size(handle, vectors, m, n, a, lda, s, u, ldu, v, ldv, &wanted, jacobi, batch);
    if (status) return status;
    if (!work || size < wanted || !infos) return INVALID_VALUE;
    return queue(handle_of(handle), "gesvdjBatched", [=] {
        const char job = vectors ? 'A' : 'N';
        const int k = std::min(m, n);
        for (int b = 0; b < batch; b++) {
            T *const to = v + (int64_t)b * ldv * n;
            std::vector<T> vt((size_t)(n * n));
            singular_values(job, job, m, n, a + (int64_t)b * lda * n, lda, s + (int64_t)b * k,
                            u + (int64_t)b * ldu * m, ldu, vt.data(), n, infos + b);
            for (int i = 0; vectors && i < n; i++)
                for (int j = 0; j < n; j++) to[j * ldv + i] = conjugate_of(vt[(size_t)(i * n + j)]);
        }
        memset((void *)work, 0xff, (size_t)size * sizeof(T));
    });
}

template <class T> int orgqr_size(void *handle, int m, int n, int k, const T *a, int lda,
                                  const T *tau, int *size) {
    if (!handle_of(handle)) return NOT_INITIALIZED;
    if (k < 0 || n < k || m < n || !reach(a, lda, m) || !tau || !size) return INVALID_VALUE;
    *size = 32 * n + m;
    return SUCCESS;
}
template <class T>
int orgqr(void *handle, int m, int n, int k, T *a, int lda, const T *tau, T *work, int size,
          int *info) {
    int wanted = 0;
    const int status = orgqr_size(handle, m, n, k, a, lda, tau, &wanted);
    if (status) return status;
    if (!work || size < wanted || !info) return INVALID_VALUE;
    return queue(handle_of(handle), "orgqr", [=] {
        int mm = m, nn = n, kk = k, ld = lda, lwork = size;
        lapack<T>(is_complex<T> ? "ungqr" : "orgqr", &mm, &nn, &kk, a, &ld, const_cast<T *>(tau),
                  work, &lwork, info);
        memset((void *)work, 0xff, (size_t)size * sizeof(T));
    });
}

template <class T> int sytrf_size(void *handle, int n, T *a, int lda, int *size) {
    if (!handle_of(handle)) return NOT_INITIALIZED;
    if (n < 0 || !reach(a, lda, n) || !size) return INVALID_VALUE;
    *size = 16 * n + 1;
    return SUCCESS;
}
template <class T> int sytrf(void *handle, int uplo, int n, T *a, int lda, int *pivots, T *work,
                             int size, int *info) {
    int wanted = 0;
    const int status = sytrf_size(handle, n, a, lda, &wanted);
    if (status) return status;
    if (!is_uplo(uplo) || !pivots || !work || size < wanted || !info) return INVALID_VALUE;
    return queue(handle_of(handle), "sytrf", [=] {
        char triangle = letter_of(uplo);
        int nn = n, ld = lda, lwork = size;
        lapack<T>("sytrf", &triangle, &nn, a, &ld, pivots, work, &lwork, info);
        memset((void *)work, 0xff, (size_t)size * sizeof(T));
    });
}

}  // namespace

// A routine of LAPACK by its name in SciPy.
API void standin_routine(const char *name, void *function) { routines()[name] = function; }

API int cusolverDnCreate(void **out) {
    if (!out) return INVALID_VALUE;
    if (refused(ALLOCATES)) return ALLOC_FAILED;
    Handle *h = new Handle;
    std::lock_guard<std::mutex> guard(lock);
    handles().insert(h);
    *out = h;
    return SUCCESS;
}
API int cusolverDnSetStream(void *handle, void *stream) {
    Handle *h = handle_of(handle);
    if (!h) return NOT_INITIALIZED;
    h->stream = stream;
    return SUCCESS;
}
API int cusolverDnCreateParams(void **params) {
    if (!params) return INVALID_VALUE;
    *params = PARAMS;
    return SUCCESS;
}
API int cusolverDnCreateGesvdjInfo(void **jacobi) {
    if (!jacobi) return INVALID_VALUE;
    *jacobi = JACOBI;
    return SUCCESS;
}
API int cusolverGetVersion(int *version) {
    if (!version) return INVALID_VALUE;
    *version = 12000;
    return SUCCESS;
}

#define CHECK(right) \
    const Handle *h = handle_of(handle); \
    if (!h) return NOT_INITIALIZED; \
    if (!(right)) return INVALID_VALUE;
#define BUFFERS void *device, size_t on_device, void *host, size_t on_host, int *info
#define ROOM Room{device, on_device, host, on_host}

API int cusolverDnXpotrf_bufferSize(void *handle, void *params, int uplo, int64_t n, int type,
                                    const void *a, int64_t lda, int compute, size_t *on_device,
                                    size_t *on_host) {
    CHECK(params == PARAMS && is_uplo(uplo) && reach(a, lda, n) && compute == type)
    return tell(on_device, on_host, type, n, n, false);
}
API int cusolverDnXpotrf(void *handle, void *params, int uplo, int64_t n, int type, void *a,
                         int64_t lda, int compute, BUFFERS) {
    CHECK(params == PARAMS && is_uplo(uplo) && reach(a, lda, n) && compute == type && info &&
          enough(ROOM, type, n, n, false))
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xpotrf", [=] {
            cholesky(uplo, (int)n, (T *)a, (int)lda, info);
            memset(device, 0xff, on_device);
        });
    });
}

API int cusolverDnXgetrf_bufferSize(void *handle, void *params, int64_t m, int64_t n, int type,
                                    const void *a, int64_t lda, int compute, size_t *on_device,
                                    size_t *on_host) {
    CHECK(params == PARAMS && reach(a, lda, m) && n > 0 && compute == type)
    return tell(on_device, on_host, type, m, n, true);
}
API int cusolverDnXgetrf(void *handle, void *params, int64_t m, int64_t n, int type, void *a,
                         int64_t lda, int64_t *pivots, int compute, BUFFERS) {
    CHECK(params == PARAMS && reach(a, lda, m) && n > 0 && compute == type && info &&
          enough(ROOM, type, m, n, true))
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xgetrf", [=] {
            int mm = (int)m, nn = (int)n, ld = (int)lda;
            std::vector<int> p((size_t)std::min(m, n));
            if (pivots) lapack<T>("getrf", &mm, &nn, (T *)a, &ld, p.data(), info);
            else *info = eliminate((T *)a, m, n, lda);
            for (size_t i = 0; pivots && i < p.size(); i++) pivots[i] = p[i];
            memset(device, 0xff, on_device);
        });
    });
}
API int cusolverDnXgetrs(void *handle, void *params, int op, int64_t n, int64_t k, int type,
                         const void *a, int64_t lda, const int64_t *pivots, int type_b, void *b,
                         int64_t ldb, int *info) {
    CHECK(params == PARAMS && op >= 0 && op <= 2 && reach(a, lda, n) && reach(b, ldb, n) &&
          pivots && type_b == type && info)
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xgetrs", [=] {
            char turned = "NTC"[op];
            int nn = (int)n, kk = (int)k, ld = (int)lda, ld_b = (int)ldb;
            std::vector<int> p = short_pivots(pivots, n);
            lapack<T>("getrs", &turned, &nn, &kk, (T *)const_cast<void *>(a), &ld, p.data(), (T *)b,
                      &ld_b, info);
        });
    });
}

API int cusolverDnXgeqrf_bufferSize(void *handle, void *params, int64_t m, int64_t n, int type,
                                    const void *a, int64_t lda, int type_tau, const void *tau,
                                    int compute, size_t *on_device, size_t *on_host) {
    CHECK(params == PARAMS && reach(a, lda, m) && n > 0 && tau && type_tau == type &&
          compute == type)
    return tell(on_device, on_host, type, m, n, false);
}
API int cusolverDnXgeqrf(void *handle, void *params, int64_t m, int64_t n, int type, void *a,
                         int64_t lda, int type_tau, void *tau, int compute, BUFFERS) {
    CHECK(params == PARAMS && reach(a, lda, m) && n > 0 && tau && type_tau == type &&
          compute == type && info && enough(ROOM, type, m, n, false))
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xgeqrf", [=] {
            int mm = (int)m, nn = (int)n, ld = (int)lda, lwork = 8 * nn;
            std::vector<T> work((size_t)lwork);
            lapack<T>("geqrf", &mm, &nn, (T *)a, &ld, (T *)tau, work.data(), &lwork, info);
            memset(device, 0xff, on_device);
        });
    });
}

#define EIGEN(name, BATCH, batch)                                                              \
    API int cusolverDn##name##_bufferSize(void *handle, void *params, int vectors, int uplo,   \
                                          int64_t n, int type, const void *a, int64_t lda,     \
                                          int type_w, const void *w, int compute,              \
                                          size_t *on_device, size_t *on_host BATCH) {          \
        CHECK(params == PARAMS && is_uplo(uplo) && reach(a, lda, n) && w &&                    \
              type_w == (type & 1) && compute == type)                                         \
        return tell(on_device, on_host, type, n, n + batch, true);                             \
    }                                                                                          \
    API int cusolverDn##name(void *handle, void *params, int vectors, int uplo, int64_t n,     \
                             int type, void *a, int64_t lda, int type_w, void *w, int compute, \
                             BUFFERS BATCH) {                                                  \
        CHECK(params == PARAMS && is_uplo(uplo) && reach(a, lda, n) && w &&                    \
              type_w == (type & 1) && compute == type && info &&                               \
              enough(ROOM, type, n, n + batch, true))                                          \
        return by_type(type, [&](auto t) {                                                     \
            typedef decltype(t) T;                                                             \
            return queue(h, #name, [=] {                                                       \
                for (int64_t b = 0; b < batch; b++)                                            \
                    eigenvalues(vectors, uplo, (int)n, (T *)a + b * lda * n, (int)lda,         \
                                (real_of<T> *)w + b * n, info + b);                            \
                memset(device, 0xff, on_device);                                               \
            });                                                                                \
        });                                                                                    \
    }
#define NO_BATCH
#define WITH_BATCH , int64_t batch
EIGEN(Xsyevd, NO_BATCH, 1)
EIGEN(XsyevBatched, WITH_BATCH, batch)

API int cusolverDnXgesvd_bufferSize(void *handle, void *params, signed char job_u,
                                    signed char job_vt, int64_t m, int64_t n, int type,
                                    const void *a, int64_t lda, int type_s, const void *s,
                                    int type_u, const void *u, int64_t ldu, int type_vt,
                                    const void *vt, int64_t ldvt, int compute, size_t *on_device,
                                    size_t *on_host) {
    CHECK(params == PARAMS && m >= n && n > 0 && reach(a, lda, m) && s && type_s == (type & 1) &&
          type_u == type && type_vt == type && compute == type &&
          (job_u == 'N' || reach(u, ldu, m)) && (job_vt == 'N' || reach(vt, ldvt, n)))
    return tell(on_device, on_host, type, m, n, true);
}
API int cusolverDnXgesvd(void *handle, void *params, signed char job_u, signed char job_vt,
                         int64_t m, int64_t n, int type, void *a, int64_t lda, int type_s, void *s,
                         int type_u, void *u, int64_t ldu, int type_vt, void *vt, int64_t ldvt,
                         int compute, BUFFERS) {
    CHECK(params == PARAMS && m >= n && n > 0 && reach(a, lda, m) && s && type_s == (type & 1) &&
          type_u == type && type_vt == type && compute == type &&
          (job_u == 'N' || reach(u, ldu, m)) && (job_vt == 'N' || reach(vt, ldvt, n)) && info &&
          enough(ROOM, type, m, n, true))
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xgesvd", [=] {
            singular_values((char)job_u, (char)job_vt, (int)m, (int)n, (T *)a, (int)lda,
                            (real_of<T> *)s, (T *)u, (int)ldu, (T *)vt, (int)ldvt, info);
            memset(device, 0xff, on_device);
        });
    });
}

API int cusolverDnXgeev_bufferSize(void *handle, void *params, int left, int right, int64_t n,
                                   int type, const void *a, int64_t lda, int type_w, const void *w,
                                   int type_vl, const void *, int64_t, int type_vr, const void *vr,
                                   int64_t ldvr, int compute, size_t *on_device, size_t *on_host) {
    CHECK(params == PARAMS && !left && reach(a, lda, n) && w &&
          (type_w == type || type_w == type + 4) && type_vl == type && type_vr == type &&
          compute == type && (!right || reach(vr, ldvr, n)))
    return tell(on_device, on_host, type, n, n, true);
}
API int cusolverDnXgeev(void *handle, void *params, int left, int right, int64_t n, int type,
                        void *a, int64_t lda, int type_w, void *w, int type_vl, void *, int64_t,
                        int type_vr, void *vr, int64_t ldvr, int compute, BUFFERS) {
    CHECK(params == PARAMS && !left && reach(a, lda, n) && w &&
          (type_w == type || type_w == type + 4) && type_vl == type && type_vr == type &&
          compute == type && (!right || reach(vr, ldvr, n)) && info &&
          enough(ROOM, type, n, n, true))
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xgeev", [=] {
            general_eigenvalues(right, (int)n, (T *)a, (int)lda, w, type_w != type, (T *)vr,
                                (int)ldvr, info);
            memset(device, 0xff, on_device);
        });
    });
}

API int cusolverDnXsytrs_bufferSize(void *handle, int uplo, int64_t n, int64_t k, int type,
                                    const void *a, int64_t lda, const int64_t *pivots, int type_b,
                                    void *b, int64_t ldb, size_t *on_device, size_t *on_host) {
    CHECK(is_uplo(uplo) && reach(a, lda, n) && reach(b, ldb, n) && pivots && type_b == type)
    return tell(on_device, on_host, type, n, k, false);
}
API int cusolverDnXsytrs(void *handle, int uplo, int64_t n, int64_t k, int type, const void *a,
                         int64_t lda, const int64_t *pivots, int type_b, void *b, int64_t ldb,
                         BUFFERS) {
    CHECK(is_uplo(uplo) && reach(a, lda, n) && reach(b, ldb, n) && pivots && type_b == type &&
          info && enough(ROOM, type, n, k, false))
    return by_type(type, [&](auto t) {
        typedef decltype(t) T;
        return queue(h, "Xsytrs", [=] {
            char triangle = letter_of(uplo);
            int nn = (int)n, kk = (int)k, ld = (int)lda, ld_b = (int)ldb;
            std::vector<int> p = short_pivots(pivots, n);
            lapack<T>("sytrs", &triangle, &nn, &kk, (T *)const_cast<void *>(a), &ld, p.data(),
                      (T *)b, &ld_b, info);
            memset(device, 0xff, on_device);
        });
    });
}

#define TYPED(X, T, GQR)                                                                        \
    API int cusolverDn##X##potrfBatched(void *h, int uplo, int n, T **a, int lda, int *infos,   \
                                        int batch) {                                            \
        return potrf_batched(h, uplo, n, a, lda, infos, batch);                                 \
    }                                                                                           \
    API int cusolverDn##X##gesvdjBatched_bufferSize(void *h, int vectors, int m, int n,         \
                                                    const T *a, int lda, const real_of<T> *s,   \
                                                    const T *u, int ldu, const T *v, int ldv,   \
                                                    int *size, void *jacobi, int batch) {       \
        return gesvdj_size(h, vectors, m, n, a, lda, s, u, ldu, v, ldv, size, jacobi, batch);   \
    }                                                                                           \
    API int cusolverDn##X##gesvdjBatched(void *h, int vectors, int m, int n, T *a, int lda,     \
                                         real_of<T> *s, T *u, int ldu, T *v, int ldv, T *work,  \
                                         int size, int *infos, void *jacobi, int batch) {       \
        return gesvdj(h, vectors, m, n, a, lda, s, u, ldu, v, ldv, work, size, infos, jacobi,   \
                      batch);                                                                   \
    }                                                                                           \
    API int cusolverDn##GQR##_bufferSize(void *h, int m, int n, int k, const T *a, int lda,     \
                                         const T *tau, int *size) {                             \
        return orgqr_size(h, m, n, k, a, lda, tau, size);                                       \
    }                                                                                           \
    API int cusolverDn##GQR(void *h, int m, int n, int k, T *a, int lda, const T *tau, T *work, \
                            int size, int *info) {                                              \
        return orgqr(h, m, n, k, a, lda, tau, work, size, info);                                \
    }                                                                                           \
    API int cusolverDn##X##sytrf_bufferSize(void *h, int n, T *a, int lda, int *size) {         \
        return sytrf_size(h, n, a, lda, size);                                                  \
    }                                                                                           \
    API int cusolverDn##X##sytrf(void *h, int uplo, int n, T *a, int lda, int *pivots, T *work, \
                                 int size, int *info) {                                         \
        return sytrf(h, uplo, n, a, lda, pivots, work, size, info);                             \
    }
TYPED(S, float, Sorgqr)
TYPED(D, double, Dorgqr)
TYPED(C, C, Cungqr)
TYPED(Z, Z, Zungqr)
