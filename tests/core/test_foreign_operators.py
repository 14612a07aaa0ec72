"""Operators between tensors and objects that are no tensors but have a ``__torch_function__``."""
import operator

import pytest

import ptcore as pt
from ptcore.compat.torch import _C

pytestmark = pytest.mark.core


class Seen:
    """Answers every call with the function's name and the kinds of the arguments."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [type(x).__name__ for x in args]


class Silent:
    """Handles nothing."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Own(Silent):
    def __radd__(self, other):
        return "own"

    def __eq__(self, other):
        return "own"

    __hash__ = None


# Python's operator -> the functions of PyTorch for ``tensor o other`` and for ``other o tensor``
NAMES = {
    "add": ("add", "add"), "sub": ("sub", "__rsub__"), "mul": ("mul", "mul"), "truediv": ("div", "__rtruediv__"),
    "floordiv": ("floor_divide", "__rfloordiv__"), "mod": ("remainder", "__rmod__"), "pow": ("pow", "__rpow__"),
    "matmul": ("matmul", "__rmatmul__"), "and_": ("bitwise_and",) * 2, "or_": ("bitwise_or",) * 2,
    "xor": ("bitwise_xor",) * 2, "lshift": ("bitwise_left_shift", "__rlshift__"),
    "rshift": ("bitwise_right_shift", "__rrshift__"), "eq": ("eq", "eq"), "ne": ("ne", "ne"), "lt": ("lt", "gt"),
    "le": ("le", "ge"), "gt": ("gt", "lt"), "ge": ("ge", "le"),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_object_is_asked(name):
    x, f = pt.ones(2, 2, dtype=pt.int64), getattr(operator, name)
    left, right = NAMES[name]
    assert f(x, Seen()) == (left, ["Tensor", "Seen"])
    assert f(Seen(), x) == (right, ["Tensor", "Seen"])


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor"])
def test_the_object_is_asked_in_place(name):
    got, kinds = getattr(operator, name)(pt.ones(2, dtype=pt.int64), Seen())
    assert got.endswith("_") and kinds == ["Tensor", "Seen"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("eq", "ne")])
def test_an_object_that_handles_nothing(name):
    x, f = pt.ones(2, 2, dtype=pt.int64), getattr(operator, name)
    for args in ((x, Silent()), (Silent(), x)):
        with pytest.raises(TypeError, match=r"not supported between|unsupported operand"):
            f(*args)


def test_an_object_that_handles_nothing_has_its_own_operators():
    x = pt.ones(2)
    assert x + Own() == "own" and (x == Own()) == "own"
    assert (x == Silent()) is False and (x != Silent()) is True


def test_what_the_function_does():
    """A wrapper's function runs on what it wraps, in both orders."""

    class Wrapper:
        def __init__(self, x):
            self.x = x

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*[a.x if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    x, y = pt.tensor([1.0, 2.0]), pt.tensor([4.0, 8.0])
    assert (x - Wrapper(y)).tolist() == [-3, -6] and (Wrapper(y) - x).tolist() == [3, 6]
    assert (Wrapper(y) / x).tolist() == [4, 4] and (Wrapper(y) ** x).tolist() == [4, 64]
    assert (Wrapper(y) < x).tolist() == [False, False] and (x @ Wrapper(y)).item() == 20
    x += Wrapper(y)
    assert x.tolist() == [5, 10]


def test_a_context_in_which_subclasses_are_not_asked():
    class Logged(pt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    seen = []
    x = pt.ones(2).as_subclass(Logged)
    assert type(x + 1) is pt.Tensor and seen == ["add"]
    with pytest.raises(ZeroDivisionError), _C.DisableTorchFunctionSubclass():
        raise ZeroDivisionError
    assert type(x * 2) is pt.Tensor and seen == ["add", "mul"]
