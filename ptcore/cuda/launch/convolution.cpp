// The host halves of convolution, its transpose and the gradient of its weight, in 1 to 3 dims. What is read outside of
// the input is 0; the sizes of the output say how much there is of it.
#include "convolution_args.h"
#include "families.hpp"
#include "spatial.hpp"
#include "walk.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, SIDE = 16, FEW = 4 };
const int64_t MOST_GRID = 0x7fffffff;
const Kernel NARROW = {"convolution", "convolve_narrow"}, SQUARE = {"convolution", "convolve_square"},
             WIDE = {"convolution", "convolve_wide"}, FAR = {"convolution", "convolve_far"},
             EACH = {"convolution", "convolve_each"}, EACH_FAR = {"convolution", "convolve_each_far"},
             WEIGHT = {"convolution_weight", "convolve_weight_near"},
             WEIGHT_FAR = {"convolution_weight", "convolve_weight_far"},
             WEIGHT_EACH = {"convolution_weight", "convolve_weight_each"},
             WEIGHT_SUM = {"convolution_weight", "convolve_weight_sum"};

int bad(pt_call *c, const char *text) { return failed(c, PT_RUNTIME_ERROR, text); }
int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
int64_t gcd(int64_t x, int64_t y) { return y ? gcd(y, x % y) : x; }

int check(pt_call *c) {
    const pt_view &out = c->out[0];
    if (out.ndim < 3 || out.ndim > 5) return bad(c, "expected tensors of 3 to 5 dimensions");
    for (int i = 0; i < 2; i++)
        if (c->in[i].dtype != out.dtype || c->in[i].ndim != out.ndim)
            return bad(c, "expected operands of one dtype and number of dimensions");
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < out.ndim - 2; i++) {
            const pt_param &of = c->params[p];
            const int64_t value = of.kind == PT_PARAM_INTS && of.count == out.ndim - 2 ? of.list[i] : -1;
            if (value < (p == 1 ? 0 : 1) || value > (int64_t)1 << 40)
                return bad(c, "stride, padding and dilation must hold numbers of at least 1, 0 and 1");
        }
    return c->params[3].i < 1 ? bad(c, "expected a positive number of groups") : PT_OK;
}

// The axes of a call, and the largest number that a position is computed from.
int read_axes(pt_call *c, ConvolutionArgs &a, const BatchView &x, const BatchView &weight, const BatchView &result,
              double &furthest) {
    furthest = 0;
    double taps = (double)a.channels;
    for (int d = 0; d < 3; d++) {
        ConvolutionAxis &axis = a.axis[d];
        axis.source = x.size[d + 2], axis.kernel = weight.size[d + 2], axis.result = result.size[d + 2];
        axis.stride = setting(c, 0, d, 1), axis.padding = setting(c, 1, d, 0), axis.dilation = setting(c, 2, d, 1);
        axis.phases = a.transposed ? smaller(axis.stride, axis.result) : 1;
        axis.period = a.transposed ? axis.stride / gcd(axis.stride, axis.dilation) : 1;
        axis.x = x.stride[d + 2], axis.w = weight.stride[d + 2], axis.g = result.stride[d + 2];
        const double far = ((double)axis.source + (double)axis.result) * (double)axis.stride +
                           (double)axis.kernel * (double)axis.dilation + (double)axis.padding;
        furthest = far > furthest ? far : furthest;
        taps *= (double)axis.kernel;
    }
    if (furthest > 1e15) return bad(c, "stride and dilation are too large for these sizes");
    return taps >= 2147483648.0 ? bad(c, "a filter has more than 2**31 elements") : PT_OK;
}

Grid grid_of(int64_t blocks) { return Grid{(unsigned)smaller(blocks, MOST_GRID), 1, 1}; }

// Tiles of rows x columns, as many as the first phase has: no other has more results.
int by_tiles(pt_call *c, const Kernel &kernel, ConvolutionArgs a, int64_t rows, int64_t columns) {
    int64_t results = a.n, phases = 1;
    for (int d = 0; d < 3; d++) {
        results *= ceil_div(a.axis[d].result, a.axis[d].phases);
        phases *= a.axis[d].phases;
    }
    a.row_tiles = ceil_div(a.filters, rows);
    a.column_tiles = ceil_div(results, columns);
    a.tiles = a.row_tiles * a.column_tiles * a.groups * phases;
    return launch(c, kernel, types(c->out[0].dtype), grid_of(a.tiles), THREADS, a);
}

int convolve_as(pt_call *c, bool transposed) {
    int status = check(c);
    if (status) return status;
    const BatchView x(c->in[0]), out(c->out[0]);
    BatchView weight(c->in[1]);
    const pt_view &bias = c->in[2];
    ConvolutionArgs a = {};
    a.groups = c->params[3].i;
    a.n = x.size[0];
    if (x.size[1] % a.groups || out.size[1] % a.groups || weight.size[0] != (transposed ? x : out).size[1] ||
        weight.size[1] != (transposed ? out : x).size[1] / a.groups || out.size[0] != a.n)
        return bad(c, "channels, filters and groups do not fit together");
    if (bias.dtype != PT_NONE && (bias.dtype != c->out[0].dtype || bias.ndim != 1 || bias.sizes[0] != out.size[1]))
        return bad(c, "expected a bias with a number for each channel of the result");
    if (c->out[0].numel == 0) return PT_OK;
    a.channels = x.size[1] / a.groups, a.filters = out.size[1] / a.groups;
    if (a.channels == 0)                                // whatever sizes a kernel without numbers has
        for (int d = 0; d < 3; d++) weight.size[d + 2] = 1;
    a.transposed = transposed;
    a.out = out.data, a.x = x.data, a.w = weight.data;
    a.x_image = x.stride[0], a.x_channel = x.stride[1];
    a.w_filter = weight.stride[transposed], a.w_channel = weight.stride[!transposed];
    a.w_group = weight.stride[0] * (transposed ? a.channels : a.filters);
    if (bias.dtype != PT_NONE) a.bias = bias.data, a.bias_stride = bias.strides[0];
    double furthest;
    status = read_axes(c, a, x, weight, out, furthest);
    if (status) return status;
    const bool far = furthest >= 2147483648.0;
    if (a.filters < FEW) {
        a.tiles = c->out[0].numel;
        const Grid grid = blocks_for(c, a.tiles, THREADS, 32);
        return launch(c, far ? EACH_FAR : EACH, types(c->out[0].dtype), grid, THREADS, a);
    }
    if (far) return by_tiles(c, FAR, a, 4 * SIDE, 4 * SIDE);
    if (a.filters <= SIDE) return by_tiles(c, NARROW, a, SIDE, 8 * SIDE);
    // The largest tiles where enough of them are full to occupy the device.
    const int64_t large = 8 * SIDE, full = c->out[0].numel / (large * large);
    const int dtype = c->out[0].dtype;
    const bool single = dtype >= PT_FLOAT16 && dtype <= PT_FLOAT32;
    const bool wide = single && a.filters % large == 0 && full >= 2 * multiprocessors(c);
    return wide ? by_tiles(c, WIDE, a, large, large) : by_tiles(c, SQUARE, a, 4 * SIDE, 4 * SIDE);
}
int convolve(pt_call *c) { return convolve_as(c, false); }
int convolve_transposed(pt_call *c) { return convolve_as(c, true); }

// The bytes of a number as sums are kept.
int sum_size(int dtype) { return dtype < PT_FLOAT16 ? 8 : dtype <= PT_FLOAT32 ? 4 : item_size(dtype); }

int convolve_weight(pt_call *c) {
    int status = check(c);
    if (status) return status;
    const pt_view &made = c->out[0];
    const BatchView x(c->in[0]), g(c->in[1]), out(made);
    ConvolutionArgs a = {};
    a.groups = c->params[3].i;
    a.n = x.size[0];
    if (g.size[0] != a.n || x.size[1] % a.groups || g.size[1] % a.groups || out.size[0] != g.size[1] ||
        out.size[1] != x.size[1] / a.groups)
        return bad(c, "channels, filters and groups do not fit together");
    if (made.numel == 0) return PT_OK;
    a.channels = x.size[1] / a.groups, a.filters = g.size[1] / a.groups;
    a.out = out.data, a.x = x.data, a.g = g.data;
    a.x_image = x.stride[0], a.x_channel = x.stride[1], a.g_image = g.stride[0], a.g_channel = g.stride[1];
    double furthest;
    status = read_axes(c, a, x, out, g, furthest);
    if (status) return status;
    const int64_t span = 4 * SIDE, results = a.n * g.size[2] * g.size[3] * g.size[4],
                  terms = made.numel / (a.groups * a.filters);
    if (results == 0) return clear(c, made.data, made.numel * item_size(made.dtype));
    a.row_tiles = ceil_div(a.filters, span), a.column_tiles = ceil_div(terms, span);
    int64_t blocks = a.row_tiles * a.column_tiles * a.groups;
    const bool each = a.filters * terms * 8 < a.row_tiles * a.column_tiles * span * span;
    if (each) blocks = made.numel;
    // As many sums as occupy the device, if each has enough to add up; what is kept of them stays below 64 MiB.
    const int64_t wanted = ceil_div(4 * (int64_t)multiprocessors(c), blocks),
                  worth = ceil_div(results, each ? 4096 : 512),
                  room = ((int64_t)64 << 20) / (made.numel * sum_size(made.dtype));
    const int64_t parts = smaller(wanted, smaller(worth, room));
    a.part = ceil_div(results, parts < 1 ? 1 : parts);
    a.parts = ceil_div(results, a.part);
    a.tiles = blocks * a.parts;
    Scratch kept(c, a.parts > 1 ? a.parts * made.numel * sum_size(made.dtype) : 0);
    if (a.parts > 1) {
        if (!kept.data) return PT_MEMORY_ERROR;
        a.out = static_cast<char *>(kept.data);
    }
    const Kernel &kernel = each ? WEIGHT_EACH : furthest >= 2147483648.0 ? WEIGHT_FAR : WEIGHT;
    status = launch(c, kernel, types(made.dtype), grid_of(a.tiles), THREADS, a);
    if (status || a.parts == 1) return status;
    const ConvolutionSumArgs sum = {made.data, a.out, made.numel, a.parts};
    return launch(c, WEIGHT_SUM, types(made.dtype), blocks_for(c, made.numel, THREADS, 32), THREADS, sum);
}

}  // namespace

const pt_kernel_entry convolution_kernels[] = {{"convolve", convolve}, {"convolve_transposed", convolve_transposed},
                                               {"convolve_weight", convolve_weight}, {nullptr, nullptr}};

}  // namespace pt_cuda
