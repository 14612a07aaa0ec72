"""Gradients of convolutions by their input and their weight, as functions."""
from ptcore._ops.functions import convolve_transposed, convolve_weight
from ptcore.nn.modules.conv import ntuple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

_DOC = """Gradient of ``conv{n}d`` by its {what}.

    Parameters
    ----------
    {first}
    grad_output : Tensor
        The gradient by the result.
    stride, padding, dilation : int or tuple of int
    groups : int

    Returns
    -------
    Tensor
        Of shape `{what}_size`.

    Examples
    --------
    >>> import ptcore
    >>> grad_output = ptcore.ones(1, 1, *[2] * {n})
    >>> ptcore.nn.grad.conv{n}d_{what}({example}, grad_output).flatten()
    tensor({result})
    """


def _gradients(n, of_input, of_weight):
    """The two functions for `n` spatial dims; the numbers are those of their examples."""
    def settings(stride, padding, dilation):
        return ntuple(stride, n), ntuple(padding, n), ntuple(dilation, n)

    def by_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return convolve_transposed(grad_output, weight, None, *settings(stride, padding, dilation), groups,
                                   tuple(input_size[2:]))

    def by_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return convolve_weight(input, grad_output, *settings(stride, padding, dilation), groups,
                               tuple(weight_size[2:]))

    sizes = "input_size : tuple of int\n        The shape of the input.\n    weight : Tensor"
    weight_sizes = "input : Tensor\n    weight_size : tuple of int\n        The shape of the weight."
    for function, what, first, example, result in (
            (by_input, "input", sizes, f"(1, 1, *[3] * {n}), ptcore.ones(1, 1, *[2] * {n})", of_input),
            (by_weight, "weight", weight_sizes, f"ptcore.ones(1, 1, *[3] * {n}), (1, 1, *[2] * {n})", of_weight)):
        function.__name__ = function.__qualname__ = f"conv{n}d_{what}"
        function.__doc__ = _DOC.format(n=n, what=what, first=first, example=example, result=result)
    return by_input, by_weight


conv1d_input, conv1d_weight = _gradients(1, "[1., 2., 1.]", "[2., 2.]")
conv2d_input, conv2d_weight = _gradients(2, "[1., 2., 1., 2., 4., 2., 1., 2., 1.]", "[4., 4., 4., 4.]")
conv3d_input, conv3d_weight = _gradients(
    3, """[1., 2., 1., 2., 4., 2., 1., 2., 1., 2., 4., 2., 4., 8., 4., 2., 4., 2.,
            1., 2., 1., 2., 4., 2., 1., 2., 1.]""", "[8., 8., 8., 8., 8., 8., 8., 8.]")
