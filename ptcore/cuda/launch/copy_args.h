/* Arguments of copying kernels: operand 0 is the destination, 1 the source. */
#ifndef PTCORE_CUDA_COPY_ARGS_H
#define PTCORE_CUDA_COPY_ARGS_H
#include "walk_args.h"

typedef struct CopyArgs {
    int64_t n;
    char *dst;
    const char *src;
    uint32_t aligned;
    WalkArgs walk;
} CopyArgs;

#define PT_TRANSPOSE_TILE(item) ((item) <= 4 ? 64 : 32)

/* batch matrices of rows x columns elements: dst is contiguous along columns, src along rows.
 * Strides in elements. */
typedef struct TransposeArgs {
    char *dst;
    const char *src;
    uint32_t rows, columns;
    int64_t dst_row, src_column, dst_batch, src_batch;
    int32_t pairs; /* 2-byte elements: sizes, strides and addresses are even numbers of elements */
} TransposeArgs;

#endif
