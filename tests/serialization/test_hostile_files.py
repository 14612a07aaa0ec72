"""PyTorch's files that are damaged or made to do harm: an error, in bounded time and memory, and nothing is run."""
import io
import os
import pickle
import struct
import zipfile

import pytest
from _pickles import archive, load_pickle, number, saved, storage, tensor, text

import ptcore as pt
from ptcore import serialization
from ptcore.serialization import CorruptFileError

pytestmark = pytest.mark.core


@pytest.mark.parametrize("body", [
    b"cos\nsystem\nX\x04\0\0\0true\x85R", b"cbuiltins\neval\nX\x01\0\0\x001\x85R", b"c__builtin__\nexec\n",
    b"cposix\nsystem\n", b"csubprocess\nPopen\n", b"cbuiltins\ngetattr\n", b"X\x02\0\0\0osX\x06\0\0\0system\x93",
    b"ctorch.serialization\nload\n", b"ctorch\nload\n", b"cnumpy.testing\nrun_module_suite\n", b"cptcore\nsave\n",
    b"ctorch.hub\nload\n", b"c__main__\nX\n", b"ccopyreg\n__newobj__\n",
])
def test_names_that_are_not_on_the_list(body):
    with pytest.raises(pickle.UnpicklingError, match="not allowed by default"):
        load_pickle(body)


def test_blocked_modules_stay_blocked():
    with serialization.safe_globals([(os.getcwd, "os.getcwd")]), pytest.raises(pickle.UnpicklingError):
        load_pickle(b"cos\ngetcwd\n)R")


@pytest.mark.parametrize("body, refused", [
    (b"}]R", "no tuple"), (b"})R", "called"), (b"cbuiltins\nint\n)R", "called"), (b"ctorch\nfloat32\n)R", "called"),
    (b"]}b", "state"), (b"ctorch\nTensor\n)\x81", "called"), (b"ctorch\nFloatStorage\n)R", "called"),
    (b"ccollections\nOrderedDict\n)R}X\x05\0\0\0itemsK\1sb", "attribute"),
    (b"ccollections\nOrderedDict\n)R}X\x09\0\0\0__class__K\1sb", "attribute"),
    (b"ccollections\ndefaultdict\nc_codecs\nencode\n\x85R", "factory"),
    (b"ctorch._tensor\n_rebuild_from_type_v2\n(c_codecs\nencode\nctorch\nTensor\n)}tR", "unknown function"),
])
def test_calls_that_are_not_allowed(body, refused):
    with pytest.raises((pickle.UnpicklingError, CorruptFileError), match=refused):
        load_pickle(body)


@pytest.mark.parametrize("kind, word", [
    ("ctorch\nQInt8Storage\n", "QInt8Storage"), ("ctorch._utils\n_rebuild_qtensor\n", "_rebuild_qtensor"),
    ("ctorch._utils\n_rebuild_sparse_tensor\n", "sparse"), ("ctorch\nfloat4_e2m1fn_x2\n", "float4_e2m1fn_x2"),
    ("ctorch._utils\n_rebuild_nested_tensor\n", "nested"), ("ctorch\nqint8\n", "qint8"),
    ("ctorch.serialization\n_get_layout\nX\x10\0\0\0torch.sparse_coo\x85R", "sparse_coo"),
    ("cnumpy\ndtype\nX\x01\0\0\0O\x89\x88\x87R", "'O'"), ("cnumpy\ndtype\nX\x02\0\0\0M8\x89\x88\x87R", "'M8'"),
])
def test_what_there_is_not_here_is_named(kind, word):
    with pytest.raises(NotImplementedError, match=word):
        load_pickle(kind.encode("latin1"))


def test_old_containers_are_named():
    with pytest.raises(NotImplementedError, match="TorchScript"):
        pt.load(archive(b"\x80\x02N.", **{"constants.pkl": b"\x80\x02)."}))
    import tarfile
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("storages"))
    file.seek(0)
    with pytest.raises(NotImplementedError, match="tar"):
        pt.load(file)


@pytest.mark.parametrize("geometry", [
    {"size": (5,)}, {"offset": 1}, {"size": (2, 2), "stride": (3, 1)}, {"stride": (-1,)}, {"size": (-1,)},
    {"offset": -1}, {"size": (2,), "stride": (1 << 62,)}, {"size": (1 << 62, 8), "stride": (0, 0)},
    {"size": (1 << 40, 1 << 40), "stride": (0, 0)}, {"size": (1, 1), "stride": (1,)}, {"offset": 1 << 63},
    {"size": (1,) * 65, "stride": (1,) * 65}, {"size": (1 << 63,)}, {"size": (0,), "offset": (1 << 62)},
])
def test_tensors_never_leave_their_storage(geometry):
    with pytest.raises(CorruptFileError):
        load_pickle(tensor(**geometry))


def test_storages_are_as_large_as_the_archive_says():
    assert load_pickle(tensor()).tolist() == [0] * 4
    for options in ({"size": (8,)}, {"key": "1"}, {"key": "../data.pkl"}, {"kind": "DoubleStorage"}):
        with pytest.raises(CorruptFileError):
            load_pickle(tensor(**options).replace(number(4), number(8), 1))
    # the same storage again, under a name with larger elements
    with pytest.raises(CorruptFileError, match="16 bytes"):
        load_pickle(b"(" + tensor() + tensor(kind="DoubleStorage") + b"t")


@pytest.mark.parametrize("body", [
    b"(" * 100_000, b"]" * 50_000, b"K\1K\1" + b"\x85" * 100_000, b"0", b"1", b"t", b"s", b"u",
    b"a", b"2", b"h\7", b"q\1", b"j\xff\xff\xff\x7f", b"X\xff\xff\xff\xffabc", b"\x8d" + b"\xff" * 8,
    b"\x8e\0\0\0\0\0\1\0\0",
    b"\x96" + b"\xff" * 8, b"\x8b\xff\xff\xff\x7f", b"c" + b"x" * 5000 + b"\ny\n", b"Ix\n", b"L1L\n", b"\xff", b"",
    b"(K\1u", b"]K\1s", b"K\1a", b"]e", b"NQ", b"(X\7\0\0\0storagetQ",
])
def test_damaged_pickles(body):
    with pytest.raises(CorruptFileError):
        load_pickle(body)


@pytest.mark.outer
def test_bombs():
    """What grows far beyond the file: copies of what was read, keys that take for ever, deflated zeros."""
    text_1m = text("x" * 1_000_000)
    for body in (
        text_1m + b"q\0(" + b"c_codecs\nencode\n(h\0X\x06\0\0\0latin1tR" * 2000,
        b"](" + b"K\1" * 100_000 + b"eq\0" + b"c__builtin__\nset\nh\0\x85R" * 1000,
        b"](" + b"K\1K\2\x86" * 100_000 + b"eq\0" + b"ccollections\nOrderedDict\nh\0\x85R" * 1000,
        tensor(size=(1 << 40,), stride=(0,)) + b"q\0ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n"
        b"(h\0ctorch\nfloat64\nX\3\0\0\0cpu\x89tR",
        tensor(size=(1 << 40,), stride=(0,))[:-2] + b"}" + text("neg") + b"\x88stR",
        b"](ccollections\nOrderedDict\nq\0" + b"h\0)R" * 400_000 + b"e", b"](" + b"(\x91" * 400_000 + b"e",
        b"(" * 2_000_000, b"](" + b"\x8f" * 3_000_000 + b"e", b"](" + b"}" * 3_000_000 + b"e",
    ):
        with pytest.raises(CorruptFileError, match="far larger than the file"):
            load_pickle(body)
    names = text("x" * 1_000_000) + b"q\0(" + b"h\0h\0\x93" * 10_000 + b"t"
    with pytest.raises(CorruptFileError, match="too long"):
        load_pickle(names)
    with pytest.raises(CorruptFileError, match="too long"):
        serialization.get_unsafe_globals_in_checkpoint(archive(b"\x80\x04" + names + b"."))
    shared = b")q\0" + b"".join(b"0h%ch%c\x86q%c" % (i, i, i + 1) for i in range(60))
    with pytest.raises(CorruptFileError, match="too large"):
        load_pickle(b"}" + shared + b"K\1s")                    # a key of 2**60 parts
    with pytest.raises(CorruptFileError, match="too large"):
        load_pickle(b"}" + b")" + b"\x85" * 100_000 + b"K\1s")     # hashing it recurses
    part = b"h\x3c"
    for body in (                                                   # no message prints 2**60 parts
        b"cnumpy\ndtype\n" + part + b"\x85R", b"ctorch.serialization\n_get_layout\n" + part + b"\x85R",
        storage().replace(text("0"), part), tensor().replace(number(0), part), b"ctorch\ndevice\n" + part + b"\x85R",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_meta_tensor_no_storage\n" + part
        + b"(ctorch\nfloat32\n))\x89t}tR",
    ):
        with pytest.raises((CorruptFileError, NotImplementedError, pickle.UnpicklingError)):
            load_pickle(shared + b"0" + body)
    with pytest.raises(CorruptFileError, match="expand"):
        pt.load(archive(b"\x80\x02" + tensor(size=(4,)) + b".", [b"\0" * 50_000_000], deflated=True))
    assert len(pt.load(archive(b"\x80\x02" + tensor(size=(4,)) + b".", [bytes(range(256)) * 4], deflated=True))) == 4


def test_keys_that_collide():
    """Tuples of numbers of one hash: a dictionary of n of them would take n * n comparisons."""
    numbers = [2.0 ** (61 * k) for k in range(-16, 16)]
    assert len(set(map(hash, numbers))) == 1
    head = b"(" + b"".join(b"G" + struct.pack(">d", v) + b"q%c0" % i for i, v in enumerate(numbers))
    keys = [b"h%ch%ch%c\x87" % (i, j, k) for i in range(32) for j in range(32) for k in range(32)]
    for body in (
        head + b"}(" + b"".join(key + b"N" for key in keys) + b"ut",
        head + b"}" + b"".join(key + b"Ns" for key in keys) + b"t",
        head + b"\x8f(" + b"".join(keys) + b"\x90t", head + b"(" + b"".join(keys) + b"\x91t",
        head + b"c__builtin__\nset\n](" + b"".join(keys) + b"e\x85Rt",
        head + b"ccollections\nCounter\n](" + b"".join(key + b"N\x86" for key in keys) + b"e\x85Rt",
    ):
        with pytest.raises(CorruptFileError, match="made to collide"):
            load_pickle(body)
    # one key in many dictionaries and sets is none of them
    many = b"](" + b"}K\1K\2\x86Ns(K\1K\2\x86\x91\x8f(K\1K\2\x86\x90" * 1000 + b"e"
    assert load_pickle(many)[:3] == [{(1, 2): None}, {(1, 2)}, {(1, 2)}]
    assert len(load_pickle(many)) == 3000


def changed(data, magic, offset, form, value, last=False):
    """An archive with one field changed, of the first or the last header with a magic number."""
    data = bytearray(data)
    at = data.rindex(magic) if last else data.index(magic)
    struct.pack_into(form, data, at + offset, value)
    return io.BytesIO(bytes(data))


def test_damaged_archives():
    whole = saved([pt.arange(4.0), pt.arange(4.0)]).getvalue()
    for size in range(0, len(whole), 11):
        with pytest.raises(CorruptFileError):
            pt.load(io.BytesIO(whole[:size]))
    local, central = b"PK\3\4", b"PK\1\2"
    for magic, offset, form, value in (
        (local, 6, "<H", 1), (local, 8, "<H", 8), (local, 26, "<H", 3), (local, 0, "<I", 0), (central, 8, "<H", 1),
        (central, 10, "<H", 8), (central, 10, "<H", 99), (central, 16, "<I", 1), (central, 20, "<I", 5),
        (central, 24, "<I", 1 << 30), (central, 28, "<H", 60000), (central, 42, "<I", 64), (central, 42, "<I", 1 << 31),
        (b"PK\6\6", 16, "<I", 1),
        (b"PK\6\6", 48, "<Q", 1 << 62), (b"PK\6\6", 32, "<Q", 3), (b"PK\6\7", 8, "<Q", 1 << 63),
    ):
        with pytest.raises(CorruptFileError):
            pt.load(changed(whole, magic, offset, form, value))
    with pytest.raises(CorruptFileError, match="over each other"):
        pt.load(changed(whole, central, 42, "<I", 0, last=True))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a/data.pkl", b"\x80\x02N.")
        with pytest.warns(UserWarning, match="Duplicate"):
            out.writestr("a/data.pkl", b"\x80\x02N.")
    file.seek(0)
    with pytest.raises(CorruptFileError, match="two entries"):
        pt.load(file)
    data = bytearray(whole)
    data[data.index(struct.pack("<4f", 0, 1, 2, 3)) + 5] ^= 1
    with pytest.raises(CorruptFileError, match="checksum"):
        pt.load(io.BytesIO(bytes(data)))


def test_damaged_streams():
    whole = saved({"a": pt.arange(4.0), "b": pt.ones(3)}, _use_new_zipfile_serialization=False).getvalue()
    for size in range(0, len(whole), 7):
        with pytest.raises(CorruptFileError):
            pt.load(io.BytesIO(whole[:size]))
    huge = whole.replace(b"K\4N", b"J\xff\xff\xff\x7fN", 1)
    assert huge != whole
    with pytest.raises(CorruptFileError, match="larger than the file"):
        pt.load(io.BytesIO(huge))
    with pytest.raises(CorruptFileError, match="does not begin"):
        pt.load(io.BytesIO(pickle.dumps({"a": 1}, protocol=2)))


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "broken.pt"
    path.write_bytes(b"PK\3\4nothing")
    with pytest.raises(CorruptFileError, match=r"broken\.pt is truncated or not a valid PyTorch file"):
        pt.load(path)
    path.write_bytes(archive(b"\x80\x02cos\nsystem\n.").getvalue())
    with pytest.raises(pickle.UnpicklingError, match=r"broken\.pt: the file names os\.system"):
        pt.load(path)
    assert issubclass(CorruptFileError, RuntimeError)
    assert issubclass(CorruptFileError, ValueError)
