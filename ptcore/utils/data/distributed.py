"""Sampler that gives every process of a group its own share of a dataset."""

import math

import ptcore
from ptcore.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every `num_replicas`-th index, beginning with `rank`.

    Parameters
    ----------
    dataset : Dataset
        The dataset to sample; of the same length in all processes.
    num_replicas, rank : int
        Number of processes and number of this one.
    shuffle : bool, default: True
        Whether to permute the indices, the same way in all processes.
    seed : int, default: 0
        Seed of the permutation; the epoch is added to it.
    drop_last : bool, default: False
        Whether to drop what does not divide evenly instead of repeating the first
        samples.

    Examples
    --------
    >>> list(DistributedSampler(range(5), 2, 1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset,
        num_replicas=None,
        rank=None,
        shuffle=True,
        seed=0,
        drop_last=False,
    ):
        if num_replicas is None or rank is None:
            raise ValueError(
                "DistributedSampler: num_replicas and rank must be given, there is no "
                "process group to take them from"
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        self.num_samples = (
            size // num_replicas if drop_last else math.ceil(size / num_replicas)
        )
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            generator = ptcore.Generator().manual_seed(self.seed + self.epoch)
            indices = ptcore.randperm(len(indices), generator=generator, device="cpu").tolist()
        if indices:
            indices *= math.ceil(self.total_size / len(indices))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Choose the permutation of `epoch`."""
        self.epoch = epoch
