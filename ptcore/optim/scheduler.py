"""LRScheduler, the base class of learning-rate schedules.

A scheduler sets ``group["lr"]`` of its optimiser's groups when it is constructed and at every ``step()``. ``get_lr``
computes the rates of ``last_epoch`` from the previous ones, by PyTorch's recurrences, so that trajectories are equal to
the last bit even when a learning rate is changed by hand. ``_get_closed_form_lr``, if defined, computes them from the
initial ones.
"""

from functools import wraps
from weakref import ref

from ptcore import Tensor
from ptcore.optim.optimizer import Optimizer

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being "
    "deprecated where possible. Please use `scheduler.step()` to step the scheduler."
)


def warn(message):
    import warnings

    warnings.warn(message, UserWarning, stacklevel=3)


def check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def values_of(optimizer, key):
    """Copies of option `key` of all groups."""
    return [
        g[key].clone() if isinstance(g[key], Tensor) else g[key]
        for g in optimizer.param_groups
    ]


def set_value(group, key, value):
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def per_group(name, optimizer, value):
    """`value` as a list with one entry for each group; tensors are copied, since callers may write to theirs."""
    if not isinstance(value, (list, tuple)):
        return [_own(value) for _ in optimizer.param_groups]
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {len(optimizer.param_groups)}."
        )
    return [_own(v) for v in value]


def _own(value):
    return value.detach().clone() if isinstance(value, Tensor) else value


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
    _get_lr_called_within_step = False      # for the ``get_lr`` of users' classes, which warn elsewhere

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault(
                    "initial_lr", lr.clone() if isinstance(lr, Tensor) else lr
                )
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' must be specified in param_groups[{i}] when "
                    f"resuming a scheduler, got last_epoch={last_epoch!r}"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
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
        """Restore the result of :meth:`state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """Return the learning rates set last, one for each group."""
        return self._last_lr

    def get_lr(self):
        """Compute the learning rates of ``last_epoch``; each schedule defines it."""
        raise NotImplementedError

    def _current(self):
        return values_of(self.optimizer, "lr")

    def _scaled(self, factor):
        """Present learning rates times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        """Go to the next epoch (or to `epoch`) and set the learning rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warn(
                    "Seems like `optimizer.step()` has been overridden after learning "
                    "rate scheduler initialization. Please, make sure to call "
                    "`optimizer.step()` before `lr_scheduler.step()`."
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. "
                    "You should call them in the opposite order: `optimizer.step()` "
                    "before `lr_scheduler.step()`. Failure to do this will result in "
                    "skipping the first value of the learning rate schedule."
                )
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed()
        finally:
            vars(self).pop("_get_lr_called_within_step", None)  # the class has False; a state has no such key
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = self._current()


class MomentumScheduler(LRScheduler):
    """Schedules that can set ``momentum``, or the first of ``betas``, as well."""

    def _want_momentum(self, optimizer):
        self.use_beta1 = "betas" in optimizer.defaults
        if not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` "
                "option enabled"
            )

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value
