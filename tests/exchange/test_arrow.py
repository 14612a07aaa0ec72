"""Arrow's C data interface, read by ctypes as a consumer in C would."""
import ctypes
import gc
import sys

import numpy as np
import pytest

import ptcore as pt


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))), ("private_data", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
                  ("dictionary", ctypes.c_void_p), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
                  ("private_data", ctypes.c_void_p)]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
CODES = {"c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64",
         "L": "uint64", "e": "float16", "f": "float32", "g": "float64"}


def opened(capsules):
    schema, array = capsules
    return (Schema.from_address(_pointer(schema, b"arrow_schema")), Array.from_address(_pointer(array, b"arrow_array")))


def read(schema, array):
    """(the shape, a NumPy array over the memory)."""
    assert array.null_count == array.offset == 0 and schema.flags == 0
    assert schema.n_children == array.n_children
    text = schema.format.decode()
    if text.startswith("+w:"):
        assert array.n_buffers == 1 and array.buffers[0] is None and array.n_children == 1
        shape, values = read(schema.children[0].contents, array.children[0].contents)
        assert shape[0] == array.length * int(text[3:])
        return (array.length, int(text[3:]), *shape[1:]), values
    assert array.n_buffers == 2 and array.buffers[0] is None and array.n_children == 0
    if text == "b":
        size = (array.length + 7) // 8
        packed = np.frombuffer((ctypes.c_uint8 * size).from_address(array.buffers[1] or 1), np.uint8) if size else []
        return (array.length,), np.unpackbits(np.array(packed, np.uint8), bitorder="little")[:array.length].astype(bool)
    dtype = np.dtype(CODES[text])
    if not array.length:
        return (0,), np.empty(0, dtype)
    raw = (ctypes.c_uint8 * (array.length * dtype.itemsize)).from_address(array.buffers[1])
    return (array.length,), np.frombuffer(raw, dtype)


@pytest.mark.parametrize("shape", [(5,), (0,), (3, 4), (2, 3, 4), (2, 0), (0, 3), (1,) * 9, (17,)])
@pytest.mark.parametrize("dtype", [*CODES.values(), "bool"])
def test_numbers(dtype, shape):
    want = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
    x = pt.from_numpy(want.copy())
    capsules = x.__arrow_c_array__()
    del x
    gc.collect()
    got_shape, got = read(*opened(capsules))
    assert got_shape == shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got.reshape(shape), want)


def test_memory_is_shared_and_kept():
    x = pt.arange(6.).reshape(2, 3)
    capsules = x.__arrow_c_array__(None)
    _, values = read(*opened(capsules))
    assert values.ctypes.data == x.data_ptr()
    x[1, 1] = 7
    assert values.tolist() == [0, 1, 2, 3, 7, 5]
    with pytest.raises(RuntimeError):
        x.untyped_storage().resize_(0)
    capsules = pt.arange(6.).reshape(2, 3).T.__arrow_c_array__()    # a copy in row-major order
    assert read(*opened(capsules))[1].tolist() == [0, 3, 1, 4, 2, 5]
    capsules = pt.arange(6)[2:].__arrow_c_array__()
    assert read(*opened(capsules))[1].tolist() == [2, 3, 4, 5]


def test_a_consumer_may_take_children_first():
    x = pt.ones(2, 3, 4)
    capsules = x.__arrow_c_array__()
    schema, array = opened(capsules)
    child = Array.from_buffer_copy(array.children[0].contents)      # moved, as the interface allows
    ctypes.cast(ctypes.addressof(array.children[0].contents.release), ctypes.POINTER(ctypes.c_void_p))[0] = None
    array.release(ctypes.byref(array))
    schema.release(ctypes.byref(schema))
    assert not array.release and not schema.release
    del capsules
    inner = child.children[0].contents
    assert (ctypes.c_float * 24).from_address(inner.buffers[1])[:] == [1.0] * 24
    child.release(ctypes.byref(child))
    assert not child.release


@pytest.mark.parametrize("shape", [(1000,), (10, 100)])
def test_capsules_that_nobody_reads_let_go(shape):
    array = np.ones(shape, np.float32)
    before = sys.getrefcount(array)
    x = pt.from_numpy(array)
    for _ in range(100):
        capsules = x.__arrow_c_array__()
    del x
    assert sys.getrefcount(array) > before
    del capsules
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("make, words", [
    (lambda: pt.ones(2, requires_grad=True), "requires grad"), (lambda: pt.tensor(1.0), "without dims"),
    (lambda: pt.ones(2, dtype=pt.bfloat16), "no type for bfloat16"),
    (lambda: pt.ones(2, dtype=pt.complex64), "no type for complex64"),
    (lambda: pt.ones(2, device="meta"), "on the CPU")])
def test_refused(make, words):
    with pytest.raises(BufferError, match=f"__arrow_c_array__: .*{words}"):
        make().__arrow_c_array__()


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    x = pt.arange(6.).reshape(2, 3)
    array = pa.array(x)
    assert array.to_pylist() == x.tolist() and str(array.type) == "fixed_size_list<item: float not null>[3]"
    assert pa.array(x[0]).to_numpy().ctypes.data == x.data_ptr()
    assert pa.array(x > 2).to_pylist() == (x > 2).tolist()


def test_polars():
    pl = pytest.importorskip("polars")
    x = pt.arange(6)
    assert pl.Series("a", x).to_list() == x.tolist() and pl.DataFrame({"a": x, "b": x > 2}).shape == (6, 2)
    assert pl.Series(pt.ones(2, 3)).to_list() == [[1.0] * 3] * 2
