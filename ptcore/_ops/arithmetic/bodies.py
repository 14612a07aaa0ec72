"""Bodies: arithmetic between tensors and numbers, powers, rounding, minima, maxima and limits."""
from cython.cimports.ptcore._ops.call.elementwise import elementwise_of

from ptcore._dtype import as_dtype, finfo, get_default_dtype
from ptcore._errors import DTypeError
from ptcore._interpret import differentiable
from ptcore._ops import checked, results
from ptcore._ops.call.operands import promoted, result_type
from ptcore._ops.creation.creation import full
from ptcore._ops.functions import (
    broadcast_tensors,
    clamp_between,
    clamp_between_,
    clamp_max,
    clamp_max_,
    clamp_min,
    clamp_min_,
    clone,
    exp2,
    isfinite,
    mul,
    nextafter_of,
    sub,
    where,
)
from ptcore._ops.table.ids import op_id
from ptcore._state import no_grad
from ptcore._tensor import Tensor

_WHERE = op_id("where")

_OPERANDS = (Tensor, int, float, complex)
INT16 = as_dtype("int16")


def nextafter(input, other):
    dtype = result_type(input, other)
    if dtype.kind != "f" or dtype.itemsize > 2:
        return nextafter_of(input, other)
    input, other = broadcast_tensors(input.to(dtype), other.to(dtype))
    a, b = input.detach().contiguous().view(INT16), other.detach().contiguous().view(INT16)
    # Adding one to the bits of a magnitude gives the next larger magnitude; the bits of negative numbers are negative.
    step = where((input < other) == (a >= 0), a + 1, a - 1)
    moved = where(input == 0, (b & -32768) | 1, step).view(dtype)
    moved = where(input == other, other, where((input != input) | (other != other), input + other, moved))
    if not input.requires_grad and not differentiable():
        return moved.detach()
    return where(isfinite(input) & isfinite(moved), input + (moved - input).detach(), moved.detach())


def _fits(number, input):
    """Whether a number has an exact value in input's dtype, so that the result keeps that dtype."""
    kind = input.dtype.kind
    if type(number) is float:
        return kind == "f"
    if type(number) is not int:
        return False
    if kind == "u":
        return 0 <= number < 1 << 8 * input.dtype.itemsize
    limit = 1 << 53 if kind == "f" else 1 << 8 * input.dtype.itemsize - 1
    return kind in "if" and -limit <= number < limit


def clamp_(input, min, max):
    """clamp in place if one pass does it, else None."""
    if max is None:
        return clamp_min_(input, min) if _fits(min, input) else None
    if min is None:
        return clamp_max_(input, max) if _fits(max, input) else None
    return clamp_between_(input, min, max) if _fits(min, input) and _fits(max, input) and min <= max else None


def clamp(input, min, max, out=None):
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return clamp_min(input, min, out=out)
    if _fits(min, input) and _fits(max, input) and min <= max:
        return clamp_between(input, min, max, out=out)
    if min is None:
        return clamp_max(input, max, out=out)
    if isinstance(min, _OPERANDS) and isinstance(max, _OPERANDS):       # all three promote together
        dtype = promoted((input, min, max))
        input, min, max = [x.to(dtype) if isinstance(x, Tensor) else x for x in (input, min, max)]
    return clamp_max(clamp_min(input, min), max, out=out)


# -- numbers in place of others, exponents, powers --------------------------------------------------------
_LIMITS = {}            # dtype: the numbers by which nan_to_num replaces NaN, inf and -inf


def nan_to_num(input, nan, posinf, neginf, out=None):
    if input.dtype.kind not in "f":
        if input.dtype.is_complex:
            from ptcore._ops.shaping.bodies import complex_of
            return complex_of(nan_to_num(input.real, nan, posinf, neginf), nan_to_num(input.imag, nan, posinf, neginf))
        return clone(input)
    from ptcore._ops.functions import nan_replaced
    limits = _LIMITS.get(input.dtype)
    if limits is None:
        limits = _LIMITS[input.dtype] = (0.0, finfo(input.dtype).max, finfo(input.dtype).min)
    if nan is None and posinf is None and neginf is None and out is None:
        return nan_replaced(input, *limits)
    numbers = [default if value is None else checked.real("nan_to_num", name, value)
               for name, value, default in zip(("nan", "posinf", "neginf"), (nan, posinf, neginf), limits)]
    return nan_replaced(input, *numbers, out=out)


def ldexp(input, other):
    if not isinstance(other, Tensor):
        other = checked.real("ldexp", "other", other)
        other = 1e5 if other > 1e5 else -1e5 if other < -1e5 else other         # beyond these the result is inf or 0
        other = full((), other, dtype=get_default_dtype(), device=input.device)
    if other.dtype is not input.dtype and input.dtype.kind in "fc":     # the base 2 is a 0-d tensor of input's dtype
        other = other.to(result_type(full((), 2, dtype=input.dtype, device=input.device), other))
    return mul(input, exp2(other))


def frexp(input):
    """``input = mantissa * 2**exponent`` with a mantissa in [0.5, 1)."""
    from ptcore._ops.functions import frexp_exponent, frexp_mantissa
    if input.dtype.kind != "f":
        raise DTypeError(f"frexp: input must be real floating-point, got {input.dtype.name}")
    with no_grad():
        exponent = frexp_exponent(input.detach()).to(as_dtype("int32"))
    return results.frexp((frexp_mantissa(input), exponent))


def float_power(input, exponent):
    wide = _wide("float_power", input, exponent)
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        checked.tensor("float_power", "input", input)
    a, b = [x.to(wide) if isinstance(x, Tensor) else x for x in (input, exponent)]
    if isinstance(a, Tensor):
        return a ** b
    return full((), complex(a) if wide.is_complex else checked.real("float_power", "input", a), dtype=wide,
                device=b.device) ** b


def float_power_(input, exponent):
    """Checks the dtype; the plain form does the rest."""
    wide = _wide("float_power_", input, exponent)
    if input.dtype is not wide:
        raise DTypeError(f"float_power_: the tensor must be {wide.name}, got {input.dtype.name}")


def _wide(op, input, exponent):
    """The dtype of a power."""
    for name, x in (("input", input), ("exponent", exponent)):
        if not isinstance(x, (Tensor, int, float, complex)):
            checked.tensor(op, name, x)
    return as_dtype("complex128" if builtin_any([isinstance(x, complex) or (
        isinstance(x, Tensor) and x.dtype.is_complex) for x in (input, exponent)]) else "float64")


def where_method(input, condition, other):
    return elementwise_of(_WHERE, (condition, input, other))


def builtin_any(flags):
    for flag in flags:
        if flag:
            return True
    return False


def rsub(input, other, alpha):
    if input.dtype.kind == "b" or isinstance(other, bool) or (isinstance(other, Tensor) and other.dtype.kind == "b"):
        raise DTypeError("rsub: subtraction of bool tensors is not supported; use bitwise_xor or logical_xor")
    if not isinstance(other, Tensor):
        other = checked.number("rsub", "other", other)
    return sub(other, input, alpha=alpha)


def positive(input):
    if input.dtype.kind == "b":
        raise DTypeError("positive: input must be numbers, got bool")
    return input
