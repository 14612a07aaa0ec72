// Products of matrices and vectors: cuBLAS for floats and complex numbers, a kernel for integers.
//
// cuBLAS stores by columns: the row-major out = a b is its out^T = b^T a^T. An operand needs one
// unit stride and a leading dimension that fits an int; any other is copied first.
#include <algorithm>
#include <climits>
#include <cstring>

#include "cublas.hpp"
#include "driver.hpp"
#include "families.hpp"
#include "matmul.hpp"
#include "matmul_args.h"
#include "walk.hpp"

namespace pt_cuda {

namespace {

const Kernel INTEGERS = {"matmul", "matmul"};
enum { TILE = 16 };


bool fits(int64_t leading, int64_t length, int64_t count) {
    return count == 1 || (leading >= length && leading <= INT_MAX);
}

// Whether cuBLAS can read an operand of rows x columns as it lies; `turned`: by its columns.
bool readable(const Matrix &x, int64_t rows, int64_t columns, bool &turned, int &leading) {
    const bool by_rows = x.column == 1 || columns == 1;
    if (by_rows && fits(x.row, columns, rows)) {
        turned = false;
        leading = (int)std::max((int64_t)1, rows == 1 ? columns : x.row);
        return true;
    }
    const bool by_columns = x.row == 1 || rows == 1;
    if (by_columns && fits(x.column, rows, columns)) {
        turned = true;
        leading = (int)std::max((int64_t)1, columns == 1 ? rows : x.column);
        return true;
    }
    return false;
}

// An operand of batch x rows x columns that cuBLAS can read: as it lies, or copied.
class Readable {
public:
    Readable(pt_call *c, const Matrix &x, int64_t batch, int64_t rows, int64_t columns, int dtype)
        : used(x), packed(c, needs(x, batch, rows, columns, dtype)) {
        if (readable(x, rows, columns, turned, leading)) return;
        if (batch * rows * columns == 0) {              // nothing is read
            turned = false, leading = (int)(columns < INT_MAX ? columns + 1 : columns);
            return;
        }
        const int64_t sizes[3] = {batch, rows, columns}, from[3] = {x.batch, x.row, x.column},
                      to[3] = {rows * columns, columns, 1};
        const pt_view &out = c->out[0];
        pt_view src = {const_cast<char *>(x.data),
                       sizes,
                       from,
                       batch * rows * columns,
                       3,
                       (uint8_t)dtype,
                       0,
                       out.device,
                       out.device_index};
        pt_view dst = {static_cast<char *>(packed.data),
                       sizes,
                       to,
                       src.numel,
                       3,
                       (uint8_t)dtype,
                       1,
                       out.device,
                       out.device_index};
        used = {dst.data, columns, 1, rows * columns};
        turned = false;
        leading = (int)columns;
        if (!packed.data) status = PT_MEMORY_ERROR;
        else if (columns > INT_MAX)
            status = failed(c, PT_RUNTIME_ERROR, "a dimension is larger than cuBLAS takes");
        else status = copy(c, &dst, &src);
    }
    Matrix used;
    bool turned;
    int leading, status = PT_OK;

private:
    static int64_t needs(const Matrix &x, int64_t batch, int64_t rows, int64_t columns, int dtype) {
        bool t;
        int l;
        return readable(x, rows, columns, t, l) ? 0 : batch * rows * columns * item_size(dtype);
    }
    Scratch packed;
};

int type_of(int dtype) {
    switch (dtype) {
    case PT_FLOAT16: return R_16F;
    case PT_BFLOAT16: return R_16BF;
    case PT_FLOAT32: return R_32F;
    case PT_FLOAT64: return R_64F;
    case PT_COMPLEX64: return C_32F;
    default: return C_64F;
    }
}

// out = c, seen as (n, m).
int start_from(pt_call *c, const Product &p) {
    const int64_t sizes[2] = {p.n, p.m}, from[2] = {p.c.row, p.c.column}, to[2] = {p.m, 1};
    const pt_view &out = c->out[0];
    pt_view src = {const_cast<char *>(p.c.data),
                   sizes,
                   from,
                   p.n * p.m,
                   2,
                   (uint8_t)p.dtype,
                   0,
                   out.device,
                   out.device_index};
    pt_view dst = {static_cast<char *>(p.out), sizes, to,         p.n * p.m,       2,
                   (uint8_t)p.out_dtype,       1,     out.device, out.device_index};
    return copy(c, &dst, &src);
}

int by_blas(pt_call *c, const Product &p) {
    const int64_t most = INT_MAX;
    const int dtype = p.dtype, type = type_of(dtype), out_type = type_of(p.out_dtype);
    if (p.n > most || p.m > most || p.k > most || p.batch > most)
        return failed(c, PT_RUNTIME_ERROR, "a dimension is larger than cuBLAS takes");
    int compute = COMPUTE_32F, mode = 0;
    switch (dtype) {
    case PT_FLOAT16: mode = blas_settings.reduced_half ? 0 : NO_REDUCED_PRECISION; break;
    case PT_BFLOAT16: mode = blas_settings.reduced_bfloat16 ? 0 : NO_REDUCED_PRECISION; break;
    case PT_FLOAT32:
    case PT_COMPLEX64: compute = blas_settings.tf32 || p.tf32 ? COMPUTE_TF32 : COMPUTE_32F; break;
    default: compute = COMPUTE_64F; break;
    }
    const float alpha32[2] = {(float)p.alpha[0], (float)p.alpha[1]},
                beta32[2] = {(float)p.beta[0], (float)p.beta[1]};
    const bool wide = dtype == PT_FLOAT64 || dtype == PT_COMPLEX128;
    const void *alpha = wide ? (const void *)p.alpha : alpha32,
               *beta = wide ? (const void *)p.beta : beta32;
    Readable a(c, p.a, p.batch, p.n, p.k, dtype), b(c, p.b, p.batch, p.k, p.m, dtype);
    if (a.status || b.status) return a.status ? a.status : b.status;
    const int n = (int)p.n, m = (int)p.m, k = (int)p.k;
    int status = PT_OK;
    if (p.adds() && p.c.data) {
        status = BLAS_DECLINES;
        const bool same = p.c.row == 0 && (p.c.column == 1 || m == 1) && p.beta[0] == 1 &&
                          !is_complex(dtype) && dtype == p.out_dtype && p.batch == 1;
        if (same && k) {
            const float zero32 = 0;
            const double zero64 = 0;
            const BiasProduct with = {type,
                                      compute,
                                      b.turned,
                                      a.turned,
                                      m,
                                      n,
                                      k,
                                      b.leading,
                                      a.leading,
                                      m,
                                      !mode,
                                      alpha,
                                      wide ? (const void *)&zero64 : &zero32,
                                      b.used.data,
                                      a.used.data,
                                      p.c.data,
                                      p.out};
            status = product_with_bias(c, with);
        }
        if (!status) return wait_if_blocking(c, "product");
        if (status != BLAS_DECLINES) return status;
        status = start_from(c, p);
    }
    void *handle;
    if (!status) status = blas_handle(c, mode, &handle);
    if (status) return status;
    std::lock_guard<std::mutex> turn(blas_turn(c));
    if (p.batch == 1)
        status = blas.gemm(handle, b.turned, a.turned, m, n, k, alpha, b.used.data, type, b.leading,
                           a.used.data, type, a.leading, beta, p.out, out_type, m, compute, -1);
    else
        status = blas.gemm_batched(handle, b.turned, a.turned, m, n, k, alpha, b.used.data, type,
                                   b.leading, b.used.batch, a.used.data, type, a.leading,
                                   a.used.batch, beta, p.out, out_type, m, (long long)n * m,
                                   (int)p.batch, compute, -1);
    return status ? blas_failed(c, status) : wait_if_blocking(c, "product");
}

int by_kernel(pt_call *c, const Product &p) {
    MatmulArgs g = {};
    g.out = static_cast<char *>(p.out), g.a = p.a.data, g.b = p.b.data;
    g.n = p.n, g.m = p.m, g.k = p.k;
    g.a_row = p.a.row, g.a_column = p.a.column, g.b_row = p.b.row, g.b_column = p.b.column;
    g.alpha = p.whole_alpha, g.beta = p.whole_beta;
    const int item = item_size(p.dtype);
    // The grid's second and third dims end at 65535.
    for (int64_t z = 0; z < p.batch; z += 65535)
        for (int64_t y = 0; y < p.n; y += 65535 * TILE) {
            MatmulArgs part = g;
            const int64_t batches = p.batch - z < 65535 ? p.batch - z : 65535;
            part.a_batch = p.a.batch, part.b_batch = p.b.batch;
            part.a += (z * p.a.batch + y * p.a.row) * item, part.b += z * p.b.batch * item;
            part.out += (z * p.n + y) * p.m * item;
            part.n = p.n - y < (int64_t)65535 * TILE ? p.n - y : (int64_t)65535 * TILE;
            if (p.batch > 1 && part.n != p.n)
                return failed(c, PT_RUNTIME_ERROR, "a dimension is too large for integers");
            const Grid grid{(unsigned)ceil_div(p.m, TILE), (unsigned)ceil_div(part.n, TILE),
                            (unsigned)batches};
            int status = launch(c, INTEGERS, types(p.dtype), grid, TILE * TILE, part);
            if (status) return status;
        }
    return PT_OK;
}

// Computes the call's result; its operands have its dtype.
int multiply_into_result(pt_call *c, Product p) {
    const pt_view &out = c->out[0];
    for (int i = 0; i < c->nin; i++)
        if (c->in[i].dtype != out.dtype && c->in[i].dtype != PT_NONE)
            return failed(c, PT_RUNTIME_ERROR, "expected operands of one dtype");
    if (out.numel == 0) return PT_OK;
    p.out = out.data, p.dtype = p.out_dtype = out.dtype;
    return multiply(c, p);
}

Matrix operand_of(const pt_view &v) {
    const int d = v.ndim;
    return {v.data, v.strides[d - 2], v.strides[d - 1], d > 2 ? v.strides[0] : 0};
}

int mismatch(pt_call *c) { return failed(c, PT_RUNTIME_ERROR, "shapes cannot be multiplied"); }

int product_of(pt_call *c, int ia, int ib, int ndim, Product &p) {
    const pt_view &a = c->in[ia], &b = c->in[ib];
    if (a.ndim != ndim || b.ndim != ndim || a.sizes[ndim - 1] != b.sizes[ndim - 2] ||
        (ndim == 3 && a.sizes[0] != b.sizes[0]))
        return mismatch(c);
    p.a = operand_of(a), p.b = operand_of(b);
    p.batch = ndim == 3 ? a.sizes[0] : 1;
    p.n = a.sizes[ndim - 2], p.k = a.sizes[ndim - 1], p.m = b.sizes[ndim - 1];
    return PT_OK;
}

int mm(pt_call *c) {
    Product p;
    int status = product_of(c, 0, 1, 2, p);
    return status ? status : multiply_into_result(c, p);
}

int bmm(pt_call *c) {
    Product p;
    int status = product_of(c, 0, 1, 3, p);
    return status ? status : multiply_into_result(c, p);
}

int addmm(pt_call *c) {
    Product p;
    int status = product_of(c, 1, 2, 2, p);
    if (status) return status;
    const pt_param &beta = c->params[0], &alpha = c->params[1];
    if (is_integral(c->out[0].dtype)) {
        if ((status = whole_factor(c, "beta", beta, p.whole_beta))) return status;
        if ((status = whole_factor(c, "alpha", alpha, p.whole_alpha))) return status;
        if (p.whole_alpha == 0) p.k = 0;
    } else {
        p.alpha[0] = alpha.d, p.alpha[1] = alpha.im;
        p.beta[0] = beta.d, p.beta[1] = beta.im;
        if (alpha.d == 0 && alpha.im == 0) p.k = 0;     // matrices beside 0 are not read
    }
    const pt_view &x = c->in[0];    // dims of size 1 and missing ones are broadcast
    p.c.data = x.data;
    if (x.ndim > 0 && x.sizes[x.ndim - 1] == p.m && p.m > 1) p.c.column = x.strides[x.ndim - 1];
    if (x.ndim > 1 && x.sizes[x.ndim - 2] == p.n && p.n > 1) p.c.row = x.strides[x.ndim - 2];
    return multiply_into_result(c, p);
}

int mv(pt_call *c) {
    const pt_view &a = c->in[0], &b = c->in[1];
    if (a.ndim != 2 || b.ndim != 1 || a.sizes[1] != b.sizes[0]) return mismatch(c);
    Product p;
    p.a = operand_of(a), p.b = {b.data, b.strides[0], 0, 0};
    p.n = a.sizes[0], p.k = a.sizes[1];
    return multiply_into_result(c, p);
}

int dot(pt_call *c) {
    const pt_view &x = c->in[0], &y = c->in[1];
    if (x.ndim != 1 || y.ndim != 1 || x.sizes[0] != y.sizes[0]) return mismatch(c);
    Product p;
    p.a = {x.data, 0, x.strides[0], 0}, p.b = {y.data, y.strides[0], 0, 0};
    p.k = x.sizes[0];
    return multiply_into_result(c, p);
}

int linear(pt_call *c) {
    const pt_view &x = c->in[0], &w = c->in[1], &bias = c->in[2];
    const bool vector = w.ndim == 1;    // one output feature; its dimension is dropped
    Product p;
    p.k = w.sizes[w.ndim - 1], p.m = vector ? 1 : w.sizes[0];
    if (w.ndim > 2 || x.ndim == 0 || x.sizes[x.ndim - 1] != p.k) return mismatch(c);
    if (bias.dtype != PT_NONE && (bias.ndim != w.ndim - 1 || bias.numel != p.m)) return mismatch(c);
    p.n = p.k ? x.numel / p.k : c->out[0].numel / (p.m ? p.m : 1);
    p.b = {w.data, w.strides[w.ndim - 1], vector ? 0 : w.strides[0], 0};
    bool even = true;                                   // one stride leads through all rows
    for (int d = 0; d + 2 < x.ndim; d++)
        even = even && x.strides[d] == x.strides[d + 1] * x.sizes[d + 1];
    Contiguous dense(c, x.ndim <= 2 || even ? pt_view{x.data, x.sizes, x.strides, x.numel, x.ndim,
                                                      x.dtype, 1, x.device, x.device_index}
                                            : x);
    if (!dense.ok()) return PT_MEMORY_ERROR;
    const pt_view &rows = dense.view;
    p.a = {rows.data, rows.ndim > 1 ? rows.strides[rows.ndim - 2] : 0, rows.strides[rows.ndim - 1],
           0};
    if (bias.dtype != PT_NONE) {
        p.c = {bias.data, 0, bias.ndim ? bias.strides[0] : 0, 0};
        p.beta[0] = 1, p.whole_beta = 1;
    }
    return multiply_into_result(c, p);
}

}  // namespace

int multiply(pt_call *c, const Product &p) {
    const int64_t count = p.batch * p.n * p.m;
    if (count == 0) return PT_OK;
    if (p.k == 0 && !p.adds()) return clear(c, p.out, count * item_size(p.out_dtype));
    if (is_floating(p.dtype) || is_complex(p.dtype)) return by_blas(c, p);
    int status = p.adds() && p.c.data ? start_from(c, p) : PT_OK;
    return status ? status : by_kernel(c, p);
}

const pt_kernel_entry matmul_kernels[] = {{"mm", mm},         {"bmm", bmm}, {"addmm", addmm},
                                          {"linear", linear}, {"mv", mv},   {"dot", dot},
                                          {nullptr, nullptr}};

}  // namespace pt_cuda
