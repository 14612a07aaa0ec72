"""Storages as objects: made from sizes and bytes, identity, attributes, parts, typed storages, pickles."""
import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore import storage as st

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")]

KINDS = {"Double": "f8", "Float": "f4", "Half": "f2", "Long": "i8", "Int": "i4", "Short": "i2", "Char": "i1",
         "Byte": "u1", "Bool": "?", "ComplexDouble": "c16", "ComplexFloat": "c8"}


def array(storage, dtype):
    return np.array(storage.tolist(), np.uint8).view(dtype)


def test_making():
    assert pt.UntypedStorage().nbytes() == 0 and pt.UntypedStorage(5).nbytes() == 5
    assert pt.UntypedStorage([1, 255, 256, -1]).tolist() == [1, 255, 0, 255]
    assert pt.UntypedStorage(b"ab").tolist() == [97, 98] and list(pt.UntypedStorage((3,))) == [3]
    assert pt.UntypedStorage(7, device="meta").device.type == "meta" and pt.UntypedStorage([1], device="meta").size() == 1
    for bad in (-1, 2.5, "ab", [1.5], None):
        with pytest.raises(RuntimeError, match="UntypedStorage"):
            pt.UntypedStorage(bad)
    with pytest.raises(TypeError, match="2 arguments"):
        pt.UntypedStorage(1, 2)
    with pytest.raises(MemoryError):
        pt.UntypedStorage(1 << 60)
    assert pt.UntypedStorage.__new__(pt.UntypedStorage).nbytes() == 0


def test_a_storage_and_tensors_over_it():
    s = pt.UntypedStorage(8).fill_(0)
    x = pt.empty(0, dtype=pt.int16).set_(s)
    assert x.untyped_storage() is s and x.tolist() == [0] * 4
    s[0], s[2:4] = 5, 1
    assert x.tolist() == [5, 257, 0, 0]
    s.fill_(513)                                    # modulo 256
    assert x.tolist() == [257] * 4
    s.copy_(pt.UntypedStorage(range(8)))
    assert x.tolist() == np.arange(8, dtype=np.uint8).view(np.int16).tolist()
    s.byteswap(pt.int16)
    assert x.tolist() == np.arange(8, dtype=np.uint8).view(np.int16).byteswap().tolist()
    for call, kind in ((lambda: s.copy_(pt.UntypedStorage(3)), RuntimeError), (lambda: s.fill_(1.5), RuntimeError),
                       (lambda: s[8], IndexError), (lambda: s[-9], IndexError), (lambda: s["a"], TypeError),
                       (lambda: s[::2], RuntimeError), (lambda: s.__setitem__(8, 1), RuntimeError),
                       (lambda: s.__setitem__(0, 1.5), RuntimeError), (lambda: s.copy_(3), TypeError),
                       (lambda: s.resize_(1.5), RuntimeError), (lambda: s.resize_(-1), RuntimeError),
                       (lambda: s[:3].byteswap(pt.int16), RuntimeError), (lambda: s.type("torch.Nothing"), RuntimeError)):
        with pytest.raises(kind):
            call()


def test_read_only_memory_is_not_written():
    frozen = np.arange(4, dtype=np.uint8)
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        s = pt.from_numpy(frozen).untyped_storage()
    for call in (lambda: s.fill_(1), lambda: s.__setitem__(0, 1), lambda: s.copy_(pt.UntypedStorage(4)),
                 lambda: s[1:3].fill_(1), lambda: s.byteswap(pt.int16)):
        with pytest.raises((RuntimeError, ValueError)):
            call()
    assert frozen.tolist() == [0, 1, 2, 3]


def test_one_object_for_a_storage():
    x = pt.zeros(3)
    first = id(x.untyped_storage())
    for _ in range(3):
        gc.collect()
        assert id(x.untyped_storage()) == first
    x.untyped_storage().note = [1]
    y = x[1:]
    del x
    gc.collect()
    assert y.untyped_storage().note == [1] and vars(y.untyped_storage()) == {"note": [1]}
    s = y.untyped_storage()
    del y
    assert s.note == [1] and s.nbytes() == 12
    seen = weakref.ref(s)
    z = pt.empty(0).set_(s)
    del s
    gc.collect()
    assert seen() is None or seen() is z.untyped_storage()
    assert z.tolist() == [0, 0, 0]


@pytest.mark.counts
def test_the_object_goes_with_the_memory():
    class Mine(pt.UntypedStorage):
        pass

    class Token:
        pass

    gc.collect()
    before = pt.cpu.memory_stats()["live_blocks"]
    for kind in (pt.UntypedStorage, Mine):
        s, token = kind(16), Token()
        s.token, gone, ended = token, weakref.ref(token), weakref.ref(s)
        x = pt.empty(0).set_(s)
        del s, token
        gc.collect()
        assert ended() is x.untyped_storage() and type(ended()) is kind and gone() is ended().token
        del x
        gc.collect()
        assert ended() is None and gone() is None
    assert pt.cpu.memory_stats()["live_blocks"] == before


def test_a_storage_outlives_and_is_shown_again():
    x = pt.arange(3)
    s = x.untyped_storage()
    for _ in range(3):                  # the storage owns the object, then the object the storage, and again
        del s
        s = x.untyped_storage()
        del x
        x = pt.empty(0, dtype=pt.int64).set_(s)
    assert x.tolist() == [0, 1, 2] and x.untyped_storage() is s


def test_parts_share_memory():
    s = pt.UntypedStorage(range(8))
    part = s[2:6]
    assert isinstance(part, pt.UntypedStorage) and part is not s and part.tolist() == [2, 3, 4, 5]
    part[0] = 99
    assert s[2] == 99 and s[6:2].nbytes() == 0 and s[-2:].tolist() == [6, 7]
    with pytest.raises(BufferError):
        s.resize_(100)                  # it would move
    del s
    gc.collect()
    assert part.tolist() == [99, 3, 4, 5]
    with pytest.raises(NotImplementedError, match="meta"):
        _ = pt.UntypedStorage(3, device="meta")[0:1]


def test_text():
    assert repr(pt.UntypedStorage([1, 2])) == " 1\n 2\n[ptcore.storage.UntypedStorage(device=cpu) of size 2]"
    assert repr(pt.FloatStorage([1.5])) == str(pt.FloatStorage([1.5])) == (
        " 1.5\n[ptcore.storage.TypedStorage(dtype=ptcore.float32, device=cpu) of size 1]")
    assert repr(pt.UntypedStorage(2, device="meta")).startswith("...\n")
    assert repr(pt.UntypedStorage(10**7)).count("\n") < 10


@pytest.mark.parametrize("kind", KINDS)
def test_typed_storages(kind):
    cls, want = getattr(pt, f"{kind}Storage"), np.array([1, 0, 1], KINDS[kind])
    s = cls([1, 0, 1])
    assert type(s) is pt.TypedStorage and isinstance(s, cls) and s.dtype is cls.dtype and len(s) == 3
    assert s.tolist() == list(s) == want.tolist() and array(s.untyped(), KINDS[kind]).tolist() == want.tolist()
    assert s.pickle_storage_type() == f"{kind}Storage" and s.type() == f"torch.{kind}Storage"
    assert s.nbytes() == want.nbytes and s.element_size() == want.itemsize
    s[1], s[0:1] = 1, 0
    assert s.tolist() == [0, 1, 1] and s[-1] == 1 and s.fill_(1).tolist() == [1] * 3
    x = pt.zeros(2, dtype=s.dtype)
    assert x.storage_type() is cls and isinstance(x.storage(), cls) and x.storage().untyped() is x.untyped_storage()
    assert x.set_(s).tolist() == [1] * 3 and x.untyped_storage() is s.untyped()
    assert x.new(s).untyped_storage() is s.untyped() and pt.tensor(s).dtype is s.dtype
    assert cls(wrap_storage=s.untyped()).untyped() is s.untyped() and len(cls(4)) == 4 and len(cls()) == 0
    others = [other for other in KINDS if other != kind]
    assert not any(isinstance(s, getattr(pt, f"{other}Storage")) for other in others)
    with pytest.raises(RuntimeError, match="Expected a Storage"):
        x.set_(getattr(pt, f"{others[0]}Storage")(1))
    with pytest.raises(IndexError):
        _ = s[3]
    with pytest.raises(RuntimeError, match="slices"):
        _ = s[0:1]
    with pytest.raises(RuntimeError, match="cannot set item"):
        s[0] = s


def test_casts():
    values = [0, 1, 3]
    for name, dtype in {"double": "f8", "float": "f4", "half": "f2", "long": "i8", "int": "i4", "short": "i2",
                        "char": "i1", "byte": "u1", "bool": "?", "complex_double": "c16", "complex_float": "c8"}.items():
        want = np.array(values).astype(dtype).tolist()
        for s in (pt.IntStorage(values), pt.UntypedStorage(values)):
            cast = getattr(s, name)()
            assert cast.tolist() == want and cast.untyped() is not getattr(s, "_untyped_storage", s)
    assert pt.FloatStorage([1.5]).bfloat16().tolist() == [1.5]


def test_the_warning_comes_once():
    st._reset_warn_typed_storage_removal()
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            pt.ones(2).storage()
            pt.ones(2).storage().size()
        assert len(found) == 1 and "TypedStorage is deprecated" in str(found[0].message) and found[0].filename == __file__
        st._set_always_warn_typed_storage_removal(True)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            pt.ones(2).storage().size()
        assert len(found) == 2
        with pytest.raises(AssertionError, match="bool"):
            st._set_always_warn_typed_storage_removal(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pt.ones(2)._typed_storage()._size()
    finally:
        st._set_always_warn_typed_storage_removal(False)


@pytest.mark.parametrize("order", ["big", "little", "native"])
@pytest.mark.parametrize("kind", KINDS)
def test_buffers(kind, order):
    form = {"big": ">", "little": "<", "native": "="}[order]
    data = np.array([1, 0, 1], KINDS[kind]).astype(np.dtype(KINDS[kind]).newbyteorder(form))
    cls = getattr(pt, f"{kind}Storage")
    assert cls.from_buffer(data.tobytes(), order).tolist() == data.tolist()
    untyped = pt.UntypedStorage.from_buffer(data.tobytes(), order, 1, data.itemsize, dtype=cls.dtype)
    assert array(untyped, KINDS[kind]).tolist() == data[1:2].tolist()
    assert pt.TypedStorage.from_buffer(data.tobytes(), order, dtype=cls.dtype).tolist() == data.tolist()


def test_wrong_buffers():
    data = bytes(8)
    for arguments, kind, text in (
            ((data, "big"), RuntimeError, "dtype"), ((data, "xx", -1, 0, pt.int16), ValueError, "byte_order"),
            ((data, None, -1, 0, pt.int16), RuntimeError, "byte_order"), ((data, "big", 9, 2, pt.int16), ValueError, "9"),
            ((data, "big", -1, 9, pt.int8), ValueError, "offset"), ((data, "big", -1, 1, pt.int16), ValueError, "multiple"),
            ((3, "big", -1, 0, pt.int8), TypeError, "bytes-like"), ((data, "big", -1, 0, "int8"), RuntimeError, "dtype")):
        with pytest.raises(kind, match=text):
            pt.UntypedStorage.from_buffer(*arguments)


def test_copies_and_pickles():
    s = pt.UntypedStorage([1, 2, 3, 4])
    x = pt.empty(0, dtype=pt.int16).set_(s)
    for made in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), s.clone()):
        assert made is not s and made.tolist() == [1, 2, 3, 4] and made.data_ptr() != s.data_ptr()
    a, b, c = copy.deepcopy([x, s, pt.TypedStorage(wrap_storage=s, dtype=pt.int8)])
    assert a.untyped_storage() is b is c.untyped() and b is not s
    d, e = pickle.loads(pickle.dumps([s, pt.TypedStorage(wrap_storage=s, dtype=pt.int8)]))
    assert e.untyped() is d and e.tolist() == [1, 2, 3, 4]
    meta = pickle.loads(pickle.dumps(pt.UntypedStorage(5, device="meta")))
    assert meta.device.type == "meta" and meta.nbytes() == 5


def test_files(tmp_path):
    path = tmp_path / "numbers"
    s = pt.FloatStorage.from_file(str(path), True, 2)
    s[1] = 2.5
    assert s.filename == str(path) and np.fromfile(path, "f4").tolist() == [0, 2.5]
    assert pt.from_file(str(path), shared=True, size=2).untyped_storage().filename == str(path)
    assert pt.from_file(str(path), size=2).untyped_storage().filename is None and pt.UntypedStorage(1).filename is None
    for kind in (dict, list):
        thing = {"a": s, "b": s.untyped()} if kind is dict else [s, s.untyped()]
        pt.save(thing, tmp_path / "saved.pt")
        loaded = pt.load(tmp_path / "saved.pt")
        a, b = loaded.values() if kind is dict else loaded
        assert a.tolist() == [0, 2.5] and isinstance(a, pt.FloatStorage) and a.untyped() is b
    with pytest.raises(RuntimeError, match="derived"):
        pt.TypedStorage.from_file(str(path), True, 2)


def test_sharing():
    s = pt.FloatStorage([1, 2])
    assert not s.is_shared() and s.share_memory_() is s and s.is_shared() and s.tolist() == [1, 2]
    assert pt.UntypedStorage._new_shared(4).is_shared() and pt.FloatStorage._new_shared(3).size() == 3
    from multiprocessing.reduction import ForkingPickler

    import ptcore.multiprocessing
    assert ptcore.multiprocessing.Queue is not None         # it tells the pickler
    passed = pickle.loads(ForkingPickler.dumps([s, s.untyped()]))
    assert passed[1] is s.untyped() is passed[0].untyped()


def test_wrong_typed_storages():
    untyped, typed = pt.UntypedStorage(4), pt.FloatStorage(1)
    for call, kind, text in (
            (lambda: st._LegacyStorage(), RuntimeError, "Only child classes"),
            (lambda: pt.FloatStorage(device="cpu"), RuntimeError, "'device' cannot be specified"),
            (lambda: pt.FloatStorage(dtype=pt.float32), RuntimeError, "'dtype' cannot be specified"),
            (lambda: pt.FloatStorage(what=1), TypeError, "unexpected keyword"),
            (lambda: pt.FloatStorage(0, 0), RuntimeError, "Too many positional"),
            (lambda: pt.FloatStorage("string"), TypeError, "invalid data type"),
            (lambda: pt.FloatStorage(pt.tensor([])), TypeError, "type not recognized"),
            (lambda: pt.FloatStorage(0, wrap_storage=untyped), RuntimeError, "No positional arguments"),
            (lambda: pt.FloatStorage(wrap_storage=typed), TypeError, "must be UntypedStorage"),
            (lambda: pt.TypedStorage(wrap_storage=untyped), RuntimeError, "'dtype' must be specified"),
            (lambda: pt.TypedStorage(wrap_storage=untyped, dtype=0), TypeError, "'dtype' must be torch.dtype"),
            (lambda: pt.TypedStorage(wrap_storage=untyped, dtype=pt.int8, device="cpu"), RuntimeError, "'device' should"),
            (lambda: pt.TypedStorage(2.5), TypeError, "type not recognized"),
            (lambda: pt.TypedStorage(2, device="meta")[0], NotImplementedError, "meta")):
        with pytest.raises(kind, match=text):
            call()
