"""Checks that the constructors of modules share; their errors name module and argument."""
from operator import index

from ptcore._errors import ShapeError
from ptcore._overrides import is_tensor_like


def size(module, name, value):
    """A size as an int."""
    try:
        value = int(index(value))
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{type(module).__name__}: {name} must be int, got {type(value).__name__}") from None
    if value < 0:
        raise ShapeError(f"{type(module).__name__}: {name} must be non-negative, got {value}")
    return value


def need_tensor(module, name, value):
    """Refuse objects that are neither tensors nor have ``__torch_function__``."""
    if not is_tensor_like(value):
        raise TypeError(f"{type(module).__name__}: {name} must be a Tensor, got {type(value).__name__}")
