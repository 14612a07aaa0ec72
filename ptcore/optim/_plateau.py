"""ReduceLROnPlateau: a schedule that follows a measured quantity."""

import math

from ptcore.optim.scheduler import (
    EPOCH_WARNING,
    LRScheduler,
    check_optimizer,
    per_group,
    set_value,
    warn,
)


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
        min_lr: float = 0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = per_group("min_lr", optimizer, min_lr)
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
        self.best = self.mode_worse = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self):
        """True while waiting after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch=None):
        """Record the quantity `metrics`, and reduce the rates if it has stopped improving."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warn(EPOCH_WARNING)
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
                    f"({len(self.min_lrs)}). Please modify the `min_lrs` field to "
                    "match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_value(group, "lr", new)

    def _is_better(self, value, best):
        if self.threshold_mode == "rel":
            if self.mode == "min":
                return value < best * (1.0 - self.threshold)
            return value > best * (self.threshold + 1.0)
        if self.mode == "min":
            return value < best - self.threshold
        return value > best + self.threshold
