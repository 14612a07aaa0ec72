"""How many tasks a loader's workers have at once, and what that follows."""
import time

import pytest
from _samples import INHERITS

import ptcore
from ptcore.utils.data import DataLoader, Dataset, _worker

pytestmark = pytest.mark.counts


class Numbers(Dataset):
    def __init__(self, n, seconds=0.0):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return ptcore.tensor(i)


class Large(Dataset):
    """Samples of so many elements."""

    def __init__(self, n):
        self.x = ptcore.ones(n)

    def __len__(self):
        return 400

    def __getitem__(self, i):
        return self.x * i


def under_way(loader, seconds=0.0):
    """The most tasks under way besides the batch that the loop works on for so long, but for the first half."""
    it, most = iter(loader), 0
    for k, x in enumerate(it):
        assert x == k
        time.sleep(seconds)
        if k > len(loader) // 2:
            most = max(most, len(it._owner))
    return most


def test_cheap_tasks_are_many_at_once():
    assert under_way(DataLoader(Numbers(900), batch_size=None, num_workers=2), 1e-3) == 2 * 2 * 16 - 1
    # Not where the caller says how many.
    for factor in 1, 2, 5:
        loader = DataLoader(Numbers(100), batch_size=None, num_workers=2, prefetch_factor=factor)
        assert under_way(loader, 1e-3) == 2 * factor - 1


def test_dear_tasks_are_as_many_as_the_factor_says():
    assert under_way(DataLoader(Numbers(60, 6e-3), batch_size=None, num_workers=2), 6e-3) < 4


def late(it, which):
    """Answers of which some seem to have taken half a millisecond a batch."""
    receive, count = it._workers.receive, 0

    def tampered(timeout):
        nonlocal count
        worker, (_, numbers, batches) = receive(timeout)
        count += 1
        return worker, ((5e-4 if which(count) else 1e-5) * len(numbers), numbers, batches)

    it._workers.receive = tampered
    return it


@pytest.mark.parametrize(("nbytes", "number"),
                         [(250_000, 16), (600_000, 8), (1_000_000, 4), (2_500_000, 2), (6_000_000, 1)])
def test_large_batches_are_fewer_at_once(nbytes, number, monkeypatch):
    """So many that an answer has no more than 5 MiB."""
    monkeypatch.setattr(_worker, "_TOGETHER", 60.0)         # whatever the machine does beside it
    it = late(iter(DataLoader(Large(nbytes // 4), batch_size=None, num_workers=2,
                              multiprocessing_context=INHERITS)), lambda count: False)
    assert [it._at_once for _ in it][-1] == number


@pytest.mark.parametrize(("width", "number"), [(256, 16), (257, 15), (500, 8), (1400, 2), (3000, 1), (9000, 1)])
def test_long_batches_are_fewer_at_once(width, number, monkeypatch):
    """A message has no more than 4096 indices, which take memory of both sides until they are used."""
    monkeypatch.setattr(_worker, "_TOGETHER", 60.0)
    loader = DataLoader(Numbers(200 * width), batch_size=width, num_workers=2, collate_fn=len,
                        multiprocessing_context=INHERITS)
    it = late(iter(loader), lambda count: False)
    assert [it._at_once for _ in it][-1] == number


SHORT, LONG = [list(range(4))] * 600, [list(range(3000))] * 300


@pytest.mark.parametrize(("lists", "most", "last"), [
    (SHORT + LONG, 16, 1), (LONG + SHORT, 16, 16), ([SHORT[0], LONG[0]] * 300, 2, 2), ([tuple(LONG[0])] * 300, 1, 1)],
    ids=["longer", "shorter", "in turn", "tuples"])
def test_lists_of_other_lengths(lists, most, last, monkeypatch):
    """The longest of a message counts: where they become longer, fewer go at once."""
    monkeypatch.setattr(_worker, "_TOGETHER", 60.0)
    loader = DataLoader(Numbers(3000), batch_sampler=lists, num_workers=1, collate_fn=len)
    it = late(iter(loader), lambda count: False)
    seen = [it._at_once for _ in it]
    assert max(seen) == most
    assert max(seen[-100:]) == last


def test_batches_that_become_smaller_are_more_at_once_again():
    it = iter(DataLoader(Numbers(6000), batch_size=None, num_workers=2))
    receive, count, steps = it._workers.receive, 0, [1]

    def tampered(timeout):
        nonlocal count
        worker, (_, numbers, batches) = receive(timeout)
        count += 1
        size = (10 if 20 <= count < 40 else 1) << 20
        for batch in batches:
            batch.nbytes = size
        if it._at_once != steps[-1]:
            steps.append(it._at_once)
        return worker, (1e-5 * len(numbers), numbers, batches)

    it._workers.receive = tampered
    for _ in it:
        pass
    assert steps == [1, 2, 4, 2, 1, 2, 4]


def test_one_late_answer_changes_nothing():
    it = iter(DataLoader(Numbers(4000), batch_size=None, num_workers=2))
    seen = [it._at_once for _ in late(it, lambda count: count > 20 and count % 10 == 0)]
    assert set(seen[seen.index(16):]) == {16}


def test_answers_that_are_all_late_do():
    it = late(iter(DataLoader(Numbers(4000), batch_size=None, num_workers=2)), lambda count: count > 20)
    seen = [it._at_once for _ in it]
    assert 16 in seen
    assert seen[-1] < 16
