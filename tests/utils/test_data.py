"""Datasets, samplers, collation and the loader."""

import collections
import types
from collections import Counter, OrderedDict, namedtuple

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils import data

pytestmark = pytest.mark.core

Point = namedtuple("Point", "x y")


def generator(seed=0):
    return pt.Generator().manual_seed(seed)


def pairs(n=10):
    return data.TensorDataset(pt.arange(n), pt.arange(2.0 * n).reshape(n, 2))


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i * i


class Many(Squares):
    """Counts how samples are fetched."""

    calls = 0

    def __getitems__(self, indices):
        self.calls += 1
        return [i * i for i in indices]


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


class SizedStream(Stream):
    def __len__(self):
        return 4


# Datasets


def test_tensor_dataset():
    ds = pairs()
    assert len(ds) == 10
    assert ds[3][0].item() == 3
    assert ds[-1][1].tolist() == [18, 19]
    with pytest.raises(AssertionError, match="same first size"):
        data.TensorDataset(pt.ones(2), pt.ones(3))
    with pytest.raises(IndexError, match="at least one dimension, got"):
        data.TensorDataset(pt.tensor(1.0))


def test_concat_chain_stack_subset():
    both = Squares(3) + Squares(2)
    assert [both[i] for i in range(5)] == [0, 1, 4, 0, 1]
    assert (both[-1], both[-5]) == (1, 0)
    for bad in (5, -6):
        with pytest.raises(IndexError, match="ConcatDataset"):
            both[bad]
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]
    assert len(SizedStream(1) + SizedStream(1)) == 8
    stack = data.StackDataset(a=Squares(3), b=Many(3))
    assert stack[2] == {"a": 4, "b": 4}
    assert stack.__getitems__([1, 2]) == [{"a": 1, "b": 1}, {"a": 4, "b": 4}]
    subset = data.Subset(data.Subset(Squares(10), [9, 7, 5]), [2, 0])
    assert list(subset.__getitems__([0, 1])) == [25, 81]
    assert subset[1] == 81
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(Squares(1), Squares(2))
    with pytest.raises(AssertionError, match="empty"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Stream(1)])


@pytest.mark.parametrize("kind", [np.int64, np.int32, pt.tensor])
def test_random_split_takes_what_is_an_index(kind):
    assert [len(p) for p in data.random_split(range(10), [kind(8), 2])] == [8, 2]
    for wrong in (kind(-8), np.float64(8), pt.tensor(8.0)):
        with pytest.raises(ValueError, match="lengths must be non-negative ints or fractions"):
            data.random_split(range(10), [2, wrong])


class Named(data.TensorDataset):
    def __getitems__(self, indices):
        return [(float(i), 7.0) for i in indices]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_subclass_that_fetches_batches_itself_is_asked(workers):
    for ds in (Named(pt.arange(4)), data.Subset(Named(pt.arange(4)), range(4))):
        batches = list(data.DataLoader(ds, 2, num_workers=workers))
        assert [[column.tolist() for column in batch] for batch in batches] == [[[0, 1], [7, 7]], [[2, 3], [7, 7]]]


@pytest.mark.parametrize("indices", [
    [0, 2, 1, 3], [np.int64(1), pt.tensor(2), -1, 0], [(0, 1), (1, 0), (3, 1), (2, 0)],
    [[0, 1], [1, 0], [3, 1], [2, 2]], [True] * 4, [slice(0, 2), slice(1, 3), slice(2, 4), slice(0, 2)],
    [pt.tensor([0, 1])] * 4, [..., ..., ..., ...], [None] * 4], ids=str)
def test_a_batch_of_tensors_is_what_its_samples_give(indices):
    """A dataset of tensors gathers a batch at once; a list of indices may mean another thing than each of them."""
    ds = data.TensorDataset(pt.arange(8.0).reshape(4, 2), pt.arange(4 * 2).reshape(4, 2))
    loader = data.DataLoader(ds, 2, sampler=indices)

    def expected(part):
        return data.default_collate([ds[i] for i in part])

    for start, batch in zip((0, 2), loader, strict=True):
        wanted = expected(indices[start:start + 2])
        assert all(a.equal(b) and a.dtype == b.dtype for a, b in zip(batch, wanted, strict=True))


def test_arrays_in_a_dataset_of_tensors_become_tensors():
    ds = data.TensorDataset(np.arange(6.0).reshape(3, 2), pt.arange(3))
    batches = list(data.DataLoader(ds, 2))
    assert [[type(x) for x in batch] for batch in batches] == [[pt.Tensor, pt.Tensor]] * 2
    assert batches[0][0].tolist() == [[0, 1], [2, 3]]


def test_random_split():
    parts = data.random_split(range(10), [3, 7], generator(1))
    assert [len(p) for p in parts] == [3, 7]
    assert sorted(v for p in parts for v in p.indices) == list(range(10))
    again = data.random_split(range(10), [3, 7], generator(1))
    assert again[0].indices == parts[0].indices
    assert [len(p) for p in data.random_split(range(11), [0.5, 0.25, 0.25])] == [
        6,
        3,
        2,
    ]
    with pytest.raises(ValueError, match="expected 10, got 9"):
        data.random_split(range(10), [2, 7])
    with pytest.raises(ValueError, match="between 0 and 1"):
        data.random_split(range(10), [-0.5, 1.5])
    with pytest.warns(UserWarning, match="index 1 is 0"):
        data.random_split(range(1), [0.5, 0.5])


# Samplers


def test_random_sampler():
    sampler = data.RandomSampler(range(50), generator=generator())
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert list(data.RandomSampler(range(50), generator=generator())) == first
    longer = list(data.RandomSampler(range(5), num_samples=12))
    assert len(longer) == 12
    assert set(Counter(longer).values()) <= {2, 3}
    drawn = list(data.RandomSampler(range(5), replacement=True, num_samples=3000))
    # 600 expected of each: five standard deviations are 110.
    assert all(490 < count < 710 for count in Counter(drawn).values())
    with pytest.raises(TypeError, match="replacement"):
        data.RandomSampler(range(5), replacement=1)
    with pytest.raises(ValueError, match="num_samples"):
        data.RandomSampler(range(5), num_samples=0)


def test_weighted_sampler():
    weights = [0.0, 1.0, 3.0]
    drawn = Counter(data.WeightedRandomSampler(weights, 4000, generator=generator()))
    assert drawn[0] == 0
    assert abs(drawn[2] - 3000) < 5 * np.sqrt(4000 * 0.75 * 0.25)
    # Without replacement the first is 2 with probability 3/4.
    g, firsts = generator(), Counter()
    for _ in range(1000):
        picks = list(data.WeightedRandomSampler(weights, 2, False, g))
        assert sorted(picks) == [1, 2]
        firsts[picks[0]] += 1
    assert abs(firsts[2] - 750) < 5 * np.sqrt(1000 * 0.75 * 0.25)
    with pytest.raises(ValueError, match="at most the number of positive weights, 2"):
        data.WeightedRandomSampler(weights, 3, replacement=False)
    for bad in ([[1.0]], [-1.0, 2.0], [0.0], [float("nan")]):
        with pytest.raises(ValueError, match="weights"):
            data.WeightedRandomSampler(bad, 1)


def test_other_samplers():
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    subset = data.SubsetRandomSampler([5, 7, 9], generator())
    assert sorted(subset) == [5, 7, 9]
    batches = data.BatchSampler(iter(range(5)), 2, False)
    assert list(batches) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    for n, size in ((5, 2), (4, 2), (1, 3), (0, 2)):
        for drop in (False, True):
            sampler = data.BatchSampler(range(n), size, drop)
            assert len(sampler) == len(list(sampler))
    with pytest.raises(ValueError, match="batch_size"):
        data.BatchSampler(range(5), True, False)


def test_distributed_sampler_covers_everything():
    for drop_last in (False, True):
        parts = []
        for rank in range(3):
            sampler = data.DistributedSampler(range(10), 3, rank, drop_last=drop_last)
            sampler.set_epoch(2)
            parts.append(list(sampler))
            assert len(sampler) == len(parts[-1]) == (3 if drop_last else 4)
        union = [i for part in parts for i in part]
        assert len(set(union)) == (9 if drop_last else 10)
    with pytest.raises(ValueError, match="Invalid rank 3"):
        data.DistributedSampler(range(10), 3, 3)


# Collation


def test_default_collate():
    batch = data.default_collate(
        [
            {"t": pt.ones(2), "p": Point(1, 2.5), "s": "a", "l": [1, (True, b"x")]},
            {"t": pt.zeros(2), "p": Point(3, 4.5), "s": "b", "l": [2, (False, b"y")]},
        ]
    )
    assert batch["t"].tolist() == [[1, 1], [0, 0]]
    assert type(batch["p"]) is Point
    assert batch["p"].x.dtype == pt.int64
    assert batch["p"].y.dtype == pt.float64
    assert batch["s"] == ["a", "b"]
    assert batch["l"][0].tolist() == [1, 2]
    assert batch["l"][1][0].tolist() == [True, False]
    assert batch["l"][1][1] == (b"x", b"y")  # a column, as in PyTorch
    ordered = data.default_collate([OrderedDict(b=1, a=2)])
    assert type(ordered) is OrderedDict


def test_collate_numpy():
    batch = data.default_collate([np.float32(1), np.float32(2)])
    assert batch.dtype == pt.float32
    assert batch.tolist() == [1, 2]
    batch = data.default_collate(
        [np.ones((2, 1), np.int16), np.zeros((2, 1), np.int16)]
    )
    assert batch.dtype == pt.int16
    assert batch.shape == (2, 2, 1)
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        data.default_collate([np.array(["a"])])
    with pytest.raises(TypeError, match="found <class 'object'>"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1], [1, 2]])


def test_default_convert():
    converted = data.default_convert({"a": np.arange(2), "b": Point(np.ones(1), "x")})
    assert converted["a"].tolist() == [0, 1]
    assert type(converted["b"]) is Point
    assert converted["b"].x.tolist() == [1]
    assert data.default_convert("text") == "text"
    assert isinstance(data.default_convert((np.ones(1),)), list)


# Loader


def values(loader):
    return [batch.tolist() for batch in loader]


def test_batches():
    assert values(data.DataLoader(Squares(5), 2)) == [[0, 1], [4, 9], [16]]
    assert values(data.DataLoader(Squares(5), 2, drop_last=True)) == [[0, 1], [4, 9]]
    assert list(data.DataLoader(Squares(3), batch_size=None)) == [0, 1, 4]
    assert values(data.DataLoader(Squares(5), batch_sampler=[[4], [0, 1]])) == [
        [16], [0, 1],
    ]  # fmt: skip
    assert values(data.DataLoader(Squares(5), sampler=[3, 1])) == [[9], [1]]
    assert list(data.DataLoader(Squares(4), 2, collate_fn=tuple)) == [(0, 1), (4, 9)]
    for n, size, drop in ((5, 2, False), (5, 2, True), (0, 2, False)):
        loader = data.DataLoader(Squares(n), size, drop_last=drop)
        assert len(loader) == len(list(loader)) == len(iter(loader))


def test_shuffle_depends_on_the_generator_only():
    def order(seed):
        loader = data.DataLoader(
            Squares(50), 7, shuffle=True, generator=generator(seed)
        )
        return [v for b in loader for v in b.tolist()]

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == [i * i for i in range(50)]
    pt.manual_seed(3)
    first = values(data.DataLoader(Squares(50), 7, shuffle=True))
    pt.manual_seed(3)
    assert values(data.DataLoader(Squares(50), 7, shuffle=True)) == first


def test_streams():
    assert values(data.DataLoader(Stream(5), 2)) == [[0, 1], [2, 3], [4]]
    assert values(data.DataLoader(Stream(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert values(data.DataLoader(Stream(4), 2)) == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Stream(2), None)) == [0, 1]
    assert len(data.DataLoader(SizedStream(4), 3)) == 2
    with pytest.raises(TypeError):
        len(data.DataLoader(Stream(4), 3))
    with pytest.warns(UserWarning, match="reported to be 4, but 5"):
        list(data.DataLoader(SizedStream(5), 1))


def test_getitems_fetches_a_batch_in_one_call():
    ds = Many(6)
    assert values(data.DataLoader(ds, 3)) == [[0, 1, 4], [9, 16, 25]]
    assert ds.calls == 2

    class Short(Squares):
        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match="Expected 2, got 1"):
        list(data.DataLoader(Short(2), 2))


@pytest.mark.parametrize("shuffle", [False, True])
def test_gathered_batches_equal_collated_ones(shuffle):
    class Plain(data.TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)

    x, y = pt.arange(12.0).reshape(6, 2).t()[:, :5].t(), pt.arange(5)
    for wrap in (lambda d: d, lambda d: data.Subset(d, [4, 2, 0])):
        loaders = [
            data.DataLoader(wrap(cls(x, y)), 2, shuffle=shuffle, generator=generator())
            for cls in (data.TensorDataset, Plain)
        ]
        for a, b in zip(*loaders, strict=True):
            assert type(a) is type(b) is list
            for s, t in zip(a, b, strict=True):
                assert s.dtype == t.dtype
                assert np.array_equal(s.numpy(), t.numpy())


def test_gather_gives_copies():
    ds = data.TensorDataset(pt.zeros(4))
    (batch,) = next(iter(data.DataLoader(ds, 4)))
    batch.add_(1)
    assert ds.tensors[0].tolist() == [0, 0, 0, 0]


def test_overridden_getitem_is_honoured():
    class Shifted(data.TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)[0] + 100

    loader = data.DataLoader(Shifted(pt.arange(2)), 2)
    assert values(loader) == [[100, 101]]


def test_bad_options():
    for options, text in [
        ({"num_workers": -1}, "non-negative"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "prefetch_factor"),
        ({"persistent_workers": True}, "persistent_workers"),
        ({"shuffle": True, "sampler": [0]}, "mutually exclusive"),
        ({"batch_sampler": [[0]], "drop_last": True}, "mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive"),
        ({"batch_size": 0}, "batch_size"),
    ]:
        with pytest.raises(ValueError, match=text):
            data.DataLoader(Squares(3), **options)
    with pytest.raises(ValueError, match="shuffle"):
        data.DataLoader(Stream(3), shuffle=True)
    with pytest.raises(ValueError, match="sampler"):
        data.DataLoader(Stream(3), sampler=[1])
    loader = data.DataLoader(Squares(3))
    with pytest.raises(ValueError, match="should not be set"):
        loader.batch_size = 4


def test_worker_arguments_are_accepted():
    loader = data.DataLoader(
        Squares(2), worker_init_fn=print, multiprocessing_context=None, pin_memory=False,
        timeout=0, prefetch_factor=None, persistent_workers=False,
    )  # fmt: skip
    assert values(loader) == [[0], [1]]
    assert data.get_worker_info() is None


class Pinned:
    """Has memory to be pinned, as a tensor has."""

    def pin_memory(self):
        return "pinned"


class MadeOfTwo(list):
    def __init__(self, first, second):
        super().__init__([first, second])


def test_whatever_holds_tensors_is_pinned():
    from ptcore.utils.data.dataloader import _pin

    Pair = collections.namedtuple("Pair", "a b")
    default = collections.defaultdict(list, a=Pinned())
    for batch, want in (
        (Pinned(), "pinned"), ([Pinned(), 1], ["pinned", 1]), ((Pinned(),), ("pinned",)),
        (Pair(Pinned(), b"b"), Pair("pinned", b"b")), ({"a": {"b": Pinned()}}, {"a": {"b": "pinned"}}),
        (default, collections.defaultdict(list, a="pinned")),
        (collections.UserDict(a=Pinned()), collections.UserDict(a="pinned")),
        (collections.OrderedDict(b=Pinned(), a=0), collections.OrderedDict(b="pinned", a=0)),
        (types.MappingProxyType({"a": Pinned()}), types.MappingProxyType({"a": "pinned"})),
        (collections.deque([Pinned()], 3), collections.deque(["pinned"], 3)),
        (collections.UserList([Pinned()]), collections.UserList(["pinned"])),
        (MadeOfTwo(Pinned(), 2), MadeOfTwo("pinned", 2)), ("text", "text"), (range(2), [0, 1]), (None, None),
    ):
        found = _pin(batch)
        assert found == want
        assert type(found) is type(want)
    for kind in (dict, list, collections.UserDict, MadeOfTwo, Pair):
        own = type("Own", (kind,), {"pin_memory": lambda self: "own"})
        assert _pin(own(1, 2) if kind in (MadeOfTwo, Pair) else own()) == "own"
    assert _pin(default).default_factory is list
    assert isinstance(default["a"], Pinned)             # the batch itself is as it was
