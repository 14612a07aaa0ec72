// Finds the nonzero elements of a dense tensor, in order: one kernel counts them in each piece, one
// sums the counts, and one goes through each piece again. A thread has PT_NONZERO_EACH neighbours.
#pragma once
#include "nonzero_args.h"
#include "walk.cuh"

namespace {

template <class E> PT_DEVICE bool truth(E x) { return x != E(0); }
PT_DEVICE bool truth(half x) { return (x.bits & 0x7fff) != 0; }
PT_DEVICE bool truth(bfloat16 x) { return (x.bits & 0x7fff) != 0; }
PT_DEVICE bool truth(complex64 x) { return x.re != 0 || x.im != 0; }
PT_DEVICE bool truth(complex128 x) { return x.re != 0 || x.im != 0; }

// Bit k: whether the thread's element first + k is nonzero.
template <class E> PT_DEVICE unsigned hits(const NonzeroArgs &a, int64_t first) {
    constexpr int V = 16 / sizeof(E);
    const E *const in = reinterpret_cast<const E *>(a.in) + first;
    unsigned found = 0;
    if (a.packed && first + PT_NONZERO_EACH <= a.n) {
        PT_UNROLL for (int k = 0; k < PT_NONZERO_EACH; k += V) {
            const Pack<E, V> p = *reinterpret_cast<const Pack<E, V> *>(in + k);
            PT_UNROLL for (int v = 0; v < V; v++) found |= (unsigned)truth(load(p.v, v)) << (k + v);
        }
    } else {
        for (int k = 0; k < PT_NONZERO_EACH && first + k < a.n; k++)
            found |= (unsigned)truth(load(in, k)) << k;
    }
    return found;
}

template <class E> PT_DEVICE void count(const NonzeroArgs &a) {
    for (int64_t p = blockIdx.x; p < a.pieces; p += gridDim.x) {
        int many =
            __popc(hits<E>(a, p * PT_NONZERO_PIECE + (int64_t)threadIdx.x * PT_NONZERO_EACH));
        many = block_reduce(many, plus(), 0);
        if (threadIdx.x == 0) a.counts[p] = many;
    }
}

// Replaces each count by the sum of the counts before it. One block; a thread has neighbours.
PT_DEVICE void sum(const NonzeroArgs &a) {
    __shared__ int64_t warps[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t each = (a.pieces + PT_NONZERO_SUM_THREADS - 1) / PT_NONZERO_SUM_THREADS;
    const int64_t begin = threadIdx.x * each,
                  end = begin + each < a.pieces ? begin + each : a.pieces;
    int64_t mine = 0;
    for (int64_t p = begin; p < end; p++) mine += a.counts[p];
    const int64_t upto = running_sum(mine);
    if (lane == 31) warps[warp] = upto;
    __syncthreads();
    int64_t before = upto - mine;
    for (int w = 0; w < warp; w++) before += warps[w];
    for (int64_t p = begin; p < end; p++) {
        const int64_t many = a.counts[p];
        a.counts[p] = before;
        before += many;
    }
    if (threadIdx.x == PT_NONZERO_SUM_THREADS - 1) a.counts[a.pieces] = before;
}

// Calls use(piece, first, many, places) for each piece: it has `many` hits, and the first is hit
// number `first` of all; places[j] is the place of hit j in the piece. All threads of a block call.
// `places` is valid until the block's next barrier.
template <class E, class Use> PT_DEVICE void each_piece(const NonzeroArgs &a, Use use) {
    __shared__ uint16_t places[PT_NONZERO_PIECE];
    __shared__ int warps[PT_NONZERO_THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int64_t p = blockIdx.x; p < a.pieces; p += gridDim.x) {
        unsigned found = hits<E>(a, p * PT_NONZERO_PIECE + (int64_t)threadIdx.x * PT_NONZERO_EACH);
        const int mine = __popc(found);
        const int upto = running_sum(mine);
        __syncthreads();                // waits for readers of the last piece's `places`
        if (lane == 31) warps[warp] = upto;
        __syncthreads();
        int at = upto - mine, all = 0;
        for (int w = 0; w < PT_NONZERO_THREADS / 32; w++) {
            if (w < warp) at += warps[w];
            all += warps[w];
        }
        for (; found; found &= found - 1)
            places[at++] = (uint16_t)(threadIdx.x * PT_NONZERO_EACH + __ffs((int)found) - 1);
        __syncthreads();
        use(p, a.counts[p], all, places);
    }
}

}  // namespace
