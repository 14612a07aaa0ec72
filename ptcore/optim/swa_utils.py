"""Averages of models: stochastic weight averaging, exponential moving averages, and the schedule that goes with them.

P. Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018.
"""
import copy
import itertools
import math

from ptcore._contexts import Replaced
from ptcore._dtype import int64
from ptcore._exchange.arrays import asarray
from ptcore._state import no_grad
from ptcore.nn.modules.batchnorm import _BatchNorm
from ptcore.nn.modules.module import Module
from ptcore.optim.scheduler import LRScheduler, per_group

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
           "update_bn"]


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay=0.999):
    """A function that moves averages towards parameters: ``average * decay + parameter * (1 - decay)``.

    Parameters
    ----------
    decay : float, default: 0.999
        In [0, 1].
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for average, p in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(p, 1 - decay)
            else:
                average.copy_(average * decay + p * (1 - decay))
    return ema_update


def get_swa_multi_avg_fn():
    """A function that makes averages means of all parameters so far."""
    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        weight = 1 / (int(num_averaged) + 1)
        for average, p in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(p, weight)
            else:
                average.copy_(average + (p - average) * weight)
    return swa_update


def get_ema_avg_fn(decay=0.999):
    """As :func:`get_ema_multi_avg_fn`, for one parameter; the function returns the average."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param
    return ema_update


def get_swa_avg_fn():
    """As :func:`get_swa_multi_avg_fn`, for one parameter; the function returns the average."""
    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)
    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    Parameters
    ----------
    model : Module
    device : device, optional
        Where the averages are.
    avg_fn : callable, optional
        Of an average, a parameter and the number of models averaged: the new average. The mean by default.
    multi_avg_fn : callable, optional
        Of lists of these; it writes to the averages.
    use_buffers : bool, default: False
        Whether buffers are averaged as well; otherwise they are copied.

    Raises
    ------
    AssertionError
        If both functions are given.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.optim.swa_utils import AveragedModel
    >>> model = ptcore.nn.Linear(1, 1, bias=False)
    >>> average = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = model.weight.data.fill_(value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", asarray(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Adds the parameters of a model to the averages; the first call copies them."""
        def tensors(m):
            return itertools.chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters()
        pairs = [(a.detach(), p.detach().to(a.device)) for a, p in zip(tensors(self.module), tensors(model))]
        number = int(self.n_averaged)
        if number == 0:
            for a, p in pairs:
                a.copy_(p)
        elif self.avg_fn is not None:
            for a, p in pairs:
                a.copy_(self.avg_fn(a, p, self.n_averaged.to(a.device)))
        else:
            groups = {}
            for a, p in pairs:
                groups.setdefault((a.device, a.dtype), []).append((a, p))
            average = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), found in groups.items():
                average([a for a, _ in found], [p for _, p in found], self.n_averaged.to(device))
        if not self.use_buffers:
            for a, b in zip(self.module.buffers(), model.buffers(), strict=True):
                a.detach().copy_(b.detach().to(a.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Computes the running statistics of batch normalization again, by one pass over data.

    Parameters
    ----------
    loader : iterable
        Of batches: tensors, or lists and tuples whose first element is one.
    model : Module
    device : device, optional
        Where batches go first.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    was_training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
    with Replaced([(vars(m), "momentum", None) for m in norms]):        # the mean of all batches
        try:
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
        finally:
            model.train(was_training)


class SWALR(LRScheduler):
    """Moves the learning rates of groups to fixed ones, which they keep.

    Parameters
    ----------
    optimizer : Optimizer
    swa_lr : float or list of float
        The rate of all groups, or of each.
    anneal_epochs : int, default: 10
        How many epochs it takes.
    anneal_strategy : {"cos", "linear"}, default: "cos"
    last_epoch : int, default: -1

    Raises
    ------
    ValueError
        If ``anneal_strategy`` or ``anneal_epochs`` is none of these.
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t):
        """The share of the annealing that is done at time `t`."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self):
        """The learning rates between the first ones and ``swa_lr``."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        epochs = max(1, self.anneal_epochs)
        before, now = [self.anneal_func(max(0, min(1, k / epochs))) for k in (step - 1, step)]
        made = []
        for group in self.optimizer.param_groups:
            # The initial rate of the annealing, from the present one.
            first = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            made.append(group["swa_lr"] * now + first * (1 - now))
        return made
