"""Functions of other ops behind the rows of sampling.py: draws and noise."""

from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import _arguments
from ptcore._ops._creation import bernoulli, empty, full, rand, zeros_like
from ptcore._ops.composite.bodies import _wrap
from ptcore._ops.functions import (
    all,
    any,
    clamp_max,
    cumsum,
    dropout_masked,
    fractional_windows,
    leaky_relu,
    places_among,
    poisson_of,
    reshape,
    scatter_src,
    softmax,
    sum,
    topk,
    unsqueeze,
    where,
)
from ptcore._ops.window.bodies import _batched, _numbers


def multinomial(input, num_samples, replacement, generator):
    """Without replacement the largest of p / E, E exponential; with it places of uniforms in the running sum."""
    op = "multinomial"
    if input.ndim not in (1, 2):
        raise ShapeError(f"{op}: input must be a vector or a matrix, got shape {list(input.shape)}")
    if input.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {input.dtype.name}")
    if num_samples < 1:
        raise RuntimeError(f"{op}: num_samples must be positive, got {num_samples}")
    n = input.shape[-1]
    if not replacement and num_samples > n:
        raise RuntimeError(f"{op}: num_samples must not exceed the {n} categories without replacement, got "
                           f"{num_samples}")
    p = input.detach()
    if p.dtype.itemsize < 4:
        p = p.to(as_dtype("float32"))
    if not bool(all((p >= 0) & (p < float("inf")))):
        raise RuntimeError(f"{op}: probabilities must be finite and not negative")
    total = sum(p, -1, True)
    if bool(any(total <= 0)):
        raise RuntimeError(f"{op}: the sum of the probabilities must be positive")
    if not replacement:
        noise = empty(p.shape, dtype=p.dtype, device=p.device).exponential_(generator=generator)
        return topk(p / noise, num_samples, -1)[1]
    running = cumsum(p.to(as_dtype("float64")), -1)
    u = rand(*p.shape[:-1], num_samples, dtype=as_dtype("float64"), device=p.device, generator=generator)
    end = running[..., -1:]
    places = places_among(running.contiguous(), u * end, True)
    # u * end may round up to the end: the last category that has any probability
    return clamp_max(places, sum(running < end, -1, True))


def poisson(input, generator):
    return poisson_of(input, generator)


def rrelu(input, lower, upper, training, generator):
    op = "rrelu"
    if input.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {input.dtype.name}")
    lower, upper = _arguments.real(op, "lower", lower), _arguments.real(op, "upper", upper)
    if lower > upper:
        raise RuntimeError(f"{op}: lower must not exceed upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slopes = empty(input.shape, dtype=input.dtype, device=input.device).uniform_(lower, upper, generator=generator)
    return where(input > 0, input, input * slopes)


def rrelu_function(input, lower, upper, training, inplace):
    out = rrelu(input, lower, upper, training, None)
    return input.copy_(out) if inplace else out


def gumbel_softmax(logits, tau, hard, eps, dim):
    if logits.dtype.kind != "f":
        raise DTypeError(f"gumbel_softmax: logits must be real floating-point, got {logits.dtype.name}")
    dim = _wrap("gumbel_softmax", dim, logits.ndim)
    noise = -empty(logits.shape, dtype=logits.dtype, device=logits.device).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, True)
    one = full(best.shape, 1, dtype=logits.dtype, device=logits.device)
    return scatter_src(zeros_like(soft).detach(), dim, best, one) - soft.detach() + soft


# -- dropout ------------------------------------------------------------------------------------

def _probability(op, p):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: p must be in [0, 1], got {p}")
    return float(p)


def dropout(input, p, train):
    p = _probability("dropout", p)
    return dropout_masked(input, p, None)[0] if train and p else input


def dropout_function(input, p, training, inplace):
    out = dropout(input, p, training)
    return input.copy_(out) if inplace and out is not input else out


def _channels(op, input, p):
    """1 or 0 for each channel of each sample, to be broadcast."""
    if input.ndim < 2:
        raise ShapeError(f"{op}: input must have at least 2 dimensions, got shape {list(input.shape)}")
    if input.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {input.dtype.name}")
    return _kept((*input.shape[:2], *[1] * (input.ndim - 2)), p, input)


def _kept(shape, p, like):
    return bernoulli(full(shape, 1 - p, dtype=like.dtype, device=like.device))


def feature_dropout(input, p, train):
    p = _probability("feature_dropout", p)
    return _feature_dropped("feature_dropout", input, p, train)


def _feature_dropped(op, input, p, train):
    if not train or not p:
        return input
    if p == 1:
        return input * 0
    return input * (_channels(op, input, p) / (1 - p))


# selu's limit towards minus infinity
_SATURATED = -1.7580993408473766


def _alpha_dropped(input, p, kept):
    """Dropped elements become selu's limit; scaled and moved so that mean and variance stay."""
    if p == 1:
        return input * 0
    scale = ((1 - p) * (1 + p * _SATURATED * _SATURATED)) ** -0.5
    return input * (kept * scale) + ((1 - kept) * (_SATURATED * scale) - _SATURATED * scale * p)


def alpha_dropout(input, p, train):
    p = _probability("alpha_dropout", p)
    if not train or not p:
        return input
    if input.dtype.kind != "f":
        raise DTypeError(f"alpha_dropout: input must be real floating-point, got {input.dtype.name}")
    return _alpha_dropped(input, p, _kept(input.shape, p, input))


def feature_alpha_dropout(input, p, train):
    p = _probability("feature_alpha_dropout", p)
    if not train or not p:
        return input
    return _alpha_dropped(input, p, _channels("feature_alpha_dropout", input, p))


def _or_inplace(input, out, inplace):
    return input.copy_(out) if inplace and out is not input else out


def alpha_dropout_function(input, p, training, inplace):
    return _or_inplace(input, alpha_dropout(input, p, training), inplace)


def feature_alpha_dropout_function(input, p, training, inplace):
    return _or_inplace(input, feature_alpha_dropout(input, p, training), inplace)


def _dropped_channels(op, input, p, training, inplace, spatial, single):
    """Whole channels of (N, C, ...); (C, ...) where the sample stands alone."""
    p = _probability(op, p)
    if input.ndim not in (spatial + 1, spatial + 2):
        raise ShapeError(f"{op}: input must have {spatial + 1} or {spatial + 2} dimensions, got shape "
                         f"{list(input.shape)}")
    alone = single and input.ndim == spatial + 1
    out = _feature_dropped(op, unsqueeze(input, 0) if alone else input, p, training)
    return _or_inplace(input, reshape(out, input.shape) if alone else out, inplace)


def dropout1d(input, p, training, inplace):
    return _dropped_channels("dropout1d", input, p, training, inplace, 1, True)


def dropout2d(input, p, training, inplace):
    return _dropped_channels("dropout2d", input, p, training, inplace, 2, False)


def dropout3d(input, p, training, inplace):
    return _dropped_channels("dropout3d", input, p, training, inplace, 3, True)


# -- pooling at random places ---------------------------------------------------------------------

def _fractional_max(op, n, input, kernel_size, output_size, output_ratio, samples):
    x, batched = _batched(op, input, n)
    if x.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {x.dtype.name}")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{op}: input must not be empty but for its batch, got shape {list(input.shape)}")
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op}: requires specifying either an output_size or an output_ratio, got None of both")
    kernel = _numbers(op, "kernel_size", kernel_size, n, 1)
    if output_size is None:
        ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        if len(ratios) != n:
            raise ValueError(f"{op}: output_ratio must be a number or {n} numbers, got {output_ratio!r}")
        ratios = [_arguments.real(op, "output_ratio", ratio) for ratio in ratios]
        output_size = [int(size * ratio) for size, ratio in zip(x.shape[2:], ratios)]
    out = _numbers(op, "output_size", output_size, n, 1)
    shape = (*x.shape[:2], n)
    if samples is None:
        samples = rand(*shape, dtype=x.dtype, device=x.device)
    elif samples.ndim != 3 or samples.shape[0] < shape[0] or samples.shape[1:] != shape[1:]:
        raise ShapeError(f"{op}: _random_samples must have shape {list(shape)}, got {list(samples.shape)}")
    elif samples.dtype is not x.dtype:
        raise DTypeError(f"{op}: _random_samples must have input's dtype {x.dtype.name}, got {samples.dtype.name}")
    if samples.shape[0] > shape[0]:
        samples = samples[:shape[0]]
    values, indices = fractional_windows(x, samples.detach(), kernel, out)
    return (values, indices) if batched else (values.squeeze(0), indices.squeeze(0))


def fractional_max_pool2d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    values, indices = _fractional_max("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio,
                                      _random_samples)
    return (values, indices) if return_indices else values


def fractional_max_pool3d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    values, indices = _fractional_max("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio,
                                      _random_samples)
    return (values, indices) if return_indices else values


def fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)
