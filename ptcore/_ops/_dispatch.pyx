"""Dispatch of structured ops, the op tables, interposition and recording.

The way of a call: generated function -> ``unary``/``binary`` (_elementwise.pyx) or ``call`` -> interpose when a flag asks for it -> promotion -> the row's spec (shape
and dtype) -> allocation -> kernel of the device's column -> recording.

Tables are indexed by op id. Ids of built-in ops are given by the generator; run-time ops get
ids above them.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._device cimport device, device_of
from ptcore._dtype cimport (CATEGORY, ITEMSIZE, PROMOTE, as_code, default_float, dtype, dtype_of)
from ptcore._node cimport Node, TensorMeta, new_node, set_unpack
from ptcore._shape cimport (make_size, read_index, read_sizes, sizes_tuple, wrap_dim)
from ptcore._tensor cimport *

cdef extern from "_optable.h":
    const pt_opinfo *pt_builtin_ops
    int PT_N_BUILTIN_OPS

cdef extern from "ptcore/elementwise.h" nogil:
    int pt_copy(const pt_view *dst, const pt_view *src)

cdef enum:
    MAX_OPS = 4096
    MAX_TENSORS = 16
    VARIANT_PLAIN = 0
    VARIANT_INPLACE = 1

cdef pt_opinfo[4096] INFO
cdef pt_kernel[4096][8] KERNELS
cdef int _n_ops = 0
FUNCTIONS = [None] * PT_N_BUILTIN_OPS
INPLACE_FUNCTIONS = [None] * PT_N_BUILTIN_OPS
SPECS = [None] * PT_N_BUILTIN_OPS
VJPS = [None] * PT_N_BUILTIN_OPS
cdef dict _id_by_name = {}
_next_random = None                 # () -> (seed, offset), installed by the generator module


cdef void _fill() except *:
    global _n_ops
    cdef int i
    for i in range(PT_N_BUILTIN_OPS):
        INFO[i] = pt_builtin_ops[i]
        _id_by_name[INFO[i].name.decode()] = i
    _n_ops = PT_N_BUILTIN_OPS


_fill()


cdef pt_opinfo *info(int op) noexcept:
    return &INFO[op]


cdef str arg_name(int op, int k):
    return INFO[op].argnames.decode().split(",")[k]


# -- registration ---------------------------------------------------------------------------

cdef int register_kernels(const pt_kernel_entry *entries, int column) except -1:
    """Enters a table of kernels under their names in a device's column."""
    cdef int i, k
    cdef dict by_kernel = {}
    for i in range(_n_ops):
        if INFO[i].kernel != NULL:
            by_kernel.setdefault(<bytes>INFO[i].kernel, []).append(i)
    k = 0
    while entries[k].name != NULL:
        for i in by_kernel.get(<bytes>entries[k].name, ()):
            KERNELS[i][column] = entries[k].kernel
        k += 1
    return 0


def register_kernel(str op, int column, size_t address):
    """Enters one kernel, given as the address of a ``pt_kernel``, for an op and a device."""
    if op not in _id_by_name:
        raise KeyError(f"register_kernel: there is no op {op!r}")
    if not 0 <= column < N_DEVICES:
        raise ValueError(f"register_kernel: column must be in [0, {N_DEVICES - 1}], got {column}")
    KERNELS[_id_by_name[op]][column] = <pt_kernel>address


def op_id(str name):
    """The id of an op by its name; KeyError if there is none."""
    return _id_by_name[name]


def op_name(int op):
    """The name of an op by its id."""
    if not 0 <= op < _n_ops:
        raise IndexError(f"op_name: op must be in [0, {_n_ops - 1}], got {op}")
    return INFO[op].name.decode()


def n_ops():
    return _n_ops


def set_functions(int op, function, inplace):
    FUNCTIONS[op] = function
    INPLACE_FUNCTIONS[op] = inplace


def set_spec(int op, spec):
    SPECS[op] = spec


def set_vjp(int op, rule):
    VJPS[op] = rule


def set_random_source(f):
    global _next_random
    _next_random = f


# -- arguments -------------------------------------------------------------------------------

cdef uint32_t flags_of(object x) noexcept:
    cdef uint32_t key = 0
    if isinstance(x, Tensor):
        return (<Tensor>x).flags
    if isinstance(x, (list, tuple)):
        for item in x:
            if isinstance(item, Tensor):
                key |= (<Tensor>item).flags
    return key


cdef bint overridden(tuple args):
    """Whether a composite must hand its call to __torch_function__ or an interpreter."""
    cdef uint32_t key = pt_tls.mode
    for x in args:
        key |= flags_of(x)
    if key & PT_MODE_FUNCTION:
        return True
    return (key & PT_SUBCLASS) != 0 and not pt_tls.torch_function_off


cdef Tensor as_tensor_like(object value, Tensor like):
    """A Tensor from a number, ndarray or sequence given where a tensor stands."""
    if isinstance(value, Tensor):
        return <Tensor>value
    return <Tensor>table.convert(value, like)


cdef int wrap_arg(object value, int ndim, int op, int k) except -1:
    cdef bytes name = arg_name(op, k).encode()
    return wrap_dim(read_index(value, INFO[op].name, name), ndim, INFO[op].name, name)


cdef tuple _normalise(int op, tuple args, PyObject **first):
    """Checks each argument by its letter; tensors become Tensors, dims non-negative."""
    cdef const char *letters = INFO[op].letters
    cdef int k, n = len(args), ndim
    cdef list result = list(args)
    cdef int64_t[64] sizes
    cdef object value
    cdef Tensor lead = None
    for k in range(n):
        value = result[k]
        letter = letters[k]
        if letter == b'T' or letter == b'I':
            if not isinstance(value, Tensor):
                if lead is None and letter == b'T' or value is None:
                    raise TypeError(f"{INFO[op].name.decode()}: {arg_name(op, k)} must be a "
                                    f"Tensor, got {type(value).__name__}")
                value = result[k] = as_tensor_like(value, lead if letter == b'T' else None)
            if lead is None:
                lead = <Tensor>value
        elif letter == b'O' or letter == b'J':
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{INFO[op].name.decode()}: {arg_name(op, k)} must be a Tensor "
                                f"or None, got {type(value).__name__}")
        elif letter == b'L':
            result[k] = value = tuple(value)
            for item in value:
                if not isinstance(item, Tensor):
                    raise TypeError(f"{INFO[op].name.decode()}: {arg_name(op, k)} must hold "
                                    f"Tensors, got {type(item).__name__}")
            if not value:
                from ptcore._errors import ShapeError
                raise ShapeError(f"{INFO[op].name.decode()}: {arg_name(op, k)} must not be empty")
            lead = <Tensor>value[0]
        elif letter == b'd':
            result[k] = wrap_arg(value, lead.rank, op, k)
        elif letter == b'e':
            if value is not None:
                result[k] = wrap_arg(value, lead.rank, op, k)
        elif letter == b'n':
            result[k] = wrap_arg(value, lead.rank + 1, op, k)
        elif letter == b'D':
            result[k] = _dims(value, lead.rank, op, k)
        elif letter == b'i':
            if type(value) is not int:
                result[k] = read_index(value, INFO[op].name, arg_name(op, k).encode())
        elif letter == b'j':
            if value is not None:
                result[k] = read_index(value, INFO[op].name, arg_name(op, k).encode())
        elif letter == b'f' or (letter == b'g' and value is not None):
            if not isinstance(value, (float, int)):
                try:
                    result[k] = float(value)
                except (TypeError, ValueError):
                    raise TypeError(f"{INFO[op].name.decode()}: {arg_name(op, k)} must be float, "
                                    f"got {type(value).__name__}") from None
        elif letter == b'b':
            result[k] = bool(value)
        elif letter == b'z':
            ndim = read_sizes(value, sizes, INFO[op].name, arg_name(op, k).encode())
            result[k] = sizes_tuple(ndim, sizes)
        elif letter == b't':
            if value is not None:
                result[k] = dtype_of(as_code(value, INFO[op].name, arg_name(op, k).encode()))
    first[0] = <PyObject *>lead if lead is not None else NULL
    return tuple(result)


cdef tuple _dims(object value, int ndim, int op, int k):
    cdef int64_t[64] dims
    cdef int n, i, d
    cdef uint64_t seen = 0
    cdef bytes name
    if value is None:
        return tuple(range(ndim))
    if type(value) is int:
        return (wrap_arg(value, ndim, op, k),)
    name = arg_name(op, k).encode()
    n = read_sizes(value, dims, INFO[op].name, name)
    if n == 0:
        return tuple(range(ndim))
    for i in range(n):
        d = wrap_dim(dims[i], ndim, INFO[op].name, name)
        if seen & (<uint64_t>1 << d):
            raise RuntimeError(f"{INFO[op].name.decode()}: dim {d} appears twice in "
                               f"{arg_name(op, k)}={value!r}")
        seen |= <uint64_t>1 << d
        dims[i] = d
    if ndim == 0:
        return ()
    return sizes_tuple(n, dims)


# -- interposition ---------------------------------------------------------------------------

from ptcore._state import interpreters as _interpreters


cdef object interpose(int op, tuple args, object out, int variant):
    """Offers the call to __torch_function__ and to the interpreter stack.

    Returns NotImplemented when nobody takes it, and dispatch goes on.
    """
    cdef uint32_t key = pt_tls.mode
    for x in args:
        key |= flags_of(x)
    if not pt_tls.torch_function_off and key & (PT_SUBCLASS | PT_MODE_FUNCTION):
        result = _torch_function(op, args, out, variant)
        if result is not NotImplemented:
            return result
    if key & PT_INTERPOSED:
        return _interpret(op, args, out, variant)
    return NotImplemented


cdef object _interpret(int op, tuple args, object out, int variant):
    """Hands the call to the innermost interpreter, which runs with itself taken off."""
    cdef list stack = _interpreters.stack
    if not stack:
        return NotImplemented
    top = _interpreters.pop()
    try:
        return top.call(INFO[op].name.decode(), args, out, variant)
    finally:
        _interpreters.push(top)


cdef object _torch_function(int op, tuple args, object out, int variant):
    cdef pt_opinfo *o = &INFO[op]
    cdef list types = [], owners = []
    cdef list flat = []
    for x in args:
        if isinstance(x, (list, tuple)):
            flat.extend(x)
        else:
            flat.append(x)
    for x in flat:
        if isinstance(x, Tensor) and (<Tensor>x).flags & PT_SUBCLASS and type(x) not in types:
            # subclasses come before their bases
            for i, t in enumerate(types):
                if issubclass(type(x), t):
                    types.insert(i, type(x))
                    owners.insert(i, x)
                    break
            else:
                types.append(type(x))
                owners.append(x)
    func = INPLACE_FUNCTIONS[op] if variant == VARIANT_INPLACE else FUNCTIONS[op]
    if func is None:
        return NotImplemented
    names = o.argnames.decode().split(",")
    kwargs = {names[k]: args[k] for k in range(o.npositional, len(args))}
    if out is not None:
        kwargs["out"] = out
    for owner in owners:
        result = type(owner).__torch_function__(func, tuple(types), args[:o.npositional], kwargs)
        if result is not NotImplemented:
            return result
    if owners:
        raise TypeError(f"{o.name.decode()}: no implementation found for types "
                        f"{[t.__name__ for t in types]}")
    return NotImplemented


# -- structured calls --------------------------------------------------------------------------

cdef object call(int op, tuple args, object out):
    """Runs a structured op on arguments in signature order."""
    cdef pt_opinfo *o = &INFO[op]
    cdef uint32_t key = pt_tls.mode
    cdef Tensor lead
    cdef PyObject *found = NULL
    cdef int k, compute = -1, column = DEVICE_CPU, number = -1
    cdef object x, result
    for x in args:
        if isinstance(x, Tensor):
            key |= (<Tensor>x).flags
        elif isinstance(x, (tuple, list)):
            key |= flags_of(x)
    if key & PT_SLOW:
        result = interpose(op, args, out, VARIANT_PLAIN)
        if result is not NotImplemented:
            return result
    args = _normalise(op, args, &found)
    if found != NULL:
        lead = <Tensor>found
        column, number = lead.storage.device, lead.storage.device_index
        if key & PT_NON_CPU:
            column, number = _common_device(op, args)
        args = _promote_args(op, args)
    else:
        for x in args:
            if isinstance(x, device):
                column, number = (<device>x).column, (<device>x).number
    outs = SPECS[op](*args)
    if type(outs) is not list:
        outs = [outs]
    return run(op, args, outs, column, number, out, key)


cdef tuple common_device_of(int op, Tensor t, tuple seen):
    cdef int column = t.storage.device, number = t.storage.device_index
    if seen is None or (seen[2] and t.rank > 0):
        return (column, number, t.rank == 0)
    if (column, number) != (seen[0], seen[1]) and not (t.rank == 0 and column == DEVICE_CPU):
        from ptcore._errors import DeviceError
        raise DeviceError(f"{INFO[op].name.decode()}: all tensors must be on one device, got "
                          f"{device_of(seen[0], seen[1])} and {device_of(column, number)}")
    return seen


cdef tuple _common_device(int op, tuple args):
    cdef tuple seen = None
    for x in args:
        if isinstance(x, Tensor):
            seen = common_device_of(op, <Tensor>x, seen)
        elif isinstance(x, tuple):
            for item in x:
                if isinstance(item, Tensor):
                    seen = common_device_of(op, <Tensor>item, seen)
    return seen[0], seen[1]


cdef tuple _promote_args(int op, tuple args):
    """Brings the promoting tensors to the compute dtype and checks it against ``types``."""
    cdef pt_opinfo *o = &INFO[op]
    cdef const char *letters = o.letters
    cdef int k, dt = -1
    cdef Tensor t
    cdef bint mixed = False
    cdef list changed
    for k in range(len(args)):
        if letters[k] == b'T' or (letters[k] == b'O' and args[k] is not None):
            t = <Tensor>args[k]
            if dt >= 0 and t.dt != dt:
                mixed = True
                if o.promote == PT_PROMOTE_NONE:
                    from ptcore._errors import DTypeError
                    raise DTypeError(
                        f"{o.name.decode()}: {arg_name(op, k)} must have dtype "
                        f"{dtype_of(dt).name}, got {dtype_of(t.dt).name}")
                dt = PROMOTE[dt][t.dt]
            elif dt < 0:
                dt = t.dt
        elif letters[k] == b'L':
            for item in args[k]:
                t = <Tensor>item
                if dt >= 0 and t.dt != dt:
                    mixed = True
                    dt = PROMOTE[dt][t.dt]
                elif dt < 0:
                    dt = t.dt
    if dt < 0:
        return args
    if o.promote == PT_PROMOTE_FLOAT and CATEGORY[dt] < 2:
        dt = default_float()
        mixed = True
    elif o.promote == PT_PROMOTE_DTYPE:
        for k in range(len(args)):
            if letters[k] == b't' and args[k] is not None and (<dtype>args[k]).code != dt:
                dt = (<dtype>args[k]).code
                mixed = True
    if not o.types & (1 << dt):
        from ptcore._errors import UnsupportedDTypeError as DTypeError
        allowed = ", ".join([dtype_of(k).name for k in range(15) if o.types & (1 << k)])
        raise DTypeError(f"{o.name.decode()}: dtype must be one of {allowed}, "
                         f"got {dtype_of(dt).name}")
    if not mixed:
        return args
    changed = list(args)
    for k in range(len(args)):
        if letters[k] == b'T' or (letters[k] == b'O' and args[k] is not None):
            changed[k] = cast(<Tensor>args[k], dt)
        elif letters[k] == b'L':
            changed[k] = tuple([cast(<Tensor>item, dt) for item in args[k]])
    return tuple(changed)


cdef object run(int op, tuple args, list outs, int column, int number, object out, uint32_t key):
    """Allocates what the spec asked for, runs the kernel, records, and packs the results."""
    cdef pt_opinfo *o = &INFO[op]
    cdef int i, ndim, nout = len(outs)
    cdef int64_t[64] sizes
    cdef list results = []
    cdef tuple given = None
    cdef Tensor t, user
    for shape, d in outs:
        ndim = read_sizes(shape, sizes, o.name, b"shape")
        results.append(new_tensor((<dtype>d).code, ndim, sizes, column, number))
    if column != DEVICE_META:
        run_kernel(op, args, results, column)
    if key & PT_REQUIRES_GRAD or key & PT_VIEW:
        if out is not None and pt_tls.grad_enabled:
            raise RuntimeError(f"{o.name.decode()}: out= does not support automatic "
                               "differentiation, but one of the arguments requires grad")
        if pt_tls.grad_enabled and o.differentiable:
            record(op, args, results)
    if out is not None:
        given = out if isinstance(out, tuple) else (out,)
        if len(given) != nout:
            raise TypeError(f"{o.name.decode()}: out must hold {nout} tensors, got {len(given)}")
        for i in range(nout):
            if not isinstance(given[i], Tensor):
                raise TypeError(f"{o.name.decode()}: out must be a Tensor, got "
                                f"{type(given[i]).__name__}")
            write_out(<Tensor>given[i], <Tensor>results[i], o.name)
        return out
    if nout == 1:
        return results[0]
    return tuple(results)


cdef int write_out(Tensor out, Tensor value, const char *name) except -1:
    """Copies a result to the user's out=, resized when it is empty, as PyTorch does."""
    if CATEGORY[value.dt] > CATEGORY[out.dt]:
        raise RuntimeError(f"{name.decode()}: result dtype {dtype_of(value.dt).name} can't be "
                           f"cast to out's dtype {dtype_of(out.dt).name}")
    if shape_of(out) != shape_of(value):
        if out.count != 0:
            from ptcore._errors import ShapeError
            raise ShapeError(f"{name.decode()}: out must have shape {list(shape_of(value))}, "
                             f"got {list(shape_of(out))}")
        from ptcore._tensor import set_data
        set_data(out, new_tensor(out.dt, value.rank, value.dims, out.storage.device,
                                 out.storage.device_index))
    check_writable(out, name)
    copy_into(out, value)
    out.storage.version += 1
    return 0


cdef int check_writable(Tensor x, const char *name) except -1:
    if x.storage.flags & PT_STORAGE_READONLY:
        raise RuntimeError(f"{name.decode()}: the tensor's memory is read-only")
    return 0


cdef int run_kernel(int op, tuple args, list results, int column) except -1:
    cdef pt_opinfo *o = &INFO[op]
    cdef pt_kernel kernel = KERNELS[op][column]
    cdef const char *letters = o.letters
    cdef int nargs = len(args), nin = 0, nparams = 0, k, j, status
    cdef int n_lists = 0
    cdef list keep = []
    cdef int64_t work = 0
    cdef pt_view *views
    cdef pt_view *outs
    cdef pt_param *params
    cdef int64_t *ints
    cdef pt_call c
    cdef Tensor t
    if kernel == NULL:
        raise NotImplementedError(f"{o.name.decode()}: there is no kernel for device "
                                  f"{device_of(column, -1)}")
    for k in range(nargs):
        if letters[k] == b'L':
            n_lists += len(args[k])
        elif letters[k] == b'D' or letters[k] == b'z' or letters[k] == b'o':
            if isinstance(args[k], tuple):
                n_lists += len(args[k])
    views = <pt_view *>PyMem_Malloc(
        (nargs + n_lists + len(results)) * sizeof(pt_view) + nargs * sizeof(pt_param)
        + n_lists * sizeof(int64_t))
    if views == NULL:
        raise MemoryError()
    try:
        outs = views + nargs + n_lists
        params = <pt_param *>(outs + len(results))
        ints = <int64_t *>(params + nargs)
        memset(&c, 0, sizeof(c))
        for k in range(nargs):
            x = args[k]
            letter = letters[k]
            if letter == b'T' or letter == b'O' or letter == b'I' or letter == b'J':
                if x is None:
                    memset(&views[nin], 0, sizeof(pt_view))
                    views[nin].dtype = PT_NONE
                else:
                    t = <Tensor>x
                    if o.contiguous and t.flags & PT_NONCONTIGUOUS:
                        t = contiguous(t)
                        keep.append(t)
                    fill_view(t, &views[nin])
                    work += t.count
                nin += 1
            elif letter == b'L':
                for item in x:
                    fill_view(<Tensor>item, &views[nin])
                    work += (<Tensor>item).count
                    nin += 1
            elif letter == b'o' and isinstance(x, tuple) and x and isinstance(x[0], Tensor):
                for item in x:
                    fill_view(<Tensor>item, &views[nin])
                    nin += 1
            else:
                fill_param(&params[nparams], x, letter, &ints, op, k)
                nparams += 1
        for k in range(len(results)):
            fill_view(<Tensor>results[k], &outs[k])
            work += outs[k].numel
        c.op = op
        c.nin, c.nout, c.nparams = nin, len(results), nparams
        (<const pt_view **>&c.inputs)[0] = views
        c.out = outs
        (<const pt_param **>&c.params)[0] = params
        if o.prefill:
            pt_copy(&outs[0], &views[0])
        if o.random:
            c.seed, c.offset = _next_random(args[nargs - 1])
        if work > 16384:
            with nogil:
                status = kernel(&c)
        else:
            status = kernel(&c)
        if status == PT_NEED_BLAS:
            from ptcore._ops import _blas
            _blas.load()
            with nogil:
                status = kernel(&c)
        if status != PT_OK:
            raise_status(status, o.name, c.error)
    finally:
        PyMem_Free(views)
    return 0


cdef int fill_param(pt_param *p, object x, char letter, int64_t **ints, int op, int k) except -1:
    memset(p, 0, sizeof(pt_param))
    if x is None:
        return 0
    if letter == b't':
        p.kind, p.i = PT_PARAM_INT, (<dtype>x).code
        p.d = <double>p.i
    elif letter == b'w':
        names = _choices(op, k)
        if x not in names:
            raise ValueError(f"{INFO[op].name.decode()}: {arg_name(op, k)} must be one of "
                             f"{', '.join([repr(n) for n in names])}, got {x!r}")
        p.kind, p.i = PT_PARAM_INT, names.index(x)
    elif isinstance(x, tuple):
        p.kind, p.list = PT_PARAM_INTS, ints[0]
        for item in x:
            ints[0][0] = item
            ints[0] += 1
        p.count = len(x)
    elif isinstance(x, (bool, int)):
        p.kind = PT_PARAM_INT
        p.d = <double>x
        p.i = <int64_t>(x & 0xFFFFFFFFFFFFFFFF) if x > 0x7FFFFFFFFFFFFFFF or x < -0x8000000000000000 else <int64_t>x
    elif isinstance(x, float):
        p.kind, p.d = PT_PARAM_FLOAT, x
        p.i = <int64_t>p.d if -9e18 < p.d < 9e18 else 0
    elif isinstance(x, complex):
        p.kind, p.d, p.im = PT_PARAM_COMPLEX, x.real, x.imag
    return 0


_choice_table = {}


cdef tuple _choices(int op, int k):
    key = (op, k)
    found = _choice_table.get(key)
    if found is None:
        from ptcore._ops import row
        found = _choice_table[key] = row(INFO[op].name.decode()).args[k].choices
    return found


cdef int raise_status(int status, const char *name, const char *text) except -1:
    message = f"{name.decode()}: {text.decode(errors='replace')}"
    if status == PT_VALUE_ERROR:
        raise ValueError(message)
    if status == PT_INDEX_ERROR:
        from ptcore._errors import OutOfRangeError
        raise OutOfRangeError(message)
    if status == PT_TYPE_ERROR:
        raise TypeError(message)
    if status == PT_MEMORY_ERROR:
        raise MemoryError(message)
    if status == PT_LINALG_ERROR:
        from ptcore._errors import LinAlgError
        raise LinAlgError(message)
    raise RuntimeError(message)


# -- data movement used by every path ----------------------------------------------------------

cdef int copy_into(Tensor dst, Tensor src) except -1:
    """dst[...] = src without history; sizes are equal, dtypes and strides are not asked about."""
    cdef pt_view a, b
    cdef int status
    if dst.storage.device != src.storage.device:
        raise RuntimeError(f"copy: from {src.device} to {dst.device} is not supported here")
    if dst.storage.device == DEVICE_META:
        return 0
    fill_view(dst, &a)
    fill_view(src, &b)
    if dst.count > 16384:
        with nogil:
            status = pt_copy(&a, &b)
    else:
        status = pt_copy(&a, &b)
    if status:
        raise RuntimeError("copy: failed")
    return 0


cdef Tensor contiguous(Tensor x):
    """x's values in row-major order, without history."""
    cdef Tensor r
    if not x.flags & PT_NONCONTIGUOUS:
        return x
    r = new_like(x, x.dt)
    copy_into(r, x)
    return r


cdef Tensor cast(Tensor x, int dt):
    """x with another dtype; recorded through the `to` op when x has history."""
    if x.dt == dt:
        return x
    return <Tensor>call(_id_by_name["to_dtype"], (x, dtype_of(dt)), None)


# -- recording -----------------------------------------------------------------------------------

cdef void link(Node n, int i, Tensor t):
    """Edge i of n leads to where t came from, or to t itself if it is a leaf."""
    if t.node is not None:
        n.set_edge(i, t.node, t.out_nr)
    else:
        n.set_edge(i, t, 0)


cdef class Packed:
    """A saved tensor that a pack hook has replaced."""
    cdef object value, unpack


saved_hooks = []                    # stack of (pack, unpack), innermost last


cdef object pack(object x):
    cdef Packed p
    if pt_tls.mode & PT_MODE_SAVED_HOOKS and isinstance(x, Tensor) and saved_hooks:
        hooks = saved_hooks[-1]
        p = Packed.__new__(Packed)
        p.value = hooks[0](x)
        p.unpack = hooks[1]
        return p
    return x


cdef void save(Node n, int slot, object x) except *:
    """Puts x with its present version into a slot."""
    cdef uint64_t version = (<Tensor>x).storage.version if isinstance(x, Tensor) else 0
    x = pack(x)
    if slot == 0:
        n.s0, n.v0 = x, version
    elif slot == 1:
        n.s1, n.v1 = x, version
    elif slot == 2:
        n.s2, n.v2 = x, version
    elif slot == 3:
        n.s3, n.v3 = x, version
    else:
        if n.smore is None:
            n.smore = []
        while len(n.smore) < 2 * (slot - 4):
            n.smore += [None, 0]
        n.smore += [x, version]


cdef object unpack_saved(object x, uint64_t version, Node n, int slot):
    cdef Tensor t, r
    cdef int code
    if isinstance(x, Packed):
        x = (<Packed>x).unpack((<Packed>x).value)
    elif isinstance(x, Tensor):
        t = <Tensor>x
        if t.storage.version != version and not t.flags & PT_DATA:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: {describe(t)}, saved by {node_name(n)}, is at version "
                f"{t.storage.version}; expected version {version} instead")
    if pt_tls.grad_enabled and n.op >= 0 and isinstance(x, Tensor):
        code = INFO[n.op].saved[slot] if slot < PT_MAX_SAVED else 0
        if code >= PT_SAVE_OUT:
            # The output was saved without history; a recorded backward needs it.
            t = <Tensor>x
            r = alias(t)
            set_node(r, n, code - PT_SAVE_OUT)
            return r
    return x


set_unpack(unpack_saved)


def node_name(Node n):
    """``MulBackward0``, as PyTorch names nodes."""
    if n.op < 0:
        return getattr(n.fn, "__name__", None) or type(n.fn).__name__
    words = INFO[n.op].name.decode().split("_")
    return "".join([w.capitalize() for w in words]) + "Backward0"


cdef Node record(int op, tuple args, object outs):
    """Makes the Node of a structured op and hangs it on its outputs; None if none is needed."""
    cdef pt_opinfo *o = &INFO[op]
    cdef const char *letters = o.letters
    cdef int k, i = 0, code, nout
    cdef uint32_t need = 0
    cdef list tensors = []
    cdef Node n
    cdef Tensor t
    for k in range(len(args)):
        if letters[k] == b'L' or (letters[k] == b'o' and isinstance(args[k], tuple)
                                  and args[k] and isinstance(args[k][0], Tensor)):
            tensors.extend(args[k])
        elif letters[k] in b"TOIJ":
            tensors.append(args[k])
    for i in range(len(tensors)):
        if tensors[i] is not None and o.grad_mask & (1 << min(i, 15)):
            if needs_grad(<Tensor>tensors[i]):
                need |= 1 << min(i, 15)
    if not need:
        return None
    n = new_node(op, len(tensors))
    for i in range(len(tensors)):
        if need & (1 << min(i, 15)) and tensors[i] is not None and (<Tensor>tensors[i]).flags & PT_REQUIRES_GRAD:
            link(n, i, <Tensor>tensors[i])
    n.params = args if INFO[op].ntensors == 0 else tuple(
        [args[k] for k in range(len(args)) if letters[k] not in b"TOIJL"])
    nout = len(outs)
    for k in range(o.nsaved):
        if not o.need[k] & need:
            continue
        code = o.saved[k]
        if code >= PT_SAVE_OUT:
            save(n, k, alias(<Tensor>outs[code - PT_SAVE_OUT]))
        elif code >= PT_SAVE_META:
            x = args[code - PT_SAVE_META]
            if isinstance(x, tuple):
                save(n, k, [TensorMeta(shape_of(<Tensor>y), dtype_of((<Tensor>y).dt), y.device) for y in x])
            elif x is not None:
                t = <Tensor>x
                save(n, k, TensorMeta(shape_of(t), dtype_of(t.dt), t.device))
        else:
            save(n, k, args[code])
    n.nout = nout
    if nout > 1:
        n.out_meta = tuple([(shape_of(<Tensor>y), dtype_of((<Tensor>y).dt), y.device) for y in outs])
    for k in range(nout):
        t = <Tensor>outs[k]
        if CATEGORY[t.dt] >= 2:
            set_node(t, n, k)
    if pt_tls.mode & PT_MODE_ANOMALY:
        n.trace = trace_of_user()
    return n


cdef object trace_of_user():
    import traceback
    return traceback.format_stack()


# -- in-place -----------------------------------------------------------------------------------

cdef int check_inplace(Tensor x, const char *op) except -1:
    """Refuses what PyTorch refuses before anything is written."""
    check_writable(x, op)
    if pt_tls.grad_enabled and needs_grad(x):
        if x.node is None:
            raise RuntimeError(f"{op.decode()}: a leaf Variable that requires grad is being "
                               "used in an in-place operation.")
        if x.flags & PT_MULTI_VIEW:
            raise RuntimeError(f"{op.decode()}: the tensor is one of several views made by one "
                               "function; such views cannot be modified in place")
    if pt_tls.grad_enabled and x.flags & PT_VIEW:
        if (<Tensor>x.base).node is None and (<Tensor>x.base).flags & PT_REQUIRES_GRAD:
            raise RuntimeError(f"{op.decode()}: a view of a leaf Variable that requires grad is "
                               "being used in an in-place operation.")
    return 0


_rebase_view = None                 # installed by autograd: (base, view, node)


def set_rebase_view(f):
    global _rebase_view
    _rebase_view = f


cdef int finish_inplace(Tensor x, Node n) except -1:
    """After x was written: counts the version and gives x (or its base) the new history."""
    x.storage.version += 1
    if n is None:
        if x.flags & PT_VIEW and not (<Tensor>x.base).flags & PT_REQUIRES_GRAD:
            x.attr_version = x.storage.version
        return 0
    if x.flags & PT_VIEW:
        _rebase_view(x.base, x, n)
    else:
        set_node(x, n, 0)
    return 0


def hang(Tensor base, rule, Node inner):
    """Makes the CopySlices node of a write through a view and hangs it on the base."""
    cdef Node n = new_node(-1, inner.nin)
    cdef int i
    if base.node is not None or base.flags & PT_REQUIRES_GRAD:
        link(n, 0, base)
    for i in range(1, inner.nin):
        n.set_edge(i, inner.edge(i), inner.edge_nr(i))
    n.fn = rule
    set_node(base, n, 0)


def window_of(Tensor x, size, stride, offset):
    """``x`` seen through sizes, strides and an offset relative to its first element."""
    return FUNCTIONS[_id_by_name["as_strided_of"]](
        x, size, stride, x.storage_offset() + offset, (), 0)


# -- nodes of custom functions -----------------------------------------------------------------------

def custom_node(rule, list inputs, list outputs, tuple saved, set dirty):
    """The Node of an autograd.Function call.

    Parameters
    ----------
    rule : callable(node, g, needs)
    inputs : list
        All arguments of the call; those that are no Tensors get no edge.
    outputs : list
        Tensors that get history; None for the others. An output that is an input must be in
        ``dirty`` (by id), and was written to.
    saved : tuple
        What ``save_for_backward`` was given.
    """
    cdef Node n = new_node(-1, len(inputs))
    cdef int i, k
    cdef Tensor t
    for i in range(len(inputs)):
        if isinstance(inputs[i], Tensor) and needs_grad(<Tensor>inputs[i]):
            link(n, i, <Tensor>inputs[i])
    n.fn = rule
    n.nout = len(outputs)
    from_output = {}
    for k in range(len(saved)):
        x = saved[k]
        if isinstance(x, Tensor):
            for i in range(len(outputs)):
                if outputs[i] is x:
                    from_output[k] = i
                    x = alias(<Tensor>x)
                    break
        save(n, k, x)
        if id(saved[k]) in dirty:
            (<Tensor>saved[k]).storage.version += 1
            save(n, k, x)
            (<Tensor>saved[k]).storage.version -= 1
    if n.nout > 1:
        n.out_meta = tuple([None if y is None else (shape_of(<Tensor>y),
                                                    dtype_of((<Tensor>y).dt), y.device)
                            for y in outputs])
    for i in range(len(outputs)):
        if outputs[i] is None:
            continue
        t = <Tensor>outputs[i]
        if id(t) in dirty:
            finish_inplace(t, n)
        else:
            set_node(t, n, i)
    if pt_tls.mode & PT_MODE_ANOMALY:
        n.trace = trace_of_user()
    return n, from_output


def attach_history(Tensor t, Node n, int nr):
    """An alias of t whose history is output nr of n."""
    cdef Tensor r = alias(t)
    set_node(r, n, nr)
    return r


def check_dirty(Tensor t):
    """Refuses an in-place write by a custom function where an op's would be refused."""
    check_inplace(t, b"mark_dirty")
