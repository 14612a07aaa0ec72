/* A dim that is padded by the tensor's own elements: `large` of them made of `small`, `before` of which are in front.
 * */
#ifndef PTCORE_CUDA_PAD_ARGS_H
#define PTCORE_CUDA_PAD_ARGS_H
#include "ptcore/config.h"

enum { PT_PAD_REFLECT, PT_PAD_REPLICATE, PT_PAD_CIRCULAR, PT_PAD_DIMS = 64, PT_PADDED_DIMS = 8 };

typedef struct PadAxis {
    int64_t large, small, before;
    int64_t stride;                 /* of the tensor that is read, in elements */
} PadAxis;

typedef struct PadArgs {
    char *out;                      /* dense, of `total` elements */
    const char *x;
    int64_t total;
    int32_t ndim, mode;
    PadAxis axis[PT_PAD_DIMS];      /* outermost first */
} PadArgs;

typedef struct PadFillArgs {
    char *out;
    int64_t n;
    double value[2];
    int64_t whole;                  /* the value of integers */
} PadFillArgs;

#endif
