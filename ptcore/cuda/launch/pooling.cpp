// The host halves of max_pool, mean_pool and the mean's transpose, in 1 to 3 dims, and of maxima at
// random places.
#include "dense.hpp"
#include "divisor.hpp"
#include "families.hpp"
#include "pooling_args.h"
#include "spatial.hpp"
#include "walk.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel MAX = {"pooling", "pool_max"}, MEAN = {"pooling", "pool_mean"},
             TRANSPOSED = {"pooling", "pool_mean_transposed"},
             FRACTIONAL = {"pooling", "pool_fractional"};

// Window settings in params 0 to 2, dilation in `dilated` if there is one.
int pool(pt_call *c, const Kernel &kernel, const pt_view &large, const pt_view &small, int dilated,
         PoolArgs a) {
    if (large.ndim < 3 || large.ndim > 5 || small.ndim != large.ndim)
        return bad(c, "expected tensors of 3 to 5 dimensions");
    const BatchView wide(large), narrow(small), x(c->in[0]);
    if (wide.size[0] != narrow.size[0] || wide.size[1] != narrow.size[1])
        return bad(c, "sizes do not fit together");
    a.adaptive = c->params[0].count == 0;
    double inputs = 1;
    for (int d = 0; d < 3; d++) {
        PoolAxis &s = a.axis[d];
        const int64_t in = wide.size[d + 2], out = narrow.size[d + 2];
        int64_t stride = 1, dilation = 1;
        s.x = x.stride[d + 2], s.kernel = 1;
        inputs *= (double)in;
        if (!a.adaptive) {
            s.kernel = setting(c, 0, d, 1), stride = setting(c, 1, d, 1),
            s.padding = setting(c, 2, d, 0);
            if (dilated) dilation = setting(c, dilated, d, 1);
        }
        const int64_t most = (int64_t)1 << 40;
        if (s.kernel < 1 || stride < 1 || s.padding < 0 || dilation < 1 || s.kernel > most ||
            stride > most || s.padding > most || dilation > most)
            return bad(
                c, "kernel, stride and dilation must be positive, padding must not be negative");
        if ((double)out * (double)stride + (double)s.kernel * (double)dilation +
                (double)in * (double)out >
            1e18)
            return bad(c, "windows are too large for these sizes");
        s.in = divisor(in), s.out = divisor(out), s.stride = divisor(stride),
        s.dilation = divisor(dilation);
    }
    a.total = c->out[0].numel;
    if (a.total == 0) return PT_OK;
    if (dilated && inputs == 0) return bad(c, "windows of an empty input have no maximum");
    a.out = c->out[0].data, a.x = x.data;
    if (c->in[0].numel == 0) return clear(c, a.out, a.total * item_size(c->out[0].dtype));
    a.channels = divisor(x.size[1]), a.x_image = x.stride[0], a.x_channel = x.stride[1];
    return launch(c, kernel, types(c->in[0].dtype), blocks_for(c, a.total, THREADS, 32), THREADS,
                  a);
}

int max_pool(pt_call *c) {
    PoolArgs a = {};
    a.indices = reinterpret_cast<int64_t *>(c->out[1].data);
    return pool(c, MAX, c->in[0], c->out[0], 3, a);
}

int fractional_max(pt_call *c) {
    const pt_view &input = c->in[0], &samples = c->in[1];
    const int n = input.ndim - 2;
    if (n < 1 || n > 3 || !floating(input) || samples.dtype != input.dtype || samples.ndim != 3 ||
        samples.sizes[2] != n || samples.sizes[0] != input.sizes[0] ||
        samples.sizes[1] != input.sizes[1])
        return bad(c, "expected (N, C, ...) and samples (N, C, dims) of the same floating dtype");
    const BatchView x(input), y(c->out[0]);
    PoolArgs a = {};
    for (int d = 0; d < 3; d++) {
        PoolAxis &s = a.axis[d];
        const int64_t in = x.size[d + 2], out = y.size[d + 2];
        s.kernel = setting(c, 0, d, 1);
        if (s.kernel < 1 || s.kernel > in || out > in - s.kernel + 1)
            return bad(c, "windows do not fit in the input");
        s.in = divisor(in), s.out = divisor(out), s.dilation = divisor(1);
        const int k = d - 3 + n;    // number among the n dims; two dims have their samples in turn
        s.x = x.stride[d + 2], s.sample = k < 0 ? 0 : (n == 2 ? 1 - k : k) * samples.strides[2];
        s.step = out > 1 ? (double)(in - s.kernel) / (double)(out - 1) : 0;
    }
    a.total = c->out[0].numel;
    if (a.total == 0) return PT_OK;
    a.out = c->out[0].data, a.indices = reinterpret_cast<int64_t *>(c->out[1].data), a.x = x.data;
    a.samples = samples.data, a.sample_image = samples.strides[0],
    a.sample_channel = samples.strides[1];
    a.channels = divisor(x.size[1]), a.x_image = x.stride[0], a.x_channel = x.stride[1];
    return launch(c, FRACTIONAL, types(input.dtype), blocks_for(c, a.total, THREADS, 32), THREADS,
                  a);
}

PoolArgs averaging(const pt_call *c) {
    PoolArgs a = {};
    a.include_pad = c->params[4].i != 0;
    a.divisor = c->params[5].kind == PT_PARAM_NONE ? 0 : c->params[5].i;
    return a;
}
int mean_pool(pt_call *c) { return pool(c, MEAN, c->in[0], c->out[0], 0, averaging(c)); }
int mean_pool_transposed(pt_call *c) {
    return pool(c, TRANSPOSED, c->out[0], c->in[0], 0, averaging(c));
}

}  // namespace

const pt_kernel_entry pooling_kernels[] = {{"max_pool", max_pool},
                                           {"fractional_max", fractional_max},
                                           {"mean_pool", mean_pool},
                                           {"mean_pool_transposed", mean_pool_transposed},
                                           {nullptr, nullptr}};

}  // namespace pt_cuda
