// Products of integer matrices, which wrap; cuBLAS multiplies floats and complex numbers. Tiles of
// both operands are in shared memory.
#include "base.cuh"
#include "matmul_args.h"

namespace {

enum { TILE = 16 };

PT_DEVICE void multiply(const MatmulArgs &g) {
    __shared__ PT_T left[TILE][TILE], right[TILE][TILE];
    const int column = threadIdx.x % TILE, row = threadIdx.x / TILE;
    const int64_t i = (int64_t)blockIdx.y * TILE + row, j = (int64_t)blockIdx.x * TILE + column;
    const PT_T *a = reinterpret_cast<const PT_T *>(g.a) + blockIdx.z * g.a_batch;
    const PT_T *b = reinterpret_cast<const PT_T *>(g.b) + blockIdx.z * g.b_batch;
    uint64_t sum = 0;
    for (int64_t k = 0; k < g.k; k += TILE) {
        left[row][column] =
            i < g.n && k + column < g.k ? a[i * g.a_row + (k + column) * g.a_column] : PT_T(0);
        right[row][column] =
            k + row < g.k && j < g.m ? b[(k + row) * g.b_row + j * g.b_column] : PT_T(0);
        __syncthreads();
        for (int t = 0; t < TILE; t++) sum += (uint64_t)left[row][t] * (uint64_t)right[t][column];
        __syncthreads();
    }
    if (i >= g.n || j >= g.m) return;
    PT_T *out = reinterpret_cast<PT_T *>(g.out) + (blockIdx.z * g.n + i) * g.m + j;
    *out = (PT_T)((uint64_t)g.alpha * sum + (g.beta ? (uint64_t)g.beta * (uint64_t)*out : 0));
}

}  // namespace

PT_KERNEL_SYNC(matmul, MatmulArgs, g, 256) { multiply(g); }
