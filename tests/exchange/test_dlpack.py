"""DLPack both ways, with NumPy and with hand-made capsules as partners."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils.dlpack import from_dlpack, to_dlpack

pytestmark = pytest.mark.core

NAMES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
         "float16", "float32", "float64", "complex64", "complex128"]


def live():
    gc.collect()
    return pt.cpu.memory_stats()["live_blocks"]


@pytest.mark.parametrize("name", NAMES)
def test_numpy_both_ways(name):
    t = pt.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(pt, name))
    a = np.from_dlpack(t)
    assert a.dtype == np.dtype(name)
    assert a.tolist() == t.tolist()
    a[0, 0] = 0
    assert not t[0, 0].item()
    back = pt.from_dlpack(a)
    assert back.dtype is t.dtype
    back[1, 1] = 0
    assert not t[1, 1].item()


@pytest.mark.parametrize("window", [
    np.s_[::-1], np.s_[:, ::-2], np.s_[1:3, ::2], np.s_[1], np.s_[1, 2], np.s_[:0], np.s_[None],
])
def test_strides(window):
    a = np.arange(20.0).reshape(4, 5)
    t = pt.arange(20.0, dtype=pt.float64).reshape(4, 5)
    np.testing.assert_array_equal(np.from_dlpack(t[window]), a[window])
    np.testing.assert_array_equal(pt.from_dlpack(np.asarray(a[window])).numpy(), a[window])
    np.testing.assert_array_equal(pt.from_dlpack(a.T).numpy(), a.T)


def test_bfloat16_keeps_its_dtype():
    t = pt.tensor([1.5, 2], dtype=pt.bfloat16)
    back = from_dlpack(t)
    assert back.dtype is pt.bfloat16
    assert back.tolist() == [1.5, 2]


def test_read_only():
    a = np.zeros(3)
    a.flags.writeable = False
    t = pt.from_dlpack(a)
    with pytest.raises(RuntimeError, match="read-only"):
        t.add_(1)
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()                      # an old consumer cannot be told
    copied = t.__dlpack__(copy=True)
    from_dlpack(copied).add_(1)
    assert a.tolist() == [0, 0, 0]


def test_copy():
    t = pt.arange(3.0)
    assert not np.shares_memory(np.from_dlpack(t, copy=True), t.numpy())
    assert np.shares_memory(np.from_dlpack(t, copy=False), t.numpy())
    a = np.arange(3.0)
    assert not np.shares_memory(pt.from_dlpack(a, copy=True).numpy(), a)
    assert np.shares_memory(pt.from_dlpack(a, copy=False).numpy(), a)


@pytest.mark.counts
def test_lifetime_of_an_export():
    before = live()
    t = pt.arange(100.0)
    a = np.from_dlpack(t[10:])
    del t
    assert live() == before + 1
    assert a[0] == 10
    del a
    assert live() == before


def test_lifetime_of_an_import():
    a = np.arange(100.0)
    r = weakref.ref(a)
    t = pt.from_dlpack(a)[5:]
    del a
    gc.collect()
    assert t[0].item() == 5
    assert r() is not None
    del t
    gc.collect()
    assert r() is None


@pytest.mark.counts
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 9), (2, 0)])
def test_capsules(version):
    before = live()
    t = pt.arange(3.0)
    capsule = t.__dlpack__(max_version=version)
    versioned = version is not None and version >= (1, 0)
    assert ("versioned" in repr(capsule)) == versioned
    x = from_dlpack(capsule)
    assert x.tolist() == [0, 1, 2]
    assert "used_dltensor" in repr(capsule)
    with pytest.raises(ValueError, match="used"):
        from_dlpack(capsule)
    del capsule, t, x
    assert live() == before


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_nobody_takes_lets_go(version):
    before = live()
    capsule = pt.arange(3.0).__dlpack__(max_version=version)
    assert live() == before + 1
    del capsule
    assert live() == before


def test_exported_memory_does_not_move():
    t = pt.zeros(3)
    a = np.from_dlpack(t)
    with pytest.raises(BufferError, match="resize_"):
        t.resize_(1000)
    a[0] = 1
    assert t.tolist() == [1, 0, 0]


def test_an_export_keeps_the_storage_not_the_tensor():
    t = pt.zeros(3)
    a = np.from_dlpack(t)
    t.data = pt.ones(3)
    a[0] = 5
    assert t.tolist() == [1, 1, 1]


def test_refusals_of_exports():
    with pytest.raises(BufferError, match="detach"):
        pt.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="CPU"):
        pt.ones(2, device="meta").__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        pt.ones(2, device="meta").__dlpack_device__()
    t = pt.ones(2)
    assert t.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="dl_device"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(RuntimeError, match="stream"):
        t.__dlpack__(stream=1)
    t.__dlpack__(dl_device=(1, 0), copy=False, max_version=(1, 0))


@pytest.mark.parametrize("value", [3, None, "a", [1.0], object()])
def test_no_partner(value):
    with pytest.raises(TypeError, match="__dlpack__"):
        from_dlpack(value)


class Old:
    """A producer of DLPack before 1.0."""

    def __init__(self, t):
        self.t = t

    def __dlpack__(self, stream=None):
        return self.t.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def test_producers_before_1_0():
    t = pt.arange(3.0)
    x = pt.from_dlpack(Old(t))
    x[0] = 9
    assert t[0].item() == 9
    y = pt.from_dlpack(Old(t), copy=True)
    y[0] = 1
    assert t[0].item() == 9


def test_other_devices():
    class Elsewhere(Old):
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(BufferError, match=r"on the device \(2, 0\): .* is not available"):
        pt.from_dlpack(Elsewhere(pt.ones(1)))
    with pytest.raises(BufferError, match="CPU"):
        pt.from_dlpack(np.ones(1), device="meta")
    assert pt.from_dlpack(np.ones(1), device="cpu").item() == 1


def test_to_dlpack():
    assert from_dlpack(to_dlpack(pt.ones(2))).tolist() == [1, 1]


# -- capsules made by hand ----------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("t", DLTensor)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Handmade:
    """A versioned capsule over six float64 numbers, with fields to spoil."""

    def __init__(self, shape=(2, 3), strides=None, **fields):
        self.numbers = (ctypes.c_double * 6)(*range(6))
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.deleted = []
        self.deleter = Deleter(lambda p: self.deleted.append(1))
        self.m = m = Managed(major=1, minor=1, flags=0)
        m.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        m.t = DLTensor(ctypes.addressof(self.numbers), 1, 0, len(shape), 2, 64, 1, self.shape,
                       self.strides, 0)
        for name, value in fields.items():
            setattr(m if hasattr(m, name) else m.t, name, value)
        self.capsule = new_capsule(ctypes.addressof(m), b"dltensor_versioned", None)


@pytest.mark.parametrize(("arguments", "values"), [
    ({}, [[0, 1, 2], [3, 4, 5]]), ({"strides": (1, 2)}, [[0, 2, 4], [1, 3, 5]]),
    ({"shape": (2,), "byte_offset": 16}, [2, 3]), ({"shape": ()}, 0),
    ({"shape": (3,), "strides": (-2,), "byte_offset": 40}, [5, 3, 1]),
    ({"shape": (0, 4)}, []), ({"shape": (0,), "data": None}, []),
])
def test_handmade(arguments, values):
    h = Handmade(**arguments)
    t = from_dlpack(h.capsule)
    assert t.tolist() == values
    assert not h.deleted
    del t
    gc.collect()
    assert h.deleted == [1]


@pytest.mark.parametrize("fields", [
    {"major": 2}, {"major": 0}, {"device_type": 2}, {"ndim": -1}, {"ndim": 65}, {"code": 77},
    {"bits": 128}, {"lanes": 4}, {"lanes": 0}, {"data": None}, {"shape": (-1, 3)},
    {"shape": (2**40, 2**40)}, {"code": 3},
], ids=str)
def test_handmade_refusals(fields):
    h = Handmade(**fields)
    with pytest.raises(BufferError, match="from_dlpack"):
        from_dlpack(h.capsule)
    assert not h.deleted                    # the capsule is still the producer's
    assert "used" not in repr(h.capsule)


def test_capsule_without_deleter():
    h = Handmade(deleter=None)
    t = from_dlpack(h.capsule)
    assert t.shape == (2, 3)
    del t


def test_other_capsules():
    with pytest.raises(ValueError, match="capsule"):
        from_dlpack(new_capsule(ctypes.addressof(ctypes.c_int(1)), b"something", None))
