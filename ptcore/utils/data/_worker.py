"""The code of a worker: the loop that makes batches, and its messages about states and errors.

Messages to a worker: ``(TASKS, numbers, indices, given, first)`` asks for batches. Those with numbers below ``given``
were handed out before: a stream reads their samples and sends nothing. No states before the number ``first`` will be
requested. ``(BEGIN, seed, states)`` starts another pass. ``(STATES, number, tag)`` asks for the random states before a
batch. None ends the worker. Its answers are ``(seconds, numbers, batches)``, where a batch may be a Failure, or Ended
if a stream has no more samples, and ``(STATES, tag, [states])``.
"""

import os
import random
import select
import signal
import sys
import threading
import time
import traceback
from collections import deque

import ptcore
from ptcore import _random
from ptcore._libraries import library
from ptcore.utils import _random_states
from ptcore.utils.data._utils.collate import default_collate, default_convert
from ptcore.utils.data.dataset import IterableDataset, fetch_many

__all__ = ["BEGIN", "STATES", "TASKS", "Ended", "Failure", "Watch", "WorkerInfo", "get_worker_info", "run_in_process",
           "serve", "width_of"]

BEGIN = "begin"
STATES = "states"
TASKS = "tasks"
_TOGETHER = 2e-3            # seconds that a finished batch may wait, so that the next ones are sent with it
_BETWEEN = 2e-2             # seconds between two snapshots of the random states, which take 40 to 150 us
_KEPT = 4096  # approximate number of indices kept since a snapshot; a resumed pass makes these batches again
_PARENT = 5.0               # seconds between two checks that the loader's process is alive
_ASKED = 5e-3               # seconds between two checks, between batches, for requests for states
_local = threading.local()


class WorkerInfo:
    """The information that :func:`~ptcore.utils.data.get_worker_info` gives a worker: ``id``, ``num_workers``, ``seed``
    and its ``dataset``."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """Information about the worker that calls; None elsewhere.

    Returns
    -------
    WorkerInfo or None
        ``id`` in [0, ``num_workers``), ``seed`` of the random numbers, and the worker's ``dataset``: a copy in a
        process, the loader's in a thread.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.utils.data.get_worker_info() is None
    True
    """
    return getattr(_local, "info", None)


class Watch:
    """Waits for connections and sentinels. It is made once, since it is used for each message."""

    def __init__(self, objects):
        self._objects = objects
        self._poll = None
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._of = {o if isinstance(o, int) else o.fileno(): o for o in objects}
            for number in self._of:
                self._poll.register(number, select.POLLIN)

    def ready(self, timeout):
        """The ready connections and sentinels, after ``timeout`` seconds at the latest (None: never)."""
        if self._poll is None:
            from multiprocessing.connection import wait

            return wait(self._objects, timeout)
        return [self._of[number] for number, _ in self._poll.poll(None if timeout is None else 1000 * timeout)]


class _Text(str):
    """A message that a KeyError shows without quotes."""

    def __repr__(self):
        return str(self)


class Ended:
    """Stands for a batch if the worker's stream has no more samples."""


class Failure:
    """An exception of a worker, for the loader's process; its traceback is sent as text."""

    def __init__(self, error, where):
        self.type, self.where = type(error), where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def reraise(self):
        message = f"Caught {self.type.__name__} in {self.where}.\nOriginal {self.text}"
        try:
            # A StopIteration would end the loop over the loader silently, and a SystemExit in a thread would end the
            # process.
            ends = issubclass(self.type, StopIteration) or not issubclass(self.type, Exception)
            plain = RuntimeError if ends else self.type
            error = plain(_Text(message) if issubclass(plain, KeyError) else message)
        except Exception:               # the class takes other arguments
            error = RuntimeError(message)
        try:
            raise error
        finally:
            del error                   # its traceback refers to this frame, and so to the iterator


class _Unpicklable(Failure):
    """Stands for an exception whose class the other process cannot import."""

    def __init__(self, failure):
        self.type, self.where, self.text = RuntimeError, failure.where, failure.text


class _Maker:
    """Makes the batches of one pass in a worker."""

    def __init__(self, dataset, batched, collate, drop_last):
        self.dataset, self.batched, self.collate, self.drop_last = dataset, batched, collate, drop_last
        # A batch that was handed out before is skipped, but what may draw random numbers runs again: the samples, and a
        # collation of the user's. The two of this package draw none.
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


def serve(task, receive, begin, asked=None):
    """The loop of a worker.

    Parameters
    ----------
    task : tuple
        ``(dataset, batched, collate, drop_last, init, id, num_workers, seed, states, kind)``: ``states`` are those of
        the random sources to begin with.
    receive, begin : callable
        ``receive`` gives the next message. ``begin`` makes an answer with the methods ``add(batch)``, which packs the
        batch at once, and ``send(*head)``.
    asked : callable, optional
        Takes the messages that have come and gives those of them that ask for states.
    """
    dataset, (init, number, count, seed, states, kind) = task[0], task[4:]
    where = f"DataLoader worker {kind} {number}"
    errors = Exception if kind == "process" else BaseException      # errors that end a thread would be lost
    _local.info = WorkerInfo(number, count, seed, dataset)
    try:
        if init is not None:
            init(number)
        maker = _begin(task, states)
    except errors as error:
        maker = Failure(error, where)
    before = deque()                    # (random states, tasks since then, time)
    kept = 0                            # number of indices since the last snapshot of the random states
    sending = looked = 0.0              # seconds that sending the last answer took; time of the last check for requests
    while (message := receive()) is not None:
        if message[0] == BEGIN:
            _local.info.seed, states = message[1:]
            before.clear()
            try:
                maker = _begin(task, states)
            except errors as error:
                maker = Failure(error, where)
            continue
        if message[0] == STATES:
            _tell_states(begin, message, before)
            continue
        _, numbers, indices, given, first = message
        while before and before[0][1][-1][0] < first:
            before.popleft()
        began = time.monotonic()
        if kind == "process":
            if before and kept < _KEPT and began - before[-1][2] < _BETWEEN:
                before[-1][1].extend(zip(numbers, indices, strict=True))
            else:
                before.append((_random_states.snapshot(), list(zip(numbers, indices, strict=True)), began))
                kept = 0
            kept += sum(map(width_of, indices))
        answer, sent = None, 0
        for at, index in enumerate(indices):
            if answer is None:
                answer = begin()
            if isinstance(maker, Failure):
                made = maker
            else:
                try:
                    made = maker.make(index, numbers[at] < given)
                except StopIteration as end:
                    made = Ended() if maker.samples is not None else Failure(end, where)
                except errors as error:
                    made = Failure(error, where)
            answer.add(made)
            made = None
            now = time.monotonic()
            wanted = ()
            if asked is not None and now - looked > _ASKED:         # the next batch may take long
                looked = now
                wanted = asked()
            if wanted or at == len(numbers) - 1 or now - began > _TOGETHER:
                answer.send(now - began + sending, numbers[sent:at + 1])
                answer, sent = None, at + 1
                for question in wanted:
                    _tell_states(begin, question, before)
                began = time.monotonic()
                sending = began - now


def width_of(index):
    """The number of indices in a list or tuple; 1 for other objects."""
    return len(index) if isinstance(index, (list, tuple)) else 1


def _begin(task, states):
    maker = _Maker(*task[:4])
    if states is not None:
        _random_states.set_states(states)
        for index in states.get("again", ()):
            try:
                maker.make(index, False)
            except Exception:           # reported when the batch was first made
                pass
    return maker


def _tell_states(begin, question, before):
    answer = begin()
    answer.add(_states_before(question[1], before))
    answer.send(STATES, question[2])


def _states_before(number, before):
    """The random states before the batch ``number``, or earlier states and the tasks to make again from there."""
    for snapshot, tasks, _ in before:
        if tasks[-1][0] >= number:
            states = _random_states.describe(snapshot)
            if again := [index for at, index in tasks if at < number]:
                states["again"] = again
            return states
    return _random_states.get_states()


def _seed_all(seed, number):
    """Seeds Python's, ptcore's and NumPy's generators of this process; ``number`` is the worker's."""
    random.seed(seed)
    ptcore.manual_seed(seed)
    if "numpy" in sys.modules:
        np = library("numpy")

        words = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
        if _random.kind_in_use() == "pytorch":
            base = seed - number
            words = np.random.SeedSequence([number, base & 0xFFFFFFFF, base >> 32, 0]).generate_state(4)
        np.random.seed(words)


def run_in_process(task, connection, others, kind):
    """The main function of a worker process; ``others`` are the loader's ends of connections, copied by a fork, and
    ``kind`` is that of its generators."""
    from multiprocessing import parent_process

    from ptcore.utils.data import _ring
    from ptcore.utils.data._utils import collate

    for other in others:
        other.close()
    # Ctrl-C reaches every process of the terminal; the loader's process handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})         # the starting process has blocked it
    if not hasattr(signal.getsignal(signal.SIGTERM), "serves_children"):       # see utils.restart.checkpoint_on_signal
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ptcore.set_num_threads(1)
    number, seed = task[5], task[7]
    _random.use_kind(kind)
    _seed_all(seed, number)
    parent = os.getppid() if hasattr(os, "getppid") else None
    watch = Watch([connection, parent_process().sentinel])
    ring = _ring.Ring()
    collate.output_for = ring.output_for
    waiting = deque()               # messages that were read but not handled yet

    def read():
        answered, message = connection.recv()
        ring.take_back(answered)
        return message

    def receive():
        while not waiting and connection not in (ready := watch.ready(_PARENT)):
            # Other children of the loader's process may hold the other end of the connection, so its closing is not
            # enough.
            if ready or (parent is not None and os.getppid() != parent):
                os._exit(1)
        message = waiting.popleft() if waiting else read()
        if message is not None and message[0] == BEGIN:
            _seed_all(message[1], number)
        return message

    def asked():
        found = []
        while None not in waiting and connection in watch.ready(0):
            message = read()
            if message is not None and message[0] == STATES:
                found.append(message)
            else:
                waiting.append(message)
        return found

    class Answer:
        def __init__(self):
            self.batches = []

        def add(self, batch):
            if isinstance(batch, Ended):
                self.batches.append(batch)
                return
            try:
                packed = ring.pack(batch)
            except Exception as error:
                failure = batch
                if not isinstance(failure, Failure):
                    failure = Failure(error, f"DataLoader worker process {number}")
                try:
                    packed = ring.pack(failure)
                except Exception:
                    packed = ring.pack(_Unpicklable(failure))
            self.batches.append(packed)

        def send(self, *head):
            ring.send(connection, head, self.batches)

    try:
        serve(task, receive, Answer, asked)
    except (EOFError, BrokenPipeError, ConnectionResetError):       # the loader's process has ended
        os._exit(1)
