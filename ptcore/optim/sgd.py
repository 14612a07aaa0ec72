"""Stochastic gradient descent; one core call a group."""

from itertools import compress

import ptcore
from ptcore import Tensor
from ptcore._ops.optimizers import optimizers
from ptcore.optim._by_group import ByGroup
from ptcore.optim.optimizer import check_nonnegative

__all__ = ["SGD"]


class SGD(ByGroup):
    """Stochastic gradient descent, optionally with momentum.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Parameters or groups of them.
    lr : float, default: 1e-3
        Learning rate.
    momentum : float, default: 0
        Momentum factor.
    dampening : float, default: 0
        Dampening of the momentum.
    weight_decay : float, default: 0
        Factor of the L2 penalty.
    nesterov : bool, default: False
        Whether to use Nesterov's momentum.
    maximize : bool, default: False
        Whether to go uphill.
    foreach, fused : bool, optional
        Accepted for compatibility; the one implementation is a fused one.
    differentiable : bool, default: False
        Whether the step is recorded by autograd, for parameters that are no leaves; slower.

    Notes
    -----
    With gradient `g`, ``g += weight_decay * p``; the first momentum buffer is
    `g`, later ones ``b = momentum * b + (1 - dampening) * g``; then ``p -= lr * b``,
    or with `nesterov` ``p -= lr * (g + momentum * b)``.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.tensor([1.0]))
    >>> (w * w).sum().backward()
    >>> ptcore.optim.SGD([w], lr=0.25).step()
    >>> w.tolist()
    [0.5]
    """

    _buffers = ("momentum_buffer",)
    _later = (*ByGroup._later, ("nesterov", False), ("fused", None))

    def __init__(
        self,
        params,
        lr: "float | Tensor" = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_nonnegative(
            **{
                "learning rate": lr,
                "momentum value": momentum,
                "weight_decay value": weight_decay,
            }
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _step_group(self, group):
        params, grads = self._with_grad(group)
        options = (
            group["lr"],
            group["momentum"],
            group["dampening"],
            group["weight_decay"],
            group["maximize"],
            False,
        )
        if group["momentum"] == 0:
            optimizers.step_("sgd", options, params, grads, [], (), ())
            return
        formula, names = "sgd_nesterov" if group["nesterov"] else "sgd_momentum", ("momentum_buffer",)
        states = [self.state[p] for p in params]
        new = [s.get("momentum_buffer") is None for s in states]
        if True in new:
            for param, state in compress(zip(params, states, strict=True), new):
                state["momentum_buffer"] = ptcore.zeros_like(param)
            chosen = [[*compress(x, new)] for x in (params, grads, states)]
            optimizers.step_(formula, (*options[:-1], True), *chosen, names, ())
            begun = [not n for n in new]
            params, grads, states = ([*compress(x, begun)] for x in (params, grads, states))
        optimizers.step_(formula, options, params, grads, states, names, ())
