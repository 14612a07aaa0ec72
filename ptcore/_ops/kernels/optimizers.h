/* Fused optimiser steps over one dense parameter, split over threads when large. */
#ifndef PTCORE_OPTIMIZERS_H
#define PTCORE_OPTIMIZERS_H
#include "ptcore/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif
void pt_sgd_f32(float *p, const float *g, float *m, int64_t n, double lr, double momentum,
                double dampening, double decay, int nesterov, int maximize, int first);
void pt_sgd_f64(double *p, const double *g, double *m, int64_t n, double lr, double momentum,
                double dampening, double decay, int nesterov, int maximize, int first);
void pt_adam_f32(float *p, const float *g, float *m, float *v, float *vmax, int64_t n, double lr,
                 double beta1, double beta2, double eps, double decay, int maximize,
                 int decoupled, double correction1, double correction2);
void pt_adam_f64(double *p, const double *g, double *m, double *v, double *vmax, int64_t n,
                 double lr, double beta1, double beta2, double eps, double decay, int maximize,
                 int decoupled, double correction1, double correction2);

/* Whether the memory of n dense views, of `item` bytes an element, has no byte in two of them. */
int pt_disjoint(const pt_view *views, int64_t n, int64_t item);
#ifdef __cplusplus
}
#endif
#endif
