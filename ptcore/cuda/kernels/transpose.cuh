// Matrices turned through tiles in shared memory, so that reads and writes both run along memory. PT_T is any type of its size.
#include "base.cuh"
#include "copy_args.h"

namespace {

enum { TILE = 32 };

PT_DEVICE void turn(const TransposeArgs &a) {
    __shared__ PT_T tile[TILE][TILE + 1];               // one more: columns lie in different banks
    const PT_T *src = reinterpret_cast<const PT_T *>(a.src) + blockIdx.z * a.src_batch;
    PT_T *dst = reinterpret_cast<PT_T *>(a.dst) + blockIdx.z * a.dst_batch;
    const uint32_t lane = threadIdx.x % TILE, first = threadIdx.x / TILE, step = blockDim.x / TILE;
    const uint32_t row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    for (uint32_t j = first; j < TILE; j += step)
        if (row + lane < a.rows && column + j < a.columns)
            tile[j][lane] = src[(column + j) * a.src_column + row + lane];
    __syncthreads();
    for (uint32_t j = first; j < TILE; j += step)
        if (row + j < a.rows && column + lane < a.columns)
            dst[(row + j) * a.dst_row + column + lane] = tile[lane][j];
}

}  // namespace

PT_KERNEL_SYNC(transpose, TransposeArgs, a, 256) { turn(a); }
