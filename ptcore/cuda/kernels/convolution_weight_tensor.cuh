// The gradient of a convolution's weight by tensor cores, of half types and of floats rounded to
// TF32: filters x results times results x (taps and channels). In g and x, channels are neighbours
// in memory, EACH to a word of 16 bytes: of each group, a result has a.filter_words words in g, and
// a place has a.words words in x. The results are split into several sums as in
// convolution_weight.cuh; each sum is in 32-bit floats.
#include "convolution_base.cuh"
#include "mma.cuh"

namespace {

enum {
    THREADS = 256,
    N = 128,
    STAGES = 4,
    ACROSS = 4,
    EACH = 16 / sizeof(T),
    DEPTH = 4 * EACH
};       // DEPTH: results of a step

// One function: loading, multiplying and storing share the fragments in registers and the stages in
// shared memory.
template <int DOWN> PT_DEVICE void weight_tile(const ConvolutionArgs &a, int64_t number,
                                               unsigned char *memory) {
    enum {
        M = 32 * DOWN,
        LEFT_LINE = sizeof(T) * M,
        LINE = sizeof(T) * N,
        STAGE = DEPTH * (LEFT_LINE + LINE),
        LEFT_WORDS = M / EACH,
        LEFT_STEP = THREADS / LEFT_WORDS,
        WORDS = N / EACH,
        STEP = THREADS / WORDS
    };
    const int64_t row = take_rest(number, a.by_rows) * M,
                  column = take_rest(number, a.by_columns) * WORDS;
    const int64_t group = take_rest(number, a.by_groups), part = number;
    const int64_t kernel[3] = {a.axis[0].kernel, a.axis[1].kernel, a.axis[2].kernel};
    const int64_t taps = kernel[0] * kernel[1] * kernel[2],
                  pixels = a.n * a.axis[0].result * a.axis[1].result * a.axis[2].result;
    const int64_t begin = part * a.part, end = begin + a.part < pixels ? begin + a.part : pixels;
    const uint32_t steps = end > begin ? (uint32_t)((end - begin + DEPTH - 1) / DEPTH) : 0;

    // The words of x that this thread fetches are of one tap: in each step, those of lines `line`
    // and `line` + STEP.
    const int word = threadIdx.x % WORDS, line = threadIdx.x / WORDS;
    const Digits<int64_t> tap =
        digits_of(column + word, a.axis[1].by_kernel, a.axis[2].by_kernel, a.by_words);
    const bool there = tap.first < kernel[0];
    const int64_t which[3] = {tap.first, tap.at[0], tap.at[1]};
    const T *x = reinterpret_cast<const T *>(a.x) + (group * a.words + tap.at[2]) * EACH;
    int32_t by[3];
    PT_UNROLL
    for (int d = 0; d < 3; d++)
        by[d] = (int32_t)(which[d] * a.axis[d].dilation - a.axis[d].padding);
    const int32_t sizes[3] = {(int32_t)a.axis[0].result, (int32_t)a.axis[1].result,
                              (int32_t)a.axis[2].result};
    const Digits<int32_t> stride = digits_of<int32_t>(DEPTH, sizes);
    Digits<int32_t> at[2];
    PT_UNROLL for (int i = 0; i < 2; i++) {
        const Digits<int64_t> first = by_results(a, begin + line + STEP * i);
        at[i] = Digits<int32_t>{(int32_t)first.first,
                                {(int32_t)first.at[0], (int32_t)first.at[1], (int32_t)first.at[2]}};
    }
    const int left_word = threadIdx.x % LEFT_WORDS, left_line = threadIdx.x / LEFT_WORDS;
    const bool left_there = row / EACH + left_word < a.filter_words;
    const T *g =
        reinterpret_cast<const T *>(a.g) + (group * a.filter_words + row / EACH + left_word) * EACH;
    const int64_t g_step = a.groups * a.filter_words * EACH;
    const Turned<T, LEFT_LINE> left(place_of(memory));
    const Turned<T, LINE> others(place_of(memory) + DEPTH * LEFT_LINE);
    const Place left_mine = place_of(memory) + left_line * LEFT_LINE,
                mine = place_of(memory) + DEPTH * LEFT_LINE + line * LINE;

    const auto stage = [&](uint32_t s) {
        if (s < steps) {
            const Place shift = s % STAGES * STAGE;
            const int64_t q = begin + (int64_t)s * DEPTH;
            PT_UNROLL for (int i = 0; i < DEPTH / LEFT_STEP; i++) {
                const int64_t pixel = q + left_line + i * LEFT_STEP;
                const bool fine = left_there && pixel < end;
                copy_16(left_mine + shift + i * LEFT_STEP * LEFT_LINE +
                            left.place(left_line + i * LEFT_STEP, left_word),
                        fine ? g + pixel * g_step : g, fine);
            }
            PT_UNROLL for (int i = 0; i < 2; i++) {
                bool fine = there && q + line + STEP * i < end;
                int64_t from = at[i].first * a.x_image;
                PT_UNROLL for (int d = 0; d < 3; d++) {
                    const int32_t p = at[i].at[d] * (int32_t)a.axis[d].stride + by[d];
                    fine = fine && inside(p, a.axis[d].source);
                    from += p * a.axis[d].x;
                }
                copy_16(mine + shift + i * STEP * LINE + others.place(line + i * STEP, word),
                        fine ? x + from : x, fine);
                advance(at[i], stride, sizes);
            }
        }
        close_copies();
    };

    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int down = warp / 4 * 16 * DOWN, right = warp % 4 * 8 * ACROSS;
    float sum[DOWN][ACROSS][4] = {};
    for (int s = 0; s < STAGES - 1; s++) stage(s);
    for (uint32_t s = 0; s < steps; s++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();    // all threads see step s, and none reads step s - 1 any more
        stage(s + STAGES - 1);
        const int shift = s % STAGES * STAGE;
        PT_UNROLL for (int k = 0; k < DEPTH; k += 2 * EACH) {
            uint32_t l[DOWN][4], r[ACROSS / 2][4];
            PT_UNROLL for (int d = 0; d < DOWN; d++) left.load_left(l[d], shift, k, down + 16 * d);
            PT_UNROLL
            for (int j = 0; j < ACROSS / 2; j++) others.load_right(r[j], shift, k, right + 16 * j);
            add_products<T, DOWN, ACROSS>(sum, l, r);
        }
    }
    wait_for_copies<0>();

    const int64_t count = a.groups * a.filters * a.channels * taps;
    PT_UNROLL for (int j = 0; j < ACROSS; j++) {
        const Digits<int64_t> of = digits_of(column + (right + 8 * j + lane % 4 * 2) / EACH,
                                             a.axis[1].by_kernel, a.axis[2].by_kernel, a.by_words);
        if (of.first >= kernel[0]) continue;
        const int64_t tap_number = (of.first * kernel[1] + of.at[0]) * kernel[2] + of.at[1];
        PT_UNROLL for (int d = 0; d < DOWN; d++)
            PT_UNROLL for (int v = 0; v < 4; v++) {
                const int64_t m = row + down + 16 * d + 8 * (v / 2) + lane / 4;
                const int64_t channel = of.at[2] * EACH + lane % 4 * 2 % EACH + v % 2;
                if (m >= a.filters || channel >= a.channels) continue;
                const int64_t i =
                    ((group * a.filters + m) * a.channels + channel) * taps + tap_number;
                if (a.parts == 1) reinterpret_cast<T *>(a.out)[i] = down_to<T>::from(sum[d][j][v]);
                else reinterpret_cast<float *>(a.out)[part * count + i] = sum[d][j][v];
            }
    }
}

template <int DOWN> PT_DEVICE void weight_by_tensors(const ConvolutionArgs &a,
                                                     unsigned char *memory) {
    for (int64_t number = blockIdx.x; number < a.tiles; number += gridDim.x) {
        weight_tile<DOWN>(a, number, memory);
        __syncthreads();                                // waits for readers of the last step
    }
}

}  // namespace

PT_KERNEL_SYNC_BLOCKS(convolve_weight_tensor, ConvolutionArgs, a, 256, 2) {
    PT_DYNAMIC_SHARED(unsigned char, memory);
    weight_by_tensors<4>(a, memory);
}
PT_KERNEL_SYNC_BLOCKS(convolve_weight_tensor_few, ConvolutionArgs, a, 256, 2) {
    PT_DYNAMIC_SHARED(unsigned char, memory);
    weight_by_tensors<2>(a, memory);
}
