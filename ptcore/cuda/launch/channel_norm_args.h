/* batch_norm and group_norm of x (n, c, s), dense. What is summed over is a set: a channel of all images, a group of
 * channels of one image, or for group_norm's gradients a plane, which is one channel of one image. A set is `runs` runs
 * of `length` elements. Absent tensors are NULL. */
#ifndef PTCORE_CUDA_CHANNEL_NORM_ARGS_H
#define PTCORE_CUDA_CHANNEL_NORM_ARGS_H
#include "ptcore/config.h"

/* Numbers of any real floating dtype. */
typedef struct RealArgs {
    char *data;
    int32_t dtype;
} RealArgs;

typedef struct ChannelNormArgs {
    const char *x, *g;
    char *out;
    RealArgs weight, bias, mean, spread;    /* spread: var of batch_norm, rstd of group_norm */
    RealArgs gw, gb;
    double *partial;                        /* sets x parts x 2 */
    char *factors;                          /* of `period` planes or channels: mean, scale, shift, slope */
    int64_t n, c, s, groups;
    int64_t sets, runs, length, set_stride, run_stride;
    int64_t parts, part;                    /* how many sums a set has, of how many elements each */
    int64_t means;                          /* sets that share a mean, backward */
    int64_t period;
    double eps;
} ChannelNormArgs;

/* data[i] = value */
typedef struct ChannelFillArgs {
    RealArgs to;
    int64_t n;
    double value;
} ChannelFillArgs;

#endif
