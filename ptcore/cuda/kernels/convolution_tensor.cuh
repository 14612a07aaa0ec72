// Convolution and its transpose by tensor cores, of half types and of floats rounded to TF32:
// filters x (taps and channels) times (taps and channels) x results, where channels are neighbours
// in memory, EACH to a word of 16 bytes: each place and each tap has a.words words, and filters are
// stored the same way. Three steps of eight words of both factors are in shared memory at once.
#include "convolution_base.cuh"
#include "mma.cuh"

namespace {

enum {
    THREADS = 256,
    N = 128,
    LINE = 128,
    STAGES = 3,
    ACROSS = 4,
    EACH = 16 / sizeof(T)
};         // LINE: bytes of eight words

// Stores two neighbours at once if they are an aligned word; else returns false.
template <class E> PT_DEVICE bool put_two(E *p, float first, float second) {
    if (reinterpret_cast<uint64_t>(p) % 4) return false;
    *reinterpret_cast<uint32_t *>(p) = word_from(first, second, E());
    return true;
}
PT_DEVICE bool put_two(float *, float, float) { return false; }

// One function: loading, multiplying and storing share the fragments in registers and the stages in
// shared memory.
template <int DOWN> PT_DEVICE void tensor_tile(const ConvolutionArgs &a, int64_t number,
                                               unsigned char *memory) {
    enum { M = 32 * DOWN, STAGE = (M + N) * LINE };
    __shared__ int64_t places[N];
    const int64_t row = take_rest(number, a.by_rows) * M,
                  column = take_rest(number, a.by_columns) * N;
    const int64_t group = take_rest(number, a.by_groups);
    int64_t phase[3], total = a.n, taps = 1;
    Axis<int32_t> axis[3];
    for (int d = 2; d >= 0; d--) {
        phase[d] = take_rest(number, a.axis[d].by_phases);
        axis[d] = axis_of<int32_t>(a.axis[d], phase[d], a.transposed);
        total *= a.axis[d].by_most.by;                  // later phases may have fewer results
        taps *= axis[d].taps;
    }
    if (column >= total) return;                        // the same for all threads of the block
    const int64_t image = a.axis[0].result * a.axis[1].result * a.axis[2].result;
    const int word = threadIdx.x & 7, line = threadIdx.x >> 3;

    // For the results whose words this thread fetches: address and position of the first tap.
    const T *x = reinterpret_cast<const T *>(a.x) + group * a.words * EACH, *from[N / 32];
    int32_t position[N / 32][3];
    PT_UNROLL for (int i = 0; i < N / 32; i++) {
        const int64_t j = column + line + 32 * i;
        bool there = j < total;
        const Digits<int64_t> at = by_results(a, there ? j : 0);
        PT_UNROLL for (int d = 0; d < 3; d++) there = there && at.at[d] < axis[d].results;
        int64_t to = 0;
        from[i] = x + at.first * a.x_image;
        PT_UNROLL for (int d = 0; d < 3; d++) {
            position[i][d] = there ? (int32_t)at.at[d] * axis[d].step + axis[d].base : -0x40000000;
            from[i] += position[i][d] * a.axis[d].x;
            to = to * a.axis[d].result + phase[d] + a.axis[d].phases * at.at[d];
        }
        if (word == 0)
            places[line + 32 * i] =
                there ? (at.first * a.groups + group) * a.filters * image + to : -1;
    }
    const int64_t of_filter =
        a.axis[0].kernel * a.axis[1].kernel * a.axis[2].kernel * a.words * EACH;
    const T *w = reinterpret_cast<const T *>(a.w) + (group * a.filters + row + line) * of_filter;
    const uint32_t all = (uint32_t)(taps * a.words), steps = (all + 7) / 8;
    const uint32_t sizes[3] = {(uint32_t)axis[1].taps, (uint32_t)axis[2].taps, (uint32_t)a.words};
    const Digits<uint32_t> stride = digits_of<uint32_t>(8, sizes);
    Digits<uint32_t> at = digits_of<uint32_t>(word, sizes);
    const Place stages = place_of(memory), mine = stages + line * LINE + ((word ^ (line & 7)) << 4);

    const auto stage = [&](uint32_t s) {
        if (s < steps) {
            const Place to = mine + s % STAGES * STAGE;
            const bool here = 8 * s + word < all;
            const uint32_t tap[3] = {at.first, at.at[0], at.at[1]};
            int32_t by[3];
            int64_t step = at.at[2] * EACH, filter = 0;
            PT_UNROLL for (int d = 0; d < 3; d++) {
                by[d] = (int32_t)tap[d] * axis[d].slope;
                step += by[d] * a.axis[d].x;
                filter = filter * a.axis[d].kernel + axis[d].first + tap[d] * a.axis[d].period;
            }
            filter = (filter * a.words + at.at[2]) * EACH;
            PT_UNROLL for (int i = 0; i < M / 32; i++) {
                const bool fine = here && row + line + 32 * i < a.filters;
                copy_16(to + i * 32 * LINE, fine ? w + i * 32 * of_filter + filter : w, fine);
            }
            PT_UNROLL for (int i = 0; i < N / 32; i++) {
                bool fine = here;
                PT_UNROLL
                for (int d = 0; d < 3; d++)
                    fine = fine && inside(position[i][d] + by[d], a.axis[d].source);
                copy_16(to + (M + i * 32) * LINE, fine ? from[i] + step : x, fine);
            }
            advance(at, stride, sizes);
        }
        close_copies();
    };

    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    const int down = warp / 4 * 16 * DOWN, right = warp % 4 * 8 * ACROSS;
    const Place left_at = left_place<64>(stages) + down * LINE,
                right_at = right_place<64>(stages) + (M + right) * LINE;
    float sum[DOWN][ACROSS][4] = {};
    for (int s = 0; s < STAGES - 1; s++) stage(s);
    for (uint32_t s = 0; s < steps; s++) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();    // all threads see step s, and none reads step s - 1 any more
        stage(s + STAGES - 1);
        const Place left = left_at + s % STAGES * STAGE, others = right_at + s % STAGES * STAGE;
        PT_UNROLL for (int k = 0; k < 4; k++) {
            uint32_t l[DOWN][4], r[ACROSS / 2][4];
            PT_UNROLL
            for (int d = 0; d < DOWN; d++) load_matrices(l[d], (left ^ (k << 5)) + d * 16 * LINE);
            PT_UNROLL
            for (int j = 0; j < ACROSS / 2; j++)
                load_matrices(r[j], (others ^ (k << 5)) + j * 16 * LINE);
            add_products<T, DOWN, ACROSS>(sum, l, r);
        }
    }
    wait_for_copies<0>();
    __syncthreads();                                    // `places` is complete, even without a step

    PT_UNROLL for (int d = 0; d < DOWN; d++)
        PT_UNROLL for (int h = 0; h < 2; h++) {
            const int64_t m = row + down + 16 * d + 8 * h + g;
            if (m >= a.filters) continue;
            const T *biases = reinterpret_cast<const T *>(a.bias);
            const float bias =
                biases ? element(biases, (group * a.filters + m) * a.bias_stride) : 0.f;
            T *const out = reinterpret_cast<T *>(a.out) + m * image;
            PT_UNROLL for (int j = 0; j < ACROSS; j++) {
                const int64_t first = places[right + 8 * j + 2 * t],
                              second = places[right + 8 * j + 2 * t + 1];
                const float x0 = sum[d][j][2 * h] + bias, x1 = sum[d][j][2 * h + 1] + bias;
                if (second == first + 1 && put_two(out + first, x0, x1)) continue;
                if (first >= 0) out[first] = down_to<T>::from(x0);
                if (second >= 0) out[second] = down_to<T>::from(x1);
            }
        }
}

template <int DOWN> PT_DEVICE void convolve_by_tensors(const ConvolutionArgs &a,
                                                       unsigned char *memory) {
    for (int64_t number = blockIdx.x; number < a.tiles; number += gridDim.x) {
        tensor_tile<DOWN>(a, number, memory);
        __syncthreads();    // waits for readers of `places` and of the last step
    }
}

}  // namespace

PT_KERNEL_SYNC_BLOCKS(convolve_tensor, ConvolutionArgs, a, 256, 2) {
    PT_DYNAMIC_SHARED(unsigned char, memory);
    convolve_by_tensors<4>(a, memory);
}
PT_KERNEL_SYNC_BLOCKS(convolve_tensor_few, ConvolutionArgs, a, 256, 2) {
    PT_DYNAMIC_SHARED(unsigned char, memory);
    convolve_by_tensors<2>(a, memory);
}
