"""Learning-rate schedules.

A scheduler sets ``group["lr"]`` of its optimiser's groups when constructed and
at every ``step()``. ``get_lr`` gives the values of ``last_epoch`` from those
before it, by PyTorch's recurrences, so that trajectories are equal to the last
bit also when a learning rate is changed by hand; ``_get_closed_form_lr``, where
there is one, gives them from the initial ones.
"""

import math
from bisect import bisect_right
from collections import Counter
from functools import wraps
from weakref import ref

from ptcore import Tensor
from ptcore.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being "
    "deprecated where possible. Please use `scheduler.step()` to step the scheduler."
)


def _warn(message):
    import warnings

    warnings.warn(message, UserWarning, stacklevel=3)


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _values(optimizer, key):
    """Copies of option `key` of all groups."""
    return [
        g[key].clone() if isinstance(g[key], Tensor) else g[key]
        for g in optimizer.param_groups
    ]


def _set(group, key, value):
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def _per_group(name, optimizer, value):
    """`value` as a list with one entry for each group."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {len(optimizer.param_groups)}."
        )
    return list(value)


def _track_steps(optimizer):
    """Make ``optimizer.step`` note that it was called, to check the order."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    optimizer_ref, func = ref(optimizer), optimizer.step.__func__

    @wraps(func)
    def step(*args, **kwargs):
        owner = optimizer_ref()
        owner._opt_called = True
        return func(owner, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base class of schedules.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    last_epoch : int, default: -1
        Index of the last epoch when resuming; -1 begins and remembers the
        present learning rates as the initial ones.

    Raises
    ------
    TypeError
        If `optimizer` is no Optimizer.
    KeyError
        If resuming and a group has no ``initial_lr``.
    """

    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault(
                    "initial_lr", lr.clone() if isinstance(lr, Tensor) else lr
                )
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when "
                    "resuming scheduler with last_epoch >= 0."
                )
        self.base_lrs = _values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Return everything but the optimiser as a dictionary."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what :meth:`state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """Return the learning rates set last, one for each group."""
        return self._last_lr

    def get_lr(self):
        """Compute the learning rates of ``last_epoch``; each schedule defines it."""
        raise NotImplementedError

    def _current(self):
        return _values(self.optimizer, "lr")

    def _scaled(self, factor):
        """Present learning rates times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        """Go to the next epoch (or to `epoch`) and set the learning rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                _warn(
                    "Seems like `optimizer.step()` has been overridden after learning "
                    "rate scheduler initialization. Please, make sure to call "
                    "`optimizer.step()` before `lr_scheduler.step()`."
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                _warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. "
                    "You should call them in the opposite order: `optimizer.step()` "
                    "before `lr_scheduler.step()`. Failure to do this will result in "
                    "skipping the first value of the learning rate schedule."
                )
        self._step_count += 1
        if epoch is not None:
            _warn(_EPOCH_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        if epoch is None:
            self.last_epoch += 1
            values = self.get_lr()
        else:
            self.last_epoch = epoch
            if hasattr(self, "_get_closed_form_lr"):
                values = self._get_closed_form_lr()
            else:
                values = self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _set(group, "lr", lr)
        self._last_lr = self._current()


class LambdaLR(LRScheduler):
    """Initial learning rate times ``lr_lambda(epoch)``.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    lr_lambda : callable or list of callable
        One for all groups or one for each.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        _check_optimizer(optimizer)
        self.lr_lambdas = _per_group("lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """As :meth:`LRScheduler.state_dict`; of functions nothing is kept, of
        callable objects their attributes."""
        state = super().state_dict()
        function = type(_warn)
        state["lr_lambdas"] = [
            None if isinstance(fn, function) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        """Take over what :meth:`state_dict` returned."""
        state = dict(state_dict)
        for fn, saved in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if saved is not None:
                fn.__dict__.update(saved)
        self.__dict__.update(state)

    def get_lr(self):
        """Learning rates of the present epoch."""
        return [
            lr * fn(self.last_epoch)
            for fn, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class StepLR(LRScheduler):
    """Multiply by `gamma` every `step_size` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    step_size : int
        Epochs between two changes.
    gamma : float, default: 0.1
        Factor.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current()
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self):
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [lr * factor for lr in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply by `gamma` at each of the `milestones`.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    milestones : iterable of int
        Epochs; one that occurs twice counts twice.
    gamma : float, default: 0.1
        Factor.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        if self.last_epoch not in self.milestones:
            return self._current()
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiply by `factor` for the first `total_iters` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    factor : float, default: 1/3
        Between 0 and 1.
    total_iters : int, default: 5
        Epochs until the full learning rate.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(
                "Constant multiplicative factor expected to be between 0 and 1, "
                f"got {factor}"
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current()
        return self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self):
        done = self.last_epoch >= self.total_iters
        factor = self.factor + done * (1 - self.factor)
        return [lr * factor for lr in self.base_lrs]


class LinearLR(LRScheduler):
    """Change the factor linearly over the first `total_iters` epochs.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    start_factor : float, default: 1/3
        Factor of the first epoch, in (0, 1].
    end_factor : float, default: 1.0
        Factor of the last one, in [0, 1].
    total_iters : int, default: 5
        Number of epochs of the change.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(
        self,
        optimizer,
        start_factor=1.0 / 3,
        end_factor=1.0,
        total_iters=5,
        last_epoch=-1,
    ):
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less "
                f"or equal to 1, got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                "Ending multiplicative factor expected to be between 0 and 1, "
                f"got {end_factor}"
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        change = self.end_factor - self.start_factor
        return self._scaled(
            1.0
            + change
            / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)
        )

    def _get_closed_form_lr(self):
        start, change = self.start_factor, self.end_factor - self.start_factor
        epoch = min(self.total_iters, self.last_epoch)
        return [lr * (start + change * epoch / self.total_iters) for lr in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiply by `gamma` every epoch.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    gamma : float
        Factor.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        return self._current() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self):
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a period of a cosine from the initial rate to `eta_min`, and back.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    T_max : int
        Epochs until the minimum.
    eta_min : float, default: 0.0
        Minimum.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.

    Notes
    -----
    ``eta_min + (lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (epoch - 1 - period) % (2 * period) == 0:  # leaving the minimum
            return [
                group["lr"] + (lr - low) * (1 - math.cos(math.pi / period)) / 2
                for lr, group in zip(self.base_lrs, groups, strict=True)
            ]
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [now / before * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self):
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (lr - self.eta_min) * now / 2 for lr in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after another.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    schedulers : list of LRScheduler
        Schedules of the same optimiser.
    milestones : list of int
        Epochs at which the next schedule begins, one fewer than schedules.
    last_epoch : int, default: -1
        Index of the last epoch.
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError(
                "SequentialLR expects at least one scheduler, but got no scheduler."
            )
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"SequentialLR at index {i} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    "SequentialLR does not support `ReduceLROnPlateau` scheduler as it "
                    "requires additional kwargs to be specified when calling `step`, "
                    f"but got one at index {i} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    "SequentialLR expects all schedulers to belong to the same "
                    f"optimizer, but the one of {type(scheduler).__name__} at index "
                    f"{i} is different."
                )
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR expects one scheduler more than milestones, but got "
                f"{len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every schedule has made its first step: all but the first one's is undone.
        for group in optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        self._undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler):
        if hasattr(scheduler, "_schedulers"):
            for below in scheduler._schedulers:
                self._undo(below)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self):
        """Go to the next epoch and set the learning rates."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        """As :meth:`LRScheduler.state_dict`, with the states of the schedules."""
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Take over what :meth:`state_dict` returned."""
        state = dict(state_dict)
        for scheduler, saved in zip(
            self._schedulers, state.pop("_schedulers"), strict=True
        ):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


class ReduceLROnPlateau(LRScheduler):
    """Multiply by `factor` when a quantity has stopped improving.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    mode : {'min', 'max'}, default: 'min'
        Whether the quantity should fall or rise.
    factor : float, default: 0.1
        Factor, less than 1.
    patience : int, default: 10
        Epochs without improvement that are tolerated.
    threshold : float, default: 1e-4
        Least improvement that counts.
    threshold_mode : {'rel', 'abs'}, default: 'rel'
        Whether the threshold is relative to the best value.
    cooldown : int, default: 0
        Epochs to wait after a reduction.
    min_lr : float or list of float, default: 0
        Lower bound.
    eps : float, default: 1e-8
        Smaller reductions are not made.
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        _check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _per_group("min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.last_epoch = 0
        self._last_lr = self._current()
        self._reset()

    def _reset(self):
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """True while waiting after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Take note of the quantity `metrics`, reduce the rates if it is time."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            _warn(_EPOCH_WARNING)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._current()

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) "
                    "differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}). Please modify the `min_lrs` field to match "
                    "the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                _set(group, "lr", new)

    def _is_better(self, value, best):
        if self.threshold_mode == "rel":
            if self.mode == "min":
                return value < best * (1.0 - self.threshold)
            return value > best * (self.threshold + 1.0)
        if self.mode == "min":
            return value < best - self.threshold
        return value > best + self.threshold


def _anneal_cos(start, end, share):
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _anneal_linear(start, end, share):
    return (end - start) * share + start


def _positive_int(name, value):
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


class OneCycleLR(LRScheduler):
    """Rise to `max_lr`, then fall far below the beginning (1cycle policy).

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates (and momenta) are set.
    max_lr : float or list of float
        Largest learning rate, for all groups or for each.
    total_steps : int, optional
        Number of steps; by default ``epochs * steps_per_epoch``.
    epochs, steps_per_epoch : int, optional
        See `total_steps`.
    pct_start : float, default: 0.3
        Share of the steps that rise.
    anneal_strategy : {'cos', 'linear'}, default: 'cos'
        Shape of the curve.
    cycle_momentum : bool, default: True
        Whether the momentum (or beta1) runs opposite to the learning rate.
    base_momentum, max_momentum : float or list of float
        Its bounds, 0.85 and 0.95 by default.
    div_factor : float, default: 25.0
        ``max_lr / div_factor`` is the first learning rate.
    final_div_factor : float, default: 1e4
        The first divided by it is the last one.
    three_phase : bool, default: False
        Whether to fall to the first learning rate before the last phase.
    last_epoch : int, default: -1
        Index of the last step when resuming.
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            self.total_steps = _positive_int("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = _positive_int("epochs", epochs) * _positive_int(
                "steps_per_epoch", steps_per_epoch
            )
        else:
            raise ValueError(
                "You must define either total_steps OR (epochs AND steps_per_epoch)"
            )
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(pct_start, three_phase)
        groups = optimizer.param_groups
        max_lrs = _per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, lr in zip(groups, max_lrs, strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in optimizer.defaults
            if not self.use_beta1 and "momentum" not in optimizer.defaults:
                raise ValueError(
                    "optimizer must support momentum or beta1 with `cycle_momentum` "
                    "option enabled"
                )
            highs = _per_group("max_momentum", optimizer, max_momentum)
            lows = _per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(groups, highs, lows, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        """Dictionaries of last step and of the options at both ends."""
        rise = float(pct_start * self.total_steps) - 1
        steps = [("initial_lr", "max_lr", rise)]
        if three_phase:
            steps.append(
                ("max_lr", "initial_lr", float(2 * pct_start * self.total_steps) - 2)
            )
        steps.append((steps[-1][1], "min_lr", self.total_steps - 1))
        momentum_at = {"max_lr": "base_momentum"}  # low where the rate is high
        return [
            {
                "end_step": end_step,
                "start_lr": start,
                "end_lr": end,
                "start_momentum": momentum_at.get(start, "max_momentum"),
                "end_momentum": momentum_at.get(end, "max_momentum"),
            }
            for start, end, end_step in steps
        ]

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def get_lr(self):
        """Learning rates of the present step; sets the momenta as well."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start_step = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start_step = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        share = (step - start_step) / (phase["end_step"] - start_step)
        anneal = _anneal_cos if self._anneal_func_type == "cos" else _anneal_linear
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                start, end = phase["start_momentum"], phase["end_momentum"]
                self._set_momentum(group, anneal(group[start], group[end], share))
        return rates
