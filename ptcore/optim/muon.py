"""Muon. State of a parameter: ``momentum_buffer``."""

import ptcore
from ptcore import Tensor
from ptcore.optim._by_group import ByParameter

__all__ = ["Muon"]


class Muon(ByParameter):
    """Momentum with nearly orthogonal steps, for the matrices of hidden layers.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Matrices or groups of them; other parameters belong to another optimiser.
    lr : float, default: 1e-3
        Learning rate.
    weight_decay : float, default: 0.1
        Share of the parameter that a step of ``lr`` takes away.
    momentum : float, default: 0.95
        Share of the earlier gradients in their mean.
    nesterov : bool, default: True
        Whether the mean is taken a step ahead.
    ns_coefficients : tuple of three float
        Coefficients of the polynomial that is iterated.
    eps : float, default: 1e-7
        Smallest norm that a step is divided by.
    ns_steps : int, default: 5
        How often the polynomial is applied.
    adjust_lr_fn : {'original', 'match_rms_adamw'}, optional
        How the learning rate goes with the shape: times ``sqrt(max(1, rows / columns))``, the default, or
        ``0.2 * sqrt(max(rows, columns))``.

    Notes
    -----
    A step is computed in bfloat16, as in PyTorch. K. Jordan, https://kellerjordan.github.io/posts/muon.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.ones(2, 2))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.Muon([w], lr=0.5).step()
    >>> bool((w < 1).all())
    True
    """

    _later = ()

    def __init__(self, params, lr: "float | Tensor" = 1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None):
        if isinstance(lr, ptcore.Tensor) and lr.numel() != 1:
            raise ValueError(f"Muon: lr must have one element, got shape {list(lr.shape)}")
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"Muon: {name} must not be negative, got {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Muon: adjust_lr_fn must be 'original' or 'match_rms_adamw', got {adjust_lr_fn!r}")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                                  "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
                                  "adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon: parameters must be matrices, got shape {list(p.shape)}")

    def _begin(self, param, state, group):
        state["momentum_buffer"] = ptcore.zeros_like(param)

    def _update(self, param, grad, state, group):
        lr, momentum = float(group["lr"]), group["momentum"]
        mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        ahead = grad.lerp(mean, momentum) if group["nesterov"] else mean
        step = _orthogonal(ahead, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * max(rows, columns) ** 0.5
        else:
            ratio = max(1, rows / columns) ** 0.5
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(step, alpha=-lr * ratio)


def _orthogonal(matrix, coefficients, steps, eps):
    """A matrix with singular values near 1, by repeating a polynomial in the matrix (Newton and Schulz)."""
    if steps >= 100:
        raise ValueError(f"Muon: ns_steps must be less than 100, got {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"Muon: ns_coefficients must be three numbers, got {coefficients!r}")
    a, b, c = coefficients
    x = matrix.bfloat16()
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = ptcore.addmm(x, ptcore.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
