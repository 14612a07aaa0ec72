"""The older names of interpolation."""
from ptcore._ops import functions as _own


def _warn(name):
    import warnings
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of :func:`ptcore.nn.functional.interpolate`."""
    _warn("upsample")
    return _own.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """:func:`ptcore.nn.functional.interpolate` by the nearest element."""
    _warn("upsample_nearest")
    return _own.interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """:func:`ptcore.nn.functional.interpolate` by lines, with aligned corners."""
    _warn("upsample_bilinear")
    return _own.interpolate(input, size, scale_factor, "bilinear", True)
