// Counts, or sums of weights, of rows of coordinates in boxes, and of integers. Where the bins fit
// into shared memory, a block counts there, with a copy of the bins for one warp or a few, and then
// adds its counts to those of all blocks. PT_T is the type of x, PT_U that of the weights.
#include "atomic.cuh"
#include "histogram_args.h"

namespace {

typedef PT_T T;
typedef PT_U U;
#if PT_TCODE <= 8
typedef T C;
#else
typedef opmath<T>::type C;
#endif

struct Ruler {
    const C *edges;
    int64_t bins;
    C low, high, scale;
};

PT_DEVICE int64_t clamped(int64_t at, int64_t bins) {
    return at < 0 ? 0 : at < bins ? at : bins - 1;
}

// The bin of x, which lies between the outer edges; as in _ops/statistics/histogram.cpp.
PT_DEVICE int64_t bin_of(const Ruler &r, int places, C x) {
    if (places == PT_SEARCHED) {
        const C *first = r.edges;
        for (int64_t n = r.bins + 1; n > 1; n -= n / 2) first += first[n / 2 - 1] <= x ? n / 2 : 0;
        return x == r.high ? r.bins - 1 : clamped(first - r.edges + (*first <= x) - 1, r.bins);
    }
    const C guess =
        places == PT_EVEN ? (x - r.low) * r.scale : (x - r.low) * (C)r.bins / (r.high - r.low);
    int64_t at =
        guess >= 0 ? (guess < (C)r.bins ? clamped((int64_t)guess, r.bins) : r.bins - 1) : 0;
    if (places == PT_EVEN) {            // the edges decide, the guess may be one off
        while (at > 0 && x < r.edges[at]) at--;
        while (at < r.bins - 1 && x >= r.edges[at + 1]) at++;
    }
    return at;
}

// The box of a row; -1 if it is in none.
PT_DEVICE int64_t box_of(const HistogramArgs &a, const Ruler *rulers, int64_t row) {
    const T *const x = reinterpret_cast<const T *>(a.x) + row * a.coordinates;
#if PT_TCODE <= 8
    return x[0] >= 0 && (uint64_t)x[0] < (uint64_t)a.total ? (int64_t)x[0] : -1;
#else
    int64_t box = 0;
    for (int d = 0; d < a.coordinates; d++) {
        const C at = up(x[d]);
        if (!(at >= rulers[d].low && at <= rulers[d].high)) return -1;
        box = box * rulers[d].bins + bin_of(rulers[d], a.places, at);
    }
    return box;
#endif
}

// N is the type of a count or sum in shared memory, M that in the result of all blocks.
template <bool WEIGHED, class N, class M> PT_DEVICE void tally(const HistogramArgs &a, N *own) {
    __shared__ Ruler rulers[PT_HISTOGRAM_COORDINATES];
#if PT_TCODE > 8
    const C *edges = reinterpret_cast<const C *>(a.edges);
    for (int d = 0; d < a.coordinates; d++) {
        const int64_t last = a.places == PT_COMPUTED ? 1 : a.bins[d];
        if (threadIdx.x == 0)
            rulers[d] = {edges, a.bins[d], edges[0], edges[last],
                         (C)a.bins[d] / (edges[last] - edges[0])};
        edges += last + 1;
    }
#endif
    const int64_t kept = a.copies * a.total;
    for (int64_t i = threadIdx.x; i < kept; i += PT_HISTOGRAM_THREADS) own[i] = 0;
    __syncthreads();
    N *const mine = own + (a.copies ? threadIdx.x / 32 % a.copies * a.total : 0);
    M *const all = reinterpret_cast<M *>(a.sums);
    const int64_t step = (int64_t)gridDim.x * PT_HISTOGRAM_THREADS * PT_HISTOGRAM_EACH;
    for (int64_t row = (int64_t)blockIdx.x * PT_HISTOGRAM_THREADS * PT_HISTOGRAM_EACH + threadIdx.x;
         row < a.n; row += step) {
        int64_t box[PT_HISTOGRAM_EACH];
        PT_UNROLL for (int k = 0; k < PT_HISTOGRAM_EACH; k++) {
            const int64_t r = row + k * PT_HISTOGRAM_THREADS;
            box[k] = r < a.n ? box_of(a, rulers, r) : -1;
        }
        PT_UNROLL for (int k = 0; k < PT_HISTOGRAM_EACH; k++) {
            if (box[k] < 0) continue;
            const N x =
                WEIGHED
                    ? (N)up(reinterpret_cast<const U *>(a.weights)[row + k * PT_HISTOGRAM_THREADS])
                    : N(1);
            if (a.copies) atomicAdd(mine + box[k], x);
            else atomicAdd(all + box[k], (M)x);
        }
    }
    __syncthreads();
    if (!a.copies) return;
    for (int64_t i = threadIdx.x; i < a.total; i += PT_HISTOGRAM_THREADS) {
        N sum = 0;
        for (int k = 0; k < a.copies; k++) sum += own[k * a.total + i];
        if (sum != 0) atomicAdd(all + i, (M)sum);
    }
}

}  // namespace

PT_KERNEL_SYNC(histogram_count, HistogramArgs, a, PT_HISTOGRAM_THREADS) {
    PT_DYNAMIC_SHARED(unsigned, own);
    tally<false, unsigned, unsigned long long>(a, own);
}
PT_KERNEL_SYNC(histogram_weigh, HistogramArgs, a, PT_HISTOGRAM_THREADS) {
    PT_DYNAMIC_SHARED(double, own);
    tally<true, double, double>(a, own);
}
