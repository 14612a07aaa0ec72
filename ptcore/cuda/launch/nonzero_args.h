/* Arguments of nonzero: a dense tensor's elements in pieces of `PT_NONZERO_PIECE`, their counts, and what comes before each. */
#ifndef PTCORE_CUDA_NONZERO_ARGS_H
#define PTCORE_CUDA_NONZERO_ARGS_H
#include "ptcore/config.h"

enum { PT_NONZERO_PIECE = 1024, PT_NONZERO_SUM_THREADS = 1024 };

typedef struct NonzeroArgs {
    const char *in;
    int64_t *out, *counts;              /* counts: of pieces, then the sums before them */
    int64_t n, pieces, expected;
    int32_t ndim;
    int64_t sizes[64];
} NonzeroArgs;

#endif
