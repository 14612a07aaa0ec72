"""Pooling that returns positions by its name."""
from ptcore._ops import functions as _own
from ptcore._ops.call.offer import overridable
from ptcore._tensor import Tensor


@overridable
def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool1d`."""
    return _own.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@overridable
def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool2d`."""
    return _own.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@overridable
def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                            return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool3d`."""
    return _own.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


@overridable
def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool1d`."""
    return _own.adaptive_max_pool1d(input, output_size, True)


@overridable
def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool2d`."""
    return _own.adaptive_max_pool2d(input, output_size, True)


@overridable
def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool3d`."""
    return _own.adaptive_max_pool3d(input, output_size, True)
