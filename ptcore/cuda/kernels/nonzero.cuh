// Coordinates of the nonzero elements, in order: pieces are counted, the counts summed, the coordinates written.
#include "base.cuh"
#include "nonzero_args.h"

namespace {

typedef PT_T T;

template <class E> PT_DEVICE bool truth(E x) { return x != E(0); }
PT_DEVICE bool truth(half x) { return (x.bits & 0x7fff) != 0; }
PT_DEVICE bool truth(bfloat16 x) { return (x.bits & 0x7fff) != 0; }
PT_DEVICE bool truth(complex64 x) { return x.re != 0 || x.im != 0; }
PT_DEVICE bool truth(complex128 x) { return x.re != 0 || x.im != 0; }
PT_DEVICE bool hit(const NonzeroArgs &a, int64_t i) { return i < a.n && truth(load(reinterpret_cast<const T *>(a.in), i)); }

PT_DEVICE void count(const NonzeroArgs &a) {
    for (int64_t p = blockIdx.x; p < a.pieces; p += gridDim.x) {
        int many = 0;
        for (int i = threadIdx.x; i < PT_NONZERO_PIECE; i += blockDim.x) many += hit(a, p * PT_NONZERO_PIECE + i);
        many = block_reduce(many, plus(), 0);
        if (threadIdx.x == 0) a.counts[p] = many;
    }
}

// What comes before each piece: by one block, of which each thread takes neighbouring pieces.
PT_DEVICE void sum(const NonzeroArgs &a) {
    __shared__ int64_t warps[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t each = (a.pieces + PT_NONZERO_SUM_THREADS - 1) / PT_NONZERO_SUM_THREADS;
    const int64_t begin = threadIdx.x * each, end = begin + each < a.pieces ? begin + each : a.pieces;
    int64_t mine = 0;
    for (int64_t p = begin; p < end; p++) mine += a.counts[p];
    int64_t upto = mine;
    for (int step = 1; step < 32; step *= 2) {
        const int64_t x = shuffle_up(upto, step);
        if (lane >= step) upto += x;
    }
    if (lane == 31) warps[warp] = upto;
    __syncthreads();
    int64_t before = upto - mine;
    for (int w = 0; w < warp; w++) before += warps[w];
    for (int64_t p = begin; p < end; p++) {
        const int64_t many = a.counts[p];
        a.counts[p] = before;
        before += many;
    }
}

PT_DEVICE void write(const NonzeroArgs &a) {
    __shared__ int warps[8];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int64_t p = blockIdx.x; p < a.pieces; p += gridDim.x) {
        int64_t start = a.counts[p];
        for (int first = 0; first < PT_NONZERO_PIECE; first += blockDim.x) {
            const int64_t i = p * PT_NONZERO_PIECE + first + threadIdx.x;
            const bool mine = hit(a, i);
            const unsigned hits = __ballot_sync(0xffffffffu, mine);
            if (lane == 0) warps[warp] = __popc(hits);
            __syncthreads();
            int before = __popc(hits & ((1u << lane) - 1)), all = 0;
            for (int w = 0; w < 8; w++) {
                if (w < warp) before += warps[w];
                all += warps[w];
            }
            const int64_t row = start + before;
            if (mine && row < a.expected) {
                int64_t rest = i;
                for (int d = a.ndim - 1; d >= 0; d--) {
                    a.out[row * a.ndim + d] = rest % a.sizes[d];
                    rest /= a.sizes[d];
                }
            }
            start += all;
            __syncthreads();
        }
    }
}

}  // namespace

PT_KERNEL_SYNC(nonzero_count, NonzeroArgs, a, 256) { count(a); }
PT_KERNEL_SYNC(nonzero_sum, NonzeroArgs, a, PT_NONZERO_SUM_THREADS) { sum(a); }
PT_KERNEL_SYNC(nonzero_write, NonzeroArgs, a, 256) { write(a); }
