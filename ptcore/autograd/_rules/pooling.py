"""Rules of pooling: a gradient goes back to where the largest element stood."""
from ptcore._ops.functions import gather, reshape, scatter_add
from ptcore.autograd._helpers import zeros_for
from ptcore.autograd._rules import jvp, vjp


def flat(x):
    """(N, C, positions)."""
    shape = x.shape
    positions = 1
    for n in shape[2:]:
        positions *= n
    return reshape(x, (shape[0], shape[1], positions))


@vjp("max_pool_windows")
def max_pool_windows(gs, input, out1):
    g, shape = gs[0], input.shape
    positions = 1
    for n in shape[2:]:
        positions *= n
    zeros = zeros_for(g, (shape[0], shape[1], positions))
    return reshape(scatter_add(zeros, 2, flat(out1), flat(g)), shape)


@jvp("max_pool_windows")
def max_pool_forward(t, out1):
    return reshape(gather(flat(t), 2, flat(out1)), out1.shape), None
