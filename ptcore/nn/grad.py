"""Gradients of convolutions by their input and their weight, as functions."""
from ptcore._ops._functions_convolution import convolve_transposed, convolve_weight
from ptcore.nn.modules.conv import ntuple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _settings(n, stride, padding, dilation):
    return ntuple(stride, n), ntuple(padding, n), ntuple(dilation, n)


def _of_input(n, input_size, weight, grad_output, stride, padding, dilation, groups):
    stride, padding, dilation = _settings(n, stride, padding, dilation)
    return convolve_transposed(grad_output, weight, None, stride, padding, dilation, groups, tuple(input_size[2:]))


def _of_weight(n, input, weight_size, grad_output, stride, padding, dilation, groups):
    stride, padding, dilation = _settings(n, stride, padding, dilation)
    return convolve_weight(input, grad_output, stride, padding, dilation, groups, tuple(weight_size[2:]))


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of ``conv1d`` by an input of shape `input_size`; see :func:`conv2d_input`."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of ``conv1d`` by a weight of shape `weight_size`; see :func:`conv2d_weight`."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of ``conv2d`` by its input.

    Parameters
    ----------
    input_size : tuple of int
        The shape of the input.
    weight : Tensor
    grad_output : Tensor
        The gradient by the result.
    stride, padding, dilation : int or tuple of int
    groups : int

    Returns
    -------
    Tensor
        Of shape `input_size`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.grad.conv2d_input((1, 1, 3, 3), ptcore.ones(1, 1, 2, 2), ptcore.ones(1, 1, 2, 2))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of ``conv2d`` by its weight.

    Parameters
    ----------
    input : Tensor
    weight_size : tuple of int
        The shape of the weight.
    grad_output : Tensor
        The gradient by the result.
    stride, padding, dilation : int or tuple of int
    groups : int

    Returns
    -------
    Tensor
        Of shape `weight_size`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.grad.conv2d_weight(ptcore.ones(1, 1, 3, 3), (1, 1, 2, 2), ptcore.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of ``conv3d`` by an input of shape `input_size`; see :func:`conv2d_input`."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of ``conv3d`` by a weight of shape `weight_size`; see :func:`conv2d_weight`."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
