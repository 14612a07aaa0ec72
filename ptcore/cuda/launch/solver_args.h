/* Arguments of the kernels beside cuSOLVER's. */
#ifndef PTCORE_CUDA_SOLVER_ARGS_H
#define PTCORE_CUDA_SOLVER_ARGS_H
#include "divisor.h"
#include "fault.h"

/* out[i] = first + i * bytes */
typedef struct AddressArgs {
    char **out;
    char *first;
    int64_t bytes, n;
} AddressArgs;

/* Dense matrices, n elements in all, `per` in each. */
typedef struct MatrixArgs {
    char *data;
    int64_t n;
    Divisor rows, columns, per;
    int32_t lower;
    int32_t *infos;                     /* may be NULL */
} MatrixArgs;

/* From the factors of matrices and the rows that were swapped, one of the two kinds of numbers. */
typedef struct DeterminantArgs {
    const char *factors;
    const int64_t *wide;
    const int32_t *narrow;
    int64_t order;
    char *product,
        *logarithm; /* NULL: the determinant itself; else its direction and log of its modulus */
} DeterminantArgs;

/* Pivots that may be anybody's: numbers from 1 to `rows`; of LDL negative ones too, for a block of
 * two rows. */
typedef struct PivotArgs {
    const int32_t *in;
    int64_t *out; /* where row i comes from, or the pivots as cuSOLVER has them */
    int32_t *narrow;                    /* these in 32 bits, in its place */
    int64_t n, length;                  /* matrices, and pivots of each */
    Divisor rows;
    int32_t op;
    Fault *fault;
} PivotArgs;

/* Vectors of a real matrix: a pair of conjugate ones stands as two columns, their real and their
 * imaginary part. */
typedef struct VectorArgs {
    const char *packed, *values;        /* by columns; complex */
    char *out;                          /* by rows; complex */
    int64_t n;
    Divisor order;
} VectorArgs;

#endif
