"""Steps through the groups of an optimiser: by a formula over lists, or in Python for each parameter."""

import ptcore
from ptcore import Tensor
from ptcore._errors import DTypeError
from ptcore._ops.optimizers import optimizers
from ptcore._state import is_grad_enabled, is_history_recorded, put_grad_enabled
from ptcore.optim.optimizer import Optimizer, check_implementation, counter_dtype


class ByGroup(Optimizer):
    """Base of optimisers that step through their groups in order, without recording unless they are differentiable.

    ``_later`` names the options that states saved by older versions lack, with their values.
    """

    _later = (("foreach", None), ("maximize", False), ("differentiable", False))

    def __init__(self, params, defaults):
        check_implementation(
            type(self).__name__, defaults.get("foreach"), defaults.get("fused"), defaults.get("differentiable", False)
        )
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later:
                group.setdefault(name, value)
            for p in group["params"]:
                values = self.state.get(p, {})
                for name in self._counters:
                    if name in values and not isinstance(values[name], Tensor):
                        values[name] = ptcore.tensor(float(values[name]), dtype=counter_dtype(), device="cpu")
                    if name in values and group.get("capturable"):
                        values[name] = values[name].to(p.device)

    def _step_group(self, group):
        """One step of the parameters of `group` that have a gradient."""
        raise NotImplementedError

    def _check_capture(self, param, group):
        """Raise if a CUDA graph would repeat the step with its present counters."""
        if self._counters and param.is_cuda and not group.get("capturable"):
            from ptcore.cuda.graphs import is_current_stream_capturing

            if is_current_stream_capturing():
                name = type(self).__name__
                raise RuntimeError(f"{name}.step: a CUDA graph is being captured, in which each step would be the same "
                                   f"one: make the optimizer by {name}(..., capturable=True)"
                                   if "capturable" in group else
                                   f"{name}.step: it counts its steps on the host, which a CUDA graph does not repeat")

    def step(self, closure=None):
        """Update the parameters once; see :meth:`Optimizer.step`."""
        loss = None if closure is None else self._run_closure(closure)
        before = is_grad_enabled()
        recorded = bool(self.defaults.get("differentiable"))
        try:                                    # before the mode is set: an interrupt may follow at once
            put_grad_enabled(recorded)          # faster than ``no_grad()``, which makes an object
            if recorded and any(group.get("foreach") for group in self.param_groups):
                raise AssertionError("_foreach ops don't support autograd: foreach and differentiable are both set")
            for group in self.param_groups:
                self._step_group(group)
        finally:
            put_grad_enabled(before)
        return loss


class ByList(ByGroup):
    """Base of optimisers whose update is a formula over lists (``_ops/table/steps.py``): one core call a group.

    Complex parameters are pairs of reals.
    """

    def _formula(self, group):
        """The name of the formula, the names of the state that it writes, and its options."""
        raise NotImplementedError

    def _beginnings(self, group):
        """The first values of counters and state that do not begin at zero, by name."""
        return {}

    def _begin(self, param, state, names, group):
        """Fill the empty `state` of `param`."""
        beginnings = self._beginnings(group)
        for name in self._counters:
            value = beginnings.get(name, 0)
            device = param.device if group.get("capturable") else "cpu"
            state[name] = ptcore.full((), float(value), dtype=counter_dtype(group.get("fused")), device=device)
            if getattr(value, "requires_grad", False) and is_history_recorded():
                state[name].copy_(value.reshape(()))
        for name in names:
            value = beginnings.get(name)
            if value is None:
                state[name] = ptcore.zeros_like(param)
            elif getattr(value, "requires_grad", False) and is_history_recorded():
                state[name] = ptcore.zeros_like(param) + value * (1 + 1j if param.is_complex() else 1)
            else:
                value = float(value)
                state[name] = ptcore.full_like(param, complex(value, value) if param.is_complex() else value)

    def _step_group(self, group):
        params, grads = self._with_grad(group)
        if not params:
            return
        self._check_capture(params[0], group)
        formula, names, options = self._formula(group)
        states = [self.state[p] for p in params]
        if not all(states):
            for param, state in zip(params, states, strict=True):
                if not state:
                    made = {}
                    self._begin(param, made, names, group)
                    state.update(made)          # at once: an interrupt leaves all or nothing
        if group.get("capturable") and params[0].is_cuda:
            for param, state in zip(params, states, strict=True):       # a loaded state may be on another device
                for name in self._counters:
                    if state[name].device != param.device:
                        state[name] = state[name].to(param.device)
        optimizers.step_(formula, options, params, grads, states, names, self._counters)


class ByParameter(ByGroup):
    """Base of optimisers whose step is written in Python for one real parameter."""

    def _begin(self, param, state, group):
        """Fill the empty `state` of `param`."""
        raise NotImplementedError

    def _update(self, param, grad, state, group):
        """One step; `grad` already points downhill."""
        raise NotImplementedError

    def _step_group(self, group):
        for param, grad in zip(*self._with_grad(group), strict=True):
            if param.is_complex():
                raise DTypeError(f"{type(self).__name__}: parameters must be real, got {param.dtype}")
            self._check_capture(param, group)
            state = self.state[param]
            if not state:
                made = {}
                self._begin(param, made, group)
                state.update(made)              # at once: an interrupt leaves all or nothing
            self._update(param, -grad if group.get("maximize") else grad, state, group)
