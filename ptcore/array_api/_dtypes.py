"""Data types: promotion, casts, and the namespace's information about itself."""
from ptcore._device import device as _device
from ptcore._device import get_default_device
from ptcore._dtype import (
    as_dtype,
    bool,
    complex64,
    complex128,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ptcore._dtype import dtype as _dtype
from ptcore._tensor import Tensor

_KINDS = {
    "bool": (bool,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]
_LETTERS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "real floating": "f",
            "complex floating": "c", "integral": "iu", "numeric": "iufc"}


def isdtype(dtype, kind):
    """Whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
    kind : dtype, str or tuple of them
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
        ``"complex floating"`` or ``"numeric"``; of a tuple any.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If the kind is none of these words.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.isdtype(xp.float32, ("real floating", "complex floating"))
    True
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, one) for one in kind])
    dtype = as_dtype(dtype, "isdtype", "dtype")
    if isinstance(kind, str):
        if kind not in _LETTERS:
            raise ValueError(f"isdtype: kind must be a dtype or one of {', '.join(map(repr, _LETTERS))}, got {kind!r}")
        return dtype.kind in _LETTERS[kind]
    return dtype is as_dtype(kind, "isdtype", "kind")


def result_type(*arrays_and_dtypes):
    """The dtype of an operation on arrays, dtypes and Python numbers.

    A Python number changes the dtype only if it is of a higher kind. An array without dims counts like one with dims.

    Raises
    ------
    TypeError
        If an argument is none of these.
    ValueError
        If there is none.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.result_type(xp.int8, xp.asarray(1, dtype=xp.int16), 3)
    ptcore.int16
    """
    found = number = None
    for x in arrays_and_dtypes:
        if isinstance(x, Tensor):
            found = x.dtype if found is None else promote_types(found, x.dtype)
        elif isinstance(x, (int, float, complex)) and not hasattr(x, "dtype"):
            d = dtype_of_number(x)
            number = d if number is None else promote_types(number, d)
        else:
            d = as_dtype(getattr(x, "dtype", x) if not isinstance(x, _dtype) else x, "result_type", "argument")
            found = d if found is None else promote_types(found, d)
    if found is None:
        if number is None:
            raise ValueError("result_type: at least one array or dtype is needed")
        return number
    if number is None or "biufc".index(found.kind) >= "biifc".index(number.kind):
        return found
    if number.kind == "c" and found.kind == "f":
        return found.to_complex()
    return number


def dtype_of_number(x):
    """The dtype of arrays made from a Python number."""
    if isinstance(x, int):
        return bool if x is True or x is False else int64
    return get_default_dtype() if isinstance(x, float) else get_default_dtype().to_complex()


def promoted(*arrays):
    """The arrays converted to their common dtype; numbers become arrays without dims."""
    dtype = result_type(*arrays)
    like = next((x for x in arrays if isinstance(x, Tensor)), None)
    return [x.to(dtype) if isinstance(x, Tensor) else like.new_full((), x, dtype=dtype) for x in arrays]


def can_cast(from_, to, /):
    """Whether type promotion leads from one dtype, or an array's dtype, to another.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    from_ = as_dtype(from_.dtype if isinstance(from_, Tensor) else from_, "can_cast", "from_")
    to = as_dtype(to, "can_cast", "to")
    return promote_types(from_, to) is to


def astype(x, dtype, /, *, copy=True, device=None):
    """An array in another dtype.

    Parameters
    ----------
    x : array
    dtype : dtype
    copy : bool
        False gives ``x`` itself back where neither dtype nor device changes.
    device : device, optional

    Returns
    -------
    array

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.astype(xp.asarray([0, 1, 2]), xp.bool)
    tensor([False,  True,  True])
    """
    dtype = as_dtype(dtype, "astype", "dtype")
    return x.to(dtype=dtype, copy=copy) if device is None else x.to(device=device, dtype=dtype, copy=copy)


class Devices(tuple):
    """The devices; SciPy 1.17 adds a list to them."""

    __slots__ = ()

    def __add__(self, other):
        return Devices((*self, *other))

    def __radd__(self, other):
        return Devices((*other, *self))


class Info:
    """The result of ``__array_namespace_info__()``: devices, dtypes and capabilities of this namespace."""

    def capabilities(self):
        """The capabilities of functions: boolean indices, data-dependent shapes, the largest number of dims."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """The device of new arrays."""
        return get_default_device()

    def default_dtypes(self, *, device=None):
        """The default dtypes of new arrays."""
        check_device(device, "default_dtypes")
        real = get_default_dtype()
        return {"real floating": real, "complex floating": real.to_complex(), "integral": int64, "indexing": int64}

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of a kind (a word of `isdtype` or a tuple of them; all by default) by name."""
        check_device(device, "dtypes")
        if kind is None:
            kind = ("bool", "numeric")
        found = {}
        for word in kind if isinstance(kind, tuple) else (kind,):
            if word not in _KINDS:
                raise ValueError(f"dtypes: kind must be one of {', '.join(map(repr, _KINDS))}, got {word!r}")
            found.update({d.name: d for d in _KINDS[word]})
        return found

    def devices(self):
        """The devices that arrays can be on."""
        from ptcore import cuda
        number = cuda.device_count() if cuda.is_available() else 0
        return Devices((_device("cpu"), *[_device("cuda", k) for k in range(number)]))


def check_device(device, name):
    if device is not None:
        _device(device)


_info = Info()


def __array_namespace_info__():
    """An object with the devices, dtypes and capabilities of this namespace.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    ptcore.int64
    """
    return _info
