"""Stochastic gradient descent; one core call a group."""

import ptcore
from ptcore._ops import _optimizers
from ptcore.optim.optimizer import Optimizer, check_implementation, check_nonnegative

__all__ = ["SGD"]


class SGD(Optimizer):
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
        Must be False.

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

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
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
        check_implementation("SGD", foreach, fused, differentiable)
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

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("nesterov", "maximize", "differentiable"):
                group.setdefault(name, False)
            for name in ("foreach", "fused"):
                group.setdefault(name, None)

    def step(self, closure=None):
        """Update the parameters once; see :meth:`Optimizer.step`."""
        loss = self._run_closure(closure)
        with ptcore.no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group):
        params, grads = self._with_grad(group)
        momentum = float(group["momentum"])
        states, buffers = (), [None] * len(params)
        if momentum != 0:
            states = [self.state[p] for p in params]
            buffers = [s.get("momentum_buffer") for s in states]
        # A buffer that is None is made by the call, which stores it in the list.
        _optimizers.sgd_(
            params,
            grads,
            buffers,
            float(group["lr"]),
            momentum,
            float(group["dampening"]),
            float(group["weight_decay"]),
            group["nesterov"],
            group["maximize"],
        )
        for state, buffer in zip(states, buffers, strict=False):
            state["momentum_buffer"] = buffer
