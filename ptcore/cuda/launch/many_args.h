/* Kernels over many tensors at once (kernels/many_chunks.cuh): each tensor is cut into chunks,
 * which are numbered through all tensors, and has a record of words: the number of its first chunk,
 * the number of its elements, the addresses of its operands, and further numbers for the op. */
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
    double numbers[12]; /* of a step, shared by all tensors, in the type of computation */
    /* If a step counts on the device, `numbers` are its options. Bit k: option k is a tensor (and
     * its address is there); it is float64. single: the counters are float32. */
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
