/* A walk through elements by operands of different strides, as kernels get it: an element's number
 * is divided by the sizes, innermost first, with a multiplication in place of each division
 * (Granlund and Montgomery, 1994). */
#ifndef PTCORE_CUDA_WALK_ARGS_H
#define PTCORE_CUDA_WALK_ARGS_H
#include "ptcore/config.h"

enum { PT_WALK_DIMS = 12, PT_WALK_OPERANDS = 6 };

typedef struct WalkArgs {
    int32_t ndim;
    int32_t small; /* ndim, if at most 4 and all offsets are below 2**31; or 0 */
    uint32_t sizes[PT_WALK_DIMS], multiplier[PT_WALK_DIMS],
        shift[PT_WALK_DIMS]; /* innermost dim first */
    int64_t strides[PT_WALK_OPERANDS][PT_WALK_DIMS];                                /* in bytes */
} WalkArgs;

#endif
