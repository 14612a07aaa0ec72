"""CosineAnnealingWarmRestarts: falling cosines that restart at the initial rate."""

import math

from ptcore.optim.scheduler import LRScheduler, set_value


class CosineAnnealingWarmRestarts(LRScheduler):
    """Fall along a cosine to `eta_min`, begin anew, and so on (SGDR).

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates are set.
    T_0 : int
        Epochs of the first fall.
    T_mult : int, default: 1
        Factor by which each fall is longer than the one before.
    eta_min : float, default: 0.0
        Smallest learning rate.
    last_epoch : int, default: -1
        Index of the last epoch when resuming.

    Raises
    ------
    ValueError
        If `T_0` is no positive int, `T_mult` no int from 1 on, or `eta_min` no number.

    Notes
    -----
    ``eta_min + (lr - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2`` with `T_cur` epochs since the
    last restart and `T_i` epochs from it to the next.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.zeros(1))
    >>> optimizer = ptcore.optim.SGD([w], lr=1.0)
    >>> schedule = ptcore.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, T_mult=2)
    >>> rates = []
    >>> for epoch in range(6):
    ...     optimizer.step()
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.854, 0.5, 0.146]
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (int, float)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Learning rates of the present place in the fall."""
        now = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (lr - self.eta_min) * now / 2 for lr in self.base_lrs]

    def step(self, epoch=None):
        """Go to the next epoch, or to `epoch`, which may lie between two (``epoch + i / n``).

        Parameters
        ----------
        epoch : float, optional
            Where to go; the next call without it goes on from there.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(0 if epoch is None else epoch)
        self.last_epoch = math.floor(0 if epoch is None else epoch)
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            set_value(group, "lr", lr)
        self._last_lr = self._current()

    def _go_to(self, epoch):
        """Find `T_cur` and `T_i` of an epoch."""
        if not 0 <= epoch < math.inf:
            raise ValueError(f"Expected finite non-negative epoch, but got {epoch}")
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        start, self.T_i = 0, self.T_0
        while epoch >= start + self.T_i:
            start += self.T_i
            self.T_i *= self.T_mult
        self.T_cur = epoch - start
