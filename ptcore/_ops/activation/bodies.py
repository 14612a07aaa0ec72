"""Bodies: activation functions of neural networks."""
from math import isfinite

from cython.cimports.ptcore._ops._common import divided_dim

from ptcore._errors import DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._ops import checked
from ptcore._ops.creation.creation import empty_like
from ptcore._ops.functions import (
    abs,
    clamp,
    clamp_,
    gated,
    hardtanh_of,
    hardtanh_of_,
    leaky_relu,
    prelu_of,
    reshape,
    rrelu_noise,
    softshrink_of,
    softsign_of,
    split_by_sizes,
    where,
)
from ptcore._ops.table.shapes import stat_dtype
from ptcore._random import draws_as_pytorch


# -- activations --------------------------------------------------------------------------------
def glu(input, dim):
    dim = divided_dim("glu", dim, input)
    n = input.shape[dim]
    if n % 2:
        raise RuntimeError(f"glu: the size of dim {dim} must be even, got {n}")
    return gated(*split_by_sizes(input, (n // 2, n // 2), dim))


def softsign(input):
    return input / (abs(input) + 1) if input.dtype.is_complex else softsign_of(input)


def softshrink(input, lambd):
    if lambd < 0:
        raise RuntimeError(f"softshrink: lambd must not be negative, got {lambd}")
    return softshrink_of(input, lambd)


def hardtanh(input, min_val, max_val, inplace):
    kind = input.dtype.kind
    if kind == "b":
        raise UnsupportedDTypeError("hardtanh: input must be numbers, got bool")
    for name, value in (("min_val", min_val), ("max_val", max_val)):
        if type(value) is complex:
            raise TypeError(f"hardtanh: {name} must be real, got {value}")
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val must not be above max_val, got {min_val} and {max_val}")
    if kind == "u" and min_val < 0:
        raise RuntimeError(f"hardtanh: min_val must not be negative for {input.dtype.name}, got {min_val}")
    if kind in "iu" and (type(min_val) is float or type(max_val) is float):
        for name, value in (("min_val", min_val), ("max_val", max_val)):
            if not isfinite(value):
                raise RuntimeError(f"hardtanh: {name} must be finite for {input.dtype.name}, got {value}")
        min_val, max_val = int(min_val), int(max_val)
    if kind == "u" or not min_val <= max_val:       # a NaN bound makes all elements NaN
        return clamp_(input, min_val, max_val) if inplace else clamp(input, min_val, max_val)
    return hardtanh_of_(input, min_val, max_val) if inplace else hardtanh_of(input, min_val, max_val)


def prelu(input, weight):
    if weight.ndim > 1 or (weight.numel() != 1 and (input.ndim < 2 or weight.numel() != input.shape[1])):
        raise ShapeError(f"prelu: weight must have one element or one for each channel (dim 1), got shapes "
                         f"{list(weight.shape)} and {list(input.shape)}")
    if weight.dtype is not input.dtype:
        raise DTypeError(f"prelu: weight must have the dtype {input.dtype.name} of input, got {weight.dtype.name}")
    shape = [1] * input.ndim
    if weight.numel() != 1:
        shape[1] = -1
    return prelu_of(input, reshape(weight, shape))


def _slopes(input, lower, upper):
    op = "rrelu"
    if input.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {input.dtype.name}")
    lower, upper = checked.real(op, "lower", lower), checked.real(op, "upper", upper)
    if lower > upper:
        raise RuntimeError(f"{op}: lower must not exceed upper, got {lower} and {upper}")
    return lower, upper


def rrelu(input, lower, upper, training, generator):
    lower, upper = _slopes(input, lower, upper)
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    if draws_as_pytorch(generator, input.device):
        wide = input.to(stat_dtype(input))
        return (wide * rrelu_noise(wide.detach(), lower, upper, generator)).to(input.dtype)
    slopes = empty_like(input).uniform_(lower, upper, generator=generator)
    return input * where(input > 0, 1, slopes)


def rrelu_function(input, lower, upper, training, inplace):
    if inplace and not training:                        # the derivative reads the result, not what was written to
        lower, upper = _slopes(input, lower, upper)
        return leaky_relu(input, (lower + upper) / 2, True)
    out = rrelu(input, lower, upper, training, None)
    return input.copy_(out) if inplace else out
