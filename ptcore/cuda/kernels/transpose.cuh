// Matrices turned through tiles in shared memory, so that reads and writes both run along memory. PT_T is any type of its size.
#include "base.cuh"
#include "copy_args.h"

namespace {

enum { TILE = 32, THREADS = 256 };

PT_DEVICE void turn(const TransposeArgs &a) {
    __shared__ PT_T tile[TILE][TILE + 1];               // one more: columns lie in different banks
    const PT_T *src = reinterpret_cast<const PT_T *>(a.src) + blockIdx.z * a.src_batch;
    PT_T *dst = reinterpret_cast<PT_T *>(a.dst) + blockIdx.z * a.dst_batch;
    const uint32_t lane = threadIdx.x % TILE, first = threadIdx.x / TILE;
    constexpr uint32_t step = THREADS / TILE;        // a constant: the loads of a thread are in flight together
    const uint32_t row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    PT_UNROLL for (uint32_t k = 0; k < TILE; k += step) {
        const uint32_t j = first + k;
        if (row + lane < a.rows && column + j < a.columns)
            tile[j][lane] = src[(column + j) * a.src_column + row + lane];
    }
    __syncthreads();
    PT_UNROLL for (uint32_t k = 0; k < TILE; k += step) {
        const uint32_t j = first + k;
        if (row + j < a.rows && column + lane < a.columns)
            dst[(row + j) * a.dst_row + column + lane] = tile[lane][j];
    }
}

}  // namespace

PT_KERNEL_SYNC(transpose, TransposeArgs, a, THREADS) { turn(a); }
