// Classification losses; the calls are those of _ops/loss/loss.cpp.
#include "dense.hpp"
#include "divisor.hpp"
#include "families.hpp"
#include "loss_args.h"
#include "reduce_plan.hpp"
#include "shape_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = PT_LOSS_THREADS, NONE = 0, MANY_CLASSES = 1024 };
const Kernel ROWS = {"loss", "cross_entropy_rows"}, WIDE = {"loss", "cross_entropy_wide"},
             COLUMNS = {"loss", "cross_entropy_columns"}, NLL = {"loss", "nll_loss"},
             ARANGE = {"fill", "arange"},
             GRADIENT[3] = {{"loss", "cross_entropy_gradient_rows"},
                            {"loss", "cross_entropy_gradient_wide"},
                            {"loss", "cross_entropy_gradient_columns"}},
             NLL_GRADIENT[3] = {{"loss", "nll_gradient_rows"},
                                {"loss", "nll_gradient_wide"},
                                {"loss", "nll_gradient_columns"}};
const Reduction TOTAL = PT_REDUCTION_OF(
                    "loss", "loss_total"),    // over two contiguous arrays: rows and finish only
    SUM = PT_REDUCTION_OF("reduce_sum", "sum");

// Reads sizes, target and weight, as all losses have; `shape` is the view of (N, C, ...) or (C,).
int open(pt_call *c, const pt_view &shape, const pt_view &target, const pt_view &weight,
         LossArgs &a) {
    if (!floating(shape) || shape.ndim == 0)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected a floating input of shape (C,) or (N, C, ...)");
    const int dim = shape.ndim > 1 ? 1 : 0;
    a.classes = shape.sizes[dim];
    int64_t inner = 1;
    for (int d = dim + 1; d < shape.ndim; d++) inner *= shape.sizes[d];
    a.inner = divisor(inner), a.samples = (dim ? shape.sizes[0] : 1) * inner;
    if (target.dtype != PT_INT64 || target.ndim != shape.ndim - 1 || target.numel != a.samples)
        return failed(
            c, PT_VALUE_ERROR,
            "expected an int64 target of shape (N, ...) for an input of shape (N, C, ...)");
    if (weight.dtype != PT_NONE) {
        if (weight.ndim != 1 || weight.sizes[0] != a.classes || !floating(weight))
            return failed(c, PT_RUNTIME_ERROR, "expected a floating weight for each class");
        a.weight = weight.data, a.weight_dtype = weight.dtype, a.weight_stride = weight.strides[0];
    }
    a.target = reinterpret_cast<const int64_t *>(target.data);
    a.reduction = (int32_t)c->params[0].i, a.ignored = c->params[1].i;
    a.op = c->op, a.fault = fault_of(c);
    return PT_OK;
}

int smoothing_of(pt_call *c, double &smoothing) {
    smoothing = c->params[2].d;
    return smoothing >= 0 && smoothing <= 1
               ? (int)PT_OK
               : failed(c, PT_RUNTIME_ERROR, "label_smoothing must be in [0, 1]");
}

// Plans a reduction over all elements of a vector.
int plan_vector(pt_call *c, const void *data, int dtype, int64_t size, int64_t stride,
                ReduceArgs &r) {
    const bool mask[] = {true};
    pt_view v = {};
    v.data = static_cast<char *>(const_cast<void *>(data)), v.dtype = (uint8_t)dtype;
    v.sizes = &size, v.strides = &stride, v.numel = size, v.ndim = 1;
    return plan_reduction(c, v, mask, false, r);
}

// Computes the sum of the classes' weights if labels are smoothed: each class then has a part in a
// sample's loss.
int add_weights(pt_call *c, LossArgs &a, Scratch &room) {
    if (!(a.smoothing > 0)) return PT_OK;
    if (!room.data) return PT_MEMORY_ERROR;
    a.weight_sum = static_cast<double *>(room.data);
    if (!a.weight) {
        FillArgs classes = {};
        classes.n = 1, classes.out = static_cast<char *>(room.data),
        classes.first[0] = (double)a.classes;
        return launch(c, ARANGE, types(PT_FLOAT64), Grid{1, 1, 1}, THREADS, classes);
    }
    ReduceArgs r;
    int status = plan_vector(c, a.weight, a.weight_dtype, a.classes, a.weight_stride, r);
    r.out = room.data, r.a = 1;
    return status ? status : reduce(c, SUM, types(a.weight_dtype, PT_FLOAT64), r);
}

// Computes the results from the samples' losses and weights.
int add_up(pt_call *c, const LossArgs &a, const pt_view &total, uint64_t kinds) {
    if (a.reduction == NONE) return clear(c, total.data, item_size(total.dtype));
    ReduceArgs r;
    int status = plan_vector(c, a.loss, PT_FLOAT64, a.samples, 1, r);
    r.in2 = a.sample_weight, r.item2 = r.item, r.out = a.result, r.out2 = total.data,
    r.a = a.reduction, r.b = total.dtype == c->out[0].dtype;
    return status ? status : reduce(c, TOTAL, kinds, r);
}

int forward(pt_call *c, bool entropy) {
    LossArgs a = {};
    Contiguous x(c, c->in[0]), target(c, c->in[1]);
    if (!x.ok() || !target.ok()) return PT_MEMORY_ERROR;
    int status = open(c, x.view, target.view, c->in[2], a);
    if (!status && entropy) status = smoothing_of(c, a.smoothing);
    if (status) return status;
    Scratch each(c, 16 * a.samples), weights(c, a.smoothing > 0 ? 8 : 0);
    if (a.samples && !each.data) return PT_MEMORY_ERROR;
    a.x = x.view.data, a.result = c->out[0].data;
    a.loss = static_cast<double *>(each.data), a.sample_weight = a.loss + a.samples;
    const uint64_t kinds = types(x.view.dtype);
    if (entropy) {
        a.lse = c->out[1].data, a.lse_dtype = c->out[1].dtype;
        status = add_weights(c, a, weights);
        const bool rows = a.inner.by == 1, wide = rows && a.classes >= MANY_CLASSES;
        if (!status && a.samples)
            status = launch(c,
                            wide   ? WIDE
                            : rows ? ROWS
                                   : COLUMNS,
                            kinds,
                            blocks_for(c,
                                       a.samples * (wide   ? THREADS
                                                    : rows ? 32
                                                           : 1),
                                       THREADS, 16),
                            THREADS, a);
    } else if (a.samples)
        status = launch(c, NLL, kinds, blocks_for(c, a.samples, THREADS), THREADS, a);
    return status ? status : add_up(c, a, c->out[entropy ? 2 : 1], kinds);
}
int nll_loss(pt_call *c) { return forward(c, false); }
int cross_entropy(pt_call *c) { return forward(c, true); }

int backward(pt_call *c, bool entropy) {
    LossArgs a = {};
    const int first = entropy ? 1 : 0;    // cross_entropy's input stands before the target
    const pt_view &gx = c->out[0];
    Contiguous g(c, c->in[0]), x(c, entropy ? c->in[1] : gx), target(c, c->in[1 + first]);
    Contiguous lse(c, entropy ? c->in[4] : c->in[3]);
    if (!g.ok() || !x.ok() || !target.ok() || !lse.ok()) return PT_MEMORY_ERROR;
    int status = open(c, gx, target.view, c->in[2 + first], a);
    if (!status && entropy) status = smoothing_of(c, a.smoothing);
    if (status) return status;
    const pt_view &total = c->in[entropy ? 5 : 3];
    if (!floating(g.view) || !floating(total) ||
        g.view.numel != (a.reduction == NONE ? a.samples : 1))
        return failed(c, PT_RUNTIME_ERROR, "expected a floating gradient of the loss's shape");
    if (gx.numel == 0) return PT_OK;
    if (entropy && (lse.view.numel != a.samples || !floating(lse.view)))
        return failed(c, PT_RUNTIME_ERROR, "expected lse with one value per sample");
    a.x = entropy ? x.view.data : nullptr, a.out = gx.data, a.g = g.view.data,
    a.g_dtype = g.view.dtype;
    a.total = total.data, a.total_dtype = total.dtype;
    a.lse_in = lse.view.data, a.lse_dtype = lse.view.dtype;
    const uint64_t kinds = types(gx.dtype);
    Scratch weights(c, a.smoothing > 0 ? 8 : 0);
    status = add_weights(c, a, weights);
    if (status) return status;
    const Kernel *kernels = entropy ? GRADIENT : NLL_GRADIENT;
    if (a.inner.by == 1) {
        const bool wide = a.classes >= MANY_CLASSES;
        return launch(c, kernels[wide], kinds,
                      blocks_for(c, a.samples * (wide ? THREADS : 32), THREADS, 16), THREADS, a);
    }
    Grid grid = blocks_for(c, a.samples, THREADS, 16);
    const int64_t busy =
        (int64_t)multiprocessors(c) * 16 / grid.x;    // few samples: blocks share their classes
    grid.y = (unsigned)(busy < 1 ? 1 : busy < a.classes ? busy : a.classes);
    a.each = (a.classes + grid.y - 1) / grid.y;
    return launch(c, kernels[2], kinds, grid, THREADS, a);
}
int nll_loss_backward(pt_call *c) { return backward(c, false); }
int cross_entropy_backward(pt_call *c) { return backward(c, true); }

}  // namespace

const pt_kernel_entry loss_kernels[] = {{"nll_loss", nll_loss},
                                        {"nll_loss_backward", nll_loss_backward},
                                        {"cross_entropy", cross_entropy},
                                        {"cross_entropy_backward", cross_entropy_backward},
                                        {nullptr, nullptr}};

}  // namespace pt_cuda
