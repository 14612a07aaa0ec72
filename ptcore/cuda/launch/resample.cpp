// The host halves of sliding windows and of resampling along a dim.
#include "divisor.hpp"
#include "families.hpp"
#include "resample_args.h"
#include "view.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel UNFOLD = {"sliding", "sliding_unfold"}, FOLD = {"sliding", "sliding_fold"},
             RESAMPLE = {"resample", "resample"}, TRANSPOSED = {"resample", "resample_transposed"};

bool dense(const pt_view &v) { return v.contiguous || v.numel == 0; }

// large (N, C, H, W), small (N, C * kernel, blocks)
int sliding(pt_call *c, const Kernel &kernel, const pt_view &large, const pt_view &small,
            uint64_t kinds) {
    if (large.ndim != 4 || small.ndim != 3) return bad(c, "expected tensors of 4 and 3 dimensions");
    if (!dense(c->in[0])) return bad(c, "expected a contiguous tensor");
    SlidingArgs a = {};
    int64_t kernel_size[2], stride[2], blocks[2];
    int64_t *const to[5] = {kernel_size, a.dilation, a.padding, stride, blocks};
    for (int p = 0; p < 5; p++)
        for (int d = 0; d < 2; d++) {
            to[p][d] = c->params[p].count == 2 ? c->params[p].list[d] : -1;
            if (to[p][d] < 0 || to[p][d] > (int64_t)1 << 40)
                return bad(c, "window settings must hold 2 numbers that are not negative");
        }
    double furthest = 0;
    for (int d = 0; d < 2; d++) {
        furthest += (double)blocks[d] * (double)stride[d] + (double)a.padding[d] +
                    (double)kernel_size[d] * (double)a.dilation[d];
        a.size[d] = divisor(large.sizes[d + 2]), a.kernel[d] = divisor(kernel_size[d]),
        a.blocks[d] = divisor(blocks[d]);
        a.stride[d] = divisor(stride[d]), a.still[d] = stride[d] == 0;
    }
    if (furthest > 1e18) return bad(c, "windows are too large for these sizes");
    if (small.sizes[1] != large.sizes[1] * kernel_size[0] * kernel_size[1] ||
        small.sizes[2] != blocks[0] * blocks[1] || small.sizes[0] != large.sizes[0])
        return bad(c, "sizes do not fit together");
    a.out = c->out[0].data, a.x = c->in[0].data, a.total = c->out[0].numel;
    if (c->in[0].numel == 0) return clear(c, a.out, a.total * item_size(c->out[0].dtype));
    return a.total ? launch(c, kernel, kinds, blocks_for(c, a.total, THREADS, 32), THREADS, a)
                   : (int)PT_OK;
}
int unfold(pt_call *c) { return sliding(c, UNFOLD, c->in[0], c->out[0], by_size(c->out[0].dtype)); }
int fold(pt_call *c) { return sliding(c, FOLD, c->out[0], c->in[0], types(c->out[0].dtype)); }

int along(pt_call *c, const Kernel &kernel, bool transposed) {
    const pt_view &x = c->in[0], &out = c->out[0];
    int dim, status = dim_of(c, x.ndim, dim);
    if (status) return status;
    if (!dense(x)) return bad(c, "expected a contiguous tensor");
    ResampleArgs a = {};
    const int64_t small = (transposed ? out : x).sizes[dim],
                  large = (transposed ? x : out).sizes[dim];
    int64_t inner = 1;
    for (int d = dim + 1; d < x.ndim; d++) inner *= x.sizes[d];
    a.inner = divisor(inner), a.small = divisor(small), a.large = divisor(large);
    a.mode = (int32_t)c->params[2].i, a.corners = c->params[3].i != 0, a.factor = c->params[4].d;
    a.out = out.data, a.x = x.data, a.total = out.numel;
    if (a.total == 0) return PT_OK;
    if (small == 0) return bad(c, "a dim of size 0 cannot be resampled");
    if (large == 0) return clear(c, a.out, a.total * item_size(out.dtype));
    return launch(c, kernel, types(out.dtype), blocks_for(c, a.total, THREADS, 32), THREADS, a);
}
int resample(pt_call *c) { return along(c, RESAMPLE, false); }
int resample_transposed(pt_call *c) { return along(c, TRANSPOSED, true); }

}  // namespace

const pt_kernel_entry resample_kernels[] = {{"unfold_windows", unfold},
                                            {"fold_windows", fold},
                                            {"resample", resample},
                                            {"resample_transposed", resample_transposed},
                                            {nullptr, nullptr}};

}  // namespace pt_cuda
