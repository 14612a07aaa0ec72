"""Rules of sorting and selecting: the gradient goes to the position of the value."""
from ptcore._dtype import float32
from ptcore._ops.functions import gather, unsqueeze, where
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.reduction.decompositions import shared_equally
from ptcore.autograd.helpers import ungathered
from ptcore.autograd.rules import jvp, vjp
from ptcore.autograd.rules.reduction import to_selected


@vjp("sort", "topk")
def sort(gs, input, out1, dim):
    g = gs[0]
    return ungathered(g, input.shape, dim, out1) if input.shape else g


@jvp("sort", "topk")
def sort_forward(t, out1, dim):
    return gather(t, dim, out1) if t.shape else t, None


@vjp("kthvalue", "median_along", "mode")
def kthvalue(gs, input, out1, dim, keepdim):
    return to_selected(gs[0], input.shape, out1, dim, keepdim)


def _hits(input, out0, dim, keepdim):
    """Whether elements are equal to a median, or NaN if the median is NaN; they share its gradient equally."""
    value = out0 if keepdim else unsqueeze(out0, dim)
    return (input == value) | ((input != input) & (value != value))


@vjp("median_of")
def median_of(gs, input, out0, dim, keepdim):
    g = gs[0] if keepdim else unsqueeze(gs[0], dim)
    return shared_equally(g, _hits(input, out0, dim, keepdim), dim)


@jvp("median_of")
def median_forward(t, input, out0, dim, keepdim):
    hit = _hits(input, out0, dim, keepdim)
    wide = float32 if t.dtype.itemsize == 2 else t.dtype         # sums and counts may exceed float16
    total = sum_of(where(hit, t, 0.0).to(wide), dim, keepdim)
    return (total / sum_of(hit.to(wide), dim, keepdim)).to(t.dtype), None
