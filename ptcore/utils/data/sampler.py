"""Samplers: the order in which a loader visits the indices of a dataset."""

import ptcore
from ptcore import _random
from ptcore._libraries import library

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def device_of(generator):
    """Where indices are drawn: where the generator is, whatever the default device of tensors is."""
    return "cpu" if generator is None else generator.device


def is_pytorch(generator):
    """Whether indices are drawn as PyTorch draws them."""
    return _random.draws_as_pytorch(generator, ptcore.device("cpu") if generator is None else generator.device)


def drawn_seed(generator=None):
    """A seed, as PyTorch draws it."""
    return int(ptcore.empty((), dtype=ptcore.int64, device="cpu").random_(generator=generator))


def seeded_generator(generator):
    """`generator`, or a new one seeded from the default generator."""
    if generator is not None:
        return generator
    if is_pytorch(None):
        return ptcore.Generator().manual_seed(drawn_seed())
    seed = int(ptcore.randint(0, 2**62, (1,), dtype=ptcore.int64, device="cpu").item())
    return ptcore.Generator().manual_seed(seed)


def _positive(name, argument, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(
            f"{name}: {argument} should be a positive integer value, but got "
            f"{argument}={value}"
        )


def _boolean(name, argument, value, error=ValueError):
    if not isinstance(value, bool):
        raise error(
            f"{name}: {argument} should be a boolean value, but got {argument}={value}"
        )


class Sampler:
    """Base class of samplers; subclasses define ``__iter__``, and ``__len__``
    where it is known."""

    def __iter__(self):
        raise NotImplementedError

    def __class_getitem__(cls, item):
        return cls


class SequentialSampler(Sampler):
    """All indices in order.

    Examples
    --------
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices in random order, or drawn with replacement.

    Parameters
    ----------
    data_source : Dataset
        The dataset to sample.
    replacement : bool, default: False
        Whether an index may come again.
    num_samples : int, optional
        How many to draw; the length of `data_source` by default. Without
        replacement more than that means several permutations.
    generator : Generator, optional
        Source of random numbers.

    Examples
    --------
    >>> sorted(RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self, data_source, replacement=False, num_samples=None, generator=None
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _boolean("RandomSampler", "replacement", replacement, TypeError)
        _positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self):
        """How many indices are drawn."""
        if self._num_samples is None:
            return len(self.data_source)
        return self._num_samples

    def __iter__(self):
        n, left = len(self.data_source), self.num_samples
        generator = seeded_generator(self.generator)
        where = device_of(generator)
        if is_pytorch(generator):
            yield from self._as_pytorch(n, left, generator)
            return
        while left > 0:
            if self.replacement:
                count = min(left, 65536)
                draw = ptcore.randint(
                    0, n, (count,), dtype=ptcore.int64, generator=generator, device=where
                )
            else:
                count = min(left, n)
                draw = ptcore.randperm(n, generator=generator, device=where)[:count]
            yield from draw.tolist()
            left -= count

    def _as_pytorch(self, n, left, generator):
        """The indices in the pieces in which PyTorch draws them, of which the last one may be empty."""
        whole, rest = divmod(left, 32 if self.replacement else n)
        for k in range(whole + 1):
            if self.replacement:
                draw = ptcore.randint(0, n, (32 if k < whole else rest,), dtype=ptcore.int64, generator=generator,
                                      device="cpu")
            else:
                draw = ptcore.randperm(n, generator=generator, device="cpu")[:n if k < whole else rest]
            yield from draw.tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order.

    Parameters
    ----------
    indices : sequence of int
        The indices.
    generator : Generator, optional
        Source of random numbers.

    Examples
    --------
    >>> sorted(SubsetRandomSampler([4, 2]))
    [2, 4]
    """

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        where = device_of(self.generator)
        order = ptcore.randperm(len(self.indices), generator=self.generator, device=where)
        for i in order.tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn with probabilities proportional to weights.

    Parameters
    ----------
    weights : sequence of float
        Weight of each index; they need not sum to one.
    num_samples : int
        How many to draw.
    replacement : bool, default: True
        Whether an index may come again.
    generator : Generator, optional
        Source of random numbers.

    Raises
    ------
    ValueError
        If an argument has the wrong type or shape, a weight is negative or not
        finite, or fewer positive weights than samples are left without
        replacement.

    Notes
    -----
    With replacement by inversion of the cumulative sum; without, the indices of
    the smallest of independent exponential times with the weights as rates.

    Examples
    --------
    >>> list(WeightedRandomSampler([0, 0, 1], 2))
    [2, 2]
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        np = library("numpy")

        _positive("WeightedRandomSampler", "num_samples", num_samples)
        _boolean("WeightedRandomSampler", "replacement", replacement)
        try:
            values = np.asarray(weights.cpu() if hasattr(weights, "cpu") else weights, dtype=np.float64)
            if weights is None or (isinstance(weights, (tuple, list)) and None in weights):      # NaN to NumPy
                raise TypeError
        except (TypeError, ValueError, NotImplementedError):
            raise TypeError(f"WeightedRandomSampler: weights must be numbers, got {weights!r}") from None
        if values.ndim != 1:
            raise ValueError(
                "WeightedRandomSampler: weights should be a 1d sequence but given "
                f"weights have shape {values.shape}"
            )
        if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
            raise ValueError(
                "WeightedRandomSampler: weights must be finite, not negative and not "
                "all zero"
            )
        available = np.count_nonzero(values)
        if not replacement and num_samples > available:
            raise ValueError(
                "WeightedRandomSampler: num_samples without replacement must be at "
                f"most the number of positive weights, {available}, got {num_samples}"
            )
        self.weights = ptcore.as_tensor(weights, dtype=ptcore.float64, device="cpu")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        np = library("numpy")

        if is_pytorch(self.generator):
            return self._as_pytorch()
        weights = np.asarray(self.weights)
        count = self.num_samples if self.replacement else len(weights)
        uniform = ptcore.rand(
            count,
            dtype=ptcore.float64,
            generator=self.generator,
            device=device_of(self.generator),
        )
        uniform = np.asarray(uniform.cpu())
        if self.replacement:
            cumulative = np.cumsum(weights)
            picks = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                times = np.where(weights > 0, -np.log1p(-uniform) / weights, np.inf)
            picks = np.argsort(times, kind="stable")[: self.num_samples]
        return iter(picks.tolist())

    def _as_pytorch(self):
        yield from ptcore.multinomial(self.weights, self.num_samples, self.replacement,
                                      generator=self.generator).tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Batches of the indices of another sampler.

    Parameters
    ----------
    sampler : iterable of int
        The indices.
    batch_size : int
        Size of a batch.
    drop_last : bool
        Whether a last, smaller batch is left out.

    Examples
    --------
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size, drop_last):
        _positive("BatchSampler", "batch_size", batch_size)
        _boolean("BatchSampler", "drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        from itertools import islice

        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
