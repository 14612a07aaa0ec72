"""Base classes of small modules: their text, the call of one function, a weight of ones and a bias of zeros."""
import ptcore
from ptcore.nn import init
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter


class Described(Module):
    """A module that shows the attributes that `_shown` names."""

    _shown = ()

    def extra_repr(self):
        """The settings."""
        return ", ".join([f"{name}={getattr(self, name)!r}" for name in self._shown])


class Elementwise(Module):
    """A function of one tensor without settings: `_function`, which a subclass sets."""

    def forward(self, input):
        """Apply to `input`."""
        return type(self)._function(input)


class InPlace(Module):
    """A function of one tensor, `_function`, that may write into it. `_shown` are further settings."""

    _shown = ()

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        """Apply to `input`."""
        return type(self)._function(input, self.inplace)

    def extra_repr(self):
        """The settings; `inplace` where it is set."""
        settings = [f"{name}={getattr(self, name)!r}" for name in self._shown]
        return ", ".join([*settings, "inplace=True"] if self.inplace else settings)


class Scaled(Module):
    """A module with a weight of ones and a bias of zeros, or None in their place."""

    def _make_scale(self, shape, weight, bias, device, dtype):
        for name, wanted in (("weight", weight), ("bias", bias)):
            param = Parameter(ptcore.empty(shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, param)

    def reset_parameters(self):
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
