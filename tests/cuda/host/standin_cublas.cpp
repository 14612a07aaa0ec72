// A stand-in for libcublas: matrix products as plain loops (standin_gemm.hpp), elimination and
// triangles likewise, queued on the stand-in driver's streams. Arguments are refused with cuBLAS's
// statuses.
#include "refused.hpp"
#include "standin_gemm.hpp"

#include <functional>
#include <mutex>
#include <set>

namespace {

struct Handle {
    uint32_t kind = HANDLE;
    void *context = nullptr, *stream = nullptr, *workspace = nullptr;
    size_t workspace_bytes = 0;
    int math = 0, pointers = 0, atomics = 0;
};
std::set<void *> &handles() {
    static std::set<void *> &h = *new std::set<void *>;
    return h;
}
std::mutex lock;
Handle *handle_of(void *h) {
    std::lock_guard<std::mutex> guard(lock);
    return handles().count(h) ? (Handle *)h : nullptr;
}

// Checks as cuBLAS does, reads alpha and beta, queues. `ta`, `tb`: 0 as it is, 1 transposed, 2 and
// conjugated.
int queue(void *h, int ta, int tb, Product d, const void *alpha, const void *beta) {
    const Handle *handle = handle_of(h);
    if (!handle) return NOT_INITIALIZED;
    if (ta < 0 || ta > 2 || tb < 0 || tb > 2 || d.m < 0 || d.n < 0 || d.k < 0 || d.batch < 0)
        return INVALID_VALUE;
    d.a.transposed = ta != 0;
    d.b.transposed = tb != 0;
    d.a.conjugate = ta == 2;
    d.b.conjugate = tb == 2;
    const int64_t one = 1;
    if (d.a.lead < std::max(one, ta ? d.k : d.m) || d.b.lead < std::max(one, tb ? d.n : d.k) ||
        d.c.lead < std::max(one, d.m))
        return INVALID_VALUE;
    if (d.c.stride && d.batch > 1 && d.c.stride < d.c.lead * (d.n - 1) + d.m && d.m && d.n)
        return INVALID_VALUE;
    const Run run = d.a.type == d.b.type ? run_of(d) : nullptr;
    if (!run) return NOT_SUPPORTED;
    if (handle->pointers) return NOT_SUPPORTED;
    if (!alpha || !beta) return INVALID_VALUE;
    if (!d.m || !d.n || !d.batch) return SUCCESS;
    if ((!d.c.data && !d.c.table) ||
        (d.k && ((!d.a.data && !d.a.table) || (!d.b.data && !d.b.table))))
        return INVALID_VALUE;
    d.alpha = scalar(alpha, d);
    d.beta = scalar(beta, d);
    d.out = d.c;
    report.precision = handle->math;
    return start(d, run, handle->stream);
}

Operand operand(const void *data, int type, int64_t lead, int64_t stride = 0) {
    Operand o;
    o.data = (char *)const_cast<void *>(data);
    o.type = type;
    o.lead = lead;
    o.stride = stride;
    return o;
}
Operand operand_table(const void *const *table, int type, int64_t lead) {
    Operand o = operand(nullptr, type, lead);
    o.table = (void *const *)table;
    return o;
}

// -- triangles and elimination --------------------------------------------------------------------

int queue(const Handle *h, const char *name, std::function<void()> f) {
    auto work = [](void *p) { (*(std::function<void()> *)p)(); };
    auto release = [](void *p) { delete (std::function<void()> *)p; };
    return driver().enqueue(h->stream, name, work, new std::function<void()>(std::move(f)), release)
               ? EXECUTION_FAILED
               : SUCCESS;
}

template <class T> T conj_if(T x, bool) { return x; }
template <class T> std::complex<T> conj_if(std::complex<T> x, bool conjugate) {
    return conjugate ? std::conj(x) : x;
}

// b, of n elements that are `step` apart, becomes x of M x = b, where M(i, j) are elements of a
// triangle.
template <class T, class M> void substitute(const M &element, bool upper, bool unit, int64_t n,
                                            T *b, int64_t step) {
    for (int64_t at = 0; at < n; at++) {
        const int64_t i = upper ? n - 1 - at : at;
        T x = b[i * step];
        for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
            x -= element(i, j) * b[j * step];
        b[i * step] = unit ? x : x / element(i, i);
    }
}

template <class T>
void solve_triangle(bool right, bool upper, int op, bool unit, int64_t m, int64_t n, T alpha,
                    const T *a, int64_t lda, T *b, int64_t ldb) {
    const bool turned = op != 0, swapped = turned != right;
    const auto element = [&](int64_t i, int64_t j) {
        return conj_if(swapped ? a[i * lda + j] : a[j * lda + i], op == 2);
    };
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) b[j * ldb + i] *= alpha;
    // From the right: the transposed triangle solves for each row.
    if (right)
        for (int64_t i = 0; i < m; i++) substitute(element, upper != swapped, unit, n, b + i, ldb);
    else
        for (int64_t j = 0; j < n; j++)
            substitute(element, upper != swapped, unit, m, b + j * ldb, 1);
}

template <class T>
int triangular(void *handle, int side, int uplo, int op, int diagonal, int m, int n, const T *alpha,
               const T *a, const T *const *as, int lda, T *b, T *const *bs, int ldb, int batch) {
    const Handle *h = handle_of(handle);
    if (!h) return NOT_INITIALIZED;
    const int order = side ? n : m;
    if ((side | uplo | diagonal) & ~1 || op < 0 || op > 2 || m < 0 || n < 0 || batch < 0 ||
        !alpha || lda < std::max(1, order) || ldb < std::max(1, m) || (!a && !as) || (!b && !bs))
        return INVALID_VALUE;
    const T factor = *alpha;
    return queue(h, "trsm", [=] {
        for (int i = 0; i < batch; i++)
            solve_triangle<T>(side, uplo, op, diagonal, m, n, factor, as ? as[i] : a, lda,
                              bs ? bs[i] : b, ldb);
    });
}

// The first largest element of a column is its pivot, unless there are none, by the sum of the
// parts' moduli as in BLAS.
template <class T> double size_of(T x) { return std::abs(x); }
template <class T> double size_of(std::complex<T> x) {
    return std::abs(x.real()) + std::abs(x.imag());
}

template <class T> int eliminate(T *a, int64_t n, int64_t lda, int *pivots) {
    int info = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t p = k;
        for (int64_t i = k + 1; pivots && i < n; i++)
            if (size_of(a[k * lda + i]) > size_of(a[k * lda + p])) p = i;
        if (pivots) pivots[k] = (int)p + 1;
        if (a[k * lda + p] == T(0)) {
            if (!info) info = (int)k + 1;
            continue;
        }
        for (int64_t j = 0; j < n; j++) std::swap(a[j * lda + k], a[j * lda + p]);
        for (int64_t i = k + 1; i < n; i++) {
            const T factor = a[k * lda + i] /= a[k * lda + k];
            for (int64_t j = k + 1; j < n; j++) a[j * lda + i] -= factor * a[j * lda + k];
        }
    }
    return info;
}

template <class T> int factor_batched(void *handle, int n, T *const *a, int lda, int *pivots,
                                      int *infos, int batch) {
    const Handle *h = handle_of(handle);
    if (!h) return NOT_INITIALIZED;
    if (n < 0 || batch < 0 || lda < std::max(1, n) || !a || !infos) return INVALID_VALUE;
    return queue(h, "getrfBatched", [=] {
        for (int i = 0; i < batch; i++)
            infos[i] = eliminate(a[i], n, lda, pivots ? pivots + (int64_t)i * n : nullptr);
    });
}

template <class T>
int solve_batched(void *handle, int op, int n, int k, const T *const *a, int lda, const int *pivots,
                  T *const *b, int ldb, int *info, int batch) {
    const Handle *h = handle_of(handle);
    if (!h) return NOT_INITIALIZED;
    if (op < 0 || op > 2 || n < 0 || k < 0 || batch < 0 || lda < std::max(1, n) ||
        ldb < std::max(1, n) || !a || !pivots || !b || !info)
        return INVALID_VALUE;
    *info = 0;                                  // on the host
    return queue(h, "getrsBatched", [=] {
        for (int i = 0; i < batch; i++) {
            const int *const p = pivots + (int64_t)i * n;
            const auto exchange = [&](int64_t r) {
                for (int64_t j = 0; j < k; j++)
                    std::swap(b[i][j * ldb + r], b[i][j * ldb + p[r] - 1]);
            };
            for (int64_t r = 0; !op && r < n; r++) exchange(r);
            solve_triangle<T>(false, op != 0, op, op == 0, n, k, T(1), a[i], lda, b[i], ldb);
            solve_triangle<T>(false, op == 0, op, op != 0, n, k, T(1), a[i], lda, b[i], ldb);
            for (int64_t r = n - 1; op && r >= 0; r--) exchange(r);
        }
    });
}

}  // namespace

API int cublasCreate_v2(void **out) {
    if (!out) return INVALID_VALUE;
    void *context = nullptr;
    if (!driver().enqueue || driver().current(&context) || !context) return NOT_INITIALIZED;
    if (refused(ALLOCATES)) return ALLOC_FAILED;
    Handle *h = new Handle;
    h->context = context;
    std::lock_guard<std::mutex> guard(lock);
    handles().insert(h);
    report.handles++;
    *out = h;
    return SUCCESS;
}
API int cublasDestroy_v2(void *h) {
    std::lock_guard<std::mutex> guard(lock);
    if (!handles().erase(h)) return NOT_INITIALIZED;
    delete (Handle *)h;
    return SUCCESS;
}

#define FIELD(function, T, field) \
    API int cublasSet##function(void *h, T value) { \
        Handle *handle = handle_of(h); \
        if (!handle) return NOT_INITIALIZED; \
        handle->field = value; \
        return SUCCESS; \
    } \
    API int cublasGet##function(void *h, T *value) { \
        Handle *handle = handle_of(h); \
        if (!handle) return NOT_INITIALIZED; \
        if (!value) return INVALID_VALUE; \
        *value = handle->field; \
        return SUCCESS; \
    }
FIELD(Stream_v2, void *, stream)
FIELD(MathMode, int, math)
FIELD(PointerMode_v2, int, pointers)
FIELD(AtomicsMode, int, atomics)

API int cublasSetWorkspace_v2(void *h, void *workspace, size_t bytes) {
    Handle *handle = handle_of(h);
    if (!handle) return NOT_INITIALIZED;
    if ((uintptr_t)workspace % 256) return INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return SUCCESS;
}
API int cublasGetVersion_v2(void *h, int *version) {
    if (!handle_of(h)) return NOT_INITIALIZED;
    if (!version) return INVALID_VALUE;
    *version = 130000;
    return SUCCESS;
}
API int cublasGetProperty(int what, int *value) {
    if (!value || what < 0 || what > 2) return INVALID_VALUE;
    *value = what == 0 ? 13 : 0;
    return SUCCESS;
}
API size_t cublasGetCudartVersion() { return 13000; }
API const char *cublasGetStatusName(int status) {
    switch (status) {
    case SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
    case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "unknown";
    }
}
API const char *cublasGetStatusString(int status) { return cublasGetStatusName(status); }

// Each function in its 32-bit form and in the one for 64-bit sizes.
#define GEMM_EX(suffix, I)                                                                         \
    API int cublasGemmEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha,        \
                                 const void *a, int at, I la, const void *b, int bt, I lb,         \
                                 const void *beta, void *c, int ct, I lc, int compute, int) {      \
        return queue(h, ta, tb,                                                                    \
                     Product{"cublasGemmEx",                                                       \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             1,                                                                    \
                             operand(a, at, la),                                                   \
                             operand(b, bt, lb),                                                   \
                             operand(c, ct, lc),                                                   \
                             compute,                                                              \
                             {},                                                                   \
                             {},                                                                   \
                             {},                                                                   \
                             {},                                                                   \
                             nullptr,                                                              \
                             0},                                                                   \
                     alpha, beta);                                                                 \
    }                                                                                              \
    API int cublasGemmStridedBatchedEx##suffix(void *h, int ta, int tb, I m, I n, I k,             \
                                               const void *alpha, const void *a, int at, I la,     \
                                               long long sa, const void *b, int bt, I lb,          \
                                               long long sb, const void *beta, void *c, int ct,    \
                                               I lc, long long sc, I batch, int compute, int) {    \
        return queue(h, ta, tb,                                                                    \
                     Product{"cublasGemmStridedBatchedEx",                                         \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             batch,                                                                \
                             operand(a, at, la, sa),                                               \
                             operand(b, bt, lb, sb),                                               \
                             operand(c, ct, lc, sc),                                               \
                             compute,                                                              \
                             {},                                                                   \
                             {},                                                                   \
                             {},                                                                   \
                             {},                                                                   \
                             nullptr,                                                              \
                             0},                                                                   \
                     alpha, beta);                                                                 \
    }                                                                                              \
    API int cublasGemmBatchedEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                        const void *const *a, int at, I la, const void *const *b,  \
                                        int bt, I lb, const void *beta, void *const *c, int ct,    \
                                        I lc, I batch, int compute, int) {                         \
        return queue(h, ta, tb,                                                                    \
                     Product{"cublasGemmBatchedEx",                                                \
                             m,                                                                    \
                             n,                                                                    \
                             k,                                                                    \
                             batch,                                                                \
                             operand_table(a, at, la),                                             \
                             operand_table(b, bt, lb),                                             \
                             operand_table((const void *const *)c, ct, lc),                        \
                             compute,                                                              \
                             {},                                                                   \
                             {},                                                                   \
                             {},                                                                   \
                             {},                                                                   \
                             nullptr,                                                              \
                             0},                                                                   \
                     alpha, beta);                                                                 \
    }
GEMM_EX(, int)
GEMM_EX(_64, int64_t)

#define GEMM(X, T, type, compute)                                                                \
    API int cublas##X##gemm_v2(void *h, int ta, int tb, int m, int n, int k, const T *alpha,     \
                               const T *a, int la, const T *b, int lb, const T *beta, T *c,      \
                               int lc) {                                                         \
        return queue(h, ta, tb,                                                                  \
                     Product{"cublas" #X "gemm",                                                 \
                             m,                                                                  \
                             n,                                                                  \
                             k,                                                                  \
                             1,                                                                  \
                             operand(a, type, la),                                               \
                             operand(b, type, lb),                                               \
                             operand(c, type, lc),                                               \
                             compute,                                                            \
                             {},                                                                 \
                             {},                                                                 \
                             {},                                                                 \
                             {},                                                                 \
                             nullptr,                                                            \
                             0},                                                                 \
                     alpha, beta);                                                               \
    }                                                                                            \
    API int cublas##X##gemmStridedBatched(void *h, int ta, int tb, int m, int n, int k,          \
                                          const T *alpha, const T *a, int la, long long sa,      \
                                          const T *b, int lb, long long sb, const T *beta, T *c, \
                                          int lc, long long sc, int batch) {                     \
        return queue(h, ta, tb,                                                                  \
                     Product{"cublas" #X "gemmStridedBatched",                                   \
                             m,                                                                  \
                             n,                                                                  \
                             k,                                                                  \
                             batch,                                                              \
                             operand(a, type, la, sa),                                           \
                             operand(b, type, lb, sb),                                           \
                             operand(c, type, lc, sc),                                           \
                             compute,                                                            \
                             {},                                                                 \
                             {},                                                                 \
                             {},                                                                 \
                             {},                                                                 \
                             nullptr,                                                            \
                             0},                                                                 \
                     alpha, beta);                                                               \
    }                                                                                            \
    API int cublas##X##gemmBatched(void *h, int ta, int tb, int m, int n, int k, const T *alpha, \
                                   const T *const *a, int la, const T *const *b, int lb,         \
                                   const T *beta, T *const *c, int lc, int batch) {              \
        return queue(h, ta, tb,                                                                  \
                     Product{"cublas" #X "gemmBatched",                                          \
                             m,                                                                  \
                             n,                                                                  \
                             k,                                                                  \
                             batch,                                                              \
                             operand_table((const void *const *)a, type, la),                    \
                             operand_table((const void *const *)b, type, lb),                    \
                             operand_table((const void *const *)c, type, lc),                    \
                             compute,                                                            \
                             {},                                                                 \
                             {},                                                                 \
                             {},                                                                 \
                             {},                                                                 \
                             nullptr,                                                            \
                             0},                                                                 \
                     alpha, beta);                                                               \
    }
GEMM(S, float, R_32F, COMPUTE_32F)
GEMM(D, double, R_64F, COMPUTE_64F)
GEMM(C, std::complex<float>, C_32F, COMPUTE_32F)
GEMM(Z, std::complex<double>, C_64F, COMPUTE_64F)

#define SOLVE(X, T)                                                                                \
    API int cublas##X##trsm_v2(void *h, int side, int uplo, int op, int diagonal, int m, int n,    \
                               const T *alpha, const T *a, int lda, T *b, int ldb) {               \
        return triangular<T>(h, side, uplo, op, diagonal, m, n, alpha, a, nullptr, lda, b,         \
                             nullptr, ldb, 1);                                                     \
    }                                                                                              \
    API int cublas##X##trsmBatched(void *h, int side, int uplo, int op, int diagonal, int m,       \
                                   int n, const T *alpha, const T *const *a, int lda, T *const *b, \
                                   int ldb, int batch) {                                           \
        return triangular<T>(h, side, uplo, op, diagonal, m, n, alpha, nullptr, a, lda, nullptr,   \
                             b, ldb, batch);                                                       \
    }                                                                                              \
    API int cublas##X##getrfBatched(void *h, int n, T *const *a, int lda, int *pivots, int *infos, \
                                    int batch) {                                                   \
        return factor_batched(h, n, a, lda, pivots, infos, batch);                                 \
    }                                                                                              \
    API int cublas##X##getrsBatched(void *h, int op, int n, int k, const T *const *a, int lda,     \
                                    const int *pivots, T *const *b, int ldb, int *info,            \
                                    int batch) {                                                   \
        return solve_batched(h, op, n, k, a, lda, pivots, b, ldb, info, batch);                    \
    }
SOLVE(S, float)
SOLVE(D, double)
SOLVE(C, std::complex<float>)
SOLVE(Z, std::complex<double>)
