"""Normalisation as functions of smaller ops; see decompositions.py."""
import math

from ptcore._ops.functions import abs, expand, masked_fill, reshape, rsqrt, squeeze, unsqueeze, where
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.table.shapes import stat_dtype

# Per itemsize: where the squares of numbers are taken of smaller ones, by powers of two that change no digit.
_FAR = {4: ((2.0**20, 2.0**-40), (2.0**70, 2.0**-100)), 8: ((2.0**100, 2.0**-300), (2.0**500, 2.0**-700))}


def inverse_root(x, dims, eps):
    """``1 / sqrt(mean(x * x) + eps)`` over dims that are kept, as a power of two and the rest, whose squares, cubes and
    derivatives stay in the range of the dtype."""
    size = mean_of(abs(x.detach()), dims, True)
    scale = masked_fill(size, size <= _FAR[size.dtype.itemsize][0][0], 1)
    for limit, power in _FAR[size.dtype.itemsize]:
        scale = masked_fill(scale, size > limit, power)
    x = x * scale
    return scale, rsqrt(mean_of(x * x, dims, True) + scale * eps * scale)


def layer_norm_stats(input, weight, bias, normalized_ndim, eps):
    dims = tuple(range(-normalized_ndim, 0))
    x = input.to(stat_dtype(input))
    mean = mean_of(x, dims, True)
    centred = x - mean
    scale, rest = inverse_root(centred, dims, eps)
    out = centred * scale * rest
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(input.dtype), mean, scale * rest


def rms_norm_stats(input, weight, normalized_ndim, eps):
    x = input.to(stat_dtype(input))
    scale, rest = inverse_root(x, tuple(range(-normalized_ndim, 0)), eps)
    out = x * scale * rest
    return (out if weight is None else out * weight).to(input.dtype), scale * rest


def outer_dims(stat):
    """The number of leading dims, which a statistic keeps."""
    outer = stat.ndim
    while outer and stat.shape[outer - 1] == 1:
        outer -= 1
    return outer


def layer_norm_backward(g, input, mean, rstd, weight=None):
    outer = outer_dims(mean)
    dims = tuple(range(outer, input.ndim))
    x_hat = (input - mean) * rstd
    gy = g if weight is None else g * weight
    gx = rstd * (gy - mean_of(gy, dims, True) - x_hat * mean_of(gy * x_hat, dims, True))
    gw, gb = g * x_hat, g
    if outer:
        lead = tuple(range(outer))
        gw, gb = sum_of(gw, lead), sum_of(gb, lead)
    return gx.to(input.dtype), gw.to(input.dtype), gb.to(input.dtype)


def rms_norm_backward(g, input, rstd, weight=None):
    outer = outer_dims(rstd)
    x_hat = input * rstd
    gy = g if weight is None else g * weight
    gx = rstd * (gy - x_hat * mean_of(gy * x_hat, tuple(range(outer, input.ndim)), True))
    gw = g * x_hat
    return gx.to(input.dtype), (sum_of(gw, tuple(range(outer))) if outer else gw).to(input.dtype)


def whole(p, lse, dim, digits):
    """Probabilities ``exp(x - lse)`` divided by their sum, where rounding has changed a large lse by ``digits``."""
    epsilon, largest = (2.0**-23, 3.4028234663852886e38) if lse.dtype.itemsize == 4 else (
        2.0**-52, 1.7976931348623157e308)
    size = abs(lse)
    total = where((size > digits / epsilon) & (size < largest), sum_of(p, dim, True), 1.0)
    return p / masked_fill(total, total == 0, 1)


def per_channel(t, ndim):
    """One number for each channel, shaped to broadcast to (N, C, ...)."""
    return reshape(t, (1, -1) + (1,) * (ndim - 2))


def _affine(out, weight, bias):
    if weight is not None:
        out = out * per_channel(weight, out.ndim)
    if bias is not None:
        out = out + per_channel(bias, out.ndim)
    return out


def batch_norm_stats(input, weight, bias, eps, running_mean=None, running_var=None, momentum=0.1):
    dims = (0, *range(2, input.ndim))
    x = input.to(stat_dtype(input))
    mean = mean_of(x, dims)
    centred = x - per_channel(mean, x.ndim)
    scale, rest = inverse_root(centred, dims, eps)
    out = _affine(centred * scale * rest, weight, bias)
    return out.to(input.dtype), mean, mean_of(centred * centred, dims)


def batch_norm_backward(g, input, mean, var, weight, eps):
    """By the input instead of the variance where this is infinite, or None."""
    dims = (0, *range(2, input.ndim))
    centred = input - per_channel(mean, input.ndim)
    scale, rest = inverse_root(centred, dims, eps)
    if var is not None:
        var = per_channel(var, input.ndim)
        given = rsqrt(var + eps)
        rest = where(var < float("inf"), given / scale, rest)
    rstd, x_hat = scale * rest, centred * scale * rest
    gy = g if weight is None else g * per_channel(weight, g.ndim)
    gx = rstd * (gy - mean_of(gy, dims, True) - x_hat * mean_of(gy * x_hat, dims, True))
    return gx.to(input.dtype), sum_of(g * x_hat, dims).to(input.dtype), sum_of(g, dims).to(input.dtype)


def _groups(x, num_groups):
    """x as (N, num_groups, elements of a group); any of these may be 0."""
    return reshape(x, (x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups))


def _move(running_mean, running_var, mean, var, count, momentum):
    """Moves running statistics towards a batch's by the share ``momentum``, with one write each. The running variance
    is unbiased."""
    if running_mean is not None:
        running_mean.copy_(running_mean * (1 - momentum) + mean.to(running_mean.dtype) * momentum)
    if running_var is not None:
        # A single value has no unbiased variance: the result is NaN, as in PyTorch.
        factor = momentum * count / (count - 1) if count > 1 else float("nan")
        running_var.copy_(running_var * (1 - momentum) + var.to(running_var.dtype) * factor)


def batch_norm_writes(results, input, weight, bias, eps, running_mean=None, running_var=None, momentum=0.1):
    channels = input.shape[1]
    if input.numel():               # an empty batch changes nothing
        _move(running_mean, running_var, *results[1:], input.numel() // channels, momentum)


def batch_norm_given(input, mean, var, weight, bias, eps):
    wide = stat_dtype(input)
    scale = rsqrt(var.to(wide) + eps)
    if weight is not None:
        scale = scale * weight
    out = (input.to(wide) - per_channel(mean, input.ndim)) * per_channel(scale, input.ndim)
    return (out if bias is None else out + per_channel(bias, input.ndim)).to(input.dtype)


def group_norm_stats(input, weight, bias, num_groups, eps):
    shape = input.shape
    x = _groups(input.to(stat_dtype(input)), num_groups)
    mean = mean_of(x, 2, True)
    centred = x - mean
    scale, rest = inverse_root(centred, 2, eps)
    out = _affine(reshape(centred * scale * rest, shape), weight, bias)
    return out.to(input.dtype), squeeze(mean, 2), squeeze(scale * rest, 2)


def instance_norm_writes(mean, input, running_mean, running_var, momentum):
    """Moves running statistics towards the mean of the samples' statistics; ``mean`` has the mean of each sample."""
    samples, channels = input.shape[:2]
    if input.numel():
        x = reshape(input.to(stat_dtype(input)), (samples, channels, -1))
        centred = x - unsqueeze(mean, 2)
        _move(running_mean, running_var, mean_of(mean, 0), mean_of(centred * centred, (0, 2)), x.shape[2], momentum)


def group_norm_backward(g, input, mean, rstd, weight, num_groups):
    shape, dims = input.shape, (0, *range(2, input.ndim))
    x = _groups(input, num_groups)
    rstd = unsqueeze(rstd, 2)
    x_hat = (x - unsqueeze(mean, 2)) * rstd
    gy = reshape(g if weight is None else g * per_channel(weight, g.ndim), x.shape)
    gx = rstd * (gy - mean_of(gy, 2, True) - x_hat * mean_of(gy * x_hat, 2, True))
    gw = sum_of(g * reshape(x_hat, shape), dims)
    return reshape(gx, shape).to(input.dtype), gw.to(input.dtype), sum_of(g, dims).to(input.dtype)


def group_norm_stats_backward(g_mean, g_rstd, input, mean, rstd, num_groups):
    """The input's gradient through the statistics; either gradient of these may be None."""
    x = _groups(input, num_groups)
    g = 0
    if g_mean is not None:
        g = unsqueeze(g_mean, 2)
    if g_rstd is not None:
        rstd = unsqueeze(rstd, 2)
        g = g - unsqueeze(g_rstd, 2) * rstd * ((x - unsqueeze(mean, 2)) * rstd) * rstd
    return reshape(expand(g / max(x.shape[2], 1), x.shape), input.shape).to(input.dtype)


FUNCTIONS = {f.__name__: f for f in (
    layer_norm_stats, layer_norm_backward, rms_norm_stats, rms_norm_backward, batch_norm_stats, batch_norm_backward,
    batch_norm_given, group_norm_stats, group_norm_backward)}
WRITES = {"batch_norm_stats": batch_norm_writes}
