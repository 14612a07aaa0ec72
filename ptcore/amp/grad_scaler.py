"""``GradScaler``: scales losses, so that gradients in float16 do not vanish, and skips steps with infinite gradients.
"""
import enum
import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ptcore._device import device as _device
from ptcore._dtype import float16, float32, int32
from ptcore._ops.creation.creation import full
from ptcore._ops.optimizers.optimizers import unscale
from ptcore._state import no_grad
from ptcore._tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """The stage of an optimizer's step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses for gradients in float16, and the steps of optimizers accordingly.

    After ``growth_interval`` steps without infinite or NaN gradients the scale is multiplied by ``growth_factor``. A
    step with infinite or NaN gradients is skipped, and the scale is multiplied by ``backoff_factor``.

    Parameters
    ----------
    device : str, default: "cuda"
    init_scale : float, default: 65536.0
    growth_factor : float, default: 2.0
    backoff_factor : float, default: 0.5
    growth_interval : int, default: 2000
    enabled : bool, default: True
        False: ``scale`` returns its argument, and ``step`` always steps.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.Linear(2, 1)
    >>> optimizer = ptcore.optim.SGD(layer.parameters(), 0.1)
    >>> scaler = ptcore.amp.GradScaler("cpu", init_scale=128.0)
    >>> with ptcore.autocast("cpu", ptcore.float16):
    ...     loss = layer(ptcore.ones(3, 2)).float().square().mean()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> scaler.get_scale()
    128.0
    """

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        self._device = _device(device).type
        self._enabled = bool(enabled)
        if self._enabled and self._device == "cuda":
            from ptcore import cuda
            if not cuda.is_available():
                warnings.warn("GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2)
                self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError(f"GradScaler: The growth factor must be > 1.0, got {growth_factor}")
            if backoff_factor >= 1.0:
                raise AssertionError(f"GradScaler: The backoff factor must be < 1.0, got {backoff_factor}")
            self._init_scale, self._init_growth_tracker = init_scale, 0
            self._scale = self._growth_tracker = None
            self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
            self._growth_interval = growth_interval
            self._per_optimizer_states = defaultdict(_fresh)

    def _check_scale_growth_tracker(self, funcname):
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration.")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev):
        # the scale comes last: there, it says that both are
        self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=dev)
        self._scale = full((), self._init_scale, dtype=float32, device=dev)

    def scale(self, outputs) -> Any:
        """A tensor, or nested lists and tuples of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if hasattr(outputs, "__iter__") and not isinstance(outputs, (str, bytes, Mapping)):
            made = [self.scale(x) for x in outputs]
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else iter(made)
        raise ValueError("GradScaler.scale: outputs must be a Tensor or an iterable of Tensors, got "
                         f"{type(outputs).__name__}")

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        groups = defaultdict(list)
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if not allow_fp16 and p.grad.dtype == float16:
                        raise ValueError("GradScaler: Attempting to unscale FP16 gradients.")
                    g = p.grad
                    if g.is_sparse:
                        # Values at equal indices are added, and the sum may overflow.
                        g = g.coalesce()._values() if g.dtype == float16 else g._values()
                    groups[g.device].append(g)
            found = {}
            for device, grads in groups.items():
                found[device] = unscale(grads, inv_scale.to(device), found_inf.to(device))
        return found

    def unscale_(self, optimizer):
        """Divides the gradients of an optimizer's parameters by the scale, for example before they are clipped.

        Raises
        ------
        RuntimeError
            If it was called since the last ``update()`` already, or is called after ``step()``.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inv_scale = self._scale.double().reciprocal().float()
        found_inf = full((), 0.0, dtype=float32, device=self._scale.device)
        state.update(found_inf_per_device=self._unscale_grads_(optimizer, inv_scale, found_inf, False),
                     stage=OptState.UNSCALED)

    def _maybe_opt_step(self, optimizer, state, *args, **kwargs):
        if not sum([v.item() for v in state["found_inf_per_device"].values()]):
            return optimizer.step(*args, **kwargs)
        return None

    def step(self, optimizer, *args, **kwargs) -> Any:
        """Steps unless a gradient is infinite or NaN; divides gradients by the scale first if ``unscale_`` has not.

        Raises
        ------
        RuntimeError
            If it was called since the last ``update()`` already, or a closure is given.
        AssertionError
            If no parameter of the optimizer has a gradient, or nothing was scaled.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            # The optimizer gets the scale and whether a gradient is infinite, and skips its step itself.
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            try:
                optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else self._scale
                optimizer.found_inf = sum(state["found_inf_per_device"].values())
                result = optimizer.step(*args, **kwargs)
            finally:                        # an interrupt may come before they are set
                vars(optimizer).pop("grad_scale", None)
                vars(optimizer).pop("found_inf", None)
            state["stage"] = OptState.STEPPED
            return result
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Reduces the scale after an infinite gradient, or increases it after enough steps.

        Parameters
        ----------
        new_scale : float or Tensor, optional
            The scale from now on.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            if isinstance(new_scale, float):
                scale.fill_(new_scale)
            elif isinstance(new_scale, Tensor) and new_scale.numel() == 1 and not new_scale.requires_grad and (
                    new_scale.device.type == self._device):
                scale.copy_(new_scale.reshape(()))
            else:
                raise AssertionError("GradScaler.update: new_scale must be a float or a Tensor of one element on "
                                     f"{self._device} without requires_grad, got {new_scale!r}")
        else:
            found = [f.to(scale.device) for state in self._per_optimizer_states.values()
                     for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any([f.item() for f in found]):
                scale.mul_(self._backoff_factor)
                tracker.zero_()
            elif tracker.item() + 1 == self._growth_interval:
                grown = scale * self._growth_factor
                if grown.isfinite().item():
                    scale.copy_(grown)
                tracker.zero_()
            else:
                tracker.add_(1)
        self._per_optimizer_states = defaultdict(_fresh)

    def _get_scale_async(self):
        return self._scale

    def get_scale(self):
        """The scale as a float; 1.0 for a disabled scaler."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Sets the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """The factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Sets the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """The number of steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Sets the number of steps after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self):
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self):
        """The scale and its settings; empty for a disabled scaler."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor,
                "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
                "_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict):
        """Restores the result of ``state_dict``.

        Raises
        ------
        RuntimeError
            If it is empty: the scaler that it came from was not enabled.
        """
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance "
                               "of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if len(self._per_optimizer_states):
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or "
                                     "at the end after scaler.update().")
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer):
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, found = full((), 1.0, dtype=float32, device=scale.device), full((), 0.0, dtype=float32,
                                                                             device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, found, True)
        return state["found_inf_per_device"]

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
