// Fused optimiser steps. The arithmetic is sqrt and division alone, which vectorise at the base
// level; large parameters are bound by memory, so one ISA level is enough.
#include "optimizers.h"

#include <cstdlib>

#include "parallel.hpp"
#include "ptcore/steps.h"

namespace {

constexpr int64_t GRAIN = 32768;

template <class T> void sgd(T *p, const T *g, T *m, int64_t n, const pt::sgd_step<T> &step) {
    pt::parallel_for(n, GRAIN, [=](int64_t begin, int64_t end) {
        const pt::sgd_step<T> s = step;         // in registers: what it was captured in may lie where p does
        if (!m) {
            PT_IVDEP
            for (int64_t i = begin; i < end; i++) s.apply(p[i], g[i]);
            return;
        }
        PT_IVDEP
        for (int64_t i = begin; i < end; i++) s.apply(p[i], m[i], g[i]);
    });
}

template <class T> void adam(T *p, const T *g, T *m, T *v, T *top, int64_t n, const pt::adam_step<T> &step) {
    pt::parallel_for(n, GRAIN, [=](int64_t begin, int64_t end) {
        const pt::adam_step<T> s = step;
        if (top) {
            PT_IVDEP
            for (int64_t i = begin; i < end; i++) s.apply(p[i], m[i], v[i], top[i], g[i]);
            return;
        }
        PT_IVDEP
        for (int64_t i = begin; i < end; i++) s.apply(p[i], m[i], v[i], g[i]);
    });
}

struct Range {
    uintptr_t begin, end;
};
int by_begin(const void *x, const void *y) {
    const uintptr_t a = static_cast<const Range *>(x)->begin, b = static_cast<const Range *>(y)->begin;
    return a < b ? -1 : a > b;
}

}  // namespace

extern "C" int pt_disjoint(const pt_view *views, int64_t n, int64_t item) {
    Range *ranges = static_cast<Range *>(malloc((size_t)n * sizeof(Range)));
    if (!ranges) return 0;
    for (int64_t i = 0; i < n; i++) {
        ranges[i].begin = (uintptr_t)views[i].data;
        ranges[i].end = ranges[i].begin + (uintptr_t)(views[i].numel * item);
    }
    qsort(ranges, (size_t)n, sizeof(Range), by_begin);
    int64_t i = 1;
    while (i < n && ranges[i].begin >= ranges[i - 1].end) i++;
    free(ranges);
    return i >= n;
}

#define SGD(NAME, T)                                                                                          \
    extern "C" void NAME(T *p, const T *g, T *m, int64_t n, double lr, double momentum, double dampening,      \
                         double decay, int nesterov, int maximize, int first) {                                \
        sgd<T>(p, g, m, n, pt::sgd_step<T>(lr, momentum, dampening, decay, nesterov, maximize, first));        \
    }
SGD(pt_sgd_f32, float)
SGD(pt_sgd_f64, double)

#define ADAM(NAME, T)                                                                                         \
    extern "C" void NAME(T *p, const T *g, T *m, T *v, T *top, int64_t n, double lr, double beta1,             \
                         double beta2, double eps, double decay, int maximize, int decoupled,                  \
                         double correction1, double correction2) {                                             \
        pt::adam_step<T> step(lr, beta1, beta2, eps, decay, maximize, decoupled);                              \
        step.correct(lr, correction1, correction2);                                                            \
        adam<T>(p, g, m, v, top, n, step);                                                                     \
    }
ADAM(pt_adam_f32, float)
ADAM(pt_adam_f64, double)
