"""Datasets: sequences of samples, or streams of them.

A dataset may define ``__getitems__(indices) -> list of samples``, which fetches a whole batch. Datasets of tensors also
define ``_gather(indices)``, which returns the batch as the default collation would give it, with one gather for each
tensor; it returns None where that might be another one, as in a subclass that has its own ``__getitem__``.
"""

import math
import operator
from bisect import bisect_right
from itertools import accumulate
from numbers import Integral

import ptcore
from ptcore.utils.data.sampler import device_of

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """Base class of datasets that map an index to a sample.

    Subclasses define ``__getitem__`` and usually ``__len__``; a plain list, or
    any object with these two, serves as well.
    """

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])

    def __class_getitem__(cls, item):
        return cls


class IterableDataset(Dataset):
    """Base class of datasets that are streams; subclasses define ``__iter__``."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Samples along the first dimension of tensors.

    Parameters
    ----------
    *tensors : Tensor
        Tensors of the same first size; sample `i` is the tuple of ``t[i]``.

    Raises
    ------
    AssertionError
        If the sizes differ.
    IndexError
        If a tensor has no dimension.

    Examples
    --------
    >>> import ptcore
    >>> data = TensorDataset(ptcore.arange(3), ptcore.zeros(3, 2))
    >>> len(data), data[1][0].item()
    (3, 1)
    """

    def __init__(self, *tensors):
        for t in tensors:
            if not hasattr(t, "shape"):
                raise TypeError(f"TensorDataset: tensors must be Tensors, got {type(t).__name__}")
        sizes = [tuple(t.shape[:1]) for t in tensors]
        if () in sizes:
            raise IndexError("TensorDataset: tensors must have at least one dimension, got shapes "
                             f"{[tuple(t.shape) for t in tensors]}")
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(
                "TensorDataset: tensors must have the same first size, got shapes "
                f"{[tuple(t.shape) for t in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return len(self.tensors[0])

    def _gather(self, indices):
        if type(self).__getitem__ is not TensorDataset.__getitem__ or hasattr(self, "__getitems__"):
            return None
        if not all(isinstance(tensor, ptcore.Tensor) for tensor in self.tensors) or not are_positions(indices):
            return None
        index = ptcore.as_tensor(indices, device="cpu")
        return [tensor[index] for tensor in self.tensors]


class StackDataset(Dataset):
    """Samples of several datasets side by side.

    Parameters
    ----------
    *args, **kwargs : Dataset
        Datasets of the same length; samples are tuples, or dictionaries if the
        datasets are given by keyword.

    Examples
    --------
    >>> StackDataset([1, 2], ["a", "b"])[1]
    (2, 'b')
    """

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: datasets must be given either all by position or all by "
                "keyword, and at least one"
            )
        self.datasets = args or kwargs
        sizes = [len(part) for part in self._parts]
        if len(set(sizes)) != 1:
            raise ValueError(f"Size mismatch between datasets, got {sizes}")
        self._length = sizes[0]

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.__dict__.pop("_parts", None) is not None:           # of pickles of ptcore 0.1
            self._length = len(next(iter(self._parts)))

    @property
    def _parts(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, values):
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, values, strict=True))
        return tuple(values)

    def __getitem__(self, index):
        return self._sample([part[index] for part in self._parts])

    def __getitems__(self, indices):
        columns = [fetch_many(part, indices) for part in self._parts]
        return [self._sample(values) for values in zip(*columns, strict=True)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Datasets one after the other.

    Parameters
    ----------
    datasets : iterable of Dataset
        At least one, none of them iterable.

    Examples
    --------
    >>> data = ConcatDataset([[1, 2], [3]])
    >>> len(data), data[-1]
    (3, 3)
    """

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        for part in self.datasets:
            if isinstance(part, IterableDataset):
                raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence):
        """The lengths of all datasets up to each one."""
        return list(accumulate(len(part) for part in sequence))

    @property
    def cummulative_sizes(self):
        """``cumulative_sizes`` as it was once spelt, deprecated."""
        import warnings

        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        size = len(self)
        if not -size <= idx < size:
            raise IndexError(
                f"ConcatDataset: index must be in [{-size}, {size - 1}], got {idx}"
            )
        idx %= size
        which = bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]


class ChainDataset(IterableDataset):
    """Streams one after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset
        The streams.
    """

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def _parts(self):
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError(
                    "ChainDataset only supports IterableDataset, got "
                    f"{type(part).__name__}"
                )
            yield part

    def __iter__(self):
        for part in self._parts():
            yield from part

    def __len__(self):
        return sum(len(part) for part in self._parts())


class Subset(Dataset):
    """Some samples of a dataset.

    Parameters
    ----------
    dataset : Dataset
        The whole.
    indices : sequence of int
        Indices into it.

    Examples
    --------
    >>> Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        return fetch_many(self.dataset, [self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)

    def _gather(self, indices):
        cls = type(self)
        gather = getattr(self.dataset, "_gather", None)
        if (
            gather is None
            or cls.__getitem__ is not Subset.__getitem__
            or cls.__getitems__ is not Subset.__getitems__
        ):
            return None
        return gather([self.indices[i] for i in indices])


def are_positions(indices):
    """Whether each index is an integer. A list of others, such as bools or tuples, would index a tensor as a whole."""
    kinds = set(map(type, indices))
    if kinds == {int}:
        return True
    return bool not in kinds and all(
        i.ndim == 0 and not (i.dtype.is_floating_point or i.dtype.is_complex or i.dtype == ptcore.bool)
        if isinstance(i, ptcore.Tensor) else isinstance(i, Integral) for i in indices)


def fetch_many(dataset, indices):
    """Samples of `dataset` at `indices`, in one call where it offers that."""
    getitems = getattr(dataset, "__getitems__", None)
    if not callable(getitems):
        return [dataset[i] for i in indices]
    samples = getitems(indices)
    if len(samples) != len(indices):
        raise ValueError(
            "Nested dataset's output size mismatch. "
            f"Expected {len(indices)}, got {len(samples)}"
        )
    return samples


def random_split(dataset, lengths, generator=None):
    """Split a dataset at random into subsets without overlap.

    Parameters
    ----------
    dataset : Dataset
        The whole.
    lengths : sequence of int or of float
        Sizes that sum to its length, or fractions that sum to 1; samples left
        over by rounding down go to the subsets in turn.
    generator : Generator, optional
        Source of random numbers.

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the sizes do not sum to the length, or a fraction is outside [0, 1].

    Examples
    --------
    >>> parts = random_split(range(10), [0.75, 0.25])
    >>> [len(p) for p in parts]
    [8, 2]
    """
    total = len(dataset)
    lengths = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * fraction) for fraction in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                import warnings

                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty "
                    "dataset.",
                    stacklevel=2,
                )
        lengths = sizes
    for i, size in enumerate(lengths):
        try:
            lengths[i] = operator.index(size)
        except TypeError:
            lengths[i] = -1
        if lengths[i] < 0:
            raise ValueError(
                f"random_split: lengths must be non-negative ints or fractions that sum to 1, got {size!r} at "
                f"index {i}"
            )
    if sum(lengths) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset: "
            f"expected {total}, got {sum(lengths)}"
        )
    order = ptcore.randperm(total, generator=generator, device=device_of(generator)).tolist()
    ends = accumulate(lengths)
    return [
        Subset(dataset, order[end - size : end])
        for end, size in zip(ends, lengths, strict=True)
    ]
