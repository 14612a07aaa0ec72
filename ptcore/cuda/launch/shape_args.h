/* Arguments of kernels that make values from an element's place. */
#ifndef PTCORE_CUDA_SHAPE_ARGS_H
#define PTCORE_CUDA_SHAPE_ARGS_H
#include "divisor.h"
#include "walk_args.h"

typedef struct FillArgs {
    int64_t n;
    char *out;
    double first[2], last[2];           /* of arange: start and step */
    int64_t whole_first, whole_step;
    Divisor columns;
} FillArgs;

/* Matrices are the last two dims: element i stands in row i / columns % rows. */
typedef struct TriangleArgs {
    int64_t n, diagonal;
    Divisor rows, columns;
    int64_t start;                      /* elements of the output before `out` */
    char *out;                          /* dense */
    const char *in;
    int32_t lower;
    WalkArgs walk;                      /* operand 0: out, 1: in */
} TriangleArgs;

#endif
