"""Exchange of memory and Python values with torch as partner and as oracle."""

import copy
import gc
import pickle

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.core]

NAMES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
         "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", NAMES)
def test_dlpack_both_ways(name):
    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(torch, name))
    t = pt.from_dlpack(x)
    assert t.dtype is getattr(pt, name)
    assert t.tolist() == x.tolist()
    t[0, 0] = 0
    assert not x[0, 0].item()
    y = torch.from_dlpack(t)
    assert y.dtype == x.dtype
    assert y.data_ptr() == x.data_ptr()
    y[1, 1] = 0
    assert not t[1, 1].item()


@pytest.mark.parametrize("window", [np.s_[1:3, ::2], np.s_[1], np.s_[1, 2], np.s_[:0], np.s_[None]])
def test_dlpack_strides(window):
    x = torch.arange(20.0).reshape(4, 5)
    t = pt.arange(20.0).reshape(4, 5)
    assert pt.from_dlpack(x[window].mT if x[window].ndim > 1 else x[window]).tolist() == (
        x[window].mT if x[window].ndim > 1 else x[window]).tolist()
    assert torch.from_dlpack(t[window]).tolist() == x[window].tolist()
    assert torch.from_dlpack(t[window]).stride() == x[window].stride() or not x[window].numel()


def test_dlpack_capsules_and_legacy_functions():
    x = torch.arange(3)
    assert pt.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).tolist() == [0, 1, 2]
    t = pt.arange(3)
    assert torch.utils.dlpack.from_dlpack(pt.utils.dlpack.to_dlpack(t)).tolist() == [0, 1, 2]


@pytest.mark.counts
def test_dlpack_lifetimes():
    t = pt.from_dlpack(torch.arange(1000.0))[10:]
    gc.collect()
    assert t[0].item() == 10
    before = pt.cpu.memory_stats()["live_blocks"]
    y = torch.from_dlpack(pt.arange(1000.0))
    gc.collect()
    assert y[999].item() == 999
    assert pt.cpu.memory_stats()["live_blocks"] == before + 1
    del y
    gc.collect()
    assert pt.cpu.memory_stats()["live_blocks"] == before


@pytest.mark.parametrize("make", [
    lambda T: T.ones(2, requires_grad=True), lambda T: T.ones(2, requires_grad=True) * 2,
])
def test_dlpack_refuses_history(make):
    for T in (pt, torch):
        with pytest.raises(BufferError):
            make(T).__dlpack__()


def test_device_tuples():
    assert tuple(map(int, torch.ones(1).__dlpack_device__())) == pt.ones(1).__dlpack_device__()


VALUES = [
    [np.float64(1)], np.float64(1), [np.float32(1), 2.0], [np.float64(1), 2.0], [np.int32(1), 2],
    [np.int32(1), np.int8(2)], [np.uint8(1), np.int8(1)], [np.float16(1)], [np.complex128(1)],
    [1j, np.float64(2)], [np.bool_(True), 1.0], [True, 2], [1, 2.0], [[]], [np.arange(2), [1.5, 2]],
    [np.ones(2, dtype="f4")], np.ones(2, dtype="f4"), [[1, 2], (3, 4.5)], range(3), 2**62, -1.5,
    [[True], [False]], [1e300], [np.float32(1e30), np.float64(1)],
]


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list:UserWarning")
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values(value):
    ours, theirs = pt.tensor(value), torch.tensor(value)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert ours.shape == theirs.shape
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(("value", "dtype"), [
    ([float("nan")], "int64"), ([1e300], "int32"), ([1e300], "float16"), ([-1], "uint8"),
    ([300], "uint8"), ([1j], "float32"), ([-128, 127], "int8"), ([2.9, -2.9], "int32"),
    ([float("nan")], "bool"), ([0.1], "bfloat16"), ([2**53 + 1], "float64"),
])
def test_values_with_a_dtype(value, dtype):
    try:
        theirs = torch.tensor(value, dtype=getattr(torch, dtype))
    except Exception as error:
        with pytest.raises(type(error)):
            pt.tensor(value, dtype=getattr(pt, dtype))
    else:
        assert pt.tensor(value, dtype=getattr(pt, dtype)).tolist() == theirs.tolist()


def copies(T):
    """What copying and pickling keep, as plain values."""
    x = T.arange(6.0).reshape(2, 3)
    x.note = [1]
    shallow = copy.copy(x)
    shallow[0, 0] = 50
    a, b = copy.deepcopy([x, x.t()[1:]])
    b[0, 0] = 70
    y = T.ones(2, requires_grad=True) * 2
    back = pickle.loads(pickle.dumps(y))
    z = T.ones(2, requires_grad=True)
    (z * 3).sum().backward()
    w = copy.deepcopy(z)
    p = T.nn.Parameter(T.ones(2))
    p.sum().backward()
    q = copy.deepcopy(p)
    return [x.tolist(), x._version, shallow.note is x.note, a.tolist(),
            list(a.stride()), list(b.stride()), a.note == x.note, a.note is x.note,
            back.is_leaf, back.requires_grad, w.grad.tolist(), w.requires_grad,
            q.grad is None, type(q).__name__, copy.copy(y).is_leaf, copy.copy(y).requires_grad]


def test_copies():
    assert copies(pt) == copies(torch)


def test_deepcopy_of_history_is_refused():
    for T in (pt, torch):
        with pytest.raises(RuntimeError):
            copy.deepcopy(T.ones(2, requires_grad=True) * 2)
