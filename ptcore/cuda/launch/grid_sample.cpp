// The host halves of grid_sample and its gradients. The row's rule of shapes and its dtypes have
// checked the operands.
#include "divisor.hpp"
#include "families.hpp"
#include "grid_sample_args.h"
#include "spatial.hpp"
#include "walk.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256 };
const Kernel SAMPLE[2] = {{"grid_sample", "grid_sample_2d"}, {"grid_sample", "grid_sample_3d"}},
             BACKWARD[2] = {{"grid_sample", "grid_sample_2d_backward"},
                            {"grid_sample", "grid_sample_3d_backward"}};

void read_arguments(pt_call *c, const pt_view &input, const pt_view &grid, GridSampleArgs &a) {
    const int dims = input.ndim - 2;
    a.mode = (int32_t)c->params[0].i, a.padding = (int32_t)c->params[1].i,
    a.corners = c->params[2].i != 0;
    const BatchView x(input);
    a.x = x.data, a.n = x.size[0], a.channels = x.size[1], a.x_image = x.stride[0],
    a.x_channel = x.stride[1];
    a.grid = grid.data, a.grid_image = grid.strides[0], a.grid_number = grid.strides[dims + 1];
    int64_t points = 1;
    for (int d = 0; d < 3; d++) {
        a.size[d] = x.size[d + 2], a.x_stride[d] = x.stride[d + 2];
        const int from = d - 3 + dims + 1;
        const int64_t size = from >= 1 ? grid.sizes[from] : 1;
        a.grid_size[d] = divisor(size), a.grid_stride[d] = from >= 1 ? grid.strides[from] : 0;
        points *= size;
    }
    a.points = divisor(points);
}

int sample(pt_call *c) {
    GridSampleArgs a = {};
    if (c->out[0].numel == 0) return PT_OK;
    read_arguments(c, c->in[0], c->in[1], a);
    a.out = c->out[0].data;
    // Several threads share the channels of a point where there are few points.
    a.together = a.channels;
    const int64_t busy = (int64_t)multiprocessors(c) * 1024;
    while (a.together > 8 && a.n * a.points.by * ceil_div(a.channels, a.together) < busy)
        a.together = (a.together + 1) / 2;
    const int64_t blocks = ceil_div(a.channels, a.together), work = a.n * blocks * a.points.by;
    a.blocks = divisor(blocks);
    return launch(c, SAMPLE[c->in[0].ndim - 4], types(c->in[0].dtype),
                  blocks_for(c, work, THREADS, 32), THREADS, a);
}

int backward(pt_call *c) {
    const pt_view &g = c->in[0], &input = c->in[1], &gx = c->out[0];
    GridSampleArgs a = {};
    read_arguments(c, input, c->in[2], a);
    const int64_t points = c->in[2].numel / (input.ndim - 2);           // of all images
    const bool half = item_size(gx.dtype) == 2;
    const Scratch sums(c, half ? gx.numel * 4 : 0);
    if (half && gx.numel && !sums.data) return PT_MEMORY_ERROR;
    a.gx = half ? static_cast<char *>(sums.data) : gx.data;
    a.g = g.data, a.out = c->out[1].data;
    int status = clear(c, a.gx, gx.numel * (half ? 4 : item_size(gx.dtype)));
    if (!status && points)
        status = launch(c, BACKWARD[input.ndim - 4], types(input.dtype),
                        blocks_for(c, points, THREADS, 32), THREADS, a);
    if (status || !half || gx.numel == 0) return status;
    pt_view from = gx;
    from.data = a.gx;
    from.dtype = PT_FLOAT32;
    return copy(c, &gx, &from);
}

}  // namespace

const pt_kernel_entry grid_sample_kernels[] = {
    {"grid_sample", sample}, {"grid_sample_backward", backward}, {nullptr, nullptr}};

}  // namespace pt_cuda
