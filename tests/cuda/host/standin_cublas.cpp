// A stand-in for libcublas: matrix products as plain loops, queued on the stand-in driver's streams.
//
// Matrices are column-major, as cuBLAS has them; op(A) is m by k, op(B) k by n. Products are summed in float for the 16-bit
// and 32-bit types and in double for the 64-bit ones, in rising order of k. alpha and beta lie in host memory and are read
// at the call; beta = 0 never reads C. Arguments are refused with cuBLAS's statuses.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "ptcore/half.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_16F = 64, COMPUTE_16F_PEDANTIC = 65, COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_64F_PEDANTIC = 71,
       COMPUTE_32F_PEDANTIC = 69, COMPUTE_32F_FAST_16F = 74, COMPUTE_32F_FAST_16BF = 75, COMPUTE_32F_FAST_TF32 = 77 };

typedef int (*Enqueue)(void *stream, const char *name, void (*f)(void *), void *argument, void (*release)(void *));
typedef int (*GetContext)(void **);

struct Driver {
    Enqueue enqueue = nullptr;
    GetContext current = nullptr;
    Driver() {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!cuda) return;
        enqueue = (Enqueue)dlsym(cuda, "standin_enqueue");
        current = (GetContext)dlsym(cuda, "cuCtxGetCurrent");
    }
};
const Driver &driver() {
    static const Driver d;
    return d;
}

struct Handle {
    void *context = nullptr, *stream = nullptr, *workspace = nullptr;
    size_t workspace_bytes = 0;
    int math = 0, pointers = 0, atomics = 0;
};
std::set<void *> &handles() {
    static std::set<void *> h;
    return h;
}
std::mutex lock;
Handle *handle_of(void *h) {
    std::lock_guard<std::mutex> guard(lock);
    return handles().count(h) ? (Handle *)h : nullptr;
}

// One operand: type, leading dimension, whether it is transposed; and where the matrices of a batch are.
struct Operand {
    char *data = nullptr;
    int type = 0;
    int64_t lead = 0, stride = 0;
    void *const *table = nullptr;       // in device memory
    bool transposed = false, conjugate = false;
    char *at(int64_t i, int64_t item) const { return table ? (char *)table[i] : data + i * stride * item; }
};

struct Product {
    const char *name;
    int64_t m, n, k, batch;
    Operand a, b, c;
    int compute;
    std::complex<double> alpha, beta;
};

inline float load(const pt::half *p) { return pt::to_float(*p); }
inline float load(const pt::bfloat16 *p) { return pt::to_float(*p); }
template <class T> inline T load(const T *p) { return *p; }
inline void store(pt::half *p, float x) { *p = pt::to_half(x); }
inline void store(pt::bfloat16 *p, float x) { *p = pt::to_bfloat16(x); }
template <class T> inline void store(T *p, T x) { *p = x; }
template <class T> inline T conjugated(T x) { return x; }
template <class T> inline std::complex<T> conjugated(std::complex<T> x) { return std::conj(x); }
template <class T> inline T times(T x, T y) { return x * y; }
template <class T> inline std::complex<T> times(std::complex<T> x, std::complex<T> y) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
template <class S> inline void narrow(std::complex<double> x, S *r) { *r = S(x.real()); }
template <class S> inline void narrow(std::complex<double> x, std::complex<S> *r) { *r = std::complex<S>(x); }

// op(X), `rows` by `columns`, into `out` whose columns follow each other.
template <class T, class S>
void pack(const Operand &x, int64_t i, int64_t rows, int64_t columns, std::vector<S> &out) {
    const T *p = (const T *)x.at(i, sizeof(T));
    out.resize((size_t)(rows * columns));
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++) {
            S v = load(x.transposed ? p + r * x.lead + c : p + c * x.lead + r);
            out[(size_t)(c * rows + r)] = x.conjugate ? conjugated(v) : v;
        }
}

template <class T, class C, class S> void multiply(const Product &d) {
    std::vector<S> a, b, column((size_t)d.m);
    S alpha, beta;
    narrow(d.alpha, &alpha);
    narrow(d.beta, &beta);
    for (int64_t i = 0; i < d.batch; i++) {
        pack<T>(d.a, i, d.m, d.k, a);
        pack<T>(d.b, i, d.k, d.n, b);
        C *c = (C *)d.c.at(i, sizeof(C));
        for (int64_t j = 0; j < d.n; j++) {
            for (int64_t r = 0; r < d.m; r++) column[(size_t)r] = S(0);
            for (int64_t p = 0; p < d.k; p++) {
                const S y = b[(size_t)(j * d.k + p)];
                const S *x = a.data() + p * d.m;
                for (int64_t r = 0; r < d.m; r++) column[(size_t)r] += times(x[r], y);
            }
            C *out = c + j * d.c.lead;
            for (int64_t r = 0; r < d.m; r++) {
                S v = times(alpha, column[(size_t)r]);
                if (beta != S(0)) v += times(beta, S(load(out + r)));
                store(out + r, v);
            }
        }
    }
}

typedef void (*Run)(const Product &);
Run run_of(const Product &d) {
    const int t = d.a.type, c = d.c.type;
    switch (d.compute) {
    case COMPUTE_32F: case COMPUTE_32F_PEDANTIC: case COMPUTE_32F_FAST_16F: case COMPUTE_32F_FAST_16BF:
    case COMPUTE_32F_FAST_TF32:
        if (t == R_32F && c == R_32F) return multiply<float, float, float>;
        if (t == C_32F && c == C_32F) return multiply<std::complex<float>, std::complex<float>, std::complex<float>>;
        if (d.compute != COMPUTE_32F && d.compute != COMPUTE_32F_PEDANTIC) return nullptr;
        if (t == R_16F && c == R_16F) return multiply<pt::half, pt::half, float>;
        if (t == R_16F && c == R_32F) return multiply<pt::half, float, float>;
        if (t == R_16BF && c == R_16BF) return multiply<pt::bfloat16, pt::bfloat16, float>;
        if (t == R_16BF && c == R_32F) return multiply<pt::bfloat16, float, float>;
        return nullptr;
    case COMPUTE_64F: case COMPUTE_64F_PEDANTIC:
        if (t == R_64F && c == R_64F) return multiply<double, double, double>;
        if (t == C_64F && c == C_64F)
            return multiply<std::complex<double>, std::complex<double>, std::complex<double>>;
        return nullptr;
    case COMPUTE_16F: case COMPUTE_16F_PEDANTIC:
        return t == R_16F && c == R_16F ? multiply<pt::half, pt::half, float> : nullptr;
    default: return nullptr;
    }
}

std::complex<double> scalar(const void *p, const Product &d) {
    switch (d.compute) {
    case COMPUTE_64F: case COMPUTE_64F_PEDANTIC:
        return d.c.type == C_64F ? *(const std::complex<double> *)p : *(const double *)p;
    case COMPUTE_16F: case COMPUTE_16F_PEDANTIC: return pt::to_float(*(const pt::half *)p);
    default: return d.c.type == C_32F ? std::complex<double>(*(const std::complex<float> *)p) : *(const float *)p;
    }
}

struct Queued {
    Product product;
    Run run;
};

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
    auto release = [](void *p) { delete (Queued *)p; };
    auto start = [](void *p) { ((Queued *)p)->run(((Queued *)p)->product); };
    return driver().enqueue(handle->stream, d.name, start, new Queued{d, run}, release) ? EXECUTION_FAILED : SUCCESS;
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
                                        operand(c, ct, lc), compute, {}, {}}, alpha, beta); \
    } \
    API int cublasGemmStridedBatchedEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                               const void *a, int at, I la, long long sa, const void *b, int bt, I lb, \
                                               long long sb, const void *beta, void *c, int ct, I lc, long long sc, \
                                               I batch, int compute, int) { \
        return queue(h, ta, tb, Product{"cublasGemmStridedBatchedEx", m, n, k, batch, operand(a, at, la, sa), \
                                        operand(b, bt, lb, sb), operand(c, ct, lc, sc), compute, {}, {}}, alpha, beta); \
    } \
    API int cublasGemmBatchedEx##suffix(void *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                        const void *const *a, int at, I la, const void *const *b, int bt, I lb, \
                                        const void *beta, void *const *c, int ct, I lc, I batch, int compute, int) { \
        return queue(h, ta, tb, Product{"cublasGemmBatchedEx", m, n, k, batch, operand_table(a, at, la), \
                                        operand_table(b, bt, lb), operand_table((const void *const *)c, ct, lc), \
                                        compute, {}, {}}, alpha, beta); \
    }
GEMM_EX(, int)
GEMM_EX(_64, int64_t)

#define GEMM(X, T, type, compute) \
    API int cublas##X##gemm_v2(void *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, int la, \
                               const T *b, int lb, const T *beta, T *c, int lc) { \
        return queue(h, ta, tb, Product{"cublas" #X "gemm", m, n, k, 1, operand(a, type, la), operand(b, type, lb), \
                                        operand(c, type, lc), compute, {}, {}}, alpha, beta); \
    } \
    API int cublas##X##gemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a, \
                                          int la, long long sa, const T *b, int lb, long long sb, const T *beta, T *c, \
                                          int lc, long long sc, int batch) { \
        return queue(h, ta, tb, Product{"cublas" #X "gemmStridedBatched", m, n, k, batch, operand(a, type, la, sa), \
                                        operand(b, type, lb, sb), operand(c, type, lc, sc), compute, {}, {}}, alpha, \
                     beta); \
    } \
    API int cublas##X##gemmBatched(void *h, int ta, int tb, int m, int n, int k, const T *alpha, const T *const *a, \
                                   int la, const T *const *b, int lb, const T *beta, T *const *c, int lc, int batch) { \
        return queue(h, ta, tb, Product{"cublas" #X "gemmBatched", m, n, k, batch, \
                                        operand_table((const void *const *)a, type, la), \
                                        operand_table((const void *const *)b, type, lb), \
                                        operand_table((const void *const *)c, type, lc), compute, {}, {}}, alpha, beta); \
    }
GEMM(S, float, R_32F, COMPUTE_32F)
GEMM(D, double, R_64F, COMPUTE_64F)
GEMM(C, std::complex<float>, C_32F, COMPUTE_32F)
GEMM(Z, std::complex<double>, C_64F, COMPUTE_64F)
