/* Sliding windows as columns, and resampling along a dim; all tensors are dense. */
#ifndef PTCORE_CUDA_RESAMPLE_ARGS_H
#define PTCORE_CUDA_RESAMPLE_ARGS_H
#include "divisor.h"

/* large (planes, size...) and small (planes, kernel..., blocks...): block b and tap k of a window
 * meet at place b * stride - padding + k * dilation. */
typedef struct SlidingArgs {
    char *out;
    const char *x;
    int64_t total;                  /* elements of the output */
    int64_t dilation[2], padding[2];
    Divisor size[2], kernel[2], stride[2], blocks[2];
    int32_t still[2];               /* the stride is 0 */
} SlidingArgs;

enum { PT_NEAREST, PT_NEAREST_EXACT, PT_LINEAR, PT_CUBIC };

/* x (outer, in, inner) to out (outer, out, inner); transposed: back from `large` to `small`. */
typedef struct ResampleArgs {
    char *out;
    const char *x;
    int64_t total;
    Divisor inner;
    Divisor small, large; /* sizes of the dim: results of `large` are made from those of `small` */
    double factor;                  /* large / small if it was given, else 0 */
    int32_t mode, corners;
} ResampleArgs;

#endif
