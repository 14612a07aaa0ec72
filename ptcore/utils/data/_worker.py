"""What runs in a worker: the loop that makes batches, and what it tells about itself and about errors.

Messages to a worker: ``(number, index, skip)`` asks for the batch of an index (``skip``: it was given before; a
stream reads its samples, which are not sent), ``(BEGIN, seed, states)`` starts another pass, ``(STATES, number, None)``
asks for the states of the random sources before a batch, None ends it. Its answers are ``(number, batch)``, where the
batch may be a Failure or Ended, of a stream without more samples, and ``(STATES, states)``.
"""

import os
import random
import signal
import sys
import threading
import traceback
from collections import deque

import ptcore
from ptcore.utils import _random_states
from ptcore.utils.data._utils.collate import default_collate, default_convert
from ptcore.utils.data.dataset import IterableDataset, fetch_many

__all__ = ["BEGIN", "STATES", "Ended", "Failure", "WorkerInfo", "get_worker_info", "run_in_process", "serve"]

BEGIN = "begin"
STATES = "states"
_local = threading.local()


class WorkerInfo:
    """What :func:`get_worker_info` tells a worker: ``id``, ``num_workers``, ``seed`` and its ``dataset``."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """Information about the worker that calls; None elsewhere.

    Returns
    -------
    WorkerInfo or None
        ``id`` in [0, ``num_workers``), ``seed`` of the random numbers, and the worker's ``dataset``: a copy of its own
        in a process, the loader's in a thread.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.utils.data.get_worker_info() is None
    True
    """
    return getattr(_local, "info", None)


class _Text(str):
    """A message that a KeyError shows as it is."""

    def __repr__(self):
        return str(self)


class Ended:
    """In the place of a batch: the worker's stream has no more samples."""


class Failure:
    """An exception of a worker, on its way to the loader's process: the traceback goes along as text."""

    def __init__(self, error, where):
        self.type, self.where = type(error), where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def reraise(self):
        message = f"Caught {self.type.__name__} in {self.where}.\nOriginal {self.text}"
        try:
            # A StopIteration would end the loop over the loader without a word.
            plain = RuntimeError if issubclass(self.type, StopIteration) else self.type
            error = plain(_Text(message) if issubclass(plain, KeyError) else message)
        except Exception:               # it wants other arguments
            error = RuntimeError(message)
        try:
            raise error
        finally:
            del error                   # its traceback holds this frame, and so the iterator


class _Unpicklable(Failure):
    """In the place of an exception whose class the other process cannot import."""

    def __init__(self, failure):
        self.type, self.where, self.text = RuntimeError, failure.where, failure.text


class _Maker:
    """Makes the batches of one pass in a worker."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.dataset, self.batched, self.collate, self.drop_last = dataset, batched, collate, drop_last
        # A batch that was given before is made as far as it may draw random numbers.
        self.plain = collate in (default_collate, default_convert)
        self.samples = iter(dataset) if isinstance(dataset, IterableDataset) else None
        self.gather = getattr(dataset, "_gather", None) if batched and collate is default_collate else None

    def make(self, index, skip):
        if self.samples is None:
            batch = self.gather(index) if self.gather is not None else None
            if batch is not None:
                return batch
            return self.collate(fetch_many(self.dataset, index) if self.batched else self.dataset[index])
        if not self.batched:
            return self.finish(next(self.samples), skip)
        data = []
        for _ in index:
            try:
                data.append(next(self.samples))
            except StopIteration:
                if not data or self.drop_last:
                    raise
                break
        return self.finish(data, skip)

    def finish(self, data, skip):
        batch = None if skip and self.plain else self.collate(data)
        return None if skip else batch


def serve(task, receive, send):
    """The loop of a worker.

    Parameters
    ----------
    task : tuple
        ``(dataset, batched, collate, drop_last, init, id, num_workers, seed, states, ahead, kind)``: ``states`` are
        those of the random sources to begin with, ``ahead`` is how many batches may be on their way.
    receive, send : callable
        How messages come and go.
    """
    dataset, (init, number, count, seed, states, ahead, kind) = task[0], task[4:]
    where = f"DataLoader worker {kind} {number}"
    _local.info = WorkerInfo(number, count, seed, dataset)
    try:
        if init is not None:
            init(number)
        maker = _begin(task, states)
    except Exception as error:
        maker = Failure(error, where)
    before = deque(maxlen=ahead + 1)    # (number, states of the random sources before its batch)
    while (message := receive()) is not None:
        at, index, skip = message
        if at == BEGIN:
            _local.info.seed = index
            before.clear()
            try:
                maker = _begin(task, skip)
            except Exception as error:
                maker = Failure(error, where)
            continue
        if at == STATES:
            send((STATES, next((s for n, s in before if n >= index), None) or _random_states.get_states()))
            continue
        if kind == "process":
            before.append((at, _random_states.get_states()))
        if isinstance(maker, Failure):
            send((at, maker))
            continue
        try:
            batch = maker.make(index, skip)
        except StopIteration as end:
            batch = Ended() if maker.samples is not None else Failure(end, where)
        except Exception as error:
            batch = Failure(error, where)
        send((at, batch))
        del batch


def _begin(task, states):
    maker = _Maker(*task[:4])
    if states is not None:
        _random_states.set_states(states)
    return maker


def _seed_all(seed):
    """Python's, ptcore's and NumPy's generators of this process."""
    random.seed(seed)
    ptcore.manual_seed(seed)
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF])        # noqa: NPY002


def run_in_process(task, connection, others):
    """The main function of a worker process. ``others`` are the loader's ends of connections that a fork has copied."""
    import pickle
    from multiprocessing import parent_process

    for other in others:
        other.close()
    # Ctrl-C reaches every process of the terminal; the loader's decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})         # blocked by whoever starts workers
    if not hasattr(signal.getsignal(signal.SIGTERM), "serves_children"):       # see utils.restart.checkpoint_on_signal
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ptcore.set_num_threads(1)
    number, seed = task[5], task[7]
    _seed_all(seed)
    parent = parent_process()

    def receive():
        while not connection.poll(5.0):
            if not parent.is_alive():
                os._exit(1)
        message = connection.recv()
        if message is not None and message[0] == BEGIN:
            _seed_all(message[1])
        return message

    def send(message):
        try:
            connection.send(message)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            at, batch = message
            if isinstance(batch, Failure):
                connection.send((at, _Unpicklable(batch)))
            else:
                connection.send((at, Failure(error, f"DataLoader worker process {number}")))

    try:
        serve(task, receive, send)
    except (EOFError, BrokenPipeError, ConnectionResetError):       # the loader's process has gone
        os._exit(1)
