"""OneCycleLR: one rise and one long fall, the momentum running opposite."""

import math

from ptcore.optim.scheduler import MomentumScheduler, check_optimizer, per_group


def _anneal_cos(start, end, share):
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _anneal_linear(start, end, share):
    return (end - start) * share + start


def _positive_int(name, value):
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


class OneCycleLR(MomentumScheduler):
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
        check_optimizer(optimizer)
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
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, lr in zip(groups, max_lrs, strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._want_momentum(optimizer)
            highs = per_group("max_momentum", optimizer, max_momentum)
            lows = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for group, high, low in zip(groups, highs, lows, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"] = high
                    group["base_momentum"] = low
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        """Dictionaries with the last step of each phase and the options at both of its ends."""
        rise = float(pct_start * self.total_steps) - 1
        steps = [("initial_lr", "max_lr", rise)]
        if three_phase:
            steps.append(
                ("max_lr", "initial_lr", float(2 * pct_start * self.total_steps) - 2)
            )
        steps.append((steps[-1][1], "min_lr", self.total_steps - 1))
        momentum_at = {"max_lr": "base_momentum"}  # momentum is low where the rate is high
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
            rates.append(
                anneal(group[phase["start_lr"]], group[phase["end_lr"]], share)
            )
            if self.cycle_momentum:
                start, end = phase["start_momentum"], phase["end_momentum"]
                self._set_momentum(group, anneal(group[start], group[end], share))
        return rates
