/* Pointers to the Fortran BLAS and LAPACK routines that kernels use. They are SciPy's, fetched by
 * dispatch at the first call that needs one; until then all are NULL and a kernel that needs one
 * returns PT_NEED_BLAS before it has written anything. Integers are 32 bits: larger sizes are split
 * by the caller.
 *
 * get_threads/set_threads are NULL when the BLAS is not known; it is then left alone.
 */
#ifndef PTCORE_BLAS_H
#define PTCORE_BLAS_H

#ifdef __cplusplus
extern "C" {
#endif

/* alpha, beta, a, b, c point to elements of the routine's type (complex: re, im) */
typedef void (*pt_gemm)(char *transa, char *transb, int *m, int *n, int *k, void *alpha, void *a,
                        int *lda, void *b, int *ldb, void *beta, void *c, int *ldc);

/* The other routines, by what they do; the kernels over lapack.hpp know their parameters. */
enum pt_routine {
    PT_GESV,
    PT_GETRF,
    PT_POTRF,
    PT_TRSM,
    PT_GEQRF,
    PT_ORGQR,
    PT_SYEVD,
    PT_GETRS,
    PT_GEEV,
    PT_SYTRF,
    PT_HETRF,
    PT_SYTRS,
    PT_HETRS,
    PT_GESDD,
    PT_ROUTINES
};

typedef struct pt_blas_table {
    pt_gemm sgemm, dgemm, cgemm, zgemm;
    int (*get_threads)(void);
    void (*set_threads)(int);
    void *routine[PT_ROUTINES][4];      /* of float, double and their complex types */
} pt_blas_table;

extern pt_blas_table pt_blas;

/* The functions that tell and set the BLAS's number of threads; once, after the BLAS was loaded. */
void pt_blas_set_threads(int (*get)(void), void (*set)(int));

/* by = 1 enters, by = -1 leaves a region in which the BLAS runs on one thread; regions nest and
 * overlap, and the last one out restores the user's setting. */
void pt_blas_one_thread(int by);

/* In a forked child: the regions of other threads are over. */
void pt_blas_forked(void);

#ifdef __cplusplus
}
#endif
#endif
