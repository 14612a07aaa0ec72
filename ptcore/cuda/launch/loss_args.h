/* Arguments of the classification losses. The input is dense: (outer, classes, inner). Sample s, of
 * outer * inner samples, has class c at (s / inner * classes + c) * inner + s % inner. Per-sample
 * arrays are dense. */
#ifndef PTCORE_CUDA_LOSS_ARGS_H
#define PTCORE_CUDA_LOSS_ARGS_H
#include "divisor.h"
#include "fault.h"

enum { PT_LOSS_THREADS = 256 };

typedef struct LossArgs {
    const char *x;
    char *out;                          /* the gradient */
    const int64_t *target;
    const char *weight;                 /* of the classes, or NULL */
    const char *g, *lse_in, *total;
    double *loss, *sample_weight;       /* of each sample */
    char *lse, *result;
    const double *weight_sum;
    int64_t samples, classes, ignored, weight_stride;
    int64_t each; /* classes that a block of the gradient takes, if inner is not 1 */
    Divisor inner;
    double smoothing;
    int32_t reduction, op;              /* reduction: 0 none, 1 mean, 2 sum */
    uint8_t weight_dtype, g_dtype, lse_dtype, total_dtype, padding[4];
    Fault *fault;
} LossArgs;

#endif
