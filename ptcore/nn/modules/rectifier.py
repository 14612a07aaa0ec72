"""Piecewise activation layers."""

import ptcore
from ptcore.nn import functional as F
from ptcore.nn import init as fill
from ptcore.nn.modules._described import Described, Elementwise, InPlace
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = [
    "CELU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "PReLU",
    "RReLU",
    "ReLU6",
    "Softshrink",
    "Tanhshrink",
    "Threshold",
]


class CELU(InPlace):
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``, elementwise.

    Parameters
    ----------
    alpha : float, default: 1.0
        The limit at minus infinity is ``-alpha``.
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.CELU()(ptcore.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    _shown = ("alpha",)

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        """Apply to `input`."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(InPlace):
    """``1.0507 * elu(x, 1.6733)``, which keeps mean 0 and variance 1 from layer to layer.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.SELU()(ptcore.zeros(2)).tolist()
    [0.0, 0.0]
    """

    _function = F.selu


class Hardtanh(InPlace):
    """The input between two limits, elementwise.

    Parameters
    ----------
    min_val : float, default: -1.0
        The lower limit.
    max_val : float, default: 1.0
        The upper limit.
    inplace : bool, default: False
        Whether to write into the input.
    min_value, max_value : float, optional
        Older names of the limits.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Hardtanh()(ptcore.tensor([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    _shown = ("min_val", "max_val")

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__(inplace)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise ValueError(
                f"Hardtanh: max_val must be larger than min_val, got {self.max_val} and {self.min_val}"
            )

    def forward(self, input):
        """Apply to `input`."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)``, elementwise.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.ReLU6()(ptcore.tensor([-1.0, 8.0])).tolist()
    [0.0, 6.0]
    """

    _shown = ()

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)


class Hardsigmoid(InPlace):
    """``min(max(x + 3, 0), 6) / 6``, elementwise.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Hardsigmoid()(ptcore.tensor([-3.0, 0.0])).tolist()
    [0.0, 0.5]
    """

    _function = F.hardsigmoid

    def extra_repr(self):
        """Nothing, as in PyTorch."""
        return ""


class Hardswish(InPlace):
    """``x * min(max(x + 3, 0), 6) / 6``, elementwise.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Hardswish()(ptcore.tensor([-3.0, 3.0])).tolist()
    [-0.0, 3.0]
    """

    _function = F.hardswish

    def extra_repr(self):
        """Nothing, as in PyTorch."""
        return ""


class Hardshrink(Module):
    """The input where it is farther from 0 than `lambd`, else 0.

    Parameters
    ----------
    lambd : float, default: 0.5
        The distance.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Hardshrink()(ptcore.tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        """Apply to `input`."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        """The options."""
        return f"{self.lambd}"


class Softshrink(Module):
    """The input moved towards 0 by `lambd`, and 0 where it is nearer.

    Parameters
    ----------
    lambd : float, default: 0.5
        The distance.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Softshrink()(ptcore.tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        """Apply to `input`."""
        return F.softshrink(input, self.lambd)

    def extra_repr(self):
        """The options."""
        return str(self.lambd)


class Tanhshrink(Elementwise):
    """``x - tanh(x)``, elementwise.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Tanhshrink()(ptcore.zeros(2)).tolist()
    [0.0, 0.0]
    """

    _function = F.tanhshrink


class Threshold(InPlace):
    """The input where it is above a threshold, else a value.

    Parameters
    ----------
    threshold : float
        The threshold.
    value : float
        The value of the other elements.
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Threshold(0.5, -1.0)(ptcore.tensor([0.25, 2.0])).tolist()
    [-1.0, 2.0]
    """

    _shown = ("threshold", "value")

    def __init__(self, threshold, value, inplace=False):
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input):
        """Apply to `input`."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(InPlace):
    """The input, where it is negative times a random slope while training.

    Parameters
    ----------
    lower, upper : float, default: 1/8, 1/3
        The slopes are uniform between them; in evaluation mode their mean is the slope.
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.RReLU(0.25, 0.75).eval()(ptcore.tensor([-2.0, 3.0])).tolist()
    [-1.0, 3.0]
    """

    _shown = ("lower", "upper")

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input):
        """Apply to `input`."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Described):
    """The input, where it is negative times a learned slope.

    Parameters
    ----------
    num_parameters : int, default: 1
        One slope for all channels, or one for each.
    init : float, default: 0.25
        The first value of the slopes.
    device, dtype : optional
        Of the parameter.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.PReLU()(ptcore.tensor([-2.0, 3.0])).tolist()
    [-0.5, 3.0]
    """

    _shown = ("num_parameters",)

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(ptcore.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set the slopes to their first value."""
        fill.constant_(self.weight, self.init)

    def forward(self, input):
        """Apply to `input`."""
        return F.prelu(input, self.weight)
