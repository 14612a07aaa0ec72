"""Bodies: creation by kernel, random fills, draws from distributions, dropout."""
import math

from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError, warn
from ptcore._ops import checked
from ptcore._ops.creation.creation import full, ones_like
from ptcore._ops.creation.draws import bernoulli, rand
from ptcore._ops.functions import (
    all,
    any,
    argmax,
    binomial_of,
    broadcast_tensors,
    clamp_max,
    clone,
    cumsum,
    dropout_masked,
    floor,
    permute,
    places_among,
    poisson_of,
    random_bernoulli_number,
    random_exponential,
    random_places,
    reshape,
    sum,
    topk,
    unsqueeze,
)
from ptcore._ops.history import ValueCheck
from ptcore._random import draws_as_pytorch
from ptcore._shape import dims_inside_out


@ValueCheck
def check_probabilities(p, distinct):
    """``distinct``: how many different categories are drawn from each row."""
    if not bool(all((p >= 0) & (p < float("inf")))):
        raise RuntimeError("multinomial: probabilities must be finite and not negative")
    if bool(any(sum(p, -1, True) <= 0)):
        raise RuntimeError("multinomial: the sum of the probabilities must be positive")
    if distinct > 1 and bool(any(sum(p > 0, -1, True) < distinct)):
        raise RuntimeError(f"multinomial: num_samples must not exceed the number of categories that are not 0 without "
                           f"replacement, got {distinct}")


def multinomial(input, num_samples, replacement, generator):
    """Without replacement the largest p / E, E exponential; with it the places of uniforms in the cumulative sum."""
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
    check_probabilities(p, 1 if replacement else num_samples)
    if draws_as_pytorch(generator, p.device):
        return _multinomial_as_pytorch(input.detach(), num_samples, replacement, generator)
    if not replacement:
        noise = random_exponential(1.0, p.shape, p.dtype, p.device, generator)
        return topk(p / noise, num_samples, -1)[1]
    running = cumsum(p.to(as_dtype("float64")), -1)
    u = rand(*p.shape[:-1], num_samples, dtype=as_dtype("float64"), device=p.device, generator=generator)
    end = running[..., -1:]
    places = places_among(running.contiguous(), u * end, True)
    # u * end may round up to end: this limits places to the last category with a nonzero probability
    return clamp_max(places, sum(running < end, -1, True))


def _multinomial_as_pytorch(p, num_samples, replacement, generator):
    """One sample is drawn as without replacement. With it, sums in the dtype of the weights are divided by the last."""
    if not replacement or num_samples == 1:
        shares = p / _by_memory(p, generator, lambda x: random_exponential(1.0, x.shape, p.dtype, p.device, generator))
        return argmax(shares, -1, True) if num_samples == 1 else topk(shares, num_samples, -1)[1]
    u = rand(*p.shape[:-1], num_samples, dtype=as_dtype("float64"), device=p.device, generator=generator)
    return random_places(p.to(u.dtype), u, p.dtype.itemsize < 8)


def _by_memory(x, generator, drawn):
    """``drawn(x)``, whose elements are drawn in the order of x's memory where PyTorch does so."""
    if x.is_contiguous() or not draws_as_pytorch(generator, x.device):
        return drawn(x)
    order = dims_inside_out(x.shape, x.stride())[0][::-1]
    return permute(drawn(permute(x, order)), sorted(range(len(order)), key=order.__getitem__))


def poisson(input, generator):
    return poisson_of(input, generator)


def binomial(count, prob, generator):
    if count.dtype.kind != "f" or prob.dtype is not count.dtype:
        raise DTypeError(f"binomial: count and prob must have one floating-point dtype, got {count.dtype.name} and "
                         f"{prob.dtype.name}")
    if count.shape != prob.shape:
        count, prob = broadcast_tensors(count, prob)
    if count.device.type == "cuda":         # the kernel does not report wrong counts
        if bool(any((count < 0) | (count != floor(count)))):
            raise RuntimeError("binomial: count must hold whole numbers that are not negative")
        if not bool(all((prob >= 0) & (prob <= 1))):
            raise RuntimeError("binomial: prob must be in [0, 1]")
    return binomial_of(count, prob, generator)


# -- dropout ------------------------------------------------------------------------------------
def _probability(op, p):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: p must be in [0, 1], got {p}")
    return float(p)


def dropout(input, p, train):
    p = _probability("dropout", p)
    if not train or not p:
        return input
    if p == 1 and draws_as_pytorch(None, input.device):
        return input * 0
    return _by_memory(input, None, lambda x: dropout_masked(x, p, None)[0])


def native_dropout(input, p, train):
    p = _probability("native_dropout", p)
    if train is None or checked.flag("native_dropout", "train", train):
        if not draws_as_pytorch(None, input.device):
            return dropout_masked(input, p, None)
        mask = _by_memory(input.detach(), None, lambda x: dropout_masked(x, p, None)[1])
        return input * mask * (1 / (1 - p) if p < 1 else 0.0), mask
    return clone(input), ones_like(input, dtype=as_dtype("bool"))


def dropout_function(input, p, training, inplace):
    out = dropout(input, p, training)
    return input.copy_(out) if inplace and out is not input else out


def _channels(op, input, p):
    """A mask of 1 or 0 for each channel of each sample, to be broadcast."""
    if input.ndim < 2:
        raise ShapeError(f"{op}: input must have at least 2 dimensions, got shape {list(input.shape)}")
    if input.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {input.dtype.name}")
    return _kept((*input.shape[:2], *[1] * (input.ndim - 2)), p, input)


def _kept(shape, p, like):
    if draws_as_pytorch(None, like.device):
        return random_bernoulli_number(1 - p, tuple(shape), like.dtype, like.device, None)
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


# the limit of selu towards minus infinity
_SATURATED = -1.7580993408473766


def _alpha_dropped(input, p, kept):
    """Dropped elements become selu's limit; scale and shift keep mean and variance."""
    if p == 1:
        return input * 0
    if draws_as_pytorch(None, input.device):
        scale = 1 / math.sqrt((_SATURATED * _SATURATED * p + 1) * (1 - p))
        return input * (kept * scale) + ((kept - 1) * (-_SATURATED * scale) + -_SATURATED * scale * p)
    scale = ((1 - p) * (1 + p * _SATURATED * _SATURATED)) ** -0.5
    return (input - _SATURATED) * (kept * scale) + _SATURATED * scale * (1 - p)


def alpha_dropout(input, p, train):
    p = _probability("alpha_dropout", p)
    if not train or not p:
        return input
    if p == 1 and draws_as_pytorch(None, input.device):
        return input * 0
    if input.dtype.kind != "f":
        raise DTypeError(f"alpha_dropout: input must be real floating-point, got {input.dtype.name}")
    kept = _by_memory(input.detach(), None, lambda x: _kept(x.shape, p, x))
    return _alpha_dropped(input, p, kept)


def feature_alpha_dropout(input, p, train):
    p = _probability("feature_alpha_dropout", p)
    if not train or not p:
        return input
    if p == 1 and draws_as_pytorch(None, input.device):
        return input * 0
    return _alpha_dropped(input, p, _channels("feature_alpha_dropout", input, p))


def _or_inplace(input, out, inplace):
    return input.copy_(out) if inplace and out is not input else out


def alpha_dropout_function(input, p, training, inplace):
    return _or_inplace(input, alpha_dropout(input, p, training), inplace)


def feature_alpha_dropout_function(input, p, training, inplace):
    return _or_inplace(input, feature_alpha_dropout(input, p, training), inplace)


def _dropped_channels(op, input, p, training, inplace, spatial, single):
    """Drops whole channels of (N, C, ...), or of a single sample (C, ...)."""
    p = _probability(op, p)
    if input.ndim not in (spatial + 1, spatial + 2):
        if spatial == 1:
            raise ShapeError(f"{op}: input must have 2 or 3 dimensions, got shape {list(input.shape)}")
        warn(f"{op}: input should have {spatial + 1} or {spatial + 2} dimensions, got shape {list(input.shape)}; use "
             "dropout for others")
    elif input.ndim == 3 and spatial == 2:
        warn(f"{op}: input of shape {list(input.shape)} is read as (N, C, L); use dropout1d for that")
    alone = single and input.ndim != spatial + 2
    out = _feature_dropped(op, unsqueeze(input, 0) if alone else input, p, training)
    return _or_inplace(input, reshape(out, input.shape) if alone else out, inplace)


def dropout1d(input, p, training, inplace):
    return _dropped_channels("dropout1d", input, p, training, inplace, 1, True)


def dropout2d(input, p, training, inplace):
    return _dropped_channels("dropout2d", input, p, training, inplace, 2, False)


def dropout3d(input, p, training, inplace):
    return _dropped_channels("dropout3d", input, p, training, inplace, 3, True)
