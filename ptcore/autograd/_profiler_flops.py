"""Floating point operations of a call from the shapes of its arguments, counted as PyTorch's profiler does."""
from math import prod

# Number of dims of the windows.
_CONVOLUTIONS = {f"aten::conv{n}d": n for n in (1, 2, 3)}
# Positions of the two matrices.
_PRODUCTS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::baddbmm": (1, 2)}
_EACH = ("aten::mul", "aten::add")


def flops_of(name, shapes, values, keywords):
    """The number of operations of a call; 0 for ops that are not counted.

    Parameters
    ----------
    name : str
    shapes, values : list
        Of each argument.
    keywords : tuple of str
        The names of the last arguments.
    """
    try:
        if name in _PRODUCTS:
            first, second = (shapes[k] for k in _PRODUCTS[name])
            return 2 * prod(first) * second[-1]
        if name == "aten::linear":
            return 2 * prod(shapes[0]) * shapes[1][0]
        if name in _CONVOLUTIONS:
            return _of_convolution(_CONVOLUTIONS[name], shapes, values, keywords)
        if name in _EACH:
            return prod(shapes[0]) if shapes and shapes[0] else 0
    except (IndexError, TypeError, ZeroDivisionError):      # the call failed, or has other arguments
        return 0
    return 0


def _of_convolution(dims, shapes, values, keywords):
    positional = len(shapes) - len(keywords)
    given = dict(zip(("input", "weight", "bias", "stride", "padding", "dilation", "groups"), range(positional)))
    given.update(zip(keywords, range(positional, len(shapes))))
    input, weight = shapes[given["input"]], shapes[given["weight"]]

    def each(name, default):
        value = values[given[name]] if name in given else default
        return list(value) if isinstance(value, list) else [value] * dims
    strides, padding, dilation = each("stride", 1), each("padding", 0), each("dilation", 1)
    kernel = weight[2:]
    sizes = [(input[len(input) - dims + d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // strides[d] + 1
             for d in range(dims)]
    batch = input[0] if len(input) == dims + 2 else 1
    return 2 * batch * prod(sizes) * prod(kernel) * weight[1] * weight[0]
