"""DataLoader: batches of a dataset, made in this process or by workers (``_prefetch``).

A batch is fetched in the cheapest way that the dataset offers: one gather for each tensor (``_gather``, with the
default collation only), ``__getitems__``, or sample by sample. All give equal batches.
"""

from collections.abc import Mapping, Sequence
from numbers import Real

import ptcore
from ptcore._watching import when_profiled
from ptcore.utils.data import _loader_state
from ptcore.utils.data._utils.collate import (
    default_collate,
    default_convert,
    like_mapping,
    like_sequence,
)
from ptcore.utils.data._worker import get_worker_info
from ptcore.utils.data.dataset import IterableDataset, fetch_many
from ptcore.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_FIXED = frozenset(
    (
        "batch_size",
        "batch_sampler",
        "sampler",
        "drop_last",
        "dataset",
        "persistent_workers",
    )
)


class _Endless(Sampler):
    """Sampler of a stream: asks for samples without end."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Iterable over batches of a dataset.

    Parameters
    ----------
    dataset : Dataset
        Map-style dataset (any object with ``__getitem__`` and ``__len__``) or
        :class:`IterableDataset`.
    batch_size : int or None, default: 1
        Samples in a batch; None gives single samples.
    shuffle : bool, optional
        Whether to visit the samples in a new random order every time.
    sampler, batch_sampler : iterable, optional
        Own order of indices, or of lists of indices.
    num_workers : int, default: 0
        Workers that make batches ahead; 0: this process makes each when it is asked for.
    collate_fn : callable, optional
        Makes a batch of a list of samples; :func:`default_collate` by default.
    pin_memory : bool, default: False
        Whether to put batches into page-locked memory, where there is an
        accelerator; with workers, in a thread beside the loop.
    drop_last : bool, default: False
        Whether a last, smaller batch is left out.
    timeout : float, default: 0
        Seconds to wait for a batch of the workers; 0: as long as it takes.
    worker_init_fn : callable, optional
        Called in each worker with its number, before anything else.
    multiprocessing_context : str or context, optional
        How processes are started (``"fork"``, ``"spawn"``, ``"forkserver"``); ``"thread"``:
        the workers are threads of this process, which suit datasets whose work gives the
        GIL up (files, NumPy, decoders). Threads share the dataset and the random numbers.
    prefetch_factor : int, default: 2
        Batches a worker that may be on their way. Unless it or `timeout` is given, batches that take far less than a
        millisecond travel several at once, up to 16, 4096 indices and 5 MiB of shared memory, and twice as many may be
        on their way.
    persistent_workers : bool, default: False
        Whether the workers stay for the next pass.
    in_order : bool, default: True
        Whether batches come in the order of their indices; False gives whichever is ready.
    generator : Generator, optional
        Source of random numbers of `shuffle`.

    Raises
    ------
    ValueError
        If options exclude each other or are out of range.
    RuntimeError
        By the iterator: if a worker has ended or a batch takes longer than `timeout`. An
        exception in a worker is raised as its own type, with the worker's traceback.

    Notes
    -----
    Worker `k` of a pass draws random numbers (ptcore's, Python's, NumPy's) from the seed
    ``get_worker_info().seed``, a number of the pass drawn from `generator` plus `k`.
    Workers that are at work still when their iterator is dropped, or Ctrl-C ends the loop,
    are killed after a second.

    Examples
    --------
    >>> import ptcore
    >>> data = ptcore.utils.data.TensorDataset(ptcore.arange(5))
    >>> [x.tolist() for (x,) in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    _initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        _check_kinds(num_workers=num_workers, timeout=timeout, collate_fn=collate_fn,
                     prefetch_factor=prefetch_factor, worker_init_fn=worker_init_fn)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset = dataset
        self.num_workers = num_workers
        self._prefetch_is_default = prefetch_factor is None
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.generator = generator

        is_stream = isinstance(dataset, IterableDataset)
        _check_order(is_stream, shuffle, sampler, batch_sampler, batch_size, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if is_stream:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._pass = self._resume = self._kept = None
        self._initialized = True

    def __setattr__(self, name, value):
        if self._initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is "
                "initialized"
            )
        object.__setattr__(self, name, value)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        return self._with_workers() if self.num_workers else _LoaderIterator(self)

    @property
    def _pin(self):
        return _pin if self.pin_memory and ptcore.cuda.is_available() else None

    def _with_workers(self):
        from ptcore.utils.data._prefetch import Prefetching

        if not self.persistent_workers:
            return Prefetching(self)
        if self._kept is None:
            self._kept = Prefetching(self)
            return self._kept
        return self._kept.begin_again(self)

    def __getstate__(self):
        return {**self.__dict__, "_kept": None}

    def __len__(self):
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        size = len(self.dataset)
        if self.batch_size is None:
            return size
        whole, rest = divmod(size, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def state_dict(self):
        """The state of the loader, in plain data that :func:`ptcore.save` takes.

        In the middle of a pass the state holds the number of batches handed out and the random states at the beginning
        of the pass. An equal loader that gets it by :meth:`load_state_dict` continues this pass: it gives the remaining
        batches in the same order. After the end of a pass (its iterator is exhausted), the next pass is a whole one.

        A sampler, or the dataset of a stream, with a ``state_dict`` and a ``load_state_dict`` keeps its own position.
        Any other sampler is asked again for the indices of earlier batches, so it must draw random numbers from its own
        generator, or from the default ones (ptcore's, Python's, NumPy's) before its first index. Samples of a stream
        are read again; those of other datasets are not.

        Workers are asked for their random states, and answer between two batches: a loader with a `timeout` raises
        RuntimeError if a worker takes longer. With ``in_order=False`` the other loader must have as many workers.

        Examples
        --------
        >>> import ptcore
        >>> loader = DataLoader(range(6), batch_size=2, shuffle=True)
        >>> batches = iter(loader)
        >>> first = next(batches)
        >>> other = DataLoader(range(6), batch_size=2, shuffle=True)
        >>> other.load_state_dict(loader.state_dict())
        >>> all(bool((a == b).all()) for a, b in zip(batches, other, strict=True))
        True
        """
        return _loader_state.state_dict(self)

    def load_state_dict(self, state_dict):
        """Let the next pass continue the pass in which the state was taken.

        Raises
        ------
        ValueError
            If it is no loader's state, or the batch size, the number of batches or (with
            ``in_order=False``) of workers differs from the saved one's.
        """
        _loader_state.load_state_dict(self, state_dict)


def _check_kinds(**options):
    """Checks the types of options before anything is made of them."""
    for name, value in options.items():
        if name in ("collate_fn", "worker_init_fn"):
            good, kind = value is None or callable(value), "callable"
        elif name == "timeout":
            good, kind = isinstance(value, Real), "a number of seconds"
        else:
            good, kind = hasattr(value, "__index__") or (value is None and name == "prefetch_factor"), "an int"
        if not good:
            raise TypeError(f"DataLoader: {name} must be {kind}, got {value!r}")


def _check_order(is_stream, shuffle, sampler, batch_sampler, batch_size, drop_last):
    """Refuses contradictory options of the order of samples and batches."""
    if is_stream:
        if shuffle not in (False, None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle "
                             f"option, but got shuffle={shuffle}")
        for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} "
                                 f"option, but got {name}={value}")
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, "
                             "shuffle, sampler, and drop_last")
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually "
                         "exclusive with drop_last")


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, context):
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if not timeout >= 0:
        raise ValueError("timeout option should be non-negative")
    if isinstance(context, str) and context != "thread":
        from multiprocessing import get_all_start_methods

        if context not in get_all_start_methods():
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{[*get_all_start_methods(), 'thread']!r}, but got {context!r}"
            )
    elif not isinstance(context, str | None) and not hasattr(context, "Process"):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got {context!r}"
        )
    if num_workers > 0:
        if prefetch_factor is not None and prefetch_factor <= 0:
            raise ValueError("prefetch_factor option should be positive")
        return
    if context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing; it "
            "needs num_workers > 0"
        )
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if timeout:
        raise ValueError(f"timeout option needs num_workers > 0, got timeout={timeout}")


def _pin(batch):
    """Page-locked copies of the tensors inside `batch`."""
    if isinstance(batch, ptcore.Tensor) or hasattr(batch, "pin_memory"):    # a batch's own method knows its parts
        return batch.pin_memory()
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, Mapping):
        return like_mapping(batch, {k: _pin(v) for k, v in batch.items()})
    if isinstance(batch, Sequence):
        values = [_pin(v) for v in batch]
        return (
            type(batch)(*values)
            if hasattr(batch, "_fields")
            else like_sequence(batch, values)
        )
    return batch


class _LoaderIterator:
    """One pass over a loader."""

    def __init__(self, loader):
        self._loader = loader
        self._collate = loader.collate_fn
        self._batched = loader._auto_collation
        self._drop_last = loader.drop_last
        self._position, self._indices, self._samples = _loader_state.begin(loader)
        self._dataset, self._pin = loader.dataset, loader._pin
        self._gather = None
        self._size = None if self._samples is None else _loader_state.said_length(loader)
        if self._samples is None and self._batched and loader.collate_fn is default_collate:
            self._gather = getattr(loader.dataset, "_gather", None)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def __next__(self):
        try:
            batch = self._fetch()
        except StopIteration:
            self._position.done = True
            raise
        self._position.given += 1
        return batch if self._pin is None else self._pin(batch)

    def _fetch(self):
        index = next(self._indices)
        if self._samples is not None:
            return self._next_of_stream(index)
        if self._gather is not None:
            batch = self._gather(index)
            if batch is not None:
                return batch
            self._gather = None
        if self._batched:
            return self._collate(fetch_many(self._dataset, index))
        return self._collate(self._dataset[index])

    def _next_of_stream(self, index):
        if self._batched:
            data = []
            for _ in index:
                try:
                    data.append(next(self._samples))
                except StopIteration:
                    self._indices, self._position.ended = iter(()), True
                    break
            if not data or (self._drop_last and len(data) < len(index)):
                raise StopIteration
        else:
            data = next(self._samples)
        _loader_state.check_length(self._size, self._dataset, self._position.given + 1)
        return self._collate(data)


# PyTorch's names, by which programs test the kind of a pass.
_BaseDataLoaderIter = _SingleProcessDataLoaderIter = _LoaderIterator


def __getattr__(name):
    if name == "_MultiProcessingDataLoaderIter":
        from ptcore.utils.data._prefetch import Prefetching
        return Prefetching
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@when_profiled
def _record_batches(begins):
    """Lets the wait for a batch be recorded as a range of a profile, named as PyTorch's class of iterators."""
    from ptcore.autograd.ranges import exchange
    from ptcore.utils.data._prefetch import Prefetching
    for cls, name in ((_LoaderIterator, "_SingleProcessDataLoaderIter"),
                      (Prefetching, "_MultiProcessingDataLoaderIter")):
        exchange(begins, cls, "__next__", lambda self, name=name: f"enumerate(DataLoader)#{name}.__next__")
