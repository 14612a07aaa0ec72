/* Exponentials of matrices: dense ones of equal size, n elements in all. */
#ifndef PTCORE_CUDA_MATRIX_EXP_ARGS_H
#define PTCORE_CUDA_MATRIX_EXP_ARGS_H
#include "divisor.h"

typedef struct MatrixExpArgs {
    char *to, *other;
    const char *from[4];                /* what a combination adds up */
    int64_t n, batch;
    Divisor order;
    double c0, c[4];                    /* coefficients of the identity, and of `from` */
    double *sums;                       /* sums of the moduli in each column */
    int32_t *squarings;                 /* of each matrix; -1: it is not finite */
    double limit;                       /* matrices up to this norm are not squared */
    int32_t add, round;
} MatrixExpArgs;

#endif
