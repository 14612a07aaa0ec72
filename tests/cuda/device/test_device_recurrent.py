"""Recurrent layers on a device: walks of all kinds, against one sequence at a time in NumPy and against the CPU."""
import itertools

import numpy as np
import pytest
from _references_factor import _recurrent_layer, _recurrent_layer_backward
from _tolerance import ACCUMULATED

import ptcore
from ptcore._ops.functions import recurrent_layer, recurrent_layer_backward

DTYPES = ("float32", "float64", "float16", "bfloat16")
GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}
KERNELS = b"recurrent_forward", b"recurrent_backward", b"recurrent_sum"

# batch_sizes: equal ones, falling ones, one step, steps without a row, none
WALKS = [(3, 3, 3), (4, 2, 2, 1), (20,), (2, 1, 0, 0), ()]


def wide(t):
    return t.detach().cpu().to(ptcore.float64).numpy()


def near(got, want, dtype, what, times=1):
    """`times`: steps whose rounding adds up, as states are of the layer's dtype."""
    tolerance = ACCUMULATED[dtype][0] * times
    np.testing.assert_allclose(wide(got), want, rtol=tolerance, atol=tolerance * max(1, np.abs(want).max(initial=0)),
                               err_msg=what)


def operands(rng, mode, batch, rows, n, dtype, size=None, biased=True):
    """gates, hx, cx, weight, bias, projection, from -1 to 1 as states are"""
    width, state = GATES[mode] * n, size or n

    def made(*shape):
        return ptcore.from_numpy(rng.uniform(-1, 1, shape)).to(getattr(ptcore, dtype)).cuda()
    return [made(rows, width), made(batch, state), made(batch, n) if mode == "lstm" else None, made(width, state),
            made(width) if biased else None, made(size, n) if size else None]


def known(values):
    return [None if x is None else wide(x) for x in values]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", GATES)
def test_against_numpy(mode, dtype):
    compare(mode, dtype, WALKS)


@pytest.mark.parametrize("mode", GATES)
def test_more_steps_than_a_tensor_may_have_dims(mode):
    compare(mode, "float64", [(2,) * 40 + (1,) * 30])


def compare(mode, dtype, walks):
    rng = np.random.default_rng(0)
    for sizes, reverse, (n, size) in itertools.product(walks, (False, True), ((1, None), (5, None), (9, 4))):
        if size and mode != "lstm":
            continue
        batch = max(sizes, default=0) + 1               # one sequence has no step
        data = operands(rng, mode, batch, sum(sizes), n, dtype, size, n != 5)
        what = f"{sizes} reverse={reverse} n={n} size={size}"
        out, cells, kept = recurrent_layer(*data, sizes, mode, reverse)
        want = _recurrent_layer(*known(data), sizes, mode, reverse)
        for name, a, b in zip(("out", "cells", "kept"), (out, cells, kept), want):
            near(a, b, dtype, f"{what}: {name}", 4)
        g = operands(rng, "tanh", 1, sum(sizes), size or n, dtype)[0]
        g_cells = operands(rng, "tanh", 1, sum(sizes), n, dtype)[0] if mode == "lstm" and reverse else None
        got = recurrent_layer_backward(g, g_cells, out, cells, kept, *data[1:4], data[5], sizes, mode, reverse)
        tensors = known((g, g_cells, out, cells, kept, *data[1:4], data[5]))
        want = _recurrent_layer_backward(*tensors, sizes, mode, reverse)
        for name, a, b in zip(("gates", "hidden", "previous", "hx", "cx", "projected"), got, want):
            near(a, b, dtype, f"{what}: gradient of {name}", 4)


def test_launches(driver):
    """A product and one kernel for each step that has rows, both ways; previous states are not copied step by step."""
    data = operands(np.random.default_rng(1), "lstm", 4, 9, 6, "float32", 3)
    before = [driver.standin_launched(k) for k in KERNELS]
    out, cells, kept = recurrent_layer(*data, (4, 3, 2, 0), "lstm", False)
    recurrent_layer_backward(out, None, out, cells, kept, *data[1:4], data[5], (4, 3, 2, 0), "lstm", False)
    assert [driver.standin_launched(k) - n for k, n in zip(KERNELS, before)] == [3, 3, 3]


def both(make, run, onto="cuda"):
    """The same on the CPU and on the device, gradients of all parameters included."""
    results = []
    for device in ("cpu", onto):
        ptcore.manual_seed(0)
        layer = make().to(device)
        given = [x.to(device).requires_grad_() for x in inputs(layer)]
        outs = run(layer, *given)
        total = sum((k + 1) * x.square().sum() for k, x in enumerate(outs))
        total.backward()
        results.append([*outs, *(x.grad for x in given), *(p.grad for p in layer.parameters())])
    for want, got in zip(*results):
        near(got, wide(want), "float32", type(layer).__name__)


def inputs(layer):
    rng = np.random.default_rng(2)
    directions = layer.num_layers * (2 if layer.bidirectional else 1)
    sizes = [(4, 3, 5), (directions, 3, getattr(layer, "proj_size", 0) or layer.hidden_size)]
    if isinstance(layer, ptcore.nn.LSTM):
        sizes.append((directions, 3, layer.hidden_size))
    return [ptcore.from_numpy(rng.uniform(-1, 1, s).astype(np.float32)) for s in sizes]


def states(hidden):
    return [*hidden] if isinstance(hidden, tuple) else [hidden]


LAYERS = [lambda **k: ptcore.nn.LSTM(5, 6, **k), lambda **k: ptcore.nn.LSTM(5, 6, proj_size=4, **k),
          lambda **k: ptcore.nn.GRU(5, 6, **k), lambda **k: ptcore.nn.RNN(5, 6, **k),
          lambda **k: ptcore.nn.RNN(5, 6, nonlinearity="relu", **k)]
OPTIONS = [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}]


def padded(layer, x, *hidden):
    out, last = layer(x, hidden if len(hidden) > 1 else hidden[0])
    return [out, *states(last)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", LAYERS, ids=["LSTM", "LSTM-projected", "GRU", "RNN", "RNN-relu"])
def test_layers(make, options):
    both(lambda: make(**options), padded)


@pytest.mark.skipif(ptcore.cuda.device_count() < 2, reason="needs two devices")
def test_another_device():
    """Not the current one."""
    both(LAYERS[1], padded, "cuda:1")


@pytest.mark.parametrize("make", LAYERS[:4], ids=["LSTM", "LSTM-projected", "GRU", "RNN"])
def test_packed_sequences(make):
    pack, pad = ptcore.nn.utils.rnn.pack_padded_sequence, ptcore.nn.utils.rnn.pad_packed_sequence

    def run(layer, x, *hidden):
        packed = pack(x, ptcore.tensor([2, 4, 1]), enforce_sorted=False)
        out, last = layer(packed, hidden if len(hidden) > 1 else hidden[0])
        return [pad(out)[0], *states(last)]
    both(lambda: make(bidirectional=True), run)


@pytest.mark.parametrize("mode", GATES)
def test_gradcheck(mode):
    data = operands(np.random.default_rng(3), mode, 2, 3, 2, "float64", 2 if mode == "lstm" else None)
    given = [x.requires_grad_() for x in data if x is not None]

    def run(*values):
        values = iter(values)
        called = [None if x is None else next(values) for x in data]
        return recurrent_layer(*called, (2, 1), mode, mode == "gru")[:2 if mode == "lstm" else 1]

    assert ptcore.autograd.gradcheck(run, given)
    assert ptcore.autograd.gradgradcheck(run, given)
