"""Normalisation layers."""

import ptcore
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules._arguments import size
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["LayerNorm"]


class LayerNorm(Module):
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

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(size(self, "normalized_shape", n) for n in normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", True), ("bias", bias)):
            param = None
            if elementwise_affine and wanted:
                param = Parameter(
                    ptcore.empty(self.normalized_shape, device=device, dtype=dtype)
                )
            self.register_parameter(name, param)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

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
