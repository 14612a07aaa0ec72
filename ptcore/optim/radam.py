"""RAdam. State of a parameter: ``step``, ``exp_avg`` and ``exp_avg_sq``."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_betas, check_nonnegative

__all__ = ["RAdam"]


class RAdam(ByList):
    """Adam without its denominator until the estimate of the mean square is good enough.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-3
        Learning rate.
    betas : tuple of two float, default: (0.9, 0.999)
        Decay rates of the averages of the gradient and of its square.
    eps : float, default: 1e-8
        Added to the denominator.
    weight_decay : float, default: 0
        Factor of the L2 penalty, or of the decay with `decoupled_weight_decay`.
    decoupled_weight_decay : bool, default: False
        Whether to shrink the parameters in place of adding to the gradient.
    maximize : bool, default: False
        Whether to go uphill.
    capturable, foreach : bool, optional
        Accepted for compatibility.
    differentiable : bool, default: False
        Whether the step is recorded by autograd, for parameters that are no leaves; slower.

    Notes
    -----
    With ``r = 2/(1-b2) - 1`` and ``r_t = r - 2*t*b2**t / (1-b2**t)``: while ``r_t <= 5``, ``p -= lr * m / (1-b1**t)``;
    later that times ``sqrt((r_t-4) * (r_t-2) * r / ((r-4) * (r-2) * r_t)) * sqrt(1-b2**t) / (sqrt(v) + eps)``.
    L. Liu et al., arXiv:1908.03265.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.RAdam([w], lr=0.25).step()
    >>> round(w.item(), 4)
    0.5
    """

    _buffers = ("step", "exp_avg", "exp_avg_sq")
    _later = (*ByList._later, ("capturable", False), ("decoupled_weight_decay", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        check_nonnegative(
            **{"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay}
        )
        check_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _formula(self, group):
        options = (
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )
        return "radam", ("exp_avg", "exp_avg_sq"), options
