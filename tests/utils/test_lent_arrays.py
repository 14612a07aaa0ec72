"""NumPy's arrays of workers in lent memory: what nobody else holds is sent without a copy, all else is copied."""
import gc
import os
import random
import sys
import threading
import time
import warnings
import weakref
from collections import namedtuple

import numpy as np
import pytest

import ptcore
from ptcore.multiprocessing import _segments
from ptcore.utils.data import DataLoader, Dataset, IterableDataset

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120),
              pytest.mark.skipif(sys.platform != "linux", reason="segments are lent by descriptors, on Linux alone")]
N = 9000                    # elements of a sample: more than goes inside a message
ONES = np.ones(N)
Point = namedtuple("Point", "x y")


def same(batch):
    return batch


def is_lent(array):
    return np._core.multiarray.get_handler_name(array) == "ptcore_lent" and array.ctypes.data % 4096 == 0


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


# -- without a copy, where that is safe ------------------------------------------------------------

class Counted(Dataset):
    """A sample and whether new arrays of its size lie in lent memory, and how many copies were made before it."""

    def __init__(self, form):
        self.form = form

    def __len__(self):
        return 600

    def __getitem__(self, i):
        if not hasattr(self, "copies"):
            self.copies, find_room = [], _segments.find_room
            _segments.find_room = lambda nbytes: (self.copies.append(nbytes), find_room(nbytes))[1]
        return FORMS[self.form](i), is_lent(np.empty(N)), len(self.copies)


@pytest.mark.parametrize("form", ["array", "list", "dict", "named", "part", "fortran", "steps", "tensor"])
def test_computed_arrays_are_not_copied(form):
    copies, lent = [], 0
    for i, (sample, is_so, before) in enumerate(DataLoader(Counted(form), batch_size=None, num_workers=1,
                                                           collate_fn=same)):
        assert [value_of(leaf) for leaf in leaves(sample)] == [i] * len(leaves(sample))
        copies.append(before)
        lent += is_so
        del sample
    assert len(copies) == 600
    assert copies[-1] < 150             # until the first ones came back
    assert form in ("part", "steps") or lent > 300


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


# -- the memory itself ------------------------------------------------------------------------------

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


class Memory(Dataset):
    """All that NumPy does with memory: zeros, growth, shrinking, keeping, threads."""

    def __init__(self, n=500):
        self.n, self.kept = n, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        zeros = np.zeros(N + int(rng.integers(-900, 900)))
        assert not zeros.any()
        zeros[:] = 7
        full = np.full(N, float(i))
        if i % 3 == 0:
            full.resize(2 * N, refcheck=False)
            assert (full[:N] == i).all()
            assert not full[N:].any()
            full.resize(N, refcheck=False)
            assert (full == i).all()
        if i % 4 == 0:
            self.kept.append((i, np.full(N, float(i))))
        if len(self.kept) > 100:
            self.kept.pop(rng.integers(100))
        for j, array in self.kept[::9]:
            assert (array == j).all()
        if i % 50 == 0:
            threads = [threading.Thread(target=self.churn, args=(i,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        sample = np.sort(np.concatenate([full[: N // 2], full[N // 2:]]))[None] + 0
        return sample if i % 2 else ptcore.from_numpy(sample)

    def churn(self, seed):
        rng = random.Random(seed)
        held = []
        for k in range(200):
            held.append((k, np.full(N, k)))
            if len(held) > 5:
                j, array = held.pop(rng.randrange(5))
                assert (array == j).all()


def test_memory_of_all_kinds():
    for i, sample in enumerate(DataLoader(Memory(), batch_size=None, num_workers=2, collate_fn=same)):
        assert value_of(sample) == i


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


class KeepsAll(Dataset):
    """A cache of arrays of its own, more than are lent at once, with the descriptors that the worker has."""

    def __init__(self):
        self.kept = []

    def __len__(self):
        return 600

    def __getitem__(self, i):
        self.kept.append(ONES * i)
        for j in range(0, i, 37):
            assert (self.kept[j] == j).all()
        return self.kept[i], ONES * -i, len(os.listdir("/proc/self/fd"))


def test_a_cache_of_arrays():
    loader = DataLoader(KeepsAll(), batch_size=None, num_workers=1, collate_fn=same)
    for i, (kept, new, descriptors) in enumerate(loader):
        assert value_of(kept) == i
        assert value_of(new) == -i
        assert descriptors < 200


class Tells(Dataset):
    """Tells who gives arrays their memory."""

    def __len__(self):
        return 200

    def __getitem__(self, i):
        names = []
        thread = threading.Thread(target=lambda: names.append(np._core.multiarray.get_handler_name(np.empty(N))))
        thread.start()
        thread.join()
        return np._core.multiarray.get_handler_name(np.empty(N)), *names, ONES * i


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_only_workers_are_told(context):
    before = np._core.multiarray.get_handler_name()
    for worker, thread, array in DataLoader(Tells(), batch_size=None, num_workers=1, collate_fn=same,
                                            multiprocessing_context=context):
        assert worker == "ptcore_lent"
        assert thread == before
        assert np._core.multiarray.get_handler_name(array.copy()) == before
    assert np._core.multiarray.get_handler_name() == before


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


class Outside(Dataset):
    """NumPy asks for memory while the GIL is not held."""

    text = " ".join(map(str, range(10_000)))

    def __len__(self):
        return 200

    def __getitem__(self, i):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.full(4096, i), np.fromstring(self.text, sep=" ")


def test_memory_without_the_gil():
    for i, (full, numbers) in enumerate(DataLoader(Outside(), batch_size=None, num_workers=1, collate_fn=same)):
        assert (full == i).all()
        assert (numbers == np.arange(10_000)).all()


class Unwinding(Dataset):
    """A block of ordinary memory at the beginning of a page is freed while an exception is on its way."""

    def __len__(self):
        return 160

    def __getitem__(self, i):
        if i < 40:
            return np.arange(N) + i
        if i % 2:
            raise KeyError("mine")
        self.kept = [np.arange(N) + i for _ in range(3)]
        many = [np.empty(300) for _ in range(3000)]
        return next((x for x in many if x.ctypes.data % 4096 == 0), None)


def test_memory_while_an_exception_is_on_its_way():
    loader = iter(DataLoader(Unwinding(), batch_size=2, num_workers=1, collate_fn=same))
    for _ in range(20):
        next(loader)
    for _ in range(60):
        with pytest.raises(KeyError, match="mine"):
            next(loader)


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
    crew = weakref.ref(batches._crew)
    del batches, batch
    assert crew() is None


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
    crew = weakref.ref(batches._crew)
    del batches, loader
    assert crew() is None               # no error holds a frame that holds it
