/* Arguments of nonzero and of masks: a dense tensor's elements in pieces, the counts of the pieces,
 * and the sums before them. */
#ifndef PTCORE_CUDA_NONZERO_ARGS_H
#define PTCORE_CUDA_NONZERO_ARGS_H
#include "divisor.h"
#include "fault.h"

enum {
    PT_NONZERO_EACH = 16,
    PT_NONZERO_THREADS = 256,
    PT_NONZERO_PIECE = PT_NONZERO_EACH * PT_NONZERO_THREADS,
    PT_NONZERO_SUM_THREADS = 1024,
    PT_NONZERO_DIMS = 12
};

typedef struct NonzeroArgs {
    const char *in;                     /* bool for a mask */
    int64_t *out,
        *counts; /* counts: of pieces, then the sums before them; at last the sum of all */
    int64_t n, pieces, expected;
    const char *x; /* elements that a mask chooses, or that stay where it does not hold */
    const char *source;                 /* elements to write where a mask holds */
    char *y;
    Fault *fault;
    int32_t op, ndim, packed;           /* packed: `in` lies at a multiple of 16 bytes */
    int32_t first, dims;                /* dims of the coordinates that a launch writes */
    Divisor behind, sizes[PT_NONZERO_DIMS];     /* elements of all further dims; sizes of these */
} NonzeroArgs;

#endif
