"""A pass over a loader whose workers make batches ahead.

Workers get tasks in turn. With ``in_order`` an early batch waits for the batches before it. At most ``prefetch_factor``
tasks for each worker are under way, waiting batches included.

A message, with waking the receiver, costs about as much as a sample that takes 50 us. So if the caller sets neither
``prefetch_factor`` nor ``timeout``, short tasks are sent several at once, and their answers come back together. Their
number is that of the tasks a worker finishes in two milliseconds, within the limits of caches.
"""

import time
import weakref

from ptcore.utils.data import _loader_state
from ptcore.utils.data._ring import Packed
from ptcore.utils.data._worker import BEGIN, STATES, TASKS, Ended, Failure, width_of
from ptcore.utils.data.dataset import IterableDataset

__all__ = ["Prefetching"]

_NONE = object()
# seconds for an answer below which the number of tasks in a message is doubled, and above which it is halved
_SHORT, _LONG = 1e-3, 4e-3
_MOST_AT_ONCE = 16
_INDICES = 4096  # approximate number in a message: each takes 36 bytes in loader and worker until it is used
_LARGE = 5 << 20                # bytes of an answer above which the number of tasks is halved
_LOOK = 0.1                     # seconds between two checks that workers are alive, while batches arrive


class Prefetching:
    """The iterator of a loader with workers; with ``persistent_workers`` it is kept for the next pass."""

    def __init__(self, loader):
        self._count, self._timeout = loader.num_workers, loader.timeout
        self._in_order, self._stays = loader.in_order, loader.persistent_workers
        self._factor = loader.prefetch_factor
        self._cost, self._nbytes = 1.0, 0       # estimates: seconds of a batch, and its bytes in segments
        self._width = 1                         # the largest number of indices of a task in the last message
        self._asked = 0                 # number of requests for the workers' random states
        self._send_at_once(1)
        self._adapts = loader._prefetch_is_default and not loader.timeout
        self._pin = _Pinning(loader._pin) if loader._pin is not None else None
        self._threads = loader.multiprocessing_context == "thread"
        self._stream = isinstance(loader.dataset, IterableDataset)
        self._loader = None if self._stays else loader      # refers to persistent workers, so no reference is kept then
        self._sampler = loader._index_sampler
        self._begin(loader)
        self._workers = self._start(loader)

    def _start(self, loader):
        kind = "thread" if self._threads else "process"
        tasks = [(loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last, loader.worker_init_fn, k,
                  self._count, self._position.seed + k, self._states_of(k), kind)
                 for k in range(self._count)]
        from ptcore.utils.data import _workers

        if self._threads:
            return _workers.Threads(tasks)
        return _workers.Processes(_context(loader.multiprocessing_context), tasks)

    def _begin(self, loader):
        """Begins a pass, or resumes the one that was loaded."""
        self._position, self._indices, _ = _loader_state.begin(loader)
        self._position.workers = weakref.WeakMethod(self._get_states)
        if self._stream:
            self._size, self._name = _loader_state.said_length(loader), str(loader.dataset)
        # A stream is read again from its start. For other datasets the sampler has skipped the leading batches.
        at = self._position
        self._left_out = at.leading
        self._again = list(at.again or [0] * self._count)       # of each worker, the number of batches to skip
        self._counts = list(self._again)                        # see Position.again
        self._skip = self._skipped = 0
        if self._stream and at.again is None:
            self._skip = at.given
        elif self._stream:  # batches before the first new one of any worker, which all came while no worker had ended
            self._skip = self._skipped = min(count * self._count + k for k, count in enumerate(self._again))
        self._early = {}                # number -> worker, of batches handed out before earlier ones
        self._count_any_order()
        self._sent = self._next = 0     # numbers of the next task and of the next batch
        self._owner = {}                # number of a task -> its worker, until its batch is handed out
        self._waiting = [([], []) for _ in range(self._count)]  # numbers and indices of tasks not sent yet
        self._unsent = 0                # the total of these
        self._busy = [0] * self._count  # number of tasks sent and not answered
        self._arrived = {}              # number -> batch, of those that wait for earlier ones
        self._active = [True] * self._count
        self._turn = 0 if self._stream else self._left_out % self._count
        self._over = False
        self._looked = 0.0              # time of the last check that all workers are alive

    def _count_any_order(self):
        """Counts batches by worker from now on if they come in any order. While batches are skipped, they come in
        order."""
        at = self._position
        if at.again is not None or (not self._in_order and self._skipped == self._skip):
            at.first = at.leading
            at.again = self._counts

    def _states_of(self, worker):
        """The random states with which a worker continues, or None."""
        states = self._position.states
        return None if states is None or self._stream or len(states) != self._count else states[worker]

    def begin_again(self, loader):
        """Begins another pass with the same workers."""
        while any(self._busy):          # answers that the last pass left
            self._take(None)
        self._begin(loader)
        for k in range(self._count):
            self._workers.give(k, (BEGIN, self._position.seed + k, self._states_of(k)))
        return self

    def _get_states(self):
        """Each worker's random states before the first of its batches that was not handed out."""
        if self._stream or self._position.done or self._threads:
            return None
        found = [None] * self._count
        first = self._position.leading - self._left_out
        deadline = self._deadline()
        self._asked += 1                # distinguishes late answers to an earlier request
        for k in range(self._count):
            self._workers.give(k, (STATES, first + (k - self._left_out - first) % self._count, self._asked))
        while any(states is None for states in found):
            answer = self._workers.receive(_left(deadline))
            if answer is None:
                raise RuntimeError(f"state_dict: DataLoader timed out after {self._timeout} seconds")
            if answer[1][0] != STATES:
                self._note(answer[0], *answer[1])
            elif answer[1][1] == self._asked:
                found[answer[0]] = self._opened(*answer[1][2])
        return found

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._sampler)

    def _send_at_once(self, number):
        """Sets the number of tasks in a message. New tasks are drawn when a quarter of all workers' places is free; for
        one task in a message that is when one worker has none left."""
        self._at_once = number
        group = self._count * number
        self._most = self._factor * group               # tasks under way
        self._enough = self._most - max(1, group // 4)

    def _fill(self):
        """Gives the workers as many tasks as they may have."""
        while not self._over and len(self._owner) < self._most:
            if not any(self._active):
                break
            index = next(self._indices, _NONE)
            if index is _NONE:
                self._over = True
                break
            while not self._active[self._turn]:
                self._turn = (self._turn + 1) % self._count
            worker = self._turn
            self._owner[self._sent] = worker
            numbers, indices = self._waiting[worker]
            numbers.append(self._sent)
            indices.append(index)
            self._sent += 1
            self._unsent += 1
            self._turn = (worker + 1) % self._count
            if len(numbers) >= self._at_once:
                self._send(worker)
        # An idle worker gets the tasks that are there; at the end of the indices all tasks are sent.
        for worker, (numbers, _) in enumerate(self._waiting):
            if numbers and (self._over or not self._busy[worker]):
                self._send(worker)

    def _send(self, worker):
        numbers, indices = self._waiting[worker]
        self._waiting[worker] = [], []
        self._unsent -= len(numbers)
        self._busy[worker] += len(numbers)
        self._width = max(1, *map(width_of, indices))
        self._workers.give(worker, (TASKS, numbers, indices, self._skip, self._next))

    def _take(self, timeout):
        """Handles one answer of a worker; False if none came in time."""
        answer = self._workers.receive(timeout)
        if answer is None:
            return False
        if answer[1][0] != STATES:      # ignores states whose requester timed out
            self._note(answer[0], *answer[1])
        return True

    def _deadline(self):
        return time.monotonic() + self._timeout if self._timeout else None

    def _note(self, worker, seconds, numbers, batches):
        self._busy[worker] -= len(batches)
        made, nbytes = len(batches), 0
        for number, batch in zip(numbers, batches, strict=True):
            if isinstance(batch, Packed):
                nbytes += batch.nbytes
            if isinstance(batch, Ended):
                self._active[worker] = False
                made -= 1
            elif self._pin is not None:
                batch = self._pin.begin(batch)
            self._arrived[number] = batch
        if not made:
            return
        nbytes /= made
        self._nbytes = max(nbytes, self._nbytes + (nbytes - self._nbytes) / 8)
        if self._adapts:
            # The estimate rises slowly, since a worker may wait for its processor once.
            self._cost = min(seconds / made, self._cost + (seconds / made - self._cost) / 8)
            expected, number = self._cost * self._at_once, self._at_once
            most = min(_MOST_AT_ONCE, max(1, _INDICES // self._width))
            if expected > _LONG or number * self._nbytes > _LARGE:
                self._send_at_once(max(1, number // 2))
            elif number > most:
                self._send_at_once(most)
            elif expected < _SHORT and 2 * number * self._nbytes <= _LARGE and made >= number:
                self._send_at_once(min(2 * number, most))

    def _chosen(self):
        """The number of a batch that may be handed out before the next one, or None."""
        if self._in_order or self._skipped < self._skip:
            return None
        return min(self._arrived, default=None)

    def __next__(self):
        if self._position.done:         # the workers may have ended
            raise StopIteration
        # a waiting caller learns of a dead worker elsewhere at once
        if (now := time.monotonic()) > self._looked + _LOOK:
            self._workers.check()
            self._looked = now
        if self._pin is not None:
            while any(self._busy) and self._take(0):        # pins arrived batches while the loop works on this one
                pass
        deadline = self._deadline()
        while True:
            if len(self._owner) <= self._enough or (self._unsent and not all(self._busy)):
                self._fill()
            number = self._next
            if number not in self._arrived and (number := self._chosen()) is None:
                if not self._owner:
                    return self._finish()
                if not self._take(_left(deadline)):
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
                continue
            batch = self._arrived.pop(number)
            worker = self._owner.pop(number)
            new = not isinstance(batch, Ended) and self._is_new(worker)
            self._skip_batch(number, worker)
            if not new:
                continue
            self._position.given += 1
            if self._pin is not None:
                batch = self._pin.finish(batch)
            batch = self._opened(batch)
            if self._stream:
                _loader_state.check_length(self._size, self._name, self._position.given)
            return batch

    @staticmethod
    def _opened(batch):
        if isinstance(batch, Packed):
            batch = batch.load()
        if isinstance(batch, Failure):
            batch.reraise()
        return batch

    def _is_new(self, worker):
        """Counts a worker's batch; returns whether it was not handed out before."""
        if self._skipped < self._skip:
            self._skipped += 1
            self._counts[worker] += 1
            self._count_any_order()
            return False
        if self._again[worker]:
            self._again[worker] -= 1
            return False
        self._counts[worker] += 1
        return True

    def _skip_batch(self, number, worker):
        """Notes that a batch was handed out, and advances to the first missing one."""
        self._early[number] = worker
        while (worker := self._early.pop(self._next, None)) is not None:
            self._next += 1
            if not self._stream:
                self._counts[worker] -= 1
                if self._position.again is not None:
                    self._position.first += 1

    def _finish(self):
        self._position.done = True
        if not self._stays:
            self._workers.close()
        raise StopIteration


def _left(deadline):
    """The seconds until a deadline; None if there is none."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


class _Pinning:
    """A thread that copies arrived batches to page-locked memory beside the loop."""

    def __init__(self, pin):
        self._copy, self._thread = pin, None

    def begin(self, batch):
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(1, "DataLoader pin_memory")
        return self._thread.submit(self._pinned, batch)

    def _pinned(self, batch):
        try:
            if isinstance(batch, Packed):
                batch = batch.load()
            return batch if isinstance(batch, Failure) else self._copy(batch)
        except Exception as error:      # a Future would keep the error, and with it the frames of its traceback
            return Failure(error, "DataLoader thread of pin_memory")

    def finish(self, batch):
        return batch.result()


def _context(given):
    """The multiprocessing context that is given by name, as an object, or by default. Contexts of
    ``ptcore.multiprocessing`` send tensors as shared memory."""
    from ptcore import multiprocessing

    if given is None or isinstance(given, str):
        return multiprocessing.get_context(given)
    return given
