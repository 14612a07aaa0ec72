"""Worker processes that walk entries, one at a time; one that dies or takes too long is counted as wrong."""
import multiprocessing
import multiprocessing.connection
import time

LIMIT = 900         # seconds of one entry


def worker(pipe, seed, quick, phases):
    import torch

    import ptcore

    from . import _entries, _phases
    torch.set_num_threads(1)
    ptcore.set_num_threads(1)
    table = _entries.entries()
    pipe.send(None)
    while True:
        name = pipe.recv()
        if name is None:
            return
        pipe.send(_phases.walk(table[name], seed, quick, phases))


class Worker:
    def __init__(self, *settings):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=worker, args=(theirs, *settings), daemon=True)
        self.process.start()
        theirs.close()
        self.name, self.since = "start", time.monotonic()


def run(names, jobs, *settings):
    """(name, result, notes, seconds) of each entry, as they come."""
    waiting, workers = list(names)[::-1], [Worker(*settings) for _ in range(jobs)]
    while workers:
        for w in list(workers):
            if not multiprocessing.connection.wait([w.pipe], 0.2):
                if time.monotonic() - w.since < LIMIT:
                    continue
                w.process.kill()
            spent = time.monotonic() - w.since
            try:
                answer = w.pipe.recv()
            except (EOFError, ConnectionError):
                w.process.join()
                if w.name == "start":
                    raise SystemExit("a worker did not start") from None
                yield w.name, {"forward": [1, [f"the process ended with {w.process.exitcode}"], 0]}, [], spent
                workers.remove(w)
                workers.append(Worker(*settings))
                continue
            if answer is not None:
                yield w.name, *answer, spent
            if waiting:
                w.name, w.since = waiting.pop(), time.monotonic()
                w.pipe.send(w.name)
            else:
                w.pipe.send(None)
                workers.remove(w)
