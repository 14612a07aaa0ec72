// Data movement and values by place: cat, complex_pair, flip, tril, triu, arange, linspace, eye.
#include "divisor.hpp"
#include "families.hpp"
#include "shape_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, PER_THREAD = 4 };
const Kernel TRIANGLE = {"triangle", "triangle"}, ARANGE = {"fill", "arange"},
             LINSPACE = {"fill", "linspace"}, EYE = {"fill", "eye"}, FULL = {"fill", "full"};

// Each tensor is copied to its part of the output.
int cat(pt_call *c) {
    const pt_view &out = c->out[0];
    int dim, status = dim_of(c, out.ndim ? out.ndim : 1, dim);
    if (status) return status;
    int64_t at = 0;
    for (int i = 0; i < c->nin; i++) {
        const pt_view &x = c->in[i];
        if (x.ndim == 1 && x.sizes[0] == 0) continue;           // an empty vector fits any tensor
        if (x.ndim != out.ndim)
            return failed(c, PT_RUNTIME_ERROR, "expected tensors of equally many dims");
        View part(out);
        part.v.data += at * out.strides[dim] * item_size(out.dtype);
        part.sizes[dim] = x.sizes[dim];
        part.settle();
        if (at + x.sizes[dim] > out.sizes[dim] || part.v.numel != x.numel)
            return failed(c, PT_RUNTIME_ERROR, "expected tensors that fit the output");
        status = copy(c, &part.v, &x);
        if (status) return status;
        at += x.sizes[dim];
    }
    return PT_OK;
}

// The parts are copied to every second number of the output's memory.
int complex_pair(pt_call *c) {
    const pt_view &out = c->out[0];
    View part(out);
    for (int d = 0; d < out.ndim; d++) part.strides[d] *= 2;
    for (int i = 0; i < 2; i++) {
        part.v.dtype = c->in[i].dtype;
        part.v.data = out.data + i * item_size(c->in[i].dtype);
        part.settle();
        if (2 * item_size(part.v.dtype) != item_size(out.dtype) || part.v.numel != c->in[i].numel)
            return failed(c, PT_RUNTIME_ERROR, "expected parts of one shape and dtype");
        if (int status = copy(c, &part.v, &c->in[i])) return status;
    }
    return PT_OK;
}

// A copy of the view that runs backwards.
int flip(pt_call *c) {
    View x(c->in[0]);
    const pt_param &dims = c->params[0];
    for (int i = 0; i < dims.count; i++) {
        const int d = (int)(dims.list[i] < 0 ? dims.list[i] + x.v.ndim : dims.list[i]);
        if (x.v.ndim == 0) break;
        if (d < 0 || d >= x.v.ndim) return failed(c, PT_INDEX_ERROR, "dim is out of range");
        if (x.v.numel) x.v.data += (x.sizes[d] - 1) * x.strides[d] * item_size(x.v.dtype);
        x.strides[d] = -x.strides[d];
    }
    x.settle();
    return copy(c, &c->out[0], &x.v);
}

int triangle(pt_call *c, bool lower) {
    const pt_view &x = c->in[0], &out = c->out[0];
    if (x.ndim < 2) return failed(c, PT_RUNTIME_ERROR, "expected at least 2 dims");
    if (out.numel == 0) return PT_OK;
    TriangleArgs a = {};
    const int64_t rows = x.sizes[x.ndim - 2], columns = x.sizes[x.ndim - 1], k = c->params[0].i;
    a.rows = divisor(rows), a.columns = divisor(columns);
    a.diagonal = k < -rows - 1 ? -rows - 1 : k > columns + 1 ? columns + 1 : k;
    a.lower = lower;
    const pt_view *views[2] = {&out, &x};
    return by_parts(walk_of(views, 2), nullptr, [&](const Walk &part, const int64_t *at) {
        TriangleArgs b = a;
        b.n = part.count();
        b.start = at[0] / item_size(out.dtype);
        b.out = out.data + at[0], b.in = x.data + at[1];
        pack(part, b.walk);
        return launch(c, TRIANGLE, by_size(x.dtype),
                      blocks_for(c, ceil_div(b.n, PER_THREAD), THREADS, 32), THREADS, b);
    });
}
int tril(pt_call *c) { return triangle(c, true); }
int triu(pt_call *c) { return triangle(c, false); }

int fill(pt_call *c, const Kernel &kernel, FillArgs a) {
    const pt_view &out = c->out[0];
    a.n = out.numel, a.out = out.data;
    if (a.n == 0) return PT_OK;
    return launch(c, kernel, types(out.dtype), blocks_for(c, a.n, THREADS, 32), THREADS, a);
}

int arange(pt_call *c) {
    FillArgs a = {};
    a.first[0] = c->params[0].d, a.last[0] = c->params[2].d;
    a.whole_first = c->params[0].i, a.whole_step = c->params[2].i;
    return fill(c, ARANGE, a);
}

int linspace(pt_call *c) {
    FillArgs a = {};
    a.first[0] = c->params[0].d, a.first[1] = c->params[0].im;
    a.last[0] = c->params[1].d, a.last[1] = c->params[1].im;
    return fill(c, LINSPACE, a);
}

int eye(pt_call *c) {
    if (c->out[0].ndim != 2) return failed(c, PT_RUNTIME_ERROR, "expected an output of 2 dims");
    FillArgs a = {};
    a.columns = divisor(c->out[0].sizes[1]);
    return fill(c, EYE, a);
}

int full(pt_call *c) {
    const pt_param &value = c->params[0];
    const bool whole = value.kind == PT_PARAM_INT,
               truth = value.d != 0 || (whole && value.i) || value.im != 0;
    const pt_view &out = c->out[0];
    FillArgs a = {};
    a.first[0] = out.dtype == PT_BOOL ? truth : value.d,
    a.first[1] = value.kind == PT_PARAM_COMPLEX ? value.im : 0;
    if (whole || is_integral(out.dtype)) a.whole_first = whole ? value.i : (int64_t)value.d;
    return fill(c, FULL, a);
}

// to_dtype, clone, contiguous
int copied(pt_call *c) { return copy(c, &c->out[0], &c->in[0]); }

}  // namespace

const pt_kernel_entry shape_kernels[] = {
    {"cat", cat},           {"flip", flip}, {"tril", tril}, {"triu", triu},   {"arange", arange},
    {"linspace", linspace}, {"eye", eye},   {"full", full}, {"copy", copied},
    {"complex_pair", complex_pair},         {nullptr, nullptr}};

}  // namespace pt_cuda
