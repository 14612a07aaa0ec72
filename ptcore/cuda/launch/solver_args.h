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

/* Determinants from the factors and the swapped rows of matrices, in wide or narrow numbers. */
typedef struct DeterminantArgs {
    const char *factors;
    const int64_t *wide;
    const int32_t *narrow;
    int64_t order;
    char *product,
        *logarithm; /* NULL: the determinant itself; else its direction and log of its modulus */
} DeterminantArgs;

/* Pivots that a caller may have changed: numbers from 1 to `rows`; in LDL also negative numbers,
 * for a block of two rows. */
typedef struct PivotArgs {
    const int32_t *in;
    int64_t *out; /* where row i comes from, or the pivots as cuSOLVER has them */
    int32_t *narrow;                    /* the pivots in 32 bits, in place of `out` */
    int64_t n, length;                  /* matrices, and pivots of each */
    Divisor rows;
    int32_t op;
    Fault *fault;
} PivotArgs;

/* Eigenvectors of a real matrix: a pair of conjugate vectors is stored as two columns, the real and
 * the imaginary part. */
typedef struct VectorArgs {
    const char *packed, *values;        /* by columns; complex */
    char *out;                          /* by rows; complex */
    int64_t n;
    Divisor order;
} VectorArgs;

#endif
