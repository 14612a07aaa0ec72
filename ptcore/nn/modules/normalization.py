"""Normalisation layers."""

import ptcore
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules._checks import need_tensor, size
from ptcore.nn.modules._described import Scaled
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LayerNorm(Scaled):
    """Normalise over the last dimensions, then scale and shift.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        Sizes of the last dimensions.
    eps : float, default: 1e-5
        Added to the variance.
    elementwise_affine : bool, default: True
        Whether to learn `weight` (ones at first) and `bias` (zeros at first).
    bias : bool, default: True
        Whether to learn a bias; only with `elementwise_affine`.
    device, dtype : optional
        Of the parameters.

    Notes
    -----
    ``y = (x - mean) / sqrt(var + eps) * weight + bias`` with the biased variance.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.LayerNorm(4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(size(self, "normalized_shape", n) for n in normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_scale(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        """Normalise `input`."""
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self):
        """Shape and options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Scaled):
    """Normalise groups of channels of each sample, then scale and shift each channel.

    Parameters
    ----------
    num_groups : int
        A divisor of `num_channels`.
    num_channels : int
        The number of channels, C.
    eps : float, default: 1e-5
        Added to the variance.
    affine : bool, default: True
        Whether to learn `weight` (ones at first) and `bias` (zeros at first).
    device, dtype : optional
        Of the parameters.
    bias : bool, default: True
        Whether to learn a bias; only with `affine`.

    Raises
    ------
    ValueError
        If `num_groups` does not divide `num_channels`.

    Notes
    -----
    Input of shape ``(N, C, ...)``.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.GroupNorm(2, 4)
    >>> layer
    GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)
    >>> layer(ptcore.randn(3, 4, 5)).shape
    ptcore.Size([3, 4, 5])
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_groups == 0:
            raise ValueError("GroupNorm: num_groups must be positive, got 0")
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_scale(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input):
        """Normalise `input`."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        """The options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root mean square over the last dimensions, then scale.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        Sizes of the last dimensions.
    eps : float, optional
        Added to the mean square; the dtype's epsilon if None.
    elementwise_affine : bool, default: True
        Whether to learn `weight` (ones at first).
    device, dtype : optional
        Of the parameter.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.RMSNorm(4)
    >>> layer
    RMSNorm((4,), eps=None, elementwise_affine=True)
    >>> layer(ptcore.tensor([3., 4., 0., 0.])).tolist()[2:]
    [0.0, 0.0]
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(ptcore.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x):
        """Normalise `x`."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        """Shape and options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class _NeighbourNorm(Module):
    """The options of normalisation over neighbouring channels."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self):
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_NeighbourNorm):
    """Divide by a power of the mean square of neighbouring channels.

    Parameters
    ----------
    size : int
        The number of neighbouring channels.
    alpha : float, default: 1e-4
    beta : float, default: 0.75
    k : float, default: 1

    Notes
    -----
    ``y = x / (k + alpha * mean(x**2)) ** beta``; input of shape ``(N, C, L, ...)``.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.LocalResponseNorm(2)
    >>> layer
    LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)
    >>> layer(ptcore.zeros(1, 3, 2)).shape
    ptcore.Size([1, 3, 2])
    """

    def forward(self, input):
        """Normalise `input`."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_NeighbourNorm):
    """Divide by a power of the mean square of neighbouring channels, as LuaTorch did.

    Parameters
    ----------
    size : int
        The number of neighbouring channels.
    alpha : float, default: 1e-4
    beta : float, default: 0.75
    k : float, default: 1

    Notes
    -----
    Input of shape ``(N, C, H, W)``. The results are PyTorch's, whose window never drops channel 0: its square still
    counts from channel ``(size - 1) // 2 + 1`` on. The gradient is the derivative of this function, unlike PyTorch's.
    :class:`LocalResponseNorm` has the intended window.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.CrossMapLRN2d(3)
    >>> layer
    CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)
    >>> layer(ptcore.zeros(1, 3, 2, 2)).shape
    ptcore.Size([1, 3, 2, 2])
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        """Normalise `input`."""
        need_tensor(self, "input", input)
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        if isinstance(self.size, (int, float)) and not self.size > 0:
            raise ValueError(f"CrossMapLRN2d: size must be positive, got {self.size}")
        reach, channels = int((self.size - 1) / 2 + 1), input.shape[1]
        inside = [[float(i < c + reach and (i == 0 or i > c - reach)) for i in range(channels)]
                  for c in range(channels)]
        window = ptcore.tensor(inside, dtype=input.dtype, device=input.device).reshape(channels, channels, 1, 1)
        scale = F.conv2d(input * input, window) * (self.alpha / self.size) + self.k
        return input * scale ** -self.beta
