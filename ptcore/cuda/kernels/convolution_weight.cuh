// The gradient of a convolution's weight as one product of matrices for each group: filters x
// results times results x (channels and taps). The results are split into several sums, which are
// added up in order.
#include "convolution_base.cuh"

namespace {

enum { DEPTH = 16, SIDE = 16, EACH = 4, SPAN = SIDE * EACH };

// The results that sum number `number` adds up.
struct Part {
    int64_t begin, end;
};
PT_DEVICE Part part_of(const ConvolutionArgs &a, int64_t number) {
    const int64_t all = a.n * a.axis[0].result * a.axis[1].result * a.axis[2].result;
    const int64_t begin = number * a.part, end = begin + a.part;
    return {begin < all ? begin : all, end < all ? end : all};
}

// A single sum is the result; several sums are stored in the type of computation.
PT_DEVICE void keep(const ConvolutionArgs &a, int64_t part, int64_t i, C sum) {
    const int64_t n =
        a.groups * a.filters * a.channels * a.axis[0].kernel * a.axis[1].kernel * a.axis[2].kernel;
    if (a.parts == 1) reinterpret_cast<T *>(a.out)[i] = down<T>(sum);
    else reinterpret_cast<C *>(a.out)[part * n + i] = sum;
}

template <class I> PT_DEVICE void tile(const ConvolutionArgs &a, int64_t number) {
    alignas(16) __shared__ C left[DEPTH][SPAN + 4];
    alignas(16) __shared__ C right[DEPTH][SPAN + 4];
    const int64_t row = take_rest(number, a.by_rows) * SPAN,
                  column = take_rest(number, a.by_columns) * SPAN;
    const int64_t group = take_rest(number, a.by_groups), part = number;
    const int64_t results[3] = {a.axis[0].result, a.axis[1].result, a.axis[2].result};
    const int64_t terms = a.channels * a.axis[0].kernel * a.axis[1].kernel * a.axis[2].kernel;
    const Part range = part_of(a, part);

    // For each column that this thread gathers: the offsets of its channel and tap.
    const int k = threadIdx.x % DEPTH, lowest = threadIdx.x / DEPTH;
    const T *g = reinterpret_cast<const T *>(a.g) + (group * a.filters + row) * a.g_channel;
    const T *x = reinterpret_cast<const T *>(a.x) + group * a.channels * a.x_channel;
    int64_t channel[EACH];
    I tap[EACH][3];
    bool there[EACH];
    for (int i = 0; i < EACH; i++) {
        const int64_t j = column + lowest + i * SIDE;
        const Digits<int64_t> at = digits_of(j < terms ? j : 0, a.axis[0].by_kernel,
                                             a.axis[1].by_kernel, a.axis[2].by_kernel);
        there[i] = j < terms;
        channel[i] = at.first * a.x_channel;
        for (int d = 0; d < 3; d++)
            tap[i][d] = (I)(at.at[d] * a.axis[d].dilation - a.axis[d].padding);
    }

    const Digits<int64_t> stride = by_results(a, DEPTH);
    Digits<int64_t> at = by_results(a, range.begin + k);
    // The next step's elements are loaded while this step's are multiplied.
    C l_next[EACH], r_next[EACH];
    const auto gather = [&](int64_t q) {
        const bool fine = q + k < range.end;
        const int64_t of_g = at.first * a.g_image + at.at[0] * a.axis[0].g +
                             at.at[1] * a.axis[1].g + at.at[2] * a.axis[2].g;
        I position[3];
        for (int d = 0; d < 3; d++) position[d] = (I)(at.at[d] * a.axis[d].stride);
        for (int i = 0; i < EACH; i++) {
            const int r = lowest + i * SIDE;
            l_next[i] = fine && row + r < a.filters ? element(g, of_g + r * a.g_channel) : C(0);
            r_next[i] = C(0);
            if (fine && there[i]) {
                const I p0 = position[0] + tap[i][0], p1 = position[1] + tap[i][1],
                        p2 = position[2] + tap[i][2];
                if (inside(p0, a.axis[0].source) && inside(p1, a.axis[1].source) &&
                    inside(p2, a.axis[2].source))
                    r_next[i] = element(x, at.first * a.x_image + channel[i] + p0 * a.axis[0].x +
                                               p1 * a.axis[1].x + p2 * a.axis[2].x);
            }
        }
        advance(at, stride, results);
    };

    C sum[EACH][EACH] = {};
    const int across = threadIdx.x % SIDE, down_to = threadIdx.x / SIDE * EACH;
    if (range.begin < range.end) gather(range.begin);
    for (int64_t q = range.begin; q < range.end; q += DEPTH) {
        for (int i = 0; i < EACH; i++)
            left[k][lowest + i * SIDE] = l_next[i], right[k][lowest + i * SIDE] = r_next[i];
        __syncthreads();
        if (q + DEPTH < range.end) gather(q + DEPTH);
        for (int j = 0; j < DEPTH; j++) {
            C l[EACH], r[EACH];
            for (int i = 0; i < EACH; i++) l[i] = left[j][down_to + i];
            for (int i = 0; i < EACH; i++) r[i] = right[j][across + i * SIDE];
            for (int i = 0; i < EACH; i++)
                for (int n = 0; n < EACH; n++) sum[i][n] = madd(sum[i][n], l[i], r[n]);
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++) {
        const int64_t m = row + down_to + i;
        if (m >= a.filters) break;
        for (int n = 0; n < EACH; n++) {
            const int64_t j = column + across + n * SIDE;
            if (j < terms) keep(a, part, (group * a.filters + m) * terms + j, sum[i][n]);
        }
    }
}

template <class I> PT_DEVICE void weight(const ConvolutionArgs &a) {
    for (int64_t number = blockIdx.x; number < a.tiles; number += gridDim.x) tile<I>(a, number);
}

struct Plus {
    PT_DEVICE_MEMBER C operator()(C x, C y) const { return x + y; }
};

// A block for each element of the weight, where groups have so few elements that a tile would be
// mostly empty.
PT_DEVICE void each(const ConvolutionArgs &a) {
    const int64_t results[3] = {a.axis[0].result, a.axis[1].result, a.axis[2].result};
    const Digits<int64_t> stride = by_results(a, blockDim.x);
    for (int64_t number = blockIdx.x; number < a.tiles; number += gridDim.x) {
        int64_t i = number, tap[3];
        const int64_t part = take_rest(i, a.by_parts);
        const Part range = part_of(a, part);
        int64_t filter = i;
        for (int d = 2; d >= 0; d--)
            tap[d] =
                take_rest(filter, a.axis[d].by_kernel) * a.axis[d].dilation - a.axis[d].padding;
        const int64_t channel = take_rest(filter, a.by_channels);
        const T *g = reinterpret_cast<const T *>(a.g) + filter * a.g_channel;
        const T *x = reinterpret_cast<const T *>(a.x) +
                     (divided(filter, a.by_filters) * a.channels + channel) * a.x_channel;
        Digits<int64_t> at = by_results(a, range.begin + threadIdx.x);
        C sum = C(0);
        for (int64_t q = range.begin + threadIdx.x; q < range.end; q += blockDim.x) {
            const int64_t p0 = at.at[0] * a.axis[0].stride + tap[0],
                          p1 = at.at[1] * a.axis[1].stride + tap[1],
                          p2 = at.at[2] * a.axis[2].stride + tap[2];
            if (inside(p0, a.axis[0].source) && inside(p1, a.axis[1].source) &&
                inside(p2, a.axis[2].source))
                sum = madd(sum,
                           element(x + at.first * a.x_image,
                                   p0 * a.axis[0].x + p1 * a.axis[1].x + p2 * a.axis[2].x),
                           element(g + at.first * a.g_image, at.at[0] * a.axis[0].g +
                                                                 at.at[1] * a.axis[1].g +
                                                                 at.at[2] * a.axis[2].g));
            advance(at, stride, results);
        }
        sum = block_reduce(sum, Plus(), C(0));
        if (threadIdx.x == 0) keep(a, part, i, sum);
    }
}

PT_DEVICE void add_up(const ConvolutionSumArgs &a) {
    const C *from = reinterpret_cast<const C *>(a.from);
    PT_GRID_STRIDE(i, a.n) {
        C sum = from[i];
        for (int64_t p = 1; p < a.parts; p++) sum = sum + from[p * a.n + i];
        reinterpret_cast<T *>(a.out)[i] = down<T>(sum);
    }
}

}  // namespace

PT_KERNEL_SYNC(convolve_weight_near, ConvolutionArgs, a, 256) { weight<int32_t>(a); }
PT_KERNEL_SYNC(convolve_weight_far, ConvolutionArgs, a, 256) { weight<int64_t>(a); }
PT_KERNEL_SYNC(convolve_weight_each, ConvolutionArgs, a, 256) { each(a); }
PT_KERNEL(convolve_weight_sum, ConvolutionSumArgs, a, 256) { add_up(a); }
