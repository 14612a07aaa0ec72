/* What the softmax kernels get (kernels/softmax.cuh): `rows` vectors of n elements, in row-major
 * order of the dims that are not reduced. Input k has strides[k] in these dims and step[k] along a
 * row; the output, which is row-major, has `inner` elements between those of a row.
 */
#ifndef PTCORE_CUDA_SOFTMAX_ARGS_H
#define PTCORE_CUDA_SOFTMAX_ARGS_H
#include "divisor.h"

enum {
    PT_ROW_THREADS = 256,
    PT_WIDE_LOG2 = 10,
    PT_WIDE_THREADS = 1 << PT_WIDE_LOG2,
    PT_ROW_DIMS = 16 /* of two elements or more, none of which merge; inputs with more are copied */
};

typedef struct SoftmaxArgs {
    const void *in[2];
    void *out;
    void *partial;              /* parts, split: a state for each part and row */
    int64_t rows, n;
    Divisor inner;
    int64_t chunk;              /* elements of a row in a part */
    int64_t step[2];
    int32_t ndim, log2; /* 2**log2 threads share a row (rows), or as many columns lie side by side
                           (columns) */
    int32_t count;              /* elements of a row that each of its threads keeps */
    int32_t packed;             /* rows are loaded and stored 16 bytes at a time */
    int64_t strides[2][PT_ROW_DIMS];
    PT_DIVISORS(PT_ROW_DIMS) dims;
} SoftmaxArgs;

#endif
