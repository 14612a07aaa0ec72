"""Rows: one layer of a recurrent network in one direction.

``gates`` (rows, G * hidden) are the products of the inputs of all steps; step t has ``batch_sizes[t]`` rows,
which never increase, as in a packed sequence. The layer adds ``state @ weight.T + bias`` to them.
The state of an LSTM may be ``projection`` times the output of its gates, of a smaller size than the cells.
"""
from ptcore._ops.table.schema import REAL, composite, nondifferentiable, structured

_SETTINGS = 'batch_sizes: Ints, mode: "tanh|relu|lstm|gru", reverse: Bool'

structured(
    "recurrent_layer(gates, hx, cx: OptTensor, weight, bias: OptTensor, projection: OptTensor, "
    f"{_SETTINGS})", types=REAL,
    promote="none", kernel="recurrent_layer", layout="contiguous", internal=True, called="rnn",
    fields=("out", "cells", "kept"),
    out="recurrent",
    batch="decompose", jvp="decompose", autocast=(None, "low"),
    reference="_recurrent_layer(x, hx, cx, weight, bias, projection, batch_sizes, mode, reverse)",
    doc="The states of all steps; the cells of an LSTM; what the derivative reads of the gates.")

nondifferentiable(
    "recurrent_layer_backward(g, g_cells: OptTensor, states, cells, kept, hx, cx: OptTensor, weight, "
    f"projection: OptTensor, {_SETTINGS})", types=REAL, promote="none", kernel="recurrent_layer_backward",
    layout="contiguous", internal=True, called="rnn", fields=("gates", "hidden", "previous", "hx", "cx", "projected"),
    out="recurrent_gradients", batch="decompose",
    reference="_recurrent_layer_backward(g, g_cells, states, cells, kept, hx, cx, weight, projection, batch_sizes, "
              "mode, reverse)",
    doc="The fused gradient of a recurrent layer for a backward that is not recorded.")

_WEIGHTS = "w_ih, w_hh, b_ih: OptTensor = None, b_hh: OptTensor = None"
_STEP = """>>> import ptcore
>>> w = ptcore.ones(%d, 1)
>>> ptcore.%s(ptcore.zeros(1, 1), %s, w, w)
%s
"""
composite(f"lstm_cell(input, hx: Obj, {_WEIGHTS})", method=False, returns="tuple[Tensor, Tensor]",
          autocast=(None, "low"), reference="_lstm_cell(x, hx, w_ih, w_hh, b_ih, b_hh)",
          doc="State and cell after one step from ``hx``, a pair; see :class:`ptcore.nn.LSTMCell`.\n\n" + _STEP % (
              4, "lstm_cell", "(ptcore.zeros(1, 1), ptcore.zeros(1, 1))", "(tensor([[0.]]), tensor([[0.]]))"),
          wide=True)
for _name, _layer, _size, _result in (("gru_cell", "GRUCell", 3, "0."), ("rnn_tanh_cell", "RNNCell", 1, "0."),
                                      ("rnn_relu_cell", "RNNCell", 1, "0.")):
    composite(f"{_name}(input, hx, {_WEIGHTS})", method=False, autocast=(None, "low"), wide=True,
              reference=f"_{_name}(x, hx, w_ih, w_hh, b_ih, b_hh)",
              doc=f"The state after one step; see :class:`ptcore.nn.{_layer}`.\n\n" + _STEP % (
                  _size, _name, "ptcore.zeros(1, 1)", f"tensor([[{_result}]])"))
