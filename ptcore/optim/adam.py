"""Adam; one core call a group.

State of a parameter: ``step`` (0-d float32 tensor), ``exp_avg``,
``exp_avg_sq`` and, with `amsgrad`, ``max_exp_avg_sq``; the call updates
all of them in place.
"""

from ptcore import Tensor
from ptcore.optim._by_group import ByList
from ptcore.optim.optimizer import check_betas, check_nonnegative

__all__ = ["Adam"]


class Adam(ByList):
    """Adam.

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
    amsgrad : bool, default: False
        Whether to divide by the largest average of squares so far.
    maximize : bool, default: False
        Whether to go uphill.
    decoupled_weight_decay : bool, default: False
        Whether to shrink the parameters instead of adding to the gradient
        (AdamW).
    foreach, capturable, fused : bool, optional
        Accepted for compatibility; the one implementation is a fused one.
    differentiable : bool, default: False
        Whether the step is recorded by autograd, so that what comes of the parameters, which must be no leaves, has
        a gradient with respect to their values before it, their gradients, and options that are tensors. Slower.

    Notes
    -----
    ``m = b1*m + (1-b1)*g``, ``v = b2*v + (1-b2)*g**2``,
    ``p -= lr * (m / (1-b1**t)) / (sqrt(v / (1-b2**t)) + eps)``.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.Adam([w], lr=0.5).step()
    >>> round(w.item(), 4)
    0.5
    """

    _buffers = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    _later = (
        *ByList._later,
        ("amsgrad", False),
        ("capturable", False),
        ("decoupled_weight_decay", False),
        ("fused", None),
    )

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay: float = 0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check_nonnegative(
            **{
                "learning rate": lr,
                "epsilon value": eps,
                "weight_decay value": weight_decay,
            }
        )
        check_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _formula(self, group):
        options = (
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
            group["decoupled_weight_decay"],
        )
        if group["amsgrad"]:
            return "amsgrad", ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), options
        return "adam", ("exp_avg", "exp_avg_sq"), options
