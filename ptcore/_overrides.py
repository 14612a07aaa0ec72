"""``__torch_function__``: who is asked about a call, in which order; modes, which are asked before any argument.

Ops ask by themselves where an argument is no plain tensor (``call/offer.pyx``); here is what they then do, and what
code that is no op uses. ``ptcore.overrides`` shows the public names.
"""
import functools

from ptcore._state import FunctionMode, _disabled_torch_function_impl, below_mode, torch_function_is_off
from ptcore._state import function_modes as modes
from ptcore._tensor import Tensor


def overriding(values):
    """The arguments that have a ``__torch_function__`` of their own, one of each class, subclasses before their
    bases. While that of a subclass runs a function for it, subclasses of Tensor are plain tensors."""
    found, off = [], torch_function_is_off()
    for x in values:
        cls = type(x)
        if cls in (int, float, str, bool, type(None)) or cls is Tensor:
            continue
        function = getattr(cls, "__torch_function__", None)
        if function is None or function is _disabled_torch_function_impl or any(type(y) is cls for y in found):
            continue
        if isinstance(x, Tensor) and (off or not _overrides(cls)):
            continue
        place = next((k for k, y in enumerate(found) if issubclass(cls, type(y))), len(found))
        found.insert(place, x)
    return found


def _overrides(cls):
    """Whether a subclass of Tensor is asked: one with the disabled function, as Parameter, is a plain tensor."""
    return getattr(cls.__torch_function__, "__func__", cls.__torch_function__) is not _disabled_torch_function_impl


def flat(values, depth=0):
    """The values with those in lists and tuples in their place; of a few levels, as a list may contain itself."""
    for x in values:
        if isinstance(x, (list, tuple)):
            if depth < 3:
                yield from flat(x, depth + 1)
        else:
            yield x


def ask(function, args, kwargs, relevant=None):
    """What the arguments with a ``__torch_function__`` make of a call; TypeError if none of them knows it."""
    owners = overriding(flat((*args, *kwargs.values())) if relevant is None else relevant)
    types = tuple(map(type, owners))
    if modes():
        result = ask_mode(function, args, kwargs, types)
        if result is not NotImplemented:
            return result
    for x in owners:
        result = x.__torch_function__(function, types, tuple(args), kwargs)
        if result is not NotImplemented:
            return result
    name = f"{function.__module__}.{function.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: "
                    f"{[cls.__name__ for cls in types]}")


def ask_mode(function, args, kwargs, types=None):
    """What the innermost mode makes of a call, which runs with that mode taken off."""
    if types is None and modes():
        types = tuple(map(type, overriding(flat((*args, *kwargs.values())))))
    return below_mode(function, types, tuple(args), kwargs)


class TorchFunctionMode(FunctionMode):
    """A context in which every op of this thread is handed to ``__torch_function__`` of the mode, which runs with the
    mode taken off and may call the op.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.overrides import TorchFunctionMode
    >>> class Names(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     _ = ptcore.ones(2).sin() + 1
    ones
    sin
    add
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError("a TorchFunctionMode must define __torch_function__")

    @classmethod
    def push(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that only calls."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args):
    """Whether any of some values has a ``__torch_function__`` that would be asked, or a mode is active."""
    return bool(modes()) or bool(overriding(relevant_args))


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Asks ``__torch_function__`` of the relevant arguments about a call of ``public_api``.

    Raises
    ------
    TypeError
        If all of them answer NotImplemented.
    """
    return ask(public_api, args, kwargs, relevant_args)


def wrap_torch_function(dispatcher):
    """Decorator of a function: ``dispatcher(*args, **kwargs)`` gives the arguments whose ``__torch_function__`` is
    asked.

    Examples
    --------
    >>> from ptcore.overrides import wrap_torch_function
    >>> @wrap_torch_function(lambda a, b: (a, b))
    ... def twice(a, b):
    ...     return 2 * a
    >>> twice(1, 2)
    2
    """
    def decorated(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)
        return wrapped
    return decorated


def is_tensor_like(inp):
    """Whether a value is a tensor or has a ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")
