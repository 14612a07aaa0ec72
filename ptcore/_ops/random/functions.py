"""``bernoulli`` as a method: its probabilities are the tensor or an argument."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.creation.draws import bernoulli as drawn


@overridable
def bernoulli(self, p=None, *, generator=None):
    """0 or 1, drawn with the probabilities in the tensor, or with ``p`` for tensors of its shape."""
    return drawn(self, p, generator=generator)
