"""Maxima of windows as functions of smaller ops."""
from ptcore._memory_format import channels_last, channels_last_3d, is_in
from ptcore._ops.creation.creation import zeros
from ptcore._ops.functions import reshape, scatter_add


def flat(x):
    """(N, C, positions)."""
    return reshape(x, (x.shape[0], x.shape[1], -1 if x.numel() else 0))


def max_pool_backward(g, indices, size):
    """Each element of g is added at the place of its window's maximum."""
    n, channels = g.shape[0], g.shape[1]
    positions = 1
    for m in size:
        positions *= m
    base = zeros((n, channels, positions), dtype=g.dtype, device=g.device)
    result = reshape(scatter_add(base, 2, flat(indices), flat(g)), (n, channels, *size))
    for format in (channels_last, channels_last_3d):
        if g.ndim > 3 and not indices.is_contiguous() and is_in(indices, format):
            return result.contiguous(memory_format=format)
    return result


FUNCTIONS = {"max_pool_backward": max_pool_backward}
