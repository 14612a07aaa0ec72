"""Samplers, splits and loaders with a generator of the kind "pytorch" against PyTorch: indices, seeds, states."""
import random

import numpy as np
import pytest
from _pytorch_numbers import states

import ptcore as pt
import ptcore.utils.data

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data.distributed")

pytestmark = pytest.mark.parity

LIBS = (pt, torch)


@pytest.fixture(autouse=True)
def pytorch():
    with pt.random.use("pytorch"):
        yield


def same(call, seed=21):
    for lib in LIBS:
        lib.manual_seed(seed)
    mine, theirs = [call(lib) for lib in LIBS]
    assert mine == theirs
    assert states(pt) == states(torch)


def of(lib, generator):
    return lib.Generator().manual_seed(4) if generator else None


@pytest.mark.parametrize("generator", [False, True])
def test_samplers(generator):
    def run(lib):
        d, g = lib.utils.data, of(lib, generator)
        weights = [0.5, 2.0, 1.0, 4.0, 0.25]
        samplers = [d.RandomSampler(range(50), generator=g), d.RandomSampler(range(7), num_samples=20, generator=g),
                    d.RandomSampler(range(7), num_samples=21, generator=g),
                    d.RandomSampler(range(9), True, 100, generator=g), d.RandomSampler(range(9), True, 64, generator=g),
                    d.SubsetRandomSampler(list("abcdefg"), generator=g),
                    d.WeightedRandomSampler(weights, 40, True, generator=g),
                    d.WeightedRandomSampler(weights, 1, True, generator=g),
                    d.WeightedRandomSampler(weights, 4, False, generator=g)]
        results = [list(s) for s in samplers for _ in range(2)]
        results += [list(d.BatchSampler(d.RandomSampler(range(10), generator=g), 3, False))]
        return [*results, None if g is None else g.get_state().tolist()]
    same(run)


def test_random_split():
    same(lambda lib: [list(s.indices) for s in lib.utils.data.random_split(range(20), [12, 8])])
    same(lambda lib: [list(s.indices) for s in lib.utils.data.random_split(
        range(23), [0.5, 0.3, 0.2], generator=lib.Generator().manual_seed(42))])


def test_distributed_sampler():
    def run(lib):
        s = lib.utils.data.distributed.DistributedSampler(range(17), 3, 1, seed=5)
        first = list(s)
        s.set_epoch(3)
        return first + list(s)
    same(run)


@pytest.mark.parametrize("generator", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_loaders(shuffle, generator):
    def run(lib):
        g = of(lib, generator)
        loader = lib.utils.data.DataLoader(list(range(23)), 4, shuffle=shuffle, generator=g)
        passes = [[batch.tolist() for batch in loader] for _ in range(2)]
        first = next(iter(loader)).tolist()
        return [passes, first, lib.rand(3).tolist(), None if g is None else g.get_state().tolist()]
    same(run)


class Draws:
    """Each sample is drawn in the worker, by all sources."""

    def __init__(self, lib):
        self.lib = lib

    def __len__(self):
        return 8

    def __getitem__(self, k):
        return self.lib.rand(2).tolist() + [random.random(), float(np.random.random()),        # noqa: NPY002
                                            float(self.lib.initial_seed() % 1000003)]


@pytest.mark.outer
@pytest.mark.parametrize("shuffle", [False, True])
def test_workers(shuffle):
    def run(lib):
        loader = lib.utils.data.DataLoader(Draws(lib), 2, shuffle=shuffle, num_workers=2, collate_fn=list)
        return [[batch for batch in loader] for _ in range(2)]
    same(run)
