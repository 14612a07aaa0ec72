"""Passes with workers that go on elsewhere: what each worker would have drawn, in order and in any order."""
import multiprocessing
import random
import threading
import time

import pytest
from _samples import Draws, Split, values

import ptcore
from ptcore.utils.data import DataLoader, IterableDataset, get_worker_info

# From Python 3.12 on a fork warns of threads, such as those of an earlier loader that are about to end.
pytestmark = [pytest.mark.counts, pytest.mark.timeout(120),
              pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("given", [0, 1, 4, 7])
@pytest.mark.parametrize("persistent", [False, True])
def test_going_on_in_the_middle(workers, given, persistent):
    """The rest of a pass, with the random numbers that the workers would have drawn; then the next pass."""
    def loader():
        return DataLoader(Draws(14), batch_size=2, shuffle=True, num_workers=workers, persistent_workers=persistent)

    ptcore.manual_seed(8)
    one = loader()
    values(one)
    it = iter(one)
    for _ in range(given):
        next(it)
    time.sleep(0.05)                                    # workers are ahead
    state, rng = one.state_dict(), ptcore.get_rng_state()
    rest, then = values(it), values(one)
    ptcore.manual_seed(77)
    other = loader()
    other.load_state_dict(state)
    ptcore.set_rng_state(rng)
    assert values(other) == rest
    assert values(other) == then


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_going_on_between_batches_that_came_together(context, tmp_path):
    """Cheap batches travel several at once; a pass goes on at any of them."""
    def loader():
        return DataLoader(Draws(600), batch_size=None, shuffle=True, num_workers=2, multiprocessing_context=context)

    one, again = loader(), 0
    it, seen, states = iter(one), [], {}
    for k in range(600):
        if k % 61 == 60:
            states[k] = one.state_dict()
        seen.append(next(it).tolist())
    assert it._at_once > 1
    for k, state in states.items():
        ptcore.save(state, tmp_path / "state.pt")
        state = ptcore.load(tmp_path / "state.pt")
        again += any("again" in s for s in state["states"])
        other = loader()
        other.load_state_dict(state)
        assert values(other) == seen[k:]
    assert again


class Gated(Draws):
    """Samples with their number, which wait until those of their worker are let through."""

    def __init__(self, n, workers=2):
        super().__init__(n)
        self.limits = multiprocessing.get_context("fork").Array("i", [0] * workers)     # the first one that waits

    def __getitem__(self, i):
        while i >= self.limits[get_worker_info().id]:
            time.sleep(1e-3)
        return ptcore.cat([super().__getitem__(i), ptcore.tensor([i], dtype=ptcore.float64)])


class GatedStream(IterableDataset):
    def __init__(self, workers=2):
        self.gate = Gated(24, workers)

    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id, 16 + 4 * info.id, info.num_workers):
            while i >= self.gate.limits[info.id]:
                time.sleep(1e-3)
            yield ptcore.tensor([random.random(), i], dtype=ptcore.float64)


def gated(workers, limits, stream=False, **options):
    """A loader of which worker k gives the samples below limits[k], and the function that sets these."""
    dataset = GatedStream(workers) if stream else Gated(24, workers)

    def let(limits):
        (dataset.gate if stream else dataset).limits[:] = limits

    let(limits)
    options = {"batch_size": None, "num_workers": workers, "prefetch_factor": 4, "multiprocessing_context": "fork",
               **options}
    return DataLoader(dataset, **options), let


def later(function, *args):
    """A thread that calls it soon."""
    thread = threading.Timer(0.1, function, args)
    thread.start()
    return thread


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("later_in_order", [False, True])
def test_going_on_in_any_order(stream, later_in_order, tmp_path):
    """Every batch comes once, with the random numbers that its worker would have drawn; stopped when one worker is
    ahead, then when the other one is."""
    ptcore.manual_seed(8)
    whole, _ = gated(2, [99, 99], stream)
    whole = sorted(values(whole))
    assert [int(x[-1]) for x in sorted(whole, key=lambda x: x[-1])] == sorted(
        [*range(0, 16, 2), *range(1, 20, 2)] if stream else range(24))
    ptcore.manual_seed(8)
    loader, let = gated(2, [0, 99], stream, in_order=False)
    it, got = iter(loader), []
    for limits, order in (([99, 0], False), ([99, 99], later_in_order)):
        got += [next(it).tolist() for _ in range(3)]
        thread = later(let, [99, 99])           # who makes a batch tells its states behind it
        ptcore.save(loader.state_dict(), tmp_path / "state.npz")
        thread.join()
        state = ptcore.load(tmp_path / "state.npz")
        assert state["batches"] == len(got)
        del it
        ptcore.manual_seed(77)
        loader, let = gated(2, limits, stream, in_order=order)
        loader.load_state_dict(state)
        it = iter(loader)
    assert [int(x[-1]) for x in got] == [1, 3, 5, 0, 2, 4]
    got += values(it)
    assert sorted(got) == whole
    assert sum(state["again"]) == 6 if stream else (state["first"], state["again"]) == (1, [2, 3])
    with pytest.raises(ValueError, match="from 2 workers, the loader must have as many, got 4"):
        gated(4, [0] * 4, stream)[0].load_state_dict(state)


@pytest.mark.parametrize(("stream", "workers"), [(False, 0), (False, 2), (True, 2)])
def test_going_on_in_any_order_after_one(stream, workers):
    """A state that was taken in order; the next one of a pass in any order."""
    one = gated(2, [99, 99], stream)[0] if workers else DataLoader(range(24), batch_size=None)
    it = iter(one)
    got = [int(x[-1] if workers else x) for x in (next(it) for _ in range(4))]
    assert got == [0, 1, 2, 3]
    state = one.state_dict()
    one, let = gated(2, [99, 4], stream, in_order=False)
    one.load_state_dict(state)
    it = iter(one)
    got += [int(next(it)[-1]) for _ in range(3)]
    assert got[4:] == [4, 6, 8]
    thread = later(let, [99, 99])
    state = one.state_dict()
    thread.join()
    other, _ = gated(2, [99, 99], stream, in_order=False)
    other.load_state_dict(state)
    got += [int(x[-1]) for x in values(other)]
    assert sorted(got) == ([*range(16), 17, 19] if stream else list(range(24)))


def test_a_pass_that_was_given_whole_takes_any_number_of_workers():
    loader, _ = gated(2, [99, 99], in_order=False)
    it = iter(loader)
    for _ in range(24):
        next(it)
    state = loader.state_dict()
    for workers in 0, 3:
        other = DataLoader(range(24), batch_size=None, num_workers=workers)
        other.load_state_dict(state)
        assert list(other) == []
        assert len(list(other)) == 24


@pytest.mark.parametrize("sampler", [
    [list(range(500))] * 1000, [list(range(k)) for k in [1, 1499] * 300], [tuple(range(500))] * 1000])
def test_few_indices_are_kept(sampler):
    """Whoever goes on makes no more again than two messages have, however quickly batches are made."""
    loader = DataLoader(range(5000), batch_sampler=sampler, num_workers=1, collate_fn=len)
    again = []
    for k, _ in enumerate(loader):
        if k % 40 == 39:
            (state,) = loader.state_dict()["states"]
            again.append(sum(map(len, state.get("again", ()))))
    assert 0 < max(again) <= 2 * 4096



def test_states_are_told_between_two_batches():
    """Not after all that is under way."""
    one, let = gated(2, [2, 2])
    it = iter(one)
    assert int(next(it)[-1]) == 0
    states = []
    thread = threading.Thread(target=lambda: states.append(one.state_dict()), daemon=True)
    thread.start()
    time.sleep(0.1)
    let([4, 4])                                 # the batches that are being made, none of the next ones
    thread.join(30)
    assert states
    let([99, 99])
    rest = values(it)
    other, _ = gated(2, [99, 99])
    other.load_state_dict(states[0])
    assert values(other) == rest


def test_states_that_come_too_late():
    """They are no answer to the next question."""
    one, let = gated(2, [99, 5], timeout=3)
    it = iter(one)
    next(it)
    time.sleep(0.1)
    it._take(3)                                 # sample 1 has come
    while it._take(0.1):
        pass
    with pytest.raises(RuntimeError, match="state_dict: DataLoader timed out after 3 seconds"):
        one.state_dict()
    assert [int(next(it)[-1]) for _ in range(4)] == [1, 2, 3, 4]
    let([99, 99])
    state = one.state_dict()
    rest = values(it)
    assert len(rest) == 19
    other, _ = gated(2, [99, 99])
    other.load_state_dict(state)
    assert values(other) == rest


@pytest.mark.parametrize("given", [0, 1, 5, 8])
def test_going_on_in_a_stream(given):
    def loader():
        return DataLoader(Split(31, noise=True), batch_size=3, num_workers=3)

    one = loader()
    it = iter(one)
    for _ in range(given):
        next(it)
    state = one.state_dict()
    rest = [[c.tolist() for c in b] for b in it]
    other = loader()
    other.load_state_dict(state)
    assert [[c.tolist() for c in b] for b in other] == rest
