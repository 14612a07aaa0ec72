"""NumPy's arrays, scalars and dtypes in PyTorch's files: they come back as what they were."""
import pickle

import numpy as np
import pytest
from _pickles import archive, load_pickle, round_trip, saved, text

import ptcore as pt
from ptcore.serialization import CorruptFileError

pytestmark = pytest.mark.core


def test_numpy():
    obj = {
        "c": np.arange(6).reshape(2, 3), "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "text": np.array(["ab", "c"]), "big": np.arange(3, dtype=">i4"), "none": np.empty((0, 3)),
        "big f": np.asfortranarray(np.ones((2, 3), ">f4")), "big step": np.arange(6, dtype=">u2")[::2],
        "big zero": np.array(5, ">c8"), "long": np.arange(3, dtype=np.longdouble),
        "zero": np.array(5), "dtype": np.dtype(">f8"),
    }
    loaded = round_trip(obj)
    assert loaded.pop("dtype") == obj.pop("dtype")
    for name, array in obj.items():
        assert loaded[name].tolist() == array.tolist(), name
        assert loaded[name].shape == array.shape
        assert loaded[name].dtype == array.dtype
        loaded[name][...] = array       # can be written
    for refused in (np.array([object()]), np.zeros(1, "V4")[0], np.zeros(1, "i4,")[0], np.array([(1,)], dtype="i4,"),
                    np.arange(2).view(np.recarray), np.datetime64("2020"), np.ma.masked_array([1])):
        with pytest.raises(TypeError, match=f"got {type(refused).__name__}"):
            saved(refused)


@pytest.mark.parametrize("stream", [False, True])
def test_numpy_scalars(stream):
    """They come back as what they were, as keys too; a loop over a float64 array puts such into checkpoints."""
    numbers = [np.dtype(c).type(1) for c in "?bBhHiIlLefdgFDG"]
    numbers += [np.float32(0.1), np.uint64(2**64 - 1), np.float64("nan")]
    loaded = round_trip({"list": [*numbers, np.str_("aü"), np.bytes_(b"b"), np.str_("")], np.int16(3): 1}, stream)
    for got, want in zip(loaded.pop("list"), [*numbers, np.str_("aü"), np.bytes_(b"b"), np.str_("")], strict=True):
        assert type(got) is type(want)
        assert got == want or want != want
    assert [type(k) for k in loaded] == [np.int16]
    x = np.float64(2.5)
    same = round_trip([x, x], stream)
    assert same[0] is same[1]


def test_a_scalar_that_is_made_again_and_again():
    """Each copy of a long text counts: the file is short, its objects would not be."""
    data = b"\0" * 400_000
    scalar = b"cnumpy._core.multiarray\nscalar\n"
    dtype = pickle.dumps(np.dtype("S400000"), protocol=2)[2:-1]
    once = scalar + dtype + b"c_codecs\nencode\n(X" + len(data).to_bytes(4, "little") + data + text("latin1") + b"tR"
    assert len(load_pickle(once + b"\x86R")) == 0
    again = b"(" + once + b"\x86r\xf0\0\0\0R" + b"".join(
        [scalar + b"j\xf0\0\0\0R" for _ in range(2000)]) + b"t"
    with pytest.raises(CorruptFileError, match="far larger than the file"):
        load_pickle(again)


def test_numpy_scalar_and_protocol_5():
    body = pickle.dumps([np.float32(2.5), np.arange(3), np.array(["x"])], protocol=2)[2:-1]
    loaded = load_pickle(body)
    assert type(loaded[0]) is np.float32
    assert loaded[1].tolist() == [0, 1, 2]
    for protocol in (3, 4, 5):
        loaded = pt.load(archive(pickle.dumps([np.float32(2.5), np.arange(3), b"a", {1}, "t"], protocol=protocol)))
        assert loaded[0] == 2.5
        assert loaded[1].tolist() == [0, 1, 2]
        assert loaded[2:] == [b"a", {1}, "t"]
