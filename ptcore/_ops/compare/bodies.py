"""Bodies: comparisons, logic, bits and tests of floating-point class."""
from cython.cimports.ptcore._tensor import same_shape

from ptcore._dtype import as_dtype
from ptcore._ops.creation.creation import ones_like
from ptcore._ops.functions import abs, all


def isclose(input, other, rtol, atol, equal_nan):
    if rtol < 0 or atol < 0:
        raise RuntimeError(f"isclose: rtol and atol must not be negative, got {rtol} and {atol}")
    if input.dtype.kind == "b":
        return input == other
    same = input == other
    if rtol == 0 and atol == 0:
        return same | ((input != input) & (other != other)) if equal_nan else same
    if input.dtype.kind in "iu" and other.dtype.kind in "iu":
        input, other = input.to("float64"), other.to("float64")     # their differences do not wrap around
    gap = input - other
    close = (abs(gap) <= atol + rtol * abs(other)) & gap.isfinite() | same
    if equal_nan:
        close = close | ((input != input) & (other != other))
    return close


def allclose(input, other, rtol, atol, equal_nan):
    return bool(all(isclose(input, other, rtol, atol, equal_nan)))


def equal(input, other):
    return same_shape(input, other) and bool(all(input == other))


def isreal(input):
    return input.imag == 0 if input.dtype.is_complex else ones_like(input, dtype=as_dtype("bool"))
