"""The layers of ``recurrent.py`` written out step by step; see _decompositions.py.

They serve transformations and the recorded backward.
"""
from ptcore._ops._creation import zeros
from ptcore._ops.functions import cat, chunk, linear, mm, relu, sigmoid, slice, tanh, where


def rows(x, start, end):
    return x if start == 0 and end == x.shape[0] else slice(x, 0, start, end, 1)


def order(batch_sizes, reverse):
    """(first row, number of rows) of the steps in the order in which the layer takes them."""
    steps, start = [], 0
    for n in batch_sizes:
        steps.append((start, n))
        start += n
    return steps[::-1] if reverse else steps


def updated(old, new):
    """``old`` with its first rows replaced."""
    n = new.shape[0]
    return new if n == old.shape[0] else cat([new, rows(old, n, old.shape[0])], 0)


def joined(pieces, reverse):
    return cat(pieces[::-1] if reverse else pieces, 0)


def recurrent_layer(gates, hx, cx, weight, bias, projection, batch_sizes, mode, reverse):
    h, c = hx, cx
    outs, cells, kept = [], [], []
    for start, n in order(batch_sizes, reverse):
        x, state = rows(gates, start, start + n), rows(h, 0, n)
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
    """What each row of ``values`` started from: the rows of the step before it, or of ``first``."""
    pieces, last = [], first
    for start, n in order(batch_sizes, reverse):
        pieces.append(rows(last, 0, n))
        last = updated(last, rows(values, start, start + n))
    return joined(pieces, reverse) if pieces else rows(first, 0, 0)


def recurrent_layer_backward(g, g_cells, out, cells, kept, hx, cx, weight, projection, batch_sizes, mode,
                             reverse):
    previous = previous_rows(out, hx, batch_sizes, reverse)
    before = previous_rows(cells, cx, batch_sizes, reverse) if mode == "lstm" else None
    d, dc = hx * 0, None if cx is None else cx * 0
    gates, hiddens, projected = [], [], []
    for start, n in reversed(order(batch_sizes, reverse)):
        def now(x, start=start, n=n):
            return rows(x, start, start + n)
        dh = rows(d, 0, n) + now(g)
        if projection is not None:
            projected.append(dh)
            dh = mm(dh, projection)
        if mode == "lstm":
            i, f, q, o = chunk(now(kept), 4, 1)
            t = tanh(now(cells))
            c = rows(dc, 0, n) + dh * o * (1 - t * t)
            if g_cells is not None:
                c = c + now(g_cells)
            gate = cat([c * q * i * (1 - i), c * now(before) * f * (1 - f), c * i * (1 - q * q),
                        dh * t * o * (1 - o)], 1)
            dc, straight = updated(dc, c * f), None
        elif mode == "gru":
            r, z, q, s = chunk(now(kept), 4, 1)
            dq = dh * (1 - z) * (1 - q * q)
            dr, dz = dq * s * r * (1 - r), dh * (now(previous) - q) * z * (1 - z)
            gate, hidden, straight = cat([dr, dz, dq], 1), cat([dr, dz, dq * r], 1), dh * z
            hiddens.append(hidden)
        else:
            y = now(out)
            gate, straight = dh * (1 - y * y) if mode == "tanh" else where(y > 0, dh, dh * 0), None
        new = mm(hidden if mode == "gru" else gate, weight)
        d = updated(d, new if straight is None else new + straight)
        gates.append(gate)
    nothing = zeros((0,), dtype=g.dtype, device=g.device)
    if not gates:
        gates = [zeros((0, weight.shape[0]), dtype=g.dtype, device=g.device)]
    return (joined(gates, not reverse), joined(hiddens, not reverse) if hiddens else nothing, previous, d,
            nothing if dc is None else dc, joined(projected, not reverse) if projected else nothing)
