"""Functions of nn.functional that are others under fixed options, most of them of PyTorch's first years."""
from ptcore import _public
from ptcore._tensor import Tensor

__all__ = ["adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
           "conv_tbc", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
           "rrelu_", "upsample", "upsample_bilinear", "upsample_nearest"]

_own = _public["nn.functional"]


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool1d`."""
    return _own["max_pool1d"](input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool2d`."""
    return _own["max_pool2d"](input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool3d`."""
    return _own["max_pool3d"](input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool1d`."""
    return _own["adaptive_max_pool1d"](input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool2d`."""
    return _own["adaptive_max_pool2d"](input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool3d`."""
    return _own["adaptive_max_pool3d"](input, output_size, True)


def rrelu_(input, lower=0.125, upper=0.3333333333333333, training=False):
    """:func:`ptcore.nn.functional.rrelu` in place."""
    return _own["rrelu"](input, lower, upper, training, True)


def conv_tbc(input, weight, bias, pad=0):
    """Convolution of ``(time, batch, channels)`` with a weight ``(time, in, out)``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.conv_tbc(ptcore.ones(5, 1, 2), ptcore.ones(3, 2, 4), ptcore.zeros(4)).shape
    ptcore.Size([3, 1, 4])
    """
    for name, x in (("input", input), ("weight", weight)):
        if x.ndim != 3:
            raise RuntimeError(f"conv_tbc: {name} must have 3 dimensions, got shape {list(x.shape)}")
    return _own["conv1d"](input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def _warn(name):
    import warnings
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of :func:`ptcore.nn.functional.interpolate`."""
    _warn("upsample")
    return _own["interpolate"](input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """:func:`ptcore.nn.functional.interpolate` by the nearest element."""
    _warn("upsample_nearest")
    return _own["interpolate"](input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """:func:`ptcore.nn.functional.interpolate` by lines, with aligned corners."""
    _warn("upsample_bilinear")
    return _own["interpolate"](input, size, scale_factor, "bilinear", True)
