"""Padding layers: `nn.functional.pad` with its settings kept."""

from ptcore._errors import ShapeError
from ptcore.nn import functional as F
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules.conv import ntuple
from ptcore.nn.modules.module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """{what}

    Parameters
    ----------
    padding : int or tuple of int
        One number for all ends, or pairs (before, after), beginning with the last dim.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(1)(ptcore.ones({size})).shape
    ptcore.Size([{more}])
    """

    def __init__(self, padding):
        super().__init__()
        self.padding = ntuple(padding, 2 * self._n)

    def forward(self, input):
        """Pad `input`."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        """The padding."""
        return f"{self.padding}"


class _CircularPad(_Pad):
    __doc__ = _Pad.__doc__

    def forward(self, input):
        """Pad `input`."""
        need_tensor(self, "input", input)
        if input.ndim not in (self._n + 1, self._n + 2):
            raise ShapeError(f"{type(self).__name__}: expected {self._n + 1}D or {self._n + 2}D input "
                             f"(got {input.ndim}D input)")
        return super().forward(input)


class _ConstantPad(Module):
    """{what}

    Parameters
    ----------
    padding : int or tuple of int
        One number for all ends, or pairs (before, after), beginning with the last dim.
    value : float

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(1, 0.5)(ptcore.ones({size})).shape
    ptcore.Size([{more}])
    """

    def __init__(self, padding, value):
        super().__init__()
        self.padding = ntuple(padding, 2 * self._n)
        self.value = value

    def forward(self, input):
        """Pad `input`."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        """Padding and value."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    __doc__ = _Pad.__doc__

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The padding."""
        return f"{self.padding}"


def _for_dims(word, base, mode, what):
    """The classes for 1, 2 and 3 dimensions."""
    def made(n):
        name = f"{word}{n}d"
        return type(name, (base,), {
            "_n": n, "_mode": mode, "__module__": __name__, "__qualname__": name,
            "__doc__": (base.__doc__ or "").format(
                what=what, name=name, size=", ".join(["1", "1"] + ["3"] * n),
                more=", ".join(["1", "1"] + ["5"] * n)),
        })
    return made(1), made(2), made(3)


ConstantPad1d, ConstantPad2d, ConstantPad3d = _for_dims(
    "ConstantPad", _ConstantPad, "constant", "A number around the input.")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _for_dims("ZeroPad", _ZeroPad, "constant", "Zeros around the input.")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _for_dims(
    "ReflectionPad", _Pad, "reflect", "The input mirrored at its ends, without the edge.")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _for_dims(
    "ReplicationPad", _Pad, "replicate", "The edge of the input again and again.")
CircularPad1d, CircularPad2d, CircularPad3d = _for_dims(
    "CircularPad", _CircularPad, "circular", "The input's other end at each end.")
