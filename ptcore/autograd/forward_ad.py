"""Forward mode: tensors with tangents, ``make_dual`` and ``unpack_dual`` inside a ``dual_level``.

Examples
--------
>>> import ptcore
>>> from ptcore.autograd import forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(ptcore.tensor(3.), ptcore.tensor(1.))
...     fwAD.unpack_dual(x * x).tangent
tensor(6.)
"""
import functools
from typing import NamedTuple

from ptcore._contexts import Nested
from ptcore._interpret import innermost
from ptcore._state import stack
from ptcore._tensor import Tensor
from ptcore.autograd.dual import Forward, check_tangent

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Level(Forward):
    """The interpreter of a level. When it ends, its tensors have no tangents and are plain again."""
    also = "dual levels"

    def __init__(self):
        super().__init__()
        self.stand_ins = []


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def _new_level():
    if stack("dual levels"):
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    return _Level()


def enter_dual_level():
    """Begins a level, in which tensors can have tangents; returns its number.

    Raises
    ------
    RuntimeError
        If one is entered inside another.
    """
    _new_level().__enter__()
    return 0


def exit_dual_level(*, level=None):
    """Ends the level that was entered last, and removes tangents from its tensors.

    Parameters
    ----------
    level : int, optional
        Its number.

    Raises
    ------
    RuntimeError
        If there is none, or ``level`` is not the last.
    """
    levels = stack("dual levels")
    if not levels or (level is not None and level != len(levels) - 1):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not "
                           "supported.")
    forward = levels[-1]
    if innermost() is not forward:
        raise RuntimeError("exit_dual_level: another transformation that was entered inside has not ended")
    forward.__exit__()


class dual_level(Nested):
    """Context manager and decorator of a level, in which tensors can have tangents.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     y = fwAD.make_dual(ptcore.tensor(0.), ptcore.tensor(1.)).sin()
    ...     fwAD.unpack_dual(y)
    UnpackedDualTensor(primal=tensor(0.), tangent=tensor(1.))
    """

    def __init__(self):
        super().__init__(_new_level, 0)

    def __call__(self, function):
        """The function with a level of its own in each call."""
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with dual_level():
                return function(*args, **kwargs)
        return wrapped


def _level_of(op, level):
    levels = stack("dual levels")
    if not levels or (level is not None and not 0 <= level < len(levels)):
        raise RuntimeError(f"{op}: forward AD is used outside of a dual level; use `with dual_level():` around it")
    return levels[-1]


def make_dual(tensor, tangent, *, level=None):
    """A tensor with the memory of ``tensor`` and the tangent ``tangent``; gradients go on to ``tensor``.

    Parameters
    ----------
    tensor : Tensor
        Of a floating or complex dtype.
    tangent : Tensor
        Of its shape and dtype.
    level : int, optional

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If there is no level, the tangent has another shape or dtype, or one of the two has a tangent already.
    ValueError
        If one of the two is of integers.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(ptcore.tensor(2.), ptcore.tensor(1.))
    ...     fwAD.unpack_dual(x ** 3).tangent
    tensor(12.)
    """
    forward = _level_of("make_dual", level)
    for name, x in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(x).__name__}")
    check_tangent(tensor, tangent)
    if forward.tangent(tangent) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level "
                           f"{len(stack('dual levels')) - 1} is not supported.")
    if forward.tangent(tensor) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
                           f"level {len(stack('dual levels')) - 1} is not supported.")
    value = forward.value(tensor)
    return forward.seen(value, forward.pair(value, forward.value(tangent)))


def unpack_dual(tensor, *, level=None):
    """The value and the tangent of a tensor, as a named tuple; the tangent is None if it has none.

    Parameters
    ----------
    tensor : Tensor
    level : int, optional
        Its number; below 0 no tensor has a tangent.

    Returns
    -------
    UnpackedDualTensor

    Raises
    ------
    RuntimeError
        If there is no such level.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.unpack_dual(ptcore.tensor(2.))
    UnpackedDualTensor(primal=tensor(2.), tangent=None)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    if (level is not None and level < 0) or not (level is not None or stack("dual levels")):
        return UnpackedDualTensor(tensor, None)
    forward = _level_of("unpack_dual", level)
    return UnpackedDualTensor(forward.value(tensor), forward.tangent(tensor))


def __getattr__(name):
    if name == "_current_level":        # PyTorch's variable, which programs read
        return len(stack("dual levels")) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
