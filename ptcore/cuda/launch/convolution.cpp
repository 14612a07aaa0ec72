// The host halves of convolution, its transpose and the gradient of its weight, in 1 to 3 dims.
// Elements read outside of the input are 0; the output's sizes decide how many results there are.
#include <initializer_list>

#include "convolution_args.h"
#include "cublas.hpp"
#include "cudnn.hpp"
#include "divisor.hpp"
#include "families.hpp"
#include "matmul.hpp"
#include "spatial.hpp"
#include "view.hpp"
#include "walk.hpp"

namespace pt_cuda {
namespace {

enum { THREADS = 256, SIDE = 16, FEW = 4 };
const int64_t MOST_GRID = 0x7fffffff;
const Kernel NARROW = {"convolution", "convolve_narrow"},
             SQUARE = {"convolution", "convolve_square"}, WIDE = {"convolution", "convolve_wide"},
             FAR = {"convolution", "convolve_far"}, EACH = {"convolution", "convolve_each"},
             EACH_FAR = {"convolution", "convolve_each_far"},
             WEIGHT = {"convolution_weight", "convolve_weight_near"},
             WEIGHT_FAR = {"convolution_weight", "convolve_weight_far"},
             WEIGHT_EACH = {"convolution_weight", "convolve_weight_each"},
             WEIGHT_SUM = {"convolution_weight", "convolve_weight_sum"};

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
            const int64_t value =
                of.kind == PT_PARAM_INTS && of.count == out.ndim - 2 ? of.list[i] : -1;
            if (value < (p == 1 ? 0 : 1) || value > (int64_t)1 << 40)
                return bad(c,
                           "stride, padding and dilation must hold numbers of at least 1, 0 and 1");
        }
    return c->params[3].i < 1 ? bad(c, "expected a positive number of groups") : PT_OK;
}

// Reads the axes of a call, and the largest number from which a position is computed.
int read_axes(pt_call *c, ConvolutionArgs &a, const BatchView &x, const BatchView &weight,
              const BatchView &result, double &furthest) {
    furthest = 0;
    double taps = (double)a.channels;
    for (int d = 0; d < 3; d++) {
        ConvolutionAxis &axis = a.axis[d];
        axis.source = x.size[d + 2], axis.kernel = weight.size[d + 2],
        axis.result = result.size[d + 2];
        axis.stride = setting(c, 0, d, 1), axis.padding = setting(c, 1, d, 0),
        axis.dilation = setting(c, 2, d, 1);
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

// Sets the divisors that the kernels use.
void set_divisors(ConvolutionArgs &a) {
    a.by_rows = divisor(a.row_tiles), a.by_columns = divisor(a.column_tiles),
    a.by_groups = divisor(a.groups);
    a.by_parts = divisor(a.parts), a.by_words = divisor(a.words);
    a.by_filters = divisor(a.filters), a.by_channels = divisor(a.channels);
    for (ConvolutionAxis &axis : a.axis) {
        axis.by_result = divisor(axis.result), axis.by_kernel = divisor(axis.kernel);
        axis.by_phases = divisor(axis.phases),
        axis.by_most = divisor(ceil_div(axis.result, axis.phases));
    }
}

Grid grid_of(int64_t blocks) { return Grid{(unsigned)smaller(blocks, MOST_GRID), 1, 1}; }

// Tiles of rows x columns; every phase gets as many as the first phase, which has most results.
int by_tiles(pt_call *c, const Kernel &kernel, ConvolutionArgs a, int64_t rows, int64_t columns,
             unsigned shared = 0) {
    int64_t results = a.n, phases = 1;
    for (int d = 0; d < 3; d++) {
        results *= ceil_div(a.axis[d].result, a.axis[d].phases);
        phases *= a.axis[d].phases;
    }
    a.row_tiles = ceil_div(a.filters, rows);
    a.column_tiles = ceil_div(results, columns);
    a.tiles = a.row_tiles * a.column_tiles * a.groups * phases;
    set_divisors(a);
    return launch(c, kernel, types(c->out[0].dtype), grid_of(a.tiles), THREADS, a, shared);
}

// -- by tensor cores ------------------------------------------------------------------------------

const Kernel TENSOR = {"convolution_tensor", "convolve_tensor", 80},
             TENSOR_FEW = {"convolution_tensor", "convolve_tensor_few", 80},
             WEIGHT_TENSOR = {"convolution_weight_tensor", "convolve_weight_tensor", 80},
             WEIGHT_TENSOR_FEW = {"convolution_weight_tensor", "convolve_weight_tensor_few", 80};
enum { TENSOR_COLUMNS = 128, TENSOR_STAGES = 3, WEIGHT_STAGES = 4 };

// The number of products in a result.
double terms_of(const ConvolutionArgs &a) {
    return (double)a.channels * (double)a.axis[0].kernel * (double)a.axis[1].kernel *
           (double)a.axis[2].kernel;
}

// For half types, and for floats if TF32 is allowed, on a device that has the instructions, where
// the words of channels are not mostly filling.
bool for_tensors(const pt_call *c, const ConvolutionArgs &a, double furthest) {
    const int dtype = c->out[0].dtype;
    if (dtype != PT_FLOAT16 && dtype != PT_BFLOAT16 &&
        !(dtype == PT_FLOAT32 && blas_settings.convolution_tf32))
        return false;
    if (furthest >= 1073741824.0) return false;
    if (!runs_on(c, TENSOR) || shared_limit(c) < (96 << 10)) return false;
    return a.groups > 1 ? a.filters >= 8 && a.channels >= 4 : (double)a.filters * terms_of(a) >= 64;
}

// A tensor (outer, groups, channels, a, b, c) arranged so that the channels of each group are
// neighbours, filled up to words with 0. `strides` are the source's, in elements. A source that is
// arranged so already is used in place.
class Words {
public:
    Words(pt_call *c, const pt_view &src, char *data, const int64_t (&sizes)[6],
          const int64_t (&strides)[6], bool dense)
        : each(16 / item_size(src.dtype)), words(ceil_div(sizes[2], each)),
          room(c, fits(data, sizes, strides, dense) ? 0 : bytes(sizes)), good(true) {
        if (fits(data, sizes, strides, dense)) {
            this->data = data;
            for (int d = 0; d < 6; d++) step[d] = strides[d];
            return;
        }
        this->data = static_cast<char *>(room.data);
        good = room.data || bytes(sizes) == 0;
        step[2] = 1, step[1] = words * each;
        int64_t next = sizes[1] * words * each;
        for (int d : {5, 4, 3, 0}) step[d] = next, next *= sizes[d];
        if (good && sizes[2] % each) good = clear(c, room.data, bytes(sizes)) == PT_OK;
        if (!good) return;
        View from(src), to(src);
        from.v.data = data, to.v.data = this->data;
        from.v.ndim = to.v.ndim = 0;
        for (int d = 0; d < 6; d++) from.push(sizes[d], strides[d]), to.push(sizes[d], step[d]);
        from.settle(), to.settle();
        good = copy(c, &to.v, &from.v) == PT_OK;
    }
    bool ok() const { return good; }
    char *data;
    const int64_t each, words;      // elements of a word; words of a group's channels
    int64_t step[6];

private:
    int64_t bytes(const int64_t (&sizes)[6]) const {
        return sizes[0] * sizes[1] * words * 16 * sizes[3] * sizes[4] * sizes[5];
    }
    bool fits(const char *data, const int64_t (&sizes)[6], const int64_t (&strides)[6],
              bool dense) const {
        if (sizes[2] % each || strides[2] != 1 || (uintptr_t)data % 16) return false;
        if (sizes[1] > 1 && strides[1] != sizes[2]) return false;
        int64_t next = sizes[1] * sizes[2];
        for (int d : {5, 4, 3, 0}) {
            if (sizes[d] > 1 && (strides[d] % each || (dense && strides[d] != next))) return false;
            next *= sizes[d];
        }
        return true;
    }
    Scratch room;
    bool good;
};

int by_tensors(pt_call *c, ConvolutionArgs a, const BatchView &x, const BatchView &weight) {
    const int64_t x_sizes[6] = {a.n, a.groups, a.channels, x.size[2], x.size[3], x.size[4]};
    const int64_t x_strides[6] = {
        a.x_image, a.channels * a.x_channel, a.x_channel, a.axis[0].x, a.axis[1].x, a.axis[2].x};
    const int64_t w_sizes[6] = {a.groups * a.filters, 1, a.channels, weight.size[2], weight.size[3],
                                weight.size[4]};
    int64_t w_strides[6] = {a.w_filter, 0, a.w_channel, a.axis[0].w, a.axis[1].w, a.axis[2].w};
    // In the transpose, the filters of one group are not beside those of the next: the weight is
    // first copied by groups.
    const Words images(c, c->in[0], x.data, x_sizes, x_strides, false);
    if (!images.ok()) return PT_MEMORY_ERROR;
    const bool apart = a.groups > 1 && a.w_group != a.filters * a.w_filter;
    View turned(c->in[1]);
    Scratch room(c, apart ? c->in[1].numel * item_size(c->in[1].dtype) : 0);
    char *filters = weight.data;
    if (apart) {
        if (!room.data) return PT_MEMORY_ERROR;
        const int64_t taps = weight.size[2] * weight.size[3] * weight.size[4];
        View from(c->in[1]), to(c->in[1]);
        from.v.ndim = to.v.ndim = 0;
        to.v.data = filters = static_cast<char *>(room.data);
        from.push(a.groups, a.w_group), to.push(a.groups, a.filters * a.channels * taps);
        from.push(a.filters, a.w_filter), to.push(a.filters, a.channels * taps);
        from.push(a.channels, a.w_channel), to.push(a.channels, taps);
        int64_t step = taps;
        for (int d = 0; d < 3; d++) {
            step /= weight.size[d + 2];
            from.push(weight.size[d + 2], a.axis[d].w), to.push(weight.size[d + 2], step);
            w_strides[d + 3] = step;
        }
        w_strides[0] = a.channels * taps, w_strides[2] = taps;
        from.settle(), to.settle();
        const int status = copy(c, &to.v, &from.v);
        if (status) return status;
    }
    const Words packed(c, c->in[1], filters, w_sizes, w_strides, true);
    if (!packed.ok()) return PT_MEMORY_ERROR;
    a.x = images.data, a.w = packed.data, a.words = images.words;
    a.x_image = images.step[0];
    for (int d = 0; d < 3; d++) a.axis[d].x = images.step[d + 3];
    const bool few = a.filters <= 64;
    const int rows = few ? 64 : 128;
    return by_tiles(c, few ? TENSOR_FEW : TENSOR, a, rows, TENSOR_COLUMNS,
                    (rows + TENSOR_COLUMNS) * 128 * TENSOR_STAGES);
}

// With a kernel of one tap, without stride and padding, each image is a product of matrices if its
// places follow each other in memory.
bool is_product(const pt_call *c, const ConvolutionArgs &a) {
    const int dtype = c->out[0].dtype;
    if (!is_floating(dtype) || a.groups != 1 || a.bias) return false;
    int64_t next = 1;
    for (int d = 2; d >= 0; d--) {
        const ConvolutionAxis &axis = a.axis[d];
        if (axis.kernel != 1 || axis.stride != 1 || axis.padding != 0 || axis.result != axis.source)
            return false;
        if (axis.source > 1 && axis.x != next) return false;
        next *= axis.source;
    }
    return a.channels > 0;
}

int by_product(pt_call *c, const ConvolutionArgs &a) {
    Product p;
    p.batch = a.n, p.n = a.filters, p.k = a.channels,
    p.m = a.axis[0].source * a.axis[1].source * a.axis[2].source;
    p.a = {a.w, a.w_filter, a.w_channel, 0};
    p.b = {a.x, a.x_channel, 1, a.x_image};
    p.out = a.out, p.dtype = p.out_dtype = c->out[0].dtype;
    p.tf32 = blas_settings.convolution_tf32;
    return multiply(c, p);
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
    if (x.size[1] % a.groups || out.size[1] % a.groups ||
        weight.size[0] != (transposed ? x : out).size[1] ||
        weight.size[1] != (transposed ? out : x).size[1] / a.groups || out.size[0] != a.n)
        return bad(c, "channels, filters and groups do not fit together");
    if (bias.dtype != PT_NONE &&
        (bias.dtype != c->out[0].dtype || bias.ndim != 1 || bias.sizes[0] != out.size[1]))
        return bad(c, "expected a bias with a number for each channel of the result");
    if (c->out[0].numel == 0) return PT_OK;
    a.channels = x.size[1] / a.groups, a.filters = out.size[1] / a.groups;
    if (a.channels == 0)    // a kernel without elements may have any sizes
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
    if (is_product(c, a)) return by_product(c, a);
    const bool small = a.filters < FEW && (a.groups > 1 || terms_of(a) < 64);
    if (!small &&
        (status = convolve_by_cudnn(c, transposed ? DNN_DATA : DNN_FORWARD)) != DNN_DECLINES)
        return status;
    if (for_tensors(c, a, furthest)) return by_tensors(c, a, x, weight);
    if (small) {
        a.tiles = c->out[0].numel;
        set_divisors(a);
        const Grid grid = blocks_for(c, a.tiles, THREADS, 32);
        return launch(c, far ? EACH_FAR : EACH, types(c->out[0].dtype), grid, THREADS, a);
    }
    if (far) return by_tiles(c, FAR, a, 4 * SIDE, 4 * SIDE);
    if (a.filters <= SIDE) return by_tiles(c, NARROW, a, SIDE, 8 * SIDE);
    // The largest tiles, if enough of them are full to occupy the device.
    const int64_t large = 8 * SIDE, full = c->out[0].numel / (large * large);
    const int dtype = c->out[0].dtype;
    const bool single = is_floating(dtype) && dtype != PT_FLOAT64;
    const bool wide = single && a.filters % large == 0 && full >= 2 * multiprocessors(c);
    return wide ? by_tiles(c, WIDE, a, large, large) : by_tiles(c, SQUARE, a, 4 * SIDE, 4 * SIDE);
}
int convolve(pt_call *c) { return convolve_as(c, false); }
int convolve_transposed(pt_call *c) { return convolve_as(c, true); }

// The bytes of a number in the type in which sums are stored.
int sum_size(int dtype) {
    const int item = item_size(dtype);
    return !is_floating(dtype) && !is_complex(dtype) ? 8 : item < 4 ? 4 : item;
}

// Runs the kernel over parts of the results, then adds up the sums of the parts.
int in_parts(pt_call *c, const Kernel &kernel, ConvolutionArgs a, int64_t blocks, int64_t results,
             int64_t wanted, int64_t worth, int64_t step, unsigned shared) {
    const pt_view &made = c->out[0];
    const int64_t room = ((int64_t)64 << 20) /
                         (made.numel * sum_size(made.dtype));    // the sums stay below 64 MiB
    const int64_t parts = smaller(wanted, smaller(worth, room));
    a.part = ceil_div(ceil_div(results, parts < 1 ? 1 : parts), step) * step;
    a.parts = ceil_div(results, a.part);
    a.tiles = blocks * a.parts;
    set_divisors(a);
    Scratch kept(c, a.parts > 1 ? a.parts * made.numel * sum_size(made.dtype) : 0);
    if (a.parts > 1) {
        if (!kept.data) return PT_MEMORY_ERROR;
        a.out = static_cast<char *>(kept.data);
    }
    const int status = launch(c, kernel, types(made.dtype), grid_of(a.tiles), THREADS, a, shared);
    if (status || a.parts == 1) return status;
    const ConvolutionSumArgs sum = {made.data, a.out, made.numel, a.parts};
    return launch(c, WEIGHT_SUM, types(made.dtype), blocks_for(c, made.numel, THREADS, 32), THREADS,
                  sum);
}

int weight_by_tensors(pt_call *c, ConvolutionArgs a, const BatchView &x, const BatchView &g) {
    const int64_t x_sizes[6] = {a.n, a.groups, a.channels, x.size[2], x.size[3], x.size[4]};
    const int64_t x_strides[6] = {
        a.x_image, a.channels * a.x_channel, a.x_channel, a.axis[0].x, a.axis[1].x, a.axis[2].x};
    const int64_t g_sizes[6] = {a.n, a.groups, a.filters, g.size[2], g.size[3], g.size[4]};
    const int64_t g_strides[6] = {
        a.g_image, a.filters * a.g_channel, a.g_channel, a.axis[0].g, a.axis[1].g, a.axis[2].g};
    const Words images(c, c->in[0], x.data, x_sizes, x_strides, false),
        gradient(c, c->in[1], g.data, g_sizes, g_strides, true);
    if (!images.ok() || !gradient.ok()) return PT_MEMORY_ERROR;
    a.x = images.data, a.words = images.words, a.x_image = images.step[0];
    a.g = gradient.data, a.filter_words = gradient.words;
    for (int d = 0; d < 3; d++) a.axis[d].x = images.step[d + 3];
    const bool few = a.filters <= 64;
    const int rows = few ? 64 : 128;
    int64_t words = a.words;
    for (int d = 0; d < 3; d++) words *= a.axis[d].kernel;
    a.row_tiles = ceil_div(a.filters, rows),
    a.column_tiles = ceil_div(words * images.each, TENSOR_COLUMNS);
    const int64_t blocks = a.row_tiles * a.column_tiles * a.groups,
                  results = a.n * g.size[2] * g.size[3] * g.size[4];
    const int64_t wanted = ceil_div(4 * (int64_t)multiprocessors(c), blocks);
    return in_parts(c, few ? WEIGHT_TENSOR_FEW : WEIGHT_TENSOR, a, blocks, results, wanted,
                    ceil_div(results, 512), 4 * images.each,
                    64 * (rows + TENSOR_COLUMNS) * WEIGHT_STAGES);
}

int convolve_weight(pt_call *c) {
    int status = check(c);
    if (status) return status;
    const pt_view &made = c->out[0];
    const BatchView x(c->in[0]), g(c->in[1]), out(made);
    ConvolutionArgs a = {};
    a.groups = c->params[3].i;
    a.n = x.size[0];
    if (g.size[0] != a.n || x.size[1] % a.groups || g.size[1] % a.groups ||
        out.size[0] != g.size[1] || out.size[1] != x.size[1] / a.groups)
        return bad(c, "channels, filters and groups do not fit together");
    if (made.numel == 0) return PT_OK;
    a.channels = x.size[1] / a.groups, a.filters = g.size[1] / a.groups;
    a.out = out.data, a.x = x.data, a.g = g.data;
    a.x_image = x.stride[0], a.x_channel = x.stride[1], a.g_image = g.stride[0],
    a.g_channel = g.stride[1];
    double furthest;
    status = read_axes(c, a, x, out, g, furthest);
    if (status) return status;
    const int64_t span = 4 * SIDE, results = a.n * g.size[2] * g.size[3] * g.size[4],
                  terms = made.numel / (a.groups * a.filters);
    if (results == 0) return clear(c, made.data, made.numel * item_size(made.dtype));
    if ((status = convolve_by_cudnn(c, DNN_FILTER)) != DNN_DECLINES) return status;
    if (for_tensors(c, a, furthest)) return weight_by_tensors(c, a, x, g);
    a.row_tiles = ceil_div(a.filters, span), a.column_tiles = ceil_div(terms, span);
    int64_t blocks = a.row_tiles * a.column_tiles * a.groups;
    const bool each = a.filters * terms * 8 < a.row_tiles * a.column_tiles * span * span;
    if (each) blocks = made.numel;
    // As many sums as occupy the device, if each sum has enough terms.
    const Kernel &kernel = each ? WEIGHT_EACH : furthest >= 2147483648.0 ? WEIGHT_FAR : WEIGHT;
    return in_parts(c, kernel, a, blocks, results,
                    ceil_div(4 * (int64_t)multiprocessors(c), blocks),
                    ceil_div(results, each ? 4096 : 512), 1, 0);
}

}  // namespace

const pt_kernel_entry convolution_kernels[] = {{"convolve", convolve},
                                               {"convolve_transposed", convolve_transposed},
                                               {"convolve_weight", convolve_weight},
                                               {nullptr, nullptr}};

}  // namespace pt_cuda
