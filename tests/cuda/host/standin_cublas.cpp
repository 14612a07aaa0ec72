// A stand-in for libcublas: matrix products as plain loops (standin_gemm.hpp), queued on the stand-in driver's streams.
// Arguments are refused with cuBLAS's statuses.
#include "standin_gemm.hpp"

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

// Checks as cuBLAS does, reads alpha and beta, queues. `ta`, `tb`: 0 as it is, 1 transposed, 2 and conjugated.
int queue(void *h, int ta, int tb, Product d, const void *alpha, const void *beta) {
    const Handle *handle = handle_of(h);
    if (!handle) return NOT_INITIALIZED;
    if (ta < 0 || ta > 2 || tb < 0 || tb > 2 || d.m < 0 || d.n < 0 || d.k < 0 || d.batch < 0) return INVALID_VALUE;
    d.a.transposed = ta != 0;
    d.b.transposed = tb != 0;
    d.a.conjugate = ta == 2;
    d.b.conjugate = tb == 2;
    const int64_t one = 1;
    if (d.a.lead < std::max(one, ta ? d.k : d.m) || d.b.lead < std::max(one, tb ? d.n : d.k) ||
        d.c.lead < std::max(one, d.m))
        return INVALID_VALUE;
    if (d.c.stride && d.batch > 1 && d.c.stride < d.c.lead * (d.n - 1) + d.m && d.m && d.n) return INVALID_VALUE;
    const Run run = d.a.type == d.b.type ? run_of(d) : nullptr;
    if (!run) return NOT_SUPPORTED;
    if (handle->pointers) return NOT_SUPPORTED;
    if (!alpha || !beta) return INVALID_VALUE;
    if (!d.m || !d.n || !d.batch) return SUCCESS;
    if ((!d.c.data && !d.c.table) || (d.k && ((!d.a.data && !d.a.table) || (!d.b.data && !d.b.table))))
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

}  // namespace

API int cublasCreate_v2(void **out) {
    if (!out) return INVALID_VALUE;
    void *context = nullptr;
    if (!driver().enqueue || driver().current(&context) || !context) return NOT_INITIALIZED;
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
#define GEMM_EX(suffix, I) \
    API int cublasGemmEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha, const void *a, int at, I la, \
                                 const void *b, int bt, I lb, const void *beta, void *c, int ct, I lc, int compute, \
                                 int) { \
        return queue(h, ta, tb, Product{"cublasGemmEx", m, n, k, 1, operand(a, at, la), operand(b, bt, lb), \
                                        operand(c, ct, lc), compute, {}, {}, {}, {}, nullptr, 0}, alpha, beta); \
    } \
    API int cublasGemmStridedBatchedEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                               const void *a, int at, I la, long long sa, const void *b, int bt, I lb, \
                                               long long sb, const void *beta, void *c, int ct, I lc, long long sc, \
                                               I batch, int compute, int) { \
        return queue(h, ta, tb, Product{"cublasGemmStridedBatchedEx", m, n, k, batch, operand(a, at, la, sa), \
                                        operand(b, bt, lb, sb), operand(c, ct, lc, sc), compute, {}, {}, {}, {}, nullptr, 0}, alpha, beta); \
    } \
    API int cublasGemmBatchedEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                        const void *const *a, int at, I la, const void *const *b, int bt, I lb, \
                                        const void *beta, void *const *c, int ct, I lc, I batch, int compute, int) { \
        return queue(h, ta, tb, Product{"cublasGemmBatchedEx", m, n, k, batch, operand_table(a, at, la), \
                                        operand_table(b, bt, lb), operand_table((const void *const *)c, ct, lc), \
                                        compute, {}, {}, {}, {}, nullptr, 0}, alpha, beta); \
    }
GEMM_EX(, int)
GEMM_EX(_64, int64_t)

#define GEMM(X, T, type, compute) \
    API int cublas##X##gemm_v2(void *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int la, \
                               const T *b, int lb, const T *beta, T *c, int lc) { \
        return queue(h, ta, tb, Product{"cublas" #X "gemm", m, n, k, 1, operand(a, type, la), operand(b, type, lb), \
                                        operand(c, type, lc), compute, {}, {}, {}, {}, nullptr, 0}, alpha, beta); \
    } \
    API int cublas##X##gemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, \
                                          int la, long long sa, const T *b, int lb, long long sb, const T *beta, T *c, \
                                          int lc, long long sc, int batch) { \
        return queue(h, ta, tb, Product{"cublas" #X "gemmStridedBatched", m, n, k, batch, operand(a, type, la, sa), \
                                        operand(b, type, lb, sb), operand(c, type, lc, sc), compute, {}, {}, {}, {}, nullptr, 0}, alpha, \
                     beta); \
    } \
    API int cublas##X##gemmBatched(void *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *const *a, \
                                   int la, const T *const *b, int lb, const T *beta, T *const *c, int lc, int batch) { \
        return queue(h, ta, tb, Product{"cublas" #X "gemmBatched", m, n, k, batch, \
                                        operand_table((const void *const *)a, type, la), \
                                        operand_table((const void *const *)b, type, lb), \
                                        operand_table((const void *const *)c, type, lc), compute, {}, {}, {}, {}, nullptr, 0}, alpha, beta); \
    }
GEMM(S, float, R_32F, COMPUTE_32F)
GEMM(D, double, R_64F, COMPUTE_64F)
GEMM(C, std::complex<float>, C_32F, COMPUTE_32F)
GEMM(Z, std::complex<double>, C_64F, COMPUTE_64F)
