// Collects the elements of x where a mask is true, and scatters elements of a source to those
// places, into a copy of x. PT_T: elements by their size.
#include "nonzero_base.cuh"
#include "report.cuh"

namespace {

typedef PT_T T;

PT_DEVICE void collect(const NonzeroArgs &a) {
    const T *const x = reinterpret_cast<const T *>(a.x);
    T *const y = reinterpret_cast<T *>(a.y);
    each_piece<bool>(a, [&](int64_t piece, int64_t first, int many, const uint16_t *places) {
        for (int j = threadIdx.x; j < many && first + j < a.expected; j += PT_NONZERO_THREADS)
            y[first + j] = x[piece * PT_NONZERO_PIECE + places[j]];
    });
    PT_UNROLL_BY(1)
    for (int64_t i = a.counts[a.pieces] + thread_index(); i < a.expected; i += thread_count())
        y[i] = T();
}

PT_DEVICE void scatter(const NonzeroArgs &a) {
    const T *const x = reinterpret_cast<const T *>(a.x), *const source =
                                                             reinterpret_cast<const T *>(a.source);
    T *const y = reinterpret_cast<T *>(a.y);
    __shared__ int
        from[PT_NONZERO_PIECE];    // the source's element, counted from the piece's first; -1: none
    each_piece<bool>(a, [&](int64_t piece, int64_t first, int many, const uint16_t *places) {
        const int64_t begin = piece * PT_NONZERO_PIECE, left = a.n - begin;
        const int n = left < PT_NONZERO_PIECE ? (int)left : PT_NONZERO_PIECE;
        for (int i = threadIdx.x; i < n; i += PT_NONZERO_THREADS) from[i] = -1;
        __syncthreads();
        for (int j = threadIdx.x; j < many; j += PT_NONZERO_THREADS) {
            if (first + j < a.expected) from[places[j]] = j;
            else report(a.fault, a.op, first + j, 0, a.expected);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += PT_NONZERO_THREADS) {
            if (from[i] >= 0) y[begin + i] = source[first + from[i]];
            else if (x != y) y[begin + i] = x[begin + i];
        }
    });
}

}  // namespace

PT_KERNEL_SYNC(mask_collect, NonzeroArgs, a, PT_NONZERO_THREADS) { collect(a); }
PT_KERNEL_SYNC(mask_scatter, NonzeroArgs, a, PT_NONZERO_THREADS) { scatter(a); }
