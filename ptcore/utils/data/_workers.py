"""The loader's view of its workers: processes with a connection each, or threads.

Processes share no lock and no queue, so a killed worker leaves nothing locked. The loader never blocks while it sends,
since a worker that is sending a large answer waits for the loader. Workers are closed when their iterator is dropped
and when the interpreter ends.
"""

import functools
import select
import signal
import threading
import time
import weakref
from multiprocessing.util import Finalize

from ptcore import _random
from ptcore._memory import segments
from ptcore.utils.data._ring import Reader
from ptcore.utils.data._worker import Watch, run_in_process, serve

__all__ = ["Processes", "Threads"]

_SOON = 5.0                             # seconds within which the system reports that a worker has ended
_PATIENCE = 1.0  # seconds that workers have to end by themselves, since Ctrl-C should not take longer


def _block(forks):
    """Blocks Ctrl-C until the workers are started: a worker that is still being set up would end with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        return None
    if not forks:
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()           # its start would unblock the signal
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _unblock(before):
    if before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how_it_ended(process):
    code = process.exitcode
    if code is not None and code < 0:
        try:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"exited with code {code}"


class _ByThread:
    """Posts messages to a connection of the standard module; a thread sends them."""

    def __init__(self, connection):
        from queue import SimpleQueue

        self._inbox = SimpleQueue()
        self._thread = threading.Thread(target=self._send, args=(connection, self._inbox), daemon=True,
                                        name="DataLoader sender")
        self._thread.start()

    @staticmethod
    def _send(connection, inbox):
        try:
            while (message := inbox.get()) is not None:
                connection.send_bytes(message)
        except OSError:                 # the worker has ended, which is reported elsewhere
            pass
        finally:
            connection.close()

    def post(self, message):
        from multiprocessing.reduction import ForkingPickler

        self._inbox.put(ForkingPickler.dumps(message))
        return True

    def close(self):
        self._inbox.put(None)
        self._thread.join(0.2)          # otherwise the thread waits for a worker whose end will end it


def _posts(context):
    """(an end of a pipe, its posting end, the worker's end)"""
    if segments.STRATEGIES[0] == "file_descriptor":        # for any context
        from ptcore.multiprocessing.channels import Pipe

        mine, theirs = Pipe()
        return mine, mine, theirs
    mine, theirs = context.Pipe()
    return mine, _ByThread(mine), theirs


def _end(processes, outboxes):
    """Ends the worker processes, even if Ctrl-C comes meanwhile."""
    try:
        for outbox in outboxes:
            try:
                outbox.post(({}, None))
            except (OSError, ValueError):
                pass
        for outbox in outboxes:
            outbox.close()              # a sending worker fails now
        deadline = time.monotonic() + _PATIENCE
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
            process.close()


class Processes:
    """Worker processes.

    Parameters
    ----------
    context : multiprocessing context
    tasks : list of tuple
        The arguments with which each worker is started; see ``_worker.serve``.
    """

    def __init__(self, context, tasks):
        self.connections, self.processes, self._outboxes = [], [], []
        self._readers = []
        self._full = set()              # workers with unsent messages
        # Finalizers of the standard module run before it waits for its processes, and only in the process that made
        # them.
        self._close = Finalize(self, _end, (self.processes, self._outboxes), exitpriority=10)
        forks = context.get_start_method() == "fork"
        before = _block(forks)
        import gc

        # A collection in a child would write to every object and so copy its page. Objects frozen by the user stay
        # frozen.
        freezes = forks and gc.get_freeze_count() == 0
        if freezes:
            gc.freeze()
        try:
            for task in tasks:
                mine, outbox, theirs = _posts(context)
                self.connections.append(mine)
                self._outboxes.append(outbox)
                self._readers.append(Reader())
                process = context.Process(target=run_in_process, daemon=True,
                                          args=(task, theirs, self.connections if forks else (),
                                                _random.kind_in_use()))
                process.start()
                self.processes.append(process)
                theirs.close()
        except BaseException:
            self._close()
            raise
        finally:
            _unblock(before)
            if freezes:
                gc.unfreeze()
        self._sentinels = [p.sentinel for p in self.processes]
        self._deaths = Watch(self._sentinels)
        self._any = Watch([*self.connections, *self._sentinels])

    def give(self, worker, message):
        try:
            if not self._outboxes[worker].post((self._readers[worker].answered(), message)):
                self._full.add(worker)
        except (BrokenPipeError, ConnectionResetError):
            self.check(worker)
            raise

    def _ready(self, timeout):
        """The ready connections and sentinels; waiting messages are sent meanwhile."""
        if not self._full:
            return self._any.ready(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        full = {self.connections[worker].fileno(): worker for worker in self._full}
        objects = {o if isinstance(o, int) else o.fileno(): o for o in (*self.connections, *self._sentinels)}
        poll = select.poll()
        for number in objects:
            poll.register(number, select.POLLIN | (select.POLLOUT if number in full else 0))
        while True:
            left = None if end is None else max(0.0, end - time.monotonic())
            events = poll.poll(None if left is None else 1000 * left)
            for number, event in events:
                if event & select.POLLOUT and self._flush(full[number]):
                    poll.modify(number, select.POLLIN)
            ready = [objects[number] for number, event in events if event & ~select.POLLOUT]
            if ready or left == 0:
                return ready

    def _flush(self, worker):
        try:
            if gone := self._outboxes[worker].flush():
                self._full.discard(worker)
            return gone
        except (BrokenPipeError, ConnectionResetError):
            self.check(worker)
            raise

    def check(self, worker=None):
        """Raises RuntimeError if a worker has ended; waits for the end of ``worker`` if it is given."""
        ended = self._deaths.ready(0 if worker is None else _SOON)
        for number, process in enumerate(self.processes):
            if ended and process.sentinel in ended:
                process.join()
                hint = "" if process.exitcode < 0 else "; what it wrote to standard error tells more"
                raise RuntimeError(f"DataLoader worker (pid {process.pid}), number {number}, {_how_it_ended(process)} "
                                   f"unexpectedly{hint}")

    def receive(self, timeout):
        """(worker, message), or None after ``timeout`` seconds (None: never)."""
        ready = self._ready(timeout)
        if not ready:
            return None
        for number, connection in enumerate(self.connections):
            if connection in ready:
                try:
                    return number, self._readers[number].receive(connection)
                except (EOFError, ConnectionResetError):
                    self.check(number)
                    raise
        self.check()
        return None

    def pids(self):
        return [p.pid for p in self.processes]

    def close(self):
        self._close()


def _tell(inboxes):
    for inbox in inboxes:
        inbox.put(None)


class _Answer:
    """The results of a thread."""

    def __init__(self, worker, results):
        self._worker, self._results, self._batches = worker, results, []

    def add(self, made):
        self._batches.append(made)

    def send(self, *head):
        self._results.put((self._worker, (*head, self._batches)))


class Threads:
    """Worker threads, for datasets whose work releases the GIL. They share the loader's dataset and generators."""

    def __init__(self, tasks):
        from queue import SimpleQueue

        self._inboxes, self._results = [SimpleQueue() for _ in tasks], SimpleQueue()
        for number, task in enumerate(tasks):
            begin = functools.partial(_Answer, number, self._results)
            threading.Thread(target=serve, args=(task, self._inboxes[number].get, begin), daemon=True,
                             name=f"DataLoader worker {number}").start()
        self._close = weakref.finalize(self, _tell, self._inboxes)

    def give(self, worker, message):
        self._inboxes[worker].put(message)

    def check(self):
        """Does nothing: threads are not killed."""

    def receive(self, timeout):
        from queue import Empty

        try:
            return self._results.get(timeout=timeout)
        except Empty:
            return None

    def pids(self):
        return []

    def close(self):
        self._close()
