"""Identity and the affine layer."""

import math

import ptcore
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules._checks import size
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Return the input; all arguments of the constructor are ignored."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        """Return `input`."""
        return input


class Linear(Module):
    """Affine map ``y = x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dimension of input and output.
    bias : bool, default: True
        Whether to add a bias.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,), or None
        Both start uniform in ``[-k, k]`` with ``k = in_features ** -0.5``.

    Notes
    -----
    Input ``(*, in_features)``, output ``(*, out_features)``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Linear(4, 3)(ptcore.ones(2, 4)).shape
    ptcore.Size([2, 3])
    """

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = size(self, "in_features", in_features)
        self.out_features = size(self, "out_features", out_features)
        self.weight = Parameter(
            ptcore.empty((self.out_features, self.in_features), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(
                ptcore.empty(self.out_features, device=device, dtype=dtype)
            )
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the initial values again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        """Apply the map to the last dimension of `input`."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        """The sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under another name: PyTorch's class of attention's output projection, as it prints."""


class Bilinear(Module):
    """Bilinear map of two inputs: ``y[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Sizes of the last dimension of the inputs and the output.
    bias : bool, default: True
        Whether to add a bias.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in1_features, in2_features)
    bias : Parameter, shape (out_features,), or None
        Both start uniform in ``[-k, k]`` with ``k = in1_features ** -0.5``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Bilinear(4, 3, 2)(ptcore.ones(5, 4), ptcore.ones(5, 3)).shape
    ptcore.Size([5, 2])
    """

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in1_features = size(self, "in1_features", in1_features)
        self.in2_features = size(self, "in2_features", in2_features)
        self.out_features = size(self, "out_features", out_features)
        if self.in1_features == 0:
            raise ValueError("Bilinear: in1_features must be positive, got 0")
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.weight = Parameter(ptcore.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ptcore.empty(self.out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the initial values again."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        """Apply the map to the last dimensions."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        """The sizes."""
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")
