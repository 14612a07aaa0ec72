"""Learning-rate schedules that are functions of the epoch.

The base class and the schedules with a state of their own are in ``_scheduler``, ``_plateau``,
``_one_cycle``, ``_cyclic`` and ``_warm_restarts``; all public names are here.
"""

import math
from bisect import bisect_right
from collections import Counter
from numbers import Real
from types import FunctionType

from ptcore.optim._cyclic import CyclicLR
from ptcore.optim._one_cycle import OneCycleLR
from ptcore.optim._plateau import ReduceLROnPlateau
from ptcore.optim._warm_restarts import CosineAnnealingWarmRestarts
from ptcore.optim.scheduler import (
    LRScheduler,
    check_optimizer,
    per_group,
    set_value,
)

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_LRScheduler = LRScheduler  # PyTorch's name before the class was public


class _ByFunctions(LRScheduler):
    """Schedules of one function for all groups or one for each."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        check_optimizer(optimizer)
        self.lr_lambdas = per_group("lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """As :meth:`LRScheduler.state_dict`, without functions; of callable objects the attributes are kept."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(fn, FunctionType) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict):
        """Restore the result of :meth:`state_dict`."""
        state = dict(state_dict)
        for fn, saved in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if saved is not None:
                fn.__dict__.update(saved)
        self.__dict__.update(state)


class LambdaLR(_ByFunctions):
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

    def get_lr(self):
        """Learning rates of the present epoch."""
        return [
            lr * fn(self.last_epoch)
            for fn, lr in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_ByFunctions):
    """Present learning rate times ``lr_lambda(epoch)``.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    lr_lambda : callable or list of callable
        One for all groups or one for each.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def get_lr(self):
        """Learning rates of the present epoch."""
        if self._is_initial:
            return self._current()
        return [
            lr * fn(self.last_epoch)
            for fn, lr in zip(self.lr_lambdas, self._current(), strict=True)
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
        if not isinstance(step_size, Real) or not step_size > 0:
            raise ValueError(f"StepLR: step_size must be a positive number, got {step_size!r}")
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
        return [
            lr * (start + change * epoch / self.total_iters) for lr in self.base_lrs
        ]


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


class PolynomialLR(LRScheduler):
    """Down to 0 in `total_iters` epochs: ``initial * (1 - epoch / total_iters) ** power``.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    total_iters : int, default: 5
        Epochs until 0.
    power : float, default: 1.0
        Of the polynomial.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.
    """

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present epoch."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled(
            ((1.0 - self.last_epoch / self.total_iters) / before) ** self.power
        )

    def _get_closed_form_lr(self):
        share = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * share**self.power for lr in self.base_lrs]


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
        if not isinstance(T_max, Real) or not T_max > 0:
            raise ValueError(f"CosineAnnealingLR: T_max must be a positive number, got {T_max!r}")
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


class _OfSchedules(LRScheduler):
    """Base of schedules that consist of other schedules of one optimiser."""

    def _check(self, optimizer, schedulers):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(
                f"{name} expects at least one scheduler, but got no scheduler."
            )
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name}: schedulers[{i}] should have an `optimizer`")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it "
                    "requires additional kwargs to be specified when calling `step`, "
                    f"but got one at index {i} in the given schedulers sequence."
                )
            if optimizer is not scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same "
                    f"optimizer, but the one of {type(scheduler).__name__} at index "
                    f"{i} is different."
                )

    def state_dict(self):
        """As :meth:`LRScheduler.state_dict`, with the states of the schedules."""
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Restore the result of :meth:`state_dict`."""
        state = dict(state_dict)
        for scheduler, saved in zip(
            self._schedulers, state.pop("_schedulers"), strict=True
        ):
            scheduler.load_state_dict(saved)
        self.__dict__.update(state)


class ChainedScheduler(_OfSchedules):
    """Several schedules, all applied at each step, each to the rates that the previous one has set.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        Schedules of the same optimiser.
    optimizer : Optimizer, optional
        That optimiser; of the first schedule if None.

    Raises
    ------
    ValueError
        If there is no schedule, or one of another optimiser, or one that wants arguments.
    """

    def __init__(self, schedulers, optimizer=None):
        if optimizer is None and schedulers:
            optimizer = getattr(schedulers[0], "optimizer", None)
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._current()

    def step(self):
        """Go to the next epoch of all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current()


class SequentialLR(_OfSchedules):
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
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR expects one scheduler more than milestones, but got "
                f"{len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every schedule has made its first step; all but that of the first schedule are undone.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
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
