"""Datasets of numbers for the tests of a loader's workers."""
import multiprocessing
import random

import numpy as np

import ptcore
from ptcore.utils.data import Dataset, IterableDataset, get_worker_info

# How workers start that get what cannot be pickled, or what the test has put in a module's place: from Python 3.14 on
# the default under Linux is a server of forks, which has neither.
INHERITS = "fork" if "fork" in multiprocessing.get_all_start_methods() else None


class Squares(Dataset):
    def __init__(self, n=20):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return ptcore.tensor([i, i * i])


class Split(IterableDataset):
    """0 to n - 1, every worker its part; with random numbers beside them if asked for."""

    def __init__(self, n, noise=False):
        self.n, self.noise = n, noise

    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id, self.n, info.num_workers):
            yield (i, random.random()) if self.noise else i


class Draws(Squares):
    """What the three sources of random numbers give in a worker."""

    def __getitem__(self, i):
        return ptcore.tensor([random.random(), np.random.rand(), ptcore.rand(()).item(),    # noqa: NPY002
                              get_worker_info().seed % 1000], dtype=ptcore.float64)


def values(loader):
    return [b.tolist() for b in loader]
