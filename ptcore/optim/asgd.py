"""Averaged SGD. State of a parameter: ``step``, ``eta``, ``mu`` and the average ``ax``."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_nonnegative

__all__ = ["ASGD"]


class ASGD(ByList):
    """Stochastic gradient descent that also keeps the average of the parameters.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-2
        Learning rate.
    lambd : float, default: 1e-4
        Decay of the parameters.
    alpha : float, default: 0.75
        Power of the decay of the rate.
    t0 : float, default: 1e6
        The step at which averaging begins.
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
    ``p = (1 - lambd*eta) * p - eta*g``, ``ax += mu * (p - ax)``, with ``eta = lr / (1 + lambd*lr*t)**alpha`` and
    ``mu = 1 / max(1, t - t0)``. B. T. Polyak, A. B. Juditsky, SIAM J. Control Optim. 30 (1992).

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.ASGD([w], lr=0.25, lambd=0.0).step()
    >>> w.tolist()
    [0.5]
    """

    _buffers = ("step", "ax")
    _counters = ("step", "eta", "mu")
    _later = (*ByList._later, ("capturable", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay: float = 0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_nonnegative(**{"learning rate": lr, "weight_decay value": weight_decay})
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _beginnings(self, group):
        return {"eta": group["lr"], "mu": 1}

    def _formula(self, group):
        options = (group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"], group["maximize"])
        return "asgd", ("ax",), options
