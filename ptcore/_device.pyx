"""Device objects: ``device("cpu")``, ``device("cuda", 0)``, ``device("meta")``.

A device type is a column of the kernel table. The CPU, CUDA and meta columns are fixed;
``register_backend`` gives a free one to a backend that is registered at run time.
"""
import threading

cimport cython
from libc.string cimport memcpy

from ptcore._types cimport *

cdef dict _columns = {"cpu": DEVICE_CPU, "cuda": DEVICE_CUDA, "meta": DEVICE_META}
cdef dict _names = {DEVICE_CPU: "cpu", DEVICE_CUDA: "cuda", DEVICE_META: "meta"}
cdef dict _interned = {}
# column -> callable(index) that raises if that device cannot be used
device_check = {}


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class device:
    """Where a tensor's memory lives.

    Parameters
    ----------
    type : str or device
        ``"cpu"``, ``"cuda"``, ``"meta"``, with an index as in ``"cuda:0"``.
    index : int, optional

    Raises
    ------
    RuntimeError
        If the device type is unknown or the string malformed.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.device("cuda:1").index
    1
    """

    def __cinit__(self, type, index=None):
        text = type
        if isinstance(type, device):
            if index is not None:
                raise TypeError(f"device: a device and an index exclude each other, got {str(type)!r} and {index!r}")
            self.type, self.column, self.number = (
                (<device>type).type, (<device>type).column, (<device>type).number)
            return
        if isinstance(type, int) and not isinstance(type, bool) and index is None:
            self.type, self.column, self.number = "cuda", DEVICE_CUDA, index_of(type)
            return
        if not isinstance(type, str):
            raise TypeError(f"device: type must be str, got {_type_name(type)}")
        kind, colon, number = text.partition(":")
        if kind not in _columns:
            raise RuntimeError(f"device: type must be one of {', '.join(sorted(_columns))}, "
                               f"got {text!r}")
        self.type = kind
        self.column = _columns[kind]
        self.number = -1
        if colon:
            if not (number.isascii() and number.isdecimal()) or (number[0] == "0" and number != "0"):
                raise RuntimeError(f"device: index must be a number, got {text!r}")
            if index is not None:
                raise RuntimeError(f"device: index given twice, in {text!r} and as {index!r}")
            index = int(number)
        if index is not None:
            self.number = index_of(index)

    @property
    def index(self):
        return None if self.number < 0 else self.number

    def __repr__(self):
        if self.number < 0:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.number})"

    def __str__(self):
        return self.type if self.number < 0 else f"{self.type}:{self.number}"

    def __eq__(self, other):
        if isinstance(other, device):
            return (self.column == (<device>other).column
                    and self.number == (<device>other).number)
        return NotImplemented               # a str is not equal to a device, as in PyTorch

    def __hash__(self):
        return hash((self.column, self.number))

    def __reduce__(self):
        return device, (str(self),)

    def __enter__(self):
        defaults().stack.append(self)
        pt_tls.device_set = 1
        return self

    def __exit__(self, *exc):
        cdef Defaults d = defaults()
        if not d.stack:
            raise RuntimeError(f"device: left {str(self)!r} without having entered it on this thread")
        d.stack.pop()
        pt_tls.device_set = d.chosen is not None or len(d.stack) > 0


cdef int index_of(object index) except? -1:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"device: index must be int, got {_type_name(index)}")
    index = index.__index__()
    if index < 0 or index > 127:
        raise RuntimeError(f"device: index must be in [0, 127], got {index}")
    return index


cdef str _type_name(object value):
    return type(value).__name__


cdef class Defaults:
    """A thread's default device: the innermost `with device(...)`, else what
    set_default_device chose. pt_tls.device_set is nonzero exactly where one of them is."""
    cdef list stack
    cdef device chosen


_local = threading.local()


cdef Defaults defaults():
    cdef Defaults d
    try:
        return <Defaults>_local.defaults
    except AttributeError:
        d = Defaults.__new__(Defaults)
        d.stack = []
        _local.defaults = d
        return d


CPU = device("cpu")
META = device("meta")


cdef device device_of(int column, int number):
    if column == DEVICE_CPU:
        return CPU
    if column == DEVICE_META:
        return META
    key = (column, number)
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = device(_names[column], None if number < 0 else number)
    return <device>found


cdef device current_device():
    cdef Defaults d
    if not pt_tls.device_set:
        return CPU
    d = defaults()
    return <device>d.stack[len(d.stack) - 1] if d.stack else d.chosen


cdef device as_device(object value, const char *op):
    """The device that ``value`` means (None: the default one), checked to be usable."""
    cdef device d
    if value is None:
        d = current_device()
    elif type(value) is device:
        d = <device>value
    elif not isinstance(value, (str, int)) or isinstance(value, bool):
        raise TypeError(f"{op.decode()}: device must be a device, str or int, got {_type_name(value)}")
    else:
        try:
            d = device(value)
        except (RuntimeError, OverflowError) as e:
            raise type(e)(f"{op.decode()}: {e}") from None
    if d.column == DEVICE_CPU or d.column == DEVICE_META:
        return CPU if d.column == DEVICE_CPU else META
    check = device_check.get(d.column)
    if check is None:
        raise RuntimeError(f"{op.decode()}: device {str(d)!r} is not available in this build "
                           f"or on this machine")
    try:
        number = check(d.number)
    except RuntimeError as e:
        raise type(e)(f"{op.decode()}: device {str(d)!r} is not available: {e}") from None
    return device_of(d.column, number)


def checked_device(value, str op):
    """The device that an argument names; error messages begin with the op's name."""
    return as_device(value, op.encode())


def column_of(str name):
    """The column of a device type in the kernel table."""
    if name not in _columns:
        raise RuntimeError(f"device: type must be one of {', '.join(sorted(_columns))}, got {name!r}")
    return _columns[name]


def set_check(str name, check):
    """``check(index)`` for a fixed type of device whose backend is loaded at its first use; see register_backend."""
    device_check[_columns[name]] = check


# The size of a pt_backend in the first version of the ABI. A backend may lack only the members added after it.
cdef enum:
    SIZE_AT_FIRST = 8 + 7 * sizeof(void *)
cdef pt_backend[8] _backends


def register_backend(str name, size_t backend, check=None):
    """Gives a type of device a column of the kernel table and its backend.

    Parameters
    ----------
    name : str
        As in ``device("name:0")``.
    backend : int
        The address of a ``pt_backend`` (``ptcore/backend.h``), which is copied.
    check : callable, optional
        ``check(index)`` (-1: none given) returns the index to use or raises RuntimeError for a
        device that is not there; if absent the device has the index 0 alone.

    Returns
    -------
    column : int

    Raises
    ------
    ValueError
        If the name is the CPU's or meta's, or no identifier, or no address is given, or a function
        is missing.
    RuntimeError
        If all columns are taken, or the backend was compiled against another ABI (``PT_ABI`` in
        ``ptcore/kernel.h``).
    """
    if name in ("cpu", "meta") or not name.isidentifier():
        raise ValueError(f"register_backend: name must be a new identifier, got {name!r}")
    cdef const pt_backend *given
    if backend == 0:
        raise ValueError("register_backend: backend must be the address of a pt_backend, got 0")
    given = <const pt_backend *>backend
    if given.abi != PT_ABI:
        raise RuntimeError(f"register_backend: {name!r} was compiled against ABI {given.abi} of ptcore, and the "
                           f"ptcore that runs has ABI {PT_ABI}: build it again")
    if given.size < SIZE_AT_FIRST:
        raise RuntimeError(f"register_backend: {name!r} must have the size of a pt_backend, at least "
                           f"{SIZE_AT_FIRST}, got {given.size}")
    if (given.allocate == NULL or given.release == NULL or given.copy == NULL
            or given.elementwise == NULL):
        raise ValueError(f"register_backend: {name!r} must have the functions allocate, release, copy "
                         "and elementwise")
    column = _columns.get(name)
    if column is None:
        column = DEVICE_FREE + len(_columns) - 3
        if column >= N_DEVICES:
            raise RuntimeError(f"register_backend: no free column for {name!r}")
        _columns[name] = column
        _names[column] = name
    if check is None:
        def check(index):
            if index > 0:
                raise RuntimeError(f"device: {name} has the index 0 alone, got {index}")
            return 0
    device_check[column] = check
    # A copy: members that an older backend does not have are NULL in it.
    memcpy(&_backends[<int>column], given, min(given.size, <uint32_t>sizeof(pt_backend)))
    BACKENDS[<int>column] = &_backends[<int>column]
    return column


cdef str backend_error(int column):
    """The backend's description of this thread's last failure, as the end of a message."""
    cdef const char *text = NULL
    if BACKENDS[column].error != NULL:
        text = BACKENDS[column].error()
    return "" if text == NULL else f": {text.decode(errors='replace')}"


cdef int memory_failure(int column, int number) noexcept:
    """The status of a call that got no memory on a device. It is PT_RUNTIME_ERROR if the device has failed: a failed
    device allocates no memory either."""
    cdef backend_pointer backend = BACKENDS[column]
    if backend != NULL and backend.synchronize != NULL and backend.synchronize(number):
        return PT_RUNTIME_ERROR
    return PT_MEMORY_ERROR


def set_default_device(d):
    """Makes new tensors of this thread on ``d`` unless a device is named; None: the CPU again.

    An enclosing ``with device(...)`` has precedence.
    """
    cdef Defaults mine = defaults()
    mine.chosen = None if d is None else <device>as_device(d, b"set_default_device")
    pt_tls.device_set = mine.chosen is not None or len(mine.stack) > 0


def get_default_device():
    """The device that new tensors of this thread are made on."""
    return current_device()


# -- streams -------------------------------------------------------------------------------------

streams_used = False


cpdef bint are_streams_used() noexcept:
    return streams_used


cdef object stream_key(int column, int index):
    """(column, index, address) of the stream of this thread's work on a device; None if the device has no streams."""
    cdef backend_pointer backend = BACKENDS[column]
    if backend == NULL or backend.set_stream == NULL or backend.stream == NULL:
        return None
    return (column, index, <size_t>backend.stream(index))


def current_stream(int column, int index):
    """The key of this thread's stream on a device: (column, index, address), or None; see ``set_stream``."""
    return stream_key(column, index) if 0 <= column < N_DEVICES else None


def device_of_address(device d not None, size_t address):
    """The number of the device that holds the memory at an address; for address 0, the number of ``d`` itself."""
    cdef int index
    d = as_device(d, b"device_of_address")
    if address == 0 or BACKENDS[d.column] == NULL or BACKENDS[d.column].device_of == NULL:
        return d.number
    index = BACKENDS[d.column].device_of(<void *>address)
    if index < 0:
        raise RuntimeError(f"the address {address:#x} is of no {d.type} device")
    return index


cdef backend_pointer backend_with_streams(str op, int column) except NULL:
    """The backend of a column of the kernel table. RuntimeError if it has no streams."""
    cdef backend_pointer backend = BACKENDS[column] if 0 <= column < N_DEVICES else NULL
    if backend == NULL or backend.set_stream == NULL or backend.wait == NULL:
        raise RuntimeError(f"{op}: column must be that of a device with streams, got {column}")
    return backend


def set_stream(int column, int index, size_t stream):
    """Makes a stream the current stream of this thread on a device; 0 is the default stream."""
    global streams_used
    cdef backend_pointer backend = backend_with_streams("set_stream", column)
    if stream:
        streams_used = True
    if backend.set_stream(index, <void *>stream):
        raise RuntimeError(f"set_stream: {device_of(column, index)}{backend_error(column)}")


def wait_stream(int column, int index, size_t waiting, int other, size_t stream):
    """Work given to ``waiting`` from now on runs after the work that ``stream``, of device ``other``, already has."""
    if backend_with_streams("wait_stream", column).wait(index, <void *>waiting, other, <void *>stream):
        raise RuntimeError(f"wait_stream: {device_of(column, index)}{backend_error(column)}")
