/* Pointers to the Fortran BLAS and LAPACK routines that kernels use. They are SciPy's; dispatch
 * fetches them at the first call that needs a routine. Before that all are NULL, and a kernel
 * that needs a routine returns PT_NEED_BLAS before it writes anything. Integers are 32 bits:
 * the caller splits larger sizes.
 *
 * get_threads/set_threads are NULL for an unknown BLAS, whose thread number is then left alone.
 */
#ifndef PTCORE_BLAS_H
#define PTCORE_BLAS_H

#ifdef __cplusplus
extern "C" {
#endif

/* alpha, beta, a, b, c point to elements of the routine's type (complex: re, im) */
typedef void (*pt_gemm)(char *transa, char *transb, int *m, int *n, int *k, void *alpha, void *a,
                        int *lda, void *b, int *ldb, void *beta, void *c, int *ldc);

/* The other routines, named by what they do; the kernels over lapack.hpp know their parameters. */
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
    PT_GETRI,
    PT_ROUTINES
};

typedef struct pt_blas_table {
    pt_gemm sgemm, dgemm, cgemm, zgemm;
    int (*get_threads)(void);
    void (*set_threads)(int);
    void *routine[PT_ROUTINES][4];      /* of float, double and their complex types */
} pt_blas_table;

extern pt_blas_table pt_blas;

/* Sets the functions that get and set the BLAS's thread number; called once, after its loading. */
void pt_blas_set_threads(int (*get)(void), void (*set)(int));

/* by = 1 enters, by = -1 leaves a region in which the BLAS runs on one thread; regions nest and
 * overlap. The end of the last region restores the user's setting. */
void pt_blas_one_thread(int by);

/* Called in a forked child: ends the regions of threads that do not exist there. */
void pt_blas_forked(void);

#ifdef __cplusplus
}
#endif
#endif
