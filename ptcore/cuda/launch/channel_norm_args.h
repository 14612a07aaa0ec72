/* batch_norm and group_norm of x (n, c, s), dense. Sums are over sets: a set is a channel of all
 * images, a group of channels of one image, or for group_norm's gradients a plane, which is one
 * channel of one image. Absent tensors are NULL. */
#ifndef PTCORE_CUDA_CHANNEL_NORM_ARGS_H
#define PTCORE_CUDA_CHANNEL_NORM_ARGS_H
#include "divisor.h"

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
    RealArgs running_mean, running_var;     /* momentum is the share of the new ones */
    const void *sums;                       /* parts x sets, as the kernels of sums left them */
    char *factors; /* of `period` planes or channels: mean, scale, shift, slope */
    int64_t n, c, s, groups;
    int64_t sets, count, parts;             /* count: elements of a set */
    int64_t period;
    Divisor by_c, by_groups, by_channels;   /* by_channels: channels of a group */
    uint32_t here, first_plane; /* elements of a launch of apply, plane of the first element */
    uint32_t by_plane[2], by_period[2];     /* divide_by's numbers for s and for period */
    double eps, momentum;
} ChannelNormArgs;

/* data[i] = value */
typedef struct ChannelFillArgs {
    RealArgs to;
    int64_t n;
    double value;
} ChannelFillArgs;

#endif
