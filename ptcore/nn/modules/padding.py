"""Padding layers: `nn.functional.pad` with its settings kept."""

from ptcore.nn import functional as F
from ptcore.nn.modules.conv import ntuple
from ptcore.nn.modules.module import Module

__all__ = []


class _Pad(Module):
    """{what}

    Parameters
    ----------
    padding : int or tuple of int
        One number for all ends, or pairs (before, after), that of the last dim first.

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


class _ConstantPad(Module):
    """{what}

    Parameters
    ----------
    padding : int or tuple of int
        One number for all ends, or pairs (before, after), that of the last dim first.
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


for _word, _base, _mode, _what in (
    ("ConstantPad", _ConstantPad, "constant", "A number around the input."),
    ("ZeroPad", _ZeroPad, "constant", "Zeros around the input."),
    ("ReflectionPad", _Pad, "reflect", "The input mirrored at its ends, without the edge."),
    ("ReplicationPad", _Pad, "replicate", "The edge of the input again and again."),
    ("CircularPad", _Pad, "circular", "The input's other end at each end."),
):
    for _n in (1, 2, 3):
        _name = f"{_word}{_n}d"
        globals()[_name] = type(_name, (_base,), {
            "_n": _n, "_mode": _mode, "__module__": __name__, "__qualname__": _name,
            "__doc__": _base.__doc__.format(
                what=_what, name=_name, size=", ".join(["1", "1"] + ["3"] * _n),
                more=", ".join(["1", "1"] + ["5"] * _n)),
        })
        __all__.append(_name)
