"""Draws that few programs ask for, in plain Python."""
from ptcore._errors import DTypeError
from ptcore._ops import _arguments
from ptcore._ops.creation.creation import arange, empty_like, rand
from ptcore._ops.creation.creation import bernoulli as drawn
from ptcore._ops.functions import broadcast_tensors
from ptcore._state import no_grad


def binomial(count, prob, generator=None):
    """Draws of how many of ``count`` trials succeed, each with probability ``prob``, element by element.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.binomial(ptcore.tensor([5.]), ptcore.tensor([1.]))
    tensor([5.])
    """
    _arguments.need_tensors("binomial", count=count, prob=prob)
    for x in (count, prob):
        if x.dtype.kind != "f" or x.dtype is not count.dtype:
            raise DTypeError(f"binomial: count and prob must have one floating-point dtype, got {count.dtype.name} and "
                             f"{prob.dtype.name}")
    count, prob = broadcast_tensors(count.detach(), prob.detach())
    if (count < 0).any() or (count != count.floor()).any():
        raise RuntimeError("binomial: count must hold whole numbers that are not negative")
    if not ((prob >= 0) & (prob <= 1)).all():
        raise RuntimeError("binomial: prob must be in [0, 1]")
    trials = int(count.max()) if count.numel() else 0
    result = count * 0
    with no_grad():
        for start in range(0, trials, 256):             # 256 trials at a time, for memory
            n = min(256, trials - start)
            numbers = arange(start, start + n, dtype=count.dtype, device=count.device)
            hit = rand(*count.shape, n, dtype=prob.dtype, device=prob.device, generator=generator) < prob.unsqueeze(-1)
            result = result + (hit & (numbers < count.unsqueeze(-1))).sum(-1).to(count.dtype)
    return result


def bernoulli(self, p=None, *, generator=None):
    """0 or 1, drawn with the probabilities in the tensor, or with ``p`` for tensors of its shape."""
    if p is None:
        return drawn(self, generator=generator)
    return empty_like(self).bernoulli_(p, generator=generator)
