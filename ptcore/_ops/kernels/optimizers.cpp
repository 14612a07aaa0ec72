// Fused optimiser steps. The arithmetic is sqrt and division alone, which vectorise at the base
// level; large parameters are bound by memory, so one ISA level is enough.
#include "optimizers.h"

#include <cmath>

#include "parallel.hpp"
#include "ptcore/config.h"

namespace {

constexpr int64_t GRAIN = 32768;

template <class T>
void sgd(T *p, const T *g, T *m, int64_t n, T lr, T momentum, T keep, T decay, bool nesterov,
         T sign, bool first) {
    pt::parallel_for(n, GRAIN, [=](int64_t begin, int64_t end) {
        if (!m) {
            PT_IVDEP
            for (int64_t i = begin; i < end; i++) p[i] -= lr * (sign * g[i] + decay * p[i]);
            return;
        }
        PT_IVDEP
        for (int64_t i = begin; i < end; i++) {
            T d = sign * g[i] + decay * p[i];
            T b = first ? d : momentum * m[i] + keep * d;
            m[i] = b;
            p[i] -= lr * (nesterov ? d + momentum * b : b);
        }
    });
}

template <class T>
void adam(T *p, const T *g, T *m, T *v, T *vmax, int64_t n, T lr_decay, T step, T beta1,
          T beta2, T eps, T decay, T sign, T root) {
    const T rest1 = T(1) - beta1, rest2 = T(1) - beta2;
    pt::parallel_for(n, GRAIN, [=](int64_t begin, int64_t end) {
        if (vmax) {
            PT_IVDEP
            for (int64_t i = begin; i < end; i++) {
                T x = p[i] * lr_decay, d = sign * g[i] + decay * x;
                T a = beta1 * m[i] + rest1 * d, b = beta2 * v[i] + rest2 * d * d;
                T c = vmax[i] > b ? vmax[i] : b;
                m[i] = a;
                v[i] = b;
                vmax[i] = c;
                p[i] = x - step * a / (std::sqrt(c) * root + eps);
            }
            return;
        }
        PT_IVDEP
        for (int64_t i = begin; i < end; i++) {
            T x = p[i] * lr_decay, d = sign * g[i] + decay * x;
            T a = beta1 * m[i] + rest1 * d, b = beta2 * v[i] + rest2 * d * d;
            m[i] = a;
            v[i] = b;
            p[i] = x - step * a / (std::sqrt(b) * root + eps);
        }
    });
}

}  // namespace

#define SGD(NAME, T)                                                                             \
    extern "C" void NAME(T *p, const T *g, T *m, int64_t n, double lr, double momentum,           \
                         double dampening, double decay, int nesterov, int maximize, int first) { \
        sgd<T>(p, g, m, n, T(lr), T(momentum), T(1 - dampening), T(decay), nesterov != 0,         \
               maximize ? T(-1) : T(1), first != 0);                                              \
    }
SGD(pt_sgd_f32, float)
SGD(pt_sgd_f64, double)

// The decoupled decay multiplies the parameter first; the other one adds to the gradient.
#define ADAM(NAME, T)                                                                            \
    extern "C" void NAME(T *p, const T *g, T *m, T *v, T *vmax, int64_t n, double lr,             \
                         double beta1, double beta2, double eps, double decay, int maximize,      \
                         int decoupled, double correction1, double correction2) {                 \
        adam<T>(p, g, m, v, vmax, n, decoupled ? T(1 - lr * decay) : T(1), T(lr / correction1),   \
                T(beta1), T(beta2), T(eps), decoupled ? T(0) : T(decay),                          \
                maximize ? T(-1) : T(1), T(1 / std::sqrt(correction2)));                          \
    }
ADAM(pt_adam_f32, float)
ADAM(pt_adam_f64, double)
