"""Dtypes of results under autocast on the CPU, of every entry of torch's op database in float32 and bfloat16."""
import itertools
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from _draw import drawn

import ptcore as pt

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
_convert, _entries = [import_module(f"op_db.{name}") for name in ("_convert", "_entries")]

pytestmark = [pytest.mark.parity, pytest.mark.slow]
ENTRIES = _entries.entries()
# name -> why our result has another dtype
DIFFERENT = {
    **dict.fromkeys(["linalg.pinv", "linalg.pinv.hermitian"], "PyTorch multiplies the parts of the decomposition in "
                                                              "bfloat16"),
    "matrix_exp": "computed in float32: there is no kernel in half precision",
    "native_batch_norm": "without autocast it differs as well: nothing is given for statistics that nobody has",
    "nn.functional.max_pool3d": "with return_indices PyTorch calls a function that is in no list",
    **dict.fromkeys(["nn.functional.pad.reflect", "nn.functional.pad.replicate",
                     "nn.functional.pad.replicate_negative"],
                    "padding keeps the dtype in every mode"),
    "tensordot": "over dims of one element PyTorch multiplies without a product of matrices",
}


def dtypes(result, kind):
    return [str(x.dtype).rpartition(".")[2] for x in _convert.leaves(result, kind)]


@pytest.mark.parametrize("name", drawn(sorted(ENTRIES)))
def test_dtypes_of_results(name):
    op = ENTRIES[name]
    ours, theirs = _entries.ours(op), _entries.theirs(op)
    wrong, seen = [], 0
    for dtype in (torch.float32, torch.bfloat16):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        for sample in itertools.islice(_entries.samples(op, dtype, False, 0), 3):
            given = (sample.input, *sample.args)
            mine, named = _convert.ours(list(given)), _convert.ours(sample.kwargs)
            try:
                with torch.autocast("cpu"):
                    want = dtypes(theirs(*given, **sample.kwargs), torch.Tensor)
            except Exception:
                continue
            with pt.autocast("cpu"):
                got = dtypes(ours(*mine, **named), pt.Tensor)
            seen += 1
            if got != want:
                wrong.append((str(dtype), sample.summary(), got, want))
    assert (not wrong) != (name in DIFFERENT), wrong[:2]


BEHIND = {
    "layer_norm": (lambda nn: [nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)], (4, 8)),
    "layer_norm_without_bias": (lambda nn: [nn.Linear(8, 8), nn.LayerNorm(8, bias=False), nn.Linear(8, 2)], (4, 8)),
    "group_norm": (lambda nn: [nn.Conv2d(4, 4, 1), nn.GroupNorm(2, 4)], (2, 4, 3, 3)),
    "batch_norm": (lambda nn: [nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)], (2, 4, 3, 3)),
    "instance_norm": (lambda nn: [nn.Conv2d(4, 4, 1), nn.InstanceNorm2d(4, affine=True)], (2, 4, 3, 3)),
    "prelu": (lambda nn: [nn.Linear(8, 8), nn.PReLU()], (4, 8)),
    "lstm": (lambda nn: [nn.Linear(8, 8), nn.LSTM(8, 8)], (4, 8)),
    "gru": (lambda nn: [nn.Linear(8, 8), nn.GRU(8, 8, bidirectional=True)], (4, 8)),
    "encoder": (lambda nn: [nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)], (4, 2, 8)),
}


@pytest.mark.parametrize("name", BEHIND)
def test_layers_behind_what_is_cast(name):
    """Parameters of float32 beside inputs that another layer has made halves: dtypes, values, gradients."""
    make, shape = BEHIND[name]
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype("float32")
    state = None
    found = []
    for m in (torch, pt):
        net = m.nn.Sequential(*make(m.nn))
        if state is None:
            state = {k: v.numpy().copy() for k, v in net.state_dict().items()}
        net.load_state_dict({k: m.from_numpy(np.array(v)) for k, v in state.items()})
        with m.autocast("cpu", dtype=m.bfloat16):
            y = net(m.from_numpy(x))
            y = y[0] if isinstance(y, tuple) else y
        y.float().square().sum().backward()
        found.append((str(y.dtype).split(".")[1], y.detach().float().numpy(),
                      [(str(p.grad.dtype).split(".")[1], p.grad.numpy()) for p in net.parameters()]))
    (kind, values, grads), (kind_, values_, grads_) = found
    assert kind == kind_
    np.testing.assert_allclose(values_, values, rtol=0.05, atol=0.05)
    for (a, g), (b, h) in zip(grads, grads_, strict=True):
        assert a == b
        np.testing.assert_allclose(h, g, rtol=0.1, atol=0.05 * max(1.0, np.abs(g).max()))
