"""Pooling layers: the functions of the same names with their settings kept."""

from ptcore.nn import functional as F
from ptcore.nn.modules.conv import ntuple
from ptcore.nn.modules.module import Module

__all__ = []


class _MaxPool(Module):
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
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self):
        """The settings."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _AvgPool1(Module):
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

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = ntuple(stride if stride is not None else kernel_size, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        """Pool `input`."""
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self):
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
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
        What sums are divided by, in place of the size of a window.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2)(ptcore.ones({size})).shape
    ptcore.Size([{half}])
    """

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
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self):
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveAvgPool(Module):
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

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        """Pool `input`."""
        return self._function(input, self.output_size)

    def extra_repr(self):
        """The size."""
        return f"output_size={self.output_size}"


class _AdaptiveMaxPool(Module):
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

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        """Pool `input`."""
        return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self):
        """The size."""
        return f"output_size={self.output_size}"


class _LPPool(Module):
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

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        """Pool `input`."""
        return self._function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self):
        """The settings."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(Module):
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

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._n)
        self.stride = ntuple(stride if stride is not None else kernel_size, self._n)
        self.padding = ntuple(padding, self._n)

    def forward(self, input, indices, output_size=None):
        """Put `input` at `indices`."""
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


for _word, _function, _base in (
    ("MaxPool", "max_pool", _MaxPool), ("AvgPool", "avg_pool", _AvgPool),
    ("AdaptiveAvgPool", "adaptive_avg_pool", _AdaptiveAvgPool),
    ("AdaptiveMaxPool", "adaptive_max_pool", _AdaptiveMaxPool), ("LPPool", "lp_pool", _LPPool),
    ("MaxUnpool", "max_unpool", _MaxUnpool),
):
    for _n in (1, 2, 3):
        _name = f"{_word}{_n}d"
        _of = _AvgPool1 if _name == "AvgPool1d" else _base
        globals()[_name] = type(_name, (_of,), {
            "_n": _n, "_function": staticmethod(getattr(F, f"{_function}{_n}d")),
            "__module__": __name__, "__qualname__": _name,
            "__doc__": _of.__doc__.format(
                name=_name, pool=f"MaxPool{_n}d", size=", ".join(["1", "1"] + ["4"] * _n),
                half=", ".join(["1", "1"] + ["2"] * _n)),
        })
        __all__.append(_name)
