"""dtype objects, the promotion table, finfo and iinfo.

The promotion table is PyTorch's, extended to uint16/32/64 as NumPy extends it inside the
integers: two unsigned give the wider, an unsigned with a signed gives the next wider signed
type, uint64 with a signed integer gives float (the default dtype decides which: float32). float8 types promote
with no other type.
"""

cimport cython
from ptcore._types cimport *
from ptcore._libraries import library

cdef int _default_float = PT_FLOAT32       # of the process, as in PyTorch
cdef dict _by_key = {}
cdef str _package = "ptcore"               # the prefix of printed dtype names

_TABLE = (
    # name, itemsize, other names (PyTorch's), the word for it in PyTorch's messages; in code order
    ("bool", 1, (), "Bool"), ("uint8", 1, (), "Byte"), ("int8", 1, (), "Char"), ("uint16", 2, (), "UInt16"),
    ("int16", 2, ("short",), "Short"), ("uint32", 4, (), "UInt32"), ("int32", 4, ("int",), "Int"),
    ("uint64", 8, (), "UInt64"), ("int64", 8, ("long",), "Long"), ("float16", 2, ("half",), "Half"),
    ("bfloat16", 2, (), "BFloat16"), ("float32", 4, ("float",), "Float"), ("float64", 8, ("double",), "Double"),
    ("complex64", 8, ("cfloat",), "ComplexFloat"), ("complex128", 16, ("cdouble",), "ComplexDouble"),
    ("float8_e4m3fn", 1, (), "Float8_e4m3fn"), ("float8_e5m2", 1, (), "Float8_e5m2"),
    ("float8_e4m3fnuz", 1, (), "Float8_e4m3fnuz"), ("float8_e5m2fnuz", 1, (), "Float8_e5m2fnuz"),
    ("float8_e8m0fnu", 1, (), "Float8_e8m0fnu"), ("complex32", 4, ("chalf",), "ComplexHalf"),
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
    """A tensor's element type: ``ptcore.float32`` and its 20 companions.

    There is one object per type; they compare by identity, hash, pickle and copy as
    themselves. ``numpy.dtype(ptcore.float32)`` works (not of float8 and complex32), and wherever a dtype is expected
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
        return self.kind in "ifc" and self.code != PT_FLOAT8_E8M0FNU

    @property
    def __numpy_dtype__(self):
        return self._numpy()

    @property
    def dtype(self):
        return self._numpy()

    def _numpy(self):
        if pt_is(self.code, PT_KIND_STORED):
            raise TypeError(f"numpy: got unsupported ScalarType {word_of(self.code)}: {self!r} has no NumPy dtype")
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
        """The complex dtype of the same precision: complex64 for float32, complex32 for float16."""
        return dtype_of(complex_of(self.code))


cdef void _fill_tables():
    cdef int i, j
    cdef dtype d
    for i, (name, itemsize, aliases, _) in enumerate(_TABLE):
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
        COMPLEX_OF[i] = PT_NONE if pt_is(i, PT_KIND_FLOAT8) else PT_COMPLEX64
        _by_key[name] = d
        _by_key["ptcore." + name] = d
        _by_key["torch." + name] = d
        for alias in aliases:
            _by_key[alias] = d
    REAL_OF[PT_COMPLEX32] = PT_FLOAT16
    REAL_OF[PT_COMPLEX64] = PT_FLOAT32
    REAL_OF[PT_COMPLEX128] = PT_FLOAT64
    COMPLEX_OF[PT_FLOAT16] = COMPLEX_OF[PT_COMPLEX32] = PT_COMPLEX32
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
    if pt_is(a, PT_KIND_FLOAT8) or pt_is(b, PT_KIND_FLOAT8):
        return PT_NONE
    if CATEGORY[b] == 3:                    # complex wins, at the precision of the more precise
        if PT_COMPLEX128 in (a, b) or a == PT_FLOAT64:
            return PT_COMPLEX128
        return PT_COMPLEX32 if b == PT_COMPLEX32 and (CATEGORY[a] < 2 or a == PT_FLOAT16) else PT_COMPLEX64
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


cdef str word_of(int code):
    """PyTorch's word for a dtype in messages and names of types: ``Float``."""
    return _TABLE[code][3]


cdef bint _complex32_seen = False


cdef int warn_of_complex32() except -1:
    """PyTorch's warning, at a process's first tensor of the dtype."""
    global _complex32_seen
    if _complex32_seen:
        return 0
    _complex32_seen = True
    import warnings
    warnings.warn("ComplexHalf support is experimental and many operators don't support it yet.", stacklevel=1)
    return 0


cdef int promote(int a, int b) except -1:
    """The dtype that two dtypes promote to."""
    cdef int code = PROMOTE[a][b]
    if code == PT_NONE:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {word_of(a)} and "
                           f"{word_of(b)}")
    return code


cdef int complex_of(int code) except -1:
    """The complex dtype of a dtype's precision."""
    if COMPLEX_OF[code] == PT_NONE:
        raise RuntimeError(f"Unknown Complex ScalarType for {word_of(code)}")
    return COMPLEX_OF[code]


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
    return COMPLEX_OF[default_float()]


def set_default_dtype(d):
    """Sets the dtype of new floating-point tensors made from Python numbers.

    Parameters
    ----------
    d : dtype
        A floating-point dtype, not a float8 one. It holds for every thread.

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
        raise TypeError(f"set_default_dtype: d must be a floating-point dtype, got {d!r}: only floating-point types "
                        "are supported as the default type")
    if pt_is(code, PT_KIND_FLOAT8):
        raise TypeError(f"set_default_dtype: d must not be a float8 dtype, got {d!r}: couldn't find storage object "
                        f"{word_of(code)}Storage")
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
    return dtype_of(promote(as_code(type1, b"promote_types", b"type1"), as_code(type2, b"promote_types", b"type2")))


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


class _Limits:
    """Base of finfo and iinfo: constants of ``dtype``, equal where that is the same."""
    __slots__ = ()

    def __eq__(self, other):
        return self.dtype is other.dtype if type(other) is type(self) else NotImplemented

    def __hash__(self):
        return hash((type(self), self.dtype))

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute {name!r} of {type(self).__name__} objects is not writable")

    def __reduce__(self):
        return type(self), (self.dtype,)

    def __setstate__(self, state):      # of pickles that were written before there was __reduce__
        self._set(**state[1])

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)


class finfo(_Limits):
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
    # eps, max, smallest normal number, decimal digits; the eps of float8_e5m2fnuz is PyTorch's, half of what it is
    _FORMATS = {**{name: (2.0 ** -mantissa, (2.0 - 2.0 ** -mantissa) * 2.0 ** exponent, 2.0 ** (1 - exponent), digits)
                   for name, mantissa, exponent, digits in (("float16", 10, 15, 3), ("bfloat16", 7, 127, 2),
                                                            ("float32", 23, 127, 6), ("float64", 52, 1023, 15))},
                "float8_e4m3fn": (0.125, 448.0, 2.0 ** -6, 0), "float8_e5m2": (0.25, 57344.0, 2.0 ** -14, 0),
                "float8_e4m3fnuz": (0.125, 240.0, 2.0 ** -7, 0), "float8_e5m2fnuz": (0.125, 57344.0, 2.0 ** -15, 0),
                "float8_e8m0fnu": (1.0, 2.0 ** 127, 2.0 ** -127, 0)}

    def __init__(self, type=None):
        d = dtype_of(default_float()) if type is None else as_dtype(
            getattr(type, "dtype", type) if not isinstance(type, dtype) else type, "finfo", "type")
        d = d.to_real()
        if d.name not in self._FORMATS:
            raise TypeError(f"finfo: type must be a floating-point dtype, got {d!r}")
        eps, largest, tiny, digits = self._FORMATS[d.name]
        self._set(dtype=d, bits=8 * d.itemsize, eps=eps, max=largest, min=-largest if d.is_signed else tiny, tiny=tiny,
                  smallest_normal=tiny, resolution=float(f"1e-{digits}"))

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, "
                f"tiny={self.tiny:g}, dtype={self.dtype.name})")


class iinfo(_Limits):
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
        bits, signed = 8 * d.itemsize, d.kind == "i"
        self._set(dtype=d, bits=bits, max=2 ** (bits - signed) - 1, min=-(2 ** (bits - 1)) if signed else 0)

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


WORDS = {word: name for name, _, _, word in _TABLE}     # PyTorch's word -> name
ALL = tuple(DTYPES)
INF = float("inf")
NAN = float("nan")
