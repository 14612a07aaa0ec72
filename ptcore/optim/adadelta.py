"""Adadelta. State of a parameter: ``step``, ``square_avg`` and ``acc_delta``."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_nonnegative

__all__ = ["Adadelta"]


class Adadelta(ByList):
    """Adadelta: the size of a step follows the running root mean square of earlier steps.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1.0
        Factor of each step.
    rho : float, default: 0.9
        Decay rate of the mean squares.
    eps : float, default: 1e-6
        Added under the roots.
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
    ``s = rho*s + (1-rho)*g**2``, ``d = g * sqrt(a+eps) / sqrt(s+eps)``, ``a = rho*a + (1-rho)*d**2``,
    ``p -= lr*d``. M. D. Zeiler, arXiv:1212.5701.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.Adadelta([w]).step()
    >>> round(w.item(), 4)
    0.9968
    """

    _buffers = ("step", "square_avg", "acc_delta")
    _later = (*ByList._later, ("capturable", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay: float = 0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_nonnegative(
            **{"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay}
        )
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _formula(self, group):
        options = (group["lr"], group["rho"], group["eps"], group["weight_decay"], group["maximize"])
        return "adadelta", ("square_avg", "acc_delta"), options
