"""Reading: the bound arguments of a structured call become views and parameters.

``read`` takes only arguments that are plain: tensors of one dtype on one device, numbers and dims of the exact
types. For other calls ``plain_arguments`` makes plain arguments, once, and these are read again.
"""
from cpython.mem cimport PyMem_Malloc
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._device cimport BACKENDS, device, device_of
from ptcore._dtype cimport CATEGORY, N_DTYPES, as_code, default_float, dtype, dtype_of, promote, word_of
from ptcore._shape cimport (any_symbolic, concrete, hinted, is_symbolic_number, read_index, read_sizes, sizes_tuple,
                            wrap_dim)
from ptcore._tensor cimport *
from ptcore._ops import checked as _arguments
from ptcore._ops.table.ids cimport *
from ptcore._ops.call.call cimport *
from ptcore._ops.call.lists cimport choices_of, read_ints, read_word

cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object, int *) noexcept
    bint PyLong_CheckExact(object)

cdef enum:
    SLOW_ON_ANY_DEVICE = PT_SLOW & ~PT_NON_CPU

cdef Tensor (*_cast)(Tensor x, int dt)       # set by run.pyx, which imports this module


cdef void set_cast(Tensor (*f)(Tensor x, int dt)) noexcept:
    global _cast
    _cast = f


cdef Tensor cast(Tensor x, int dt):
    """x with another dtype; recorded when x has history."""
    return x if x.dt == dt else _cast(x, dt)


cdef int make_room(Call *c) except -1:
    """Room for long lists of tensors and of ints; the caller frees it."""
    cdef const char *letters = c.o.letters
    cdef Py_ssize_t tensors = 0, ints = 0, k
    cdef size_t size
    for k in range(c.n):
        x = <object>c.args[k]
        if letters[k] != PT_ARG_TENSORS and is_of_tensors(letters[k]):
            tensors += 1
        elif isinstance(x, tuple):
            tensors += len(x)
            ints += len(x)
    if tensors > INLINE_TENSORS or ints > INLINE_INTS:
        size = sizeof(pt_view) + sizeof(PyObject *) + 1
        c.room = PyMem_Malloc(tensors * size + (ints + 1) * sizeof(int64_t))
        if c.room == NULL:
            raise MemoryError()
        c.inputs = <pt_view *>c.room
        c.tensors = <PyObject **>(c.inputs + tensors)
        c.ints = <int64_t *>(c.tensors + tensors)
        c.argument = <uint8_t *>(c.ints + ints)
    return 0


cdef pt_param no_param                   # all zero
memset(&no_param, 0, sizeof(pt_param))


cdef inline bint read_dim(object value, int ndim, int64_t *dim) noexcept:
    """A wrapped dim from an exact int."""
    cdef int overflow = 0
    cdef int64_t v
    if not PyLong_CheckExact(value):
        return False
    v = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or v < -ndim or v >= ndim:
        return False
    dim[0] = v + ndim if v < 0 else v
    return True


cdef inline void add_tensor(Call *c, Tensor t, int argument) noexcept:
    c.tensors[c.nin] = <PyObject *>t
    c.argument[c.nin] = argument
    c.key |= t.flags
    fill_view(t, &c.inputs[c.nin])
    c.nin += 1


cdef inline bint becomes_index(pt_opinfo *o, Tensor t) noexcept:
    """Whether positions along a dim are cast to int64: int32 positions, and integer tensors without elements."""
    return o.positions and (t.dt == PT_INT32 or (t.count == 0 and CATEGORY[t.dt] == 1))


cdef inline bint read_operand(Call *c, object x, char letter, int argument, PyObject **lead) noexcept:
    """A tensor, or None where None is allowed. False: it is not plain yet."""
    cdef Tensor t
    if c.room == NULL and c.nin == INLINE_TENSORS:
        return False
    if isinstance(x, Tensor):
        t = <Tensor>x
        add_tensor(c, t, argument)
        if letter in (PT_ARG_TENSOR, PT_ARG_OPT_TENSOR):
            if c.dt < 0:
                c.dt = t.dt
            elif c.dt != t.dt:
                return False
        elif t.dt != PT_INT64 and becomes_index(c.o, t) and not c.normal:
            return False
        if lead[0] == NULL:
            lead[0] = <PyObject *>x
        return True
    if x is not None or letter not in (PT_ARG_OPT_TENSOR, PT_ARG_OPT_INDEX):
        return False
    memset(&c.inputs[c.nin], 0, sizeof(pt_view))
    c.inputs[c.nin].dtype = PT_NONE
    c.tensors[c.nin] = NULL
    c.argument[c.nin] = argument
    c.nin += 1
    return True


cdef inline bint read_operands(Call *c, object x, int argument, PyObject **lead) noexcept:
    """A sequence of tensors. False: it is not plain yet."""
    cdef Tensor t
    cdef int j
    if type(x) is not tuple or c.room == NULL and PyTuple_GET_SIZE(x) + c.nin > INLINE_TENSORS:
        return False
    for j in range(<int>PyTuple_GET_SIZE(x)):
        item = <object>PyTuple_GET_ITEM(x, j)
        if not isinstance(item, Tensor):
            return False
        t = <Tensor>item
        add_tensor(c, t, argument)
        if c.dt < 0:
            c.dt = t.dt
        elif c.dt != t.dt:
            return False
        if lead[0] == NULL:
            lead[0] = <PyObject *>item
    return True


cdef int read_normal(Call *c, pt_param *p, object x, char letter, int k) except -1:
    """A parameter from arguments that are plain already. 0: a list of tensors, which is not a parameter."""
    cdef int j
    if letter == PT_ARG_OBJ and isinstance(x, tuple) and x and isinstance(x[0], Tensor):
        for item in <tuple>x:
            add_tensor(c, <Tensor?>item, NO_ARGUMENT)
        return 0
    if letter == PT_ARG_OBJ and isinstance(x, device):
        c.column, c.number = (<device>x).column, (<device>x).number
    fill_param(c, p, x, letter, k)
    if letter in (PT_ARG_DIMS, PT_ARG_DIM_LIST):
        for j in range(p.count):
            c.dims |= <uint64_t>1 << p.list[j]
    elif letter in (PT_ARG_DIM, PT_ARG_OPT_DIM) and p.kind == PT_PARAM_INT:
        c.dims = <uint64_t>1 << p.i
    elif letter == PT_ARG_BOOL:
        c.keepdim = p.i != 0
    return 1


cdef inline bint read_param(Call *c, pt_param *p, object x, char letter, int k, PyObject *lead) noexcept:
    """A parameter as the user gave it. False: it is not plain yet."""
    cdef int overflow = 0
    if letter in (PT_ARG_DIMS, PT_ARG_DIM_LIST):
        if not read_dims(c, p, x, (<Tensor>lead).rank):
            return False
        c.plain[c.nparams] = NULL
    elif x is None and letter in (PT_ARG_OPT_DIM, PT_ARG_OPT_FLOAT, PT_ARG_OPT_INT, PT_ARG_OBJ):
        pass
    elif letter in (PT_ARG_DIM, PT_ARG_OPT_DIM, PT_ARG_NEW_DIM):
        if not read_dim(x, (<Tensor>lead).rank + (letter == PT_ARG_NEW_DIM), &p.i):
            return False
        p.kind, p.d = PT_PARAM_INT, <double>p.i
        c.dims = <uint64_t>1 << p.i
        c.plain[c.nparams] = NULL
    elif letter == PT_ARG_BOOL:
        if x is not True and x is not False:
            return False
        c.keepdim = x is True
        p.kind, p.i, p.d = PT_PARAM_INT, c.keepdim, c.keepdim
    elif letter in (PT_ARG_SIZES, PT_ARG_INTS):
        return read_ints(c, p, x, letter)
    elif letter == PT_ARG_WORD:
        return read_word(c, p, x, k)
    elif type(x) is float and letter in (PT_ARG_FLOAT, PT_ARG_SCALAR, PT_ARG_OPT_FLOAT):
        p.kind, p.d = PT_PARAM_FLOAT, <double>x
        p.i = <int64_t>p.d if -9e18 < p.d < 9e18 else 0
    elif PyLong_CheckExact(x) and letter in (PT_ARG_INT, PT_ARG_SCALAR, PT_ARG_OPT_INT):
        p.i = PyLong_AsLongLongAndOverflow(x, &overflow)
        if overflow:
            return False
        p.kind, p.d = PT_PARAM_INT, <double>p.i
    elif letter == PT_ARG_DTYPE:
        if x is not None:
            if c.o.promote == PT_PROMOTE_DTYPE or type(x) is not dtype:
                return False
            p.kind, p.i = PT_PARAM_INT, (<dtype>x).code
            p.d = <double>p.i
    elif letter == PT_ARG_OBJ and lead == NULL:       # a device, or a generator of random numbers
        if type(x) is device:
            c.column, c.number = (<device>x).column, (<device>x).number
    else:
        return False
    return True


cdef int read(Call *c) except -1:
    """1: everything is read. 0: an argument is not plain yet, or the call as a whole is not (see ``plain``)."""
    cdef const char *letters = c.o.letters
    cdef pt_param *p
    cdef PyObject *lead = NULL
    cdef int k, argument = 0
    cdef char letter
    c.key = pt_tls.mode
    c.nin = c.nparams = c.nints = 0
    c.dt = -1
    c.dims = 0
    c.keepdim = False
    c.lead = NULL
    if not c.normal:
        c.column, c.number = DEVICE_CPU, -1
    for k in range(c.n):
        x = <object>c.args[k]
        letter = letters[k]
        if letter in (PT_ARG_TENSOR, PT_ARG_INDEX, PT_ARG_OPT_TENSOR, PT_ARG_OPT_INDEX):
            if not read_operand(c, x, letter, argument, &lead):
                return 0
            argument += 1
            continue
        if letter == PT_ARG_TENSORS:
            if not read_operands(c, x, argument, &lead):
                return 0
            argument += 1
            continue
        p = &c.params[c.nparams]
        p[0] = no_param
        c.plain[c.nparams] = <PyObject *>x
        if c.normal:
            c.nparams += read_normal(c, p, x, letter, k)
        elif (lead == NULL and c.o.ntensors) or not read_param(c, p, x, letter, k, lead):
            return 0
        else:
            c.nparams += 1
    c.lead = lead
    if lead != NULL:
        c.column, c.number = (<Tensor>lead).storage.device, (<Tensor>lead).storage.device_index
    return c.normal or plain(c)


cdef bint read_numbers(Call *c, tuple numbers) noexcept:
    """Reads the numbers that the arguments of a call without tensors begin with. False: one is not plain."""
    cdef int k
    for k in range(<int>PyTuple_GET_SIZE(numbers)):
        c.params[k] = no_param
        if not read_param(c, &c.params[k], <object>PyTuple_GET_ITEM(numbers, k), c.o.letters[k], k, NULL):
            return False
        c.nparams += 1
    return True


cdef bint is_cast(Call *c) noexcept:
    """Whether autocast would leave all arguments as they are: most were cast when they were made."""
    cdef int rule = c.o.autocast[c.column != DEVICE_CPU], k, dt
    if not pt_tls.autocast >> c.column & 1 or rule == PT_AUTOCAST_NONE:
        return True
    if rule != PT_AUTOCAST_LOW and rule != PT_AUTOCAST_HIGH:
        return False
    dt = PT_FLOAT32 if rule == PT_AUTOCAST_HIGH else lower(c.column)
    for k in range(c.nin):
        if pt_is(c.inputs[k].dtype, PT_KIND_FLOATING) and c.inputs[k].dtype not in (dt, PT_FLOAT64):
            return False
    return True


cdef bint plain(Call *c) noexcept:
    """Whether the call is not offered, nothing is promoted, and all tensors are on one device."""
    cdef int k
    cdef uint32_t slow = c.key & c.o.slow & SLOW_ON_ANY_DEVICE
    if c.lead == NULL:
        return c.o.ntensors == 0 and not c.key & c.o.slow and c.column == DEVICE_CPU
    if slow and not (slow == PT_MODE_AUTOCAST and is_cast(c)) or (c.dt >= 0 and not c.o.types & (1 << c.dt)):
        return False
    if c.o.promote == PT_PROMOTE_FLOAT and c.dt >= 0 and CATEGORY[c.dt] < 2:
        return False
    if c.key & PT_NON_CPU:
        if c.column != DEVICE_CPU and BACKENDS[c.column] == NULL:
            return False
        for k in range(c.nin):
            if c.inputs[k].dtype != PT_NONE and (c.inputs[k].device != c.column or (
                    c.column != DEVICE_CPU and c.inputs[k].device_index != c.number)):
                return False
    return True


cdef bint read_dims(Call *c, pt_param *p, object x, int rank) noexcept:
    """One dim, several dims, or all."""
    cdef int64_t *dims = c.ints + c.nints
    cdef int j, n = 0
    if rank + c.nints > INLINE_INTS:
        return False
    if x is None:
        n = rank
        for j in range(n):
            dims[j] = j
        c.dims = (<uint64_t>1 << n) - 1 if n < 64 else <uint64_t>0xFFFFFFFFFFFFFFFF
    elif PyLong_CheckExact(x):
        if not read_dim(x, rank, dims):
            return False
        n = 1
        c.dims = <uint64_t>1 << dims[0]
    elif type(x) is tuple and 0 < PyTuple_GET_SIZE(x) <= rank:
        for j in range(<int>PyTuple_GET_SIZE(x)):
            if not read_dim(<object>PyTuple_GET_ITEM(x, j), rank, &dims[n]):
                return False
            if c.dims & (<uint64_t>1 << dims[n]):
                return False
            c.dims |= <uint64_t>1 << dims[n]
            n += 1
    else:
        return False
    p.kind, p.count, p.list = PT_PARAM_INTS, n, dims
    c.nints += n
    return True


# -- what is not plain ---------------------------------------------------------------------------

cdef tuple read_plain(Call *c, uint32_t key):
    """Makes the arguments plain and reads them. The call borrows from the returned tuple; whoever began the
    call frees ``c.room``."""
    cdef tuple args = plain_arguments(c, tuple([<object>c.args[k] for k in range(c.n)]), key)
    c.args = PySequence_Fast_ITEMS(args)
    c.normal = True
    make_room(c)
    if not read(c):
        raise RuntimeError(f"{c.o.name.decode()}: another thread has changed an argument meanwhile")
    return args


cdef tuple plain_arguments(Call *c, tuple args, uint32_t key):
    """The arguments as ``read`` takes them: checked, on one device, promoted."""
    cdef PyObject *found = NULL
    args = normalised(c.op, args, &found, c.taken)
    c.column, c.number = DEVICE_CPU, -1
    if found != NULL:
        if key & PT_NON_CPU:
            check_one_device(c.op, args)
        args = promoted(c.op, args)
    return args


cdef Tensor as_tensor_like(object value, Tensor like):
    """A Tensor from a number, ndarray or sequence in the place of a tensor."""
    if isinstance(value, Tensor):
        return <Tensor>value
    return <Tensor>table.convert(value, like)


cdef int wrap_arg(object value, int ndim, int op, int k) except -1:
    cdef bytes name = arg_name(op, k).encode()
    return wrap_dim(read_index(value, info(op).name, name), ndim, info(op).name, name)


cdef tuple normalised(int op, tuple args, PyObject **first, bint taken):
    """Checks each argument by its letter; tensors become Tensors, dims non-negative. Symbolic numbers become numbers,
    which is a guard, unless the call is ``taken``."""
    cdef const char *letters = info(op).letters
    cdef int k, n = len(args), ndim
    cdef bint several
    cdef list result = list(args)
    cdef int64_t[64] sizes
    cdef object value
    cdef Tensor lead = None
    for k in range(n):
        value = result[k]
        letter = letters[k]
        several = letter in (PT_ARG_SIZES, PT_ARG_INTS)
        if taken and (several or is_number(letter)) and (
                is_symbolic_number(value) or isinstance(value, (tuple, list)) and any_symbolic(value)):
            result[k] = tuple(value) if isinstance(value, (tuple, list)) else (value,) if several else value
            continue
        if letter in (PT_ARG_TENSOR, PT_ARG_INDEX):
            if not isinstance(value, Tensor):
                if lead is None and letter == PT_ARG_TENSOR or value is None:
                    raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be a "
                                    f"Tensor, got {type(value).__name__}")
                value = result[k] = as_tensor_like(value, lead if letter == PT_ARG_TENSOR else None)
            if letter == PT_ARG_INDEX and (<Tensor>value).dt != PT_INT64 and becomes_index(info(op), <Tensor>value):
                result[k] = value.to(dtype_of(PT_INT64))
            if lead is None:
                lead = <Tensor>value
        elif letter in (PT_ARG_OPT_TENSOR, PT_ARG_OPT_INDEX):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be a Tensor "
                                f"or None, got {type(value).__name__}")
        elif letter == PT_ARG_TENSORS:
            result[k] = value = tuple(value)
            for item in value:
                if not isinstance(item, Tensor):
                    raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must hold "
                                    f"Tensors, got {type(item).__name__}")
            if not value:
                from ptcore._errors import ShapeError
                raise ShapeError(f"{info(op).name.decode()}: {arg_name(op, k)} must not be empty")
            lead = <Tensor>value[0]
            for item in value:              # PyTorch's legacy empty 1-d tensor is skipped
                if (<Tensor>item).rank != 1 or (<Tensor>item).count:
                    lead = <Tensor>item
                    break
        elif letter == PT_ARG_DIM:
            result[k] = wrap_arg(value, lead.rank, op, k)
        elif letter == PT_ARG_OPT_DIM:
            if value is not None:
                result[k] = wrap_arg(value, lead.rank, op, k)
        elif letter == PT_ARG_NEW_DIM:
            result[k] = wrap_arg(value, lead.rank + 1, op, k)
        elif letter in (PT_ARG_DIMS, PT_ARG_DIM_LIST):
            result[k] = _dims(value, lead.rank, op, k, letter == PT_ARG_DIM_LIST)
        elif is_number(letter):
            if value is not None or letter not in (PT_ARG_OPT_FLOAT, PT_ARG_OPT_INT):
                result[k] = _plain(value, letter, op, k)
        elif letter == PT_ARG_SIZES:
            ndim = read_sizes(value, sizes, info(op).name, arg_name(op, k).encode())
            result[k] = sizes_tuple(ndim, sizes)
        elif letter == PT_ARG_INTS:
            value = _arguments.integers(info(op).name.decode(), arg_name(op, k), value)
            result[k] = tuple([concrete(x) for x in value])
        elif letter == PT_ARG_DTYPE:
            if value is not None:
                result[k] = dtype_of(as_code(value, info(op).name, arg_name(op, k).encode()))
    first[0] = <PyObject *>lead if lead is not None else NULL
    return tuple(result)


cdef object _plain(object value, char letter, int op, int k):
    """A number of the exact type and range of the letter; kernels rely on both."""
    value = concrete(value)
    cdef bint fits = type(value) is int and -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF
    if letter == PT_ARG_SCALAR:
        if fits or type(value) is float:
            return value
        return _arguments.number(info(op).name.decode(), arg_name(op, k), value)
    if letter in (PT_ARG_INT, PT_ARG_OPT_INT):
        return value if fits else _arguments.integer(info(op).name.decode(), arg_name(op, k), value)
    if letter == PT_ARG_BOOL:
        if value is True or value is False:
            return value
        return _arguments.flag(info(op).name.decode(), arg_name(op, k), value)
    if type(value) is float:
        return value
    return _arguments.real(info(op).name.decode(), arg_name(op, k), value)


cdef tuple _dims(object value, int ndim, int op, int k, bint listed):
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
        return () if listed else tuple(range(ndim))
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


cdef int common_device(int op, Tensor t, int *place, bint scalars) except -1:
    """Updates ``place``, the (column, index, whether it is a scalar's) of the tensors before t, with t. Its column is
    -1 before the first tensor. With ``scalars``, a scalar on the CPU may stand beside tensors on another device."""
    cdef int column = t.storage.device, number = t.storage.device_index
    cdef bint scalar
    if t.flags & PT_INTERPOSED:         # a stand-in, whose value may be on another device
        column, number = (<device>t.device).column, (<device>t.device).number
    scalar = scalars and t.rank == 0 and column == DEVICE_CPU
    if place[0] < 0 or (place[2] and not scalar):
        place[0], place[1], place[2] = column, number, scalar
    elif not scalar and (column != place[0] or (number != place[1] and column != DEVICE_CPU)):
        from ptcore._errors import DeviceError
        raise DeviceError(f"{info(op).name.decode()}: all tensors must be on one device, got "
                          f"{device_of(place[0], place[1])} and {device_of(column, number)}")
    return 0


cdef int check_one_device(int op, tuple args) except -1:
    cdef int[3] place = [-1, -1, 0]
    for x in args:
        if isinstance(x, Tensor):
            common_device(op, <Tensor>x, place, False)
        elif isinstance(x, tuple):
            for item in x:
                if isinstance(item, Tensor):
                    common_device(op, <Tensor>item, place, False)
    return 0


cdef tuple promoted(int op, tuple args):
    """Casts the promoting tensors to the compute dtype and checks that dtype against ``types``."""
    cdef pt_opinfo *o = info(op)
    cdef const char *letters = o.letters
    cdef int k, dt = -1
    cdef Tensor t
    cdef bint mixed = False
    cdef list changed
    for k in range(len(args)):
        if letters[k] == PT_ARG_TENSOR or (letters[k] == PT_ARG_OPT_TENSOR and args[k] is not None):
            t = <Tensor>args[k]
            if dt >= 0 and t.dt != dt:
                mixed = True
                if o.promote == PT_PROMOTE_NONE:
                    from ptcore._errors import DTypeError
                    raise DTypeError(
                        f"{o.name.decode()}: {arg_name(op, k)} must have dtype "
                        f"{dtype_of(dt).name}, got {dtype_of(t.dt).name}")
                dt = promote(dt, t.dt)
            elif dt < 0:
                dt = t.dt
        elif letters[k] == PT_ARG_TENSORS:
            for item in args[k]:
                t = <Tensor>item
                if dt >= 0 and t.dt != dt:
                    mixed = True
                    dt = promote(dt, t.dt)
                elif dt < 0:
                    dt = t.dt
    if dt < 0:
        return args
    if o.promote == PT_PROMOTE_FLOAT and CATEGORY[dt] < 2:
        dt = default_float()
        mixed = True
    elif o.promote == PT_PROMOTE_DTYPE:
        for k in range(len(args)):
            if letters[k] == PT_ARG_DTYPE and args[k] is not None and (<dtype>args[k]).code != dt:
                dt = (<dtype>args[k]).code
                mixed = True
    if not o.types & (1 << dt):
        raise unsupported(o, dt, "")
    if not mixed:
        return args
    changed = list(args)
    for k in range(len(args)):
        if letters[k] == PT_ARG_TENSOR or (letters[k] == PT_ARG_OPT_TENSOR and args[k] is not None):
            changed[k] = cast(<Tensor>args[k], dt)
        elif letters[k] == PT_ARG_TENSORS:
            changed[k] = tuple([cast(<Tensor>item, dt) for item in args[k]])
    return tuple(changed)


cdef object unsupported(pt_opinfo *o, int dt, str hint):
    """The error for a dtype that an op does not take."""
    from ptcore._errors import UnsupportedDTypeError
    name = o.name.decode()
    allowed = ", ".join([dtype_of(k).name for k in range(N_DTYPES) if o.types & (1 << k)])
    why = f'"{name}" not implemented for \'{word_of(dt)}\': ' if pt_is(dt, PT_KIND_STORED) else ""
    return UnsupportedDTypeError(f"{name}: {why}dtype must be one of {allowed}, got {dtype_of(dt).name}{hint}")


cdef int fill_param(Call *c, pt_param *p, object x, char letter, int k) except -1:
    cdef int op = c.op
    if x is None:
        return 0
    if c.taken:
        x = hinted(x)
    if letter == PT_ARG_DTYPE:
        p.kind, p.i = PT_PARAM_INT, (<dtype>x).code
        p.d = <double>p.i
    elif letter == PT_ARG_WORD:
        names = choices_of(op, k)
        if x not in names:
            known = ', '.join([repr(n) for n in names])
            raise ValueError(f"{info(op).name.decode()}: {arg_name(op, k)} must be one of {known}, got {x!r}")
        p.kind, p.i = PT_PARAM_INT, names.index(x)
    elif isinstance(x, tuple):
        p.kind, p.count, p.list = PT_PARAM_INTS, <int>len(x), c.ints + c.nints
        for item in <tuple>x:
            c.ints[c.nints] = item
            c.nints += 1
    elif isinstance(x, (bool, int)):
        p.kind = PT_PARAM_INT
        p.d = <double>x
        p.i = <int64_t><uint64_t>x if x > 0x7FFFFFFFFFFFFFFF else <int64_t>x     # at most 2**64 - 1
    elif isinstance(x, float):
        p.kind, p.d = PT_PARAM_FLOAT, x
        p.i = <int64_t>p.d if -9e18 < p.d < 9e18 else 0
    elif isinstance(x, complex):
        if letter == PT_ARG_SCALAR and x.imag and c.dt >= 0 and CATEGORY[c.dt] < 3:     # a kernel would drop a part
            raise RuntimeError(f"{info(op).name.decode()}: {arg_name(op, k)}: the complex number {x} cannot be "
                               f"converted to {dtype_of(c.dt).name}")
        p.kind, p.d, p.im = PT_PARAM_COMPLEX, x.real, x.imag
    return 0


cdef bint switch(str op, str name, object value) except -1:
    """A setting that is on or off."""
    if value is True or value is False:
        return value is True
    return _arguments.flag(op, name, value)
