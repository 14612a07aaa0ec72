/* Arguments of random kernels; a thread makes the elements of one block of random words
 * (ptcore/philox.h). */
#ifndef PTCORE_CUDA_RANDOM_ARGS_H
#define PTCORE_CUDA_RANDOM_ARGS_H
#include "fault.h"

typedef struct RandomArgs {
    int64_t n;
    char *out;
    const char *in, *probability;
    uint8_t *mask;
    const int64_t *state; /* keep_mask: seed and offset lie there, that many elements apart */
    int64_t state_step;
    const uint64_t
        *base; /* of a graph: seed and offset lie there, to which `offset` is added; else NULL */
    uint64_t seed, offset, range, threshold;
    int64_t low;
    Fault *fault; /* of bernoulli and poisson */
    int32_t op;
    double a, b;
} RandomArgs;

#endif
