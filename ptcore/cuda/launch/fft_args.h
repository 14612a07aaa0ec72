/* The numbers of a transform times a factor, in place. */
#ifndef PTCORE_CUDA_FFT_ARGS_H
#define PTCORE_CUDA_FFT_ARGS_H
#include "ptcore/config.h"

typedef struct FftScaleArgs {
    char *data;
    int64_t n;                      /* real numbers; a complex number is two */
    double factor;
    int32_t conjugate;              /* every second number changes its sign */
} FftScaleArgs;

#endif
