"""Activation layers: each holds its options and calls the function of the
same meaning in :mod:`ptcore.nn.functional`."""

from ptcore.nn import functional as F
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules._described import Described, Elementwise, InPlace
from ptcore.nn.modules.module import Module

__all__ = [
    "ELU",
    "GELU",
    "GLU",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softsign",
    "Tanh",
]


class ReLU(InPlace):
    """``max(x, 0)``, elementwise.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.ReLU()(ptcore.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def forward(self, input):
        """Apply to `input`."""
        # Without the flag the call is a third faster.
        return F.relu(input, True) if self.inplace else F.relu(input)


class SiLU(InPlace):
    """``x * sigmoid(x)``, elementwise.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.SiLU()(ptcore.zeros(2)).tolist()
    [0.0, 0.0]
    """

    _function = F.silu


class Mish(InPlace):
    """``x * tanh(log(1 + exp(x)))``, elementwise.

    Parameters
    ----------
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Mish()(ptcore.zeros(2)).tolist()
    [0.0, 0.0]
    """

    _function = F.mish


class LogSigmoid(Elementwise):
    """``-log(1 + exp(-x))``, elementwise.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.LogSigmoid()(ptcore.tensor([0.0])).exp().tolist()
    [0.5]
    """

    _function = F.logsigmoid


class Softsign(Elementwise):
    """``x / (1 + |x|)``, elementwise.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Softsign()(ptcore.tensor([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """

    _function = F.softsign


class GLU(Described):
    """The first half along a dim times the sigmoid of the second.

    Parameters
    ----------
    dim : int, default: -1
        The dim that is halved.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.GLU()(ptcore.tensor([4.0, 0.0])).tolist()
    [2.0]
    """

    _shown = ("dim",)

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        """Apply to `input`."""
        return F.glu(input, self.dim)


class GELU(Described):
    """``x * Phi(x)``, Phi the normal distribution function, elementwise.

    Parameters
    ----------
    approximate : {'none', 'tanh'}, default: 'none'
        Whether to use the approximation by tanh.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.GELU()(ptcore.zeros(2)).tolist()
    [0.0, 0.0]
    """

    _torch_later = (("approximate", "none"),)

    _shown = ("approximate",)

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        """Apply to `input`."""
        return F.gelu(input, approximate=self.approximate)


class Tanh(Elementwise):
    """Hyperbolic tangent, elementwise.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Tanh()(ptcore.zeros(2)).tolist()
    [0.0, 0.0]
    """

    _function = F.tanh


class Sigmoid(Elementwise):
    """``1 / (1 + exp(-x))``, elementwise.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Sigmoid()(ptcore.zeros(2)).tolist()
    [0.5, 0.5]
    """

    _function = F.sigmoid


class LeakyReLU(InPlace):
    """``x`` where positive, else ``negative_slope * x``, elementwise.

    Parameters
    ----------
    negative_slope : float, default: 0.01
        Slope for negative inputs.
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.LeakyReLU(0.5)(ptcore.tensor([-2.0, 3.0])).tolist()
    [-1.0, 3.0]
    """

    _shown = ("negative_slope",)

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input):
        """Apply to `input`."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(InPlace):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``, elementwise.

    Parameters
    ----------
    alpha : float, default: 1.0
        Limit at minus infinity, negated.
    inplace : bool, default: False
        Whether to write into the input.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.ELU()(ptcore.tensor([0.0, 3.0])).tolist()
    [0.0, 3.0]
    """

    _shown = ("alpha",)

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input):
        """Apply to `input`."""
        return F.elu(input, self.alpha, self.inplace)


class Softplus(Described):
    """``log(1 + exp(beta * x)) / beta``, elementwise.

    Parameters
    ----------
    beta : float, default: 1.0
        Sharpness.
    threshold : float, default: 20.0
        The input is returned where ``beta * x`` is larger.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Softplus()(ptcore.tensor([30.0])).tolist()
    [30.0]
    """

    _shown = ("beta", "threshold")

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        """Apply to `input`."""
        return F.softplus(input, self.beta, self.threshold)


class _AlongDim(Described):
    """Option `dim`; where it is None the function warns and chooses one."""

    _torch_later = (("dim", None),)

    _shown = ("dim",)

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim


class Softmax(_AlongDim):
    """``exp(x) / sum(exp(x))`` along a dimension.

    Parameters
    ----------
    dim : int, optional
        Dimension that sums to one.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Softmax(dim=0)(ptcore.zeros(2)).tolist()
    [0.5, 0.5]
    """

    def forward(self, input):
        """Apply to `input`."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """Logarithm of the softmax along a dimension.

    Parameters
    ----------
    dim : int, optional
        Dimension along which the exponentials sum to one.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.LogSoftmax(dim=0)(ptcore.zeros(1)).tolist()
    [0.0]
    """

    def forward(self, input):
        """Apply to `input`."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """``softmax(-x)`` along a dim.

    Parameters
    ----------
    dim : int
        The dim whose values add up to 1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Softmin(dim=0)(ptcore.zeros(2)).tolist()
    [0.5, 0.5]
    """

    def forward(self, input):
        """Apply to `input`."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of ``(N, C, H, W)`` or ``(C, H, W)`` at each position.

    Raises
    ------
    ValueError
        If the input has another number of dimensions.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Softmax2d()(ptcore.zeros(1, 4, 2, 2)).unique().tolist()
    [0.25]
    """

    def forward(self, input):
        """Apply to `input`."""
        need_tensor(self, "input", input)
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=5)
