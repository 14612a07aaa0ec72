// Matrix products as plain loops, for the stand-ins of cuBLAS and cuBLASLt.
//
// Matrices are column-major; op(A) is m by k, op(B) k by n. Products are summed in float for the
// 16-bit and 32-bit types and in double for the 64-bit ones, in rising order of k. alpha and beta
// lie in host memory and are read at the call; beta = 0 never reads C.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <vector>

#include "ptcore/half.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    INVALID_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15
};
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum {
    COMPUTE_16F = 64,
    COMPUTE_16F_PEDANTIC = 65,
    COMPUTE_32F = 68,
    COMPUTE_64F = 70,
    COMPUTE_64F_PEDANTIC = 71,
    COMPUTE_32F_PEDANTIC = 69,
    COMPUTE_32F_FAST_16F = 74,
    COMPUTE_32F_FAST_16BF = 75,
    COMPUTE_32F_FAST_TF32 = 77
};

// How the handles of both libraries begin: cuBLASLt takes a handle of cuBLAS.
const uint32_t HANDLE = 0x6c74;

typedef int (*Enqueue)(void *stream, const char *name, void (*f)(void *), void *argument,
                       void (*release)(void *));
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

// One operand: type, leading dimension, whether it is transposed; and where the matrices of a batch
// are.
struct Operand {
    char *data = nullptr;
    int type = 0;
    int64_t lead = 0, stride = 0;
    void *const *table = nullptr;       // in device memory
    bool transposed = false, conjugate = false;
    char *at(int64_t i, int64_t item) const {
        return table ? (char *)table[i] : data + i * stride * item;
    }
};

// What cuBLASLt does to alpha op(A) op(B) + beta C before it is stored: a bias per row, then an
// activation, whose argument `aux` keeps.
struct Epilogue {
    bool relu = false, gelu = false;
    Operand bias, aux;          // their data is NULL where there is none
};

struct Product {
    const char *name;
    int64_t m, n, k, batch;
    Operand a, b, c;
    int compute;
    std::complex<double> alpha, beta;
    Operand out;                // C itself, unless cuBLASLt is given another matrix
    Epilogue epilogue;
    void *workspace;            // the library writes over what it is given
    size_t workspace_bytes;
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
template <class S> inline void narrow(std::complex<double> x, std::complex<S> *r) {
    *r = std::complex<S>(x);
}

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

template <class S> S finished(const Epilogue &e, S v, int64_t i, int64_t row, int64_t column) {
    if (e.bias.data) {
        const char *p = e.bias.at(i, e.bias.type == R_64F ? 8 : e.bias.type == R_32F ? 4 : 2);
        switch (e.bias.type) {
        case R_64F: v += (S)((const double *)p)[row]; break;
        case R_32F: v += ((const float *)p)[row]; break;
        case R_16F: v += load((const pt::half *)p + row); break;
        default: v += load((const pt::bfloat16 *)p + row);
        }
    }
    if (e.aux.data) {
        char *p = e.aux.at(i, e.aux.type == R_32F ? 4 : 2);
        const int64_t at = column * e.aux.lead + row;
        if (e.aux.type == R_32F) ((float *)p)[at] = (float)v;
        else if (e.aux.type == R_16F) store((pt::half *)p + at, (float)v);
        else store((pt::bfloat16 *)p + at, (float)v);
    }
    if (e.relu) v = v > 0 || v != v ? v : 0;
    if (e.gelu)
        v = S(0.5) * v * (1 + std::tanh(S(0.7978845608028654) * (v + S(0.044715) * v * v * v)));
    return v;
}
template <class S> std::complex<S> finished(const Epilogue &, std::complex<S> v, int64_t, int64_t,
                                            int64_t) {
    return v;
}

template <class T, class C, class S> void multiply(const Product &d) {
    std::vector<S> a, b, column((size_t)d.m);
    S alpha, beta;
    narrow(d.alpha, &alpha);
    narrow(d.beta, &beta);
    for (int64_t i = 0; i < d.batch; i++) {
        pack<T>(d.a, i, d.m, d.k, a);
        pack<T>(d.b, i, d.k, d.n, b);
        const C *c = (const C *)d.c.at(i, sizeof(C));
        C *out = (C *)d.out.at(i, sizeof(C));
        for (int64_t j = 0; j < d.n; j++) {
            for (int64_t r = 0; r < d.m; r++) column[(size_t)r] = S(0);
            for (int64_t p = 0; p < d.k; p++) {
                const S y = b[(size_t)(j * d.k + p)];
                const S *x = a.data() + p * d.m;
                for (int64_t r = 0; r < d.m; r++) column[(size_t)r] += times(x[r], y);
            }
            for (int64_t r = 0; r < d.m; r++) {
                S v = times(alpha, column[(size_t)r]);
                if (beta != S(0)) v += times(beta, S(load(c + j * d.c.lead + r)));
                store(out + j * d.out.lead + r, finished(d.epilogue, v, i, r, j));
            }
        }
    }
}

typedef void (*Run)(const Product &);
Run run_of(const Product &d) {
    const int t = d.a.type, c = d.c.type;
    switch (d.compute) {
    case COMPUTE_32F:
    case COMPUTE_32F_PEDANTIC:
    case COMPUTE_32F_FAST_16F:
    case COMPUTE_32F_FAST_16BF:
    case COMPUTE_32F_FAST_TF32:
        if (t == R_32F && c == R_32F) return multiply<float, float, float>;
        if (t == C_32F && c == C_32F)
            return multiply<std::complex<float>, std::complex<float>, std::complex<float>>;
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
    default:
        return d.c.type == C_32F ? std::complex<double>(*(const std::complex<float> *)p)
                                 : *(const float *)p;
    }
}

// What tests ask of a library: the compute type of the last product; cuBLAS's math mode or the
// reduction schemes allowed to cuBLASLt; how often a handle was made, and cuBLASLt's heuristic
// asked.
struct Report {
    int compute = -1, precision = -1, handles = 0, heuristics = 0;
};
Report report;

struct Queued {
    Product product;
    Run run;
};

// In the stream's order.
int start(const Product &d, Run run, void *stream) {
    auto release = [](void *p) { delete (Queued *)p; };
    auto work = [](void *p) {
        const Product &d = ((Queued *)p)->product;
        if (d.workspace) memset(d.workspace, 0xff, d.workspace_bytes);
        ((Queued *)p)->run(d);
    };
    report.compute = d.compute;
    return driver().enqueue(stream, d.name, work, new Queued{d, run}, release) ? EXECUTION_FAILED
                                                                               : SUCCESS;
}

}  // namespace

API void standin_report(int *four) { memcpy(four, &report, sizeof(report)); }
