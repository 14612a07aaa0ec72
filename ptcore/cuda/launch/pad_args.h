/* A padded dim: `large` places, of which `before` are before the `small` elements; if `before` is
 * negative (constant), as many elements are left out. */
#ifndef PTCORE_CUDA_PAD_ARGS_H
#define PTCORE_CUDA_PAD_ARGS_H
#include "ptcore/config.h"

enum { PT_PAD_REFLECT, PT_PAD_REPLICATE, PT_PAD_CIRCULAR, PT_PAD_DIMS = 30, PT_PADDED_DIMS = 8 };

typedef struct PadAxis {
    int64_t large, small, before;
    int64_t stride;                 /* of the tensor that is read, in elements */
} PadAxis;

typedef struct PadArgs {
    char *out;                      /* dense, of `total` elements */
    const char *x;
    int64_t total;
    int32_t ndim, mode;
    unsigned char value[16];        /* constant: an element */
    PadAxis axis[PT_PAD_DIMS]; /* outermost first; neighbours without pads are one where memory
                                  allows it */
} PadArgs;

#endif
