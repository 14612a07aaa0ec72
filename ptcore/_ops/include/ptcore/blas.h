/* Pointers to the Fortran BLAS routines that matmul uses. They are SciPy's, fetched by dispatch at
 * the first large product; until then all are NULL and a kernel that needs one returns PT_NEED_BLAS
 * before it has written anything. Integers are 32 bits: larger sizes are split by the caller.
 *
 * get_threads/set_threads are NULL when the BLAS is not known; it is then left alone.
 */
#ifndef PTCORE_BLAS_H
#define PTCORE_BLAS_H

#ifdef __cplusplus
extern "C" {
#endif

/* alpha, beta, a, b, c point to elements of the routine's type (complex: re, im) */
typedef void (*pt_gemm)(char *transa, char *transb, int *m, int *n, int *k, void *alpha, void *a, int *lda, void *b, int *ldb,
                        void *beta, void *c, int *ldc);

typedef struct pt_blas_table {
    pt_gemm sgemm, dgemm, cgemm, zgemm;
    int (*get_threads)(void);
    void (*set_threads)(int);
} pt_blas_table;

extern pt_blas_table pt_blas;

#ifdef __cplusplus
}
#endif
#endif
