/* The steps of optimizers over one dense parameter, split over threads when large. */
#ifndef PTCORE_OPTIMIZERS_H
#define PTCORE_OPTIMIZERS_H
#include "ptcore/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif
enum { PT_STEP_ROOM = 16 };         /* the maximum of each count below */

/* A step of _ops/table/steps.py, where its numbers are explained: first `shared` ones, then `own`.
 * `run` takes the addresses of the `written` operands and of the gradient, n elements each. */
typedef struct pt_step {
    const char *name;
    int written, options, counters, shared, own;
    void (*numbers)(const double *options, double *counters, bool single, double *numbers);
    void (*run_f32)(char *const *operands, int64_t n, const double *numbers);
    void (*run_f64)(char *const *operands, int64_t n, const double *numbers);
} pt_step;

const pt_step *pt_step_at(int k);       /* NULL: there are not as many */

/* Multiplies the numbers by factor in place; returns whether all of them were finite.
 */
int pt_unscale_f32(float *x, int64_t n, float factor);
int pt_unscale_f64(double *x, int64_t n, double factor);
int pt_disjoint(const pt_view *views, int64_t n, int64_t item); /* do no two dense views overlap? */
#ifdef __cplusplus
}
#endif
#endif
