"""NAdam. State of a parameter: ``step``, ``mu_product``, ``exp_avg`` and ``exp_avg_sq``."""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_betas, check_nonnegative

__all__ = ["NAdam"]


class NAdam(ByList):
    """Adam with Nesterov's momentum.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 2e-3
        Learning rate.
    betas : tuple of two float, default: (0.9, 0.999)
        Decay rates of the averages of the gradient and of its square.
    eps : float, default: 1e-8
        Added to the denominator.
    weight_decay : float, default: 0
        Factor of the L2 penalty, or of the decay with `decoupled_weight_decay`.
    momentum_decay : float, default: 4e-3
        How fast the momentum reaches ``betas[0]``.
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
    ``u_t = b1 * (1 - 0.96**(t*momentum_decay) / 2)``, ``U_t = u_1 ... u_t``, ``m`` and ``v`` as in Adam,
    ``p -= lr * (u_{t+1} * m / (1 - U_{t+1}) + (1-u_t) * g / (1 - U_t)) / (sqrt(v / (1-b2**t)) + eps)``.
    T. Dozat, ICLR workshop 2016.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.NAdam([w], lr=0.5).step()
    >>> round(w.item(), 4)
    0.4718
    """

    _buffers = ("step", "exp_avg", "exp_avg_sq")
    _counters = ("step", "mu_product")
    _later = (*ByList._later, ("capturable", False), ("decoupled_weight_decay", False))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        check_nonnegative(
            **{
                "learning rate": lr,
                "epsilon value": eps,
                "weight_decay value": weight_decay,
                "momentum_decay value": momentum_decay,
            }
        )
        check_betas(betas)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _beginnings(self, group):
        return {"mu_product": 1}

    def _formula(self, group):
        options = (
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["momentum_decay"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )
        return "nadam", ("exp_avg", "exp_avg_sq"), options
