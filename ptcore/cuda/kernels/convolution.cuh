// Convolution and its transpose as one product of matrices for each group: filters x (channels and
// taps) times (channels and taps) x results. Tiles of both are gathered into shared memory, and a
// thread sums ROWS x COLUMNS results in registers. In the transpose, the results that have the same
// taps (a phase) form a product of their own.
#include "convolution_base.cuh"

namespace {

enum { SIDE = 16, THREADS = SIDE * SIDE };

// I is int32_t where it holds all positions in an image. DEPTH is the depth of a step, as large as
// the registers for its elements allow. One function: loading, multiplying and storing share the
// sums and the elements in registers.
template <class I, int ROWS, int COLUMNS, int DEPTH> PT_DEVICE void tile(const ConvolutionArgs &a,
                                                                         int64_t number) {
    enum {
        M = SIDE * ROWS,
        N = SIDE * COLUMNS,
        LEFT = DEPTH * M / THREADS,
        EACH = DEPTH * N / THREADS
    };
    alignas(16) __shared__ C left[DEPTH][M + 4];
    alignas(16) __shared__ C right[DEPTH][N];
    __shared__ int64_t places[N];

    const int64_t row = take_rest(number, a.by_rows) * M,
                  column = take_rest(number, a.by_columns) * N;
    const int64_t group = take_rest(number, a.by_groups);
    int64_t phase[3];
    Axis<I> axis[3];
    uint32_t taps[3];
    int64_t total = a.n;
    uint32_t depth = (uint32_t)a.channels;
    for (int d = 2; d >= 0; d--) {
        phase[d] = take_rest(number, a.axis[d].by_phases);
        axis[d] = axis_of<I>(a.axis[d], phase[d], a.transposed);
        taps[d] = (uint32_t)axis[d].taps;
        depth *= taps[d];
        total *= a.axis[d].by_most.by;                  // later phases may have fewer results
    }
    if (column >= total) return;                        // the same for all threads of the block

    // The column that this thread gathers, from the position of the column's first tap on.
    const int mine = threadIdx.x % N, lowest = threadIdx.x / N * EACH;
    const T *x = reinterpret_cast<const T *>(a.x) + group * a.channels * a.x_channel;
    bool there = column + mine < total;
    I position[3] = {};
    {
        const Digits<int64_t> at = by_results(a, there ? column + mine : 0);
        int64_t to = 0;
        for (int d = 0; d < 3; d++) {
            there = there && at.at[d] < axis[d].results;
            position[d] = (I)at.at[d] * axis[d].step + axis[d].base;
            to = to * a.axis[d].result + phase[d] + a.axis[d].phases * at.at[d];
        }
        x += at.first * a.x_image;
        const int64_t image = a.axis[0].result * a.axis[1].result * a.axis[2].result;
        if (threadIdx.x < N)
            places[mine] = there ? (at.first * a.groups + group) * a.filters * image + to : -1;
    }

    const uint32_t step = DEPTH;
    const Digits<uint32_t> stride = digits_of<uint32_t>(step, taps);
    const uint32_t k = threadIdx.x % DEPTH;             // the depth at which it gathers filters
    Digits<uint32_t> of_left = digits_of<uint32_t>(k, taps),
                     of_right = digits_of<uint32_t>(lowest, taps);
    const T *w = reinterpret_cast<const T *>(a.w) + group * a.w_group;
    for (int d = 0; d < 3; d++) w += axis[d].first * a.axis[d].w;

    // The next step's elements are loaded while this step's are multiplied.
    C l_next[LEFT], r_next[EACH];
    const auto gather = [&](uint32_t k0) {
        int64_t from = of_left.first * a.w_channel;
        for (int d = 0; d < 3; d++) from += of_left.at[d] * a.axis[d].period * a.axis[d].w;
        for (int i = 0; i < LEFT; i++) {
            const int64_t r = row + threadIdx.x / DEPTH + i * (THREADS / DEPTH);
            l_next[i] = k0 + k < depth && r < a.filters ? element(w, from + r * a.w_filter) : C(0);
        }
        advance(of_left, stride, taps);
        Digits<uint32_t> at = of_right;
        for (int i = 0; i < EACH; i++) {
            r_next[i] = C(0);
            if (there && k0 + lowest + i < depth) {
                const I p0 = position[0] + (I)at.at[0] * axis[0].slope,
                        p1 = position[1] + (I)at.at[1] * axis[1].slope,
                        p2 = position[2] + (I)at.at[2] * axis[2].slope;
                if (inside(p0, a.axis[0].source) && inside(p1, a.axis[1].source) &&
                    inside(p2, a.axis[2].source))
                    r_next[i] = element(x, at.first * a.x_channel + p0 * a.axis[0].x +
                                               p1 * a.axis[1].x + p2 * a.axis[2].x);
            }
            advance(at, taps);
        }
        advance(of_right, stride, taps);
    };

    C sum[ROWS][COLUMNS] = {};
    const int across = threadIdx.x % SIDE, down_to = threadIdx.x / SIDE * ROWS;
    if (depth) gather(0);
    for (uint32_t k0 = 0; k0 < depth; k0 += DEPTH) {
        for (int i = 0; i < LEFT; i++)
            left[k][threadIdx.x / DEPTH + i * (THREADS / DEPTH)] = l_next[i];
        for (int i = 0; i < EACH; i++) right[lowest + i][mine] = r_next[i];
        __syncthreads();
        if (depth - k0 > DEPTH) gather(k0 + DEPTH);
        for (int j = 0; j < DEPTH; j++) {
            C l[ROWS], r[COLUMNS];
            for (int i = 0; i < ROWS; i++) l[i] = left[j][down_to + i];
            for (int i = 0; i < COLUMNS; i++) r[i] = right[j][across + i * SIDE];
            for (int i = 0; i < ROWS; i++)
                for (int n = 0; n < COLUMNS; n++) sum[i][n] = madd(sum[i][n], l[i], r[n]);
        }
        __syncthreads();
    }
    if (depth == 0) __syncthreads();                    // `places` is complete

    const int64_t image = a.axis[0].result * a.axis[1].result * a.axis[2].result;
    for (int i = 0; i < ROWS; i++) {
        const int64_t m = row + down_to + i;
        if (m >= a.filters) break;
        const T *biases = reinterpret_cast<const T *>(a.bias);
        const C bias = biases ? element(biases, (group * a.filters + m) * a.bias_stride) : C(0);
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t to = places[across + n * SIDE];
            if (to >= 0) reinterpret_cast<T *>(a.out)[to + m * image] = down<T>(sum[i][n] + bias);
        }
    }
}

template <class I, int ROWS, int COLUMNS, int DEPTH> PT_DEVICE void convolve(
    const ConvolutionArgs &a) {
    for (int64_t number = blockIdx.x; number < a.tiles; number += gridDim.x) {
        tile<I, ROWS, COLUMNS, DEPTH>(a, number);
        __syncthreads();                                // waits for readers of `places`
    }
}

// Computes each result on its own, where groups have so few filters that a tile would be mostly
// empty.
template <class I> PT_DEVICE void each(const ConvolutionArgs &a) {
    PT_GRID_STRIDE(i, a.tiles) {
        int64_t rest = i;
        I position[3], taps[3], slope[3];
        const T *w = reinterpret_cast<const T *>(a.w);
        for (int d = 2; d >= 0; d--) {
            int64_t t = take_rest(rest, a.axis[d].by_result);
            const int64_t phase = take_rest(t, a.axis[d].by_phases);
            const Axis<I> axis = axis_of<I>(a.axis[d], phase, a.transposed);
            position[d] = (I)t * axis.step + axis.base;
            taps[d] = axis.taps, slope[d] = axis.slope;
            w += axis.first * a.axis[d].w;
        }
        const int64_t m = take_rest(rest, a.by_filters), group = take_rest(rest, a.by_groups),
                      n = rest;
        const T *x =
            reinterpret_cast<const T *>(a.x) + n * a.x_image + group * a.channels * a.x_channel;
        w += group * a.w_group + m * a.w_filter;
        C sum = a.bias ? element(reinterpret_cast<const T *>(a.bias),
                                 (group * a.filters + m) * a.bias_stride)
                       : C(0);
        for (int64_t c = 0; c < a.channels; c++)
            for (I j = 0; j < taps[0]; j++) {
                const I p0 = position[0] + j * slope[0];
                if (!inside(p0, a.axis[0].source)) continue;
                for (I k = 0; k < taps[1]; k++) {
                    const I p1 = position[1] + k * slope[1];
                    if (!inside(p1, a.axis[1].source)) continue;
                    const T *line = x + c * a.x_channel + p0 * a.axis[0].x + p1 * a.axis[1].x;
                    const T *by = w + c * a.w_channel + j * a.axis[0].period * a.axis[0].w +
                                  k * a.axis[1].period * a.axis[1].w;
                    for (I l = 0; l < taps[2]; l++) {
                        const I p2 = position[2] + l * slope[2];
                        if (inside(p2, a.axis[2].source))
                            sum = madd(sum, element(line, p2 * a.axis[2].x),
                                       element(by, l * a.axis[2].period * a.axis[2].w));
                    }
                }
            }
        reinterpret_cast<T *>(a.out)[i] = down<T>(sum);
    }
}

}  // namespace

PT_KERNEL_SYNC(convolve_narrow, ConvolutionArgs, a, 256) { convolve<int32_t, 1, 8, 16>(a); }
PT_KERNEL_SYNC(convolve_square, ConvolutionArgs, a, 256) { convolve<int32_t, 4, 4, 16>(a); }
PT_KERNEL_SYNC(convolve_wide, ConvolutionArgs, a, 256) {
    if constexpr (sizeof(C) <= 4) convolve<int32_t, 8, 8, 8>(a);
}
PT_KERNEL_SYNC(convolve_far, ConvolutionArgs, a, 256) { convolve<int64_t, 4, 4, 16>(a); }
PT_KERNEL(convolve_each, ConvolutionArgs, a, 256) { each<int32_t>(a); }
PT_KERNEL(convolve_each_far, ConvolutionArgs, a, 256) { each<int64_t>(a); }
