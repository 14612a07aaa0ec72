"""The rule of a recurrent layer: one fused walk back, or single steps if the backward is recorded."""
from ptcore._ops.functions import mm, slice, tanh, transpose
from ptcore._ops.functions import recurrent_layer_backward as fused
from ptcore._ops.functions import sum as sum_of
from ptcore.autograd.helpers import differentiated, zeros_for
from ptcore.autograd.rules import vjp


@vjp("recurrent_layer")
def recurrent_layer(gs, gates, hx, cx, weight, bias, projection, out, out1, out2, batch_sizes, mode, reverse,
                    needs):
    """When recorded, the states are computed again from the inputs."""
    g, g_cells = gs[0], gs[1]
    if mode != "lstm":
        g_cells = None
    if g is None:
        if g_cells is None:
            return None, None, None, None, None, None
        g = zeros_for(g_cells, g_cells.shape)
    cells, kept, backward = out1, out2, fused
    if differentiated():
        from ptcore._ops.recurrent import decompositions as by_ops
        out, cells, kept = by_ops.recurrent_layer(gates, hx, cx, weight, bias, projection, batch_sizes, mode,
                                                  reverse)
        backward = by_ops.recurrent_layer_backward
    d, hidden, previous, dh, dc, projected = backward(g, g_cells, out, cells, kept, hx, cx, weight, projection,
                                                      batch_sizes, mode, reverse)
    if mode != "gru":
        hidden = d
    down = None
    if projection is not None and needs & 32:
        n = cells.shape[1]
        down = mm(transpose(projected, 0, 1), slice(kept, 1, 3 * n, 4 * n, 1) * tanh(cells))
    return (d, dh, dc if mode == "lstm" else None, mm(transpose(hidden, 0, 1), previous) if needs & 8 else None,
            sum_of(hidden, 0) if needs & 16 else None, down)
