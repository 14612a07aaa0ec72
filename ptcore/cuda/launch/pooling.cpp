// The host halves of max_pool, mean_pool and the mean's transpose, in 1 to 3 dims.
#include "families.hpp"
#include "pooling_args.h"
#include "spatial.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel MAX = {"pooling", "pool_max"}, MEAN = {"pooling", "pool_mean"},
             TRANSPOSED = {"pooling", "pool_mean_transposed"};

int bad(pt_call *c, const char *text) { return failed(c, PT_RUNTIME_ERROR, text); }

// Window settings in params 0 to 2, dilation in `dilated` if there is one.
int pool(pt_call *c, const Kernel &kernel, const pt_view &large, const pt_view &small, int dilated, PoolArgs a) {
    if (large.ndim < 3 || large.ndim > 5 || small.ndim != large.ndim)
        return bad(c, "expected tensors of 3 to 5 dimensions");
    const BatchView wide(large), narrow(small), x(c->in[0]);
    if (wide.size[0] != narrow.size[0] || wide.size[1] != narrow.size[1]) return bad(c, "sizes do not fit together");
    a.adaptive = c->params[0].count == 0;
    double inputs = 1;
    for (int d = 0; d < 3; d++) {
        PoolAxis &s = a.axis[d];
        s.in = wide.size[d + 2], s.out = narrow.size[d + 2], s.x = x.stride[d + 2];
        s.kernel = s.stride = s.dilation = 1;
        inputs *= (double)s.in;
        if (!a.adaptive) {
            s.kernel = setting(c, 0, d, 1), s.stride = setting(c, 1, d, 1), s.padding = setting(c, 2, d, 0);
            if (dilated) s.dilation = setting(c, dilated, d, 1);
        }
        const int64_t most = (int64_t)1 << 40;
        if (s.kernel < 1 || s.stride < 1 || s.padding < 0 || s.dilation < 1 || s.kernel > most || s.stride > most ||
            s.padding > most || s.dilation > most)
            return bad(c, "kernel, stride and dilation must be positive, padding must not be negative");
        if ((double)s.out * (double)s.stride + (double)s.kernel * (double)s.dilation +
                (double)s.in * (double)s.out > 1e18)
            return bad(c, "windows are too large for these sizes");
    }
    a.total = c->out[0].numel;
    if (a.total == 0) return PT_OK;
    if (dilated && inputs == 0) return bad(c, "windows of an empty input have no maximum");
    a.out = c->out[0].data, a.x = x.data;
    a.channels = x.size[1], a.x_image = x.stride[0], a.x_channel = x.stride[1];
    return launch(c, kernel, types(c->in[0].dtype), blocks_for(c, a.total, THREADS, 32), THREADS, a);
}

int max_pool(pt_call *c) {
    PoolArgs a = {};
    a.indices = reinterpret_cast<int64_t *>(c->out[1].data);
    return pool(c, MAX, c->in[0], c->out[0], 3, a);
}

PoolArgs averaging(const pt_call *c) {
    PoolArgs a = {};
    a.include_pad = c->params[4].i != 0;
    a.divisor = c->params[5].kind == PT_PARAM_NONE ? 0 : c->params[5].i;
    return a;
}
int mean_pool(pt_call *c) { return pool(c, MEAN, c->in[0], c->out[0], 0, averaging(c)); }
int mean_pool_transposed(pt_call *c) { return pool(c, TRANSPOSED, c->out[0], c->in[0], 0, averaging(c)); }

}  // namespace

const pt_kernel_entry pooling_kernels[] = {{"max_pool", max_pool}, {"mean_pool", mean_pool},
                                           {"mean_pool_transposed", mean_pool_transposed}, {nullptr, nullptr}};

}  // namespace pt_cuda
