// A stand-in for libcublasLt: cublasLtMatmul with its descriptors, over the loops of
// standin_gemm.hpp.
//
// Column-major matrices, strided batches, host alpha and beta, and the epilogues BIAS, RELU, GELU
// (the tanh form, as cuBLASLt's is) with or without BIAS, GELU also with AUX. For anything else the
// heuristic finds no algorithm (CUBLAS_STATUS_NOT_SUPPORTED), as the library says it. An algorithm
// needs the alignment that its preference promised, and half of the workspace that it allowed.
#include "standin_gemm.hpp"

namespace {

enum {
    EPILOGUE_DEFAULT = 1,
    EPILOGUE_RELU = 2,
    EPILOGUE_BIAS = 4,
    EPILOGUE_RELU_BIAS = 6,
    EPILOGUE_GELU = 32,
    EPILOGUE_GELU_BIAS = 36,
    EPILOGUE_GELU_AUX = 160,
    EPILOGUE_GELU_AUX_BIAS = 164
};
const uint32_t MATMUL = 0x6d6d, LAYOUT = 0x6c61, PREFERENCE = 0x7072;

struct Handle {
    uint32_t kind = HANDLE;
};
struct Matmul {
    uint32_t kind = MATMUL;
    int compute = 0, scale = 0, pointers = 0, ta = 0, tb = 0, epilogue = EPILOGUE_DEFAULT,
        bias_type = -1, aux_type = -1;
    void *bias = nullptr, *aux = nullptr;
    int64_t bias_stride = 0, aux_lead = 0, aux_stride = 0;
    int multiprocessors = 0;
    signed char fast = 0;
};
struct Layout {
    uint32_t kind = LAYOUT;
    int type = 0, order = 0, batch = 1;
    uint64_t rows = 0, columns = 0;
    int64_t lead = 0, stride = 0;
};
struct Preference {
    uint32_t kind = PREFERENCE;
    uint32_t search = 0;
    uint64_t workspace = 0;
    uint32_t reductions = 0xffffffffu, alignment[4] = {256, 256, 256, 256};
};
struct Algorithm {              // cublasLtMatmulAlgo_t
    uint64_t data[8];
};
struct Heuristic {              // cublasLtMatmulHeuristicResult_t
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

int declined = 0;               // a test's: the status of every heuristic

template <class T> T *known(void *p, uint32_t kind) {
    return p && *(uint32_t *)p == kind ? (T *)p : nullptr;
}

// A field that an attribute sets or gets; `bytes` is its size in the interface.
struct Field {
    int attribute;
    void *at;
    size_t bytes;
};
int set(const Field *fields, size_t n, int attribute, const void *value, size_t bytes) {
    for (size_t i = 0; i < n; i++)
        if (fields[i].attribute == attribute) {
            if (!value || bytes != fields[i].bytes) return INVALID_VALUE;
            memcpy(fields[i].at, value, bytes);
            return SUCCESS;
        }
    return INVALID_VALUE;
}
int get(const Field *fields, size_t n, int attribute, void *value, size_t bytes, size_t *written) {
    for (size_t i = 0; i < n; i++)
        if (fields[i].attribute == attribute) {
            if (written) *written = fields[i].bytes;
            if (!bytes && written) return SUCCESS;
            if (!value || bytes != fields[i].bytes) return INVALID_VALUE;
            memcpy(value, fields[i].at, bytes);
            return SUCCESS;
        }
    return INVALID_VALUE;
}
#define MATMUL_FIELDS(d)                                                               \
    const Field fields[] = {                                                           \
        {0, &d->compute, 4},   {1, &d->scale, 4},        {2, &d->pointers, 4},         \
        {3, &d->ta, 4},        {4, &d->tb, 4},           {7, &d->epilogue, 4},         \
        {8, &d->bias, 8},      {10, &d->bias_stride, 8}, {11, &d->aux, 8},             \
        {12, &d->aux_lead, 8}, {13, &d->aux_stride, 8},  {15, &d->multiprocessors, 4}, \
        {25, &d->fast, 1},     {22, &d->aux_type, 4},    {26, &d->bias_type, 4}}
#define LAYOUT_FIELDS(d)                                                               \
    const Field fields[] = {{0, &d->type, 4},    {1, &d->order, 4}, {2, &d->rows, 8},  \
                            {3, &d->columns, 8}, {4, &d->lead, 8},  {5, &d->batch, 4}, \
                            {6, &d->stride, 8}}
#define PREFERENCE_FIELDS(d)                                                    \
    const Field fields[] = {{0, &d->search, 4},       {1, &d->workspace, 8},    \
                            {3, &d->reductions, 4},   {5, &d->alignment[0], 4}, \
                            {6, &d->alignment[1], 4}, {7, &d->alignment[2], 4}, \
                            {8, &d->alignment[3], 4}}
#define COUNT(fields) (sizeof(fields) / sizeof(fields[0]))

bool plain_real(int type) { return type == R_16F || type == R_16BF || type == R_32F; }

// Whether a pointer is as aligned as an algorithm needs it.
bool aligned(const void *p, uint64_t to) { return (uintptr_t)p % to == 0; }

Operand operand(const void *data, const Layout &l) {
    Operand o;
    o.data = (char *)const_cast<void *>(data);
    o.type = l.type;
    o.lead = l.lead;
    o.stride = l.stride;
    return o;
}

// The product that descriptors ask for, without data; a status.
int describe(const Matmul &d, const Layout &a, const Layout &b, const Layout &c, const Layout &out,
             Product *p) {
    if (d.ta < 0 || d.ta > 2 || d.tb < 0 || d.tb > 2) return INVALID_VALUE;
    p->name = "cublasLtMatmul";
    p->m = (int64_t)out.rows;
    p->n = (int64_t)out.columns;
    p->k = (int64_t)(d.ta ? a.rows : a.columns);
    p->batch = out.batch;
    p->compute = d.compute;
    if ((int64_t)(d.ta ? a.columns : a.rows) != p->m ||
        (int64_t)(d.tb ? b.columns : b.rows) != p->k ||
        (int64_t)(d.tb ? b.rows : b.columns) != p->n || c.rows != out.rows ||
        c.columns != out.columns)
        return INVALID_VALUE;
    for (const Layout *l : {&a, &b, &c, &out}) {
        if (l->lead < (int64_t)l->rows || l->batch < 1) return INVALID_VALUE;
        if (l->order) return NOT_SUPPORTED;
        if (l->batch != out.batch) return INVALID_VALUE;
    }
    if (c.type != out.type || a.type != b.type || d.pointers) return NOT_SUPPORTED;
    p->a = operand(nullptr, a);
    p->b = operand(nullptr, b);
    p->c = operand(nullptr, c);
    p->out = operand(nullptr, out);
    p->a.transposed = d.ta != 0;
    p->a.conjugate = d.ta == 2;
    p->b.transposed = d.tb != 0;
    p->b.conjugate = d.tb == 2;
    Epilogue &e = p->epilogue;
    bool bias = false, aux = false;
    switch (d.epilogue) {
    case EPILOGUE_DEFAULT: break;
    case EPILOGUE_RELU: e.relu = true; break;
    case EPILOGUE_BIAS: bias = true; break;
    case EPILOGUE_RELU_BIAS: e.relu = bias = true; break;
    case EPILOGUE_GELU: e.gelu = true; break;
    case EPILOGUE_GELU_BIAS: e.gelu = bias = true; break;
    case EPILOGUE_GELU_AUX: e.gelu = aux = true; break;
    case EPILOGUE_GELU_AUX_BIAS: e.gelu = aux = bias = true; break;
    default: return NOT_SUPPORTED;
    }
    if ((aux || e.relu || e.gelu) && !plain_real(out.type)) return NOT_SUPPORTED;
    if (bias && !plain_real(out.type) && out.type != R_64F) return NOT_SUPPORTED;
    if (bias) {
        e.bias.data = (char *)d.bias;
        e.bias.type = d.bias_type >= 0 ? d.bias_type : out.type;
        e.bias.stride = d.bias_stride;
        if (e.bias.type != out.type && e.bias.type != a.type) return NOT_SUPPORTED;
    }
    if (aux) {
        e.aux.data = (char *)d.aux;
        e.aux.type = d.aux_type >= 0 ? d.aux_type : out.type;
        e.aux.lead = d.aux_lead;
        e.aux.stride = d.aux_stride;
        if (e.aux.type != out.type || d.aux_lead < p->m) return INVALID_VALUE;
    }
    return run_of(*p) ? SUCCESS : NOT_SUPPORTED;
}

template <class T> int create(void **out, const T &value) {
    if (!out) return INVALID_VALUE;
    *out = new T(value);
    return SUCCESS;
}
template <class T> int destroy(void *p, uint32_t kind) {
    T *t = known<T>(p, kind);
    if (!t) return INVALID_VALUE;
    t->kind = 0;
    delete t;
    return SUCCESS;
}

}  // namespace

API void standin_decline(int status) { declined = status; }

API size_t cublasLtGetVersion() { return 130000; }
API size_t cublasLtGetCudartVersion() { return 13000; }
API const char *cublasLtGetStatusName(int status) {
    return status ? "CUBLAS_STATUS_ERROR" : "CUBLAS_STATUS_SUCCESS";
}
API const char *cublasLtGetStatusString(int status) { return cublasLtGetStatusName(status); }
API int cublasLtCreate(void **out) {
    void *context = nullptr;
    if (!driver().enqueue || driver().current(&context) || !context) return NOT_INITIALIZED;
    return create(out, Handle());
}
API int cublasLtDestroy(void *h) { return destroy<Handle>(h, HANDLE); }

API int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    Matmul d;
    d.compute = compute;
    d.scale = scale;
    return create(out, d);
}
API int cublasLtMatmulDescDestroy(void *p) { return destroy<Matmul>(p, MATMUL); }
API int cublasLtMatmulDescSetAttribute(void *p, int attribute, const void *value, size_t bytes) {
    Matmul *d = known<Matmul>(p, MATMUL);
    if (!d) return INVALID_VALUE;
    MATMUL_FIELDS(d);
    return set(fields, COUNT(fields), attribute, value, bytes);
}
API int cublasLtMatmulDescGetAttribute(void *p, int attribute, void *value, size_t bytes,
                                       size_t *written) {
    Matmul *d = known<Matmul>(p, MATMUL);
    if (!d) return INVALID_VALUE;
    MATMUL_FIELDS(d);
    return get(fields, COUNT(fields), attribute, value, bytes, written);
}

API int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns,
                                   int64_t lead) {
    Layout l;
    l.type = type;
    l.rows = rows;
    l.columns = columns;
    l.lead = lead;
    return create(out, l);
}
API int cublasLtMatrixLayoutDestroy(void *p) { return destroy<Layout>(p, LAYOUT); }
API int cublasLtMatrixLayoutSetAttribute(void *p, int attribute, const void *value, size_t bytes) {
    Layout *d = known<Layout>(p, LAYOUT);
    if (!d) return INVALID_VALUE;
    LAYOUT_FIELDS(d);
    return set(fields, COUNT(fields), attribute, value, bytes);
}
API int cublasLtMatrixLayoutGetAttribute(void *p, int attribute, void *value, size_t bytes,
                                         size_t *written) {
    Layout *d = known<Layout>(p, LAYOUT);
    if (!d) return INVALID_VALUE;
    LAYOUT_FIELDS(d);
    return get(fields, COUNT(fields), attribute, value, bytes, written);
}

API int cublasLtMatmulPreferenceCreate(void **out) { return create(out, Preference()); }
API int cublasLtMatmulPreferenceDestroy(void *p) { return destroy<Preference>(p, PREFERENCE); }
API int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value,
                                             size_t bytes) {
    Preference *d = known<Preference>(p, PREFERENCE);
    if (!d) return INVALID_VALUE;
    PREFERENCE_FIELDS(d);
    return set(fields, COUNT(fields), attribute, value, bytes);
}

API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *matmul, void *a, void *b, void *c,
                                       void *out, void *preference, int wanted, Heuristic *results,
                                       int *found) {
    if (!known<Handle>(handle, HANDLE)) return NOT_INITIALIZED;
    const Matmul *d = known<Matmul>(matmul, MATMUL);
    const Layout *la = known<Layout>(a, LAYOUT), *lb = known<Layout>(b, LAYOUT),
                 *lc = known<Layout>(c, LAYOUT), *lo = known<Layout>(out, LAYOUT);
    const Preference *wish = known<Preference>(preference, PREFERENCE);
    if (!d || !la || !lb || !lc || !lo || !wish || wanted < 1 || !results || !found)
        return INVALID_VALUE;
    Product p = {};
    *found = 0;
    report.heuristics++;
    report.precision = (int)wish->reductions;
    const int status = declined ? declined : describe(*d, *la, *lb, *lc, *lo, &p);
    if (status) return status;
    results[0] = Heuristic{};
    results[0].algorithm.data[0] = MATMUL;
    for (int i = 0; i < 4; i++) results[0].algorithm.data[1 + i] = wish->alignment[i];
    results[0].algorithm.data[5] = results[0].workspace = (size_t)wish->workspace / 2;
    results[0].algorithm.data[6] = (uintptr_t)d->bias & (~(uintptr_t)d->bias + 1);
    results[0].waves = 1;
    *found = 1;
    return SUCCESS;
}

API int cublasLtMatmul(void *handle, void *matmul, const void *alpha, const void *a, void *layout_a,
                       const void *b, void *layout_b, const void *beta, const void *c,
                       void *layout_c, void *out, void *layout_out, const Algorithm *algorithm,
                       void *workspace, size_t workspace_bytes, void *stream) {
    if (!known<Handle>(handle, HANDLE)) return NOT_INITIALIZED;
    const Matmul *d = known<Matmul>(matmul, MATMUL);
    const Layout *la = known<Layout>(layout_a, LAYOUT), *lb = known<Layout>(layout_b, LAYOUT),
                 *lc = known<Layout>(layout_c, LAYOUT), *lo = known<Layout>(layout_out, LAYOUT);
    if (!d || !la || !lb || !lc || !lo || !alpha || !beta || !a || !b || !out) return INVALID_VALUE;
    if (algorithm) {
        const uint64_t *need = algorithm->data;
        if (need[0] != MATMUL || need[5] > workspace_bytes ||
            (need[5] && (!workspace || !aligned(workspace, 256))))
            return INVALID_VALUE;
        if (!aligned(a, need[1]) || !aligned(b, need[2]) || !aligned(c, need[3]) ||
            !aligned(out, need[4]) || (need[6] && !aligned(d->bias, need[6])))
            return INVALID_VALUE;
    }
    Product p = {};
    const int status = describe(*d, *la, *lb, *lc, *lo, &p);
    if (status) return status;
    p.a.data = (char *)const_cast<void *>(a);
    p.b.data = (char *)const_cast<void *>(b);
    p.c.data = (char *)const_cast<void *>(c);
    p.out.data = (char *)out;
    p.alpha = scalar(alpha, p);
    p.beta = scalar(beta, p);
    p.workspace = workspace;
    p.workspace_bytes = algorithm ? std::min((size_t)algorithm->data[5], (size_t)4096) : 0;
    if (!c && p.beta != 0.0) return INVALID_VALUE;
    const bool bias = d->epilogue & EPILOGUE_BIAS, aux = d->epilogue & 128;
    if ((bias && !d->bias) || (aux && !d->aux)) return INVALID_VALUE;
    return start(p, run_of(p), stream);
}
