/* What the kernels of reductions get (kernels/reduce.cuh). Sizes and strides, in elements of the input, stand outermost
 * first: those of the kept dims, which count the outputs in row-major order, then those of the reduced ones. */
#ifndef PTCORE_CUDA_REDUCE_ARGS_H
#define PTCORE_CUDA_REDUCE_ARGS_H
#include "ptcore/config.h"

enum {
    PT_REDUCE_THREADS = 256,
    PT_REDUCE_STATE = 32        /* bytes of a partial result in scratch memory, at most */
};

typedef struct ReduceArgs {
    const void *in;
    void *out, *out2;
    void *partial;              /* parts x outputs states; NULL: this launch writes the outputs */
    int64_t outputs, count;     /* of each output: elements that are reduced */
    int64_t chunk;              /* of these the part blockIdx.y takes so many, from its number times as many on */
    int32_t kept, reduced;      /* dims */
    int32_t log2;               /* rows, finish: of the threads for one output; columns: of those side by side */
    int32_t small;              /* all numbers of elements are below 2**31 */
    double a, b;                /* the op's */
    int64_t sizes[64], strides[64];
} ReduceArgs;

#endif
