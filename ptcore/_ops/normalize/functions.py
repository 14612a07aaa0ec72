"""``batch_norm``, ``instance_norm``, ``group_norm``, ``rms_norm`` and ``local_response_norm`` of ``nn.functional``."""
from ptcore._dtype import finfo
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import flag, integers, real
from ptcore._ops.functions import batch_norm_stats, cat, clone, div, group_norm_stats
from ptcore._ops.table.shapes import stat_dtype
from ptcore._state import innermost_saved_hooks, no_grad
from ptcore._tensor import Tensor


def check_input(op, input, least=2):
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}: input must be a Tensor, got {type(input).__name__}")
    if input.ndim < least:
        expected = "(N, C, ...)" if least == 2 else "(N, C, L, ...)"
        raise ShapeError(f"{op}: input must have shape {expected}, got {list(input.shape)}")


def check_channels(op, input, **tensors):
    for name, t in tensors.items():
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"{op}: {name} must be a Tensor or None, got {type(t).__name__}")
        if t is not None and t.dtype.kind != "f":
            raise DTypeError(f"{op}: {name} must be real floating-point, got {t.dtype.name}")
        if t is not None and tuple(t.shape) != (input.shape[1],):
            raise ShapeError(f"{op}: {name} must have shape {[input.shape[1]]} for input of shape "
                             f"{list(input.shape)}, got {list(t.shape)}")


def like_input(input, *tensors):
    """Scale and shift in the input's dtype: parameters may be float32 beside half inputs."""
    return [t if t is None else t.to(input.dtype) for t in tensors]


def _settings(op, name, own, momentum, eps):
    """Whether the batch's statistics are used, and two numbers, checked."""
    if own is not True and own is not False:
        own = flag(op, name, own)
    return own, real(op, "momentum", momentum), real(op, "eps", eps)


def _per_channel(t, input):
    return t.reshape(1, -1, *[1] * (input.ndim - 2))


def _update(running_mean, running_var, mean, var, count, momentum):
    """Moves the running statistics towards a batch's; the variance is the unbiased one."""
    with no_grad():
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype) * momentum)
        if running_var is not None:
            # Of a single value there is no unbiased variance: PyTorch's is NaN as well.
            factor = momentum * count / (count - 1) if count > 1 else float("nan")
            running_var.mul_(1 - momentum).add_(var.to(running_var.dtype) * factor)


def normalized(input, mean, var, weight, bias, eps):
    """Normalisation by given statistics, a number for each channel."""
    wide = stat_dtype(input)
    scale = (var.to(wide) + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    out = (input.to(wide) - _per_channel(mean, input)) * _per_channel(scale, input)
    return (out if bias is None else out + _per_channel(bias, input)).to(input.dtype)


def need_statistics(op, running_mean, running_var):
    """Raises unless both are there."""
    if running_mean is None or running_var is None:
        raise RuntimeError(f"{op}: running_mean and running_var must be Tensors where training is False, got None")


def of_batch(input, weight, bias, running_mean, running_var, momentum, eps):
    """The batch normalised by its own statistics, their means and biased variances; moves the running ones."""
    count = input.numel() // input.shape[1] if input.shape[1] else 0
    moving = count and (running_mean is not None or running_var is not None)        # an empty batch says nothing
    # A hook may end the call, as in a checkpoint's second run: they move before it.
    if moving and innermost_saved_hooks():
        with no_grad():
            mean, var = batch_norm_stats(input, weight, bias, float(eps))[1:]
        _update(running_mean, running_var, mean, var, count, momentum)
        moving = False
    out, mean, var = batch_norm_stats(input, weight, bias, float(eps))
    if moving:
        _update(running_mean, running_var, mean.detach(), var.detach(), count, momentum)
    return out, mean, var


@overridable
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel, over the batch and all positions.

    Parameters
    ----------
    input : Tensor
        Shape ``(N, C, ...)``.
    running_mean, running_var : Tensor or None
        Shape ``(C,)``: used if not `training`, else moved towards the batch's statistics.
    weight, bias : Tensor, optional
        Shape ``(C,)``.
    training : bool
        Whether the batch's own statistics are used.
    momentum : float
        The share of the batch in the running statistics.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If a tensor has not one element for each channel.
    ValueError
        If there is one value a channel in training.

    Notes
    -----
    The batch is normalised by its biased variance; the running one is unbiased.
    S. Ioffe, C. Szegedy, arXiv:1502.03167.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([[1., 0.], [3., 0.]])
    >>> ptcore.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000,  0.0000],
            [ 1.0000,  0.0000]])
    """
    if isinstance(input, Tensor) and tuple(input.shape) == (0,):    # PyTorch takes it for no channels
        return clone(input)
    training, momentum, eps = _settings("batch_norm", "training", training, momentum, eps)
    check_input("batch_norm", input)
    check_channels("batch_norm", input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if eps < 0 or (training and eps == 0):
        raise ValueError("batch_norm: eps must be "
                         f"{'positive during training' if training else 'non-negative'}, got {eps}")
    weight, bias = like_input(input, weight, bias)
    if not training:
        need_statistics("batch_norm", running_mean, running_var)
        return normalized(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // input.shape[1] if input.shape[1] else 0
    if count == 1:
        raise ValueError(f"batch_norm: expected more than 1 value per channel when training, got input size "
                         f"{list(input.shape)}")
    return of_batch(input, weight, bias, running_mean, running_var, momentum, eps)[0]


@overridable
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):
    """Normalisation of each channel of each sample over its positions.

    Parameters
    ----------
    input : Tensor
        Shape ``(N, C, L, ...)``.
    running_mean, running_var : Tensor, optional
        Shape ``(C,)``: used if not `use_input_stats`, else moved towards the batch's means.
    weight, bias : Tensor, optional
        Shape ``(C,)``.
    use_input_stats : bool
        Whether each sample's own statistics are used.
    momentum : float
        The share of the batch in the running statistics.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If a tensor has not one element for each channel.
    ValueError
        If there is one position.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.instance_norm(ptcore.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    use_input_stats, momentum, eps = _settings("instance_norm", "use_input_stats", use_input_stats, momentum, eps)
    check_input("instance_norm", input)
    check_channels("instance_norm", input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    weight, bias = like_input(input, weight, bias)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError("instance_norm: running_mean and running_var must be Tensors where use_input_stats is "
                             "False, got None")
        return normalized(input, running_mean, running_var, weight, bias, eps)
    samples, channels = input.shape[:2]
    count = input.numel() // (samples * channels) if samples * channels else 0
    if count == 1:
        raise ValueError(f"instance_norm: expected more than 1 spatial element when training, got input size "
                         f"{list(input.shape)}")
    if channels == 0 or (running_mean is None and running_var is None):
        return group_norm_stats(input, weight, bias, max(channels, 1), float(eps))[0]
    # Each sample's channels as channels of one sample: their variances are wanted.
    out, mean, var = batch_norm_stats(input.reshape(1, samples * channels, -1), None, None, float(eps))
    mean, var = mean.detach().view(samples, channels).mean(0), var.detach().view(samples, channels).mean(0)
    _update(running_mean, running_var, mean, var, count, momentum)
    out = out.view(input.shape)
    if weight is not None:
        out = out * _per_channel(weight, input)
    return out if bias is None else out + _per_channel(bias, input)


@overridable
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalisation of each sample over groups of its channels.

    Parameters
    ----------
    input : Tensor
        Shape ``(N, C, ...)``.
    num_groups : int
        A divisor of ``C``.
    weight, bias : Tensor, optional
        Shape ``(C,)``.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If a tensor has not one element for each channel.
    RuntimeError
        If `num_groups` does not divide the number of channels.

    Notes
    -----
    Y. Wu, K. He, arXiv:1803.08494.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.group_norm(ptcore.tensor([[1., 3., 5., 9.]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    check_input("group_norm", input)
    check_channels("group_norm", input, weight=weight, bias=bias)
    return group_norm_stats(input, *like_input(input, weight, bias), num_groups, real("group_norm", "eps", eps))[0]


@overridable
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dims.

    Parameters
    ----------
    input : Tensor
        Shape ``(*, *normalized_shape)``.
    normalized_shape : int or sequence of ints
    weight : Tensor, optional
        Shape ``normalized_shape``.
    eps : float, optional
        The dtype's epsilon if None.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If the last sizes of input, or those of weight, are not ``normalized_shape``.

    Notes
    -----
    B. Zhang, R. Sennrich, arXiv:1910.07467.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.rms_norm(ptcore.tensor([[3., 4., 0., 0.]]), (4,))
    tensor([[1.2000, 1.6000, 0.0000, 0.0000]])
    """
    check_input("rms_norm", input, 0)
    if input.dtype.kind not in "fc":
        raise DTypeError(f"rms_norm: input must be floating-point, got {input.dtype.name}")
    shape = tuple(integers("rms_norm", "normalized_shape", normalized_shape))
    eps = None if eps is None else real("rms_norm", "eps", eps)
    if not shape or len(shape) > input.ndim or tuple(input.shape[-len(shape):]) != shape:
        raise ShapeError(f"rms_norm: the last sizes of input must be normalized_shape {list(shape)}, got shape "
                         f"{list(input.shape)}")
    if weight is not None and not isinstance(weight, Tensor):
        raise TypeError(f"rms_norm: weight must be a Tensor or None, got {type(weight).__name__}")
    if weight is not None and tuple(weight.shape) != shape:
        raise ShapeError(f"rms_norm: weight must have shape {list(shape)}, got {list(weight.shape)}")
    wide = input.float() if input.dtype.itemsize == 2 else input
    dims = tuple(range(-len(shape), 0))
    if eps is None:
        eps = finfo(wide.dtype).eps
    out = wide * ((wide * wide).mean(dims, True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out.to(input.dtype)


@overridable
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """``x / (k + alpha * mean of x**2 over size neighbouring channels) ** beta``.

    Parameters
    ----------
    input : Tensor
        Shape ``(N, C, L, ...)``.
    size : int
        The number of channels; channels outside count as zeros.
    alpha, beta, k : float

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.local_response_norm(ptcore.ones(1, 1, 1), 1, alpha=1., beta=1.)
    tensor([[[0.5000]]])
    """
    check_input("local_response_norm", input, 3)
    if input.numel() == 0:
        return input
    square = input * input
    before, after = size // 2, (size - 1) // 2
    zero = square.new_zeros
    padded = cat([zero(square.shape[0], before, *square.shape[2:]), square,
                  zero(square.shape[0], after, *square.shape[2:])], 1)
    total = padded[:, :square.shape[1]]
    for i in range(1, size):
        total = total + padded[:, i:i + square.shape[1]]
    if input.dtype.kind in "iu":            # PyTorch's mean of whole numbers is one
        total = div(total, size, rounding_mode="trunc")
        return input / (total * alpha + k) ** beta
    return input / (total * (alpha / size) + k) ** beta
