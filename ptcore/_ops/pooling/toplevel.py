"""Functions that PyTorch has at its top level as well, with arguments in another order."""
from ptcore._ops import functions
from ptcore._ops.call.offer import overridable
from ptcore._tensor import Tensor


@overridable
def adaptive_max_pool1d(input, output_size) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool1d`."""
    return functions.adaptive_max_pool1d(input, output_size, True)


@overridable
def max_pool1d_with_indices(input, kernel_size, stride=(), padding=0, dilation=1,
                            ceil_mode=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool1d`."""
    return functions.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode, True)
