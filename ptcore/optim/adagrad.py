"""Adagrad. State of a parameter, made with the optimiser: ``step`` and ``sum`` of squared gradients."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_nonnegative

__all__ = ["Adagrad"]


class Adagrad(ByList):
    """Adagrad: the gradient over the root of the sum of its squares so far.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-2
        Learning rate.
    lr_decay : float, default: 0
        The rate of step ``t`` is ``lr / (1 + (t-1) * lr_decay)``.
    weight_decay : float, default: 0
        Factor of the L2 penalty.
    initial_accumulator_value : float, default: 0
        The first value of the sums.
    eps : float, default: 1e-10
        Added to the root.
    maximize : bool, default: False
        Whether to go uphill.
    foreach, fused : bool, optional
        Accepted for compatibility.
    differentiable : bool, default: False
        Whether the step is recorded by autograd, for parameters that are no leaves; slower.

    Notes
    -----
    ``s += g**2``, ``p -= lr_t * g / (sqrt(s) + eps)``. J. Duchi, E. Hazan, Y. Singer, JMLR 12 (2011).

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.Adagrad([w], lr=0.5).step()
    >>> w.tolist()
    [0.5]
    """

    _buffers = ("step", "sum")
    _later = (*ByList._later, ("fused", None))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_nonnegative(
            **{
                "learning rate": lr,
                "lr_decay value": lr_decay,
                "weight_decay value": weight_decay,
                "initial_accumulator_value value": initial_accumulator_value,
                "epsilon value": eps,
            }
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(p, self.state[p], ("sum",), group)

    def _beginnings(self, group):
        return {"sum": group["initial_accumulator_value"]}

    def _formula(self, group):
        options = (group["lr"], group["lr_decay"], group["eps"], group["weight_decay"], group["maximize"])
        return "adagrad", ("sum",), options
