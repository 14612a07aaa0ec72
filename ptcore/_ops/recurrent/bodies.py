"""Bodies: one step of a recurrent layer."""
from ptcore._ops import checked
from ptcore._ops.recurrent.functions import one_layer


def _cell(op, mode, input, hx, cx, w_ih, w_hh, b_ih, b_hh):
    checked.need_tensors(op, hx=hx)
    if input.ndim != 2 or hx.ndim != 2 or input.shape[0] != hx.shape[0]:
        raise RuntimeError(f"{op}: input and the state must be matrices with one row for each sample, got shapes "
                           f"{list(input.shape)} and {list(hx.shape)}")
    return one_layer(input, (input.shape[0],), hx, cx, (w_ih, w_hh, b_ih, b_hh, None), mode, False, cell=True)


def lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise RuntimeError(f"lstm_cell: hx must be a pair (h, c), got {type(hx).__name__}")
    return tuple(_cell("lstm_cell", "lstm", input, *hx, w_ih, w_hh, b_ih, b_hh))


def gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    return _cell("gru_cell", "gru", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    return _cell("rnn_tanh_cell", "tanh", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    return _cell("rnn_relu_cell", "relu", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]
