// Transposes matrices through tiles in shared memory, so that both reads and writes are contiguous.
// PT_T is any type of its size.
#include "base.cuh"
#include "copy_args.h"

namespace {

enum { TILE = PT_TRANSPOSE_TILE(sizeof(PT_T)), THREADS = 256, DOWN = THREADS / 32 };

#if PT_TCODE == 4
// Elements of 2 bytes, of which two neighbours are one word in both matrices; rows and columns are
// even in number.
PT_DEVICE void turn_pairs(const TransposeArgs &a, const PT_T *src, PT_T *dst) {
    __shared__ PT_T tile[TILE][TILE + 2];
    const uint32_t lane = threadIdx.x % 32, first = threadIdx.x / 32, row = blockIdx.y * TILE,
                   column = blockIdx.x * TILE;
    PT_UNROLL for (uint32_t k = 0; k < TILE; k += DOWN) {
        const uint32_t j = first + k;
        if (row + 2 * lane < a.rows && column + j < a.columns)
            *reinterpret_cast<uint32_t *>(&tile[j][2 * lane]) =
                *reinterpret_cast<const uint32_t *>(src + (column + j) * a.src_column + row +
                                                    2 * lane);
    }
    __syncthreads();
    PT_UNROLL for (uint32_t k = 0; k < TILE; k += DOWN) {
        const uint32_t j = first + k;
        if (row + j < a.rows && column + 2 * lane < a.columns) {
            const uint32_t low = (uint16_t)tile[2 * lane][j],
                           high = (uint16_t)tile[2 * lane + 1][j];
            *reinterpret_cast<uint32_t *>(dst + (row + j) * a.dst_row + column + 2 * lane) =
                low | high << 16;
        }
    }
}
#endif

PT_DEVICE void turn(const TransposeArgs &a, const PT_T *src, PT_T *dst) {
    __shared__ PT_T tile[TILE][TILE + 1];               // one more: columns are in different banks
    const uint32_t lane = threadIdx.x % 32, first = threadIdx.x / 32, row = blockIdx.y * TILE,
                   column = blockIdx.x * TILE;
    PT_UNROLL for (uint32_t k = 0; k < TILE; k += DOWN)
        PT_UNROLL for (uint32_t l = 0; l < TILE; l += 32) {
            const uint32_t j = first + k, i = lane + l;
            if (row + i < a.rows && column + j < a.columns)
                tile[j][i] = src[(column + j) * a.src_column + row + i];
        }
    __syncthreads();
    PT_UNROLL for (uint32_t k = 0; k < TILE; k += DOWN)
        PT_UNROLL for (uint32_t l = 0; l < TILE; l += 32) {
            const uint32_t j = first + k, i = lane + l;
            if (row + j < a.rows && column + i < a.columns)
                dst[(row + j) * a.dst_row + column + i] = tile[i][j];
        }
}

}  // namespace

PT_KERNEL_SYNC(transpose, TransposeArgs, a, THREADS) {
    const PT_T *src = reinterpret_cast<const PT_T *>(a.src) + blockIdx.z * a.src_batch;
    PT_T *dst = reinterpret_cast<PT_T *>(a.dst) + blockIdx.z * a.dst_batch;
#if PT_TCODE == 4
    if (a.pairs) return turn_pairs(a, src, dst);
#endif
    turn(a, src, dst);
}
