"""dtype objects, the promotion table, finfo and iinfo.

The promotion table is PyTorch's, extended to uint16/32/64 as NumPy extends it inside the
integers: two unsigned give the wider, an unsigned with a signed gives the next wider signed
type, uint64 with a signed integer gives float (the default dtype decides which: float32).
"""

cimport cython
from ptcore._types cimport *
from ptcore._lazy import library

cdef int _default_float = PT_FLOAT32       # of the process, as in PyTorch
cdef dict _by_key = {}
cdef str _package = "ptcore"               # the prefix of printed dtype names

_TABLE = (
    # name, itemsize, other names (PyTorch's), in code order
    ("bool", 1, ()), ("uint8", 1, ()), ("int8", 1, ()), ("uint16", 2, ()), ("int16", 2, ("short",)),
    ("uint32", 4, ()), ("int32", 4, ("int",)), ("uint64", 8, ()), ("int64", 8, ("long",)),
    ("float16", 2, ("half",)), ("bfloat16", 2, ()), ("float32", 4, ("float",)), ("float64", 8, ("double",)),
    ("complex64", 8, ("cfloat",)), ("complex128", 16, ("cdouble",)),
)


def show_as(str package):
    """Sets the package name that dtypes and sizes are printed with: ``torch`` where programs import it by that name."""
    global _package
    _package = package


def shown_as():
    """The package name that dtypes and sizes are printed with."""
    return _package


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class dtype:
    """A tensor's element type: ``ptcore.float32`` and its 14 companions.

    There is one object per type; they compare by identity, hash, pickle and copy as
    themselves. ``numpy.dtype(ptcore.float32)`` works, and wherever a dtype is expected
    NumPy's dtypes, their names, and Python's ``bool``, ``int``, ``float`` and ``complex``
    (int64, float64, complex128) do as well.

    Attributes
    ----------
    name : str
        ``"float32"``; ``str(dtype)`` is ``"ptcore.float32"``.
    kind : str
        NumPy's letter: ``b``, ``i``, ``u``, ``f`` or ``c``.
    itemsize : int
        Bytes an element.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.float32.itemsize, ptcore.float32.is_floating_point
    (4, True)
    """

    def __init__(self):
        raise TypeError("dtype: cannot be created; use ptcore.float32 and its companions")

    def __repr__(self):
        return f"{_package}.{self.name}"

    def __reduce__(self):
        return _from_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self is other

    @property
    def is_floating_point(self):
        return CATEGORY[self.code] == 2

    @property
    def is_complex(self):
        return CATEGORY[self.code] == 3

    @property
    def is_signed(self):
        return self.kind in "ifc"

    @property
    def __numpy_dtype__(self):
        return self._numpy()

    @property
    def dtype(self):
        return self._numpy()

    def _numpy(self):
        if self.code == PT_BFLOAT16:
            ml_dtypes = library("ml_dtypes")
            numpy = library("numpy")
            return numpy.dtype(ml_dtypes.bfloat16)
        numpy = library("numpy")
        return numpy.dtype(self.name)

    def to_real(self):
        """The dtype of the real part: float32 for complex64, itself for a real dtype."""
        return dtype_of(REAL_OF[self.code])

    def to_complex(self):
        """The complex dtype of the same precision: complex64 for float32."""
        return dtype_of(COMPLEX_OF[self.code])


cdef void _fill_tables():
    cdef int i, j
    cdef dtype d
    for i, (name, itemsize, aliases) in enumerate(_TABLE):
        kind = chr(pt_kind(i))
        d = dtype.__new__(dtype)
        d.name = name
        d.kind = kind
        d.itemsize = itemsize
        d.code = i
        DTYPES[i] = d
        ITEMSIZE[i] = itemsize
        CATEGORY[i] = 0 if kind == "b" else 1 if kind in "iu" else 2 if kind == "f" else 3
        REAL_OF[i] = i
        COMPLEX_OF[i] = PT_COMPLEX64
        _by_key[name] = d
        _by_key["ptcore." + name] = d
        _by_key["torch." + name] = d
        for alias in aliases:
            _by_key[alias] = d
    REAL_OF[PT_COMPLEX64] = PT_FLOAT32
    REAL_OF[PT_COMPLEX128] = PT_FLOAT64
    COMPLEX_OF[PT_FLOAT64] = PT_COMPLEX128
    COMPLEX_OF[PT_COMPLEX128] = PT_COMPLEX128
    for i in range(N_DTYPES):
        for j in range(N_DTYPES):
            PROMOTE[i][j] = _promote(i, j)


cdef int _promote(int a, int b):
    if a == b:
        return a
    if CATEGORY[a] > CATEGORY[b]:
        a, b = b, a
    if CATEGORY[b] == 3:                    # complex wins; float64 with complex64 widens it
        return PT_COMPLEX128 if PT_COMPLEX128 in (a, b) or a == PT_FLOAT64 else PT_COMPLEX64
    if CATEGORY[b] == 2:
        if CATEGORY[a] < 2:
            return b
        if ITEMSIZE[a] == 2 and ITEMSIZE[b] == 2:
            return PT_FLOAT32               # float16 with bfloat16
        return a if ITEMSIZE[a] > ITEMSIZE[b] else b
    if CATEGORY[a] == 0:
        return b
    cdef bint sa = DTYPES[a].kind == "i", sb = DTYPES[b].kind == "i"
    if sa == sb:
        return a if ITEMSIZE[a] > ITEMSIZE[b] else b
    cdef int s = a if sa else b, u = b if sa else a
    if ITEMSIZE[s] > ITEMSIZE[u]:
        return s
    if ITEMSIZE[u] == 1:
        return PT_INT16
    if ITEMSIZE[u] == 2:
        return PT_INT32
    if ITEMSIZE[u] == 4:
        return PT_INT64
    return PT_FLOAT32


if <int>N_DTYPES != <int>PT_NDTYPES:
    raise ImportError(f"N_DTYPES is {N_DTYPES}, PT_NDTYPES {PT_NDTYPES}: see _dtype.pxd")
DTYPES = [None] * N_DTYPES
_fill_tables()

globals().update({d.name: d for d in DTYPES})


def _from_name(name):
    return _by_key[name]


cdef dtype dtype_of(int code):
    return <dtype>DTYPES[code]


cdef int as_code(object value, const char *op, const char *arg) except -1:
    """The code of anything that names a dtype; TypeError naming op and argument."""
    if type(value) is dtype:
        return (<dtype>value).code
    if value is float:                  # as in PyTorch and NumPy; a Python float as a value has the default dtype
        return PT_FLOAT64
    if value is int:
        return PT_INT64
    if value is bool:
        return PT_BOOL
    if value is complex:
        return PT_COMPLEX128
    found = None
    if isinstance(value, str):
        found = _by_key.get(value)
    elif value is not None:
        name = getattr(value, "name", None) or getattr(value, "__name__", None)
        if isinstance(name, str):
            found = _by_key.get(name)
    if found is None:
        raise TypeError(f"{op.decode()}: {arg.decode()} must be a dtype, got {value!r}")
    return (<dtype>found).code


def as_dtype(value, str op="dtype", str arg="dtype"):
    """The ptcore dtype that ``value`` (a dtype, NumPy dtype, name or Python type) means."""
    cdef bytes o = op.encode(), a = arg.encode()
    return dtype_of(as_code(value, o, a))


cdef int default_float() noexcept nogil:
    return _default_float


cdef int default_complex() noexcept nogil:
    return PT_COMPLEX128 if default_float() == PT_FLOAT64 else PT_COMPLEX64


def set_default_dtype(d):
    """Sets the dtype of new floating-point tensors made from Python numbers.

    Parameters
    ----------
    d : dtype
        A floating-point dtype. It holds for every thread.

    Raises
    ------
    TypeError
        If ``d`` is not a floating-point dtype.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_default_dtype(ptcore.float64)
    >>> ptcore.tensor(1.5).dtype
    ptcore.float64
    >>> ptcore.set_default_dtype(ptcore.float32)
    """
    global _default_float
    cdef int code = as_code(d, b"set_default_dtype", b"d")
    if CATEGORY[code] != 2:
        raise TypeError(f"set_default_dtype: d must be a floating-point dtype, got {d!r}")
    _default_float = code


def get_default_dtype():
    """The dtype that new floating-point tensors get: ``ptcore.float32`` unless set."""
    return dtype_of(default_float())


def promote_types(type1, type2):
    """The smallest dtype that both dtypes promote to.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.promote_types(ptcore.int32, ptcore.float16)
    ptcore.float16
    """
    return dtype_of(PROMOTE[as_code(type1, b"promote_types", b"type1")]
                    [as_code(type2, b"promote_types", b"type2")])


def can_cast(from_, to):
    """Whether a result of dtype ``from_`` may be written to dtype ``to`` (no kind is lost).

    Examples
    --------
    >>> import ptcore
    >>> ptcore.can_cast(ptcore.float64, ptcore.float16)
    True
    >>> ptcore.can_cast(ptcore.float16, ptcore.int64)
    False
    """
    cdef int a = as_code(from_, b"can_cast", b"from_"), b = as_code(to, b"can_cast", b"to")
    return CATEGORY[a] <= CATEGORY[b]


class finfo:
    """Limits of a floating-point (or complex) dtype, or of a tensor's.

    Attributes
    ----------
    bits : int
    eps, max, min, tiny, smallest_normal, resolution : float
    dtype : dtype

    Examples
    --------
    >>> import ptcore
    >>> ptcore.finfo(ptcore.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    # mantissa bits, largest exponent, decimal digits
    _FORMATS = {"float16": (10, 15, 3), "bfloat16": (7, 127, 2), "float32": (23, 127, 6),
                "float64": (52, 1023, 15)}

    def __init__(self, type=None):
        d = dtype_of(default_float()) if type is None else as_dtype(
            getattr(type, "dtype", type) if not isinstance(type, dtype) else type, "finfo", "type")
        d = d.to_real()
        if d.name not in self._FORMATS:
            raise TypeError(f"finfo: type must be a floating-point dtype, got {d!r}")
        mantissa, exponent, digits = self._FORMATS[d.name]
        self.dtype = d
        self.bits = 8 * d.itemsize
        self.eps = 2.0 ** -mantissa
        self.max = (2.0 - 2.0 ** -mantissa) * 2.0 ** exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = float(f"1e-{digits}")

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, "
                f"tiny={self.tiny:g}, dtype={self.dtype.name})")


class iinfo:
    """Limits of an integer dtype, or of an integer tensor's.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.iinfo(ptcore.int8).min, ptcore.iinfo(ptcore.int8).max
    (-128, 127)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type):
        d = as_dtype(getattr(type, "dtype", type) if not isinstance(type, dtype) else type,
                     "iinfo", "type")
        if d.kind not in "iu":
            raise TypeError(f"iinfo: type must be an integer dtype, got {d!r}")
        self.dtype = d
        self.bits = 8 * d.itemsize
        signed = d.kind == "i"
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


ALL = tuple(DTYPES)
INF = float("inf")
NAN = float("nan")
