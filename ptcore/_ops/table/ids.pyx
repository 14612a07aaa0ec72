"""The op tables: information, kernels, functions, specs and derivatives of each op.

Indexed by op id. Ids of built-in ops are given by the generator; ops registered at run time get
ids above them.
"""
from libc.string cimport memset

import sys

from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer

from ptcore._types cimport *

cdef extern from "ptcore/kernel.h":
    const char *PT_KERNEL_SIGNATURE

cdef extern from "_optable.h":
    const pt_opinfo *pt_builtin_ops
    int PT_N_BUILTIN_OPS

cdef pt_opinfo[MAX_OPS] INFO
cdef pt_kernel[MAX_OPS][8] KERNELS
cdef int _n_ops = 0
FUNCTIONS = [None] * PT_N_BUILTIN_OPS
INPLACE_FUNCTIONS = [None] * PT_N_BUILTIN_OPS
SPECS = [None] * PT_N_BUILTIN_OPS
VJPS = [None] * PT_N_BUILTIN_OPS
cdef dict _id_by_name = {}          # by the rows' own names
cdef set _names = set()             # the op names that messages begin with


cdef void _fill() except *:
    global _n_ops
    cdef int i
    for i in range(PT_N_BUILTIN_OPS):
        INFO[i] = pt_builtin_ops[i]
        set_slow(&INFO[i])
        INFO[i].shape = said_by_python
        _id_by_name[INFO[i].row.decode()] = i
        _names.add(INFO[i].name.decode())
    _n_ops = PT_N_BUILTIN_OPS


cdef int said_by_python(void *call) noexcept:
    """The shape rule of an op without a rule in C."""
    return 0


cdef void set_slow(pt_opinfo *o) noexcept:
    """Only ops with an autocast rule check whether autocast is on."""
    cdef bint casts = o.autocast[0] != PT_AUTOCAST_NONE or o.autocast[1] != PT_AUTOCAST_NONE
    o.slow = PT_SLOW if casts else PT_SLOW & ~PT_MODE_AUTOCAST


_fill()


cdef pt_opinfo *info(int op) noexcept:
    return &INFO[op]


cdef pt_kernel kernel_of(int op, int column) noexcept:
    return KERNELS[op][column]


cdef str arg_name(int op, int k):
    return INFO[op].argnames.decode().split(",")[k]


def family_of(str name):
    """The family of a built-in op by its row's name; KeyError if there is none."""
    cdef int op = _id_by_name[name]
    if op >= PT_N_BUILTIN_OPS:
        raise KeyError(name)
    return INFO[op].family.decode()


def families():
    """The families of the built-in ops, in the order of ids."""
    return list(dict.fromkeys([INFO[i].family.decode() for i in range(PT_N_BUILTIN_OPS)]))


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


def register_kernel(str op, int column, kernel):
    """Enters a kernel for an op and a device.

    Parameters
    ----------
    op : str
    column : int
        The device's column: 0 is the CPU.
    kernel : int, capsule, ctypes function, LowLevelCallable or callable
        A ``pt_kernel`` (include/ptcore/kernel.h) in one of its forms, or a Python callable that
        takes the op's arguments and ``out=``.
    """
    if op not in _id_by_name:
        raise KeyError(f"register_kernel: there is no op {op!r}")
    if not 0 <= column < N_DEVICES:
        raise ValueError(f"register_kernel: column must be in [0, {N_DEVICES - 1}], got {column}")
    key = (_id_by_name[op], column)
    address = check_kernel(op, kernel)
    if address is None:
        _python_kernels[key] = kernel
        KERNELS[key[0]][column] = NULL
    else:
        _python_kernels.pop(key, None)
        KERNELS[key[0]][column] = <pt_kernel><size_t>address
        _kept.append(kernel)


def check_kernel(str op, kernel):
    """The address of a kernel, None for a Python callable; raises for anything else."""
    address = address_of(kernel)
    if address is None and not callable(kernel):
        raise TypeError(f"register_kernel: a kernel of {op!r} must be a callable, an address, a "
                        f"capsule or a LowLevelCallable, got {type(kernel).__name__}")
    return address


cdef object address_of(object kernel):
    """The address that an int, a capsule, a ctypes function or a LowLevelCallable holds, or None."""
    cdef const char *name
    if isinstance(kernel, bool):
        return None
    if isinstance(kernel, int):
        if kernel <= 0:
            raise ValueError(f"register_kernel: an address must be positive, got {kernel}")
        return kernel
    if isinstance(kernel, tuple) and hasattr(kernel, "signature"):      # SciPy's LowLevelCallable
        kernel = kernel.function
    if PyCapsule_CheckExact(kernel):
        name = PyCapsule_GetName(kernel)
        if name == NULL or b"pt_call" not in <bytes>name:
            raise TypeError(f"register_kernel: the capsule must hold an {PT_KERNEL_SIGNATURE.decode()}, got "
                            f"{'no name' if name == NULL else name.decode()}")
        if (<bytes>PT_KERNEL_SIGNATURE)[5:-1] not in <bytes>name:
            its = name.decode().partition("pt_call")[2].strip("_ *)") or "0"
            raise RuntimeError(f"register_kernel: the kernel was compiled against ABI {its} of ptcore, and the ptcore "
                               f"that runs has ABI {PT_ABI}: build it again (its capsule must be named "
                               f"{PT_KERNEL_SIGNATURE.decode()!r}, got {name.decode()!r})")
        return <size_t>PyCapsule_GetPointer(kernel, name)
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None and isinstance(kernel, ctypes._CFuncPtr):
        return ctypes.cast(kernel, ctypes.c_void_p).value
    return None


_python_kernels = {}                # (op, column) -> callable(*args, out=...), of run-time ops


cdef bint read_kernel(int op) except -1:
    """Imports the file that enters the kernel of a row, ``"file:name"``; False if the row names none."""
    cdef bytes name = INFO[op].kernel if INFO[op].kernel != NULL else b""
    if b":" not in name:
        return False
    from importlib import import_module
    import_module(f"ptcore._ops.{INFO[op].family.decode()}.{name.decode().partition(':')[0]}")
    return KERNELS[op][DEVICE_CPU] != NULL


_kept = []                          # the bytes that run-time entries of INFO point to, kept alive


def register_row(str name, str letters, str argnames, str family, int npositional, int nout,
                 int types, int promote, int grad_mask, list saved, autocast=(0, 0), bint custom=False):
    """Adds an op after the built-in ones and returns its id (see table/register.py).

    Parameters
    ----------
    saved : list of (code, need mask)
    custom : bool
        Whether the op has a Python function instead of kernels.
    """
    global _n_ops
    cdef int op = _n_ops, k
    cdef pt_opinfo *o
    if name in _id_by_name:
        raise ValueError(f"register: there is an op {name!r} already")
    if op == MAX_OPS:
        raise RuntimeError(f"register: at most {MAX_OPS} ops are held")
    if len(saved) > PT_MAX_SAVED:
        raise ValueError(f"register: {name!r} saves {len(saved)} values, at most "
                         f"{PT_MAX_SAVED} are held")
    texts = [name.encode(), letters.encode(), argnames.encode(), family.encode()]
    _kept.append(texts)
    o = &INFO[op]
    memset(o, 0, sizeof(pt_opinfo))
    o.name, o.letters, o.argnames, o.family = texts[0], texts[1], texts[2], texts[3]
    o.row, o.words = o.name, b""
    o.shape = said_by_python
    o.kernel = texts[0]
    o.kind = PT_COMPOSITE if custom else PT_STRUCTURED
    o.promote = promote
    o.npositional, o.nout = npositional, nout
    o.ntensors = sum([c in "TOIJL" for c in letters])
    o.lists = letters.count("L")
    o.autocast[0], o.autocast[1] = autocast
    set_slow(o)
    o.differentiable = grad_mask != 0
    o.out_rule = PT_OUT_EXACT
    o.types, o.grad_mask = types, grad_mask
    o.nsaved = len(saved)
    for k in range(len(saved)):
        o.saved[k], o.need[k] = saved[k]
    _n_ops += 1
    _id_by_name[name] = op
    for table_ in (FUNCTIONS, INPLACE_FUNCTIONS, SPECS, VJPS):
        table_.append(None)
    return op


def forget(str name):
    """Removes the name of a run-time op. Its id stays valid for holders of its function."""
    if _id_by_name.get(name, 0) < PT_N_BUILTIN_OPS:
        raise ValueError(f"forget: {name!r} was not registered")
    del _id_by_name[name]


def op_id(str name):
    """The id of an op by its name; KeyError if there is none."""
    return _id_by_name[name]


def op_name(int op):
    """The name of an op by its id."""
    if not 0 <= op < _n_ops:
        raise IndexError(f"op_name: op must be in [0, {_n_ops - 1}], got {op}")
    return INFO[op].row.decode()


def message_name(int op):
    """The name of an op in messages: the function that the user called."""
    return INFO[op].name.decode()


def called_as(error, str op):
    """Replaces an op's name at the start of an error message by ``op``, the function that the user called."""
    cdef str name, rest
    if error.args and type(error.args[0]) is str:
        name, colon, rest = (<str>error.args[0]).partition(": ")
        if colon and name != op and (name in _names or name.rstrip("_") in _names):
            error.args = (f"{op}: {rest}", *error.args[1:])


def n_ops():
    return _n_ops


def function_of(int op, bint inplace=False):
    """The public function of an op, or its in-place form."""
    return INPLACE_FUNCTIONS[op] if inplace else FUNCTIONS[op]


def set_functions(int op, function, inplace):
    FUNCTIONS[op] = function
    INPLACE_FUNCTIONS[op] = inplace


def set_spec(int op, spec):
    SPECS[op] = spec


def spec_of(int op):
    """The shape rule that was set for an op, or None: rows name their rules (``table/rules.py``)."""
    return SPECS[op]


def set_vjp(int op, rule):
    VJPS[op] = rule


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
        from ptcore._errors import OutOfMemoryError
        raise OutOfMemoryError(message)
    if status == PT_LINALG_ERROR:
        from ptcore._errors import LinAlgError
        raise LinAlgError(message)
    raise RuntimeError(message)
