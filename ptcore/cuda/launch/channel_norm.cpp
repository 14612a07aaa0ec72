// The host halves of batch_norm, group_norm and their gradients. An output without data is left out.
#include <cmath>

#include "channel_norm_args.h"
#include "dense.hpp"
#include "families.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, NARROW = 16, FEW = 64, MOST_PARTS = 256 };
const char *const PROGRAM = "channel_norm";
const Kernel SUMS = {PROGRAM, "channel_sums"}, SUMS_NARROW = {PROGRAM, "channel_sums_narrow"},
             BATCH = {PROGRAM, "batch_norm_factors"}, GROUP = {PROGRAM, "group_norm_factors"},
             BATCH_BACK = {PROGRAM, "batch_norm_gradients"}, GROUP_BACK = {PROGRAM, "group_norm_gradients"},
             GROUP_AFFINE = {PROGRAM, "group_norm_affine_gradients"}, APPLY = {PROGRAM, "channel_apply"},
             FILL = {PROGRAM, "channel_fill"};

int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

// A small tensor as kernels read it; the copy of one that is not dense lives as long as this.
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

// `input`: its number in the call; `statistics`: how many numbers there are of each kind that a derivative is given.
int check(pt_call *c, int input, int64_t groups) {
    const pt_view &x = c->in[input];
    for (int i = 0; i < c->nin; i++)
        if (c->in[i].dtype != PT_NONE && !floating(c->in[i]))
            return failed(c, PT_TYPE_ERROR, "expected real floating-point tensors");
    if (x.ndim < 2) return failed(c, PT_RUNTIME_ERROR, "expected at least 2 dimensions");
    if (groups < 1 || x.sizes[1] % groups)
        return failed(c, PT_RUNTIME_ERROR, "expected channels that are divisible by the number of groups");
    for (int i = 0; i <= input; i++)
        if (!c->in[i].contiguous && c->in[i].numel) return failed(c, PT_RUNTIME_ERROR, "expected contiguous tensors");
    return PT_OK;
}
int check_sizes(pt_call *c, int input, int64_t statistics) {
    const pt_view &x = c->in[input];
    bool fits = input == 0 || c->in[0].numel == x.numel;
    for (int i = input + 1; i < c->nin; i++)            // statistics, then numbers of channels
        fits = fits && (!present(c->in[i]) || c->in[i].numel == (input && i < 4 ? statistics : x.sizes[1]));
    return fits ? (int)PT_OK : failed(c, PT_RUNTIME_ERROR, "gradient, statistics and weight do not fit input");
}

// Without an element: statistics are NaN, the gradients of weight and bias are zero.
int of_nothing(pt_call *c, double value) {
    for (int i = 1; i < c->nout; i++) {
        const ChannelFillArgs a = {made(c->out[i]), c->out[i].numel, value};
        if (!a.to.data || a.n == 0) continue;
        int status = launch(c, FILL, types(PT_FLOAT32, PT_FLOAT32), blocks_for(c, a.n, THREADS), THREADS, a);
        if (status) return status;
    }
    return PT_OK;
}

ChannelNormArgs arguments(const pt_view &x, int64_t groups) {
    ChannelNormArgs a = {};
    a.x = x.data;
    a.n = x.sizes[0], a.c = x.sizes[1], a.s = 1, a.groups = groups, a.means = 1;
    for (int d = 2; d < x.ndim; d++) a.s *= x.sizes[d];
    return a;
}
void by_channels(ChannelNormArgs &a) {
    a.sets = a.c, a.runs = a.n, a.length = a.s, a.set_stride = a.s, a.run_stride = a.c * a.s;
    a.period = a.c;
}
void by_runs(ChannelNormArgs &a, int64_t length) {
    a.sets = a.n * a.c * a.s / length, a.runs = 1, a.length = a.set_stride = length;
    a.period = a.n * a.c;
}

// Sums of all sets, then `steps` that make factors of them, then the result.
int normalize(pt_call *c, ChannelNormArgs a, uint64_t kinds, const Kernel *const *steps, const int64_t *threads) {
    const int64_t count = a.runs * a.length;
    const bool narrow = a.runs > 1 ? a.length < NARROW : a.length < FEW;
    const int64_t wanted = ceil_div((narrow ? 1024 : 8) * (int64_t)multiprocessors(c), a.sets);
    int64_t parts = smaller(MOST_PARTS, smaller(wanted, ceil_div(count, narrow ? FEW : 8 * THREADS)));
    a.part = ceil_div(count, parts < 1 ? 1 : parts);
    a.parts = ceil_div(count, a.part);
    const int64_t size = kinds % 256 == PT_FLOAT64 ? 8 : 4;
    const Scratch partial(c, a.sets * a.parts * 16), factors(c, a.period * 4 * size);
    if (!partial.data || !factors.data) return PT_MEMORY_ERROR;
    a.partial = static_cast<double *>(partial.data);
    a.factors = static_cast<char *>(factors.data);
    const int64_t sums = a.sets * a.parts;
    const Grid grid = blocks_for(c, narrow ? sums : sums * THREADS, THREADS, 64);
    int status = launch(c, narrow ? SUMS_NARROW : SUMS, kinds, grid, THREADS, a);
    for (int i = 0; !status && steps[i]; i++)
        status = launch(c, *steps[i], kinds, blocks_for(c, threads[i], THREADS), THREADS, a);
    if (status || !a.out) return status;
    return launch(c, APPLY, kinds, blocks_for(c, a.n * a.c * a.s, 4 * THREADS, 16), THREADS, a);
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
    if (batch) by_channels(a);
    else by_runs(a, a.c / groups * a.s);
    const Kernel *steps[] = {batch ? &BATCH : &GROUP, nullptr};
    const int64_t threads[] = {batch ? a.c : a.n * a.c};
    return normalize(c, a, types(x.dtype, x.dtype), steps, threads);
}
int batch_norm(pt_call *c) { return forward(c, 1, c->params[0].d, true); }
int group_norm(pt_call *c) { return forward(c, c->params[0].i, c->params[1].d, false); }

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
        by_channels(a);
        const Kernel *steps[] = {&BATCH_BACK, nullptr};
        const int64_t threads[] = {a.c};
        return normalize(c, a, kinds, steps, threads);
    }
    by_runs(a, a.s);
    a.means = a.c / groups;
    const Kernel *steps[] = {&GROUP_BACK, &GROUP_AFFINE, nullptr};
    const int64_t threads[] = {a.n * groups * 32, a.c};
    return normalize(c, a, kinds, steps, threads);
}
int batch_norm_backward(pt_call *c) { return backward(c, 1, c->params[0].d, true); }
int group_norm_backward(pt_call *c) { return backward(c, c->params[0].i, 0, false); }

}  // namespace

const pt_kernel_entry channel_norm_kernels[] = {{"batch_norm", batch_norm},
                                                {"batch_norm_backward", batch_norm_backward},
                                                {"group_norm", group_norm},
                                                {"group_norm_backward", group_norm_backward},
                                                {nullptr, nullptr}};

}  // namespace pt_cuda
