"""Adafactor. State of a parameter: ``step`` with ``row_var`` and ``col_var``, or with ``variance`` of vectors."""

import ptcore
from ptcore import Tensor
from ptcore.optim._by_group import ByParameter
from ptcore.optim.optimizer import counter_dtype

__all__ = ["Adafactor"]


class Adafactor(ByParameter):
    """Adafactor: divides by the root mean square of the gradient; for a matrix, means of rows and columns are kept.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-2
        The largest step relative to the parameter; ``1 / sqrt(t)`` where that is smaller.
    beta2_decay : float, default: -0.8
        Power of the step with which a new gradient's share of the means falls.
    eps : tuple of float or None and float, default: (None, 1e-3)
        The smallest root mean square of a gradient (None: the dtype's eps) and of a parameter.
    d : float, default: 1.0
        Largest root mean square of a step before the learning rate.
    weight_decay : float, default: 0.0
        Share of the parameter that a step of ``lr`` takes away.
    foreach : bool, optional
        Accepted for compatibility.
    maximize : bool, default: False
        Whether to go uphill.

    Notes
    -----
    N. Shazeer, M. Stern, arXiv:1804.04235.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.ones(2, 3))
    >>> (w * w).sum().backward()
    >>> optimizer = ptcore.optim.Adafactor([w], lr=0.5)
    >>> optimizer.step()
    >>> w[0]
    tensor([0.5000, 0.5000, 0.5000], grad_fn=<SelectBackward0>)
    """

    _later = (("foreach", None),)

    def __init__(self, params, lr: "float | Tensor" = 1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0,
                 weight_decay=0.0, *, foreach=None, maximize=False):
        if isinstance(lr, ptcore.Tensor) and lr.numel() != 1:
            raise ValueError(f"Adafactor: lr must have one element, got shape {list(lr.shape)}")
        if not isinstance(eps, (tuple, list)) or len(eps) != 2:
            raise TypeError(f"Adafactor: eps must be two numbers, got {eps!r}")
        for name, value, low in (("lr", lr, 0), ("eps[0]", eps[0] or 0, 0), ("eps[1]", eps[1], 0), ("d", d, 1),
                                 ("weight_decay", weight_decay, 0)):
            if not value >= low:
                raise ValueError(f"Adafactor: {name} must be at least {low}, got {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"Adafactor: beta2_decay must be at most 0, got {beta2_decay}")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                                  "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize})

    def _begin(self, param, state, group):
        state["step"] = ptcore.zeros((), dtype=counter_dtype(), device="cpu")
        if param.ndim > 1:
            *batch, rows, columns = param.shape
            state["row_var"] = param.new_zeros((*batch, rows, 1))
            state["col_var"] = param.new_zeros((*batch, 1, columns))
        else:
            state["variance"] = ptcore.zeros_like(param)

    def _update(self, param, grad, state, group):
        state["step"] += 1
        step, lr = state["step"].item(), float(group["lr"])
        smallest_grad, smallest_param = group["eps"]
        if smallest_grad is None:
            smallest_grad = ptcore.finfo(param.dtype).eps
        share = step ** group["beta2_decay"]
        size = max(smallest_param, param.norm(2).item() / param.numel() ** 0.5) * min(lr, step**-0.5)
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        square = grad * grad
        if "row_var" in state:
            rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), share)
            columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), share)
            variance = rows @ columns / rows.mean(-2, keepdim=True).clamp_(min=smallest_grad)
        else:
            variance = state["variance"].lerp_(square, share)
        update = variance.clamp(min=smallest_grad * smallest_grad).rsqrt_().mul_(grad)
        scale = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=-size / scale)
