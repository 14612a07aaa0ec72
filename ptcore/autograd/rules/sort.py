"""Rules of sorting and selecting: a gradient goes back to where its value came from."""
from ptcore._ops.functions import gather
from ptcore.autograd._helpers import ungathered
from ptcore.autograd.rules import jvp, vjp
from ptcore.autograd.rules.reduction import max_dim


@vjp("sort", "topk")
def sort(gs, input, out1, dim):
    g = gs[0]
    return ungathered(g, input.shape, dim, out1) if input.shape else g


@jvp("sort", "topk")
def sort_forward(t, out1, dim):
    return gather(t, dim, out1) if t.shape else t, None


@vjp("kthvalue", "median_along", "mode")
def kthvalue(gs, input, out1, dim, keepdim):
    return max_dim(gs, input, out1, dim, keepdim)
