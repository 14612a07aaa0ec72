// Products of matrices and vectors: cuBLAS for floats and complex numbers, a kernel for integers.
//
// cuBLAS stores by columns: the row-major out = a b is its out^T = b^T a^T. An operand needs one unit stride and a leading
// dimension that fits an int; any other is copied first.
#include <climits>
#include <cstring>

#include "cublas.hpp"
#include "driver.hpp"
#include "families.hpp"
#include "matmul_args.h"
#include "walk.hpp"

namespace pt_cuda {

Blas blas;
BlasSettings blas_settings;
int (*load_blas)(char *error);

namespace {

const Kernel INTEGERS = {"matmul", "matmul"};
enum { TILE = 16, WORKSPACE = 32 << 20 };
enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_TF32 = 77, NO_REDUCED_PRECISION = 16 };

struct Operand {
    const char *data = nullptr;
    int64_t row = 0, column = 0, batch = 0;
};
struct Product {
    int64_t batch = 1, n = 1, m = 1, k = 1;
    Operand a, b;
    double alpha[2] = {1, 0}, beta[2] = {0, 0};
    int64_t whole_alpha = 1, whole_beta = 0;
};

int blas_failed(pt_call *c, int status) {
    static const char *const names[] = {"success", "not initialized", "", "allocation failed", "", "", "", "invalid value",
                                        "architecture mismatch", "", "", "mapping error", "", "execution failed",
                                        "internal error", "not supported"};
    std::snprintf(c->error, sizeof(c->error), "cuBLAS: %s (status %d)", status > 0 && status < 16 ? names[status] : "failed",
                  status);
    return PT_RUNTIME_ERROR;
}

// A handle for each thread and device; its workspace belongs to the stream it was last used on.
struct Handles {
    void *handle[MAX_DEVICES] = {}, *workspace[MAX_DEVICES] = {}, *stream[MAX_DEVICES] = {};
};
thread_local Handles handles;

int handle_of(pt_call *c, int device, int math_mode, void **handle) {
    if (!blas.gemm) {
        int status = load_blas(c->error);
        if (status) return status;
    }
    Handles &h = handles;
    int status = 0, result = driver.set_device(device);
    if (result) return status_of(result, "matmul", c->error);
    const bool fresh = !h.handle[device];
    if (fresh) status = blas.create(&h.handle[device]);
    if (!status && (fresh || h.stream[device] != c->stream)) {
        status = blas.set_stream(h.handle[device], c->stream);
        // Workspaces are freed in the order of the stream that used them.
        if (h.workspace[device]) driver.release(h.workspace[device], WORKSPACE, device);
        h.workspace[device] = driver.allocate(WORKSPACE, device);
        if (!status && h.workspace[device]) status = blas.set_workspace(h.handle[device], h.workspace[device], WORKSPACE);
        h.stream[device] = c->stream;
    }
    if (!status) status = blas.set_math_mode(h.handle[device], math_mode);
    *handle = h.handle[device];
    return status ? blas_failed(c, status) : PT_OK;
}

bool fits(int64_t leading, int64_t length, int64_t count) { return count == 1 || (leading >= length && leading <= INT_MAX); }

// Whether cuBLAS can read an operand of rows x columns as it lies; `turned` if its rows are dense.
bool readable(const Operand &x, int64_t rows, int64_t columns, bool &turned, int &leading) {
    const bool by_rows = x.column == 1 || columns == 1;
    if (by_rows && fits(x.row, columns, rows)) {
        turned = false;
        leading = (int)(rows == 1 ? columns : x.row);
        return true;
    }
    const bool by_columns = x.row == 1 || rows == 1;
    if (by_columns && fits(x.column, rows, columns)) {
        turned = true;
        leading = (int)(columns == 1 ? rows : x.column);
        return true;
    }
    return false;
}

// An operand of batch x rows x columns that cuBLAS can read: as it lies, or copied.
class Readable {
public:
    Readable(pt_call *c, const Operand &x, int64_t batch, int64_t rows, int64_t columns, int dtype)
        : used(x), packed(c, needs(x, batch, rows, columns, dtype)) {
        good = true;
        if (readable(x, rows, columns, turned, leading)) return;
        if (batch * rows * columns == 0) {              // nothing is read
            turned = false, leading = (int)(columns < INT_MAX ? columns + 1 : columns);
            return;
        }
        const int64_t sizes[3] = {batch, rows, columns}, from[3] = {x.batch, x.row, x.column},
                      to[3] = {rows * columns, columns, 1};
        const pt_view &out = c->out[0];
        pt_view src = {const_cast<char *>(x.data), sizes, from, batch * rows * columns, 3, (uint8_t)dtype, 0, out.device, out.device_index};
        pt_view dst = {static_cast<char *>(packed.data), sizes, to, src.numel, 3, (uint8_t)dtype, 1, out.device, out.device_index};
        used = {dst.data, columns, 1, rows * columns};
        turned = false;
        leading = (int)columns;
        good = packed.data && columns <= INT_MAX && copy(c, &dst, &src) == PT_OK;
    }
    Operand used;
    bool turned, good;
    int leading;

private:
    static int64_t needs(const Operand &x, int64_t batch, int64_t rows, int64_t columns, int dtype) {
        bool t;
        int l;
        return readable(x, rows, columns, t, l) ? 0 : batch * rows * columns * item_size(dtype);
    }
    Scratch packed;
};

int by_blas(pt_call *c, const Product &p, int dtype) {
    const int64_t most = INT_MAX;
    if (p.n > most || p.m > most || p.k > most || p.batch > most)
        return failed(c, PT_RUNTIME_ERROR, "a dimension is larger than cuBLAS takes");
    int type, compute = COMPUTE_32F, mode = 0;
    switch (dtype) {
    case PT_FLOAT16: type = R_16F, mode = blas_settings.reduced_half ? 0 : NO_REDUCED_PRECISION; break;
    case PT_BFLOAT16: type = R_16BF, mode = blas_settings.reduced_bfloat16 ? 0 : NO_REDUCED_PRECISION; break;
    case PT_FLOAT32: type = R_32F, compute = blas_settings.tf32 ? COMPUTE_TF32 : COMPUTE_32F; break;
    case PT_FLOAT64: type = R_64F, compute = COMPUTE_64F; break;
    case PT_COMPLEX64: type = C_32F, compute = blas_settings.tf32 ? COMPUTE_TF32 : COMPUTE_32F; break;
    default: type = C_64F, compute = COMPUTE_64F; break;
    }
    const float alpha32[2] = {(float)p.alpha[0], (float)p.alpha[1]}, beta32[2] = {(float)p.beta[0], (float)p.beta[1]};
    const bool wide = dtype == PT_FLOAT64 || dtype == PT_COMPLEX128;
    const void *alpha = wide ? (const void *)p.alpha : alpha32, *beta = wide ? (const void *)p.beta : beta32;
    Readable a(c, p.a, p.batch, p.n, p.k, dtype), b(c, p.b, p.batch, p.k, p.m, dtype);
    if (!a.good || !b.good) return c->error[0] ? PT_RUNTIME_ERROR : failed(c, PT_MEMORY_ERROR, "no memory for an operand");
    void *handle;
    int status = handle_of(c, c->out[0].device_index, mode, &handle);
    if (status) return status;
    const int n = (int)p.n, m = (int)p.m, k = (int)p.k;
    if (p.batch == 1)
        status = blas.gemm(handle, b.turned, a.turned, m, n, k, alpha, b.used.data, type, b.leading, a.used.data, type,
                           a.leading, beta, c->out[0].data, type, m, compute, -1);
    else
        status = blas.gemm_batched(handle, b.turned, a.turned, m, n, k, alpha, b.used.data, type, b.leading, b.used.batch,
                                   a.used.data, type, a.leading, a.used.batch, beta, c->out[0].data, type, m,
                                   (long long)n * m, (int)p.batch, compute, -1);
    return status ? blas_failed(c, status) : PT_OK;
}

int by_kernel(pt_call *c, const Product &p, int dtype) {
    MatmulArgs g = {};
    g.out = c->out[0].data, g.a = p.a.data, g.b = p.b.data;
    g.n = p.n, g.m = p.m, g.k = p.k;
    g.a_row = p.a.row, g.a_column = p.a.column, g.b_row = p.b.row, g.b_column = p.b.column;
    g.alpha = p.whole_alpha, g.beta = p.whole_beta;
    const int item = item_size(dtype);
    // The grid's second and third dims end at 65535.
    for (int64_t z = 0; z < p.batch; z += 65535)
        for (int64_t y = 0; y < p.n; y += 65535 * TILE) {
            MatmulArgs part = g;
            const int64_t batches = p.batch - z < 65535 ? p.batch - z : 65535;
            part.a_batch = p.a.batch, part.b_batch = p.b.batch;
            part.a += (z * p.a.batch + y * p.a.row) * item, part.b += z * p.b.batch * item;
            part.out += (z * p.n + y) * p.m * item;
            part.n = p.n - y < (int64_t)65535 * TILE ? p.n - y : (int64_t)65535 * TILE;
            if (p.batch > 1 && part.n != p.n) return failed(c, PT_RUNTIME_ERROR, "a dimension is too large for integers");
            const Grid grid{(unsigned)((p.m + TILE - 1) / TILE), (unsigned)((part.n + TILE - 1) / TILE), (unsigned)batches};
            int status = launch(c, INTEGERS, types(dtype), grid, TILE * TILE, part);
            if (status) return status;
        }
    return PT_OK;
}

int multiply(pt_call *c, const Product &p) {
    const pt_view &out = c->out[0];
    const int dtype = out.dtype;
    for (int i = 0; i < c->nin; i++)
        if (c->in[i].dtype != dtype && c->in[i].dtype != PT_NONE)
            return failed(c, PT_RUNTIME_ERROR, "expected operands of one dtype");
    if (out.numel == 0) return PT_OK;
    const bool adds = p.beta[0] != 0 || p.beta[1] != 0 || p.whole_beta != 0;
    if (p.k == 0 && !adds) return clear(c, out.data, out.numel * item_size(dtype));
    return dtype >= PT_FLOAT16 ? by_blas(c, p, dtype) : by_kernel(c, p, dtype);
}

// out = x, seen as (n, m): dims of size 1 and missing ones are broadcast.
int start_from(pt_call *c, const pt_view &x, int64_t n, int64_t m) {
    int64_t row = 0, column = 0;
    if (x.ndim > 0 && x.sizes[x.ndim - 1] == m) column = x.strides[x.ndim - 1];
    if (x.ndim > 1 && x.sizes[x.ndim - 2] == n) row = x.strides[x.ndim - 2];
    const int64_t sizes[2] = {n, m}, from[2] = {n == 1 ? 0 : row, m == 1 ? 0 : column}, to[2] = {m, 1};
    const pt_view &out = c->out[0];
    pt_view src = {x.data, sizes, from, n * m, 2, x.dtype, 0, x.device, x.device_index};
    pt_view dst = {out.data, sizes, to, n * m, 2, out.dtype, 1, out.device, out.device_index};
    return copy(c, &dst, &src);
}

Operand operand_of(const pt_view &v) {
    const int d = v.ndim;
    return {v.data, v.strides[d - 2], v.strides[d - 1], d > 2 ? v.strides[0] : 0};
}

int mismatch(pt_call *c) { return failed(c, PT_RUNTIME_ERROR, "shapes cannot be multiplied"); }

int product_of(pt_call *c, int ia, int ib, int ndim, Product &p) {
    const pt_view &a = c->in[ia], &b = c->in[ib];
    if (a.ndim != ndim || b.ndim != ndim || a.sizes[ndim - 1] != b.sizes[ndim - 2] || (ndim == 3 && a.sizes[0] != b.sizes[0]))
        return mismatch(c);
    p.a = operand_of(a), p.b = operand_of(b);
    p.batch = ndim == 3 ? a.sizes[0] : 1;
    p.n = a.sizes[ndim - 2], p.k = a.sizes[ndim - 1], p.m = b.sizes[ndim - 1];
    return PT_OK;
}

int mm(pt_call *c) {
    Product p;
    int status = product_of(c, 0, 1, 2, p);
    return status ? status : multiply(c, p);
}

int bmm(pt_call *c) {
    Product p;
    int status = product_of(c, 0, 1, 3, p);
    return status ? status : multiply(c, p);
}

int addmm(pt_call *c) {
    Product p;
    int status = product_of(c, 1, 2, 2, p);
    if (status) return status;
    const pt_param &beta = c->params[0], &alpha = c->params[1];
    p.alpha[0] = alpha.d, p.alpha[1] = alpha.im, p.whole_alpha = alpha.i;
    p.beta[0] = beta.d, p.beta[1] = beta.im, p.whole_beta = beta.i;
    if (c->out[0].numel && (p.beta[0] != 0 || p.beta[1] != 0)) status = start_from(c, c->in[0], p.n, p.m);
    return status ? status : multiply(c, p);
}

int mv(pt_call *c) {
    const pt_view &a = c->in[0], &b = c->in[1];
    if (a.ndim != 2 || b.ndim != 1 || a.sizes[1] != b.sizes[0]) return mismatch(c);
    Product p;
    p.a = operand_of(a), p.b = {b.data, b.strides[0], 0, 0};
    p.n = a.sizes[0], p.k = a.sizes[1];
    return multiply(c, p);
}

int dot(pt_call *c) {
    const pt_view &x = c->in[0], &y = c->in[1];
    if (x.ndim != 1 || y.ndim != 1 || x.sizes[0] != y.sizes[0]) return mismatch(c);
    Product p;
    p.a = {x.data, 0, x.strides[0], 0}, p.b = {y.data, y.strides[0], 0, 0};
    p.k = x.sizes[0];
    return multiply(c, p);
}

int linear(pt_call *c) {
    const pt_view &x = c->in[0], &w = c->in[1], &bias = c->in[2];
    const bool vector = w.ndim == 1;                    // one output feature, whose dimension is dropped
    Product p;
    p.k = w.sizes[w.ndim - 1], p.m = vector ? 1 : w.sizes[0];
    if (w.ndim > 2 || x.ndim == 0 || x.sizes[x.ndim - 1] != p.k) return mismatch(c);
    if (bias.dtype != PT_NONE && (bias.ndim != w.ndim - 1 || bias.numel != p.m)) return mismatch(c);
    p.n = p.k ? x.numel / p.k : c->out[0].numel / (p.m ? p.m : 1);
    p.b = {w.data, w.strides[w.ndim - 1], vector ? 0 : w.strides[0], 0};
    bool even = true;                                   // one stride leads through all rows
    for (int d = 0; d + 2 < x.ndim; d++) even = even && x.strides[d] == x.strides[d + 1] * x.sizes[d + 1];
    Contiguous dense(c, x.ndim <= 2 || even ? pt_view{x.data, x.sizes, x.strides, x.numel, x.ndim, x.dtype, 1, x.device, x.device_index} : x);
    if (!dense.ok()) return PT_MEMORY_ERROR;
    const pt_view &rows = dense.view;
    p.a = {rows.data, rows.ndim > 1 ? rows.strides[rows.ndim - 2] : 0, rows.strides[rows.ndim - 1], 0};
    if (bias.dtype != PT_NONE && c->out[0].numel) {
        const int64_t one[1] = {p.m}, step[1] = {bias.ndim ? bias.strides[0] : 0};
        pt_view flat = {bias.data, one, step, p.m, 1, bias.dtype, 0, bias.device, bias.device_index};
        int status = start_from(c, flat, p.n, p.m);
        if (status) return status;
        p.beta[0] = 1, p.whole_beta = 1;
    }
    return multiply(c, p);
}

}  // namespace

const pt_kernel_entry matmul_kernels[] = {{"mm", mm}, {"bmm", bmm}, {"addmm", addmm}, {"linear", linear}, {"mv", mv},
                                          {"dot", dot}, {nullptr, nullptr}};

}  // namespace pt_cuda
