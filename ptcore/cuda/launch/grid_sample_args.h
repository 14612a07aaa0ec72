/* x (n, channels, depth, height, width) at the points of grid (n, points of up to 3 dims, 2 or 3).
 * Strides in elements; out and the gradients are dense. */
#ifndef PTCORE_CUDA_GRID_SAMPLE_ARGS_H
#define PTCORE_CUDA_GRID_SAMPLE_ARGS_H
#include "divisor.h"

enum { PT_GRID_BILINEAR, PT_GRID_NEAREST, PT_GRID_BICUBIC };
enum { PT_GRID_ZEROS, PT_GRID_BORDER, PT_GRID_REFLECTION };

typedef struct GridSampleArgs {
    char *out;                      /* backward: the gradient of grid */
    char *gx; /* backward: the gradient of x in the type of computation, zeros at first */
    const char *x, *grid, *g;
    int64_t n, channels, size[3];
    int64_t x_image, x_channel, x_stride[3];
    int64_t grid_image, grid_number, grid_stride[3];
    Divisor points, grid_size[3];
    int64_t together;               /* channels that a thread takes */
    Divisor blocks;                 /* blocks of `together` channels */
    int32_t mode, padding, corners;
} GridSampleArgs;

#endif
