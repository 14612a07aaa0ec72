"""Dispatch of structured ops: arguments, interposition, promotion, allocation, kernels.

The way of a call: generated function -> ``unary``/``binary`` (_elementwise.pyx) or the fast path
of _structured.pyx -> ``call`` here for whatever is not plain: interpose when a flag asks for it ->
promotion -> the row's spec (shape and dtype) -> allocation -> kernel of the device's column ->
recording (_record.pyx).
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._device cimport BACKENDS, PT_DECOMPOSE, as_device, device, device_of, memory_failure
from ptcore._dtype cimport (CATEGORY, N_DTYPES, PROMOTE, as_code, default_float, dtype, dtype_of)
from ptcore._shape cimport (read_index, read_sizes, sizes_tuple, wrap_dim)
from ptcore._tensor cimport *
from ptcore._ops import _arguments
from ptcore._ops._record cimport *
from ptcore._ops._table cimport *
from ptcore._ops._table import _python_kernels, n_ops, op_id
from ptcore._ops._writing cimport *

cdef enum:
    VARIANT_PLAIN = 0
    VARIANT_INPLACE = 1

_next_random = None                 # (generator, column, index) -> (seed, offset), installed by the generator module


def set_random_source(f):
    global _next_random
    _next_random = f


def call_op(int op, tuple args, out=None):
    """Calls any structured op by id with its arguments in signature order."""
    if not 0 <= op < n_ops() or info(op).kind != PT_STRUCTURED:
        raise IndexError(f"call_op: {op} is no structured op")
    if len(args) != <Py_ssize_t>len(info(op).letters):
        raise TypeError(f"{info(op).name.decode()}: takes {len(info(op).letters)} arguments, got "
                        f"{len(args)}")
    return call(op, args, out)


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
    if key & (PT_MODE_FUNCTION | PT_INTERPOSED):
        return True
    return (key & PT_SUBCLASS) != 0 and not pt_tls.torch_function_off


cdef Tensor as_tensor_like(object value, Tensor like):
    """A Tensor from a number, ndarray or sequence given where a tensor stands."""
    if isinstance(value, Tensor):
        return <Tensor>value
    return <Tensor>table.convert(value, like)


cdef int wrap_arg(object value, int ndim, int op, int k) except -1:
    cdef bytes name = arg_name(op, k).encode()
    return wrap_dim(read_index(value, info(op).name, name), ndim, info(op).name, name)


cdef tuple _normalise(int op, tuple args, PyObject **first):
    """Checks each argument by its letter; tensors become Tensors, dims non-negative."""
    cdef const char *letters = info(op).letters
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
                    raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be a "
                                    f"Tensor, got {type(value).__name__}")
                value = result[k] = as_tensor_like(value, lead if letter == b'T' else None)
            if lead is None:
                lead = <Tensor>value
        elif letter == b'O' or letter == b'J':
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be a Tensor "
                                f"or None, got {type(value).__name__}")
        elif letter == b'L':
            result[k] = value = tuple(value)
            for item in value:
                if not isinstance(item, Tensor):
                    raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must hold "
                                    f"Tensors, got {type(item).__name__}")
            if not value:
                from ptcore._errors import ShapeError
                raise ShapeError(f"{info(op).name.decode()}: {arg_name(op, k)} must not be empty")
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
        elif letter in b"ibfsgj":
            if value is not None or letter not in b"gj":
                result[k] = _plain(value, letter, op, k)
        elif letter == b'z':
            ndim = read_sizes(value, sizes, info(op).name, arg_name(op, k).encode())
            result[k] = sizes_tuple(ndim, sizes)
        elif letter == b'Z':
            result[k] = tuple(_arguments.integers(info(op).name.decode(), arg_name(op, k), value))
        elif letter == b't':
            if value is not None:
                result[k] = dtype_of(as_code(value, info(op).name, arg_name(op, k).encode()))
    first[0] = <PyObject *>lead if lead is not None else NULL
    return tuple(result)


cdef object _plain(object value, char letter, int op, int k):
    """A number of the letter's own type and range; kernels rely on both."""
    cdef bint fits = type(value) is int and -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF
    if letter == b's':
        if fits or type(value) is float:
            return value
        return _arguments.number(info(op).name.decode(), arg_name(op, k), value)
    if letter == b'i' or letter == b'j':
        return value if fits else _arguments.integer(info(op).name.decode(), arg_name(op, k), value)
    if letter == b'b':
        if value is True or value is False:
            return value
        return _arguments.flag(info(op).name.decode(), arg_name(op, k), value)
    if type(value) is float:
        return value
    return _arguments.real(info(op).name.decode(), arg_name(op, k), value)


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
    n = read_sizes(value, dims, info(op).name, name)
    if n == 0:
        return tuple(range(ndim))
    for i in range(n):
        d = wrap_dim(dims[i], ndim, info(op).name, name)
        if seen & (<uint64_t>1 << d):
            raise RuntimeError(f"{info(op).name.decode()}: dim {d} appears twice in "
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
    """Hands the call to the innermost interpreter, which runs with itself taken off.

    Where it returns NotImplemented the op goes on with the interpreter in its place: a composite
    is then offered as the ops that it calls."""
    cdef list stack = _interpreters.stack
    if not stack:
        raise RuntimeError(f"{info(op).name.decode()}: an argument belongs to a transformation that "
                           "has ended or does not see this call; its value is not known here")
    top = _interpreters.pop()
    try:
        return top.call(info(op).row.decode(), args, out, variant)
    finally:
        _interpreters.push(top)


cdef object _torch_function(int op, tuple args, object out, int variant):
    cdef pt_opinfo *o = info(op)
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
    cdef uint32_t key = pt_tls.mode
    cdef Tensor lead
    cdef PyObject *found = NULL
    cdef int column = DEVICE_CPU, number = -1
    cdef uint64_t seen
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
    seen = geometry_of(args)
    outs = SPECS[op](*args)
    if type(outs) is not list:
        outs = [outs]
    return run(op, args, outs, column, number, out, key, seen)


cdef uint64_t MIX = 0x9E3779B97F4A7C15


cdef inline uint64_t mixed_in(uint64_t h, Tensor t) noexcept:
    cdef int i
    h = (h ^ <uint64_t>t.count ^ (<uint64_t>t.rank << 56)) * MIX
    for i in range(2 * t.rank):
        h = (h ^ <uint64_t>t.dims[i]) * MIX
    return h ^ (h >> 32)


cdef uint64_t geometry_of(tuple args):
    """A number for the sizes and strides of all tensors: a kernel must meet those that its shape rule saw, though
    Python code of other threads may have run in between."""
    cdef uint64_t h = 0
    for x in args:
        if isinstance(x, Tensor):
            h = mixed_in(h, <Tensor>x)
        elif isinstance(x, (tuple, list)):
            for item in x:
                if isinstance(item, Tensor):
                    h = mixed_in(h, <Tensor>item)
    return h


cdef int check_geometry(int op, tuple args, uint64_t seen) except -1:
    if geometry_of(args) != seen:
        raise RuntimeError(f"{info(op).name.decode()}: another thread has changed the sizes of an argument meanwhile")
    return 0


cdef tuple common_device_of(int op, Tensor t, tuple seen, bint scalars):
    """(column, index, whether it is a scalar's) of the tensors up to t; a scalar on the CPU may
    stand beside tensors elsewhere if `scalars`."""
    cdef int column = t.storage.device, number = t.storage.device_index
    if seen is None or (seen[2] and not (t.rank == 0 and column == DEVICE_CPU)):
        return (column, number, scalars and t.rank == 0 and column == DEVICE_CPU)
    if (column, number) != (seen[0], seen[1]) and not (
            scalars and t.rank == 0 and column == DEVICE_CPU):
        from ptcore._errors import DeviceError
        raise DeviceError(f"{info(op).name.decode()}: all tensors must be on one device, got "
                          f"{device_of(seen[0], seen[1])} and {device_of(column, number)}")
    return seen


cdef tuple _common_device(int op, tuple args):
    cdef tuple seen = None
    for x in args:
        if isinstance(x, Tensor):
            seen = common_device_of(op, <Tensor>x, seen, False)
        elif isinstance(x, tuple):
            for item in x:
                if isinstance(item, Tensor):
                    seen = common_device_of(op, <Tensor>item, seen, False)
    return seen[0], seen[1]


cdef tuple _promote_args(int op, tuple args):
    """Brings the promoting tensors to the compute dtype and checks it against ``types``."""
    cdef pt_opinfo *o = info(op)
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
        allowed = ", ".join([dtype_of(k).name for k in range(N_DTYPES) if o.types & (1 << k)])
        raise DTypeError(f"{o.name.decode()}: dtype must be one of {allowed}, got {dtype_of(dt).name}")
    if not mixed:
        return args
    changed = list(args)
    for k in range(len(args)):
        if letters[k] == b'T' or (letters[k] == b'O' and args[k] is not None):
            changed[k] = cast(<Tensor>args[k], dt)
        elif letters[k] == b'L':
            changed[k] = tuple([cast(<Tensor>item, dt) for item in args[k]])
    return tuple(changed)


cdef object run(int op, tuple args, list outs, int column, int number, object out, uint32_t key, uint64_t seen):
    """Allocates what the spec asked for, runs the kernel, records, and packs the results."""
    cdef pt_opinfo *o = info(op)
    cdef int ndim, code, nout = len(outs)
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef list results = []
    cdef list placed = None         # which results are the user's out=
    cdef device onto = None
    cdef tuple given
    cdef Tensor r
    if out is not None:
        given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(given) == nout and not (key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and o.differentiable
                                       and args_need_grad(args)):
            placed = []
    for spec in outs:
        ndim = read_sizes(spec[0], sizes, o.name, b"shape")
        code = as_code(spec[1], o.name, b"dtype")
        if len(spec) == 3:              # the op moves its input to that device
            onto = as_device(spec[2], o.name)
            column, number = onto.column, onto.number
        r = None
        if len(spec) == 4 and len(spec[3]) == ndim:     # it keeps its input's layout
            read_sizes(spec[3], strides, o.name, b"stride")
            results.append(new_strided(code, ndim, sizes, strides, column, number))
        else:
            if placed is not None and onto is None:     # of two results neither is written over the other
                r = place_for(given[len(results)], code, ndim, sizes, column, number, (*args, results), o.name)
            results.append(r if r is not None else new_tensor(code, ndim, sizes, column, number))
        if placed is not None:
            placed.append(r is not None)
    if onto is not None and pt_tls.non_blocking and column == DEVICE_CPU:
        results = [landing(<Tensor>results[0], (<Tensor>args[0]).storage.device)]
    check_geometry(op, args, seen)
    if onto is not None:
        copy_into(<Tensor>results[0], <Tensor>args[0], pt_tls.non_blocking)
    elif column != DEVICE_META:
        run_kernel(op, args, results, column, seen)
    if key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and o.differentiable:
        record(op, args, results)
    if out is not None:                 # refuses results with history
        return write_outs(op, out, results, placed)
    if nout == 1:
        return results[0]
    return tuple(results)


cdef bint args_need_grad(object args):
    for x in args:
        if isinstance(x, Tensor):
            if needs_grad(<Tensor>x):
                return True
        elif isinstance(x, (tuple, list)) and args_need_grad(x):
            return True
    return False


cdef bint over_first(int op, tuple args) except -1:
    """Runs a structured op whose kernel may change its first input in place; False, with nothing
    done, where the result has to be computed beside it."""
    cdef uint32_t key = pt_tls.mode
    cdef Tensor x
    cdef PyObject *found = NULL
    cdef tuple given, spec
    cdef uint64_t seen
    for a in args:
        if isinstance(a, Tensor):
            key |= (<Tensor>a).flags
    if key & PT_SLOW or key & PT_NON_CPU or not isinstance(args[0], Tensor):
        return False
    if key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and args_need_grad(args):
        return False
    x = <Tensor>args[0]
    if x.flags & (PT_NONCONTIGUOUS | PT_DATA):
        return False
    given = _promote_args(op, _normalise(op, args, &found))
    for a in given[1:]:
        if isinstance(a, Tensor) and same_memory(<Tensor>a, x):
            return False
    if given[0] is not x:
        return False
    seen = geometry_of(given)
    spec = SPECS[op](*given)
    if tuple(spec[0]) != shape_of(x) or as_code(spec[1], info(op).name, b"dtype") != x.dt:
        return False
    check_inplace(x, info(op).name, False)
    check_geometry(op, given, seen)
    run_kernel(op, given, [x], DEVICE_CPU, seen)
    finish_inplace(x, None)
    return True


cdef int64_t *own_all(pt_view *views, int nin, pt_view *outs, int nout) except NULL:
    """Gives all views sizes and strides of their own, in memory that the caller frees."""
    cdef int64_t total = 1
    cdef int64_t *room
    cdef int64_t *at
    cdef int i
    for i in range(nin):
        total += 2 * views[i].ndim
    for i in range(nout):
        total += 2 * outs[i].ndim
    room = at = <int64_t *>PyMem_Malloc(total * sizeof(int64_t))
    if room == NULL:
        raise MemoryError()
    for i in range(nin):
        at = own_dims(&views[i], at)
    for i in range(nout):
        at = own_dims(&outs[i], at)
    return room


cdef int run_kernel(int op, tuple args, list results, int column, uint64_t seen) except -1:
    cdef pt_opinfo *o = info(op)
    cdef pt_kernel kernel = kernel_of(op, column)
    cdef const char *letters = o.letters
    cdef int nargs = len(args), nin = 0, nparams = 0, k, status
    cdef int n_lists = 0
    cdef list keep = []
    cdef int64_t work = 0
    cdef pt_view *views
    cdef pt_view *outs
    cdef pt_param *params
    cdef int64_t *ints
    cdef int64_t *room = NULL
    cdef pt_call c
    cdef Tensor t
    if o.prefill and results[0] is not args[0]:
        copy_into(<Tensor>results[0], <Tensor>args[0])
    if kernel == NULL and (op, column) in _python_kernels:
        # A kernel sees data without history.
        _python_kernels[(op, column)](
            *[without_history(x) for x in args],
            out=results[0] if len(results) == 1 else tuple(results))
        return 0
    if kernel == NULL and o.kernel != NULL and <bytes>o.kernel == b"copy" and BACKENDS[column] != NULL:
        return copy_into(<Tensor>results[0], <Tensor>args[0])
    if kernel == NULL and by_smaller_ops(op, args, results):
        return 0
    if kernel == NULL:
        raise NotImplementedError(f"{o.name.decode()}: there is no kernel for device {device_of(column, -1)}")
    for k in range(nargs):
        if letters[k] == b'L':
            n_lists += len(args[k])
        elif isinstance(args[k], tuple):
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
        if o.prefill or keep:           # their copies may have let other threads run
            check_geometry(op, args, seen)
        c.op = op
        c.nin, c.nout, c.nparams = nin, len(results), nparams
        (<const pt_view **>&c.inputs)[0] = views
        c.out = outs
        (<const pt_param **>&c.params)[0] = params
        if column != DEVICE_CPU and BACKENDS[column] != NULL and BACKENDS[column].stream != NULL:
            c.stream = BACKENDS[column].stream(outs[0].device_index)
        if o.random:
            c.seed, c.offset = _next_random(args[nargs - 1], column, outs[0].device_index)
        if work > 16384:
            room = own_all(views, nin, outs, c.nout)
            pt_kernels_enter()
            with nogil:
                status = kernel(&c)
            pt_kernels_leave()
        else:
            status = kernel(&c)
        if status == PT_NEED_BLAS:
            if room == NULL:
                room = own_all(views, nin, outs, c.nout)
            pt_kernels_enter()          # before the import, which lets other threads run
            try:
                from ptcore._ops import _blas
                _blas.load()
                with nogil:
                    status = kernel(&c)
            finally:
                pt_kernels_leave()
        if status == PT_DECOMPOSE:
            if not by_smaller_ops(op, args, results):
                raise NotImplementedError(f"{o.name.decode()}: a kernel leaves these sizes to a decomposition, which "
                                          "there is none of")
        elif status != PT_OK:
            if status == PT_MEMORY_ERROR and column != DEVICE_CPU:
                status = memory_failure(column, outs[0].device_index)
            raise_status(status, o.name, c.error)
    finally:
        PyMem_Free(views)
        PyMem_Free(room)
    return 0


cdef bint by_smaller_ops(int op, tuple args, list results) except -1:
    """Fills the results of an op that a device has no kernel for by its decomposition, if it has one; half types are
    computed in float32, as a kernel would."""
    from ptcore._ops import _decompositions
    try:
        function = _decompositions.function(info(op).row.decode())
    except KeyError:
        return False
    made = function(*[widened(without_history(x)) for x in args])
    if len(results) == 1:
        made = (made,)
    for k in range(len(results)):
        copy_into(<Tensor>results[k], <Tensor>made[k])
    return True


cdef object widened(object x):
    if isinstance(x, Tensor) and ((<Tensor>x).dt == PT_FLOAT16 or (<Tensor>x).dt == PT_BFLOAT16):
        return cast(<Tensor>x, PT_FLOAT32)
    return tuple([widened(item) for item in x]) if type(x) is tuple else x


cdef object without_history(object x):
    if type(x) is tuple and x and isinstance(x[0], Tensor):
        return tuple([without_history(item) for item in x])
    return alias(<Tensor>x) if isinstance(x, Tensor) else x


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
            known = ', '.join([repr(n) for n in names])
            raise ValueError(f"{info(op).name.decode()}: {arg_name(op, k)} must be one of {known}, got {x!r}")
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
        p.i = <int64_t><uint64_t>x if x > 0x7FFFFFFFFFFFFFFF else <int64_t>x     # at most 2**64 - 1
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
        found = _choice_table[key] = row(info(op).row.decode()).args[k].choices
    return found


cdef Tensor cast(Tensor x, int dt):
    """x with another dtype; recorded through the `to` op when x has history."""
    if x.dt == dt:
        return x
    return <Tensor>call(op_id("to_dtype"), (x, dtype_of(dt)), None)
