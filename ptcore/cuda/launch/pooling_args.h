/* Windows of the spatial dims: `out` windows over `in` places. Strides are the input's, in
 * elements; outputs are dense. Without a kernel the windows are adaptive. */
#ifndef PTCORE_CUDA_POOLING_ARGS_H
#define PTCORE_CUDA_POOLING_ARGS_H
#include "divisor.h"

typedef struct PoolAxis {
    int64_t kernel, padding;
    int64_t x;
    int64_t sample; /* random windows: the dim's place in a sample, and the mean step between
                       them */
    double step;
    Divisor in, out, stride, dilation;
} PoolAxis;

typedef struct PoolArgs {
    char *out;
    int64_t *indices;
    const char *x, *samples;
    int64_t sample_image, sample_channel;
    int64_t total;                  /* elements of the output */
    int64_t x_image, x_channel;
    Divisor channels;               /* of an image */
    int64_t divisor;                /* 0: the number of places */
    int32_t adaptive, include_pad;
    PoolAxis axis[3];
} PoolArgs;

#endif
