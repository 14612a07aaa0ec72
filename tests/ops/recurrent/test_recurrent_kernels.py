"""Recurrent layers: one step and one sequence at a time in NumPy, and differences for the derivative."""
import numpy as np
import pytest
from scipy.special import expit

from _kernel_arrays import EPS, FLOAT, make, wide
from _kernels import KernelError

MODES = ("tanh", "relu", "lstm", "gru")
WALKS = [((3, 3, 3), False), ((3, 3, 3), True), ((4, 2, 2, 1), False), ((4, 2, 2, 1), True), ((35,), False), ((70, 69), True)]
GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}


def layer(gates, hx, cx, weight, bias, projection, sizes, mode, reverse):
    n = hx.shape[1] if projection is None else projection.shape[1]
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    steps = list(zip(starts, sizes))[::-1 if reverse else 1]
    out, cells = np.zeros((len(gates), hx.shape[1])), np.zeros((len(gates), n))
    for b in range(len(hx)):
        h, c = hx[b], None if cx is None else cx[b]
        for start, size in steps:
            if b >= size:
                continue
            x, p = gates[start + b], weight @ h + (0 if bias is None else bias)
            if mode == "lstm":
                i, f, g, o = (x + p).reshape(4, n)
                c = expit(f) * c + expit(i) * np.tanh(g)
                h = expit(o) * np.tanh(c) if projection is None else projection @ (expit(o) * np.tanh(c))
                cells[start + b] = c
            elif mode == "gru":
                (xr, xz, xn), (pr, pz, pn) = x.reshape(3, n), p.reshape(3, n)
                z = expit(xz + pz)
                h = (1 - z) * np.tanh(xn + expit(xr + pr) * pn) + z * h
            else:
                h = np.tanh(x + p) if mode == "tanh" else np.maximum(x + p, 0)
            out[start + b] = h
    return out, cells


def operands(rng, mode, sizes, n, dtype, state=None):
    rows, batch, width = sum(sizes), sizes[0], GATES[mode] * n
    return [make(rng, shape, dtype) for shape in ((rows, width), (batch, state or n))] + [
        make(rng, (batch, n), dtype) if mode == "lstm" else None, make(rng, (width, state or n), dtype), make(rng, (width,), dtype),
        make(rng, (state, n), dtype) if state else None]


def forward(kernels, data, sizes, mode, reverse, dtype):
    n, rows = data[0].shape[1] // GATES[mode], data[0].shape[0]
    shapes = [((rows, data[1].shape[1]), dtype), ((rows, n) if mode == "lstm" else (0,), dtype), ((rows, 4 * n) if mode in ("lstm", "gru") else (0,), dtype)]
    return kernels("recurrent_layer", data, shapes, [sizes, MODES.index(mode), int(reverse)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", FLOAT)
def test_forward(kernels, mode, dtype):
    rng = np.random.default_rng(0)
    for sizes, reverse in WALKS:
        for n in (1, 5, 33):
            for biased in (True, False):
                data = operands(rng, mode, sizes, n, dtype)
                data[4] = data[4] if biased else None
                out, cells, _ = forward(kernels, data, sizes, mode, reverse, dtype)
                want, want_cells = layer(*[None if x is None else wide(x) for x in data], sizes, mode, reverse)
                scale = 40 * (1 + np.abs(want).max())
                np.testing.assert_allclose(wide(out), want, atol=scale * EPS[dtype] * 4)
                if mode == "lstm":
                    np.testing.assert_allclose(wide(cells), want_cells, atol=40 * (1 + np.abs(want_cells).max()) * EPS[dtype] * 4)


@pytest.mark.parametrize("dtype", FLOAT)
def test_projected(kernels, dtype):
    rng = np.random.default_rng(3)
    for sizes, reverse in WALKS:
        for n, state in ((2, 1), (5, 3), (33, 17), (20, 19)):
            data = operands(rng, "lstm", sizes, n, dtype, state)
            out, cells, _ = forward(kernels, data, sizes, "lstm", reverse, dtype)
            want, want_cells = layer(*[wide(x) for x in data], sizes, "lstm", reverse)
            for got, value in ((out, want), (cells, want_cells)):
                np.testing.assert_allclose(wide(got), value, atol=(40 + 4 * n) * (1 + np.abs(value).max()) * EPS[dtype] * 4)


@pytest.mark.parametrize(("mode", "state"), [(mode, None) for mode in MODES] + [("lstm", 2)])
def test_backward(kernels, mode, state):
    """Against central differences of the loop above, in float64."""
    rng = np.random.default_rng(1)
    for sizes, reverse in WALKS[:4]:
        data = operands(rng, mode, sizes, 3, "float64", state)
        out, cells, kept = forward(kernels, data, sizes, mode, reverse, "float64")
        g = rng.normal(size=out.shape)
        gc = rng.normal(size=cells.shape) if mode == "lstm" else None
        empty, width = ((0,), "float64"), data[0].shape
        shapes = [(width, "float64"), (width, "float64") if mode == "gru" else empty, (out.shape, "float64"), (data[1].shape, "float64"),
                  (data[2].shape, "float64") if mode == "lstm" else empty, (out.shape, "float64") if state else empty]
        d, hidden, previous, dh, dc, projected = kernels(
            "recurrent_layer_backward", [g, gc, out, cells, kept, data[1], data[2], data[3], data[5]], shapes,
            [sizes, MODES.index(mode), int(reverse)])
        hidden = hidden if mode == "gru" else d
        got = [d, dh, dc, hidden.T @ previous, hidden.sum(0), projected.T @ (kept[:, 9:] * np.tanh(cells)) if state else None]

        def loss(values, g=g, gc=gc, sizes=sizes, reverse=reverse):
            out, cells = layer(*values, sizes, mode, reverse)
            return (g * out).sum() + (0 if gc is None else (gc * cells).sum())

        for k, value in enumerate(data):
            if value is None:
                continue
            want = np.zeros(value.shape)
            for at in np.ndindex(*value.shape):
                ends = []
                for step in (1e-6, -1e-6):
                    moved = value.copy()
                    moved[at] += step
                    ends.append(loss([*data[:k], moved, *data[k + 1:]]))
                want[at] = (ends[0] - ends[1]) / 2e-6
            np.testing.assert_allclose(got[k], want, atol=1e-7)


def test_threads_and_errors(kernels):
    rng = np.random.default_rng(2)
    data = operands(rng, "lstm", (70, 70, 66), 40, "float32")
    kernels.threads(1)
    alone = forward(kernels, data, (70, 70, 66), "lstm", False, "float32")
    kernels.threads(4)
    for a, b in zip(alone, forward(kernels, data, (70, 70, 66), "lstm", False, "float32")):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(KernelError, match="must not rise"):
        forward(kernels, data, (66, 70, 70), "lstm", False, "float32")
    with pytest.raises(KernelError, match="rows"):
        forward(kernels, data, (70, 70), "lstm", False, "float32")
    data[1] = data[1].astype("float64")
    with pytest.raises(KernelError, match="one dtype"):
        forward(kernels, data, (70, 70, 66), "lstm", False, "float32")
