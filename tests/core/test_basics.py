"""dtype, device and Size objects, finfo and iinfo, against NumPy and ml_dtypes."""
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import ptcore
from ptcore import _device
from ptcore._lazy import MODULES

pytestmark = pytest.mark.core

NAMES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
         "bfloat16", "float32", "float64", "complex64", "complex128")


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.parametrize("name", NAMES)
def test_dtype(name):
    d, want = getattr(ptcore, name), numpy_dtype(name)
    assert np.dtype(d) == want
    assert (d.name, d.itemsize) == (name, want.itemsize)
    assert d.kind == ("f" if name == "bfloat16" else want.kind)
    assert repr(d) == f"ptcore.{name}"
    assert len({d, getattr(ptcore, name)}) == 1 and d == d and d != name
    for again in (pickle.loads(pickle.dumps(d)), copy.copy(d), copy.deepcopy(d)):
        assert again is d
    assert d.is_complex == (want.kind == "c") and d.is_signed == (d.kind in "ifc")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_finfo(name):
    got = ptcore.finfo(getattr(ptcore, name))
    want = (ml_dtypes if name == "bfloat16" else np).finfo(numpy_dtype(name))
    for field in ("eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(got, field) == float(getattr(want, field)), field
    assert got.bits == want.bits


@pytest.mark.parametrize("name", NAMES[1:9])
def test_iinfo(name):
    got, want = ptcore.iinfo(getattr(ptcore, name)), np.iinfo(name)
    assert (got.min, got.max, got.bits) == (want.min, want.max, want.bits)


def test_infos_are_constants():
    """Equal by dtype and not writable, as PyTorch's; they hash, copy and pickle as NumPy's."""
    for kind, one, other in ((ptcore.finfo, ptcore.float32, ptcore.float64), (ptcore.iinfo, ptcore.int8, ptcore.uint8)):
        info = kind(one)
        assert info == kind(one) and not info != kind(one) and info != kind(other) and info != 3
        assert len({info, kind(one), kind(other)}) == 2
        assert copy.deepcopy(info) == pickle.loads(pickle.dumps(info)) == info
        with pytest.raises(AttributeError, match=r"attribute 'max' of .info objects is not writable"):
            info.max = 0
    assert ptcore.finfo(ptcore.complex64) == ptcore.finfo(ptcore.float32)


def test_infos_refuse():
    for call in (lambda: ptcore.finfo(ptcore.int32), lambda: ptcore.iinfo(ptcore.float32),
                 lambda: ptcore.iinfo(ptcore.bool), lambda: ptcore.finfo("nonsense")):
        with pytest.raises(TypeError, match=r"^[fi]info: type must be a"):
            call()


@pytest.mark.parametrize(("real", "both"), [("float32", "complex64"), ("float64", "complex128")])
def test_real_and_complex(real, both):
    real, both = getattr(ptcore, real), getattr(ptcore, both)
    assert real.to_complex() is both and both.to_real() is real
    assert real.to_real() is real and both.to_complex() is both


def test_size():
    s = ptcore.Size([2, 3])
    assert s == (2, 3) and s.numel() == 6 and hash(s) == hash((2, 3))
    for part in (s[:1], s + (4,), (4,) + s, s * 2, pickle.loads(pickle.dumps(s))):
        assert type(part) is ptcore.Size
    assert type(s[0]) is int and ptcore.Size([]).numel() == 1


def test_device():
    d = ptcore.device("cuda:1")
    assert (d.type, d.index, str(d)) == ("cuda", 1, "cuda:1")
    assert ptcore.device("cuda", 1) == d and pickle.loads(pickle.dumps(d)) == d
    assert ptcore.device("cpu").index is None
    for text in ("nonsense", "cuda:x", "cuda:-1", "cuda:1000", ""):
        with pytest.raises(RuntimeError, match=r"^device: "):
            ptcore.device(text)
    with pytest.raises(RuntimeError, match=r"^device: index given twice"):
        ptcore.device("cuda:1", 1)
    with pytest.raises(TypeError, match=r"^device: type must be str"):
        ptcore.device(1.5)
    for text in ("cuda:", "cuda:01", "cuda:\u0663"):
        with pytest.raises(RuntimeError, match=r"^device: index must be a number"):
            ptcore.device(text)
    assert ptcore.device("cuda", np.int64(1)) == d


@pytest.mark.parametrize("index", [1.5, 1.0, True, "1"])
def test_an_index_of_a_device_is_an_int(index):
    with pytest.raises(TypeError, match=rf"^device: index must be int, got {type(index).__name__}"):
        ptcore.device("cuda", index)


def test_arguments_that_are_no_device():
    with pytest.raises(RuntimeError, match=r"^device: index must be in \[0, 127\], got -1"):
        ptcore.device("cuda", -1)
    with pytest.raises(TypeError, match=r"^device: a device and an index exclude each other, got 'cuda' and 1"):
        ptcore.device(ptcore.device("cuda"), 1)
    with pytest.raises(TypeError, match=r"^device: type must be str, got bool"):
        ptcore.device(True)


def test_columns_without_streams():
    for column in (-1, 0, 100):
        with pytest.raises(RuntimeError, match=r"^set_stream: column must be that of a device with streams"):
            _device.set_stream(column, 0, 0)
        with pytest.raises(RuntimeError, match=r"^wait_stream: column must be that of a device with streams"):
            _device.wait_stream(column, 0, 0, 0, 0)
    assert _device.device_of_address(ptcore.device("cpu"), 64) == -1


def test_default_device():
    with ptcore.device("meta"):
        assert ptcore.ones(2).is_meta
    assert not ptcore.ones(2).is_meta
    try:
        ptcore.set_default_device("meta")
        assert ptcore.ones(2).is_meta and str(ptcore.get_default_device()) == "meta"
    finally:
        ptcore.set_default_device(None)
    assert not ptcore.ones(2).is_meta


def test_generator():
    g = ptcore.Generator()
    g.manual_seed(3)
    state = g.get_state()
    first = ptcore.rand(5, generator=g)
    assert ptcore.rand(5, generator=g).tolist() != first.tolist()
    g.set_state(state)
    assert ptcore.rand(5, generator=g).tolist() == first.tolist()
    assert g.initial_seed() == 3


# -- per thread ------------------------------------------------------------------------------------

def on_a_thread(f):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(f).result()


def test_default_dtype_of_threads():
    def choose():
        first = ptcore.get_default_dtype()
        ptcore.set_default_dtype(ptcore.float16)
        return first, ptcore.get_default_dtype(), ptcore.tensor(1.).dtype, ptcore.ones(1).dtype, (ptcore.ones(1, dtype=int) / 2).dtype

    try:                                # of the process, as in PyTorch
        assert on_a_thread(choose) == (ptcore.float32, *[ptcore.float16] * 4)
        assert ptcore.get_default_dtype() == ptcore.float16
        ptcore.set_default_dtype(ptcore.float64)
        assert on_a_thread(lambda: ptcore.tensor(1.).dtype) == ptcore.float64
        assert on_a_thread(choose)[0] == ptcore.float64
        assert ptcore.get_default_dtype() == ptcore.float16
        ptcore.set_default_dtype(ptcore.float64)
        assert ptcore.tensor(1j).dtype == ptcore.complex128
    finally:
        ptcore.set_default_dtype(ptcore.float32)


def test_default_device_of_threads():
    meta = ptcore.device("meta")
    with meta:
        assert ptcore.ones(1).is_meta
        assert on_a_thread(lambda: ptcore.ones(1).device.type) == "cpu"
        with ptcore.device("cpu"):
            assert not ptcore.ones(1).is_meta
        assert ptcore.ones(1).is_meta
    assert not ptcore.ones(1).is_meta
    with pytest.raises(RuntimeError, match="without having entered"):
        meta.__exit__()
    try:
        ptcore.set_default_device("meta")
        assert ptcore.get_default_device() == meta and ptcore.zeros(1).is_meta
        with ptcore.device("cpu"):
            assert not ptcore.zeros(1).is_meta
        assert on_a_thread(ptcore.get_default_device).type == "cpu"
    finally:
        ptcore.set_default_device(None)
    assert ptcore.get_default_device().type == "cpu"


def test_size_holds_ints():
    size = ptcore.Size([True, np.int8(2), ptcore.tensor(3)])
    assert size == (1, 2, 3)
    assert [type(n) for n in size] == [int, int, int]
    assert ptcore.Size() == ()
    assert type(size + (4,)) is type((4,) + size) is ptcore.Size
    assert pickle.loads(pickle.dumps(size)) == size
    for wrong, name in (([1.5], "float"), (["a"], "str"), ([None], "NoneType"), ([[1]], "list"), ("12", "str"),
                        ([1, ptcore.tensor(1.5)], "Tensor"), ([ptcore.tensor([1, 2])], "Tensor")):
        with pytest.raises(TypeError, match=rf"^Size: item \d must be an int, got {name}$"):
            ptcore.Size(wrong)
    with pytest.raises(TypeError):
        ptcore.Size(3)
    with pytest.raises(TypeError):
        _ = size + [3]


def test_requires_grad_is_a_bool():
    x = ptcore.zeros(2)
    for wrong in (1, 0.5, "a", None, ptcore.tensor(True), np.bool_(True)):
        with pytest.raises(RuntimeError, match=f"requires_grad: must be a bool, got {type(wrong).__name__}"):
            x.requires_grad = wrong
        with pytest.raises(TypeError, match="requires_grad_: requires_grad must be bool"):
            x.requires_grad_(wrong)
    assert not x.requires_grad


def test_submodules_exist():
    """A program may ask for a name with hasattr; a submodule that is named is there."""
    for name in MODULES["ptcore"]:
        assert getattr(ptcore, name).__file__ is not None
    assert not hasattr(ptcore, "no_such_module")
    for name in ("distributed", "jit", "amp"):
        assert hasattr(ptcore, name) == (name in MODULES["ptcore"])


def test_no_cuda_device():
    assert ptcore.cuda.is_available() is False
    assert ptcore.cuda.device_count() == 0
    assert ptcore.cuda.manual_seed(0) is ptcore.cuda.manual_seed_all(0) is ptcore.cuda.empty_cache() is None
    assert ptcore.cuda.get_rng_state_all() == [] and ptcore.cuda.set_rng_state_all([]) is None
    assert ptcore.cuda.seed_all() is None
    device = ptcore.device("cuda" if ptcore.cuda.is_available() else "cpu")
    assert ptcore.ones(2, device=device).device.type == "cpu"
