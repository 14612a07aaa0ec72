"""``device="meta"``: every op gives the shape, dtype and strides that it gives on data."""
import numpy as np
import pytest
from _cases import CASES, LAYOUTS, ROWS, Sample, case_id, cases, dtypes, function, layouts, tensor
from _composite_cases import NEED_DATA as COMPOSITES_THAT_NEED_DATA
from _walk import walk

import ptcore

pytestmark = pytest.mark.core

# What the result looks like depends on the data, or there is no tensor to be on the device.
NEED_DATA = {"nonzero_of", "equal", "allclose", *COMPOSITES_THAT_NEED_DATA} - {"renorm", "embedding_function"}
ON_META = [r for r in ROWS.values() if r.name not in NEED_DATA and not r.name.startswith("fill_")
           and (r.kind == "elementwise" or CASES.get(r.name))]


def meta(values, dtype, layout):
    """A meta tensor with the sizes and strides that the data would have."""
    like = tensor(values, dtype, layout)
    return ptcore.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta")


def outputs(result):
    return list(result) if isinstance(result, tuple) else [result]


def check(row, case, dtype, layout):
    real, keyword = Sample(row, case, dtype, np.random.default_rng(5)).arguments(layout)
    ghost, ghost_keyword = Sample(row, case, dtype, np.random.default_rng(5)).arguments(
        layout, make=meta)
    want = outputs(function(row)(*real, **keyword))
    got = outputs(function(row)(*ghost, **ghost_keyword))
    context = f"{case_id(row, case)} {dtype} {layout}"
    assert len(got) == len(want), context
    for a, b in zip(got, want):
        assert a.device.type == "meta", context
        assert (a.shape, a.dtype) == (b.shape, b.dtype), context
        assert a.stride() == b.stride(), context


@walk("row", [pytest.param(r, id=r.name) for r in ON_META])
def test_metadata(row):
    for dtype in dtypes(row):
        check(row, cases(row)[0], dtype, "contiguous")
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    for case in cases(row):
        for layout in ("contiguous", "transposed"):
            if layout in layouts(row):
                check(row, case, dtype, layout)


def test_no_data():
    x = ptcore.empty(3, device="meta")
    for read in (x.item, x.tolist, x.numpy, lambda: bool(x.sum())):
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            read()
    assert "meta" in repr(x)


def test_gradient():
    x = ptcore.empty(3, 4, device="meta", requires_grad=True)
    w = ptcore.empty(4, 2, device="meta", requires_grad=True)
    (x @ w).relu().sum().backward()
    assert (x.grad.shape, w.grad.shape) == (x.shape, w.shape)
    assert x.grad.device.type == w.grad.device.type == "meta"


def test_mixed_devices():
    with pytest.raises(RuntimeError, match="mm: all tensors must be on one device"):
        ptcore.mm(ptcore.ones(2, 2), ptcore.empty(2, 2, device="meta"))
    with pytest.raises(RuntimeError, match="add: all tensors must be on one device"):
        ptcore.ones(2) + ptcore.empty(2, device="meta")
    assert (ptcore.empty(2, device="meta") + ptcore.tensor(1.0)).device.type == "meta"


def test_layouts_differ():
    assert len({meta(np.zeros((2, 3)), "float64", k).stride() for k in LAYOUTS if k != "reversed"}) > 3


def test_data_does_not_go_to_meta():
    """Values would be lost, or come from nowhere: PyTorch refuses both."""
    value, shape = ptcore.ones(2), ptcore.empty(2, device="meta")
    for a, b in ((value, shape), (shape, value), (ptcore.nn.Parameter(value), shape)):
        with pytest.raises(RuntimeError, match="incompatible types"):
            a.data = b
    assert value.tolist() == [1, 1]
    other = ptcore.empty(3, device="meta")
    shape.data = other
    assert shape.shape == (3,)
    layer = ptcore.nn.Linear(2, 3).to("meta")
    assert layer.weight.is_meta
    assert layer.to_empty(device="cpu").weight.is_cpu
