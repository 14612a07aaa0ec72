"""Conversion of arguments that are not of the plain type a kernel or composite needs; raises if there is none.

The generated functions call these only for a value that is not plain already, so that the common
call costs only a comparison of pointers. Every error names the op, the argument, the expected type and the
given one.
"""
from operator import index

from ptcore._dtype import ALL, as_dtype, finfo
from ptcore._errors import ChoiceError, ConversionError, NoWordError, SeveralElementsError
from ptcore._exchange.convert import int_of
from ptcore._interpret import innermost
from ptcore._shape import is_symbolic_number
from ptcore._tensor import Tensor


def symbolic(value):
    """A symbolic number unchanged if an interpreter is on; else as a plain number, which is a guard."""
    return value.guard() if innermost() is None else value


def _wrong(error, op, name, expected, value):
    return error(f"{op}: {name} must be {expected}, got {type(value).__name__}")


def _plain(op, name, expected, value):
    """The Python number in a NumPy scalar or a tensor of one element."""
    if isinstance(value, (int, float, complex)):
        return value
    if is_symbolic_number(value):
        return symbolic(value)
    if isinstance(value, Tensor) and (value.numel() != 1 or value.is_meta):
        raise SeveralElementsError(f"{op}: {name} must be {expected}, got a tensor of shape {list(value.shape)} on "
                                   f"{value.device}")
    if (getattr(value, "ndim", None) == 0 and hasattr(value, "item")) or isinstance(value, Tensor):
        return value.item()
    raise _wrong(TypeError, op, name, expected, value)


def holds(op, name, dtype, value):
    """Raises if a number that is to be an element of a dtype is out of its range. Any number is true or false;
    infinities fit floating-point dtypes; integers are those of ``int_of``."""
    if dtype.kind == "b":
        return
    if dtype.kind != "c" and value.imag:
        raise RuntimeError(f"{op}: {name}: the complex number {value} cannot be converted to {dtype.name}")
    if dtype.kind in "iu":
        try:
            int_of(value.real, ALL.index(dtype))
        except RuntimeError as e:
            raise RuntimeError(f"{op}: {name}: {e}") from None
    elif any([finfo(dtype).max < abs(part) < float("inf") for part in (value.real, value.imag)]):
        raise RuntimeError(f"{op}: {name}: value {value} cannot be converted to {dtype.name} without overflow")


def tensor(op, name, value):
    raise _wrong(TypeError, op, name, "a Tensor", value)


def optional_tensor(op, name, value):
    raise _wrong(TypeError, op, name, "a Tensor or None", value)


def need_tensors(op, **values):
    """Raises for the first value that is not a Tensor."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise _wrong(TypeError, op, name, "a Tensor", value)


def operand(op, name, value):
    """Raises unless dispatch can make a tensor of the value: numbers, nested sequences of numbers, arrays."""
    if not isinstance(value, (int, float, complex, list, tuple)) and not hasattr(value, "shape"):
        raise _wrong(TypeError, op, name, "a Tensor", value)
    return value


def tensors(op, name, value):
    """A tuple of Tensors."""
    if isinstance(value, Tensor) or not hasattr(value, "__iter__"):
        raise _wrong(TypeError, op, name, "a sequence of Tensors", value)
    value = tuple(value)
    for item in value:
        if not isinstance(item, Tensor):
            raise TypeError(f"{op}: {name} must hold Tensors, got {type(item).__name__}")
    return value


def number(op, name, value):
    if type(value) is float or (type(value) is int and -2**63 <= value < 2**63):
        return value
    value = _plain(op, name, "a number", value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = int(value)
        if not -2**63 <= value < 2**64:
            raise ConversionError(f"{op}: {name} must be a 64-bit integer, got {value}")
    return value


def integer(op, name, value):
    if is_symbolic_number(value):
        return symbolic(value)
    if not isinstance(value, int):
        try:
            value = index(value)
        except (TypeError, ValueError, RuntimeError):
            raise _wrong(TypeError, op, name, "int", value) from None
    value = int(value)
    if not -2**63 <= value < 2**63:
        raise ConversionError(f"{op}: {name} must be a 64-bit integer, got {value}")
    return value


def integers(op, name, value):
    """A list of ints, from one int or several."""
    if type(value) is int and -2**62 <= value < 2**62:
        return [value]
    if isinstance(value, (tuple, list)):
        return [integer(op, name, item) for item in value]
    if (isinstance(value, Tensor) and value.ndim > 0) or not hasattr(value, "__index__"):
        raise _wrong(TypeError, op, name, "int or a sequence of ints", value)
    return [integer(op, name, value)]


def real(op, name, value):
    if type(value) is float:
        return value
    value = _plain(op, name, "float", value)
    if isinstance(value, complex):
        raise _wrong(TypeError, op, name, "float", value)
    if is_symbolic_number(value):
        return value
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(f"{op}: {name} must be a number of 64 bits, got {value}") from None


def word(op, name, value, choices, error=ChoiceError):
    """Raises unless the value is one of the words that the argument may be."""
    if not isinstance(value, str) and error is ChoiceError:
        error = NoWordError
    if not isinstance(value, str) or value not in choices:
        raise error(f"{op}: {name} must be one of {', '.join([repr(c) for c in choices])}, got {value!r}")
    return value


def flag(op, name, value):
    value = _plain(op, name, "bool", value)
    if value not in (0, 1):
        raise _wrong(TypeError, op, name, "bool", value)
    return bool(value)


# The positions are the numbers of reductions in PyTorch's functions that take an int.
REDUCTIONS = ("none", "mean", "sum")


def reduction(op, value, size_average=None, reduce=None):
    """The reduction of a loss, from the present argument or the two older ones."""
    if size_average is not None or reduce is not None:
        if reduce is not None and not flag(op, "reduce", reduce):
            return "none"
        return "mean" if size_average is None or flag(op, "size_average", size_average) else "sum"
    return word(op, "reduction", value, REDUCTIONS)


def reduction_word(op, value):
    """The word for a reduction given as a number."""
    number = integer(op, "reduction", value)
    if number not in (0, 1, 2):
        raise ValueError(f"{op}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {number}")
    return REDUCTIONS[number]


def dtype(op, name, value):
    return as_dtype(value, op, name)
