/* What the kernels of reductions get (kernels/reduce.cuh). Sizes and strides, in elements of the
 * input, are listed outermost first: those of the kept dims, which count the outputs in row-major
 * order, then those of the reduced dims. */
#ifndef PTCORE_CUDA_REDUCE_ARGS_H
#define PTCORE_CUDA_REDUCE_ARGS_H
#include "divisor.h"

enum {
    PT_REDUCE_THREADS = 256,
    PT_REDUCE_DIMS = 35,        /* of two elements or more: few devices have memory for that many */
    PT_REDUCE_STATE = 32        /* bytes of a partial result in scratch memory, at most */
};

typedef struct ReduceArgs {
    const void *in, *in2;       /* in2: of the same layout, for ops of two tensors */
    void *out, *out2;
    void *partial;              /* parts x outputs states; NULL: this launch writes the outputs */
    int64_t outputs, count;     /* count: reduced elements of each output */
    int64_t
        chunk; /* reduced elements of a part; part blockIdx.y begins at blockIdx.y * chunk */
    int32_t kept, reduced;      /* numbers of dims */
    int32_t log2; /* of threads: for one output (rows, finish); for neighbouring ones (columns) */
    int32_t packed; /* rows: runs of the innermost reduced dim are whole packs, at addresses that
                       they fit */
    double a, b;                /* parameters of the op */
    const char *known;          /* numbers of outputs, where the op asks for them */
    int32_t known_dtype;
    uint8_t item, item2;        /* bytes of an element of in, of in2 */
    Divisor sharing;            /* neighbouring outputs that share a number of `known` */
    int64_t strides[PT_REDUCE_DIMS];
    PT_DIVISORS(PT_REDUCE_DIMS) dims;
} ReduceArgs;

#endif
