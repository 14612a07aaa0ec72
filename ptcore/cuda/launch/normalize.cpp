// The host halves of layer_norm, rms_norm and their gradients. Tensors that are not row-major, or
// that differ in dtype from the others of their kind, are copied.
#include "dense.hpp"
#include "families.hpp"
#include "normalize_args.h"
#include "row_plan.hpp"

#include <initializer_list>

namespace pt_cuda {
namespace {

#define PT_OF(program, kernel) {program, program "_" kernel}
const Kernel ROWS = PT_OF("layer_norm", "rows"),
             IN_REGISTERS[5] = {ROWS, PT_OF("layer_norm", "one"), PT_OF("layer_norm", "two"), ROWS,
                                PT_OF("layer_norm", "four")},
             WIDE = {"layer_norm", "layer_norm_wide"}, STREAMED = PT_OF("layer_norm", "streamed"),
             BACKWARD_ROWS = PT_OF("layer_norm_backward", "rows"),
             BACKWARD_WIDE = {"layer_norm_backward", "layer_norm_backward_wide"},
             BACKWARD_STREAMED = PT_OF("layer_norm_backward", "streamed"),
             SUMS = PT_OF("layer_norm_backward", "sums"),
             FINISH = PT_OF("layer_norm_backward", "finish");

bool fits_packs(const void *p) { return (uintptr_t)p % 16 == 0; }

Grid grid_of(int64_t blocks) { return Grid{(unsigned)blocks, 1, 1}; }

int launch_rows(pt_call *c, const Kernel &rows, const Kernel &wide, const Kernel &streamed,
                uint64_t t, LayerNormArgs &a, int dtype, int inputs) {
    const int vector = 16 / item_size(dtype);
    a.packed = a.n % vector == 0 && fits_packs(a.in) && fits_packs(a.out) && fits_packs(a.g);
    const RowPlan p =
        plan_rows(c, a.rows, a.n, a.packed ? vector : 1, item_size(moment_dtype(dtype)), inputs);
    a.log2 = p.log2;
    a.count = p.count;
    const int registers =
        inputs == 1 && fits_packs(a.weight) && fits_packs(a.bias) ? p.registers : 0;
    if (p.shared && registers)
        return launch(c, IN_REGISTERS[registers], t, grid_of(p.blocks), ROW_THREADS, a);
    if (p.shared)
        return launch(c, p.wide ? wide : rows, t, grid_of(p.blocks),
                      p.wide ? WIDE_THREADS : ROW_THREADS, a, p.shared);
    const int64_t busy = (int64_t)multiprocessors(c) * 8;
    return launch(c, streamed, t, grid_of(a.rows < busy ? a.rows : busy), PT_NORM_STREAM_THREADS,
                  a);
}

// rms_norm has no bias, and no mean among its outputs.
int norm(pt_call *c, bool centred) {
    static const pt_view NONE = {};
    const pt_view &x = c->in[0], &w = c->in[1], &b = centred ? c->in[2] : NONE;
    const int64_t ndim = c->params[0].i;
    for (const pt_view *v : {&x, &w, &b})
        if (present(*v) && !floating(*v))
            return failed(c, PT_TYPE_ERROR, "expected floating-point tensors");
    if (ndim < 1 || ndim > x.ndim) {
        std::snprintf(c->error, sizeof(c->error),
                      "expected 1 to %d normalized dimensions, got %lld", x.ndim, (long long)ndim);
        return PT_RUNTIME_ERROR;
    }
    LayerNormArgs a = {};
    a.n = 1;
    for (int d = x.ndim - (int)ndim; d < x.ndim; d++) a.n *= x.sizes[d];
    for (const pt_view *v : {&w, &b})
        if (present(*v) && v->numel != a.n) {
            std::snprintf(c->error, sizeof(c->error), "expected %s with %lld elements, got %lld",
                          v == &w ? "weight" : "bias", (long long)a.n, (long long)v->numel);
            return PT_RUNTIME_ERROR;
        }
    a.rows = c->out[1].numel;
    if (a.rows == 0) return PT_OK;
    const int affine = present(w) && present(b) && w.dtype != b.dtype ? moment_dtype(x.dtype)
                     : present(w) ? w.dtype : present(b) ? b.dtype : x.dtype;
    const Dense in(c, x, x.dtype), weight(c, w, affine), bias(c, b, affine);
    if (!in.ok() || !weight.ok() || !bias.ok()) return PT_MEMORY_ERROR;
    a.in = in.data;
    a.weight = weight.data;
    a.bias = bias.data;
    a.out = c->out[0].data;
    a.mean = centred ? c->out[1].data : nullptr;
    a.rstd = c->out[centred ? 2 : 1].data;
    a.eps = c->params[1].d;
    return launch_rows(c, ROWS, WIDE, STREAMED, types(x.dtype, affine), a, x.dtype, 1);
}

int layer_norm(pt_call *c) { return norm(c, true); }
int rms_norm(pt_call *c) { return norm(c, false); }

int norm_backward(pt_call *c, bool centred) {
    const pt_view &g = c->in[0], &x = c->in[1], &mean = c->in[2], &rstd = c->in[centred ? 3 : 2],
                  &w = c->in[centred ? 4 : 3];
    LayerNormArgs a = {};
    a.out = c->out[0].dtype != PT_NONE ? c->out[0].data : nullptr;
    const pt_view *gradient[2] = {c->nout > 1 && present(c->out[1]) ? &c->out[1] : nullptr,
                                  c->nout > 2 && present(c->out[2]) ? &c->out[2] : nullptr};
    // A row covers what weight or its gradients cover; without these, a row is the trailing dims
    // for which mean has one element.
    const pt_view *row = present(w) ? &w : gradient[0] ? gradient[0] : gradient[1];
    int ndim = 0;
    a.n = 1;
    a.rows = x.numel;
    while (ndim < x.ndim && (row ? ndim < row->ndim : a.rows > mean.numel)) {
        ++ndim;
        a.n *= x.sizes[x.ndim - ndim];
        a.rows = a.n ? x.numel / a.n : 0;
    }
    if (mean.numel != rstd.numel || g.numel != x.numel || (row && row->numel != a.n) ||
        (x.numel && (a.rows != mean.numel || mean.numel * a.n != x.numel)))
        return failed(c, PT_RUNTIME_ERROR,
                      "expected g and input of one shape and mean, rstd, weight that match it");
    if (x.numel == 0) {
        for (const pt_view *out : gradient)
            if (out && out->numel)
                if (int status = clear(c, out->data, out->numel * item_size(out->dtype)))
                    return status;
        return PT_OK;
    }
    const int moment = moment_dtype(x.dtype);
    const int affine = gradient[0] ? gradient[0]->dtype : gradient[1] ? gradient[1]->dtype
                     : present(w) ? w.dtype : x.dtype;
    if (gradient[0] && gradient[1] && gradient[0]->dtype != gradient[1]->dtype)
        return failed(c, PT_TYPE_ERROR, "expected weight and bias of one dtype");
    const Dense dense_g(c, g, x.dtype), in(c, x, x.dtype), weight(c, w, affine),
        means(c, mean, moment), rstds(c, rstd, moment);
    if (!dense_g.ok() || !in.ok() || !weight.ok() || !means.ok() || !rstds.ok())
        return PT_MEMORY_ERROR;
    a.g = dense_g.data;
    a.in = in.data;
    a.weight = weight.data;
    a.mean = centred ? const_cast<void *>(means.data) : nullptr;
    a.rstd = const_cast<void *>(rstds.data);
    const uint64_t t = types(x.dtype, affine);
    if (a.out)
        if (int status =
                launch_rows(c, BACKWARD_ROWS, BACKWARD_WIDE, BACKWARD_STREAMED, t, a, x.dtype, 2))
            return status;
    if (!gradient[0] && !gradient[1]) return PT_OK;
    a.weight_gradient = gradient[0] ? gradient[0]->data : nullptr;
    a.bias_gradient = gradient[1] ? gradient[1]->data : nullptr;
    const int64_t width = ceil_div(a.n, PT_NORM_COLUMNS), busy = (int64_t)multiprocessors(c) * 8;
    a.parts = ceil_div(busy, width);
    if (a.parts > ceil_div(a.rows, 64)) a.parts = ceil_div(a.rows, 64);
    if (a.parts > 1024) a.parts = 1024;
    a.chunk = ceil_div(a.rows, a.parts);
    a.parts = ceil_div(a.rows, a.chunk);
    Scratch sums(c, a.parts * 2 * a.n * item_size(moment));
    if (!sums.data) return PT_MEMORY_ERROR;
    a.partial = sums.data;
    if (int status =
            launch(c, SUMS, t, Grid{(unsigned)width, (unsigned)a.parts, 1}, PT_NORM_THREADS, a))
        return status;
    return launch(c, FINISH, t, blocks_for(c, a.n, PT_NORM_THREADS), PT_NORM_THREADS, a);
}

int layer_norm_backward(pt_call *c) { return norm_backward(c, true); }
int rms_norm_backward(pt_call *c) { return norm_backward(c, false); }

}  // namespace

const pt_kernel_entry normalize_kernels[] = {{"layer_norm", layer_norm},
                                             {"layer_norm_backward", layer_norm_backward},
                                             {"rms_norm", rms_norm},
                                             {"rms_norm_backward", rms_norm_backward},
                                             {nullptr, nullptr}};

}  // namespace pt_cuda
