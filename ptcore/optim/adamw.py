"""AdamW: Adam with decoupled weight decay."""

from ptcore import Tensor
from ptcore.optim.adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters: ``p *= 1 - lr * weight_decay``.

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
    weight_decay : float, default: 1e-2
        Decay factor.
    amsgrad, maximize, foreach, capturable, differentiable, fused
        As for :class:`Adam`.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> w.grad = ptcore.zeros(1)
    >>> ptcore.optim.AdamW([w], lr=0.5, weight_decay=0.5).step()
    >>> w.tolist()
    [0.75]
    """

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
