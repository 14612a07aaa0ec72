"""Learning rates that go up and down between two bounds."""

import math
from functools import partial
from types import FunctionType

from ptcore.optim.scheduler import MomentumScheduler, check_optimizer, per_group, set_value

# mode: the argument of the share of the height
_MODES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


class CyclicLR(MomentumScheduler):
    """Linearly up from `base_lr` to `max_lr` and down again, over and over.

    With ``s`` the part of the way up at an epoch the learning rate is ``base_lr + (max_lr -
    base_lr) * s * scale_fn(x)``; momentum goes the other way. Source: Smith, Cyclical learning
    rates for training neural networks (2017).

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    base_lr, max_lr : float or list of float
        The bounds, for all groups or for each.
    step_size_up : int, default: 2000
        Steps from the lower bound to the upper.
    step_size_down : int, optional
        Steps back; as many as up if None.
    mode : {"triangular", "triangular2", "exp_range"}
        Equal cycles, each half as high as the one before, or by ``gamma ** step``.
    gamma : float, default: 1.0
        Of the mode ``"exp_range"``.
    scale_fn : callable, optional
        In place of a mode.
    scale_mode : {"cycle", "iterations"}
        The argument of `scale_fn`: the number of the cycle (from 1) or of the step.
    cycle_momentum : bool, default: True
        Whether ``momentum`` (or the first of ``betas``) changes as well.
    base_momentum, max_momentum : float or list of float
        Its bounds.
    last_epoch : int, default: -1
        Index of the last step when resuming.

    Raises
    ------
    ValueError
        If `mode` is unknown and there is no `scale_fn`, or the optimiser has no momentum to cycle.

    Examples
    --------
    >>> import ptcore
    >>> optimizer = ptcore.optim.SGD([ptcore.zeros(1)], lr=0.1)
    >>> schedule = CyclicLR(optimizer, 0.0, 1.0, step_size_up=2, cycle_momentum=False)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, lr in zip(groups, base_lrs, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        step_size_up = float(step_size_up)
        step_size_down = step_size_up if step_size_down is None else float(step_size_down)
        self.total_size = step_size_up + step_size_down
        if not (step_size_up > 0 and step_size_down > 0):
            raise ValueError(f"CyclicLR: step_size_up and step_size_down must be positive, got {step_size_up} and "
                             f"{step_size_down}")
        self.step_ratio = step_size_up / self.total_size
        if scale_fn is None and not (isinstance(mode, str) and mode in _MODES):
            raise ValueError(f"CyclicLR: mode must be one of {', '.join(map(repr, _MODES))} if scale_fn is None, "
                             f"got {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self.scale_mode = scale_mode if scale_fn is not None else _MODES[mode]
        self._scale_fn_custom = scale_fn
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._want_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                for group, high, low in zip(groups, self.max_momentums, self.base_momentums, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The share of the height at cycle or step `x`."""
        return (self._scale_fn_ref if self._scale_fn_custom is None else self._scale_fn_custom)(x)

    @property
    def _scale_fn_ref(self):
        return {"triangular": self._triangular_scale_fn, "triangular2": self._triangular2_scale_fn,
                "exp_range": partial(self._exp_range_scale_fn, self.gamma)}[self.mode]

    @staticmethod
    def _triangular_scale_fn(x):
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x):
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma, x):
        return gamma**x

    def __getstate__(self):
        """With the function as PyTorch keeps it."""
        state = dict(self.__dict__)
        return state if self._scale_fn_custom is not None else {**state, "_scale_fn_ref": self._scale_fn_ref}

    def __setstate__(self, state):
        """Takes attributes; in pickles of ptcore 0.1 one has no underscore."""
        for name, value in state.items():
            if name != "_scale_fn_ref":
                self.__dict__["_scale_fn_custom" if name == "scale_fn_custom" else name] = value

    def get_lr(self):
        """Learning rates of the present step; sets the momenta as well."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums,
                                        strict=True):
                self._set_momentum(group, high - (high - low) * share * height)
        return [low + (high - low) * share * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        """As :meth:`LRScheduler.state_dict`, without functions; of a callable object the attributes are kept."""
        state = super().state_dict()
        fn = state["_scale_fn_custom"]
        state["_scale_fn_custom"] = None if fn is None or isinstance(fn, FunctionType) else fn.__dict__.copy()
        return state

    def load_state_dict(self, state_dict):
        """Restore the result of :meth:`state_dict`."""
        state = dict(state_dict)
        attributes = state.pop("scale_fn_attributes", None)     # the name in states of ptcore 0.1
        attributes = state.pop("_scale_fn_custom", attributes)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self.__setstate__(state)
