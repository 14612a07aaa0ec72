"""Layers that move numbers between space and channels, or change the number of places."""

from ptcore.nn import functional as F
from ptcore.nn.modules._described import Described
from ptcore.nn.modules.module import Module

__all__ = [
    "ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d",
]


class Unfold(Described):
    """Windows of (N, C, H, W) as columns (N, C * kernel, windows).

    Parameters
    ----------
    kernel_size : int or tuple of int
    dilation, padding, stride : int or tuple of int

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Unfold(2)(ptcore.ones(1, 3, 4, 4)).shape
    ptcore.Size([1, 12, 9])
    """

    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input):
        """Take the windows of `input`."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Described):
    """Columns (N, C * kernel, windows) added up where the windows stand.

    Parameters
    ----------
    output_size, kernel_size : int or tuple of int
    dilation, padding, stride : int or tuple of int

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Fold(4, 2)(ptcore.ones(1, 12, 9)).shape
    ptcore.Size([1, 3, 4, 4])
    """

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input):
        """Add up the columns of `input`."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class PixelShuffle(Described):
    """(*, C * r**2, H, W) to (*, C, H * r, W * r).

    Parameters
    ----------
    upscale_factor : int

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.PixelShuffle(2)(ptcore.ones(1, 4, 2, 2)).shape
    ptcore.Size([1, 1, 4, 4])
    """

    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        """Move channels of `input` to space."""
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Described):
    """(*, C, H * r, W * r) to (*, C * r**2, H, W).

    Parameters
    ----------
    downscale_factor : int

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.PixelUnshuffle(2)(ptcore.ones(1, 1, 4, 4)).shape
    ptcore.Size([1, 4, 2, 2])
    """

    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        """Move space of `input` to channels."""
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Described):
    """Channels dealt out from groups.

    Parameters
    ----------
    groups : int

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.ChannelShuffle(2)(ptcore.arange(4).reshape(1, 4, 1)).flatten()
    tensor([0, 2, 1, 3])
    """

    _shown = ("groups",)

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        """Deal out the channels of `input`."""
        return F.channel_shuffle(input, self.groups)


class Upsample(Module):
    """Resample to other sizes; see `nn.functional.interpolate`.

    Parameters
    ----------
    size : int or tuple of int, optional
    scale_factor : float or tuple of float, optional
        One of the two must be given.
    mode : str, default: 'nearest'
    align_corners, recompute_scale_factor : bool, optional

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Upsample(scale_factor=2)(ptcore.ones(1, 1, 2, 3)).shape
    ptcore.Size([1, 1, 4, 6])
    """

    _torch_later = (("recompute_scale_factor", True),)

    def __init__(
        self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        """Resample `input`."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self):
        """The settings that determine the sizes, and the mode."""
        what = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resample (N, C, H, W), each number its nearest.

    Parameters
    ----------
    size : int or tuple of int, optional
    scale_factor : float or tuple of float, optional

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.UpsamplingNearest2d(4)(ptcore.ones(1, 1, 2, 3)).shape
    ptcore.Size([1, 1, 4, 4])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resample (N, C, H, W) bilinearly, the corners staying where they are.

    Parameters
    ----------
    size : int or tuple of int, optional
    scale_factor : float or tuple of float, optional

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.UpsamplingBilinear2d(4)(ptcore.ones(1, 1, 2, 3)).shape
    ptcore.Size([1, 1, 4, 4])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
