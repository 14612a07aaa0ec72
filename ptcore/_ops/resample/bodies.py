"""Bodies: other sizes by interpolation, sampling at positions, pixels as channels."""
import math

from cython.cimports.ptcore._ops._spatial import _numbers, _word

from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError
from ptcore._memory_format import contiguous_format
from ptcore._ops import checked
from ptcore._ops.creation.creation import linspace, zeros
from ptcore._ops.functions import (
    clone,
    filtered,
    grid_sampled,
    permute,
    resample,
    reshape,
    transpose,
)
from ptcore._ops.pooling.bodies import _adaptive_avg

UINT8 = as_dtype("uint8")
_LARGEST = 2**40                # sums and products of a few of these fit in 64 bits


def _channels_last(input):
    """Whether the result gets the channels-last memory format, as the input has it."""
    if input.ndim != 4 or input.is_contiguous():
        return False
    from ptcore._memory_format import channels_last, is_in
    return is_in(input, channels_last)


def _copied(x, shape):
    """A row-major copy in another shape; it never shares the memory of x, even if no element moves."""
    return reshape(clone(x, memory_format=contiguous_format), shape)


def pixel_shuffle(input, upscale_factor):
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: input must have shape (*, C * {r}**2, H, W) with a positive "
                         f"upscale_factor, got {list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    x = reshape(input, (*lead, c // (r * r), r, r, h, w))
    if _channels_last(input):
        x = _copied(permute(x, (0, 4, 2, 5, 3, 1)), (*lead, h * r, w * r, c // (r * r)))
        return permute(x, (0, 3, 1, 2))
    x = permute(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return _copied(x, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input, downscale_factor):
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-1] % r or input.shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: input must have shape (*, C, H * {r}, W * {r}) with a positive "
                         f"downscale_factor, got {list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    x = reshape(input, (*lead, c, h // r, r, w // r, r))
    if _channels_last(input):
        x = _copied(permute(x, (0, 2, 4, 1, 3, 5)), (*lead, h // r, w // r, c * r * r))
        return permute(x, (0, 3, 1, 2))
    x = permute(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return _copied(x, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(input, groups):
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: input must have shape (N, C, ...) with C a multiple of "
                         f"groups={groups}, got {list(input.shape)}")
    shape = input.shape
    x = reshape(input, (shape[0], groups, shape[1] // groups, *shape[2:]))
    if _channels_last(input):
        x = _copied(permute(x, (0, 3, 4, 2, 1)), (shape[0], *shape[2:], shape[1]))
        return permute(x, (0, 3, 1, 2))
    return _copied(transpose(x, 1, 2), shape)


# -- resampling ---------------------------------------------------------------------------------
_MODES = {"nearest": ("nearest", (3, 4, 5)), "nearest-exact": ("nearest-exact", (3, 4, 5)),
          "linear": ("linear", (3,)), "bilinear": ("linear", (4,)), "trilinear": ("linear", (5,)),
          "bicubic": ("cubic", (4,)), "area": ("area", (3, 4, 5))}


def interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    op = "interpolate"
    _word(op, "mode", mode)
    if align_corners is not None:
        align_corners = checked.flag(op, "align_corners", align_corners)
    if recompute_scale_factor is not None:
        recompute_scale_factor = checked.flag(op, "recompute_scale_factor", recompute_scale_factor)
    if mode not in _MODES:
        raise NotImplementedError(f"{op}: mode must be one of {', '.join([repr(m) for m in _MODES])}, got {mode!r}")
    how, ndims = _MODES[mode]
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(f"{op}: antialias goes with modes bilinear and bicubic and input of 4 dimensions, got mode "
                         f"{mode!r} and shape {list(input.shape)}")
    if input.ndim not in ndims:
        raise NotImplementedError(f"{op}: mode {mode!r} needs input of {' or '.join([str(d) for d in ndims])} "
                                  f"dimensions, got shape {list(input.shape)}")
    if how not in ("linear", "cubic") and align_corners is not None:
        raise ValueError(f"{op}: align_corners goes with modes linear, bilinear, bicubic and trilinear, got "
                         f"mode {mode!r}")
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{op}: either size or scale_factor must be given, got size={size!r} and "
                         f"scale_factor={scale_factor!r}")
    scales = (0.0,) * n
    if size is not None:
        if recompute_scale_factor:
            raise ValueError(f"{op}: recompute_scale_factor needs scale_factor")
        if isinstance(size, (list, tuple)) and len(size) != n:
            raise ValueError(f"{op}: size must be an int or {n} ints, got {list(size)}")
        size = _numbers(op, "size", size, n, 1)
    else:
        factors = tuple(scale_factor) if isinstance(scale_factor, (list, tuple)) else (scale_factor,) * n
        if len(factors) != n:
            raise ValueError(f"{op}: scale_factor must be a number or {n} numbers, got {list(factors)}")
        factors = tuple([checked.real(op, "scale_factor", f) for f in factors])
        if not all([0 < f < 2.0**40 for f in factors]):
            raise ShapeError(f"{op}: scale_factor must be positive, got {list(factors)}")
        size = tuple([math.trunc(m * f) for m, f in zip(input.shape[2:], factors)])
        if not recompute_scale_factor:
            scales = factors
    if 0 in input.shape[1:] or any([m < 1 for m in size]):
        raise ShapeError(f"{op}: sizes must be positive, got input of shape {list(input.shape)} and output "
                         f"sizes {list(size)}")
    if how == "area":
        return _adaptive_avg(op, n, input, size)
    if how in ("linear", "cubic") and n == 2 and input.dtype is UINT8:
        x = input
        taps = how if antialias else how + "-taps"
        for k in (1, 0):
            if size[k] != x.shape[k + 2]:       # whatever the scale, as in PyTorch
                x = filtered(x, k + 2, size[k], taps, bool(align_corners), scales[k])
        return clone(x) if x is input else x
    if how in ("linear", "cubic") and input.dtype.kind != "f":
        raise DTypeError(f"{op}: mode {mode!r} needs a floating-point input, got {input.dtype.name}")
    x, same = input, [m == o for m, o in zip(input.shape[2:], size)]
    if how == "nearest" and n > 1 and all(same):    # as in PyTorch, which computes with the scale in one dim
        return clone(x)
    if antialias:
        for k in (1, 0):
            if same[k]:                 # whatever the scale, as in PyTorch
                continue
            x = filtered(x, k + 2, size[k], how, bool(align_corners), scales[k])
        return clone(x) if x is input else x
    for k in range(n - 1, -1, -1):
        if not (same[k] and (how == "linear" or align_corners or scales[k] in (0.0, 1.0))):
            x = resample(x, k + 2, size[k], how, bool(align_corners), scales[k])
    return clone(x) if x is input else x


# -- sampling at positions ---------------------------------------------------------------------------
def grid_sample(input, grid, mode, padding_mode, align_corners):
    op = "grid_sample"
    checked.word(op, "mode", mode, ("bilinear", "nearest", "bicubic"))
    checked.word(op, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
    align_corners = False if align_corners is None else checked.flag(op, "align_corners", align_corners)
    return grid_sampled(input, grid, mode, padding_mode, align_corners)


def _sampled_by_numbers(op, ndim, input, grid, interpolation_mode, padding_mode, align_corners):
    for name, value in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if not 0 <= value <= 2:
            raise RuntimeError(f"{op}: {name} must be 0, 1 or 2, got {value}")
    if ndim and input.ndim != ndim:
        raise ShapeError(f"{op}: input must have {ndim} dimensions, got shape {list(input.shape)}")
    return grid_sample(input, grid, ("bilinear", "nearest", "bicubic")[interpolation_mode],
                       ("zeros", "border", "reflection")[padding_mode], align_corners)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    return _sampled_by_numbers("grid_sampler", 0, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    return _sampled_by_numbers("grid_sampler_2d", 4, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    return _sampled_by_numbers("grid_sampler_3d", 5, input, grid, interpolation_mode, padding_mode, align_corners)


def affine_grid(theta, size, align_corners):
    op = "affine_grid"
    align_corners = False if align_corners is None else checked.flag(op, "align_corners", align_corners)
    if theta.dtype.kind != "f":
        raise ValueError(f"{op}: theta must be floating-point, got {theta.dtype.name}")
    size = tuple(checked.integers(op, "size", size))
    if len(size) not in (4, 5):
        raise NotImplementedError(f"{op}: size must have 4 or 5 entries, got {list(size)}")
    dims = len(size) - 2
    if tuple(theta.shape[1:]) != (dims, dims + 1) or theta.ndim != 3:
        raise ValueError(f"{op}: theta must have shape (N, {dims}, {dims + 1}) for size {list(size)}, got "
                         f"{list(theta.shape)}")
    if not all([0 < n <= _LARGEST for n in size]):
        raise ValueError(f"{op}: size must be positive, got {list(size)}")
    if theta.shape[0] != size[0]:
        raise ShapeError(f"{op}: theta must have one map for each of {size[0]} samples, got shape {list(theta.shape)}")
    total = theta[:, :, dims].reshape((size[0], *[1] * dims, dims))
    for k, n in enumerate(reversed(size[2:])):          # x, y, z: x belongs to the last dim
        shape = [1] * (dims + 2)
        shape[dims - k] = n
        span = (n - 1) / n if n > 1 and not align_corners else 1
        places = linspace(-span, span, n, dtype=theta.dtype, device=theta.device) if n > 1 else zeros(
            1, dtype=theta.dtype, device=theta.device)
        total = total + reshape(places, tuple(shape)) * theta[:, :, k].reshape((size[0], *[1] * dims, dims))
    return total
