/* Kernels over many tensors at once (kernels/many_chunks.cuh): each tensor is cut into chunks,
 * which all are counted through, and has a record of words: the number of its first chunk, that of
 * its elements, the addresses of its operands, and what the op knows of it beside. */
#ifndef PTCORE_CUDA_MANY_ARGS_H
#define PTCORE_CUDA_MANY_ARGS_H
#include "ptcore/config.h"

enum {
    PT_MANY_THREADS = 256,
    PT_MANY_CHUNK = 4096,           /* elements: a multiple of all vectors of 16 bytes */
    PT_MANY_HEAD = 2                /* words before the addresses */
};

typedef struct ManyArgs {
    int64_t chunks;
    int32_t count, words;           /* records, words of each */
    double numbers[12]; /* of a step, the same for all tensors: of the type that is computed in */
    /* Of a step that counts on the device the options stand there. Bit k: option k is a tensor,
     * whose address stands there; it is float64. And whether counters are float32. */
    int16_t option_at, wide_option;
    int32_t single;
    const void *number;             /* scale: the factor */
    double *partial; /* total_norm: the sum of each chunk, from this launch's first on */
    uint64_t records[480];
} ManyArgs;

typedef struct ManyNormArgs {
    void *out;
    const double *partial;
    int64_t n;
} ManyNormArgs;

#endif
