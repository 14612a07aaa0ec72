/* What one step of an optimiser makes of an element: one text for the CPU's loops and CUDA's kernels. C is float or
 * double; what all elements share is worked out in double before it is rounded to C.
 */
#ifndef PTCORE_STEPS_H
#define PTCORE_STEPS_H
#include "scalar.h"

namespace pt { namespace {

template <class C> struct sgd_step {
    C lr, momentum, keep, decay, sign;
    bool nesterov, first;               /* first: the buffer holds nothing yet */

    PT_INLINE sgd_step(double lr, double momentum, double dampening, double decay, bool nesterov, bool maximize,
                       bool first)
        : lr(C(lr)), momentum(C(momentum)), keep(C(1 - dampening)), decay(C(decay)), sign(maximize ? C(-1) : C(1)),
          nesterov(nesterov), first(first) {}

    PT_INLINE void apply(C &p, C g) const { p -= lr * (sign * g + decay * p); }
    PT_INLINE void apply(C &p, C &m, C g) const {
        const C d = sign * g + decay * p, b = first ? d : momentum * m + keep * d;
        m = b;
        p -= lr * (nesterov ? d + momentum * b : b);
    }
};

/* The decoupled decay multiplies the parameter first; the other one adds to the gradient. `rate` and `root` depend on
 * how many steps a parameter has taken, by its corrections. */
template <class C> struct adam_step {
    C shrink, beta1, beta2, rest1, rest2, eps, decay, sign, rate, root;

    PT_INLINE adam_step(double lr, double beta1, double beta2, double eps, double decay, bool maximize, bool decoupled)
        : shrink(decoupled ? C(1 - lr * decay) : C(1)), beta1(C(beta1)), beta2(C(beta2)), rest1(C(1) - C(beta1)),
          rest2(C(1) - C(beta2)), eps(C(eps)), decay(decoupled ? C(0) : C(decay)), sign(maximize ? C(-1) : C(1)),
          rate(C(lr)), root(C(1)) {}
    PT_INLINE void correct(double lr, double correction1, double correction2) {
        rate = C(lr / correction1), root = C(1 / pt::sqrt(correction2));
    }

    PT_INLINE C second(C d, C v) const { return beta2 * v + rest2 * d * d; }
    PT_INLINE void update(C &p, C &m, C x, C d, C v) const {
        m = beta1 * m + rest1 * d;
        p = x - rate * m / (sqrt(v) * root + eps);
    }
    PT_INLINE void apply(C &p, C &m, C &v, C g) const {
        const C x = p * shrink, d = sign * g + decay * x;
        v = second(d, v);
        update(p, m, x, d, v);
    }
    PT_INLINE void apply(C &p, C &m, C &v, C &top, C g) const {
        const C x = p * shrink, d = sign * g + decay * x;
        v = second(d, v);
        top = top > v ? top : v;
        update(p, m, x, d, top);
    }
};

}}  /* namespace pt, unnamed */
#endif
