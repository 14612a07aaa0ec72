"""Rule of sampling at positions. A backward that is not recorded uses the fused kernel."""
from ptcore._ops.functions import grid_sample_backward
from ptcore.autograd.helpers import differentiated
from ptcore.autograd.rules import vjp


@vjp("grid_sampled")
def grid_sampled(g, input, grid, mode, padding_mode, align_corners, needs):
    if differentiated():
        from ptcore._ops.resample.decompositions import grid_sample_backward as slope_by_ops
        gradients = slope_by_ops(g, input, grid, mode, padding_mode, align_corners)
    else:
        gradients = grid_sample_backward(g, input, grid, mode, padding_mode, align_corners)
    return gradients[0] if needs & 1 else None, gradients[1] if needs & 2 else None
