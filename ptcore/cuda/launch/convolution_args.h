/* out (n, groups * filters, ...) = bias + the sum over channels and taps of x (n, groups *
 * channels, ...) times w, and the gradient of w, which is the sum over the images and their results
 * of x times g. All strides in elements; out is dense. */
#ifndef PTCORE_CUDA_CONVOLUTION_ARGS_H
#define PTCORE_CUDA_CONVOLUTION_ARGS_H
#include "divisor.h"

/* One spatial dim: result t of the convolution and tap k meet at position k * dilation + t * stride
 * - padding of x; in the transpose, position t of x and tap k meet at that position of the result.
 */
typedef struct ConvolutionAxis {
    int64_t source, result, kernel;
    int64_t stride, padding, dilation;
    int64_t phases; /* transposed: results with one residue by it have the same taps; else 1 */
    int64_t period; /* distance of such taps: stride / gcd(stride, dilation), else 1 */
    int64_t x, w, g;                /* strides */
    Divisor by_result, by_phases, by_most,
        by_kernel; /* by_most: the results of the first phase, which has most */
} ConvolutionAxis;

typedef struct ConvolutionArgs {
    char *out;
    const char *x, *w, *bias, *g;
    int64_t n, groups, channels, filters;
    int64_t x_image, x_channel, w_group, w_filter, w_channel, bias_stride, g_image, g_channel;
    int64_t row_tiles, column_tiles, tiles;
    int64_t parts,
        part; /* gradient of w: the number of sums, and the results that one sum has */
    int64_t words,
        filter_words; /* tensor cores: words of 16 bytes for a group, in a place of x and of g */
    Divisor by_rows, by_columns, by_groups, by_parts, by_words, by_filters,
        by_channels; /* by_rows: row_tiles */
    int32_t transposed;
    ConvolutionAxis axis[3];
} ConvolutionArgs;

/* out[i] = the sum over the parts of from[part][i] */
typedef struct ConvolutionSumArgs {
    char *out;
    const char *from;
    int64_t n, parts;
} ConvolutionSumArgs;

#endif
