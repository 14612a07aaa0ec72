/* out (batch, n, m) = alpha a (batch, n, k) b (batch, k, m) + (beta ? beta out : 0), for types for
 * which cuBLAS has no product. Strides in elements; out is dense. */
#ifndef PTCORE_CUDA_MATMUL_ARGS_H
#define PTCORE_CUDA_MATMUL_ARGS_H
#include "ptcore/config.h"

typedef struct MatmulArgs {
    char *out;
    const char *a, *b;
    int64_t n, m, k;
    int64_t a_row, a_column, a_batch, b_row, b_column, b_batch;
    int64_t alpha, beta;
} MatmulArgs;

#endif
