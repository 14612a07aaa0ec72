"""Optimiser steps over lists of parameters: one call a group, one fused pass a parameter.

Each function takes lists of equal length, writes to the parameters and the state in place and
counts their versions. Tensors must be dense CPU tensors of one floating dtype each; what a fused
loop cannot take (half types, strided memory, other devices) goes through ops.
"""
from libc.math cimport sqrt

from ptcore._types cimport *
from ptcore._tensor cimport *

cdef extern from "optimizers.h" nogil:
    void pt_sgd_f32(float *p, const float *g, float *m, int64_t n, double lr, double momentum,
                    double dampening, double decay, int nesterov, int maximize, int first)
    void pt_sgd_f64(double *p, const double *g, double *m, int64_t n, double lr,
                    double momentum, double dampening, double decay, int nesterov, int maximize,
                    int first)
    void pt_adam_f32(float *p, const float *g, float *m, float *v, float *vmax, int64_t n,
                     double lr, double beta1, double beta2, double eps, double decay,
                     int maximize, int decoupled, double correction1, double correction2)
    void pt_adam_f64(double *p, const double *g, double *m, double *v, double *vmax, int64_t n,
                     double lr, double beta1, double beta2, double eps, double decay,
                     int maximize, int decoupled, double correction1, double correction2)

cdef enum:
    SMALL = 16384


cdef inline bint fused(Tensor p, Tensor g) noexcept:
    return (not (p.flags | g.flags) & (PT_NONCONTIGUOUS | PT_NON_CPU) and p.dt == g.dt
            and p.count == g.count and (p.dt == PT_FLOAT32 or p.dt == PT_FLOAT64)
            and not p.storage.flags & PT_STORAGE_READONLY)


cdef inline bint plain(object s, Tensor p) noexcept:
    return (s is None or (not (<Tensor>s).flags & (PT_NONCONTIGUOUS | PT_NON_CPU)
                          and (<Tensor>s).dt == p.dt and (<Tensor>s).count == p.count))


def sgd_(list params, list grads, list momentum_buffers, double lr, double momentum=0.0,
         double dampening=0.0, double weight_decay=0.0, bint nesterov=False, bint maximize=False):
    """One step of SGD; momentum_buffers holds None before a parameter's first step."""
    cdef Py_ssize_t i
    cdef Tensor p, g, b
    cdef object buffer
    cdef bint first, double_precision
    cdef char *at_p
    cdef char *at_g
    cdef char *at_b
    cdef int64_t n
    for i in range(len(params)):
        p, g = params[i], grads[i]
        buffer = momentum_buffers[i] if momentum != 0.0 else None
        first = momentum != 0.0 and buffer is None
        if not (fused(p, g) and plain(buffer, p)):
            momentum_buffers[i] = sgd_by_ops(p, g, buffer, lr, momentum, dampening, weight_decay,
                                             nesterov, maximize)
            continue
        if first:
            buffer = momentum_buffers[i] = new_like(p, p.dt)
        if buffer is not None:
            b = <Tensor>buffer
            count_write(b)
        else:
            b = None
        at_p, at_g, n = address(p), address(g), p.count       # other threads may change them without the GIL
        at_b = <char *>NULL if b is None else address(b)
        double_precision = p.dt == PT_FLOAT64
        pt_kernels_enter()
        with nogil:
            if double_precision:
                pt_sgd_f64(<double *>at_p, <double *>at_g, <double *>at_b, n, lr, momentum,
                           dampening, weight_decay, nesterov, maximize, first)
            else:
                pt_sgd_f32(<float *>at_p, <float *>at_g, <float *>at_b, n, lr, momentum,
                           dampening, weight_decay, nesterov, maximize, first)
        pt_kernels_leave()
        count_write(p)


cdef object sgd_by_ops(p, g, buffer, lr, momentum, dampening, decay, nesterov, maximize):
    d = -g if maximize else g
    if decay:
        d = d + decay * p
    if momentum:
        buffer = d.clone() if buffer is None else buffer.mul_(momentum).add_(d * (1 - dampening))
        d = d + momentum * buffer if nesterov else buffer
    p.sub_(d * lr)
    return buffer


cdef double count_step(object step) except? -1:
    """Adds one to a step counter in place and returns the new value."""
    cdef Tensor t
    if isinstance(step, Tensor):
        t = <Tensor>step
        if t.dt == PT_FLOAT32 and t.count == 1 and t.storage.device == DEVICE_CPU:
            (<float *>address(t))[0] += 1
            count_write(t)
            return (<float *>address(t))[0]
    step += 1
    return step.item() if isinstance(step, Tensor) else step


def adam_(list params, list grads, list exp_avgs, list exp_avg_sqs, list max_exp_avg_sqs,
          list steps, double lr, double beta1, double beta2, double eps, double weight_decay=0.0,
          bint amsgrad=False, bint maximize=False, bint decoupled=False):
    """One step of Adam (AdamW if ``decoupled``). steps holds 0-d float32 tensors, the steps taken
    so far; each is counted up here."""
    cdef Py_ssize_t i
    cdef Tensor p, g, m, v, x
    cdef double step, correction1, correction2
    cdef object vmax
    cdef bint double_precision
    cdef char *at_p
    cdef char *at_g
    cdef char *at_m
    cdef char *at_v
    cdef char *at_x
    cdef int64_t n
    for i in range(len(params)):
        p, g, m, v = params[i], grads[i], exp_avgs[i], exp_avg_sqs[i]
        step = count_step(steps[i])
        correction1 = 1.0 - beta1 ** step
        correction2 = 1.0 - beta2 ** step
        vmax = max_exp_avg_sqs[i] if amsgrad else None
        if not (fused(p, g) and plain(m, p) and plain(v, p) and plain(vmax, p)):
            adam_by_ops(p, g, m, v, vmax, lr, beta1, beta2, eps, weight_decay, maximize,
                        decoupled, correction1, correction2)
            continue
        x = <Tensor>vmax
        at_p, at_g, at_m, at_v, n = address(p), address(g), address(m), address(v), p.count
        at_x = <char *>NULL if x is None else address(x)
        double_precision = p.dt == PT_FLOAT64
        pt_kernels_enter()
        with nogil:
            if double_precision:
                pt_adam_f64(<double *>at_p, <double *>at_g, <double *>at_m, <double *>at_v, <double *>at_x, n, lr,
                            beta1, beta2, eps, weight_decay, maximize, decoupled, correction1, correction2)
            else:
                pt_adam_f32(<float *>at_p, <float *>at_g, <float *>at_m, <float *>at_v, <float *>at_x, n, lr,
                            beta1, beta2, eps, weight_decay, maximize, decoupled, correction1, correction2)
        pt_kernels_leave()
        count_write(p)
        count_write(m)
        count_write(v)
        if x is not None:
            count_write(x)


cdef object adam_by_ops(p, g, m, v, vmax, lr, beta1, beta2, eps, decay, maximize, decoupled,
                        correction1, correction2):
    d = -g if maximize else g
    if decay and decoupled:
        p.mul_(1 - lr * decay)
    elif decay:
        d = d + decay * p
    m.mul_(beta1).add_(d * (1 - beta1))
    v.mul_(beta2).add_(d * d * (1 - beta2))
    second = v
    if vmax is not None:
        from ptcore._ops._functions_arithmetic import maximum
        vmax.copy_(maximum(vmax, v))
        second = vmax
    denominator = second.sqrt() / sqrt(correction2) + eps
    p.sub_(m / denominator * (lr / correction1))
    return None
