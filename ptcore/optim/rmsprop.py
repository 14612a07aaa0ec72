"""RMSprop.

State of a parameter: ``step``, ``square_avg`` and, where the options ask for them,
``momentum_buffer`` and ``grad_avg``.
"""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_nonnegative

__all__ = ["RMSprop"]


class RMSprop(ByList):
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
        Whether the step is recorded by autograd, for parameters that are no leaves; slower.

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
    _later = (*ByList._later, ("momentum", 0), ("centered", False), ("capturable", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
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

    def _formula(self, group):
        formula, names = "rmsprop", ("square_avg",)
        if group["momentum"] > 0:
            formula, names = formula + "_momentum", (*names, "momentum_buffer")
        if group["centered"]:
            formula, names = formula + "_centered", (*names, "grad_avg")
        options = (
            group["lr"],
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["maximize"],
        )
        return formula, names, options
