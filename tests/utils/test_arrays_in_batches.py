"""NumPy's arrays and other objects in the batches of workers: they arrive as they were when the batch was made."""
import gc
import os
import random
import sys
import time
import weakref
from collections import namedtuple

import numpy as np
import pytest

import ptcore
from ptcore.utils.data import DataLoader, Dataset, IterableDataset

pytestmark = [pytest.mark.counts, pytest.mark.timeout(120),
              pytest.mark.skipif(sys.platform != "linux", reason="forks, and counts by /proc")]
N = 9000                    # elements of a sample: more than goes inside a message
ONES = np.ones(N)
Point = namedtuple("Point", "x y")


def same(batch):
    return batch


# -- what is in the samples, and what they are when they arrive ------------------------------------

FORMS = {
    "array": lambda i: ONES * i,
    "part": lambda i: (np.ones(N + 1000) * i)[500:-500],
    "small part": lambda i: (np.ones(8 * N) * i)[:N],
    "fortran": lambda i: (np.ones((90, 100)) * i).T,
    "steps": lambda i: (np.ones(2 * N) * i)[::2],
    "backwards": lambda i: (ONES * i)[::-1],
    "zeros": lambda i: np.zeros(N) + i,
    "small integers": lambda i: np.full(8 * N, i, "u2"),
    "records": lambda i: np.full(N, np.array((i, i), "f4,i4")),
    "field": lambda i: np.full(N, np.array((i, i), "f8,i8"))["f0"],
    "dates": lambda i: np.full(N, i, "M8[s]"),
    "list": lambda i: [ONES * i, ONES * i],
    "dict": lambda i: {"x": ONES * i, "y": {"z": (ONES * i,)}},
    "named": lambda i: Point(ONES * i, np.float32(i)),
    "twice": lambda i: [ONES * i] * 2,
    "views": lambda i: (lambda a: [a[:N], a[N:]])(np.ones(2 * N) * i),
    "tensor": lambda i: ptcore.from_numpy(ONES * i),
    "tensors": lambda i: (lambda t: [t, t[5:]])(ptcore.from_numpy(ONES * i)),
    "both": lambda i: (lambda a: [a, ptcore.from_numpy(a)])(ONES * i),
    "turned": lambda i: ptcore.from_numpy(np.ones((90, 100)) * i).t(),
}


class Forms(Dataset):
    def __init__(self, form, n=400):
        self.form, self.n = form, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return FORMS[self.form](i)


def leaves(x):
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)) and not isinstance(x, np.ndarray):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def value_of(leaf):
    """The only value of an array, or an error."""
    a = np.asarray(leaf)
    if a.dtype.names:
        a = a[a.dtype.names[0]]
    a = a.astype(np.float64)
    assert a.size == 1 or a.size >= N - 5
    assert a.min() == a.max()
    return a.min()


@pytest.mark.parametrize("collate", [same, None], ids=["as they are", "converted"])
@pytest.mark.parametrize("form", FORMS)
def test_all_forms(form, collate):
    """What is held for a random while stays; what is written to is the loop's own."""
    if collate is None and form in ("records", "dates"):
        with pytest.raises(TypeError):
            list(DataLoader(Forms(form, 4), batch_size=None, num_workers=1))
        return
    rng, held = random.Random(1), []
    for i, sample in enumerate(DataLoader(Forms(form), batch_size=None, num_workers=2, collate_fn=collate)):
        want = FORMS[form](i)
        for a, b in zip(leaves(sample), leaves(want), strict=True):
            assert collate is None or type(a) is type(b)
            assert a.shape == b.shape
            assert value_of(a) == value_of(b)
        held.append((i, sample))
        if i % 7 == 3:
            for leaf in leaves(held.pop()[1]):
                if not isinstance(leaf, np.generic):
                    leaf[...] = 0
        while len(held) > rng.randrange(1, 9):
            j, sample = held.pop(rng.randrange(len(held)))
            want = leaves(FORMS[form](j))
            assert [value_of(leaf) for leaf in leaves(sample)] == [value_of(leaf) for leaf in want]
        del sample
    assert i == 399


class Held(Dataset):
    """The dataset holds each array in some way, and writes to it later; the last samples tell what it holds."""

    def __init__(self, way):
        self.way, self.held, self.buffer = way, [], None

    def __len__(self):
        return 300

    def __getitem__(self, i):
        for old in self.held[-3:]:
            old += 1000                                 # nobody else may see it
        array = ONES * i
        keep, sample = {
            "itself": lambda: (array, array),
            "a part": lambda: (array[5:], array),
            "the whole": lambda: (array, array[:]),
            "in a list": lambda: (array, [array, i]),
            "a transpose": lambda: (array.reshape(90, 100).T, array),
            "a memoryview": lambda: (np.asarray(memoryview(array)), array),
            "as a tensor": lambda: (ptcore.from_numpy(array).numpy(), array),
            "of a tensor": lambda: (array, ptcore.from_numpy(array)),
        }[self.way]()
        self.held.append(keep)
        return i, sample


@pytest.mark.parametrize("way", ["itself", "a part", "the whole", "in a list", "a transpose", "a memoryview",
                                 "as a tensor", "of a tensor"])
def test_what_the_dataset_holds_is_copied(way):
    held = []
    for i, sample in DataLoader(Held(way), batch_size=None, num_workers=1, collate_fn=same):
        array = np.asarray(sample[0] if isinstance(sample, list) else sample)
        held.append((i, array))
        for j, kept in held[-5:]:
            assert (kept == j).all()
        array[:] = i                                    # nor the dataset what is written here


class HeldList(Dataset):
    """The container is what the dataset holds."""

    def __init__(self):
        self.lists = []

    def __len__(self):
        return 300

    def __getitem__(self, i):
        for old in self.lists[-3:]:
            old[0] += 1000
        self.lists.append([ONES * i, i])
        return self.lists[-1]


def test_what_a_held_list_holds_is_copied():
    held = []
    for i, (array, k) in enumerate(DataLoader(HeldList(), batch_size=None, num_workers=1, collate_fn=same)):
        assert i == k
        held.append((i, array))
        for j, kept in held[-5:]:
            assert (kept == j).all()


class Stream(IterableDataset):
    """A generator whose variable holds the array, and which writes to it when it goes on."""

    def __iter__(self):
        for i in range(300):
            array = ONES * i
            yield array
            array += 1000


@pytest.mark.parametrize("collate", [same, None])
def test_a_stream_that_goes_on_writing(collate):
    held = []
    for i, array in enumerate(DataLoader(Stream(), batch_size=None, num_workers=1, collate_fn=collate)):
        held.append((i, np.asarray(array)))
        for j, kept in held[-5:]:
            assert (kept == j).all()


class Refilled(Dataset):
    """One array for all samples, filled anew for each."""

    def __init__(self, small):
        self.buffer = np.empty(5 if small else N)

    def __len__(self):
        return 300

    def __getitem__(self, i):
        self.buffer[:] = i
        return self.buffer


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("collate", [same, None])
def test_an_array_that_is_filled_anew(small, collate):
    for i, array in enumerate(DataLoader(Refilled(small), batch_size=None, num_workers=2, collate_fn=collate)):
        assert (np.asarray(array) == i).all()


class Failing(Dataset):
    """Arrays that go with an exception on its way, and arrays in exceptions."""

    def __len__(self):
        return 200

    def __getitem__(self, i):
        a = ONES * i
        if i % 3 == 0:
            try:
                b = a + 1
                raise KeyError(b)
            except KeyError as error:
                first = error.args[0][0]
                del a, b
                raise ValueError(f"number {first}") from None
        return a


def test_exceptions_beside_it():
    loader = iter(DataLoader(Failing(), batch_size=None, num_workers=2, collate_fn=same))
    for i in range(200):
        if i % 3 == 0:
            with pytest.raises(ValueError, match=f"number {i + 1}"):
                next(loader)
        else:
            assert value_of(next(loader)) == i


class Forks(Dataset):
    """A child has a copy of the arrays that there are."""

    def __len__(self):
        return 120

    def __getitem__(self, i):
        x, y = ONES * i, np.zeros(N) + i
        if i >= 60:
            told, tell = os.pipe()
            child = os.fork()
            if child == 0:
                same = (x == i).all() and (y == i).all()
                x[:] = -1
                z = y * 2
                os.write(tell, b"x")
                time.sleep(0.01)
                os._exit(0 if same and (x == -1).all() and (z == 2 * i).all() else 1)
            os.read(told, 1)
            os.close(told)
            os.close(tell)
            assert (x == i).all()
            x += 1
            y += 1
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            x -= 1
        return x


def test_children_of_the_worker():
    for i, sample in enumerate(DataLoader(Forks(), batch_size=None, num_workers=1, collate_fn=same)):
        assert value_of(sample) == i


def test_nothing_is_left():
    def count():
        gc.collect()
        with open("/proc/self/maps") as f:
            return len(os.listdir("/proc/self/fd")), sum("memfd:ptcore" in line for line in f)

    def use(form):
        for i, sample in enumerate(DataLoader(Forms(form, 100), batch_size=None, num_workers=2, collate_fn=same)):
            assert value_of(leaves(sample)[0]) == i

    use("array")
    before = count()
    for form in ("array", "list", "records", "part"):
        use(form)
    assert count() == before


def by_names(worker):
    ptcore.multiprocessing.set_sharing_strategy("file_system")


class Mixed(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return {"x": ONES * i, "y": np.full(5, i), "z": ptcore.full((N,), float(i)), "t": "a" * 40_000,
                "r": np.full(N, np.array((i, i), "f8,i8")), "b": b"b" * 200_000}


@pytest.mark.parametrize("init", [None, by_names])
def test_without_descriptors(init):
    """As where pipes carry none: arrays go by the names of their segments."""
    for i, sample in enumerate(DataLoader(Mixed(), batch_size=None, num_workers=1, collate_fn=same,
                                          worker_init_fn=init)):
        assert (sample["x"] == i).all()
        assert sample["y"].tolist() == [i] * 5
        assert bool((sample["z"] == i).all())
        assert (sample["r"]["f0"] == i).all()
        assert len(sample["t"]) == 40_000
        assert len(sample["b"]) == 200_000


class OfAllKinds(Dataset):
    """Arrays of all kinds, by name."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        size = self.sizes[i]
        x = np.arange(size, dtype=np.float64)
        found = {f"of {d}": x.astype(d) for d in ("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8",
                                                  "g", "F", "D", ">i4", ">f8", "M8[s]", "m8[ms]", "S5", "U7", "V3")}
        return found | {
            "matrix": x.reshape(1, -1), "fortran": np.asfortranarray(np.ones((size, 2))), "steps": x[::3],
            "backwards": x[::-1], "spread": np.broadcast_to(x[:1], (size,)), "one": x[size // 2],
            "permuted": np.zeros((size, 2, 3)).transpose(1, 2, 0), "point": np.array(3.5), "none": x[:0],
            "objects": np.array([{"a": 1}, None] * 3), "records": np.zeros(size, "f4,i8"),
            "field": np.zeros(size, "f4,i8")["f0"], "unaligned": np.zeros(8 * size + 1, "u1")[1:].view("f8"),
            "kind": x.view(MarkedArray), "locked": np.frombuffer(x.tobytes()), "masked": np.ma.masked_array(x, x > 3)}


class MarkedArray(np.ndarray):
    """An array of another class."""


def test_arrays_of_all_kinds():
    dataset = OfAllKinds([1, 12, 4096, 50_000])
    for i, got in enumerate(DataLoader(dataset, batch_size=None, num_workers=1, collate_fn=same)):
        for name, want in dataset[i].items():
            found = got[name]
            assert type(found) is type(want)
            assert found.dtype == want.dtype
            assert found.dtype.byteorder == want.dtype.byteorder
            assert found.shape == want.shape
            assert found.tolist() == want.tolist()


class Types(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        n = N if i % 2 else 10
        return [np.arange(n).astype(d) for d in ("l", "i", "L", "?", "d")] + [
            np.zeros(n, np.dtype("i4", metadata={"unit": "m"}))]


def test_types_are_the_same():
    for sample in DataLoader(Types(), batch_size=None, num_workers=1, collate_fn=same):
        assert [x.dtype.char for x in sample] == [*"liL?d", "i"]
        assert isinstance(sample[0][0], np.dtype("l").type)
        assert dict(sample[-1].dtype.metadata) == {"unit": "m"}


class ForksWhenRead:
    def __init__(self, process):
        self.process = process

    def __setstate__(self, state):
        if os.getpid() == state["process"]:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)


class Forking(Dataset):
    def __init__(self):
        self.process = os.getpid()

    def __len__(self):
        return 30

    def __getitem__(self, i):
        t, a = ptcore.full((3 * N,), float(i)), np.full(N, i)
        return t[:N], ForksWhenRead(self.process), t[N:], a


def test_a_fork_while_a_letter_is_read():
    held = []
    for i, sample in enumerate(DataLoader(Forking(), batch_size=None, num_workers=1, collate_fn=same)):
        held.append((i, sample))
        for j, (first, _, second, array) in held[-4:]:
            assert value_of(first) == value_of(second) == value_of(array) == j
    assert len(held) == 30


class Long(Dataset):
    """Batches that are read late, and long errors."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        if i % 4 == 2:
            raise ValueError(f"number {i}" + "x" * 100_000)
        return Bad("read, long", i) if i % 4 == 3 else b"b" * 100_000 if i % 4 == 1 else np.full(N, i)


def test_long_batches_are_pinned(monkeypatch):
    """The thread that copies batches to page-locked memory reads what is read late."""
    from ptcore.utils.data import dataloader

    pinned = []
    monkeypatch.setattr(ptcore.cuda, "is_available", lambda: True)
    monkeypatch.setattr(dataloader, "_pin", lambda batch: (pinned.append(type(batch)), batch)[1])
    batches = iter(DataLoader(Long(), batch_size=None, num_workers=2, collate_fn=same, pin_memory=True))
    for i in range(12):
        if i % 4 > 1:
            with pytest.raises(ValueError, match=f"number {i}"):
                next(batches)
        else:
            batch = next(batches)
            assert batch == b"b" * 100_000 if i % 4 else value_of(batch) == i
    assert pinned.count(np.ndarray) == pinned.count(bytes) == 3
    workers = weakref.ref(batches._workers)
    del batches, batch
    assert workers() is None


class Bad:
    """Cannot be read, or cannot even be packed, with an error that cannot be packed either."""

    def __init__(self, way, i):
        self.way, self.i = way, i

    def __reduce__(self):
        if self.way == "packed":
            class Local(Exception):
                pass
            raise Local(f"number {self.i}")
        return fail, (self.i, bytes(100_000 if self.way == "read, long" else 10))


def fail(i, data):
    raise ValueError(f"number {i}")


class SomeBad(Dataset):
    def __init__(self, way):
        self.way = way

    def __len__(self):
        return 100

    def __getitem__(self, i):
        return [ONES * i, Bad(self.way, i) if i % 7 == 2 else i, ptcore.full((N,), float(i)), b"b" * 50_000,
                np.full(N, np.array((i, i), "f4,i8"))]


@pytest.mark.parametrize("way", ["read", "read, long", "packed"])
def test_what_cannot_be_sent_is_told_at_its_turn(way):
    gc.collect()
    loader = DataLoader(SomeBad(way), batch_size=None, num_workers=2, collate_fn=same, persistent_workers=True)
    for _ in range(3):
        batches = iter(loader)
        for i in range(100):
            if i % 7 == 2:
                with pytest.raises(RuntimeError if way == "packed" else ValueError, match=f"number {i}"):
                    next(batches)
                continue
            array, number, tensor, data, records = next(batches)
            assert value_of(array) == value_of(records) == number == i
            assert bool((tensor == i).all())
            assert data == b"b" * 50_000
    workers = weakref.ref(batches._workers)
    del batches, loader
    assert workers() is None               # no error holds a frame that holds it
