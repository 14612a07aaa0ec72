"""Clipping of gradients by their norm or by value, in place."""

import math
from types import GeneratorType

import ptcore
from ptcore import Tensor
from ptcore._errors import ShapeError
from ptcore._ops.checked import need_tensors
from ptcore._ops.optimizers import optimizers
from ptcore.linalg import vector_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _as_list(op, parameters):
    found = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for p in found:
        if not isinstance(p, Tensor):
            raise TypeError(f"{op}: must be given Tensors, got {type(p).__name__}")
    return found


def _grads(op, parameters):
    return [p.grad for p in _as_list(op, parameters) if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Return the norm of the vector of all elements of all tensors.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        The tensors.
    norm_type : float, default: 2.0
        Order of the norm; ``inf`` is allowed.
    error_if_nonfinite : bool, default: False
        Whether a norm that is not finite is an error.
    foreach : bool, optional
        Accepted for compatibility.

    Returns
    -------
    Tensor
        0-d.

    Raises
    ------
    RuntimeError
        If the norm is not finite and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import ptcore
    >>> get_total_norm([ptcore.tensor([3.0]), ptcore.tensor([4.0])]).item()
    5.0
    """
    tensors = _as_list("get_total_norm", tensors)
    norm_type = float(norm_type)
    if not tensors:
        return ptcore.tensor(0.0)
    device = tensors[0].device
    tensors = [t.detach() for t in tensors if t.numel()]
    if not tensors:
        return ptcore.tensor(0.0, device=device)
    norms = optimizers.norms(tensors) if norm_type == 2 else [vector_norm(t, norm_type) for t in tensors]
    if norm_type == 2 and len(norms) == 1:
        total = norms[0].to(device)
    else:
        total = vector_norm(ptcore.stack([n.to(device) for n in norms]), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped. To disable this error and scale the "
            "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients by ``min(1, max_norm / (total_norm + 1e-6))``."""
    need_tensors("clip_grads_with_norm_", total_norm=total_norm)
    if total_norm.ndim:
        raise ShapeError(f"clip_grads_with_norm_: total_norm must have 0 dims, got shape {list(total_norm.shape)}")
    coefficient = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    with ptcore.no_grad():
        optimizers.scale_(_grads("clip_grads_with_norm_", parameters), coefficient)


def clip_grad_norm_(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None
):
    """Scale the gradients so that their total norm is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Their ``grad`` is changed in place.
    max_norm : float
        Largest norm.
    norm_type : float, default: 2.0
        Order of the norm; ``inf`` is allowed.
    error_if_nonfinite : bool, default: False
        Whether a norm that is not finite is an error.
    foreach : bool, optional
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Total norm before clipping, 0-d.

    Warns
    -----
    UserWarning
        If `parameters` is a generator without elements, as one is that was used before.

    Examples
    --------
    >>> import ptcore
    >>> p = ptcore.nn.Parameter(ptcore.zeros(2))
    >>> p.grad = ptcore.tensor([3.0, 4.0])
    >>> clip_grad_norm_([p], 1.0).item()
    5.0
    """
    is_generator = isinstance(parameters, GeneratorType)
    parameters = _as_list("clip_grad_norm_", parameters)
    if is_generator and not parameters:
        import warnings

        warnings.warn("clip_grad_norm_: `parameters` is an empty generator, no gradient clipping will occur.",
                      stacklevel=2)
    total = get_total_norm(_grads("clip_grad_norm_", parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The older name of :func:`clip_grad_norm_`."""
    import warnings

    warnings.warn("`clip_grad_norm` is deprecated in PyTorch; use `clip_grad_norm_`.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp the gradients to ``[-clip_value, clip_value]`` in place.

    Examples
    --------
    >>> import ptcore
    >>> p = ptcore.nn.Parameter(ptcore.zeros(2))
    >>> p.grad = ptcore.tensor([3.0, -4.0])
    >>> clip_grad_value_(p, 1.0)
    >>> p.grad.tolist()
    [1.0, -1.0]
    """
    clip_value = float(clip_value)
    with ptcore.no_grad():
        for grad in _grads("clip_grad_value_", parameters):
            grad.clamp_(min=-clip_value, max=clip_value)
