"""The step of optimisers that treat one parameter after another.

A subclass says how the state of a parameter begins (`_begin`) and what one step does to a
parameter (`_update`); both run without recording. Complex parameters are not taken: each rule
would have to say how real and imaginary part go together.
"""

import ptcore
from ptcore import Tensor
from ptcore.optim.optimizer import Optimizer, check_betas, check_implementation, check_nonnegative

__all__ = ["ByParameter", "check_betas", "check_nonnegative"]


class ByParameter(Optimizer):
    """Base of optimisers whose rule is written for one parameter.

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
                values = self.state.get(p)
                if values and "step" in values and not isinstance(values["step"], Tensor):
                    values["step"] = ptcore.tensor(float(values["step"]), dtype=ptcore.float32)

    def _begin(self, param, state, group):
        """Fill the empty `state` of `param`."""
        raise NotImplementedError

    def _update(self, param, grad, state, group):
        """One step; `grad` already points downhill."""
        raise NotImplementedError

    def step(self, closure=None):
        """Update the parameters once; see :meth:`Optimizer.step`."""
        loss = self._run_closure(closure)
        with ptcore.no_grad():
            for group in self.param_groups:
                for param, grad in zip(*self._with_grad(group), strict=True):
                    if param.is_complex():
                        raise TypeError(
                            f"{type(self).__name__}: parameters must be real, got {param.dtype}"
                        )
                    state = self.state[param]
                    if not state:
                        self._begin(param, state, group)
                    self._update(param, -grad if group.get("maximize") else grad, state, group)
        return loss


def new_step():
    """A counter of steps that were taken."""
    return ptcore.zeros((), dtype=ptcore.float32)


def count(state):
    """Counts a step in place and returns the number of it."""
    state["step"] += 1
    return state["step"].item()


def decayed(grad, param, factor):
    """The gradient with that of the L2 penalty."""
    return grad + factor * param if factor else grad


def average(mean, value, weight):
    """Moves a running mean towards a value in place."""
    return mean.add_((value - mean) * weight)
