"""The rule of a recurrent layer: one fused walk back, or single steps if the backward is recorded."""
from ptcore._ops.functions import mm, slice, tanh, transpose
from ptcore._ops.functions import recurrent_layer as layer
from ptcore._ops.functions import recurrent_layer_backward as fused
from ptcore._ops.functions import sum as sum_of
from ptcore._tensor import Tensor
from ptcore.autograd.function import _Underived
from ptcore.autograd.helpers import fused as fused_or
from ptcore.autograd.helpers import zeros_for
from ptcore.autograd.rules import SMALLER, vjp


def states_again(gates, hx, cx, weight, bias, projection, out, cells, kept, batch_sizes, mode, reverse):
    from ptcore._ops.recurrent import decompositions
    return decompositions.recurrent_layer(gates, hx, cx, weight, bias, projection, batch_sizes, mode, reverse)


@fused_or(by_ops=states_again, wide=False)
def states(gates, hx, cx, weight, bias, projection, out, cells, kept, batch_sizes, mode, reverse):
    """What the forward has left; computed again from the inputs if the backward is differentiated, or if it was written
    to."""
    if out is None or cells is None:
        return layer(gates, hx, cx, weight, bias, projection, batch_sizes, mode, reverse)
    return out, cells, kept


slopes = fused_or(by_ops="recurrent.recurrent_layer_backward")(fused)


@vjp("recurrent_layer", remade=True)
def recurrent_layer(gs, gates, hx, cx, weight, bias, projection, out, out1, out2, batch_sizes, mode, reverse,
                    needs):
    g, g_cells = gs[0], gs[1]
    if mode != "lstm":
        g_cells = None
    if g is None:
        if g_cells is None:
            return None, None, None, None, None, None
        g = zeros_for(g_cells, (g_cells.shape[0], hx.shape[1]))         # a projected state is narrower than its cell
    out, cells, kept = states(gates, hx, cx, weight, bias, projection, out, out1, out2, batch_sizes, mode, reverse)
    d, hidden, previous, dh, dc, projected = slopes(g, g_cells, out, cells, kept, hx, cx, weight, projection,
                                                    batch_sizes, mode, reverse)
    if mode != "gru":
        hidden = d
    down = None
    if projection is not None and needs & 32:
        n = cells.shape[1]
        down = mm(transpose(projected, 0, 1), slice(kept, 1, 3 * n, 4 * n, 1) * tanh(cells))
    return (d, dh, dc if mode == "lstm" else None, mm(transpose(hidden, 0, 1), previous) if needs & 8 else None,
            sum_of(hidden, 0) if needs & 16 else None, down)


_REFUSED = ("recurrent_layer_backward: the backward of a recurrent layer that a graph holds has no derivative; take "
            "the second derivative in the function that is traced")


def _recurrent_layer_backward(*args):
    """The inputs of the gates are not among the arguments: the values, whose derivative raises."""
    found = fused(*[x.detach() if isinstance(x, Tensor) else x for x in args])
    given = [x for x in args if isinstance(x, Tensor)]
    return tuple([r if r is None or not r.dtype.is_floating_point else _Underived.apply(r, _REFUSED, *given)
                  for r in found])


SMALLER["recurrent_layer_backward"] = _recurrent_layer_backward
