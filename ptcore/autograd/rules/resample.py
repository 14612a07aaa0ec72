"""Rule of sampling at positions. A backward that is not recorded uses the fused kernel."""
from ptcore._ops.functions import grid_sample_backward
from ptcore.autograd.helpers import fused
from ptcore.autograd.rules import vjp

slopes = fused(by_ops="resample.grid_sample_backward")(grid_sample_backward)


@vjp("grid_sampled")
def grid_sampled(g, input, grid, mode, padding_mode, align_corners, needs):
    gradients = slopes(g, input, grid, mode, padding_mode, align_corners)
    return gradients[0] if needs & 1 else None, gradients[1] if needs & 2 else None
