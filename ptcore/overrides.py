"""``__torch_function__``: objects and modes that see calls of ptcore's functions.

An object whose class has ``__torch_function__(cls, func, types, args=(), kwargs=None)`` may be an argument wherever a
tensor may: the function passes its call to it, with the original arguments. A :class:`TorchFunctionMode` gets all calls
of its thread.

Examples
--------
>>> import ptcore
>>> class Named:
...     def __init__(self, name):
...         self.name = name
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         return f"{func.__name__}({', '.join(getattr(a, 'name', str(a)) for a in args)})"
>>> ptcore.add(Named("a"), 2)
'add(a, 2)'
>>> ptcore.nn.functional.relu(Named("b"))
'relu(b)'
"""
import inspect

from ptcore._overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    wrap_torch_function,
)
from ptcore._tensor import Tensor

__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "get_overridable_functions", "handle_torch_function",
           "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "resolve_name", "wrap_torch_function"]


def has_torch_function_unary(arg):
    """``has_torch_function`` of one value."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args):
    """``has_torch_function`` of its arguments."""
    return has_torch_function(args)


def is_tensor_method_or_property(func):
    """Whether a function is a method of Tensor, or the getter of one of its properties."""
    name = getattr(func, "__name__", None)
    if name == "__get__":
        return True
    if not name:
        return False
    own = inspect.getattr_static(Tensor, name, None)
    return own is func or getattr(Tensor, name, None) is func


# Frequently called methods, which check for ``__torch_function__`` themselves.
_LOOK = ("__getitem__", "__setitem__", "contiguous", "detach", "item", "size", "to")


def get_overridable_functions():
    """The functions and methods that call ``__torch_function__``, by the object they are attributes of.

    Returns
    -------
    dict of object to list of callable
    """
    import ptcore
    kinds = (type(ptcore.add), type(ptcore.is_complex))                   # of rows, and of functions that are no rows
    spaces = (ptcore, ptcore.nn.functional, ptcore.linalg, ptcore.special, ptcore.fft, Tensor)
    found = {space: [f for f in [getattr(space, name) for name in sorted(dir(space)) if not name.startswith("__")]
                     if isinstance(f, kinds) and not getattr(f, "modes_alone", False)] for space in spaces}
    found[Tensor] += [getattr(Tensor, name) for name in _LOOK]
    return found


def resolve_name(f):
    """A function's name with that of its module or class; None for other objects."""
    name = getattr(f, "__qualname__", None)
    if name is None:
        return None
    return f"{f.__module__}.{name}"
