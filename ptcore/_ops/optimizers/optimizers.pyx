"""Steps of optimizers over lists of parameters: one call for a group, one fused pass for each parameter.

The steps and their formulas are in ``table/steps.py``. Each is the body of a row (``rows.py``), so that modes and
interpreters are offered a step as one op. It writes to the parameters and the state in place and counts their versions.
On the CPU each dense tensor of one dtype goes through a fused loop, a complex tensor as pairs of reals. A device's
backend takes all tensors of one dtype at once (``kernel`` in ``ptcore/backend.h``). Other cases (half types on the CPU,
operands with other strides) run as ops, and so do steps that a mode or an interpreter has not run as one op.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

from ptcore._types cimport *
from ptcore._device cimport BACKENDS
from ptcore._dtype cimport CATEGORY, ITEMSIZE, REAL_OF
from ptcore._gil cimport SMALL, PyThreadState, release_gil, restore_gil
from ptcore._shape cimport is_dense, same_sizes
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport FUNCTIONS, arg_name, info, run_kernel
from ptcore._ops.call.offer cimport asks
from ptcore._ops import checked
from ptcore._ops.table.ids import op_id

cdef extern from "Python.h":
    object PyObject_Vectorcall(PyObject *, PyObject **, size_t, PyObject *)

cdef extern from "optimizers/optimizers.h" nogil:
    ctypedef struct pt_step:
        const char *name
        int written, options, counters, shared, own
        void (*numbers)(const double *options, double *counters, bint single, double *numbers) noexcept nogil
        void (*run_f32)(char **operands, int64_t n, const double *numbers) noexcept nogil
        void (*run_f64)(char **operands, int64_t n, const double *numbers) noexcept nogil
    const pt_step *pt_step_at(int k)
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


cdef bint has_kernel(int column, const char *name) noexcept:
    """Whether the backend of a column has the kernel of a name for lists of tensors."""
    return (column != DEVICE_CPU and BACKENDS[column] != NULL and BACKENDS[column].kernel != NULL
            and BACKENDS[column].kernel(name) != NULL)


cdef inline bint fits_a_list(Tensor t) noexcept:
    """Whether t can be one of the tensors that a backend takes at once: it is dense and has real floats."""
    return t.storage.device != DEVICE_CPU and CATEGORY[t.dt] == 2 and dense(t)


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


cdef object grouped(const char *name, list tensors):
    """(groups of tensors that a backend's kernel takes at once, the other tensors)"""
    cdef dict groups = {}
    cdef list others = []
    cdef Tensor t
    for t in tensors:
        if fits_a_list(t) and has_kernel(t.storage.device, name):
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
    from ptcore._ops.functions import vector_norm, view_as_real
    cdef Tensor r
    groups, others = grouped(b"total_norm", tensors)
    results = []
    for group in groups:
        r = new_tensor((<Tensor>group[0]).dt, 0, NULL, (<Tensor>group[0]).storage.device,
                       (<Tensor>group[0]).storage.device_index)
        call_many(b"total_norm", [[r]], group)
        results.append(r)
    return results + [vector_norm(view_as_real(t) if CATEGORY[(<Tensor>t).dt] == 3 else t) for t in others]


def scale_(list tensors, factor):
    """Multiplies in place by a 0-d tensor."""
    groups, others = grouped(b"scale", tensors)
    for group in groups:
        call_many(b"scale", [group], [factor.to(group[0].device, group[0].dtype)])
        count_writes(group)
    for t in others:
        t.mul_(factor.to(t.device))


def zero_(list tensors):
    """Fills with zeros."""
    groups, others = grouped(b"zero", tensors)
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


cdef inline bint lies_there(Tensor t, Tensor p, Tensor first) noexcept:
    """Whether a counter is a float on the device of p, with the dtype of the counter ``first``."""
    return (t.count == 1 and fits_a_list(t) and pt_loop_dtype(t.dt) == t.dt and t.dt == first.dt
            and t.storage.device == p.storage.device and t.storage.device_index == p.storage.device_index)


cdef double read_counter(Tensor t, bint *single) except? -1:
    single[0] = t.dt == PT_FLOAT32
    return (<float *>address(t))[0] if lies_here(t) else t.item()


cdef int write_counter(Tensor t, double value) except -1:
    if lies_here(t) and not t.storage.flags & PT_STORAGE_READONLY:
        (<float *>address(t))[0] = <float>value
        count_write(t)
    else:
        t.fill_(value)
    return 0


cdef class Step:
    """The body of a step's row: a call has lists of as many tensors, then the options."""
    cdef const pt_step *s
    cdef str name
    cdef bytes kernel, counted          # what backends call it
    cdef int op

    def __cinit__(self, int k):
        self.s = pt_step_at(k)
        if self.s == NULL:
            raise IndexError(f"Step: there is no step {k}")
        self.name = self.s.name.decode()
        self.kernel, self.counted = b"step:" + <bytes>self.s.name, b"step_counted:" + <bytes>self.s.name
        self.op = op_id(f"step_{self.name}")

    def __call__(self, *args):
        cdef int k, lists = self.s.written + 1 + self.s.counters
        cdef Py_ssize_t n = len(<tuple?>args[0])
        for k in range(1, lists):
            if len(<tuple?>args[k]) != n:
                raise ValueError(f"{info(self.op).name.decode()}: {arg_name(self.op, k)} must hold a tensor for each "
                                 f"of {n} parameters, got {len(<tuple>args[k])}")
        for p in <tuple>args[0]:
            if CATEGORY[(<Tensor>p).dt] < 2:
                raise RuntimeError(f"{info(self.op).name.decode()}: parameters must be floating or complex, got "
                                   f"{p.dtype}")
        for k in range(lists, lists + self.s.options):
            if not isinstance(args[k], (float, int, Tensor)):
                checked.real(info(self.op).name.decode(), arg_name(self.op, k), args[k])
        step(self, args)


cdef inline Tensor at(tuple lists, int k, Py_ssize_t i):
    """The tensor of a parameter in one of the lists, which have one length."""
    return <Tensor>PyTuple_GET_ITEM(<tuple>PyTuple_GET_ITEM(lists, k), i)


cdef int step(Step step, tuple lists) except -1:
    """One step for each parameter. If grad mode is on the step is recorded. The options are behind the lists."""
    cdef const pt_step *s = step.s
    cdef double[ROOM] given, counted, numbers
    cdef (char *)[ROOM] addresses
    cdef Py_ssize_t i
    cdef int k, operands = s.written + 1, column = DEVICE_CPU
    cdef bint single, fused, read = False, many = False, counts = False    # whether that column has the kernels
    cdef uint32_t key
    cdef Tensor p, x
    cdef dict groups = None, counting = None
    for i in range(PyTuple_GET_SIZE(<tuple>PyTuple_GET_ITEM(lists, 0))):
        if pt_tls.grad_enabled:
            from ptcore._ops.table.steps import STEPS
            STEPS[step.name].recorded(of_one(lists, 0, operands, i), of_one(lists, operands, s.counters, i),
                                      lists[operands + s.counters:])
            continue
        p = at(lists, 0, i)
        if p.storage.device != column:
            column = p.storage.device
            many, counts = has_kernel(column, step.kernel), s.counters and has_kernel(column, step.counted)
        if counts and counts_there(s, p, lists, i):
            if counting is None:
                counting = {}
            add_counting(counting, s, p, lists, i)
            continue
        if not read:
            for k in range(s.options):
                given[k] = lists[operands + s.counters + k]
            read = True
        single = False
        for k in range(s.counters):
            counted[k] = read_counter(at(lists, operands + k, i), &single)
        s.numbers(given, counted, single, numbers)
        for k in range(s.counters):
            write_counter(at(lists, operands + k, i), counted[k])
        key, fused = pt_tls.mode, dense(p)
        for k in range(operands):
            x = at(lists, k, i)
            key |= x.flags
            fused = fused and alike(x, p) and (k == s.written or not x.storage.flags & PT_STORAGE_READONLY)
            addresses[k] = address(x)
        fused = fused and not asks(key)
        if fused and p.storage.device == DEVICE_CPU and pt_loop_dtype(p.dt) == p.dt:
            run(s, p, addresses, numbers)
            for k in range(s.written):
                count_write(at(lists, k, i))
        elif fused and many:
            if groups is None:
                groups = {}
            add(groups, s, lists, i, numbers)
        else:
            from ptcore._ops.table.steps import STEPS
            STEPS[step.name].run(of_one(lists, 0, operands, i), [numbers[k] for k in range(s.shared + s.own)])
    if groups is not None:
        for written, of_group, shared, own in groups.values():
            call_many(step.kernel, written, of_group, shared, own)
            for operand in written:
                count_writes(operand)
    if counting is not None:
        for written, of_group in counting.values():
            call_many(step.counted, written, of_group,
                      tuple([there(option, written[0][0]) for option in lists[operands + s.counters:]]))
            for operand in written:
                count_writes(operand)
    return 0


cdef list of_one(tuple lists, int first, int n, Py_ssize_t i):
    """The tensors of a parameter in n lists."""
    cdef int k
    return [at(lists, first + k, i) for k in range(n)]


cdef tuple entries(list states, object key):
    """The entry of each state."""
    cdef Py_ssize_t i, n = len(states)
    cdef tuple made = PyTuple_New(n)
    for i in range(n):
        x = states[i][key]
        Py_INCREF(x)
        PyTuple_SET_ITEM(made, i, x)
    return made


cdef dict _steps = {}


def step_(str name, tuple options, list params, list grads, list states, tuple names, tuple counters):
    """One step for each parameter, by the op of the formula.

    ``states`` are dictionaries. ``names`` are the keys of the operands that the step writes beside the parameter,
    ``counters`` those of 0-d tensors that get their new values here. Without either, states are not read.
    """
    cdef Step step = <Step>_steps[name]
    cdef (PyObject *)[3 * ROOM] args
    cdef list held = [tuple(params)]
    cdef int n = 0
    if len(options) != step.s.options or len(names) + 1 != step.s.written or len(counters) != step.s.counters:
        raise ValueError(f"{name}: there is no step of {len(options)} options, {len(names) + 1} written operands and "
                         f"{len(counters)} counters")
    if not params:
        return
    for key in names:
        held.append(entries(states, key))
    held.append(tuple(grads))
    for key in counters:
        held.append(entries(states, key))
    for x in held:
        args[n] = <PyObject *>x
        n += 1
    for x in options:
        args[n] = <PyObject *>x
        n += 1
    PyObject_Vectorcall(<PyObject *>FUNCTIONS[step.op], args, n, NULL)


cdef int fill() except -1:
    """Makes the bodies, under the names of the rows."""
    cdef int k = 0
    cdef Step made
    while pt_step_at(k) != NULL:
        made = Step(k)
        _steps[made.name] = globals()[f"step_{made.name}"] = made
        k += 1
    return 0


fill()


cdef object there(object option, Tensor p):
    """An option as a number, or as a tensor of one float on the device of p."""
    cdef Tensor t
    if not isinstance(option, Tensor):
        return float(option)
    t = <Tensor>option
    if t.storage.device == DEVICE_CPU:
        return float(option)
    if t.count == 1 and fits_a_list(t) and pt_loop_dtype(t.dt) == t.dt:
        return t
    return option.to(p.device, "float32")


cdef bint counts_there(const pt_step *s, Tensor p, tuple lists, Py_ssize_t i) noexcept:
    """Whether the counters of a parameter are on its device, so that a kernel can take the whole step."""
    cdef int k
    cdef Tensor x, first = at(lists, s.written + 1, i)
    if not fits_a_list(p) or p.count == 0 or asks(p.flags | pt_tls.mode):
        return False
    for k in range(s.written + 1, s.written + 1 + s.counters):
        if not lies_there(at(lists, k, i), p, first):
            return False
    for k in range(1, s.written + 1):
        x = at(lists, k, i)
        if not alike(x, p) or asks(x.flags) or (k < s.written and x.storage.flags & PT_STORAGE_READONLY):
            return False
    return True


cdef int add_counting(dict groups, const pt_step *s, Tensor p, tuple lists, Py_ssize_t i) except -1:
    """Adds a parameter to the group of its device and dtypes: lists of written tensors, counters last, gradients."""
    cdef tuple key = group_of(p) + (at(lists, s.written + 1, i).dt,)
    cdef int k
    group = groups.get(key)
    if group is None:
        group = groups[key] = [[] for _ in range(s.written + s.counters)], []
    for k in range(s.written + s.counters):
        (<list>group[0][k]).append(at(lists, k + (k >= s.written), i))
    group[1].append(at(lists, s.written, i))
    return 0


cdef int add(dict groups, const pt_step *s, tuple lists, Py_ssize_t i, const double *numbers) except -1:
    """Adds a parameter to a group that a backend takes at once: lists for each operand, the gradients, and numbers."""
    cdef int k
    cdef tuple key = group_of(at(lists, 0, i))
    group = groups.get(key)
    if group is None:
        shared = tuple([numbers[k] for k in range(s.shared)])
        group = groups[key] = [[] for _ in range(s.written)], [], shared, []
    for k in range(s.written):
        (<list>group[0][k]).append(at(lists, k, i))
    group[1].append(at(lists, s.written, i))
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
    cdef PyThreadState *held = release_gil(n > SMALL)
    loop(s, single, addresses, n, numbers)
    restore_gil(held)
    return 0
