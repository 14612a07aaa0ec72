"""Normalisation, recurrent layers and Fourier transforms."""
from ptcore._errors import OutOfRangeError, ShapeError
from ptcore._sizes.language import (
    COMPLEX_OF,
    REAL_OF,
    Bool,
    Call,
    Int,
    Ints,
    Text,
    View,
    Words,
    fits,
    given,
    like,
    output,
)
from ptcore._sizes.rules.elements import check_ndim, stat_dtype
from ptcore._sizes.rules.products import nothing

# -- normalisation ----------------------------------------------------------------------------------------------------

def check_normalized(call: Call, x: View, t: View, name: Text, n: Int):
    """An optional tensor has the last n sizes of x."""
    if given(t):
        if t.ndim != n:
            raise ShapeError(f"{call.name}: {name} must have shape {x.shape[x.ndim - n:]}, got {t.shape}")
        for j in range(t.ndim):
            if t.sizes[j] != x.sizes[x.ndim - n + j]:
                raise ShapeError(f"{call.name}: {name} must have shape {x.shape[x.ndim - n:]}, got {t.shape}")


def outer_stat(call: Call, k: Int, x: View, n: Int):
    """Output k has the sizes of x, 1 in the place of the last n."""
    out = like(call, k, x, stat_dtype(x))
    for j in range(n):
        out.sizes[x.ndim - 1 - j] = 1


def normalized(call: Call, input: View, weight: View, n: Int):
    """Output 0 has the input's sizes, whose last n are those of the weight."""
    if n < 1:
        raise ShapeError(f"{call.name}: the last sizes of input must be normalized_shape [], got shape {input.shape}")
    if n > input.ndim:
        raise ShapeError(f"{call.name}: input must have at least {n} dimensions, got shape {input.shape}")
    check_normalized(call, input, weight, "weight", n)
    like(call, 0, input, input.dtype)


def layer_norm(call: Call, input: View, weight: View, bias: View, normalized_ndim: Int):
    """The input's sizes, and two statistics with 1 in the place of the normalised dims."""
    normalized(call, input, weight, normalized_ndim)
    check_normalized(call, input, bias, "bias", normalized_ndim)
    outer_stat(call, 1, input, normalized_ndim)
    outer_stat(call, 2, input, normalized_ndim)


def rms_norm(call: Call, input: View, weight: View, normalized_ndim: Int):
    """The input's sizes, and a statistic with 1 in the place of the normalised dims."""
    normalized(call, input, weight, normalized_ndim)
    outer_stat(call, 1, input, normalized_ndim)


def affine_gradient(call: Call, k: Int, input: View, stat: View, name: Text):
    """Output k has the normalised shape, where the statistic has 1."""
    if stat.ndim != input.ndim:
        raise ShapeError(f"{call.name}: {name} must have {input.ndim} dimensions, got shape {stat.shape}")
    n = input.ndim
    while n > 0 and stat.sizes[n - 1] == 1:
        n -= 1
    out = output(call, k, input.ndim - n, input.dtype)
    for j in range(input.ndim - n):
        out.sizes[j] = input.sizes[n + j]


def layer_norm_backward(call: Call, input: View, mean: View):
    """Input's gradient, and weight's and bias's."""
    like(call, 0, input, input.dtype)
    affine_gradient(call, 1, input, mean, "mean")
    affine_gradient(call, 2, input, mean, "mean")


def rms_norm_backward(call: Call, input: View, rstd: View):
    """Input's gradient, and weight's."""
    like(call, 0, input, input.dtype)
    affine_gradient(call, 1, input, rstd, "rstd")


def check_channels(call: Call, x: View, t: View, name: Text):
    """An optional tensor has one number for each channel of (N, C, ...)."""
    if given(t) and (t.ndim != 1 or t.sizes[0] != x.sizes[1]):
        raise ShapeError(f"{call.name}: {name} must have shape {[x.sizes[1]]} for input of shape {x.shape}, got "
                         f"{t.shape}")


def check_has_channels(call: Call, x: View):
    if x.ndim < 2:
        raise ShapeError(f"{call.name}: input must have shape (N, C, ...), got {x.shape}")


def batch_norm(call: Call, input: View, weight: View, bias: View):
    """The input's sizes, and two statistics of each channel."""
    check_has_channels(call, input)
    check_channels(call, input, weight, "weight")
    check_channels(call, input, bias, "bias")
    like(call, 0, input, input.dtype)
    for k in range(1, 3):
        out = output(call, k, 1, stat_dtype(input))
        out.sizes[0] = input.sizes[1]


def group_norm(call: Call, input: View, weight: View, bias: View, num_groups: Int):
    """The input's sizes, and two statistics of each group of each sample."""
    check_has_channels(call, input)
    check_channels(call, input, weight, "weight")
    check_channels(call, input, bias, "bias")
    if num_groups < 1 or input.sizes[1] % num_groups != 0:
        raise RuntimeError(f"{call.name}: num_groups must be positive and divide the number of channels, "
                           f"{input.sizes[1]}, got {num_groups}")
    like(call, 0, input, input.dtype)
    for k in range(1, 3):
        out = output(call, k, 2, stat_dtype(input))
        out.sizes[0] = input.sizes[0]
        out.sizes[1] = num_groups


def channels_backward(call: Call, input: View):
    """The gradients of the input, and of weight and bias."""
    check_has_channels(call, input)
    like(call, 0, input, input.dtype)
    for k in range(1, 3):
        out = output(call, k, 1, input.dtype)
        out.sizes[0] = input.sizes[1]


# -- recurrent layers -------------------------------------------------------------------------------------------------

def check_matrix(call: Call, x: View, name: Text, rows: Int, columns: Int):
    if x.ndim != 2 or x.sizes[0] != rows or x.sizes[1] != columns:
        raise ShapeError(f"{call.name}: {name} must have shape {[rows, columns]}, got {x.shape}")


def pair(call: Call, k: Int, there: Bool, rows: Int, columns: Int, dtype: Int):
    """Output k is a matrix, or nothing."""
    if there:
        out = output(call, k, 2, dtype)
        out.sizes[0] = rows
        out.sizes[1] = columns
    else:
        nothing(call, k, dtype)


def recurrent(call: Call, gates: View, hx: View, cx: View, weight: View, bias: View, projection: View,
              batch_sizes: Ints, mode: Words("tanh|relu|lstm|gru")):
    """States of all steps, cells of an LSTM, and what the backward of LSTM and GRU needs."""
    check_ndim(call, hx, "hx", 2)
    check_ndim(call, weight, "weight_hh", 2)
    batch = hx.sizes[0]
    size = hx.sizes[1]
    n = size
    if given(projection):
        if mode != "lstm":
            raise ShapeError(f"{call.name}: an LSTM, and nothing else, has weight_hr, got mode {mode!r}")
        check_ndim(call, projection, "weight_hr", 2)
        n = projection.sizes[1]
        check_matrix(call, projection, "weight_hr", size, n)
    fits(n, 40)
    width = n * (4 if mode == "lstm" else 3 if mode == "gru" else 1)
    check_matrix(call, weight, "weight_hh", width, size)
    rows = 0
    for i in range(batch_sizes.count):
        fits(batch_sizes.list[i], 31)
        rows = rows + batch_sizes.list[i]
    check_matrix(call, gates, "the product of input and weight_ih", rows, width)
    if given(bias) and (bias.ndim != 1 or bias.sizes[0] != width):
        raise ShapeError(f"{call.name}: bias_hh must have shape {[width]}, got {bias.shape}")
    if given(cx) != (mode == "lstm"):
        raise ShapeError(f"{call.name}: an LSTM, and nothing else, has cx, got mode {mode!r}")
    if given(cx):
        check_matrix(call, cx, "cx", batch, n)
    last = batch
    for i in range(batch_sizes.count):
        if batch_sizes.list[i] < 0 or batch_sizes.list[i] > last:
            raise ShapeError(f"{call.name}: batch_sizes must not rise and be at most {batch}, got {batch_sizes.list}")
        last = batch_sizes.list[i]
    pair(call, 0, True, gates.sizes[0], size, gates.dtype)
    pair(call, 1, mode == "lstm", gates.sizes[0], n, gates.dtype)
    pair(call, 2, mode == "lstm" or mode == "gru", gates.sizes[0], 4 * n, gates.dtype)


def recurrent_gradients(call: Call, g: View, hx: View, weight: View, projection: View,
                        mode: Words("tanh|relu|lstm|gru")):
    check_ndim(call, g, "g", 2)
    check_ndim(call, hx, "hx", 2)
    check_ndim(call, weight, "weight_hh", 2)
    rows = g.sizes[0]
    width = weight.sizes[0]
    pair(call, 0, True, rows, width, g.dtype)
    pair(call, 1, mode == "gru", rows, width, g.dtype)
    pair(call, 2, True, rows, g.sizes[1], g.dtype)
    pair(call, 3, True, hx.sizes[0], hx.sizes[1], g.dtype)
    pair(call, 4, mode == "lstm", hx.sizes[0], width // 4, g.dtype)
    pair(call, 5, given(projection), rows, g.sizes[1], g.dtype)


# -- Fourier transforms -----------------------------------------------------------------------------------------------

def check_spectral(call: Call, x: View, dim: Ints):
    if x.ndim == 0:
        raise OutOfRangeError(f"{call.name}: input must have at least one dimension, got shape []")
    for i in range(dim.count):
        if x.sizes[dim.list[i]] < 1:
            raise ShapeError(f"{call.name}: the number of data points must be positive, got {x.sizes[dim.list[i]]}")
    if dim.count == 0:
        raise ShapeError(f"{call.name}: at least one dim must be transformed, got none")


def fft_c2c(call: Call, input: View, dim: Ints):
    check_spectral(call, input, dim)
    like(call, 0, input, input.dtype)


def fft_r2c(call: Call, input: View, dim: Ints, onesided: Bool):
    """Half of the last of the dims is there for real numbers."""
    check_spectral(call, input, dim)
    out = like(call, 0, input, COMPLEX_OF[input.dtype])
    if onesided:
        last = dim.list[dim.count - 1]
        out.sizes[last] = input.sizes[last] // 2 + 1


def fft_c2r(call: Call, input: View, dim: Ints, last_dim_size: Int):
    check_spectral(call, input, dim)
    last = dim.list[dim.count - 1]
    if last_dim_size < 1 or input.sizes[last] != last_dim_size // 2 + 1:
        raise ShapeError(f"{call.name}: a result of size {last_dim_size} needs {last_dim_size // 2 + 1} entries along "
                         f"dim {last}, got shape {input.shape}")
    out = like(call, 0, input, REAL_OF[input.dtype])
    out.sizes[last] = last_dim_size
