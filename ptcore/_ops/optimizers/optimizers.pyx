"""Steps of optimizers over lists of parameters: one call for a group, one fused pass for each parameter.

The steps and their formulas are in ``table/steps.py``. A step writes to the parameters and the state in place and
counts their versions. On the CPU each dense tensor of one dtype goes through a fused loop, a complex tensor as pairs of
reals. A device's backend takes all tensors of one dtype at once (``kernel`` in ``ptcore/backend.h``). Other cases
(half types on the CPU, operands with other strides) run as ops, and so do steps that interpreters must see.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free

from ptcore._types cimport *
from ptcore._device cimport BACKENDS
from ptcore._dtype cimport CATEGORY, ITEMSIZE, REAL_OF
from ptcore._gil cimport PyThreadState, release_gil, restore_gil
from ptcore._shape cimport is_dense, same_sizes
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport run_kernel
from ptcore._ops.call.offer cimport asks

cdef extern from "optimizers/optimizers.h" nogil:
    ctypedef struct pt_step:
        int written, options, counters, shared, own
        void (*numbers)(const double *options, double *counters, bint single, double *numbers) noexcept nogil
        void (*run_f32)(char **operands, int64_t n, const double *numbers) noexcept nogil
        void (*run_f64)(char **operands, int64_t n, const double *numbers) noexcept nogil
    const pt_step *pt_step_named(const char *name)
    int pt_unscale_f32(float *x, int64_t n, float factor)
    int pt_unscale_f64(double *x, int64_t n, double factor)
    int pt_disjoint(const pt_view *views, int64_t n, int64_t item)

cdef enum:
    ROOM = 16                   # PT_STEP_ROOM


# -- many tensors at once on a device ------------------------------------------------------------------------

cdef inline bint dense(Tensor t) noexcept:
    """Whether t fills its memory, the memory may be written to, and no interpreter must see the write."""
    return (not t.storage.flags & PT_STORAGE_READONLY and not t.flags & (PT_INTERPOSED | PT_INFERENCE | PT_TANGENT)
            and (not t.flags & PT_NONCONTIGUOUS or is_dense(t.rank, t.dims, t.dims + t.rank)))


cdef inline bint has_kernels(Tensor t) noexcept:
    cdef int column = t.storage.device
    return column != DEVICE_CPU and BACKENDS[column] != NULL and BACKENDS[column].kernel != NULL


cdef inline bint taken(Tensor t) noexcept:
    """Whether a backend can take t in a list of tensors: a dense tensor of real floats."""
    return has_kernels(t) and CATEGORY[t.dt] == 2 and dense(t)


cdef inline bint alike(Tensor x, Tensor t) noexcept:
    """Whether x has the strides, dtype and device of t, which is dense."""
    return (x.dt == t.dt and x.rank == t.rank and x.storage.device == t.storage.device
            and x.storage.device_index == t.storage.device_index
            and not x.flags & (PT_INTERPOSED | PT_INFERENCE | PT_TANGENT)
            and same_sizes(t.rank, x.dims, t.dims)
            and (not (x.flags | t.flags) & PT_NONCONTIGUOUS
                 or same_sizes(t.rank, x.dims + t.rank, t.dims + t.rank)))


cdef inline tuple group_of(Tensor t):
    return t.storage.device, t.storage.device_index, t.dt


cdef int call_many(const char *name, list written, list read, tuple shared=(), list own=None) except -1:
    """Calls a kernel over n tensors, or n for each of several operands; ``own`` holds a tuple of numbers for each of n.

    A tensor among the numbers of ``shared`` goes to the kernel as an input behind ``read``. Complex tensors
    are pairs of reals. Tensors that share memory go to the kernel one by one, in order. The caller counts versions.
    """
    cdef Tensor t = <Tensor>(<list>written[0])[0]
    cdef int column = t.storage.device
    cdef int64_t one = 1
    cdef int64_t item = ITEMSIZE[t.dt] // (2 if CATEGORY[t.dt] == 3 else 1)
    cdef list inputs = read + [x for x in shared if isinstance(x, Tensor)]
    cdef int i, k, n = len(<list>written[0]), nout = n * len(written), nin = len(inputs)
    cdef list numbers = [*shared, *[x for of_tensor in own or () for x in of_tensor]]
    cdef int nparams = len(numbers), options = 0
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
            t = <Tensor>((<list>written[i // n])[i % n] if i < nout else inputs[i - nout])
            fill_view(t, &views[i])
            if CATEGORY[t.dt] == 3:
                views[i].dtype = REAL_OF[t.dt]
                views[i].numel *= 2
            views[i].ndim = 1
            views[i].sizes, views[i].strides = &views[i].numel, &one
            views[i].contiguous = True
        if n > 1 and not pt_disjoint(views, nout + nin, item):
            for i in range(n):
                call_many(name, [[x[i]] for x in written], [read[i]] if len(read) == n else read, shared,
                          None if own is None else own[i:i + 1])
            return 0
        params = <pt_param *>(views + nout + nin)
        for k in range(nparams):
            if isinstance(numbers[k], Tensor):      # the tensor is an input behind those of `read`
                params[k].kind, params[k].i = PT_PARAM_INT, options
                options += 1
                continue
            params[k].kind = PT_PARAM_FLOAT
            params[k].d = numbers[k]
        c.op = -1
        c.nin, c.nout, c.nparams = nin, nout, nparams
        (<const pt_view **>&c.inputs)[0] = views + nout
        c.out = views
        (<const pt_param **>&c.params)[0] = params
        c.stream = NULL if BACKENDS[column].stream == NULL else BACKENDS[column].stream(views[0].device_index)
        c.error[0] = 0
        run_kernel(kernel, &c, name, True)
    finally:
        PyMem_Free(views)
    return 0


cdef int count_writes(list tensors) except -1:
    for t in tensors:
        count_write(<Tensor>t)
    return 0


cdef object grouped(list tensors):
    """(groups of tensors that a backend takes at once, the other tensors)"""
    cdef dict groups = {}
    cdef list others = []
    cdef Tensor t
    for t in tensors:
        if taken(t):
            groups.setdefault(group_of(t), []).append(t)
        else:
            others.append(t)
    return groups.values(), others


def unscale(list grads, Tensor factor not None, Tensor found not None):
    """Multiplies gradients in place by a 0-d tensor; ``found``, or a tensor of 1 if a gradient was infinite or NaN.

    One fused pass for each dense float tensor on the CPU; other tensors go through ops.
    """
    cdef Tensor g
    cdef int finite = True
    cdef double number = factor.item() if factor.storage.device == DEVICE_CPU else 0
    for x in grads:
        g = <Tensor?>x
        if (g.storage.device != DEVICE_CPU or factor.storage.device != DEVICE_CPU or not dense(g)
                or g.dt != PT_FLOAT32 and g.dt != PT_FLOAT64 or asks(g.flags | pt_tls.mode)):
            found = found.maximum((~g.isfinite()).any().to(found.dtype))
            g.mul_(factor.to(g.dtype))
            continue
        if g.dt == PT_FLOAT32:
            finite &= pt_unscale_f32(<float *>address(g), g.count, <float>number)
        else:
            finite &= pt_unscale_f64(<double *>address(g), g.count, number)
        count_write(g)
    return found if finite else found.clone().fill_(1)


def norms(list tensors):
    """Euclidean norms, 0-d: one for all tensors that a device takes at once, one for each of the others."""
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


def with_grad(params):
    """The lists of the parameters with a gradient, and of their gradients."""
    cdef list given = [], grads = []
    cdef Tensor p
    for p in params:
        if p.grad_ is not None:
            given.append(p)
            grads.append(p.grad_)
    return given, grads


def drop_grads(params):
    """Sets the gradients of parameters to None."""
    cdef Tensor p
    for p in params:
        if p.grad_ is not None:
            if pt_tls.mode & PT_INTERPOSED:
                p.grad = None           # the setter tells interpreters
            else:
                p.grad_ = None


# -- steps ---------------------------------------------------------------------------------------------------

cdef inline bint lies_here(Tensor t) noexcept:
    """Whether a counter is stored as it was made: one float32 in the CPU's memory."""
    return t.dt == PT_FLOAT32 and t.count == 1 and t.storage.device == DEVICE_CPU and not t.flags & PT_INTERPOSED


cdef inline bint lies_there(object counter, Tensor p, object first) noexcept:
    """Whether a counter is a float on the device of p, with the dtype of the counter ``first``."""
    cdef Tensor t
    if not isinstance(counter, Tensor):
        return False
    t = <Tensor>counter
    return (t.count == 1 and taken(t) and ITEMSIZE[t.dt] > 2 and t.dt == (<Tensor>first).dt
            and t.storage.device == p.storage.device and t.storage.device_index == p.storage.device_index)


cdef double read_counter(object counter, bint *single) except? -1:
    cdef Tensor t
    if isinstance(counter, Tensor):
        t = <Tensor>counter
        single[0] = t.dt == PT_FLOAT32
        if lies_here(t):
            return (<float *>address(t))[0]
    return counter


cdef int write_counter(object counter, double value) except -1:
    """Stores the new value; a counter that is a number is updated by the caller."""
    cdef Tensor t
    if not isinstance(counter, Tensor):
        return 0
    t = <Tensor>counter
    if lies_here(t) and not t.storage.flags & PT_STORAGE_READONLY:
        (<float *>address(t))[0] = <float>value
        count_write(t)
    else:
        t.fill_(value)
    return 0


def step_(str name, tuple options, list params, list grads, list states, tuple names, tuple counters):
    """One step for each parameter.

    ``states`` are dictionaries. ``names`` are the keys of the operands that the step writes beside the parameter,
    ``counters`` those of 0-d tensors that get their new values here. Without either, states are not read. If grad
    mode is on the step is recorded.
    """
    cdef bytes encoded = name.encode()
    cdef const pt_step *s = pt_step_named(encoded)
    cdef double[ROOM] given, counted, numbers
    cdef (char *)[ROOM] addresses
    cdef Py_ssize_t i
    cdef int k, operands
    cdef bint single, fused
    cdef uint32_t key
    cdef Tensor p, x
    cdef object state = None
    cdef list held
    cdef dict groups = None, counting = None
    cdef bint read = False
    if s == NULL or len(options) != s.options or len(names) + 1 != s.written or len(counters) != s.counters:
        raise ValueError(f"{name}: there is no step of {len(options)} options, {len(names) + 1} written operands and "
                         f"{len(counters)} counters")
    if pt_tls.grad_enabled:
        from ptcore._ops.table.steps import STEPS
        STEPS[name].recorded(options, params, grads, states, names, counters)
        return
    operands = s.written + 1
    held = [None] * operands                            # keeps operands if other threads change lists or the state
    for i in range(len(params)):
        p = params[i]
        if CATEGORY[p.dt] < 2:
            raise RuntimeError(f"{name}: parameters must be floating or complex, got {p.dtype}")
        if operands > 2 or s.counters:
            state = states[i]
        if s.counters and counts_there(s, p, state, names, counters, grads[i]):
            if counting is None:
                counting = {}
            add_counting(counting, s, p, state, names, counters, grads[i])
            continue
        if not read:
            for k in range(s.options):
                given[k] = options[k]
            read = True
        single = False
        for k in range(s.counters):
            counted[k] = read_counter(state[counters[k]], &single)
        s.numbers(given, counted, single, numbers)
        for k in range(s.counters):
            write_counter(state[counters[k]], counted[k])
        key, fused = pt_tls.mode, dense(p)
        for k in range(operands):
            x = p if k == 0 else grads[i] if k == s.written else state[names[k - 1]]
            key |= x.flags
            fused = fused and alike(x, p) and (k == s.written or not x.storage.flags & PT_STORAGE_READONLY)
            addresses[k] = address(x)
            held[k] = x
        fused = fused and not asks(key)
        if fused and p.storage.device == DEVICE_CPU and ITEMSIZE[p.dt] > 2:
            run(s, p, addresses, numbers)
            for k in range(s.written):
                count_write(<Tensor>held[k])
        elif fused and has_kernels(p):
            if groups is None:
                groups = {}
            add(groups, s, held, numbers)
        else:
            from ptcore._ops.table.steps import STEPS
            STEPS[name].run(held, [numbers[k] for k in range(s.shared + s.own)])
    if groups is not None:
        for written, of_group, shared, own in groups.values():
            call_many(b"step:" + encoded, written, of_group, shared, own)
            for operand in written:
                count_writes(operand)
    if counting is not None:
        for written, of_group in counting.values():
            call_many(b"step_counted:" + encoded, written, of_group,
                      tuple([there(option, written[0][0]) for option in options]))
            for operand in written:
                count_writes(operand)


cdef object there(object option, Tensor p):
    """An option as a number, or as a tensor of one float on the device of p."""
    cdef Tensor t
    if not isinstance(option, Tensor):
        return float(option)
    t = <Tensor>option
    if t.storage.device == DEVICE_CPU:
        return float(option)
    if t.count == 1 and taken(t) and ITEMSIZE[t.dt] > 2:
        return t
    return option.to(p.device, "float32")


cdef bint counts_there(const pt_step *s, Tensor p, object state, tuple names, tuple counters, Tensor grad) except -1:
    """Whether the counters of a parameter are on its device and a kernel can take the whole step."""
    cdef int k
    cdef Tensor x
    first = state[counters[0]]
    if not isinstance(first, Tensor) or not has_kernels(p) or not taken(p) or asks(p.flags | grad.flags | pt_tls.mode):
        return False
    if p.count == 0 or not alike(grad, p) or BACKENDS[p.storage.device].kernel(b"step_counted:adam") == NULL:
        return False
    for name in counters:
        if not lies_there(state[name], p, first):
            return False
    for k in range(1, s.written):
        x = <Tensor?>state[names[k - 1]]
        if not alike(x, p) or x.storage.flags & PT_STORAGE_READONLY or asks(x.flags):
            return False
    return True


cdef int add_counting(dict groups, const pt_step *s, Tensor p, object state, tuple names, tuple counters,
                      Tensor grad) except -1:
    """Adds a parameter to the group of its device and dtypes: lists of written tensors, counters last, gradients."""
    cdef tuple key = group_of(p) + ((<Tensor>state[counters[0]]).dt,)
    cdef int k
    group = groups.get(key)
    if group is None:
        group = groups[key] = [[] for _ in range(s.written + s.counters)], []
    group[0][0].append(p)
    for k in range(s.written - 1):
        group[0][k + 1].append(state[names[k]])
    for k in range(s.counters):
        group[0][s.written + k].append(state[counters[k]])
    group[1].append(grad)
    return 0


cdef int add(dict groups, const pt_step *s, list operands, const double *numbers) except -1:
    """Adds a parameter to a group that a backend takes at once: lists for each operand, the gradients, and numbers."""
    cdef int k
    cdef tuple key = group_of(<Tensor>operands[0])
    group = groups.get(key)
    if group is None:
        shared = tuple([numbers[k] for k in range(s.shared)])
        group = groups[key] = [[] for _ in range(s.written)], [], shared, []
    for k in range(s.written):
        group[0][k].append(operands[k])
    group[1].append(operands[s.written])
    group[3].append(tuple([numbers[s.shared + k] for k in range(s.own)]))
    return 0


cdef inline void loop(const pt_step *s, bint single, char **addresses, int64_t n, const double *numbers) noexcept nogil:
    if single:
        s.run_f32(addresses, n, numbers)
    else:
        s.run_f64(addresses, n, numbers)


cdef int run(const pt_step *s, Tensor p, char **addresses, const double *numbers) except -1:
    """The CPU's fused loop over operands with the strides of p."""
    cdef bint single = p.dt == PT_FLOAT32 or p.dt == PT_COMPLEX64
    cdef int64_t n = p.count * (2 if p.dt == PT_COMPLEX64 or p.dt == PT_COMPLEX128 else 1)
    cdef PyThreadState *held = release_gil(True)
    loop(s, single, addresses, n, numbers)
    restore_gil(held)
    return 0
