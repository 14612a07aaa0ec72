"""``__torch_function__``: the arguments that are offered a call, and their order; modes, which come before arguments.

Ops offer a call if an argument is no plain tensor (``call/offer.pyx``). This file has the steps that follow, and
functions for code that is no op. ``ptcore.overrides`` has the public names. Also names of types, for messages.
"""
import functools
import sys

from ptcore._state import FunctionMode, _disabled_torch_function_impl, below_mode, torch_function_is_off
from ptcore._state import function_modes as modes
from ptcore._tensor import Tensor


def overriding(values, plain=False):
    """The arguments with a ``__torch_function__`` of their own, one of each class, subclasses before their bases. While
    a subclass's ``__torch_function__`` runs the function, subclasses of Tensor count as plain tensors. With `plain` a
    plain tensor is among them."""
    found, off = [], torch_function_is_off()
    for x in values:
        cls = type(x)
        if cls in (int, float, str, bool, type(None)) or (cls is Tensor and (off or not plain)):
            continue
        function = getattr(cls, "__torch_function__", None)
        if function is None or function is _disabled_torch_function_impl or any(type(y) is cls for y in found):
            continue
        if isinstance(x, Tensor) and cls is not Tensor and (off or not _overrides(cls)):
            continue
        place = next((k for k, y in enumerate(found) if issubclass(cls, type(y))), len(found))
        found.insert(place, x)
    return found


def _overrides(cls):
    """Whether a subclass of Tensor overrides functions; one with the disabled function, such as Parameter, does not."""
    return getattr(cls.__torch_function__, "__func__", cls.__torch_function__) is not _disabled_torch_function_impl


def flat(values, depth=0):
    """The values, with lists and tuples replaced by their items to a few levels, as a list may contain itself."""
    for x in values:
        if isinstance(x, (list, tuple)):
            if depth < 3:
                yield from flat(x, depth + 1)
        else:
            yield x


def is_tensor_of_others(x):
    """Whether a value is a tensor of PyTorch, or of another copy of ptcore."""
    if isinstance(x, Tensor):
        return False
    return any([(cls.__name__, cls.__module__) in (("TensorBase", "torch._C"), ("Tensor", Tensor.__module__))
                for cls in type(x).__mro__])


def refuse_tensors_of_others(name, values):
    """Raises TypeError if one of the values is a tensor of another library, whose ``__torch_function__`` would ask
    ours again, and so on."""
    for x in flat(values):
        if is_tensor_of_others(x):
            cls = type(x)
            raise TypeError(f"{name}: expected tensors of ptcore, got a {cls.__module__}.{cls.__qualname__}; "
                            "ptcore.from_dlpack(x) gives a tensor of ptcore over the same memory")


def refuse_function_of_others(function, args, kwargs):
    """Raises TypeError if PyTorch asks ``Tensor.__torch_function__`` about one of its own functions."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch, "Tensor", Tensor) is Tensor:
        return
    refuse_tensors_of_others(function.__name__, (*args, *kwargs.values()))
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or getattr(
        owner, "__name__", "")
    if module.partition(".")[0] == "torch":
        raise TypeError(f"{function.__name__}: a function of PyTorch got a tensor of ptcore; torch.from_dlpack(x) "
                        "gives a tensor of PyTorch over the same memory")


def answer(function, args, kwargs, relevant=None, plain=False):
    """The first result of the arguments' ``__torch_function__`` for a call; NotImplemented if none handles it.

    With `plain`, Tensor is among the types: PyTorch's functions in Python name it, those in C++ do not.
    """
    owners = overriding(flat((*args, *kwargs.values())) if relevant is None else relevant, plain)
    types = tuple(map(type, owners))
    owners = [x for x in owners if type(x) is not Tensor]
    if modes():
        result = ask_mode(function, args, kwargs, types)
        if result is not NotImplemented:
            return result
    if owners:
        refuse_tensors_of_others(function.__name__, owners)
    for x in owners:
        result = x.__torch_function__(function, types, tuple(args), kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


# Ops whose operands have an order -> the word of Python's operator.
_REFLECTED = {"sub": "sub", "div": "truediv", "floor_divide": "floordiv", "remainder": "mod", "pow": "pow",
              "matmul": "matmul", "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift"}


def answer_operator(name, x, y):
    """What ``__torch_function__`` of an operand that is no tensor answers to an operator; NotImplemented if it does not
    handle it, so that Python asks the operand's own operator.

    The function is that of the tensor, as in PyTorch: ``Tensor.add`` for both orders, and ``Tensor.__rsub__`` where the
    tensor stands on the right and the order matters.
    """
    if isinstance(x, Tensor):
        return answer(getattr(Tensor, name), (x, y), {})
    return answer(getattr(Tensor, f"__r{_REFLECTED[name]}__" if name in _REFLECTED else name), (y, x), {})


def ask(function, args, kwargs, relevant=None, plain=False):
    """``answer``, or TypeError if none handles the call."""
    result = answer(function, args, kwargs, relevant, plain)
    if result is not NotImplemented:
        return result
    types = tuple(map(type, overriding(flat((*args, *kwargs.values())) if relevant is None else relevant)))
    name = f"{function.__module__}.{function.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: "
                    f"{[cls.__name__ for cls in types]}")


def ask_mode(function, args, kwargs, types=None):
    """The result of the innermost mode for a call; inside, this mode is inactive."""
    if types is None and modes():
        types = tuple(map(type, overriding(flat((*args, *kwargs.values())))))
    return below_mode(function, types, tuple(args), kwargs)


class TorchFunctionMode(FunctionMode):
    """A context in which the mode's ``__torch_function__`` gets every op of this thread. Inside of it the mode is
    inactive, so it may call the op.

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
    """A mode that calls the function unchanged."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args):
    """Whether a value has an active ``__torch_function__``, or a mode is active."""
    return bool(modes()) or bool(overriding(relevant_args))


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Offers a call of ``public_api`` to ``__torch_function__`` of the relevant arguments.

    Raises
    ------
    TypeError
        If all of them answer NotImplemented.
    """
    return ask(public_api, args, kwargs, relevant_args, plain=True)


def wrap_torch_function(dispatcher):
    """Decorator of a function: ``dispatcher(*args, **kwargs)`` gives the arguments whose ``__torch_function__`` is
    called.

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


def typename(obj, /) -> str:
    """The name of an object's type with its module; for a tensor the name that `Tensor.type` gives.

    >>> import ptcore
    >>> ptcore.typename(ptcore.tensor([1, 2]))
    'ptcore.LongTensor'
    >>> ptcore.typename(ptcore.nn.Linear)
    'ptcore.nn.modules.linear.Linear'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", None) or ""
    return name if module in ("", "builtins") else f"{module}.{name}"
