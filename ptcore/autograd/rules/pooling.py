"""Rules of pooling: the gradient goes to the position of the largest element."""
from ptcore._memory_format import is_in  # noqa: F401  (pickles name it here)
from ptcore._ops.functions import gather, max_pool_backward, reshape
from ptcore.autograd.helpers import fused, interposed  # noqa: F401  (likewise)
from ptcore.autograd.rules import jvp, vjp

max_pool_slope = fused(by_ops="pooling.max_pool_backward")(max_pool_backward)


def flat(x):
    """(N, C, positions)."""
    return reshape(x, (x.shape[0], x.shape[1], -1 if x.numel() else 0))


@vjp("max_pool_windows")
def max_pool_windows(gs, input, out1):
    return max_pool_slope(gs[0], out1, tuple(input.shape[2:]))


@vjp("fractional_windows")
def fractional_windows(gs, input, out1):
    return max_pool_windows(gs, input, out1), None


@jvp("max_pool_windows", "fractional_windows")
def max_pool_forward(t, out1):
    return reshape(gather(flat(t), 2, flat(out1)), out1.shape), None
