"""Adam; one core call a group.

State of a parameter: ``step`` (0-d float32 tensor), ``exp_avg``,
``exp_avg_sq`` and, with `amsgrad`, ``max_exp_avg_sq``; the call updates
all of them in place.
"""

import ptcore
from ptcore import Tensor
from ptcore._ops import _optimizers
from ptcore.optim.optimizer import Optimizer, check_betas, check_implementation, check_nonnegative

__all__ = ["Adam"]


class Adam(Optimizer):
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
        Must be False.

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

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
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
        check_implementation(type(self).__name__, foreach, fused, differentiable)
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

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name in (
                "amsgrad",
                "maximize",
                "capturable",
                "differentiable",
                "decoupled_weight_decay",
            ):
                group.setdefault(name, False)
            for name in ("foreach", "fused"):
                group.setdefault(name, None)
            for p in group["params"]:
                values = self.state.get(p)
                if values and not isinstance(values["step"], Tensor):
                    values["step"] = ptcore.tensor(
                        float(values["step"]), dtype=ptcore.float32
                    )

    def _begin(self, param, state, amsgrad):
        """Fill the empty `state` of `param`."""
        state["step"] = ptcore.zeros((), dtype=ptcore.float32)
        state["exp_avg"] = ptcore.zeros_like(param)
        state["exp_avg_sq"] = ptcore.zeros_like(param)
        if amsgrad:
            state["max_exp_avg_sq"] = ptcore.zeros_like(param)

    def step(self, closure=None):
        """Update the parameters once; see :meth:`Optimizer.step`."""
        loss = self._run_closure(closure)
        with ptcore.no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group):
        params, grads = self._with_grad(group)
        amsgrad = group["amsgrad"]
        states = [self.state[p] for p in params]
        if not all(states):
            for param, state in zip(params, states, strict=True):
                if not state:
                    self._begin(param, state, amsgrad)
        beta1, beta2 = group["betas"]
        _optimizers.adam_(
            params,
            grads,
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [s["max_exp_avg_sq"] for s in states] if amsgrad else [],
            [s["step"] for s in states],
            float(group["lr"]),
            float(beta1),
            float(beta2),
            float(group["eps"]),
            float(group["weight_decay"]),
            amsgrad,
            group["maximize"],
            group["decoupled_weight_decay"],
        )
