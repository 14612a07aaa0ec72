"""Tensors from NumPy, buffers and Python objects, and back: sharing, lifetimes, refusals."""

import array
import ctypes
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core

NAMES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
         "float16", "float32", "float64", "complex64", "complex128"]


def live():
    gc.collect()
    return pt.cpu.memory_stats()["live_blocks"]


# -- NumPy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_numpy_shares_both_ways(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    t = pt.from_numpy(a)
    assert t.dtype is getattr(pt, name)
    assert t.tolist() == a.tolist()
    t[1, 2] = 0
    assert a[1, 2] == 0
    b = t.numpy()
    assert b.dtype == a.dtype
    b[0, 0] = 1
    assert a[0, 0] == 1
    assert t[0, 0].item() == 1


def test_numpy_bfloat16():
    a = np.array([1.5, -2], dtype=ml_dtypes.bfloat16)
    t = pt.from_numpy(a)
    assert t.dtype is pt.bfloat16
    assert t.tolist() == [1.5, -2]
    back = t.numpy()
    assert back.dtype == ml_dtypes.bfloat16
    back[0] = 4
    assert a[0] == 4


@pytest.mark.parametrize("window", [
    np.s_[::-1], np.s_[:, ::-2], np.s_[1:3, ::2], np.s_[::-1, ::-1], np.s_[1], np.s_[1, 2],
    np.s_[:0], np.s_[None, ..., None], np.s_[3:1:-1],
])
def test_numpy_strides(window):
    a = np.arange(20.0).reshape(4, 5)[window]
    t = pt.from_numpy(np.asarray(a))
    assert t.shape == a.shape
    np.testing.assert_array_equal(t.numpy(), a)
    if a.size > 1:
        assert [s * 8 for n, s in zip(t.shape, t.stride()) if n > 1] == [
            s for n, s in zip(a.shape, a.strides) if n > 1]
    np.testing.assert_array_equal((t + 1).numpy(), a + 1)


def test_numpy_of_views():
    t = pt.arange(24.0).reshape(2, 3, 4)
    for v in (t.permute(2, 0, 1), t[:, 1], t[..., ::2], t[0, 0, 0], t[:, :0], t.flip(0)):
        a = v.numpy()
        np.testing.assert_array_equal(a, np.array(v.tolist()).reshape(v.shape))
    e = pt.ones(3, 1).expand(3, 4)
    assert e.numpy().strides == (4, 0)


def test_numpy_where_nothing_is_recorded():
    """As in the ``forward`` of a custom Function, which may compute with NumPy."""
    x = pt.arange(3.).requires_grad_()
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with pt.no_grad():
        a, b = x.numpy(), np.asarray(x * 2)
        a[0] = 7
    assert x.tolist() == [7, 1, 2] and b.tolist() == [0, 2, 4] and x.requires_grad

    class Sine(pt.autograd.Function):
        @staticmethod
        def forward(x):
            return pt.from_numpy(np.sin(x.numpy()))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()
    assert pt.allclose(pt.func.grad(lambda x: Sine.apply(x).sum())(x.detach()), x.detach().cos())
    Sine.apply(x).sum().backward()
    assert pt.allclose(x.grad, x.detach().cos())


def test_numpy_read_only():
    a = np.zeros(3)
    a.flags.writeable = False
    t = pt.from_numpy(a)
    for write in (lambda: t.add_(1), lambda: t.__setitem__(0, 1), lambda: t[1:].zero_(),
                  lambda: pt.add(t, 1, out=t), lambda: t.uniform_()):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert not t.numpy().flags.writeable
    assert not t[1:].numpy().flags.writeable
    assert memoryview(t).readonly
    assert t.clone().numpy().flags.writeable
    assert a.tolist() == [0, 0, 0]


def test_numpy_broadcast_arrays_are_read_only():
    t = pt.from_numpy(np.broadcast_to(np.arange(3.0), (4, 3)))
    assert t.stride() == (0, 1)
    assert t.sum().item() == 12
    with pytest.raises(RuntimeError, match="read-only"):
        t.add_(1)


def test_numpy_strides_between_items_are_refused():
    a = np.zeros(3, dtype=[("i", "i1"), ("x", "f8")])["x"]
    assert a.strides == (9,)
    with pytest.raises(ValueError, match="multiples of the item size 8"):
        pt.from_numpy(a)


def test_numpy_byte_order():
    a = np.arange(3, dtype=">i4")
    with pytest.raises(ValueError, match="native byte order"):
        pt.from_numpy(a)
    assert pt.tensor(a).tolist() == [0, 1, 2]


@pytest.mark.parametrize("a", [
    np.array(["a"]), np.array([None]), np.array(["2020-01-01"], dtype="M8[D]"),
    np.zeros(2, dtype=[("a", "i4")]), np.zeros(2, dtype=np.longdouble), np.array([b"a"]),
], ids=lambda a: str(a.dtype))
def test_numpy_dtypes_without_counterpart(a):
    with pytest.raises(TypeError):
        pt.from_numpy(a)
    with pytest.raises(TypeError):
        pt.tensor(a)


@pytest.mark.parametrize("value", [3, [1, 2], None, "a", np.float64(1), pt.zeros(1)])
def test_from_numpy_takes_arrays_only(value):
    if isinstance(value, np.generic):
        return
    with pytest.raises(TypeError, match="ndarray"):
        pt.from_numpy(value)


def test_numpy_refusals():
    x = pt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(x)
    assert x.numpy(force=True).tolist() == [1, 1]
    with pytest.raises(TypeError, match="meta"):
        pt.ones(2, device="meta").numpy()


def test_tensor_keeps_the_array_alive():
    a = np.arange(1000.0)
    r = weakref.ref(a)
    v = pt.from_numpy(a)[10:12]
    del a
    gc.collect()
    assert r() is not None
    assert v.tolist() == [10, 11]
    del v
    gc.collect()
    assert r() is None


@pytest.mark.counts
def test_array_keeps_the_storage_alive():
    before = live()
    t = pt.arange(1000.0)
    a = t[10:].numpy()
    del t
    assert live() == before + 1
    assert a[0] == 10
    b = a[1:]
    del a
    assert b[0] == 11
    del b
    assert live() == before


def test_array_stays_when_the_tensor_gets_other_memory():
    t = pt.arange(3.0)
    a = t.numpy()
    t.data = pt.zeros(3)
    t.add_(5)
    assert a.tolist() == [0, 1, 2]
    a[:] = 9
    assert t.tolist() == [5, 5, 5]


@pytest.mark.counts
def test_there_and_back_many_times():
    before = live()
    a = np.zeros(3)
    for _ in range(100):
        a = pt.from_numpy(a).numpy()
    a[0] = 7
    assert live() > before
    del a
    assert live() == before


# -- NumPy's functions on tensors ---------------------------------------------------------------


def test_array_protocol():
    t = pt.arange(3.0)
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert not np.shares_memory(np.array(t), t.numpy())
    wide = np.asarray(t, dtype=np.float64)
    assert wide.dtype == np.float64
    assert np.asarray(t, copy=False).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(t, dtype=np.float64, copy=False)
    assert np.float64(pt.tensor(2.5)) == 2.5
    np.testing.assert_array_equal(np.concatenate([t, t]), [0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(("ufunc", "values"), [
    (np.add, (1, 2)), (np.subtract, (3, 1)), (np.multiply, (2, 3)), (np.true_divide, (1, 4)),
    (np.power, (2, 3)), (np.maximum, (1, 5)), (np.arctan2, (1, 2)), (np.less, (1, 2)),
    (np.exp, (1,)), (np.negative, (1,)), (np.absolute, (-1,)), (np.isfinite, (1,)),
    (np.heaviside, (0, 2)), (np.cbrt, (8,)), (np.hypot, (3, 4)), (np.logaddexp, (1, 2)),
])
def test_ufuncs(ufunc, values):
    arrays = [np.full(3, v, dtype=np.float64) for v in values]
    want = ufunc(*arrays)
    tensors = [pt.from_numpy(a) for a in arrays]
    for args in (tensors, [*arrays[:-1], tensors[-1]], [tensors[0], *arrays[1:]]):
        got = ufunc(*args)
        assert isinstance(got, pt.Tensor)
        assert got.numpy().dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


def test_ufunc_records():
    x = pt.ones(3, dtype=pt.float64, requires_grad=True)
    np.multiply(x, np.arange(3.0)).sum().backward()
    assert x.grad.tolist() == [0, 1, 2]


def test_ufunc_out_counts_the_write():
    t, a = pt.zeros(3), np.ones(3, dtype=np.float32)
    assert np.add(a, 1, out=t) is t
    assert t.tolist() == [2, 2, 2]
    assert t._version == 1
    np.add(a, pt.ones(3), out=a)
    assert a.tolist() == [2, 2, 2]


def test_ufunc_methods():
    t = pt.arange(4.0)
    assert np.add.reduce(t).item() == 6
    assert np.multiply.outer(t, t).shape == (4, 4)
    assert np.add.accumulate(t).tolist() == [0, 1, 3, 6]
    assert [x.tolist() for x in np.divmod(t, 2)] == [[0, 0, 1, 1], [0, 1, 0, 1]]


def test_array_with_a_tensor_operand():
    a, t = np.arange(3.0), pt.ones(3, dtype=pt.float64)
    for got in (a + t, t + a, a * t, a - t, a / t):
        assert isinstance(got, pt.Tensor)
        assert got.dtype is pt.float64
    a += t
    assert isinstance(a, np.ndarray)
    assert a.tolist() == [1, 2, 3]


@pytest.mark.parametrize("f", [np.mean, np.sum, np.ravel, np.transpose, np.cumsum])
def test_numpy_functions(f):
    t = pt.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(np.asarray(f(t)), f(t.numpy()))


# -- buffers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_memoryview(name):
    t = pt.tensor([[1, 0], [1, 1]]).to(getattr(pt, name))
    m = memoryview(t)
    assert m.shape == (2, 2)
    assert m.itemsize == t.itemsize
    assert m.strides == (2 * t.itemsize, t.itemsize)
    assert not m.readonly
    assert m.nbytes == t.nbytes
    np.testing.assert_array_equal(np.asarray(m), t.numpy())
    assert bytes(m) == t.numpy().tobytes()


def test_memoryview_of_strided():
    t = pt.arange(12.0).reshape(3, 4).t()[::2]
    m = memoryview(t)
    assert m.strides == (8, 16)
    assert np.asarray(m).tolist() == t.tolist()
    assert np.frombuffer(m.tobytes(), dtype="f4").tolist() == t.reshape(-1).tolist()
    with pytest.raises(BufferError, match="contiguous"):
        np.frombuffer(t, dtype="f4")            # asks for contiguous memory


def test_buffer_refusals():
    for t in (pt.ones(2, requires_grad=True), pt.ones(2, device="meta"),
              pt.ones(2, dtype=pt.bfloat16)):
        with pytest.raises(BufferError):
            memoryview(t)


@pytest.mark.counts
def test_a_buffer_outlives_its_tensor():
    before = live()
    m = memoryview(pt.arange(100.0))
    assert m[99] == 99
    assert live() == before + 1
    m.release()
    assert live() == before


@pytest.mark.parametrize(("source", "values"), [
    (array.array("d", [1, 2]), [1, 2]), (array.array("h", [-1, 2]), [-1, 2]),
    (bytearray(b"\x01\x02"), [1, 2]), (memoryview(b"abcd")[::2], [97, 99]),
    ((ctypes.c_float * 2)(1.5, 2), [1.5, 2]),
    (memoryview(array.array("i", range(6))).cast("B").cast("i", (2, 3)), [[0, 1, 2], [3, 4, 5]]),
])
def test_buffers_become_tensors(source, values):
    t = pt.as_tensor(source)
    assert t.tolist() == values
    t = pt.tensor(source)
    t.zero_()
    assert pt.as_tensor(source).tolist() == values


def test_frombuffer():
    b = bytearray(np.arange(4, dtype="i4").tobytes())
    t = pt.frombuffer(b, dtype=pt.int32)
    assert t.tolist() == [0, 1, 2, 3]
    assert pt.frombuffer(b, dtype=pt.int32, count=2, offset=4).tolist() == [1, 2]
    t[0] = 5
    assert b[0] == 5
    with pytest.raises(BufferError):
        b.append(0)                 # the memory is in use
    del t
    gc.collect()
    b.append(0)


@pytest.mark.parametrize("arguments", [
    {"offset": -1}, {"offset": 16}, {"count": 5}, {"offset": 3}, {"count": 4, "offset": 4},
    {"count": 2**62}, {"count": 0, "offset": 99},
])
def test_frombuffer_refusals(arguments):
    with pytest.raises(ValueError, match="frombuffer"):
        pt.frombuffer(bytearray(16), dtype=pt.int32, **arguments)


@pytest.mark.parametrize("arguments", [{"count": 1.5}, {"offset": 1.5}, {"count": "1"}, {"count": None}])
def test_frombuffer_cuts_no_numbers(arguments):
    with pytest.raises(TypeError, match=r"frombuffer: (count|offset) must be int"):
        pt.frombuffer(bytearray(16), dtype=pt.uint8, **arguments)


def test_frombuffer_counts_bytes_that_no_int64_holds():
    with pytest.raises(ValueError, match=f"need {2**64} bytes, got 16"):
        pt.frombuffer(bytearray(16), dtype=pt.int32, count=2**62)


def test_frombuffer_of_bytes_is_read_only():
    t = pt.frombuffer(b"abc", dtype=pt.uint8)
    with pytest.raises(RuntimeError, match="read-only"):
        t.zero_()


# -- Python objects -------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "dtype"), [
    ([], "float32"), ([1], "int64"), ([1.0], "float32"), ([True], "bool"), ([1j], "complex64"),
    ([1, 2.0], "float32"), ([True, 1], "int64"), ([1.0, 1j], "complex64"),
    ([np.float64(1)], "float64"), (np.float64(1), "float64"), ([np.float32(1), 2.0], "float32"),
    ([np.float64(1), 2.0], "float64"), ([np.int32(1), 2], "int64"), ([np.float16(1)], "float16"),
    ([np.int32(1), np.int8(2)], "int32"), ([np.uint8(1), np.int8(1)], "int16"),
    ([np.complex128(1)], "complex128"), ([1j, np.float64(2)], "complex128"),
    ([np.bool_(True)], "bool"), ([np.bool_(True), 1.0], "float32"),
    ([np.arange(2, dtype="f4")], "float32"), ([np.arange(2), [1.5, 2]], "float32"),
    ([np.arange(2), np.ones(2)], "float64"), ([ml_dtypes.bfloat16(1)], "bfloat16"),
])
def test_dtype_of_values(values, dtype):
    t = pt.tensor(values)
    assert t.dtype is getattr(pt, dtype)
    np.testing.assert_array_equal(t.to(pt.complex128).numpy(),
                                  np.array(values, dtype=np.complex128))


def test_dtype_of_tensors_in_a_list():
    one = pt.tensor(1.0, dtype=pt.float64)
    assert pt.tensor([one, 1]).dtype is pt.float64
    assert pt.tensor([one, one]).tolist() == [1, 1]
    rows = [pt.arange(2), pt.arange(2)]
    assert pt.tensor(rows).tolist() == [[0, 1], [0, 1]]
    assert pt.tensor(rows).dtype is pt.int64


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bool", "complex64", "bfloat16"])
def test_tensors_with_dims_in_a_list_weigh_as_their_dtype(dtype):
    dtype = getattr(pt, dtype)
    row = pt.tensor([1, 0], dtype=dtype)
    got = pt.tensor([[row, row], [row, row]])
    assert got.dtype is dtype
    assert got.shape == (2, 2, 2)
    assert got[1, 1].tolist() == row.tolist()
    assert pt.tensor([pt.tensor([1], dtype=pt.int32), pt.tensor([2.0])]).dtype is pt.float32
    assert pt.tensor([pt.zeros(0, 3, dtype=dtype)]).shape == (1, 0, 3)
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 1\)"):
        pt.tensor([row, row[:1]])


def test_default_dtype_holds_for_python_floats():
    pt.set_default_dtype(pt.float64)
    assert pt.tensor([1.0]).dtype is pt.float64
    assert pt.tensor([np.float32(1)]).dtype is pt.float32
    assert pt.tensor([1j]).dtype is pt.complex128


@pytest.mark.parametrize("kind", [int, float])
def test_a_complex_number_without_imaginary_part_is_a_real_one(kind):
    assert kind(pt.tensor([2.5 + 0j])) == kind(2.5)
    with pytest.raises(RuntimeError, match=f"{kind.__name__}: a complex number"):
        kind(pt.tensor(1 + 1j))


def self_containing():
    a = []
    a.append(a)
    return a


class Lies:
    """A sequence of a wrong length."""

    def __init__(self, said, true):
        self.said, self.true = said, true

    def __len__(self):
        return self.said

    def __getitem__(self, i):
        if i >= self.true:
            raise IndexError
        return 1.0


class Fails(Lies):
    def __getitem__(self, i):
        raise KeyError("no")


@pytest.mark.parametrize(("data", "error"), [
    (self_containing(), ValueError), ([[1], [1, 2]], ValueError), ([1, [2]], (TypeError, ValueError)),
    ([[1], 2], ValueError), ("abc", TypeError), (["a"], TypeError), ([None], TypeError),
    ({}, TypeError), ([{}], TypeError), ([object()], TypeError), ({1, 2}, TypeError),
    (Lies(3, 2), ValueError), (Lies(1, 3), ValueError), (Fails(2, 2), KeyError),
    ([np.datetime64("2020")], TypeError), (b"ab", TypeError), (len, TypeError),
    ([2**70], (RuntimeError, ValueError)), ([-(2**63) - 1], (RuntimeError, ValueError)),
], ids=lambda v: type(v).__name__)
def test_data_that_is_no_tensor(data, error):
    with pytest.raises(error):
        pt.tensor(data)


@pytest.mark.parametrize(("value", "dtype"), [
    (float("nan"), "int64"), (float("inf"), "int32"), (1e300, "int32"), (300, "uint8"),
    (-129, "int8"), (2**64, "uint64"), (float("-inf"), "uint16"), (255.5, "uint8"), (-0.5, "uint8"), (-256, "uint8"),
    (np.float32(-1), "uint16"), (-128.5, "int8"),
])
def test_values_that_do_not_fit(value, dtype):
    with pytest.raises(RuntimeError, match="without overflow"):
        pt.tensor([value], dtype=getattr(pt, dtype))


def test_values_that_fit():
    assert pt.tensor([-1], dtype=pt.uint8).tolist() == [255]        # as in PyTorch
    assert pt.tensor([-255, 255.0, 0.5], dtype=pt.uint8).tolist() == [1, 255, 0]
    assert pt.tensor([np.int64(-1), np.float16(3.5)], dtype=pt.uint8).tolist() == [255, 3]
    assert pt.tensor([2**63], dtype=pt.uint64).tolist() == [2**63]
    assert pt.tensor([1e300], dtype=pt.float16).tolist() == [float("inf")]
    assert pt.tensor([2.9, -2.9], dtype=pt.int8).tolist() == [2, -2]
    assert pt.tensor([0.0, float("nan")], dtype=pt.bool).tolist() == [False, True]
    with pytest.raises(TypeError):
        pt.tensor([1j], dtype=pt.float32)


def test_deep_nesting():
    deep = 1.0
    for _ in range(64):
        deep = [deep]
    assert pt.tensor(deep).ndim == 64
    with pytest.raises(ValueError, match="64"):
        pt.tensor([deep])
    with pytest.raises(ValueError, match="64"):
        pt.tensor([pt.tensor(deep).expand(*[1] * 63, 2)])


def test_huge_sizes():
    for sizes in ((2**62,), (2**40, 2**40), (2**31, 2**31, 2**31)):
        with pytest.raises((RuntimeError, MemoryError)):
            pt.empty(*sizes)
    assert pt.empty(0, 2**40).numel() == 0
    t = pt.zeros(4)
    for size, stride, first in (((3,), (2**62,), 0), ((3,), (-(2**62),), 3), ((2,), (1,), 2**62),
                                ((2**62,), (1,), 0), ((2**31, 2**31), (2**32, 2), 0),
                                ((0,), (1,), -1), ((2**40, 3), (2**40, 2**40), 0)):
        with pytest.raises((RuntimeError, ValueError)):
            t.as_strided(size, stride, first)
        with pytest.raises((RuntimeError, MemoryError)):
            pt.zeros(4).set_(pt.zeros(4).untyped_storage(), first, size, stride)
        if first == 0 and min(stride) > 0:
            with pytest.raises((RuntimeError, MemoryError)):
                pt.empty_strided(size, stride)
    # Beside a zero sizes may be any; what their strides come to is nobody's concern, but is defined.
    x = pt.empty((2, 2**62, 3, 0))
    assert x.shape == (2, 2**62, 3, 0)
    for y in x, x + 1, x.permute(3, 2, 1, 0).contiguous(), x.reshape(0, 5), x.clone(), x.narrow(1, 0, 7):
        assert y.numel() == 0
    for n in (2**50, 2**62):
        with pytest.raises((RuntimeError, MemoryError)):
            pt.zeros(4).resize_(n)
        with pytest.raises((RuntimeError, MemoryError)):
            pt.zeros(4).untyped_storage().resize_(n)


def test_items():
    for name in NAMES:
        t = pt.tensor([1, 0]).to(getattr(pt, name))
        a = np.array([1, 0]).astype(name)
        assert t.tolist() == a.tolist()
        assert type(t[0].item()) is type(a[0].item())
    assert int(pt.tensor(3.7)) == 3
    assert float(pt.tensor([2])) == 2
    assert complex(pt.tensor(1j)) == 1j
    assert [1, 2, 3][pt.tensor(1)] == 2
    for bad in (lambda: pt.ones(2).item(), lambda: [1, 2][pt.tensor(1.0)],
                lambda: float(pt.ones(2)), lambda: bool(pt.ones(2)), lambda: int(pt.zeros(0)),
                lambda: float(pt.tensor(1j)), lambda: pt.ones(1, device="meta").item()):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            bad()


def test_asarray_copies():
    a = np.zeros(3)
    assert pt.asarray(a).data_ptr() == a.ctypes.data
    assert pt.asarray(a, copy=True).data_ptr() != a.ctypes.data
    with pytest.raises(ValueError, match="copy"):
        pt.asarray(a, dtype=pt.float32, copy=False)
    with pytest.raises(ValueError, match="copy"):
        pt.asarray([1, 2], copy=False)
    for order in "<>":
        turned = np.arange(3.0).astype(order + "f8")
        if turned.dtype.isnative:
            assert pt.asarray(turned, copy=False).data_ptr() == turned.ctypes.data
        else:
            with pytest.raises(ValueError, match="copy"):
                pt.asarray(turned, copy=False)
    assert pt.asarray(np.zeros((0, 2)), copy=False).shape == (0, 2)
    t = pt.ones(2)
    assert pt.asarray(t) is t
    assert pt.asarray(t, requires_grad=True).requires_grad
    assert not t.requires_grad


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax"])
def test_numpy_reductions_of_tensors(name):
    """NumPy's functions call the method of the same name with out= and dtype=, NumPy's defaults."""
    values = np.random.default_rng(0).standard_normal((3, 4))
    x, f = pt.tensor(values), getattr(np, name)
    np.testing.assert_allclose(np.asarray(f(x)), f(values), rtol=1e-12)
    np.testing.assert_allclose(f(x, axis=1).numpy(), f(values, axis=1), rtol=1e-12)
    out = f(x, axis=1)
    out.zero_()
    assert f(x, axis=1, out=out) is out
    np.testing.assert_allclose(out.numpy(), f(values, axis=1), rtol=1e-12)
    if name in ("std", "var"):
        np.testing.assert_allclose(f(x, axis=0, ddof=1).numpy(), f(values, axis=0, ddof=1), rtol=1e-12)
        assert f(x.float(), dtype=np.float64).dtype == pt.float64
        with pytest.raises(TypeError, match=f"{name}: correction and ddof"):
            getattr(pt, name)(x, correction=1, ddof=0)


@pytest.mark.parametrize("name", ["int64", "uint64", "int32", "uint8", "float32", "bool"])
def test_numpy_s_own_types(name):
    """int64 is NumPy's type of that name, not another one of its size."""
    array = pt.ones(3).to(getattr(pt, name)).numpy()
    assert array.dtype.num == np.dtype(name).num
    assert isinstance(array[0], getattr(np, name if name != "bool" else "bool_"))
    assert memoryview(pt.ones(3).to(getattr(pt, name))).format == memoryview(array).format


def test_tensors_of_one_element_count_as_numbers():
    """As in PyTorch: ``tensor([loss, other])`` is a vector, whatever shape the losses have."""
    t = pt.tensor
    for data, expected in (([t([1]), t([2])], [1, 2]), ([t([[1]]), 2], [1, 2]),
                           ([[t([1.5]), t(2)], [3, 4]], [[1.5, 2], [3, 4]]), ((t([True]),), [True]),
                           ([t([1 + 1j])], [1 + 1j])):
        assert t(data).tolist() == expected
    assert t([t([1], dtype=pt.int8), 2]).dtype == pt.int64
    assert t([t([1.0], dtype=pt.float64), 2]).dtype == pt.float64
    assert t([t([1, 2]), t([3, 4])]).tolist() == [[1, 2], [3, 4]] and t([np.array([1]), np.array([2])]).shape == (2, 1)
    for data in ([t([1]), t([2, 3])], [1, t([2, 3])], [t([2, 3]), t([1])], [t(1), t([])]):
        with pytest.raises(ValueError, match=r"^tensor: (data must be nested evenly; expected a number, got a Tensor of shape"
                                             r"|expected sequence of length 2 at dim 1 \(got 1\))"):
            t(data)
