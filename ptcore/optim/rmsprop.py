"""RMSprop.

State of a parameter: ``step``, ``square_avg`` and, where the options ask for them,
``momentum_buffer`` and ``grad_avg``.
"""

import ptcore
from ptcore.optim._by_parameter import ByParameter, average, check_nonnegative, decayed, new_step

__all__ = ["RMSprop"]


class RMSprop(ByParameter):
    """RMSprop: the gradient over the root of its running mean square.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-2
        Learning rate.
    alpha : float, default: 0.99
        Decay rate of the mean square.
    eps : float, default: 1e-8
        Added to the root.
    weight_decay : float, default: 0
        Factor of the L2 penalty.
    momentum : float, default: 0
        Momentum factor.
    centered : bool, default: False
        Whether to divide by the standard deviation in place of the root mean square.
    maximize : bool, default: False
        Whether to go uphill.
    capturable, foreach : bool, optional
        Accepted for compatibility.
    differentiable : bool, default: False
        Must be False.

    Notes
    -----
    ``s = alpha*s + (1-alpha)*g**2``; with `centered` ``m = alpha*m + (1-alpha)*g`` and ``s - m**2`` in place of
    ``s``; ``d = g / (sqrt(s) + eps)``; with momentum ``b = momentum*b + d``; then ``p -= lr * b`` (or ``d``).
    From G. Hinton's lecture notes; with `centered` A. Graves, arXiv:1308.0850.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.RMSprop([w], lr=0.05).step()
    >>> round(w.item(), 4)
    0.5
    """

    _buffers = ("step", "square_avg", "momentum_buffer", "grad_avg")
    _later = (*ByParameter._later, ("momentum", 0), ("centered", False), ("capturable", False))

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_nonnegative(
            **{
                "learning rate": lr,
                "epsilon value": eps,
                "momentum value": momentum,
                "weight_decay value": weight_decay,
                "alpha value": alpha,
            }
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _begin(self, param, state, group):
        state["step"] = new_step()
        state["square_avg"] = ptcore.zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = ptcore.zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = ptcore.zeros_like(param)

    def _update(self, param, grad, state, group):
        state["step"] += 1
        grad = decayed(grad, param, group["weight_decay"])
        square, alpha = state["square_avg"], group["alpha"]
        square.mul_(alpha).add_(grad * grad * (1 - alpha))
        if group["centered"]:
            mean = average(state["grad_avg"], grad, 1 - alpha)
            square = square - mean * mean
        change = grad / (square.sqrt() + group["eps"])
        if group["momentum"] > 0:
            change = state["momentum_buffer"].mul_(group["momentum"]).add_(change)
        param.sub_(change * group["lr"])
