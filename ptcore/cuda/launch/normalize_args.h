/* What the kernels of layer_norm and rms_norm get (kernels/layer_norm.cuh,
 * layer_norm_backward.cuh): all in row-major order. Absent tensors are NULL. */
#ifndef PTCORE_CUDA_NORMALIZE_ARGS_H
#define PTCORE_CUDA_NORMALIZE_ARGS_H
#include "ptcore/config.h"

enum { PT_NORM_THREADS = 256, PT_NORM_STREAM_THREADS = 1024, PT_NORM_COLUMNS = 32 };

typedef struct LayerNormArgs {
    const void *g, *in, *weight, *bias;         /* g: backward only */
    void *out;
    void *mean, *rstd;                          /* the forward's outputs, the backward's inputs;
                                                   rms_norm has no mean, it takes 0 for it */
    void *partial; /* backward: parts x 2 x n sums of g xhat and of g */
    void *weight_gradient, *bias_gradient;
    int64_t rows, n;
    int64_t chunk, parts;                       /* rows of a part, parts */
    double eps;
    int32_t log2, count, packed;                /* as for softmax */
} LayerNormArgs;

#endif
