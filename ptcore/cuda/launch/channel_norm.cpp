// The host halves of batch_norm, group_norm and their gradients. An output without data is left
// out.
#include <cmath>

#include "channel_norm_args.h"
#include "dense.hpp"
#include "divisor.hpp"
#include "families.hpp"
#include "reduce_plan.hpp"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, MOST_PARTS = 256 };
const char *const PROGRAM = "channel_norm";
const Reduction MOMENTS = PT_REDUCTION_OF("channel_norm",
                                          "channel_moments"),    // its finish kernel is not used
    GRADIENTS = PT_REDUCTION_OF("channel_norm", "channel_gradients");
const Kernel BATCH = {PROGRAM, "batch_norm_factors"}, GROUP = {PROGRAM, "group_norm_factors"},
             GIVEN = {PROGRAM, "batch_norm_given_factors"},
             BATCH_BACK = {PROGRAM, "batch_norm_gradients"},
             GROUP_BACK = {PROGRAM, "group_norm_gradients"},
             GROUP_AFFINE = {PROGRAM, "group_norm_affine_gradients"},
             APPLY = {PROGRAM, "channel_apply"}, APPLY_PACKED = {PROGRAM, "channel_apply_packed"},
             APPLY_MIXED = {PROGRAM, "channel_apply_mixed"}, FILL = {PROGRAM, "channel_fill"};

int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }

// A small tensor as kernels read it; if it is not dense, a copy that lives as long as this object.
class Real {
public:
    Real(pt_call *c, const pt_view &v) : dense(c, v) {
        if (present(v)) args = {dense.view.data, v.dtype};
    }
    RealArgs args = {};
    bool ok() const { return dense.ok(); }

private:
    Contiguous dense;
};
RealArgs made(const pt_view &v) { return present(v) ? RealArgs{v.data, v.dtype} : RealArgs{}; }

// `input` is the number of x among the inputs; `statistics` is the number of elements of each
// statistic that a derivative is given.
int check(pt_call *c, int input, int64_t groups) {
    const pt_view &x = c->in[input];
    for (int i = 0; i < c->nin; i++)
        if (c->in[i].dtype != PT_NONE && !floating(c->in[i]))
            return failed(c, PT_TYPE_ERROR, "expected real floating-point tensors");
    if (x.ndim < 2) return failed(c, PT_RUNTIME_ERROR, "expected at least 2 dimensions");
    if (groups < 1 || x.sizes[1] % groups)
        return failed(c, PT_RUNTIME_ERROR,
                      "expected channels that are divisible by the number of groups");
    for (int i = 0; i <= input; i++)
        if (!c->in[i].contiguous && c->in[i].numel)
            return failed(c, PT_RUNTIME_ERROR, "expected contiguous tensors");
    return PT_OK;
}
int check_sizes(pt_call *c, int input, int64_t statistics) {
    const pt_view &x = c->in[input];
    bool fits = input == 0 || c->in[0].numel == x.numel;
    for (int i = input + 1; i < c->nin; i++)            // statistics, then one number a channel
        fits = fits &&
               (!present(c->in[i]) || c->in[i].numel == (input && i < 4 ? statistics : x.sizes[1]));
    return fits ? (int)PT_OK
                : failed(c, PT_RUNTIME_ERROR, "gradient, statistics and weight do not fit input");
}

// For an x without elements: statistics are NaN, the gradients of weight and bias are zero.
int of_nothing(pt_call *c, double value) {
    for (int i = 1; i < c->nout && i < 3; i++) {         // running statistics stay
        const ChannelFillArgs a = {made(c->out[i]), c->out[i].numel, value};
        if (!a.to.data || a.n == 0) continue;
        int status =
            launch(c, FILL, types(PT_FLOAT32, PT_FLOAT32), blocks_for(c, a.n, THREADS), THREADS, a);
        if (status) return status;
    }
    return PT_OK;
}

ChannelNormArgs arguments(const pt_view &x, int64_t groups) {
    ChannelNormArgs a = {};
    a.x = x.data;
    a.n = x.sizes[0], a.c = x.sizes[1], a.s = 1, a.groups = groups;
    for (int d = 2; d < x.ndim; d++) a.s *= x.sizes[d];
    return a;
}
// Applies the factors, in launches of fewer than 2**31 elements: of whole planes, or of parts of
// one plane. `each`: bytes of a plane's factors.
int apply(pt_call *c, const ChannelNormArgs &all, uint64_t kinds, int width, int64_t each) {
    const int64_t most = (int64_t)1 << 29, planes = all.n * all.c,
                  together = all.s <= most ? most / all.s : 1;
    const int x_item = item_size((int)(kinds & 255)), g_item = item_size((int)(kinds >> 8 & 255));
    for (int64_t plane = 0; plane < planes; plane += together) {
        for (int64_t at = 0; at < all.s; at += most) {
            ChannelNormArgs a = all;
            const int64_t here = smaller(together, planes - plane), first = plane * all.s + at;
            a.s = smaller(all.s - at, most);
            a.here = (uint32_t)(here * a.s);
            a.x += first * x_item, a.out += first * x_item;
            if (a.g) a.g += first * g_item;
            if (a.period == planes) {           // factors of each plane, else of each channel
                a.factors += plane * each;
                a.period = here;
            } else {
                a.first_plane = (uint32_t)(plane % a.period);
            }
            divide_by((uint32_t)a.s, a.by_plane[0], a.by_plane[1]);
            divide_by((uint32_t)a.period, a.by_period[0], a.by_period[1]);
            const bool packs = ((uintptr_t)a.x | (uintptr_t)a.g | (uintptr_t)a.out) % 16 == 0 &&
                               a.here % width == 0;
            const int status =
                launch(c,
                       !packs        ? APPLY
                       : a.s % width ? APPLY_MIXED
                                     : APPLY_PACKED,
                       kinds, blocks_for(c, a.here / (packs ? width : 1), 4 * THREADS, 16), THREADS,
                       a);
            if (status) return status;
        }
    }
    return PT_OK;
}

// x as a tensor of 3 dims; the kernels of sums reduce dims 0 and 2. A set is a channel, or a run of
// neighbours.
struct Sets {
    Sets(const pt_view &x, int64_t images, int64_t sets, int64_t length) : view(x) {
        view.v.ndim = 0;
        view.push(images, sets * length);
        view.push(sets, length);
        view.push(length, 1);
        view.settle();
    }
    View view;
};

// Computes the sums of all sets, then the factors by the kernels `steps`, then the result.
// `sharing`: the number of neighbouring sets with one mean.
int normalize(pt_call *c, ChannelNormArgs a, const Sets &of, int64_t sharing, uint64_t kinds,
              const Kernel *const *steps, const int64_t *threads) {
    const bool mask[] = {true, false, true};
    ReduceArgs r;
    int status = plan_reduction(c, of.view.v, mask, false, r);
    if (status) return status;
    const int x_item = item_size((int)(kinds & 255)), g_item = item_size((int)(kinds >> 8 & 255));
    r.in2 = a.g, r.item2 = (uint8_t)(a.g ? g_item : 0);
    if (a.g) r.known = a.mean.data, r.known_dtype = a.mean.dtype, r.sharing = divisor(sharing);
    const Spread spread = spread_reduction(c, a.g ? GRADIENTS : MOMENTS, MOST_PARTS, r);
    a.sets = r.outputs, a.count = r.count, a.parts = spread.grid.y;
    const int64_t size = kinds % 256 == PT_FLOAT64 ? 8 : 4;
    const Scratch sums(c, a.sets * a.parts * PT_REDUCE_STATE), factors(c, a.period * 4 * size);
    if (!sums.data || !factors.data) return PT_MEMORY_ERROR;
    (a.parts > 1 ? r.partial : r.out) = sums.data;
    a.by_c = divisor(a.c), a.by_groups = divisor(a.groups), a.by_channels = divisor(a.c / a.groups);
    a.sums = sums.data;
    a.factors = static_cast<char *>(factors.data);
    status = launch(c, *spread.kernel, kinds, spread.grid, PT_REDUCE_THREADS, r);
    for (int i = 0; !status && steps[i]; i++)
        status = launch(c, *steps[i], kinds, blocks_for(c, threads[i], THREADS), THREADS, a);
    if (status || !a.out) return status;
    return apply(c, a, kinds, 16 / (x_item > g_item ? x_item : g_item), 4 * size);
}

int forward(pt_call *c, int64_t groups, double eps, bool batch) {
    const pt_view &x = c->in[0];
    int status = check(c, 0, groups);
    if (!status) status = check_sizes(c, 0, 0);
    if (status) return status;
    if (!x.numel) return of_nothing(c, NAN);
    ChannelNormArgs a = arguments(x, groups);
    a.eps = eps;
    a.out = c->out[0].data;
    const Real weight(c, c->in[1]), bias(c, c->in[2]);
    if (!weight.ok() || !bias.ok()) return PT_MEMORY_ERROR;
    a.weight = weight.args, a.bias = bias.args;
    a.mean = made(c->out[1]), a.spread = made(c->out[2]);
    if (c->nout > 3) a.running_mean = made(c->out[3]);
    if (c->nout > 4) a.running_var = made(c->out[4]);
    if (c->nout > 3) a.momentum = c->params[c->nparams - 1].d;
    const Kernel *steps[] = {batch ? &BATCH : &GROUP, nullptr};
    a.period = batch ? a.c : a.n * a.c;
    return normalize(c, a,
                     batch ? Sets(x, a.n, a.c, a.s) : Sets(x, 1, a.n * groups, a.c / groups * a.s),
                     1, types(x.dtype, x.dtype), steps, &a.period);
}
int batch_norm(pt_call *c) { return forward(c, 1, c->params[0].d, true); }
int group_norm(pt_call *c) { return forward(c, c->params[0].i, c->params[1].d, false); }

// Whether the channels of each position are neighbours, and the positions are in order.
bool channels_last(const pt_view &v) {
    int64_t step = v.sizes[1];
    if (v.strides[1] != 1) return false;
    for (int d = v.ndim - 1; d >= 0; d--) {
        if (d == 1) continue;
        if (v.sizes[d] != 1 && v.strides[d] != step) return false;
        step *= v.sizes[d];
    }
    return true;
}

int batch_norm_given(pt_call *c) {
    const pt_view &x = c->in[0], &out = c->out[0];
    for (int i = 0; i < c->nin; i++)
        if (c->in[i].dtype != PT_NONE && !floating(c->in[i]))
            return failed(c, PT_TYPE_ERROR, "expected real floating-point tensors");
    if (x.ndim < 2) return failed(c, PT_RUNTIME_ERROR, "expected at least 2 dimensions");
    for (int i = 1; i < c->nin; i++)
        if (present(c->in[i]) && (c->in[i].ndim != 1 || c->in[i].numel != x.sizes[1]))
            return failed(c, PT_RUNTIME_ERROR, "statistics and weight do not fit input");
    if (!x.numel) return PT_OK;
    ChannelNormArgs a = arguments(x, 1);
    if (!x.contiguous || !out.contiguous) {
        if (!channels_last(x) || !channels_last(out)) return PT_DECOMPOSE;
        a.n *= a.s, a.s = 1;
    }
    a.eps = c->params[0].d;
    a.out = out.data;
    const Real mean(c, c->in[1]), var(c, c->in[2]), weight(c, c->in[3]), bias(c, c->in[4]);
    if (!mean.ok() || !var.ok() || !weight.ok() || !bias.ok()) return PT_MEMORY_ERROR;
    a.mean = mean.args, a.spread = var.args, a.weight = weight.args, a.bias = bias.args;
    const uint64_t kinds = types(x.dtype, x.dtype);
    const int64_t size = x.dtype == PT_FLOAT64 ? 8 : 4;
    const Scratch factors(c, a.c * 4 * size);
    if (!factors.data) return PT_MEMORY_ERROR;
    a.factors = static_cast<char *>(factors.data);
    a.period = a.c;
    const int status = launch(c, GIVEN, kinds, blocks_for(c, a.c, THREADS), THREADS, a);
    return status ? status : apply(c, a, kinds, 16 / item_size(x.dtype), 4 * size);
}

int backward(pt_call *c, int64_t groups, double eps, bool batch) {
    const pt_view &x = c->in[1];
    int status = check(c, 1, groups);
    if (!status) status = check_sizes(c, 1, batch ? x.sizes[1] : x.sizes[0] * groups);
    if (status) return status;
    if (!x.numel) return of_nothing(c, 0);
    ChannelNormArgs a = arguments(x, groups);
    a.eps = eps;
    a.g = c->in[0].data;
    a.out = present(c->out[0]) ? c->out[0].data : nullptr;
    const Real mean(c, c->in[2]), spread(c, c->in[3]), weight(c, c->in[4]);
    if (!mean.ok() || !spread.ok() || !weight.ok()) return PT_MEMORY_ERROR;
    a.mean = mean.args, a.spread = spread.args, a.weight = weight.args;
    if (c->nout > 1) a.gw = made(c->out[1]);
    if (c->nout > 2) a.gb = made(c->out[2]);
    const uint64_t kinds = types(x.dtype, c->in[0].dtype);
    if (batch) {
        const Kernel *steps[] = {&BATCH_BACK, nullptr};
        a.period = a.c;
        return normalize(c, a, Sets(x, a.n, a.c, a.s), 1, kinds, steps, &a.period);
    }
    a.period = a.n * a.c;
    const Kernel *steps[] = {&GROUP_BACK, &GROUP_AFFINE, nullptr};
    const int64_t threads[] = {a.n * groups * 32, a.c};
    return normalize(c, a, Sets(x, 1, a.n * a.c, a.s), a.c / groups, kinds, steps, threads);
}
int batch_norm_backward(pt_call *c) { return backward(c, 1, c->params[0].d, true); }
int group_norm_backward(pt_call *c) { return backward(c, c->params[0].i, 0, false); }

}  // namespace

const pt_kernel_entry channel_norm_kernels[] = {{"batch_norm", batch_norm},
                                                {"batch_norm_given", batch_norm_given},
                                                {"batch_norm_backward", batch_norm_backward},
                                                {"group_norm", group_norm},
                                                {"group_norm_backward", group_norm_backward},
                                                {nullptr, nullptr}};

}  // namespace pt_cuda
