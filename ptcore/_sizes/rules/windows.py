"""Convolution, pooling, padding, windows and resampling."""
from ptcore._errors import ShapeError
from ptcore._sizes.language import INT64, Call, Int, Ints, Text, View, Words, fits, like, output
from ptcore._sizes.rules.elements import check_vector

# -- parts of rules ---------------------------------------------------------------------------------------------------

def check_spatial(call: Call, x: View):
    """(N, C) and 1 to 3 sizes behind them."""
    if x.ndim < 3 or x.ndim > 5:
        raise ShapeError(f"{call.name}: input must have 3 to 5 dimensions (N, C, ...), got shape {x.shape}")


def check_numbers(call: Call, name: Text, values: Ints, count: Int, low: Int):
    """A setting with one number for each spatial dim."""
    if values.count != count:
        raise ShapeError(f"{call.name}: {name} must have {count} numbers, got {values.list}")
    for j in range(values.count):
        if values.list[j] < low:
            raise ShapeError(f"{call.name}: {name} must be at least {low}, got {values.list}")


def check_settings(call: Call, x: View, stride: Ints, padding: Ints, dilation: Ints, groups: Int, size: Ints):
    check_spatial(call, x)
    check_numbers(call, "stride", stride, x.ndim - 2, 1)
    check_numbers(call, "padding", padding, x.ndim - 2, 0)
    check_numbers(call, "dilation", dilation, x.ndim - 2, 1)
    check_numbers(call, "size", size, x.ndim - 2, 0)
    if groups < 1:
        raise ShapeError(f"{call.name}: groups must be positive, got {groups}")


def check_same_ndim(call: Call, name: Text, x: View, other: View):
    if other.ndim != x.ndim:
        raise ShapeError(f"{call.name}: {name} must have {x.ndim} dimensions, got shape {other.shape}")


def spatial(call: Call, k: Int, n: Int, channels: Int, size: Ints, dtype: Int):
    """Output k is (n, channels) with the sizes behind them."""
    out = output(call, k, size.count + 2, dtype)
    out.sizes[0] = n
    out.sizes[1] = channels
    for j in range(size.count):
        out.sizes[j + 2] = size.list[j]


# -- convolution ------------------------------------------------------------------------------------------------------

def convolved(call: Call, input: View, weight: View, bias: View, stride: Ints, padding: Ints, dilation: Ints,
              groups: Int, size: Ints):
    check_settings(call, input, stride, padding, dilation, groups, size)
    check_same_ndim(call, "weight", input, weight)
    fits(groups, 31)
    fits(weight.sizes[1], 31)
    if input.sizes[1] != groups * weight.sizes[1] or weight.sizes[0] % groups != 0:
        raise ShapeError(f"{call.name}: weight must have shape [filters, {input.sizes[1]} / groups, ...] with filters "
                         f"a multiple of groups={groups} for input of shape {input.shape}, got {weight.shape}")
    check_vector(call, bias, "bias", weight.sizes[0])
    spatial(call, 0, input.sizes[0], weight.sizes[0], size, input.dtype)


def convolved_transposed(call: Call, input: View, weight: View, bias: View, stride: Ints, padding: Ints,
                         dilation: Ints, groups: Int, size: Ints):
    check_settings(call, input, stride, padding, dilation, groups, size)
    check_same_ndim(call, "weight", input, weight)
    if input.sizes[1] != weight.sizes[0] or input.sizes[1] % groups != 0:
        raise ShapeError(f"{call.name}: weight must have shape [{input.sizes[1]}, filters / groups, ...] and "
                         f"groups={groups} must divide the channels for input of shape {input.shape}, got "
                         f"{weight.shape}")
    fits(groups, 31)
    fits(weight.sizes[1], 31)
    check_vector(call, bias, "bias", groups * weight.sizes[1])
    spatial(call, 0, input.sizes[0], groups * weight.sizes[1], size, input.dtype)


def convolved_weight(call: Call, input: View, grad: View, stride: Ints, padding: Ints, dilation: Ints, groups: Int,
                     size: Ints):
    check_settings(call, input, stride, padding, dilation, groups, size)
    check_same_ndim(call, "grad", input, grad)
    if input.sizes[0] != grad.sizes[0] or input.sizes[1] % groups != 0 or grad.sizes[1] % groups != 0:
        raise ShapeError(f"{call.name}: input and grad must have one batch size and channels that are multiples of "
                         f"groups={groups}, got shapes {input.shape} and {grad.shape}")
    spatial(call, 0, grad.sizes[1], input.sizes[1] // groups, size, input.dtype)


# -- pooling ----------------------------------------------------------------------------------------------------------

def check_pool(call: Call, x: View, kernel: Ints, stride: Ints, padding: Ints, size: Ints):
    """Settings of a window for each spatial dim; no kernel: the adaptive windows of ``size``."""
    check_spatial(call, x)
    check_numbers(call, "size", size, x.ndim - 2, 0)
    if kernel.count != 0:
        check_numbers(call, "kernel", kernel, x.ndim - 2, 1)
        check_numbers(call, "stride", stride, x.ndim - 2, 1)
        check_numbers(call, "padding", padding, x.ndim - 2, 0)


def pooled(call: Call, input: View, kernel: Ints, stride: Ints, padding: Ints, size: Ints):
    check_pool(call, input, kernel, stride, padding, size)
    spatial(call, 0, input.sizes[0], input.sizes[1], size, input.dtype)


def pooled_pair(call: Call, input: View, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, size: Ints):
    """Values and their positions."""
    check_pool(call, input, kernel, stride, padding, size)
    if kernel.count != 0:
        check_numbers(call, "dilation", dilation, size.count, 1)
    for j in range(size.count):
        if input.sizes[j + 2] == 0 and size.list[j] != 0:
            raise ShapeError(f"{call.name}: input must not be empty, got shape {input.shape}")
    spatial(call, 0, input.sizes[0], input.sizes[1], size, input.dtype)
    spatial(call, 1, input.sizes[0], input.sizes[1], size, INT64)


def max_pool_backward(call: Call, g: View, indices: View, size: Ints):
    """The gradient of what ``pooled_pair`` or ``fractional_windows`` got."""
    check_spatial(call, g)
    check_numbers(call, "size", size, g.ndim - 2, 0)
    check_same_ndim(call, "indices", g, indices)
    for j in range(g.ndim):
        if indices.sizes[j] != g.sizes[j]:
            raise ShapeError(f"{call.name}: indices must have the shape of g, {g.shape}, got {indices.shape}")
    spatial(call, 0, g.sizes[0], g.sizes[1], size, g.dtype)


def fractional_windows(call: Call, input: View, samples: View, kernel: Ints, size: Ints):
    check_spatial(call, input)
    n = input.ndim - 2
    check_numbers(call, "kernel_size", kernel, n, 1)
    check_numbers(call, "output_size", size, n, 1)
    for j in range(size.count):
        fits(kernel.list[j], 40)
        fits(size.list[j], 40)
        if kernel.list[j] + size.list[j] - 1 > input.sizes[j + 2]:
            raise ShapeError(f"{call.name[:-2]}{n}d: pool size {kernel.list[j]} too large for {size.list[j]} windows, "
                             f"expected at most {input.sizes[j + 2] - size.list[j] + 1} for an input of size "
                             f"{input.sizes[j + 2]}")
    if (samples.ndim != 3 or samples.sizes[0] != input.sizes[0] or samples.sizes[1] != input.sizes[1]
            or samples.sizes[2] != n):
        raise ShapeError(f"{call.name[:-2]}{n}d: _random_samples must have shape {[*input.sizes[:2], n]}, got "
                         f"{samples.shape}")
    spatial(call, 0, input.sizes[0], input.sizes[1], size, input.dtype)
    spatial(call, 1, input.sizes[0], input.sizes[1], size, INT64)


# -- padding ----------------------------------------------------------------------------------------------------------

def pad_by(call: Call, x: View, pad: Ints, sign: Int):
    """The last dim grows by the first two numbers, the one before by the next two."""
    if pad.count % 2 != 0 or pad.count > 2 * x.ndim:
        raise ShapeError(f"{call.name}: pad must have an even number of entries, at most 2 for each of {x.ndim} dims, "
                         f"got {[sign * p for p in pad.list]}")
    out = like(call, 0, x, x.dtype)
    for k in range(pad.count // 2):
        n = x.sizes[x.ndim - 1 - k]
        fits(pad.list[2 * k], 40)
        fits(pad.list[2 * k + 1], 40)
        before = sign * pad.list[2 * k]
        after = sign * pad.list[2 * k + 1]
        if n + before + after < 0 or before < -n or after < -n:
            raise ShapeError(f"{call.name}: pad {[sign * p for p in pad.list]} leaves nothing of dim {x.ndim - 1 - k} "
                             f"of shape {x.shape}")
        out.sizes[x.ndim - 1 - k] = n + before + after


def padded(call: Call, input: View, pad: Ints):
    pad_by(call, input, pad, 1)


def edge_padded(call: Call, input: View, pad: Ints, mode: Words("reflect|replicate|circular")):
    for k in range(pad.count // 2):
        before = pad.list[2 * k]
        after = pad.list[2 * k + 1]
        if before != 0 or after != 0:
            fits(before, 40)
            fits(after, 40)
            n = input.sizes[input.ndim - 1 - k] if k < input.ndim else 0
            most = n if mode == "circular" else n - 1
            if mode == "replicate":
                most = before + after if n != 0 else 0
            if before > most or after > most:
                raise ShapeError(f"{call.name}: mode {mode!r} pads at most {most} at dim {input.ndim - 1 - k} of shape "
                                 f"{input.shape}, got ({before}, {after})")
            if before < 0 or after < 0:
                raise ShapeError(f"{call.name}: pads must not be negative, got {pad.list}")
    pad_by(call, input, pad, 1)


def edge_unpadded(call: Call, input: View, pad: Ints):
    pad_by(call, input, pad, -1)


# -- windows as columns -----------------------------------------------------------------------------------------------

def check_windows(call: Call, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, blocks: Ints):
    check_numbers(call, "kernel_size", kernel, 2, 1)
    check_numbers(call, "dilation", dilation, 2, 1)
    check_numbers(call, "padding", padding, 2, 0)
    check_numbers(call, "stride", stride, 2, 1)
    check_numbers(call, "blocks", blocks, 2, 0)
    for j in range(2):
        fits(kernel.list[j], 20)
        fits(blocks.list[j], 31)


def unfolded(call: Call, input: View, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, blocks: Ints):
    check_windows(call, kernel, dilation, padding, stride, blocks)
    if input.ndim != 4:
        raise ShapeError(f"{call.name}: input must have 4 dimensions (N, C, H, W), got shape {input.shape}")
    fits(input.sizes[1], 20)
    out = output(call, 0, 3, input.dtype)
    out.sizes[0] = input.sizes[0]
    out.sizes[1] = input.sizes[1] * kernel.list[0] * kernel.list[1]
    out.sizes[2] = blocks.list[0] * blocks.list[1]


def folded(call: Call, input: View, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, blocks: Ints,
           size: Ints):
    check_windows(call, kernel, dilation, padding, stride, blocks)
    check_numbers(call, "output_size", size, 2, 0)
    taps = kernel.list[0] * kernel.list[1]
    if input.ndim != 3 or input.sizes[1] % taps != 0 or input.sizes[2] != blocks.list[0] * blocks.list[1]:
        raise ShapeError(f"{call.name}: input must have shape (N, C * {taps}, {blocks.list[0] * blocks.list[1]}) for "
                         f"output_size {size.list}, got {input.shape}")
    spatial(call, 0, input.sizes[0], input.sizes[1] // taps, size, input.dtype)


# -- resampling -------------------------------------------------------------------------------------------------------

def resampled(call: Call, input: View, dim: Int, size: Int):
    if input.ndim == 0 or size < 1 or input.sizes[dim] == 0:
        raise ShapeError(f"{call.name}: sizes must be positive, got {size} for dim {dim} of shape {input.shape}")
    out = like(call, 0, input, input.dtype)
    out.sizes[dim] = size


def check_grid(call: Call, input: View, grid: View, mode: Words("bilinear|nearest|bicubic")):
    if (input.ndim != 4 and input.ndim != 5) or grid.ndim != input.ndim:
        raise ShapeError(f"{call.name}: input and grid must both have 4 or 5 dimensions, got shapes {input.shape} and "
                         f"{grid.shape}")
    if grid.sizes[0] != input.sizes[0] or grid.sizes[input.ndim - 1] != input.ndim - 2:
        raise ShapeError(f"{call.name}: grid must have shape ({input.sizes[0]}, ..., {input.ndim - 2}) for input of "
                         f"shape {input.shape}, got {grid.shape}")
    for j in range(2, input.ndim):
        if input.sizes[j] == 0:
            raise ShapeError(f"{call.name}: the spatial sizes of input must be positive, got shape {input.shape}")
    if mode == "bicubic" and input.ndim == 5:
        raise ShapeError(f"{call.name}: mode 'bicubic' needs input of 4 dimensions, got shape {input.shape}")


def sampled_at(call: Call, input: View, grid: View, mode: Words("bilinear|nearest|bicubic")):
    check_grid(call, input, grid, mode)
    out = like(call, 0, input, input.dtype)
    for j in range(2, input.ndim):
        out.sizes[j] = grid.sizes[j - 1]


def sampled_slopes(call: Call, g: View, input: View, grid: View, mode: Words("bilinear|nearest|bicubic")):
    """The gradients of input and grid for ``g``, that of what ``sampled_at`` describes."""
    check_grid(call, input, grid, mode)
    check_same_ndim(call, "g", input, g)
    for j in range(input.ndim):
        if (j < 2 and g.sizes[j] != input.sizes[j]) or (j >= 2 and g.sizes[j] != grid.sizes[j - 1]):
            raise ShapeError(f"{call.name}: g must have the shape of the result for input of shape {input.shape} and "
                             f"grid of shape {grid.shape}, got {g.shape}")
    like(call, 0, input, input.dtype)
    like(call, 1, grid, grid.dtype)
