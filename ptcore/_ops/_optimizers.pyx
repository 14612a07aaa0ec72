"""Optimiser steps over lists of parameters: one call a group, one fused pass a parameter.

Each function takes lists of equal length, writes to the parameters and the state in place and
counts their versions. On the CPU dense tensors of one floating dtype go through a fused loop each;
a device's backend takes all that share a dtype at once (``kernel`` in ``ptcore/backend.h``). What
neither can take (half types on the CPU, strided memory, several devices) goes through ops.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.math cimport sqrt

from ptcore._types cimport *
from ptcore._device cimport BACKENDS
from ptcore._shape cimport is_dense, same_sizes
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport raise_status

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
    int pt_disjoint(const pt_view *views, int64_t n, int64_t item)


# -- many tensors at once on a device ------------------------------------------------------------------------

cdef inline bint taken(Tensor t) noexcept:
    """Whether a backend takes t among others: real floats that fill their memory and may be written to."""
    cdef int column = t.storage.device
    return (column != DEVICE_CPU and BACKENDS[column] != NULL and BACKENDS[column].kernel != NULL
            and PT_FLOAT16 <= t.dt <= PT_FLOAT64 and not t.storage.flags & PT_STORAGE_READONLY
            and not t.flags & (PT_INTERPOSED | PT_INFERENCE | PT_TANGENT)
            and (not t.flags & PT_NONCONTIGUOUS or is_dense(t.rank, t.dims, t.dims + t.rank)))


cdef inline bint alike(object other, Tensor t) noexcept:
    """Whether another one lies as t, which is dense, on t's device (or is None)."""
    cdef Tensor x
    if other is None:
        return True
    x = <Tensor>other
    return (x.dt == t.dt and x.rank == t.rank and x.storage.device == t.storage.device
            and x.storage.device_index == t.storage.device_index and not x.flags & (PT_INTERPOSED | PT_TANGENT)
            and same_sizes(t.rank, x.dims, t.dims)
            and (not (x.flags | t.flags) & PT_NONCONTIGUOUS
                 or same_sizes(t.rank, x.dims + t.rank, t.dims + t.rank)))


cdef inline tuple group_of(Tensor t):
    return t.storage.device, t.storage.device_index, t.dt


cdef list picked(list values, list at):
    return [values[i] for i in at]


cdef int call_many(const char *name, list written, list read, tuple numbers=(), list pairs=None) except -1:
    """Calls a kernel over n tensors, or n for each of several operands; ``pairs`` holds two numbers a tensor.

    Tensors that share memory go to the kernel one by one, in order. Versions are the caller's.
    """
    cdef Tensor t = <Tensor>(<list>written[0])[0]
    cdef int column = t.storage.device, status
    cdef int64_t one = 1
    cdef int i, k, n = len(<list>written[0]), nout = n * len(written), nin = len(read), shared = len(numbers)
    cdef int nparams = shared + (0 if pairs is None else len(pairs))
    cdef pt_kernel kernel = BACKENDS[column].kernel(name)
    cdef pt_call c
    cdef pt_view *views
    cdef pt_param *params
    if kernel == NULL:
        raise NotImplementedError(f"{name.decode()}: there is no kernel for device {t.device}")
    views = <pt_view *>PyMem_Calloc(1, (nout + nin) * sizeof(pt_view) + nparams * sizeof(pt_param))
    if views == NULL:
        raise MemoryError()
    try:
        for i in range(nout + nin):
            t = <Tensor>((<list>written[i // n])[i % n] if i < nout else read[i - nout])
            fill_view(t, &views[i])
            views[i].ndim = 1
            views[i].sizes, views[i].strides = &views[i].numel, &one
            views[i].contiguous = True
        if n > 1 and not pt_disjoint(views, nout + nin, t.itemsize):
            for i in range(n):
                call_many(name, [[x[i]] for x in written], [read[i]] if nin == n else read, numbers,
                          None if pairs is None else pairs[i:i + 1])
            return 0
        params = <pt_param *>(views + nout + nin)
        for k in range(nparams):
            if k < shared:
                params[k].kind = PT_PARAM_FLOAT
                params[k].d = numbers[k]
                params[k].i = <int64_t>params[k].d
            else:
                params[k].kind = PT_PARAM_COMPLEX
                params[k].d, params[k].im = <tuple>pairs[k - shared]
        c.op = -1
        c.nin, c.nout, c.nparams = nin, nout, nparams
        (<const pt_view **>&c.inputs)[0] = views + nout
        c.out = views
        (<const pt_param **>&c.params)[0] = params
        c.stream = NULL if BACKENDS[column].stream == NULL else BACKENDS[column].stream(views[0].device_index)
        c.error[0] = 0
        pt_kernels_enter()
        with nogil:
            status = kernel(&c)
        pt_kernels_leave()
        if status != PT_OK:
            raise_status(status, name, c.error)
    finally:
        PyMem_Free(views)
    return 0


cdef int count_writes(list tensors) except -1:
    for t in tensors:
        count_write(<Tensor>t)
    return 0


cdef object grouped(list tensors):
    """(groups of tensors that a backend takes at once, the others)"""
    cdef dict groups = {}
    cdef list others = []
    cdef Tensor t
    for t in tensors:
        if taken(t):
            groups.setdefault(group_of(t), []).append(t)
        else:
            others.append(t)
    return groups.values(), others


def norms(list tensors):
    """Euclidean norms, 0-d: one for all tensors that a device takes at once, one for each other tensor."""
    from ptcore._ops.functions import vector_norm
    cdef Tensor r
    groups, others = grouped(tensors)
    results = []
    for group in groups:
        r = new_tensor((<Tensor>group[0]).dt, 0, NULL, (<Tensor>group[0]).storage.device,
                       (<Tensor>group[0]).storage.device_index)
        call_many(b"total_norm", [[r]], group)
        results.append(r)
    return results + [vector_norm(t) for t in others]


def scale_(list tensors, factor):
    """Multiplies in place by a 0-d tensor."""
    groups, others = grouped(tensors)
    for group in groups:
        call_many(b"scale", [group], [factor.to(group[0].device, group[0].dtype)])
        count_writes(group)
    for t in others:
        t.mul_(factor.to(t.device))


def zero_(list tensors):
    """Fills with zeros."""
    groups, others = grouped(tensors)
    for group in groups:
        call_many(b"zero", [group], [])
        count_writes(group)
    for t in others:
        t.zero_()


# -- one parameter after another on the CPU ------------------------------------------------------------------

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
    cdef dict groups = {}
    for i in range(len(params)):
        p, g = params[i], grads[i]
        buffer = momentum_buffers[i] if momentum != 0.0 else None
        first = momentum != 0.0 and buffer is None
        if taken(p) and alike(g, p) and alike(buffer, p):
            groups.setdefault((*group_of(p), first), []).append(i)
            continue
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
    for (_, _, _, first), at in groups.items():
        written = [picked(params, at)]
        if momentum != 0.0:
            written.append([like(<Tensor>t) for t in written[0]] if first else picked(momentum_buffers, at))
        call_many(b"sgd_step", written, picked(grads, at),
                  (lr, momentum, dampening, weight_decay, nesterov, maximize, first))
        for operand in written:
            count_writes(operand)
        if first:
            for i, buffer in zip(at, written[1]):
                momentum_buffers[i] = buffer


cdef Tensor like(Tensor p):
    """Memory laid out as p's."""
    return new_strided(p.dt, p.rank, p.dims, p.dims + p.rank, p.storage.device, p.storage.device_index)


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
    cdef dict groups = {}, corrections = {}
    for i in range(len(params)):
        p, g, m, v = params[i], grads[i], exp_avgs[i], exp_avg_sqs[i]
        step = count_step(steps[i])
        correction1 = 1.0 - beta1 ** step
        correction2 = 1.0 - beta2 ** step
        vmax = max_exp_avg_sqs[i] if amsgrad else None
        if taken(p) and alike(g, p) and alike(m, p) and alike(v, p) and alike(vmax, p):
            groups.setdefault(group_of(p), []).append(i)
            corrections[i] = correction1, correction2
            continue
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
    for at in groups.values():
        written = [picked(x_, at) for x_ in (params, exp_avgs, exp_avg_sqs)]
        if amsgrad:
            written.append(picked(max_exp_avg_sqs, at))
        call_many(b"adam_step", written, picked(grads, at), (lr, beta1, beta2, eps, weight_decay, maximize, decoupled),
                  [corrections[i] for i in at])
        for operand in written:
            count_writes(operand)


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
        from ptcore._ops.functions import maximum
        vmax.copy_(maximum(vmax, v))
        second = vmax
    denominator = second.sqrt() / sqrt(correction2) + eps
    p.sub_(m / denominator * (lr / correction1))
    return None
