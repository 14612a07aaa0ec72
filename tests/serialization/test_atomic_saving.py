"""What stands under a name when saving to it is cut short: by a kill, a full disk, a limit. Names of no plain files."""
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import ptcore as pt

pytestmark = [pytest.mark.counts,
              pytest.mark.skipif(os.name != "posix", reason="signals, limits and pipes of POSIX")]

KINDS = ["x.npz", "x.safetensors", "x.pt", "sharded"]


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """(path to save to, options, path to load from)"""
    if request.param == "sharded":
        return tmp_path / "y.safetensors", {"max_shard_size": 600_000}, tmp_path / "y.safetensors.index.json"
    return tmp_path / request.param, {}, tmp_path / request.param


SAVER = """
import sys, ptcore as pt
n, path, options = 0, sys.argv[1], eval(sys.argv[2])
while True:
    n += 1
    pt.save({'n': n, 'w': pt.full((100_000,), float(n)), 'v': pt.full((100_000,), float(n))}, path, **options)
    print(n, flush=True)
"""


@pytest.mark.slow
def test_killed_while_writing(place):
    """Killed at random moments of saving again and again: what is there is what the last save that returned wrote, or
    the next one, whole. A later save removes what was left."""
    path, options, load = place
    rng = random.Random(0)
    for _ in range(25):
        process = subprocess.Popen([sys.executable, "-P", "-c", SAVER, str(path), repr(options)],
                                   stdout=subprocess.PIPE, text=True)
        told = [process.stdout.readline()]
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        done = int(told[-1])
        loaded = pt.load(load)
        assert loaded["n"] in (done, done + 1)
        assert loaded["w"].eq(loaded["n"]).all()
        assert loaded["v"].eq(loaded["n"]).all()
    left = [name for name in os.listdir(path.parent) if name.endswith(".tmp")]
    assert 0 < len(left) <= 25
    for name in left:
        os.utime(path.parent / name, (1, 1))
    pt.save({"n": 0, "w": pt.zeros(200_000), "v": pt.zeros(200_000)}, path, **options)
    assert sorted(name.rpartition(".")[2] for name in os.listdir(path.parent)) == (
        ["json", "safetensors", "safetensors"] if options else [path.suffix[1:]])


LIMITED = """
import resource, sys, ptcore as pt
path, options = sys.argv[1], eval(sys.argv[2])
obj = {k: pt.ones(n) for k, n in {"a": 100_000, "b": 149_000, "c": 100_000}.items()}
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))
try:
    pt.save(obj, path, **options)
except OSError as error:
    print(error.strerror)
"""


def test_a_file_that_may_not_grow(place):
    """The limit, as a full disk, stops writing in the middle: the old files stay, nothing else."""
    path, options, load = place
    pt.save({"old": pt.zeros(10), "more": pt.zeros(10)}, path, **(options and {"max_shard_size": 40}))
    before = {each: each.read_bytes() for each in path.parent.iterdir()}
    done = subprocess.run([sys.executable, "-P", "-c", LIMITED, str(path), repr(options)], stdout=subprocess.PIPE,
                          text=True)
    assert done.stdout.strip() == os.strerror(errno.EFBIG)
    assert {each: each.read_bytes() for each in path.parent.iterdir()} == before
    assert pt.load(load)["old"].tolist() == [0.0] * 10


def test_a_shard_that_fails_takes_the_others_along(tmp_path, monkeypatch):
    """On a full disk they would fill it."""
    path = tmp_path / "x.safetensors"
    synced, fsync = [], os.fsync

    def fails(descriptor):
        synced.append(descriptor)
        if len(synced) == 5:        # of the third file: each has its own and its folder's
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space"):
        pt.save({k: pt.ones(10) for k in "abcd"}, path, max_shard_size=40)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    """The error names the file that was asked for."""
    path = tmp_path / "x.pt"

    def refused(name, *rest, **options):
        if str(name).endswith(".tmp"):
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return open(name, *rest, **options)

    pt.save({"a": pt.ones(2)}, path)
    monkeypatch.setattr("ptcore._atomic.open", refused, raising=False)
    with pytest.raises(PermissionError, match=f"it replaces, and {tmp_path} cannot be written to") as e:
        pt.save({"a": pt.zeros(2)}, path)
    assert e.value.filename == str(path)
    monkeypatch.undo()
    assert pt.load(path)["a"].tolist() == [1, 1]


def test_folders_that_cannot_be_synced(tmp_path, monkeypatch):
    """As some network file systems have them: the file is there all the same."""
    import stat
    fsync = os.fsync

    def refuses(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuses)
    pt.save([1], tmp_path / "x.pt")
    assert pt.load(tmp_path / "x.pt") == [1]


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".safetensors"])
def test_pipes_and_devices_keep_their_place(tmp_path, suffix):
    """Renaming over /dev/null would take it away from everyone."""
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    got = []

    def read():
        with open(path, "rb") as f:
            got.append(f.read())

    reader = threading.Thread(target=read)
    reader.start()
    pt.save({"a": pt.arange(4.0)}, path)
    reader.join()
    assert os.listdir(tmp_path) == [path.name]
    assert path.is_fifo()
    plain = tmp_path / f"plain{suffix}"
    plain.write_bytes(got[0])
    assert pt.load(plain)["a"].tolist() == [0, 1, 2, 3]


def test_names(tmp_path):
    long = tmp_path / ("ü" * 120 + ".pt")
    pt.save([1], long)
    pt.save([2], long)
    assert pt.load(long) == [2]
    assert os.listdir(tmp_path) == [long.name]
    with pytest.raises(IsADirectoryError, match=f"'{tmp_path}'"):
        pt.save([1], tmp_path)
    assert os.listdir(tmp_path) == [long.name]


def test_shards_of_other_models_stay(tmp_path):
    """What a save removes is what the index of its own name lists."""
    a = {f"a{k}": pt.full((10,), float(k)) for k in range(3)}
    b = {"b": pt.zeros(4)}
    dated, plain = str(tmp_path / "run-20261130.safetensors"), str(tmp_path / "run.safetensors")
    pt.save(a, dated, max_shard_size=40)
    pt.save(b, plain)
    assert pt.load(dated + ".index.json")["a2"].tolist() == [2.0] * 10
    pt.save(a, plain, max_shard_size=40)
    pt.save(b, plain, max_shard_size=8)                 # one file of more than the bound, and an index
    assert pt.load(dated + ".index.json")["a1"].tolist() == [1.0] * 10
    assert pt.load(plain + ".index.json")["b"].tolist() == [0.0] * 4
    left = sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("run-") and "20261130" not in p.name)
    assert len(left) == 1


def test_an_index_that_names_other_files_removes_none(tmp_path):
    keep = tmp_path / "notes.txt"
    keep.write_text("mine")
    (tmp_path / "x.safetensors.index.json").write_text('{"weight_map": {"a": "notes.txt", "b": "../y", "c": 3}}')
    pt.save({"a": pt.ones(2)}, str(tmp_path / "x.safetensors"))
    assert keep.read_text() == "mine"


def test_shards_beside_a_name_that_is_a_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "model").symlink_to(tmp_path / "data")
    path = str(tmp_path / "model.safetensors")
    pt.save({k: pt.ones(10) for k in "abc"}, path, max_shard_size=40)
    assert not list((tmp_path / "data").iterdir())
    assert pt.load(path + ".index.json")["c"].tolist() == [1.0] * 10


def test_a_first_tensor_without_elements(tmp_path):
    path = str(tmp_path / "x.safetensors")
    pt.save({"empty": pt.empty(0), "ones": pt.ones(100)}, path, max_shard_size=100)
    found = pt.load(path + ".index.json")
    assert found["empty"].shape == (0,) and found["ones"].sum() == 100
