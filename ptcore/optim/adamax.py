"""Adamax. State of a parameter: ``step``, ``exp_avg`` and ``exp_inf``."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_betas, check_nonnegative

__all__ = ["Adamax"]


class Adamax(ByList):
    """Adam with the running maximum of the gradient in place of its mean square.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 2e-3
        Learning rate.
    betas : tuple of two float, default: (0.9, 0.999)
        Decay rates of the mean and of the maximum.
    eps : float, default: 1e-8
        Added to the gradient's magnitude.
    weight_decay : float, default: 0
        Factor of the L2 penalty.
    maximize : bool, default: False
        Whether to go uphill.
    capturable, foreach : bool, optional
        Accepted for compatibility.
    differentiable : bool, default: False
        Whether the step is recorded by autograd, for parameters that are no leaves; slower.

    Notes
    -----
    ``m = b1*m + (1-b1)*g``, ``u = max(b2*u, |g| + eps)``, ``p -= lr / (1-b1**t) * m / u``.
    D. P. Kingma, J. Ba, arXiv:1412.6980, section 7.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.Adamax([w], lr=0.5).step()
    >>> round(w.item(), 4)
    0.5
    """

    _buffers = ("step", "exp_avg", "exp_inf")
    _later = (*ByList._later, ("capturable", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
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
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _formula(self, group):
        options = (group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["maximize"])
        return "adamax", ("exp_avg", "exp_inf"), options
