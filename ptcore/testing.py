"""Helpers of tests: comparison of tensors within tolerances, and random tensors.

The comparison uses NumPy in double precision, so it does not rely on the operations under test.
"""

from collections.abc import Mapping, Sequence

import ptcore
from ptcore import Tensor

__all__ = ["assert_close", "make_tensor"]

# (rtol, atol) by dtype; zero, which means equality, for all others.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_NUMBERS = (bool, int, float, complex)


class _Options:
    def __init__(self, rtol, atol, equal_nan, checks, msg):
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
        Whether the two may be of different (related) types.
    rtol, atol : float, optional
        Tolerances, both or none; by default those of the dtype, the larger ones
        where two dtypes meet: (1.3e-6, 1e-5) for float32, (1e-7, 1e-7) for float64,
        (1e-3, 1e-5) for float16, (1.6e-2, 1e-5) for bfloat16, else 0.
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
    Close means ``|actual - expected| <= atol + rtol * |expected|``, or equal.

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
    options = _Options(rtol, atol, equal_nan, checks, msg)
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(
            "assert_close: expected objects of one type, got "
            f"{type(actual).__name__} and {type(expected).__name__}"
        )
    _compare(actual, expected, options, "")


def _is_tensor_like(value):
    return isinstance(value, Tensor) or (
        type(value).__module__ == "numpy" and hasattr(value, "dtype")
    )


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
    elif isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
        _compare_numbers(actual, expected, options, where)
    elif _is_tensor_like(actual) and _is_tensor_like(expected):
        _compare_tensors(
            ptcore.as_tensor(actual), ptcore.as_tensor(expected), options, where
        )
    elif actual is None and expected is None:
        return
    else:
        raise TypeError(
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}."
        )


def _both_sequences(*values):
    return all(isinstance(v, Sequence) and not isinstance(v, str) for v in values)


def _dtype_name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def _close(a, e, rtol, atol, equal_nan):
    """Boolean array, and the absolute and relative differences."""
    import numpy as np

    with np.errstate(all="ignore"):
        absolute = np.abs(a - e)
        relative = absolute / np.abs(e)
        close = (a == e) | (
            np.isfinite(absolute) & (absolute <= atol + rtol * np.abs(e))
        )
    if equal_nan:
        close |= np.isnan(a) & np.isnan(e)
    return close, absolute, relative


def _wide(tensor):
    """NumPy array of the widest type of its kind."""
    import numpy as np

    tensor = tensor.detach().cpu()
    if tensor.dtype == ptcore.bfloat16:
        tensor = tensor.to(ptcore.float32)
    array = tensor.numpy()
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.longdouble)


def _compare_numbers(actual, expected, options, where):
    names = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
    if "dtype" in options.checks and type(actual) is not type(expected):
        options.fail(
            f"The (d)types do not match: {type(actual)} != {type(expected)}.", where
        )
    rtol, atol = options.tolerances(names[type(actual)], names[type(expected)])
    if isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            options.fail(f"Booleans mismatch: {actual} is not {expected}", where)
        return
    import numpy as np

    exact = not rtol and not atol
    a, e = np.complex128(actual), np.complex128(expected)
    close, _, relative = _close(a, e, rtol, atol, options.equal_nan)
    if actual == expected or (close and not exact) or (np.isnan(a) and close):
        return
    text = f"Scalars are not {'equal' if exact else 'close'}!\n\n"
    text += f"Expected {expected} but got {actual}.\n"
    for what, value, limit in (
        ("Absolute", abs(actual - expected), atol),
        ("Relative", float(relative), rtol),
    ):
        text += f"{what} difference: {value}"
        text += "\n" if exact else f" (up to {limit} allowed)\n"
    options.fail(text.rstrip("\n"), where)


def _compare_tensors(actual, expected, options, where):
    import numpy as np

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
    rtol, atol = options.tolerances(_dtype_name(actual), _dtype_name(expected))
    close, absolute, relative = _close(
        _wide(actual), _wide(expected), rtol, atol, options.equal_nan
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
        Bounds; integers are below `high`. By default ``[-9, 9]``, from 0 for
        unsigned integers.
    requires_grad : bool, default: False
        Of the result.
    noncontiguous : bool, default: False
        Whether the last dimension has stride 2.
    exclude_zero : bool, default: False
        Whether zeros become ones.

    Raises
    ------
    ValueError
        If `low` is not below `high`, or a gradient is asked for integers.

    Examples
    --------
    >>> import ptcore
    >>> make_tensor(2, 3, dtype=ptcore.float32, low=0, high=1).shape
    ptcore.Size([2, 3])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    shape = tuple(shape)
    name = str(dtype).rpartition(".")[2]
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError(
            "make_tensor: requires_grad must be False for integral and boolean, got "
            f"{dtype}"
        )
    if name == "bool":
        low, high = 0, 2
    else:
        low = (0 if name.startswith("uint") else -9) if low is None else low
        high = (9 if inexact else 10) if high is None else high
    if not low < high:
        raise ValueError(f"make_tensor: low must be below high, got {low} and {high}")

    drawn = shape
    if noncontiguous and shape and shape[-1] > 0:
        drawn = (*shape[:-1], 2 * shape[-1])

    def uniform():
        t = ptcore.empty(drawn, dtype=ptcore.float64, device=device)
        return t.uniform_(low, high)

    if dtype.is_complex:
        result = uniform().to(dtype) + uniform().to(dtype) * 1j
    elif inexact:
        result = uniform().to(dtype)
    else:
        result = ptcore.randint(int(low), int(high), drawn, device=device).to(dtype)
    if exclude_zero:
        result = ptcore.where(result == 0, ptcore.ones_like(result), result)
    if drawn != shape:
        result = result[..., ::2]
    return result.requires_grad_(requires_grad)
