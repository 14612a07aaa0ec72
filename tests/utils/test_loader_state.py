"""State of a DataLoader: the rest of a pass after a restart is what it would have been."""
import copy
import pickle
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils import data

pytestmark = pytest.mark.core

N, BATCH = 23, 4


class Shuffled(data.Sampler):
    """An order from Python's and NumPy's global generators."""

    def __iter__(self):
        order = list(range(N))
        random.shuffle(order)
        np.random.shuffle(order)            # noqa: NPY002
        return iter(order)

    def __len__(self):
        return N


class Placed(data.Sampler):
    """Keeps its own place, and draws in the middle of a pass."""

    def __init__(self):
        self.place = 0
        self.asked = 0

    def __iter__(self):
        while self.place < N:
            self.asked += 1
            self.place += 1
            yield self.place - 1
        self.place = 0

    def __len__(self):
        return N

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


class Stream(data.IterableDataset):
    def __iter__(self):
        shift = int(pt.randint(0, 1000, (1,)))
        return iter(range(shift, shift + N))


class PlacedStream(data.IterableDataset):
    def __init__(self):
        self.place = 0

    def __iter__(self):
        while self.place < N:
            self.place += 1
            yield self.place * 10
        self.place = 0

    state_dict, load_state_dict = Placed.state_dict, Placed.load_state_dict


def generator():
    return pt.Generator().manual_seed(5)


KINDS = {
    "in order": lambda: data.DataLoader(range(N), batch_size=BATCH),
    "shuffled": lambda: data.DataLoader(range(N), batch_size=BATCH, shuffle=True, drop_last=True),
    "own generator": lambda: data.DataLoader(range(N), batch_size=BATCH, shuffle=True, generator=generator()),
    "default generator": lambda: data.DataLoader(range(N), batch_size=BATCH, shuffle=True,
                                                 generator=pt.default_generator),
    "several permutations": lambda: data.DataLoader(range(N), batch_size=BATCH, sampler=data.RandomSampler(
        range(N), num_samples=3 * N, generator=generator())),
    "replacement": lambda: data.DataLoader(range(N), batch_size=None, sampler=data.RandomSampler(
        range(N), replacement=True)),
    "weights": lambda: data.DataLoader(range(N), batch_size=None, sampler=data.WeightedRandomSampler(
        range(1, N + 1), N)),
    "batch sampler": lambda: data.DataLoader(range(N), batch_sampler=data.BatchSampler(
        data.SubsetRandomSampler(range(N), generator=generator()), BATCH, False)),
    "python and numpy": lambda: data.DataLoader(range(N), batch_size=BATCH, sampler=Shuffled()),
    "keeps its place": lambda: data.DataLoader(range(N), batch_size=BATCH, sampler=Placed()),
    "stream": lambda: data.DataLoader(Stream(), batch_size=BATCH),
    "single stream": lambda: data.DataLoader(Stream(), batch_size=None),
    "placed stream": lambda: data.DataLoader(PlacedStream(), batch_size=BATCH),
}


def seed_all(seed):
    pt.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)                    # noqa: NPY002


def use_random_numbers():
    """What a training step draws."""
    return float(pt.rand(1)), random.random(), float(np.random.rand())      # noqa: NPY002


def run(loader, passes, stop=None, seen=None):
    """Batches and the numbers drawn beside them; the loader's and the generators' states after ``stop`` batches."""
    seen = [] if seen is None else seen
    for _ in range(passes):
        for batch in loader:
            seen.append((batch.tolist() if hasattr(batch, "tolist") else batch, use_random_numbers()))
            if len(seen) == stop:
                return seen
        seen.append(("end", use_random_numbers()))
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_goes_on_exactly(kind, tmp_path):
    from ptcore.utils import _random_states
    path = tmp_path / "state.npz"
    seed_all(1)
    whole = run(KINDS[kind](), 3)
    ends = [i for i, (what, _) in enumerate(whole) if what == "end"]
    assert len(ends) == 3 and ends[0] > 4
    for stop in (1, 3, ends[0], ends[0] + 2):           # in a pass, after its last batch, in the next pass
        seed_all(1)
        loader = KINDS[kind]()
        part = run(loader, 3, stop + (stop > ends[0]))
        pt.save({"loader": loader.state_dict(), "random": _random_states.get_states()}, path)
        seed_all(99)
        state = pt.load(path)
        again = KINDS[kind]()
        again.load_state_dict(state["loader"])
        _random_states.set_states(state["random"])
        passes = 3 - sum(what == "end" for what, _ in part)
        assert run(again, passes, seen=part) == whole


def test_between_passes():
    """After the end of a pass the next one is whole, and its order that of the loader's generator."""
    loader = KINDS["own generator"]()
    list(loader)
    state = loader.state_dict()
    assert state["batches"] is None
    rest = [b.tolist() for b in loader]
    other = KINDS["own generator"]()
    other.load_state_dict(state)
    assert [b.tolist() for b in other] == rest


def test_before_the_first_batch():
    """States that are taken before a batch is, or before a loaded one is used."""
    loader = KINDS["shuffled"]()
    empty = loader.state_dict()
    assert empty["batches"] is None
    seed_all(2)
    begun = iter(loader)
    state, rng = loader.state_dict(), pt.get_rng_state()
    assert state["batches"] == 0 and state["drew"] is None
    other = KINDS["shuffled"]()
    other.load_state_dict(state)
    assert other.state_dict() == state
    want = [b.tolist() for b in begun]
    pt.set_rng_state(rng)
    assert [b.tolist() for b in other] == want


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.outer
def test_workers_change_no_order(own):
    """A seed for workers is drawn without them as well."""
    orders = []
    for workers in 0, 1, 3:
        pt.manual_seed(4)
        loader = data.DataLoader(range(N), batch_size=BATCH, shuffle=True, num_workers=workers,
                                 generator=generator() if own else None)
        orders.append([[b.tolist() for b in loader] for _ in range(2)])
    assert orders[0] == orders[1] == orders[2]
    assert orders[0][0] != orders[0][1]


def test_order_drawn_but_no_batch_given():
    """A dataset that fails at the first batch: the order was drawn, and stays."""
    class Fails(data.Dataset):
        fail = True

        def __len__(self):
            return N

        def __getitem__(self, i):
            if self.fail:
                raise OSError("not now")
            return i

    seed_all(3)
    dataset = Fails()
    loader = data.DataLoader(dataset, batch_size=BATCH, shuffle=True)
    with pytest.raises(OSError, match="not now"):
        next(iter(loader))
    state = loader.state_dict()
    seed_all(3)
    want = [b.tolist() for b in KINDS["in order"]().__class__(range(N), batch_size=BATCH, shuffle=True)]
    seed_all(4)
    dataset.fail = False
    loader.load_state_dict(state)
    assert [b.tolist() for b in loader] == want


def test_skipped_samples_are_not_fetched():
    class Counted(data.Dataset):
        def __init__(self):
            self.fetched = []

        def __len__(self):
            return N

        def __getitem__(self, i):
            self.fetched.append(i)
            return i

    first = data.DataLoader(Counted(), batch_size=BATCH)
    batches = iter(first)
    next(batches), next(batches)
    dataset = Counted()
    loader = data.DataLoader(dataset, batch_size=BATCH)
    loader.load_state_dict(first.state_dict())
    assert next(iter(loader)).tolist() == [8, 9, 10, 11]
    assert dataset.fetched == [8, 9, 10, 11]


def test_sampler_with_its_own_place_is_not_asked_again():
    first = KINDS["keeps its place"]()
    batches = iter(first)
    next(batches), next(batches)
    loader = KINDS["keeps its place"]()
    loader.load_state_dict(first.state_dict())
    assert next(iter(loader)).tolist() == [8, 9, 10, 11]
    assert loader.sampler.asked == BATCH


def test_refusals():
    state = KINDS["shuffled"]().state_dict()
    with pytest.raises(ValueError, match="batch_size must be that of the saved one, 4, got 5"):
        data.DataLoader(range(N), batch_size=5).load_state_dict(state)
    with pytest.raises(ValueError, match="length must be that of the saved one, 5, got 6"):
        data.DataLoader(range(N), batch_size=BATCH).load_state_dict(state)
    for bad, got in ((None, "a NoneType"), ({}, "a dict of nothing"), ({"epoch": 3}, "a dict of epoch")):
        with pytest.raises(ValueError, match=f"the state must be one of a DataLoader, got {got}"):
            KINDS["shuffled"]().load_state_dict(bad)
    in_order = KINDS["in order"]().state_dict()
    with pytest.raises(ValueError, match="does not fit the loader's sampler"):
        KINDS["keeps its place"]().load_state_dict(in_order)
    with pytest.raises(ValueError, match="does not fit the loader's generators"):
        KINDS["own generator"]().load_state_dict(in_order)


def test_a_loader_in_a_pass_is_copied():
    loader = KINDS["shuffled"]()
    batches = iter(loader)
    next(batches)
    for other in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert other.state_dict() == loader.state_dict()


@pytest.mark.parametrize("changed", [{"batches": 99}, {"batches": -1}, {"batches": "x"}, {"batches": True},
                                     {"began": None}, {"drew": ...}, {"ended": ...}, {"again": 3}], ids=str)
def test_a_damaged_state_is_refused_when_it_is_loaded(changed):
    loader = data.DataLoader(range(10), batch_size=3, shuffle=True)
    next(iter(loader))
    state = {key: value for key, value in {**loader.state_dict(), **changed}.items() if value is not ...}
    other = data.DataLoader(range(10), batch_size=3, shuffle=True)
    with pytest.raises(ValueError, match="load_state_dict: the state of a pass of 4 batches is damaged"):
        other.load_state_dict(state)
    assert len(list(other)) == 4                # it begins at the start, as if nothing had been loaded


def test_a_stream_that_gives_more_than_it_says_goes_on():
    class Long(data.IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter(range(12))

    def loader():
        return data.DataLoader(Long(), batch_size=2)

    first, other = loader(), loader()
    batches = iter(first)
    with pytest.warns(UserWarning, match="was reported to be"):
        seen = [next(batches).tolist() for _ in range(3)]
    other.load_state_dict(first.state_dict())
    with pytest.warns(UserWarning, match="was reported to be"):
        assert seen + [b.tolist() for b in other] == [[k, k + 1] for k in range(0, 12, 2)]
