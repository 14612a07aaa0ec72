"""Bodies: padding with a number or with elements at the edges."""
from cython.cimports.ptcore._ops._spatial import _word

from ptcore._errors import ChoiceError, ShapeError
from ptcore._ops import checked
from ptcore._ops.functions import clone, pad_constant, pad_edges, slice
from ptcore._ops.functions import pad as padded

_LARGEST = 2**40                # sums and products of a few of these fit in 64 bits


# -- padding, windows as columns ------------------------------------------------------------------
def pad(input, pad, mode, value):
    pads = pad if type(pad) is tuple else tuple(pad) if type(pad) is list else ()
    for p in pads:
        if type(p) is not int or not -_LARGEST <= p <= _LARGEST:
            pads = ()
            break
    if not pads:
        pads = tuple(checked.integers("pad", "pad", pad))
    if len(pads) % 2 or len(pads) > 2 * input.ndim:
        raise ShapeError(f"pad: pad must have an even number of entries, at most 2 for each dim of an input "
                         f"of shape {list(input.shape)}, got {list(pads)}")
    _word("pad", "mode", mode)
    if mode == "constant":
        value = 0 if value is None else checked.number("pad", "value", value)
        if isinstance(value, complex) and not input.dtype.is_complex:
            raise TypeError(f"pad: value must be real beside {input.dtype.name}, got complex")
        if type(value) in (int, float, complex) and value:
            checked.holds("pad", "value", input.dtype, value)
            if input.dtype.kind in "iu":
                value = int(value)
        return pad_constant(input, pads, value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"pad: mode must be one of 'constant', 'reflect', 'replicate', 'circular', "
                                  f"got {mode!r}")
    if value is not None and value != 0:
        raise ChoiceError(f"pad: mode {mode!r} takes no value, got {value!r}")
    n = len(pads) // 2
    if not 1 <= n <= 3 or input.ndim not in (n + 1, n + 2):
        raise NotImplementedError(f"pad: mode {mode!r} pads the last 1, 2 or 3 dims of (C, ...) or (N, C, ...), got "
                                  f"{list(pads)} for shape {list(input.shape)}")
    if mode == "reflect" and min(pads) < 0 < max(pads):      # what one side cuts off, the other side may mirror
        out = pad_edges(input, tuple([max(p, 0) for p in pads]), mode)
        for k in range(n):
            out = _cut(out, input.ndim - 1 - k, min(pads[2 * k], 0), min(pads[2 * k + 1], 0))
        return clone(out)
    if min(pads) < 0:
        left = list(pads)
        for k in range(n):
            dim = input.ndim - 1 - k
            if mode == "replicate":
                _from_one_edge(input.shape[dim], left, 2 * k)
            input = _cut(input, dim, left[2 * k], left[2 * k + 1])
        pads = tuple([max(p, 0) for p in left])
    return pad_edges(input, pads, mode) if max(pads) > 0 else clone(input)


def _from_one_edge(size, pads, k):
    """If one side cuts everything and the other replicates, all elements equal the last edge that was cut."""
    total = size + pads[k] + pads[k + 1]
    if total > 0 and pads[k] <= -size:
        pads[k], pads[k + 1] = 1 - size, total - 1
    elif total > 0 and pads[k + 1] <= -size:
        pads[k], pads[k + 1] = total - 1, 1 - size


def _cut(x, dim, left, right):
    n = x.shape[dim]
    if left >= 0 and right >= 0:
        return x
    if -min(left, 0) - min(right, 0) >= n:
        raise ShapeError(f"pad: ({left}, {right}) leaves nothing of dim {dim} of shape {list(x.shape)}")
    return slice(x, dim, max(-left, 0), n - max(-right, 0), 1)


def constant_pad_nd(input, pad, value):
    return padded(input, pad, "constant", value)
