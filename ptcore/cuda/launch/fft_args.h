/* The numbers of a transform times a factor, in place. */
#ifndef PTCORE_CUDA_FFT_ARGS_H
#define PTCORE_CUDA_FFT_ARGS_H
#include "ptcore/config.h"

typedef struct FftScaleArgs {
    char *data;
    int64_t n;                      /* real numbers, of which a complex one is two */
    double factor;
    int32_t conjugate;              /* every second one changes its sign */
} FftScaleArgs;

#endif
