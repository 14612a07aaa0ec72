"""Rules of pooling: the gradient goes to the position of the largest element."""
from ptcore._memory_format import channels_last, channels_last_3d, is_in
from ptcore._ops.functions import gather, reshape
from ptcore.autograd.helpers import differentiated, interposed, ungathered, zeros_for
from ptcore.autograd.rules import jvp, vjp


def flat(x):
    """(N, C, positions)."""
    return reshape(x, (x.shape[0], x.shape[1], -1 if x.numel() else 0))


@vjp("max_pool_windows")
def max_pool_windows(gs, input, out1):
    shape = input.shape
    positions = 1
    for n in shape[2:]:
        positions *= n
    if differentiated() or interposed():
        g = reshape(ungathered(flat(gs[0]), (shape[0], shape[1], positions), 2, flat(out1)), shape)
    else:                               # made with the full shape, since a view could not become ``.grad``
        g = zeros_for(gs[0], shape)
        flat(g).scatter_add_(2, flat(out1), flat(gs[0]))
    for format in (channels_last, channels_last_3d):
        if len(shape) > 3 and not out1.is_contiguous() and is_in(out1, format):
            return g.contiguous(memory_format=format)
    return g


@vjp("fractional_windows")
def fractional_windows(gs, input, out1):
    return max_pool_windows(gs, input, out1), None


@jvp("max_pool_windows", "fractional_windows")
def max_pool_forward(t, out1):
    return reshape(gather(flat(t), 2, flat(out1)), out1.shape), None
