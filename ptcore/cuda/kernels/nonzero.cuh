// Coordinates of the nonzero elements, in order.
#include "nonzero_base.cuh"

namespace {

PT_DEVICE void write(const NonzeroArgs &a) {
    each_piece<PT_T>(a, [&](int64_t piece, int64_t first, int many, const uint16_t *places) {
        for (int j = threadIdx.x; j < many && first + j < a.expected; j += PT_NONZERO_THREADS) {
            int64_t rest = divided(piece * PT_NONZERO_PIECE + places[j], a.behind);
            int64_t *const row = a.out + (first + j) * a.ndim + a.first;
            for (int d = a.dims - 1; d >= 0; d--) row[d] = take_rest(rest, a.sizes[d]);
        }
    });
}

}  // namespace

PT_KERNEL_SYNC(nonzero_count, NonzeroArgs, a, PT_NONZERO_THREADS) { count<PT_T>(a); }
PT_KERNEL_SYNC(nonzero_sum, NonzeroArgs, a, PT_NONZERO_SUM_THREADS) { sum(a); }
PT_KERNEL_SYNC(nonzero_write, NonzeroArgs, a, PT_NONZERO_THREADS) { write(a); }
