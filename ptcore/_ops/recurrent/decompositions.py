"""The layers of ``recurrent.py`` as step-by-step functions of smaller ops; see decompositions.py.

They serve transformations and the recorded backward.
"""
from ptcore._ops.creation.creation import zeros
from ptcore._ops.functions import cat, chunk, linear, masked_fill, mm, relu, sigmoid, slice, split_by_sizes, tanh


def rows(x, start, end):
    return x if start == 0 and end == x.shape[0] else slice(x, 0, start, end, 1)


def steps_of(x, batch_sizes, reverse):
    """The rows of x of each step, in the order of the layer; None for each step if x is None."""
    if x is None:
        return [None] * len(batch_sizes)
    parts = split_by_sizes(x, batch_sizes, 0)
    return parts[::-1] if reverse else parts


def updated(old, new):
    """``old`` with its first rows replaced by ``new``."""
    n = new.shape[0]
    return new if n == old.shape[0] else cat([new, rows(old, n, old.shape[0])], 0)


def joined(pieces, reverse):
    return cat(pieces[::-1] if reverse else pieces, 0)


def recurrent_layer(gates, hx, cx, weight, bias, projection, batch_sizes, mode, reverse):
    h, c = hx, cx
    outs, cells, kept = [], [], []
    for x in steps_of(gates, batch_sizes, reverse):
        n = x.shape[0]
        state = rows(h, 0, n)
        p = linear(state, weight, bias)
        if mode == "lstm":
            i, f, g, o = chunk(x + p, 4, 1)
            i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
            cell = f * rows(c, 0, n) + i * g
            new = o * tanh(cell)
            if projection is not None:
                new = linear(new, projection)
            c = updated(c, cell)
            cells.append(cell)
            kept.append(cat([i, f, g, o], 1))
        elif mode == "gru":
            xr, xz, xn = chunk(x, 3, 1)
            pr, pz, s = chunk(p, 3, 1)
            r, z = sigmoid(xr + pr), sigmoid(xz + pz)
            q = tanh(xn + r * s)
            new = q + z * (state - q)
            kept.append(cat([r, z, q, s], 1))
        else:
            new = tanh(x + p) if mode == "tanh" else relu(x + p)
        h = updated(h, new)
        outs.append(new)
    if not outs:
        outs = [rows(hx, 0, 0)]
    nothing = zeros((0,), dtype=gates.dtype, device=gates.device)
    return (joined(outs, reverse), joined(cells, reverse) if cells else nothing,
            joined(kept, reverse) if kept else nothing)


def previous_rows(values, first, batch_sizes, reverse):
    """The state that each row of ``values`` started from: the rows of the step before, or of ``first``."""
    pieces, last = [], first
    for now in steps_of(values, batch_sizes, reverse):
        pieces.append(rows(last, 0, now.shape[0]))
        last = updated(last, now)
    return joined(pieces, reverse) if pieces else rows(first, 0, 0)


def recurrent_layer_backward(g, g_cells, out, cells, kept, hx, cx, weight, projection, batch_sizes, mode,
                             reverse):
    previous = previous_rows(out, hx, batch_sizes, reverse)
    before = previous_rows(cells, cx, batch_sizes, reverse) if mode == "lstm" else None
    d, dc = hx * 0, None if cx is None else cx * 0
    gates, hiddens, projected = [], [], []
    gated = mode in ("lstm", "gru")
    read = (g, g_cells, previous, before, None if gated else out, kept if gated else None,
            cells if mode == "lstm" else None)
    for g, g_cells, state, before, y, kept, cell in zip(*[steps_of(x, batch_sizes, not reverse) for x in read]):
        n = g.shape[0]
        dh = rows(d, 0, n) + g
        if projection is not None:
            projected.append(dh)
            dh = mm(dh, projection)
        if mode == "lstm":
            i, f, q, o = chunk(kept, 4, 1)
            t = tanh(cell)
            c = rows(dc, 0, n) + dh * o * (1 - t * t)
            if g_cells is not None:
                c = c + g_cells
            gate = cat([c * q * i * (1 - i), c * before * f * (1 - f), c * i * (1 - q * q),
                        dh * t * o * (1 - o)], 1)
            dc, straight = updated(dc, c * f), None
        elif mode == "gru":
            r, z, q, s = chunk(kept, 4, 1)
            dq = dh * (1 - z) * (1 - q * q)
            dr, dz = dq * s * r * (1 - r), dh * (state - q) * z * (1 - z)
            gate, hidden, straight = cat([dr, dz, dq], 1), cat([dr, dz, dq * r], 1), dh * z
            hiddens.append(hidden)
        else:
            gate, straight = dh * (1 - y * y) if mode == "tanh" else masked_fill(dh, y <= 0, 0), None
        new = mm(hidden if mode == "gru" else gate, weight)
        d = updated(d, new if straight is None else new + straight)
        gates.append(gate)
    nothing = zeros((0,), dtype=weight.dtype, device=weight.device)
    if not gates:
        gates = [zeros((0, weight.shape[0]), dtype=weight.dtype, device=weight.device)]
    return (joined(gates, not reverse), joined(hiddens, not reverse) if hiddens else nothing, previous, d,
            nothing if dc is None else dc, joined(projected, not reverse) if projected else nothing)


FUNCTIONS = {f.__name__: f for f in (recurrent_layer, recurrent_layer_backward)}
