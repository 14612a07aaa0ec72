"""Recurrent layers over padded and packed sequences, as functions of their weights."""

from ptcore._dtype import promote_types
from ptcore._exchange.convert import tensor
from ptcore._ops.call.autocast import is_enabled
from ptcore._ops.creation.creation import zeros
from ptcore._ops.functions import (  # noqa: F401  (pickles name them here)
    cat,
    dropout_function,
    gru_cell,
    linear,
    lstm_cell,
    recurrent_layer,
    rnn_relu_cell,
    rnn_tanh_cell,
    stack,
)


def one_layer(x, batch_sizes, hx, cx, weights, mode, reverse, cell=False):
    """All steps of one layer in one direction.

    Parameters
    ----------
    x : Tensor, shape (..., input_size)
        The inputs of all steps, ``sum(batch_sizes)`` rows.
    hx, cx : Tensor
        The state that the first step starts from; cx of an LSTM only.
    weights : tuple
        ``(weight_ih, weight_hh, bias_ih, bias_hh, weight_hr)``, None where there is none.
    cell : bool, default: False
        Whether this is a step of a cell. Under autocast on the CPU results of LSTM cells, and of each GRU, have the
        dtype of the state if it is wider, as in PyTorch.

    Returns
    -------
    out, cells : Tensor
        The states after all steps, a row for each row of x.
    """
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if mode != "gru" and b_ih is not None and b_hh is not None:
        b_ih, b_hh = b_ih + b_hh, None              # only their sum is used
    gates = linear(x, w_ih, b_ih)
    gates = gates.reshape(sum(batch_sizes), gates.shape[-1])
    if (gates.dtype is not hx.dtype or hx.dtype is not w_hh.dtype) and x.device.type == "cpu" and is_enabled("cpu"):
        state, dt = hx if cx is None else cx, gates.dtype
        if mode == "gru" or (mode == "lstm" and cell):
            dt = promote_types(dt, state.dtype)
        gates, hx, cx, w_hh, b_hh, w_hr = [t if t is None else t.to(dt) for t in (gates, hx, cx, w_hh, b_hh, w_hr)]
    return recurrent_layer(gates, hx, cx, w_hh, b_hh, w_hr, batch_sizes, mode, reverse)[:2]


def last_rows(values, batch_sizes, reverse, batch):
    """The rows of each sequence's last step, in the order of a layer."""
    if reverse:
        return values[:batch]
    if batch_sizes[-1] == batch:
        return values[values.shape[0] - batch:]
    places, start = [0] * batch, 0
    for n in batch_sizes:
        for i in range(n):
            places[i] = start + i
        start += n
    return values.index_select(0, tensor(places, device=values.device))


def layers(x, batch_sizes, hidden, weights, mode, bidirectional, dropout, training):
    """All layers; `weights` has an entry for each layer and direction, in that order.

    Returns
    -------
    out : Tensor
        With the shape of x but for the last size.
    states : list of Tensor
        Stacked final states; those of the cells too where there are any.
    """
    directions = 2 if bidirectional else 1
    sizes = x.shape[:-1]
    hx, cx = hidden if mode == "lstm" else (hidden, None)
    batch = hx.shape[1]
    hs, cs = [], []
    for layer in range(len(weights) // directions):
        outs = []
        for direction in range(directions):
            k, reverse = layer * directions + direction, direction == 1
            out, cells = one_layer(x, batch_sizes, hx[k], None if cx is None else cx[k], weights[k], mode, reverse)
            outs.append(out)
            hs.append(last_rows(out, batch_sizes, reverse, batch))
            if cx is not None:
                cs.append(last_rows(cells, batch_sizes, reverse, batch))
        x = outs[0] if directions == 1 else cat(outs, 1)
        if dropout and training and layer + 1 < len(weights) // directions:
            x = dropout_function(x, dropout, True)
        x = x.reshape(*sizes, x.shape[-1])
    return x, [stack(hs), stack(cs)] if cx is not None else [stack(hs)]


def zero_state(x, count, batch, size):
    """The initial state of a sequence if none is given."""
    return zeros(count, batch, size, dtype=x.dtype, device=x.device)
