"""Pooling layers: the functions of the same names with their settings kept."""

from ptcore.nn import functional as F
from ptcore.nn.modules._described import Described
from ptcore.nn.modules.conv import ntuple
from ptcore.nn.modules.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPool(Described):
    """Largest number of each window.

    Parameters
    ----------
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` unless given.
    padding, dilation : int or tuple of int
    return_indices : bool, default: False
        Also return where each number stood, for `MaxUnpool`.
    ceil_mode : bool, default: False
        Keep a last window that ends outside.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )


class _AvgPool1(Described):
    """Mean of each window.

    Parameters
    ----------
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` unless given.
    padding : int or tuple of int, default: 0
    ceil_mode : bool, default: False
        Keep a last window that ends outside.
    count_include_pad : bool, default: True
        Whether padding counts as zeros.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = ntuple(stride if stride is not None else kernel_size, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPool(Described):
    """Mean of each window.

    Parameters
    ----------
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` unless given.
    padding : int or tuple of int, default: 0
    ceil_mode : bool, default: False
        Keep a last window that ends outside.
    count_include_pad : bool, default: True
        Whether padding counts as zeros.
    divisor_override : int, optional
        The divisor of sums, in place of the size of a window.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    _torch_later = (("padding", 0), ("ceil_mode", False), ("count_include_pad", True), ("divisor_override", None))

    _shown = ("kernel_size", "stride", "padding")

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )


class _AdaptiveAvgPool(Described):
    """Mean of each of `output_size` windows that cover the input.

    Parameters
    ----------
    output_size : int, None or tuple of these
        None keeps a size.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    _shown = ("output_size",)

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(input, self.output_size)


class _AdaptiveMaxPool(Described):
    """Largest number of each of `output_size` windows that cover the input.

    Parameters
    ----------
    output_size : int, None or tuple of these
        None keeps a size.
    return_indices : bool, default: False
        Also return where each number stood.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    _shown = ("output_size",)

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(input, self.output_size, self.return_indices)


class _LPPool(Described):
    """``(sum of x**norm_type)**(1 / norm_type)`` of each window.

    Parameters
    ----------
    norm_type : float
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` unless given.
    ceil_mode : bool, default: False
        Keep a last window that ends outside.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2, 2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class _MaxUnpool(Described):
    """Numbers put back to where `MaxPool` found them, zeros elsewhere.

    Parameters
    ----------
    kernel_size : int or tuple of int
    stride : int or tuple of int, optional
        `kernel_size` unless given.
    padding : int or tuple of int, default: 0

    Examples
    --------
    >>> import ptcore
    >>> values, indices = ptcore.nn.{pool}(2, return_indices=True)(ptcore.ones({size}))
    >>> ptcore.nn.{name}(2)(values, indices).shape
    ptcore.Size([{size}])
    """

    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._n)
        self.stride = ntuple(stride if stride is not None else kernel_size, self._n)
        self.padding = ntuple(padding, self._n)

    def forward(self, input, indices, output_size=None):
        """Put `input` at `indices`."""
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Module):
    """Largest number of each of ``output_size`` windows that stand at random places.

    Parameters
    ----------
    kernel_size : int or tuple of int
    output_size : int or tuple of int, optional
    output_ratio : float or tuple of float, optional
        Exactly one of the two must be given; the ratio, in (0, 1), of the result's sizes to the input's.
    return_indices : bool, default: False
        Also return where each number stood, for `MaxUnpool`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2, output_ratio=0.5)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        name, n = type(self).__name__, self._n
        self.kernel_size = ntuple(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else ntuple(output_size, n)
        self.output_ratio = None if output_ratio is None else ntuple(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name}: requires specifying either an output size, or a pooling ratio, got None of both")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"{name}: only one of output_size and output_ratio may be specified, got {output_size} "
                             f"and {output_ratio}")
        if output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        """Pool `input`."""
        return type(self)._function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                              self._random_samples)


def _for_dims(word, function, base):
    """The classes for 1, 2 and 3 dimensions; the first is None where there is no such function."""
    def made(n):
        name = f"{word}{n}d"
        own = _AvgPool1 if name == "AvgPool1d" else base
        return type(name, (own,), {
            "_n": n, "_function": getattr(F, f"{function}{n}d"),
            "__module__": __name__, "__qualname__": name,
            "__doc__": (own.__doc__ or "").format(
                name=name, pool=f"MaxPool{n}d", size=", ".join(["1", "1"] + ["4"] * n),
                half=", ".join(["1", "1"] + ["2"] * n)),
        })
    return made(1) if hasattr(F, f"{function}1d") else None, made(2), made(3)


MaxPool1d, MaxPool2d, MaxPool3d = _for_dims("MaxPool", "max_pool", _MaxPool)
AvgPool1d, AvgPool2d, AvgPool3d = _for_dims("AvgPool", "avg_pool", _AvgPool)
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _for_dims(
    "AdaptiveAvgPool", "adaptive_avg_pool", _AdaptiveAvgPool)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _for_dims(
    "AdaptiveMaxPool", "adaptive_max_pool", _AdaptiveMaxPool)
LPPool1d, LPPool2d, LPPool3d = _for_dims("LPPool", "lp_pool", _LPPool)
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = _for_dims("MaxUnpool", "max_unpool", _MaxUnpool)
_, FractionalMaxPool2d, FractionalMaxPool3d = _for_dims("FractionalMaxPool", "fractional_max_pool", _FractionalMaxPool)
