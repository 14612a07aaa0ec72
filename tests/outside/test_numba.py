"""numba compiles functions that run on tensors' memory, and its ufuncs take tensors."""
import numpy as np
import pytest
from _same_program import DATA

import ptcore as pt

numba = pytest.importorskip("numba")
pytestmark = pytest.mark.core


@numba.njit
def scaled(a, out):
    total = 0.0
    for k in range(a.shape[0]):
        out[k] = a[k] * 2
        total += a[k]
    return total


@numba.vectorize
def added(a, b):
    return a + b


@numba.vectorize(["float64(float64, float64)", "float32(float32, float32)", "int64(int64, int64)"])
def multiplied(a, b):
    return a * b


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def summed(a, out):
    out[0] = 0
    for k in range(a.shape[0]):
        out[0] += a[k]


@pytest.mark.parametrize("view", [lambda t: t.numpy(), np.asarray])
def test_compiled_loops_write_to_tensors(view):
    out = pt.zeros(3, dtype=pt.float64)
    assert scaled(view(pt.tensor(DATA["x"])), view(out)) == 6.0
    assert out.tolist() == [2, 4, 6]


@pytest.mark.parametrize("name", ["x", "f4", "i"])
def test_ufuncs(name):
    x = pt.tensor(DATA[name])
    for ufunc in (added, multiplied):
        want, got = ufunc(DATA[name], DATA[name]), ufunc(x, x)
        assert type(got) is pt.Tensor
        assert np.dtype(got.dtype) == want.dtype
        assert got.tolist() == want.tolist()
        mixed = ufunc(DATA[name], x)
        assert type(mixed) is pt.Tensor
        assert mixed.tolist() == got.tolist()
        out = pt.zeros_like(got)
        ufunc(x, x, out=out)
        assert out.tolist() == got.tolist()
    assert added(x, 1.0).tolist() == added(DATA[name], 1.0).tolist()
    assert multiplied.outer(x, x).tolist() == multiplied.outer(DATA[name], DATA[name]).tolist()
    assert float(multiplied.reduce(x)) == 6.0
    assert multiplied.accumulate(x).tolist() == [1, 2, 6]


@numba.vectorize(["float64(float64)"])
def exp(a):
    return a + 1


def test_ufuncs_go_by_no_name():
    assert exp(pt.tensor(DATA["x"])).tolist() == [2, 3, 4]
    out = pt.zeros(3, dtype=pt.float64)
    exp(pt.tensor(DATA["x"]), out=out)
    assert out.tolist() == [2, 3, 4]


def test_generalized_ufunc():
    got = summed(pt.tensor(DATA["m"]))
    assert type(got) is pt.Tensor
    assert got.tolist() == [3, 7, 11]


def test_requires_grad():
    x = pt.tensor(DATA["x"], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"tensor.detach\(\).numpy\(\)"):
        multiplied(x, x)
