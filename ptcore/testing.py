"""Helpers of tests: comparison of tensors within tolerances, and random tensors.

The comparison uses NumPy in double precision, so it does not rely on the operations under test.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import ptcore
from ptcore import Tensor
from ptcore._libraries import library

__all__ = ["assert_close", "make_tensor"]

# (rtol, atol) by dtype; zero, which means equality, for all others.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_NUMBERS = (bool, int, float, complex)


class _Options:
    def __init__(self, allow_subclasses, rtol, atol, equal_nan, checks, msg):
        self.allow_subclasses = allow_subclasses
        self.rtol, self.atol = rtol, atol
        self.equal_nan, self.checks, self.msg = equal_nan, checks, msg

    def tolerances(self, *names):
        if self.rtol is not None:
            return self.rtol, self.atol
        pairs = [_TOLERANCES.get(name, (0.0, 0.0)) for name in names]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)

    def fail(self, text, where):
        if where:
            text += f"\n\nThe failure occurred for item {where}"
        if callable(self.msg):
            text = self.msg(text)
        elif self.msg is not None:
            text = self.msg
        raise AssertionError(text)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Assert that tensors, numbers or nestings of them are close.

    Parameters
    ----------
    actual, expected : object
        Tensors, NumPy arrays, numbers, or sequences and mappings of them.
    allow_subclasses : bool, default: True
        Whether two tensors may be of different (related) types.
    rtol, atol : float, optional
        Tolerances, both or none; by default those of the dtype, the larger ones
        where two dtypes meet: (1.3e-6, 1e-5) for float32, (1e-7, 1e-7) for float64,
        (1e-3, 1e-5) for float16 and complex32, (1.6e-2, 1e-5) for bfloat16, else 0.
    equal_nan : bool, default: False
        Whether NaNs count as equal.
    check_device, check_dtype, check_layout : bool, default: True
        Whether these have to be equal.
    check_stride : bool, default: False
        Whether strides have to be equal.
    msg : str or callable, optional
        Message to raise instead of the default one, or function of that.

    Raises
    ------
    AssertionError
        If they are not close, or differ in shape or a checked attribute.
    ValueError
        If only one tolerance is given.
    TypeError
        If something cannot be compared.

    Notes
    -----
    Close means ``|actual - expected| <= atol + rtol * |expected|``, or equal. Integers are
    compared without rounding. NumPy's scalars are numbers. Tensors on the meta device have
    no values, so that only their attributes are compared.

    Examples
    --------
    >>> import ptcore
    >>> assert_close(ptcore.ones(2), ptcore.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            "rtol and atol must both be specified or both be unspecified, "
            f"but got rtol={rtol} and atol={atol}"
        )
    checks = [
        name
        for name, wanted in (
            ("device", check_device),
            ("dtype", check_dtype),
            ("layout", check_layout),
        )
        if wanted
    ]
    if check_stride:
        checks.append("stride()")
    options = _Options(allow_subclasses, rtol, atol, equal_nan, checks, msg)
    _compare(actual, expected, options, "")


def _is_tensor_like(value):
    return isinstance(value, Tensor) or (
        type(value).__module__ == "numpy" and hasattr(value, "dtype")
    )


def _number(value):
    """The Python number of a NumPy scalar; other values as they are."""
    np = library("numpy")

    return value.item() if isinstance(value, (np.bool_, np.number)) else value


def _compare(actual, expected, options, where):
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing = [k for k in expected if k not in actual]
        extra = [k for k in actual if k not in expected]
        if missing or extra:
            options.fail(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(extra, key=str)}",
                where,
            )
        for key in expected:
            _compare(actual[key], expected[key], options, f"{where}[{key!r}]")
    elif _both_sequences(actual, expected):
        if len(actual) != len(expected):
            options.fail(
                "The length of the sequences mismatch: "
                f"{len(actual)} != {len(expected)}",
                where,
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, e, options, f"{where}[{i}]")
    elif isinstance(_number(actual), _NUMBERS) and isinstance(
        _number(expected), _NUMBERS
    ):
        _compare_numbers(_number(actual), _number(expected), options, where)
    elif _is_tensor_like(actual) and _is_tensor_like(expected):
        if not options.allow_subclasses and type(actual) is not type(expected):
            raise TypeError(
                "assert_close: expected objects of one type, got "
                f"{type(actual).__name__} and {type(expected).__name__}"
                + (f", for item {where}" if where else "")
            )
        actual, expected = [x if isinstance(x, ptcore.Tensor) else ptcore.as_tensor(x, device="cpu")
                            for x in (actual, expected)]
        _compare_tensors(actual, expected, options, where)
    elif actual is None or expected is None:
        if actual is not expected:
            options.fail(f"None mismatch: {actual} is not {expected}", where)
    else:
        raise TypeError(
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}."
        )


def _both_sequences(*values):
    return all(isinstance(v, Sequence) and not isinstance(v, str) for v in values)


def _dtype_name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def _name_of(number):
    """The dtype of a Python number."""
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64")):
        if isinstance(number, kind):
            return name
    return "complex128"


def _close(a, e, rtol, atol, equal_nan, absolute=None):
    """Boolean array, and the absolute and relative differences.

    ``absolute`` is the exact difference of integers, which `a` and `e` may have been
    rounded from.
    """
    np = library("numpy")

    with np.errstate(all="ignore"):
        equal = a == e if absolute is None else absolute == 0
        absolute = np.abs(a - e) if absolute is None else absolute
        relative = absolute / np.abs(e)
        close = equal | (
            np.isfinite(absolute) & (absolute <= atol + rtol * np.abs(e))
        )
    if equal_nan:
        close |= np.isnan(a) & np.isnan(e)
    return close, absolute, relative


def _array(tensor):
    tensor = tensor.detach().cpu()
    if tensor.dtype == ptcore.bfloat16 or tensor.dtype.name.startswith("float8"):
        tensor = tensor.to(ptcore.float32)
    elif tensor.dtype == ptcore.complex32:
        tensor = tensor.to(ptcore.complex64)
    return tensor.numpy()


def _wide(array):
    """An array in the widest type of its kind. It does not hold all integers everywhere:
    on some platforms a longdouble is a float64."""
    np = library("numpy")

    return array.astype(np.complex128 if array.dtype.kind == "c" else np.longdouble)


def _exact_difference(a, e):
    """The absolute difference of integers of one dtype as uint64, else None."""
    np = library("numpy")

    if a.dtype != e.dtype or a.dtype.kind not in "biu":
        return None
    return np.maximum(a, e).astype(np.uint64) - np.minimum(a, e).astype(np.uint64)


def _integers_close(a, e, rtol, atol):
    """Whether integers of any size are close, and their relative difference."""
    absolute, size = abs(a - e), abs(e)
    relative = Fraction(absolute, size) if size else math.inf
    if not math.isfinite(rtol) or not math.isfinite(atol):
        return absolute == 0 or atol == math.inf or (rtol == math.inf and size > 0), relative
    return absolute <= Fraction(atol) + Fraction(rtol) * size, relative


def _numbers_close(a, e, rtol, atol, equal_nan):
    """Whether numbers are close, and their relative difference."""
    if isinstance(a, int) and isinstance(e, int):
        return _integers_close(a, e, rtol, atol)
    try:
        a, e = complex(a), complex(e)
    except OverflowError:               # an integer above all floats beside a float
        return False, math.inf
    np = library("numpy")

    close, _, relative = _close(
        np.complex128(a), np.complex128(e), rtol, atol, equal_nan
    )
    return bool(close), relative


def _as_float(compute):
    try:
        return float(compute())
    except OverflowError:
        return math.inf


def _compare_numbers(actual, expected, options, where):
    if "dtype" in options.checks and type(actual) is not type(expected):
        options.fail(
            f"The (d)types do not match: {type(actual)} != {type(expected)}.", where
        )
    if isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            options.fail(f"Booleans mismatch: {actual} is not {expected}", where)
        return
    rtol, atol = options.tolerances(_name_of(actual), _name_of(expected))
    exact = not rtol and not atol
    close, relative = _numbers_close(actual, expected, rtol, atol, options.equal_nan)
    if actual == expected or (close and (not exact or actual != actual)):
        return
    if isinstance(actual, int) and isinstance(expected, int):
        absolute = abs(actual - expected)
    else:
        absolute = _as_float(lambda: abs(actual - expected))
    text = f"Scalars are not {'equal' if exact else 'close'}!\n\n"
    text += f"Expected {expected} but got {actual}.\n"
    for what, value, limit in (
        ("Absolute", absolute, atol),
        ("Relative", _as_float(lambda: relative), rtol),
    ):
        text += f"{what} difference: {value}"
        text += "\n" if exact else f" (up to {limit} allowed)\n"
    options.fail(text.rstrip("\n"), where)


def _compare_tensors(actual, expected, options, where):
    np = library("numpy")

    def attribute(name, a, e):
        if a != e:
            options.fail(
                f"The values for attribute {name!r} do not match: {a} != {e}.", where
            )

    attribute("shape", actual.shape, expected.shape)
    for name in options.checks:
        if name == "stride()":
            attribute(name, actual.stride(), expected.stride())
        else:
            attribute(name, getattr(actual, name), getattr(expected, name))
    if actual.is_meta or expected.is_meta:
        return
    rtol, atol = options.tolerances(_dtype_name(actual), _dtype_name(expected))
    a, e = _array(actual), _array(expected)
    close, absolute, relative = _close(
        _wide(a), _wide(e), rtol, atol, options.equal_nan, _exact_difference(a, e)
    )
    if close.all():
        return
    exact = not rtol and not atol
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    wrong = int(np.count_nonzero(~close))
    lines.append(
        f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})"
    )
    for what, values, limit in (
        ("absolute", absolute, atol),
        ("relative", relative, rtol),
    ):
        values = np.where(close, -1.0, values)
        at = np.unravel_index(np.argmax(values), values.shape)
        line = f"Greatest {what} difference: {float(values[at])}"
        if values.ndim:
            line += f" at index {tuple(int(i) for i in at)}"
        lines.append(line if exact else f"{line} (up to {limit} allowed)")
    options.fail("\n".join(lines), where)


def make_tensor(
    *shape,
    dtype,
    device="cpu",
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
):
    """Return a tensor of random values.

    Parameters
    ----------
    *shape : int, or one sequence of int
        Shape.
    dtype : dtype
        Its dtype.
    device : device, default: 'cpu'
        Its device.
    low, high : float, optional
        Bounds: values are in ``[low, high)``, as far as the dtype reaches. By default
        -9 and 9, of integers -9 and 10, from 0 for unsigned ones, of bool 0 and 2. Integers are below ``2**63 - 1``.
    requires_grad : bool, default: False
        Of the result.
    noncontiguous : bool, default: False
        Whether the last dimension has stride 2.
    exclude_zero : bool, default: False
        Whether zeros become 1, of floating dtypes the smallest normal number.

    Raises
    ------
    ValueError
        If `low` is not below `high`, no number of the dtype lies between them, or a
        gradient is asked for integers.

    Examples
    --------
    >>> import ptcore
    >>> make_tensor(2, 3, dtype=ptcore.float32, low=0, high=1).shape
    ptcore.Size([2, 3])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    shape = tuple(shape)
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError(
            "make_tensor: requires_grad must be False for integral and boolean, got "
            f"{dtype}"
        )
    low, high = _bounds(dtype, low, high)

    drawn = shape
    if noncontiguous and shape and shape[-1] > 0:
        drawn = (*shape[:-1], 2 * shape[-1])
    if inexact:
        result = ptcore.empty(drawn, dtype=dtype, device=device)
        if high - low > ptcore.finfo(dtype).max:
            result.uniform_(low / 2, high / 2).mul_(2)
        else:
            result.uniform_(low, high)
    else:
        result = ptcore.randint(low, high, drawn, dtype=dtype, device=device)
    if exclude_zero:
        nearest = ptcore.finfo(dtype).tiny if inexact else 1
        result = result.masked_fill(result == 0, nearest)
    if drawn != shape:
        result = result[..., ::2]
    return result.requires_grad_(requires_grad)


def _bounds(dtype, low, high):
    """The bounds inside the range of a dtype; of integers the whole numbers in [low, high)."""
    if dtype.is_floating_point or dtype.is_complex:
        lowest, highest = ptcore.finfo(dtype).min, ptcore.finfo(dtype).max
        low, high = -9 if low is None else low, 9 if high is None else high
    elif dtype == ptcore.bool:
        lowest, highest = 0, 2
        low, high = 0 if low is None else low, 2 if high is None else high
    else:
        # The bounds of randint are int64.
        lowest = ptcore.iinfo(dtype).min
        highest = min(ptcore.iinfo(dtype).max + 1, 2**63 - 1)
        low, high = -9 if low is None else low, 10 if high is None else high
    if not low < high:
        raise ValueError(f"make_tensor: low must be below high, got {low} and {high}")
    if high <= lowest or low >= highest:
        raise ValueError(
            f"make_tensor: {dtype} holds numbers in [{lowest}, {highest}), got low {low} "
            f"and high {high}"
        )
    low, high = max(low, lowest), min(high, highest)
    if dtype.is_floating_point or dtype.is_complex:
        return low, high
    first, last = math.ceil(low), math.ceil(high)
    if first == last:
        raise ValueError(f"make_tensor: no integer lies in [{low}, {high})")
    return first, last
