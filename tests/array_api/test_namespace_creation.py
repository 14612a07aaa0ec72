"""Arrays from nothing, numbers, sequences, buffers and other libraries."""
import array
import ctypes

import numpy as np
import pytest
from _array_api_standard import DTYPES

import ptcore as pt
from ptcore import array_api as xp

pytestmark = pytest.mark.core


@pytest.fixture(autouse=True)
def float64():
    """NumPy's default dtype."""
    pt.set_default_dtype(pt.float64)
    yield
    pt.set_default_dtype(pt.float32)


def same(got, want):
    assert type(got) is pt.Tensor
    assert got.dtype.name == want.dtype.name
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("arguments", [(0,), (5,), (5.0,), (1, 5), (5, 1), (5, 1, -1), (1, 5, -1), (0, 1, 0.25), (3, 3),
                                       (-2,), (0.5, 2), (10, 0, -3), (0, 0, 5)])
def test_arange(arguments):
    same(xp.arange(*arguments), np.arange(*arguments))
    for dtype in ("int8", "uint16", "float32"):
        if dtype != "float32" and 0.25 in arguments:        # NumPy stands still there
            with pytest.raises(ValueError, match="arange: step must not be 0 as a number"):
                xp.arange(*arguments, dtype=getattr(xp, dtype))
        elif min(arguments) >= 0 or dtype != "uint16":
            same(xp.arange(*arguments, dtype=getattr(xp, dtype)), np.arange(*arguments).astype(dtype)
                 if all(isinstance(a, int) for a in arguments) else np.arange(*arguments, dtype=dtype))
    if len(arguments) == 3:
        start, stop, step = arguments
        same(xp.arange(start, stop=stop, step=step, device="cpu"), np.arange(start, stop, step))


@pytest.mark.parametrize("start, stop, num", [(0, 1, 5), (1, 0, 3), (0, 1, 1), (0, 1, 0), (2.5, 2.5, 4), (-1, 1j, 3),
                                              (0, 10, 7)])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(start, stop, num, endpoint):
    want = np.linspace(start, stop, num, endpoint=endpoint)
    got = xp.linspace(start, stop, num=num, endpoint=endpoint)
    assert got.dtype.name == want.dtype.name
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15, atol=1e-16)
    if want.dtype.kind == "f":
        assert xp.linspace(start, stop, num, dtype=xp.float32, endpoint=endpoint).dtype is xp.float32
        assert xp.linspace(start, stop, num, dtype=xp.complex64).dtype is xp.complex64
        same(xp.linspace(start, stop, num, dtype=xp.int64), np.linspace(start, stop, num).astype(np.int64))


@pytest.mark.parametrize("name", DTYPES)
def test_filled(name):
    dtype = getattr(xp, name)
    for shape in ((), 3, (2,), (0, 4), (2, 3)):
        same(xp.zeros(shape, dtype=dtype), np.zeros(shape, name))
        same(xp.ones(shape=shape, dtype=dtype, device="cpu"), np.ones(shape, name))
        same(xp.full(shape, 1, dtype=dtype), np.full(shape, 1, name))
        assert xp.empty(shape, dtype=dtype).dtype is dtype
    x = xp.ones((2, 3), dtype=dtype)
    same(xp.zeros_like(x), np.zeros((2, 3), name))
    same(xp.ones_like(x.T), np.ones((3, 2), name))
    same(xp.full_like(x, fill_value=1), np.ones((2, 3), name))
    assert xp.empty_like(x, dtype=xp.int8).dtype is xp.int8
    for n, m, k in ((3, None, 0), (2, 4, 1), (4, 2, -3), (3, 3, 7), (0, 2, 0), (2, 2, -2)):
        same(xp.eye(n, m, k=k, dtype=dtype), np.eye(n, m, k, name))


def test_values_decide_the_dtype():
    for value, dtype in ((True, xp.bool), (1, xp.int64), (1.5, xp.float64), (2j, xp.complex128)):
        assert xp.full(2, value).dtype is xp.asarray(value).dtype is xp.asarray([value]).dtype is dtype
    assert xp.full(2, xp.asarray(3, dtype=xp.int8)).tolist() == [3, 3]
    assert xp.full(2, xp.asarray(3, dtype=xp.int8)).dtype is xp.int8
    assert xp.asarray([[1, 2.0], [True, 3]]).dtype is xp.float64
    assert xp.asarray(np.float32(1)).dtype is xp.float32
    assert xp.asarray([]).shape == (0,)
    assert xp.asarray([xp.asarray(1.5), 2]).tolist() == [1.5, 2.0]
    assert xp.asarray((range(3), [3, 4, 5])).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("name", DTYPES)
def test_asarray_shares_and_copies(name):
    a = np.ones((2, 3), name)
    for view in (a, a.T, a[::-1], a[:, ::2], a[:0]):
        x = xp.asarray(view)
        same(x, view)
        same(xp.asarray(view, copy=True), view)
        if view.size:
            assert np.shares_memory(np.asarray(x), a)
            assert not np.shares_memory(np.asarray(xp.asarray(view, copy=True)), a)
            assert np.shares_memory(np.asarray(xp.asarray(view, copy=False)), a)
    x = xp.asarray(a)
    assert xp.asarray(x) is x
    assert xp.asarray(x, dtype=x.dtype) is x
    assert xp.asarray(x, copy=False) is x
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    other = xp.int8 if name != "int8" else xp.int16
    assert xp.asarray(x, dtype=other).dtype is other
    with pytest.raises(ValueError, match="a copy is needed"):
        xp.asarray(x, dtype=other, copy=False)
    t = pt.ones(2)
    alias = xp.asarray(t)
    assert alias is not t
    assert alias.data_ptr() == t.data_ptr()
    alias[0] = 5
    assert t.tolist() == [5, 1]
    with pytest.raises(ValueError, match="a copy is needed"):
        xp.asarray(1, copy=False)


def test_gradients_pass_through_asarray():
    t = pt.ones(3, requires_grad=True)
    xp.sum(xp.asarray(t) ** 2).backward()
    assert t.grad.tolist() == [2, 2, 2]


def test_buffers():
    assert xp.asarray(array.array("d", [1.0, 2.0])).tolist() == [1, 2]
    assert xp.asarray(memoryview(np.arange(3))).dtype is xp.int64
    assert xp.asarray((ctypes.c_int * 2)(3, 4)).tolist() == [3, 4]
    frozen = np.arange(3)
    frozen.setflags(write=False)
    assert xp.asarray(frozen).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack(name):
    a = np.ones((2, 3), name)
    x = xp.from_dlpack(a)
    same(x, a)
    assert np.shares_memory(np.asarray(x), a)
    y = xp.from_dlpack(x, device="cpu", copy=True)
    assert y.data_ptr() != x.data_ptr()
    assert xp.from_dlpack(pt.ones(1), copy=False).tolist() == [1]
    np.testing.assert_array_equal(np.from_dlpack(x), a)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises((TypeError, AttributeError)):
        xp.from_dlpack(1)


def test_python_values_of_arrays():
    for value, function in ((1.5, float), (3, int), (2j, complex), (True, bool), (4, float), (0, bool)):
        assert function(xp.asarray(value)) == function(value)
    assert [10, 20, 30][xp.asarray(1)] == 20
    assert complex(xp.asarray(2)) == 2
    with pytest.raises(TypeError):
        [1, 2][xp.asarray(1.0)]
    for function in (float, int, bool, complex):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            function(xp.ones(2))


def test_indices():
    a = np.arange(24).reshape(2, 3, 4)
    x = xp.asarray(a)
    for key in ((), 0, -1, (0, 1), slice(None, None, -1), (slice(2, 0, -1), ...), (..., None, 1), (None, 0), a > 7,
                (0, slice(None), slice(3, None, -2)), ..., a[0] > 3):
        index = xp.asarray(key) if isinstance(key, np.ndarray) and key.shape == a.shape else key
        if isinstance(key, np.ndarray) and key.shape != a.shape:
            index, key = (0, xp.asarray(key)), (0, key)
        same(x[index], a[key])
    rows, columns = np.asarray([[0], [1]]), np.asarray([[0, 2]])
    same(x[xp.asarray(rows), xp.asarray(columns), 1], a[rows, columns, 1])
    same(x[xp.asarray(rows), xp.asarray(columns), :], a[rows, columns, :])
    for key, value in ((0, 5), ((slice(None), slice(None, None, -1)), 7), (a > 10, 0), ((0, ..., 1), 3)):
        a[key] = value
        x[xp.asarray(key) if isinstance(key, np.ndarray) else key] = value
        same(x, a)
    with pytest.raises(IndexError):
        x[5]
    with pytest.raises(IndexError):
        x[0, 0, 0, 0]
