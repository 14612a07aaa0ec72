"""Initialisers: fill a tensor in place, without recording, and return it.

Random ones take a `generator`; the default generator of the CPU otherwise.
"""

import functools
import math

import ptcore
from ptcore._libraries import library
from ptcore._ops.checked import need_tensors, real
from ptcore._random import draws_as_pytorch

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_UNIT_GAIN = frozenset(
    f"{kind}{n}d" for kind in ("conv", "conv_transpose") for n in (1, 2, 3)
) | {"linear", "sigmoid"}


def calculate_gain(nonlinearity, param=None):
    """Return the recommended gain of a nonlinearity.

    Parameters
    ----------
    nonlinearity : str
        Name of the function in ``nn.functional``.
    param : float, optional
        Negative slope of 'leaky_relu' (0.01 by default).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the name is unknown or `param` is not a number.

    Examples
    --------
    >>> round(calculate_gain("relu"), 4)
    1.4142
    """
    if not isinstance(nonlinearity, str):
        raise ValueError(f"calculate_gain: nonlinearity must be str, got {type(nonlinearity).__name__}")
    if nonlinearity in _UNIT_GAIN:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"calculate_gain: negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    raise ValueError(f"calculate_gain: Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with values uniform in ``[a, b)``.

    Examples
    --------
    >>> import ptcore
    >>> w = uniform_(ptcore.empty(100), -1, 1)
    >>> bool((w >= -1).all())
    True
    """
    need_tensors("uniform_", tensor=tensor)
    with ptcore.no_grad():
        return tensor.uniform_(real("uniform_", "a", a), real("uniform_", "b", b), generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with values of the normal distribution.

    Examples
    --------
    >>> import ptcore
    >>> normal_(ptcore.empty(3)).shape
    ptcore.Size([3])
    """
    need_tensors("normal_", tensor=tensor)
    with ptcore.no_grad():
        return tensor.normal_(real("normal_", "mean", mean), real("normal_", "std", std), generator=generator)


def constant_(tensor, val):
    """Fill with `val`.

    Examples
    --------
    >>> import ptcore
    >>> constant_(ptcore.empty(2), 3.0).tolist()
    [3.0, 3.0]
    """
    need_tensors("constant_", tensor=tensor)
    with ptcore.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fill with ones."""
    need_tensors("ones_", tensor=tensor)
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fill with zeros."""
    need_tensors("zeros_", tensor=tensor)
    return constant_(tensor, 0.0)


def _check_2d(name, tensor):
    if tensor.ndim != 2:
        raise ValueError(
            f"{name}: only tensors with 2 dimensions are supported, got {tensor.ndim}"
        )


def eye_(tensor):
    """Fill a 2-D tensor with the identity matrix.

    Examples
    --------
    >>> import ptcore
    >>> eye_(ptcore.empty(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    need_tensors("eye_", tensor=tensor)
    _check_2d("eye_", tensor)
    with ptcore.no_grad():
        tensor.copy_(
            ptcore.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device)
        )
    return tensor


def _as_pytorch(tensor, generator):
    """Whether the values are PyTorch's random numbers: see :func:`ptcore.random.use`."""
    return draws_as_pytorch(generator, tensor.device)


def _drawn_on(tensor):
    """The device whose generator gives the numbers: the tensor's, if it has numbers."""
    return "cpu" if tensor.is_meta else tensor.device


def _trunc_normal_as_pytorch(tensor, mean, std, a, b, generator):
    """Normals drawn again as a whole until all are between the bounds; uniforms where few normals would be."""
    share = (math.erf((b - mean) / std / math.sqrt(2.0)) - math.erf((a - mean) / std / math.sqrt(2.0))) / 2
    with ptcore.no_grad():
        if share > 0.3:
            low, high = (ptcore.tensor(x, dtype=tensor.dtype, device="cpu").item() for x in (a, b))
            result = tensor.normal_(mean, std, generator=generator)
            while bool((outside := (result < low) | (result > high)).any()):
                again = ptcore.empty_like(result).normal_(mean, std, generator=generator)
                result = ptcore.where(outside, again, result)
        else:
            peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

            def is_refused(values):
                """Where the logarithm of a uniform number is above that of the density, of which 1 is the largest."""
                density = values.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
                return ptcore.empty_like(tensor).uniform_(generator=generator).log_() > density

            result = tensor.uniform_(a, b, generator=generator)
            pending = is_refused(result)
            while bool(pending.any()):
                values = ptcore.empty_like(tensor).uniform_(a, b, generator=generator)
                result = ptcore.where(pending, values, result)
                pending = ptcore.where(pending, is_refused(values), pending)
        return tensor if result is tensor else tensor.copy_(result)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with values of the normal distribution truncated to ``[a, b]``.

    Notes
    -----
    PyTorch's random numbers (:func:`ptcore.random.use`) are drawn by its rejection method. Otherwise by inversion:
    ``x = mean + std * Phi^-1(u)`` with `u` uniform in
    ``[Phi((a - mean) / std), Phi((b - mean) / std)]``, far from the mean by the logarithm of `Phi`.

    Examples
    --------
    >>> import ptcore
    >>> w = trunc_normal_(ptcore.empty(1000))
    >>> bool((w.abs() <= 2).all())
    True
    """
    need_tensors("trunc_normal_", tensor=tensor)
    mean, std = real("trunc_normal_", "mean", mean), real("trunc_normal_", "std", std)
    a, b = real("trunc_normal_", "a", a), real("trunc_normal_", "b", b)
    if not std > 0 or mean != mean:
        raise ValueError(f"trunc_normal_: mean must be a number and std must be positive, got {mean} and {std}")
    if not a <= b:
        raise RuntimeError(f"trunc_normal_: a must not exceed b, got {a} and {b}")
    if mean < a - 2 * std or mean > b + 2 * std:
        import warnings

        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )

    if _as_pytorch(tensor, generator):
        return _trunc_normal_as_pytorch(tensor, mean, std, a, b, generator)
    ndtr, ndtri = library("scipy.special").ndtr, library("scipy.special").ndtri

    low, high = (a - mean) / std, (b - mean) / std
    is_far = max(low, -high) > 4
    with ptcore.no_grad():
        share = ptcore.empty(tensor.shape, dtype=ptcore.float64, device=_drawn_on(tensor))
        if is_far:
            values = _in_tail(share.uniform_(generator=generator).cpu().numpy(), low, high)
        else:
            values = ndtri(share.uniform_(ndtr(low), ndtr(high), generator=generator).cpu().numpy())
        return tensor.copy_(ptcore.from_numpy(mean + std * values).clamp(min=a, max=b))


def _in_tail(share, low, high):
    """Standard normals between bounds far from 0, whose probabilities are near 0 or 1: by their logarithms."""
    np, special = library("numpy"), library("scipy.special")
    if low > 0:                         # probabilities near 0 are the more exact ones
        return -_in_tail(share, -high, -low)
    below, above = special.log_ndtr(low), special.log_ndtr(high)
    with np.errstate(divide="ignore"):
        return special.ndtri_exp(above + np.log(share + (1 - share) * np.exp(below - above)))


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            f"dimensions, got {tensor.ndim}"
        )
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _calculate_correct_fan(tensor, mode):
    modes = ("fan_in", "fan_out")
    if not isinstance(mode, str) or mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(modes)}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fill uniformly in ``[-k, k]``, ``k = gain * sqrt(6 / (fan_in + fan_out))``.

    Raises
    ------
    ValueError
        If the tensor has fewer than 2 dimensions.

    Examples
    --------
    >>> import ptcore
    >>> w = xavier_uniform_(ptcore.empty(3, 3))
    >>> bool((w.abs() <= 1).all())
    True
    """
    need_tensors("xavier_uniform_", tensor=tensor)
    k = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -k, k, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fill normally with ``std = gain * sqrt(2 / (fan_in + fan_out))``.

    Raises
    ------
    ValueError
        If the tensor has fewer than 2 dimensions.
    """
    need_tensors("xavier_normal_", tensor=tensor)
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(name, tensor, a, mode, nonlinearity):
    """Standard deviation, or None for a tensor without elements."""
    if 0 in tensor.shape:
        import warnings

        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None
):
    """Fill uniformly in ``[-k, k]``, ``k = gain * sqrt(3 / fan)``.

    Parameters
    ----------
    tensor : Tensor
        Tensor with at least 2 dimensions.
    a : float, default: 0
        Negative slope of the rectifier, used with 'leaky_relu'.
    mode : {'fan_in', 'fan_out'}, default: 'fan_in'
        Keep the variance in the forward or the backward pass.
    nonlinearity : str, default: 'leaky_relu'
        Name for :func:`calculate_gain`.
    generator : Generator, optional
        Source of random numbers.

    Examples
    --------
    >>> import ptcore
    >>> kaiming_uniform_(ptcore.empty(3, 5), nonlinearity="relu").shape
    ptcore.Size([3, 5])
    """
    need_tensors("kaiming_uniform_", tensor=tensor)
    std = _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    k = math.sqrt(3.0) * std
    return uniform_(tensor, -k, k, generator)


def kaiming_normal_(
    tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None
):
    """Fill normally with ``std = gain / sqrt(fan)``.

    Parameters as :func:`kaiming_uniform_`.
    """
    need_tensors("kaiming_normal_", tensor=tensor)
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor, gain: float = 1, generator=None):
    """Fill with a (semi-)orthogonal matrix times `gain`.

    Dimensions after the first are flattened. Uniformly distributed (Haar).

    Raises
    ------
    ValueError
        If the tensor has fewer than 2 dimensions.

    Notes
    -----
    The factor `q` of the QR decomposition of a matrix of normal numbers, its
    columns multiplied by the signs of the diagonal of `r`.
    """
    need_tensors("orthogonal_", tensor=tensor)
    gain = real("orthogonal_", "gain", gain)
    if tensor.ndim < 2:
        raise ValueError(
            "orthogonal_: only tensors with 2 or more dimensions are supported, got "
            f"{tensor.ndim}"
        )
    if not tensor.is_floating_point():
        raise NotImplementedError(f"orthogonal_: tensor must be real floating-point, got {tensor.dtype.name}")
    if tensor.numel() == 0:
        return tensor
    np = library("numpy")

    with ptcore.no_grad():
        rows = tensor.shape[0]
        dtype = tensor.dtype if _as_pytorch(tensor, generator) else ptcore.float64
        normal = ptcore.empty((rows, tensor.numel() // rows), dtype=dtype, device=_drawn_on(tensor))
        matrix = normal.normal_(0, 1, generator=generator).double().cpu().numpy()
        wide = matrix.shape[0] < matrix.shape[1]
        q, r = np.linalg.qr(matrix.T if wide else matrix)
        q *= gain * np.copysign(1.0, np.diagonal(r))
        q = np.ascontiguousarray(q.T if wide else q).reshape(tuple(tensor.shape))
        return tensor.copy_(ptcore.from_numpy(q))


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a 2-D tensor normally and set a share of each column to zero.

    Parameters
    ----------
    tensor : Tensor, shape (rows, columns)
        Tensor to fill.
    sparsity : float
        Share of zeros in each column.
    std : float, default: 0.01
        Standard deviation of the other elements.
    generator : Generator, optional
        Source of random numbers.
    """
    need_tensors("sparse_", tensor=tensor)
    _check_2d("sparse_", tensor)
    std = real("sparse_", "std", std)
    rows, cols = tensor.shape
    sparsity = real("sparse_", "sparsity", sparsity)
    if not sparsity >= 0:
        raise ValueError(f"sparse_: sparsity must not be negative, got {sparsity}")
    zeros = math.ceil(sparsity * rows)
    with ptcore.no_grad():
        tensor.normal_(0, std, generator=generator)
        # as in PyTorch, its random numbers choose the zeros by the default generator
        chooses = None if _as_pytorch(tensor, generator) else generator
        for j in range(0 if tensor.is_meta else cols):
            order = ptcore.randperm(rows, generator=chooses, device=tensor.device)
            tensor[order[:zeros], j] = 0
    return tensor


def dirac_(tensor, groups=1):
    """Fill the weight of a convolution so that it hands its input channels on.

    Parameters
    ----------
    tensor : Tensor
        Weight of 3 to 5 dimensions.
    groups : int, default: 1
        Groups of the convolution; each has its own identity.

    Raises
    ------
    ValueError
        If the number of dimensions is another, or the first size is not divisible by `groups`.

    Examples
    --------
    >>> import ptcore
    >>> dirac_(ptcore.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    need_tensors("dirac_", tensor=tensor)
    if not 3 <= tensor.ndim <= 5:
        raise ValueError(f"dirac_: only tensors with 3, 4 or 5 dimensions are supported, got {tensor.ndim}")
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: the first size must be divisible by groups, got {tensor.shape[0]} and {groups}")
    each = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with ptcore.no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(each, tensor.shape[1])):
                tensor[(group * each + d, d, *middle)] = 1
    return tensor


def _older(function):
    """The name without an underscore, deprecated."""
    new, old = function.__name__, function.__name__[:-1]

    @functools.wraps(function)
    def deprecated(*args, **kwargs):
        import warnings
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"Deprecated name of :func:`{new}`."
    return deprecated


constant, dirac, eye, sparse = _older(constant_), _older(dirac_), _older(eye_), _older(sparse_)
kaiming_normal, kaiming_uniform = _older(kaiming_normal_), _older(kaiming_uniform_)
normal, orthogonal, uniform = _older(normal_), _older(orthogonal_), _older(uniform_)
xavier_normal, xavier_uniform = _older(xavier_normal_), _older(xavier_uniform_)
