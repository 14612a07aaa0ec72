"""Autocast: arguments of ops are cast by the rule of their row, before all other steps of a call.

The state belongs to the thread: a bit for each device type with autocast on, the lower precision of each, and the
casts of parameters, which are kept until the outermost context ends.
"""
cimport cython
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._device cimport device
from ptcore._device import column_of
from ptcore._dtype cimport CATEGORY, as_code, dtype_of
from ptcore._dtype import dtype as dtype_class
from ptcore._tensor cimport Tensor, version_of
from ptcore._ops.table.ids cimport *
from ptcore._state cimport Mode, interpreter_stack, stacks
from ptcore._ops.call.call cimport lower
from ptcore._ops.call.read cimport cast

cdef int CUDA_COLUMN = column_of("cuda")
cdef object BFLOAT16 = dtype_of(PT_BFLOAT16), FLOAT16 = dtype_of(PT_FLOAT16)

cdef inline int column_seen(Tensor x) except -1:
    """The column of the device of a tensor, or of the value that a stand-in stands for."""
    return (<device>x.device).column if x.flags & PT_INTERPOSED else x.storage.device


cdef inline bint eligible(object x, int column) except -1:
    return (isinstance(x, Tensor) and CATEGORY[(<Tensor>x).dt] == 2 and (<Tensor>x).dt != PT_FLOAT64
            and column_seen(<Tensor>x) == column)


cdef int first_column(PyObject **args, int n) except -2:
    """The device column of the first tensor; -1 if there is no tensor."""
    cdef int k
    for k in range(n):
        x = <object>args[k]
        if isinstance(x, Tensor):
            return column_seen(<Tensor>x)
        if isinstance(x, (list, tuple)):
            for item in x:
                if isinstance(item, Tensor):
                    return column_seen(<Tensor>item)
    return -1


cdef Tensor cast_of(Tensor x, int dt):
    """x in another dtype. The cast of a parameter is kept for the next use."""
    cdef uint64_t version
    cdef dict own
    if x.dt == dt:
        return x
    if (pt_tls.autocast_uncached or x.dt != PT_FLOAT32 or not x.flags & PT_REQUIRES_GRAD or x.node is not None
            or (x.flags | pt_tls.mode) & (PT_VIEW | PT_TANGENT) or not pt_tls.autocast_depth):
        return cast(x, dt)
    top = None
    if pt_tls.mode & PT_INTERPOSED and interpreter_stack():
        top = interpreter_stack()[-1]           # its results are for this interpreter alone
    # id of a parameter -> (parameter, its version, whether history is kept, the interpreter on top, its cast)
    own = stacks().casts
    version = version_of(x)
    found = own.get(id(x))
    if (found is not None and found[1] == version and found[2] == pt_tls.grad_enabled and found[3] is top
            and (<Tensor>found[4]).dt == dt):
        return <Tensor>found[4]
    made = cast(x, dt)
    own[id(x)] = (x, version, pt_tls.grad_enabled != 0, top, made)
    return made


cdef tuple cast_arguments(int op, PyObject **args, int n):
    """The arguments in the dtypes that autocast requires; None if the op has no rule for the device."""
    cdef pt_opinfo *o = info(op)
    cdef int column = first_column(args, n), rule, dt, k
    cdef list made
    if column < 0 or not pt_tls.autocast >> column & 1:
        return None
    rule = o.autocast[column != DEVICE_CPU]
    if rule == PT_AUTOCAST_NONE:
        return None
    if rule == PT_AUTOCAST_REFUSED:
        raise RuntimeError(f"{o.name.decode()}: it is unsafe to autocast. Many models use a sigmoid layer right before "
                           f"it; in this case, combine the two layers using {o.name.decode()}_with_logits, which is "
                           "safe to autocast")
    if rule == PT_AUTOCAST_OFF:
        return tuple([<object>args[k] for k in range(n)])
    dt = PT_FLOAT32 if rule == PT_AUTOCAST_HIGH else lower(column)
    if rule == PT_AUTOCAST_WIDEST:
        for k in range(n):
            x = <object>args[k]
            for item in x if isinstance(x, (list, tuple)) else (x,):
                if isinstance(item, Tensor) and CATEGORY[(<Tensor>item).dt] == 2:
                    if (<Tensor>item).dt == PT_FLOAT64:
                        return tuple([<object>args[k] for k in range(n)])
                    if (<Tensor>item).dt != dt and eligible(item, column):
                        dt = PT_FLOAT32
    made = []
    for k in range(n):
        x = <object>args[k]
        if eligible(x, column):
            made.append(cast_of(<Tensor>x, dt))
        elif isinstance(x, (list, tuple)) and has_tensors(x):
            made.append([cast_of(<Tensor>item, dt) if eligible(item, column) else item for item in x])
        else:
            made.append(x)
    return tuple(made)


cdef inline bint has_tensors(object x):
    return len(x) > 0 and any([isinstance(item, Tensor) for item in x])


def without(function, *args):
    """Calls ``function`` with autocast off."""
    if not pt_tls.mode & PT_MODE_AUTOCAST:
        return function(*args)
    pause()
    try:
        return function(*args)
    finally:
        resume()


# -- the state of a thread -----------------------------------------------------------------------------

def is_enabled(device_type):
    """Whether casts are made for tensors of a device type."""
    return pt_tls.autocast >> column_of(device_type) & 1 != 0


def is_any_enabled():
    return pt_tls.autocast != 0


def set_enabled(device_type, bint on):
    """Turns casts for a device type on or off in this thread."""
    set_column(column_of(device_type), on)


cdef void set_column(int column, bint on) noexcept:
    global pt_modes_seen
    if on:
        pt_tls.autocast |= 1 << column
        pt_modes_seen |= PT_MODE_AUTOCAST
    else:
        pt_tls.autocast &= ~(1 << column)
    if pt_tls.autocast:
        pt_tls.mode |= PT_MODE_AUTOCAST
    else:
        pt_tls.mode &= ~<uint32_t>PT_MODE_AUTOCAST


def get_dtype(device_type):
    """The lower precision of a device type."""
    return dtype_of(lower(column_of(device_type)))


def set_dtype(device_type, dtype):
    """Sets the lower precision of a device type."""
    pt_tls.autocast_dtype[column_of(device_type)] = as_code(dtype, b"set_autocast_dtype", b"dtype")


def is_cache_enabled():
    """Whether casts of parameters are kept within a context."""
    return not pt_tls.autocast_uncached


def set_cache_enabled(bint on):
    """Says whether casts of parameters are kept."""
    pt_tls.autocast_uncached = not on


cpdef clear_cache():
    """Forgets the casts of parameters that this thread has kept."""
    cdef dict own = stacks().casts
    if own:
        own.clear()


@cython.binding(False)                  # so that methods check their self
cdef class Context(Mode):
    """Context(device_type, dtype=None, enabled=True, cache_enabled=None)\n--\n
    The implementation of ``amp.autocast``. That class has the checks that are rarely needed: ``_refuse`` raises for a
    device type without autocast, ``_is_possible`` says whether autocast can be on, and warns if not."""
    cdef readonly str device
    cdef readonly object fast_dtype
    cdef readonly bint _enabled, _cache_enabled
    cdef int column

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type == "cpu":
            self.column = DEVICE_CPU
        elif device_type == "cuda":
            self.column = CUDA_COLUMN
        else:
            self._refuse(device_type)
        self.device = device_type
        if dtype is None:
            dtype = dtype_of(lower(self.column))
        elif not isinstance(dtype, dtype_class):
            raise TypeError(f"autocast: dtype must be a dtype or None, got {dtype!r}")
        self.fast_dtype = dtype
        self._enabled = bool(enabled)
        if self._enabled and (self.column != DEVICE_CPU or (dtype is not BFLOAT16 and dtype is not FLOAT16)):
            self._enabled = self._is_possible()
        self._cache_enabled = not pt_tls.autocast_uncached if cache_enabled is None else bool(cache_enabled)

    cdef object given(self):
        return self

    cdef object begin(self):
        cdef int column = self.column, before
        before = (pt_tls.autocast >> column & 1 | pt_tls.autocast_uncached << 1
                  | pt_tls.autocast_dtype[column] << 2)
        pt_tls.autocast_dtype[column] = as_code(self.fast_dtype, b"autocast", b"dtype")
        pt_tls.autocast_uncached = not self._cache_enabled
        pt_tls.autocast_depth += 1
        set_column(column, self._enabled)
        return before

    cdef int end(self, object found) except -1:
        cdef int before = found
        pt_tls.autocast_dtype[self.column] = before >> 2
        pt_tls.autocast_uncached = before >> 1 & 1
        set_column(self.column, before & 1)
        return leave()

    def __reduce__(self):
        return _context, (type(self), self.device, self.fast_dtype, self._enabled, self._cache_enabled)


def _context(cls, *args):
    made = cls.__new__(cls)
    Context.__init__(made, *args)
    return made


cdef int leave() except -1:
    """Leaves one context; after the outermost one the casts are forgotten."""
    pt_tls.autocast_depth -= 1
    if pt_tls.autocast_depth == 0:
        clear_cache()
    return 0


cdef tuple whole():
    return pt_tls.autocast, pt_tls.autocast_uncached, (<char *>pt_tls.autocast_dtype)[:8]


cdef int set_whole(tuple state) except -1:
    cdef int column
    cdef bytes dtypes = state[2]
    for column in range(8):
        pt_tls.autocast_dtype[column] = <uint8_t>dtypes[column]
    pt_tls.autocast_uncached = state[1]
    for column in range(8):
        set_column(column, <int>state[0] >> column & 1)
    return 0


@cython.binding(False)                  # so that methods check their self
cdef class same_autocast(Mode):
    """A context that restores the autocast state at its creation: of another thread, or of an earlier time."""
    cdef tuple state

    def __init__(self):
        self.state = whole()

    cdef object given(self):
        return self

    cdef object begin(self):
        cdef tuple before = whole()
        set_whole(self.state)
        pt_tls.autocast_depth += 1
        return before

    cdef int end(self, object before) except -1:
        set_whole(before)
        return leave()


def increment_nesting():
    """Enters a context; returns how many are entered."""
    pt_tls.autocast_depth += 1
    return pt_tls.autocast_depth


def decrement_nesting():
    """Leaves a context; returns how many are left."""
    pt_tls.autocast_depth -= 1
    return pt_tls.autocast_depth
