"""DataLoader with workers: processes of each start method, and threads."""
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from _samples import INHERITS, Draws, Split, Squares, values

import ptcore
from ptcore.utils.data import DataLoader, Dataset, IterableDataset, SharedList, TensorDataset, get_worker_info

# From Python 3.12 on a fork warns of threads, such as those of an earlier loader that are about to end.
pytestmark = [pytest.mark.counts, pytest.mark.timeout(120),
              pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")]
CONTEXTS = ("fork", "spawn", "forkserver", "thread")


class Needs(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Acts(Dataset):
    """Does something at one index."""

    def __init__(self, act, at=7):
        self.act, self.at = act, at

    def __len__(self):
        return 12

    def __getitem__(self, i):
        if i == self.at:
            return ACTS[self.act]()
        return i


def raises(error):
    raise error


ACTS = {"key": lambda: raises(KeyError("seven")), "value": lambda: raises(ValueError("bad sample")),
        "needs": lambda: raises(Needs(1, 2)), "stop": lambda: raises(StopIteration),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL), "exit": lambda: os._exit(3),
        "terminate": lambda: os.kill(os.getpid(), signal.SIGTERM), "sleep": lambda: time.sleep(60),
        "lambda": lambda: (lambda: 0)}


def gone(pids, seconds=10.0):
    """Whether no process of these runs any more (a zombie counts as running)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not [p for p in pids if os.path.exists(f"/proc/{p}")]:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("context", CONTEXTS)
def test_batches_are_those_of_one_process(context):
    for options in ({"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None},
                    {"batch_sampler": [[5, 1], [2], [19, 0, 3]]}, {"sampler": [4, 4, 2]}):
        want = values(DataLoader(Squares(), **options))
        assert values(DataLoader(Squares(), num_workers=2, multiprocessing_context=context, **options)) == want
    tensors = TensorDataset(ptcore.arange(10), ptcore.arange(10.))
    for a, b in DataLoader(tensors, batch_size=4, num_workers=2, multiprocessing_context=context):
        assert a.dtype is ptcore.int64 and b.dtype is ptcore.float32 and a.tolist() == b.tolist()


def test_one_worker_and_more_than_batches():
    for workers in (1, 7, 12):
        assert values(DataLoader(Squares(7), batch_size=2, num_workers=workers)) == values(
            DataLoader(Squares(7), batch_size=2))
    assert values(DataLoader(Squares(0), num_workers=2)) == []


@pytest.mark.parametrize("persistent", [False, True])
def test_an_exhausted_iterator_stays_so(persistent):
    it = iter(DataLoader(Squares(3), num_workers=2, persistent_workers=persistent))
    assert len(list(it)) == 3
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(it)


def test_the_order_is_the_generators():
    def order(workers):
        g = ptcore.Generator().manual_seed(3)
        return values(DataLoader(Squares(), batch_size=4, shuffle=True, generator=g, num_workers=workers))
    assert order(2) == order(2) == order(3)
    assert sorted(x[0] for b in order(2) for x in b) == list(range(20))


@pytest.mark.parametrize("context", CONTEXTS)
def test_streams(context):
    for n in (0, 1, 23):
        for size in (1, 4):
            loader = DataLoader(Split(n), batch_size=size, num_workers=3, multiprocessing_context=context)
            for _ in range(2):
                assert sorted(x for b in values(loader) for x in b) == list(range(n))
    loader = DataLoader(Split(23), batch_size=4, drop_last=True, num_workers=2, multiprocessing_context=context)
    assert values(loader) == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15], [16, 18, 20, 22]]
    loader = DataLoader(Split(5), batch_size=None, num_workers=2, multiprocessing_context=context)
    assert sorted(loader) == [0, 1, 2, 3, 4]


def test_a_stream_longer_than_it_says():
    class Liar(Split):
        def __len__(self):
            return 4

    loader = DataLoader(Liar(6), batch_size=2, num_workers=1, multiprocessing_context=INHERITS)
    with pytest.warns(UserWarning, match="was reported to be 2, but 3 batches have been fetched"):
        assert len(values(loader)) == 3


class Infos(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, info.dataset is self, ptcore.get_num_threads(), os.getpid()


def first(batch):
    return batch[0]


def test_worker_info():
    assert get_worker_info() is None
    found = list(DataLoader(Infos(), collate_fn=first, num_workers=2))
    assert [f[0] for f in found] == [0, 1, 0, 1]
    assert {f[1] for f in found} == {2}
    assert found[1][2] == found[0][2] + 1
    assert all(f[3] for f in found)
    assert {f[4] for f in found} == {1}
    assert len({f[5] for f in found} | {os.getpid()}) == 3
    shown = next(iter(DataLoader(Shows(), collate_fn=first, num_workers=1)))
    assert shown.startswith("WorkerInfo(id=0, num_workers=1, seed=")


class Shows(Infos):
    def __getitem__(self, i):
        return repr(get_worker_info())


def test_random_numbers():
    """Apart between workers and passes, the same for the same seed, and the three sources are all seeded."""
    def run(workers=2, **options):
        ptcore.manual_seed(11)
        loader = DataLoader(Draws(8), batch_size=1, num_workers=workers, **options)
        return [values(loader), values(loader)]
    one, two = run(), run()
    assert one == two
    assert one[0] != one[1]
    columns = np.asarray(one).reshape(-1, 4)
    assert all(len(set(columns[:, k])) == 16 for k in range(3))
    assert run(persistent_workers=True) == one          # the same seeds for workers that stay
    assert run(multiprocessing_context="spawn") == one
    before = random.getstate()
    run()
    assert random.getstate() == before                  # the loader's own process draws nothing of Python's


LOG = []


def note(number):
    LOG.append(number)
    ptcore.manual_seed(100 + number)


class Logs(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return list(LOG), ptcore.initial_seed()


def test_worker_init_fn():
    assert list(DataLoader(Logs(), collate_fn=first, num_workers=2, worker_init_fn=note)) == [
        ([0], 100), ([1], 101), ([0], 100), ([1], 101)]
    assert LOG == []


def test_worker_init_fn_that_fails():
    with pytest.raises(ZeroDivisionError, match=r"Caught ZeroDivisionError in DataLoader worker process 0\.\nOrig"):
        list(DataLoader(Squares(), num_workers=2, worker_init_fn=lambda number: 1 // 0,
                        multiprocessing_context=INHERITS))


def test_persistent_workers():
    loader = DataLoader(Infos(), collate_fn=first, num_workers=2, persistent_workers=True)
    pids = [{f[5] for f in loader} for _ in range(3)]
    assert pids[0] == pids[1] == pids[2]
    it = iter(loader)
    next(it)                                            # left in the middle
    assert len(list(loader)) == 4
    workers = list(pids[0])
    del loader, it
    assert gone(workers)
    fresh = DataLoader(Infos(), collate_fn=first, num_workers=2)
    assert not {f[5] for f in fresh} & {f[5] for f in fresh}


class Counts(Dataset):
    """Counts in a file how many samples were asked for."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 100

    def __getitem__(self, i):
        with open(self.path, "a") as f:
            f.write("x")
        return i


@pytest.mark.alone
@pytest.mark.parametrize("context", ["fork", "thread"])
@pytest.mark.parametrize(("factor", "workers"), [(1, 1), (2, 2), (5, 2)])
def test_prefetch_factor(tmp_path, context, factor, workers):
    path = tmp_path / "count"
    path.touch()
    loader = DataLoader(Counts(path), num_workers=workers, prefetch_factor=factor, multiprocessing_context=context)
    it = iter(loader)
    next(it)
    deadline = time.monotonic() + 10
    while path.stat().st_size < factor * workers and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    # what is under way when a batch is asked for; nothing is asked for beyond
    assert path.stat().st_size == factor * workers
    del it


@pytest.mark.alone
def test_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.3 seconds"):
        list(DataLoader(Acts("sleep", 0), num_workers=1, timeout=0.3, multiprocessing_context="thread"))
    loader = DataLoader(Acts("sleep", 0), num_workers=1, timeout=0.3)
    it = iter(loader)
    pids = it._workers.pids()
    with pytest.raises(RuntimeError, match="timed out"):
        next(it)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    del it
    assert time.monotonic() - start < 30


class Slow(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        time.sleep(0.5 if i == 0 else 0.001)
        return i


@pytest.mark.parametrize("context", ["fork", "thread"])
def test_any_order(context):
    got = values(DataLoader(Slow(), num_workers=2, in_order=False, multiprocessing_context=context))
    assert sorted(got) == [[i] for i in range(8)]
    assert got[0] != [0]                                # what was ready came first
    assert values(DataLoader(Slow(), num_workers=2, multiprocessing_context=context)) == [[i] for i in range(8)]


@pytest.mark.parametrize("context", ["fork", "spawn", "thread"])
def test_exceptions(context):
    where = "thread" if context == "thread" else "process"
    for act, error, text in (("key", KeyError, "KeyError: 'seven'"), ("value", ValueError, "bad sample"),
                             ("needs", RuntimeError, "Needs"), ("stop", RuntimeError, "StopIteration")):
        it = iter(DataLoader(Acts(act), batch_size=2, num_workers=2, multiprocessing_context=context))
        got = [next(it).tolist() for _ in range(3)]
        assert got == [[0, 1], [2, 3], [4, 5]]
        with pytest.raises(error, match=f"in DataLoader worker {where} 1") as caught:
            next(it)
        assert text in str(caught.value)
        assert "in __getitem__" in str(caught.value)            # the worker's own lines
        assert "\\n" not in str(caught.value)
        assert next(it).tolist() == [8, 9]              # the others are there still


def refuses(batch):
    class Local(Exception):
        """Another process cannot import it."""

    raise Local("unpicklable error")


def test_what_cannot_be_sent():
    with pytest.raises(RuntimeError, match=r"(?s)Caught RuntimeError in .*unpicklable error"):
        list(DataLoader(Squares(), num_workers=1, collate_fn=refuses))
    text = r"(?s)in DataLoader worker process 0.*Can't (pickle|get local object)"
    with pytest.raises((AttributeError, pickle.PicklingError), match=text):         # the latter from Python 3.14 on
        list(DataLoader(Acts("lambda", 0), num_workers=1, collate_fn=first))


@pytest.mark.alone
@pytest.mark.parametrize(("act", "text"), [("kill", r"was killed by signal 9 \(SIGKILL\)"),
                                           ("exit", "exited with code 3"),
                                           ("terminate", r"was killed by signal 15 \(SIGTERM\)")])
def test_dead_workers(act, text):
    it = iter(DataLoader(Acts(act), batch_size=2, num_workers=2))
    pids = it._workers.pids()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {pids[1]}\), number 1, {text} unexpectedly"):
        list(it)
    assert time.monotonic() - start < 5
    del it
    assert gone(pids)


@pytest.mark.alone
def test_a_worker_that_dies_idle():
    """It is told at the next batch, though that one may be there already."""
    it = iter(DataLoader(Squares(), num_workers=2))
    next(it)
    os.kill(it._workers.pids()[0], signal.SIGKILL)
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        next(it)


@pytest.mark.alone
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts by /proc")
def test_nothing_is_left():
    """No process, descriptor or thread, whether a pass ends, is left, fails or loses a worker."""
    def use(k):
        loader = DataLoader(Acts("kill" if k % 4 == 3 else "value" if k % 4 == 2 else "lambda", 99 if k % 4 < 2 else 7),
                            num_workers=2, multiprocessing_context="thread" if k % 8 == 0 else None)
        it = iter(loader)
        pids = it._workers.pids()
        try:
            for n, _ in enumerate(it):
                if k % 4 == 1 and n == 3:
                    break
        except (RuntimeError, ValueError):
            pass
        return pids

    use(0)
    files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    pids = [p for k in range(16) for p in use(k)]
    assert gone(pids)
    assert len(os.listdir("/proc/self/fd")) == files
    deadline = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threading.active_count() <= threads


PARENT = """
import os, sys, time
sys.path.insert(0, {folder!r})
from test_workers import *

if __name__ == "__main__":
    # One that was started in the background has Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loader = DataLoader(Squares(10**6), num_workers=3, multiprocessing_context={context!r})
    it = iter(loader)
    print(*it._workers.pids(), flush=True)
    try:
        while True:
            next(it)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        {then}
"""


@pytest.mark.alone
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("how", ["interrupt", "group", "kill", "terminate"])
def test_the_loaders_process_ends(tmp_path, how, context):
    """By Ctrl-C, alone or with all workers as a terminal does it, or by a signal: no worker stays."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(folder=os.path.dirname(os.path.abspath(__file__)), context=context, then="raise"))
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env={**os.environ, "PYTHONFAULTHANDLER": ""})
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) == 3
    time.sleep(0.3)
    if how == "group":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal({"interrupt": signal.SIGINT, "kill": signal.SIGKILL, "terminate": signal.SIGTERM}[how])
    try:
        out, err = process.communicate(timeout=30)
        assert gone(pids)
    finally:
        if not gone([process.pid, *pids], 0.1):
            os.killpg(process.pid, signal.SIGKILL)
    if how in ("interrupt", "group"):
        assert "interrupted" in out
        assert err.count("KeyboardInterrupt") == 1              # the workers say nothing
        assert process.returncode in (1, -signal.SIGINT, 130)


TRIES = int(os.environ.get("PTCORE_TEST_INTERRUPTS", "5"))


@pytest.mark.alone
@pytest.mark.timeout(120 + 10 * TRIES)
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_ctrl_c_under_load(tmp_path, context):
    """Whenever it comes and whatever else runs, the loader's process ends within two seconds, and so do its workers."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(folder=os.path.dirname(os.path.abspath(__file__)), context=context, then="raise"))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    times = []
    try:
        for k in range(TRIES):
            process = subprocess.Popen([sys.executable, "-P", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, start_new_session=True, env={**os.environ, "PYTHONFAULTHANDLER": ""})
            try:
                pids = [int(p) for p in process.stdout.readline().split()]
                time.sleep(random.random() * 0.6)
                began = time.monotonic()
                (os.killpg if k % 2 else os.kill)(process.pid, signal.SIGINT)
                out, err = process.communicate(timeout=20)
                times.append(time.monotonic() - began)
                assert "interrupted" in out
                assert err.count("KeyboardInterrupt") == 1, err
                assert gone(pids, 2)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
    finally:
        for other in busy:
            other.kill()
            other.wait()
    assert max(times) < 2, times


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
    ({"num_workers": 1, "prefetch_factor": 0}, ValueError, "prefetch_factor option should be positive"),
    ({"num_workers": "2"}, TypeError, "DataLoader: num_workers must be an int, got '2'"),
    ({"num_workers": 2.0}, TypeError, "num_workers must be an int, got 2.0"),
    ({"num_workers": None}, TypeError, "num_workers must be an int, got None"),
    ({"num_workers": 1, "timeout": "9"}, TypeError, "timeout must be a number of seconds, got '9'"),
    ({"num_workers": 1, "prefetch_factor": "2"}, TypeError, "prefetch_factor must be an int, got '2'"),
    ({"collate_fn": 3}, TypeError, "collate_fn must be callable, got 3"),
    ({"num_workers": 1, "worker_init_fn": 3}, TypeError, "worker_init_fn must be callable, got 3"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing"),
    ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ({"num_workers": 1, "multiprocessing_context": "sometimes"}, ValueError, "valid start method"),
    ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "valid context object"),
    ({"multiprocessing_context": "fork"}, ValueError, "can only be used with multi-process loading"),
    ({"num_workers": 1, "timeout": -1}, ValueError, "timeout option should be non-negative"),
    ({"timeout": 3}, ValueError, "timeout option needs num_workers > 0, got timeout=3")])
def test_bad_options(options, error, text):
    with pytest.raises(error, match=text):
        DataLoader(Squares(), **options)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("where", ["sample", "init"])
def test_a_thread_that_is_told_to_end(error, where):
    """Nobody would see it go."""
    class Ends(Squares):
        def __getitem__(self, i):
            if i == 1 and where == "sample":
                raise error(4)
            return i

    def init(worker):
        raise error(4)

    it = iter(DataLoader(Ends(4), num_workers=2, multiprocessing_context="thread",
                         worker_init_fn=init if where == "init" else None))
    if where == "sample":
        assert next(it).tolist() == [0]
    with pytest.raises(RuntimeError, match=f"Caught {error.__name__} in DataLoader worker thread"):
        next(it)


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_that_do_not_know_their_length(workers):
    class Asked(Split):
        def __len__(self):
            raise NotImplementedError

    class Alone(Split):
        def __iter__(self):
            return iter(range(self.n) if get_worker_info() is None else super().__iter__())

    options = {"num_workers": workers, "multiprocessing_context": INHERITS if workers else None}
    assert sorted(values(DataLoader(Alone(3) + Alone(4), **options))) == sorted([[i] for n in (3, 4) for i in range(n)])
    if workers:
        loader = DataLoader(Asked(5), **options)
        it = iter(loader)
        next(it)
        assert loader.state_dict()["length"] is None
        assert len(values(it)) == 4


class SlowStream(IterableDataset):
    def __iter__(self):
        for k in range(8):
            time.sleep(0.005)
            yield ptcore.tensor(k)


def test_the_end_of_a_stream_is_no_cheap_batch():
    """Passes over a stream of dear samples ask for no more of them at once."""
    loader = DataLoader(SlowStream(), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(6):
        it = iter(loader)
        assert len(list(it)) == 8
        assert it._at_once == 1


@pytest.mark.alone
def test_small_batches_travel_together():
    """Two messages for each batch, until they are found to be cheap; with a factor or a timeout always."""
    def messages(**options):
        loader = DataLoader(Squares(2000), batch_size=None, num_workers=2, **options)
        it = iter(loader)
        counted, give = [], it._workers.give
        it._workers.give = lambda worker, message: (counted.append(len(message[2])), give(worker, message))
        assert [b[0].item() for b in it] == list(range(2000))
        assert sum(counted) == 2000
        assert max(counted) <= 16
        return len(counted)

    assert messages(prefetch_factor=2) == messages(timeout=60) == 2000
    assert messages() < 500


def test_dear_batches_travel_alone():
    it = iter(DataLoader(Slow(), num_workers=2))
    list(it)
    assert it._at_once <= 2


@pytest.mark.alone
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_a_dead_worker_is_told_within_a_second(context):
    """While the loop waits for its batch, and without a timeout."""
    it = iter(DataLoader(Acts("sleep", 0), num_workers=2, multiprocessing_context=context))
    pid, died = it._workers.pids()[0], []

    def kill():
        time.sleep(0.5)
        died.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(RuntimeError, match=rf"worker \(pid {pid}\), number 0, was killed by signal 9 \(SIGKILL\)"):
        next(it)
    thread.join()
    assert time.monotonic() - died[0] < 1


def test_shared_list():
    items = [{"name": f"{i}.png", "label": i % 7} for i in range(1000)] + [None, (), 10**30]
    shared = SharedList(items)
    assert len(shared) == 1003 and list(shared) == items
    assert shared[-1] == 10**30 and shared[np.int64(3)] == items[3] and shared[5:8] == items[5:8]
    with pytest.raises(IndexError, match="index 1003 is out of range for 1003 items"):
        shared[1003]
    assert list(SharedList([])) == []
    assert "1003 items" in repr(shared)
    with pytest.raises((AttributeError, pickle.PicklingError), match=r"pickle|local object"):
        SharedList([lambda: 0])
    for context in ("fork", "spawn"):
        got = list(DataLoader(SharedList(items), batch_size=100, num_workers=2, multiprocessing_context=context,
                              collate_fn=list))
        assert [x for b in got for x in b] == items


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_shared_list_is_one_in_all_processes(context):
    shared = SharedList(["aaaa"] * 50)
    assert shared[3] == "aaaa"                          # NumPy knows the address now
    it = iter(DataLoader(shared, batch_size=None, num_workers=2, multiprocessing_context=context, prefetch_factor=1))
    assert next(it) == "aaaa"
    where = shared._bytes.numpy()
    where[where == ord("a")] = ord("b")                 # seen by whoever shows the same memory
    assert list(it)[-1] == "bbbb"


MEMORY = """
import os, re, sys
from ptcore.utils.data import DataLoader, SharedList
from multiprocessing import active_children


def proportional():
    \"\"\"Bytes of this process and its workers, what several share counted once.\"\"\"
    total = 0
    for pid in [os.getpid(), *[p.pid for p in active_children()]]:
        total += int(re.search(r"^Pss:\\s+(\\d+)", open(f"/proc/{{pid}}/smaps_rollup").read(), re.M)[1])
    return total


items = [(i, f"image-{{i:07d}}.png") for i in range({n})]
loader = DataLoader({wrap}(items), batch_size=500, num_workers=4, collate_fn=len, persistent_workers=True)
if {wrapped}:
    del items
it = iter(loader)
for _ in range(12):                     # until all workers are at work
    next(it)
found = [proportional()]
for epoch in range({epochs}):
    for _ in (it if epoch == 0 else loader):
        pass
    # at the end of the pass the workers are still there
    found.append(proportional())
print(*found)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="reads the kernel's accounts")
def test_memory_of_workers():
    """A million objects: nothing is added after the first pass, and a SharedList adds little in that."""
    def run(wrap, epochs):
        text = MEMORY.format(n=10**6, wrap=wrap, wrapped=wrap == "SharedList", epochs=epochs)
        done = subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, text=True, check=True)
        return [int(x) for x in done.stdout.split()]
    plain, shared = run("list", 10), run("SharedList", 1)
    print(plain, shared)
    assert plain[10] <= 1.02 * plain[1]
    assert shared[1] <= 1.1 * shared[0]


# -- neither side waits for the other to read -----------------------------------------------------

class Sentences(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, i):
        return f"sentence {i}"


def long_batches(count, size):
    """Indices that take several bytes each."""
    return [list(range(900_000 + k, 900_000 + k + size)) for k in range(count)]


def in_threads(monkeypatch):
    """What systems without these pipes do."""
    from ptcore.utils.data import _workers

    monkeypatch.setattr(_workers.segments, "STRATEGIES", ("file_system",))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("context", ["fork", "spawn", "standard", "threads that send"])
def test_tasks_and_answers_that_fill_the_pipe(context, monkeypatch):
    """Each message is longer than what a pipe takes before it is read: the loader sends while a worker does."""
    if context == "threads that send":
        in_threads(monkeypatch)
        context = "fork"
    if context == "standard":
        context = multiprocessing.get_context("fork")
    batches = long_batches(8, 90_000)
    loader = DataLoader(Sentences(), batch_sampler=batches, num_workers=2, multiprocessing_context=context)
    found = list(loader)
    assert [(batch[0], batch[-1], len(batch)) for batch in found] == [
        (f"sentence {b[0]}", f"sentence {b[-1]}", 90_000) for b in batches]


@pytest.mark.alone
@pytest.mark.timeout(60)
@pytest.mark.parametrize("way", ["pipes", "threads that send"])
def test_a_pass_that_is_left_while_both_send(way, monkeypatch):
    if way != "pipes":
        in_threads(monkeypatch)
    loader = DataLoader(Sentences(), batch_sampler=long_batches(12, 60_000), num_workers=2)
    it = iter(loader)
    next(it)
    pids = it._workers.pids()
    began = time.monotonic()
    it._workers.close()
    assert time.monotonic() - began < 10
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.alone
@pytest.mark.timeout(60)
def test_a_worker_dies_while_it_is_sent_to():
    batches = [list(range(5)), *long_batches(5, 90_000)]
    it = iter(DataLoader(Dies(), batch_sampler=batches, num_workers=1, collate_fn=len))
    with pytest.raises(RuntimeError, match=r"killed by signal 9 \(SIGKILL\)"):
        list(it)


class Dies(Sentences):
    def __getitem__(self, i):
        if i == 4:
            time.sleep(0.3)                             # what it is sent meanwhile stays in the pipe
            os.kill(os.getpid(), signal.SIGKILL)
        return i


@pytest.mark.timeout(60)
def test_indices_that_are_tensors():
    """Their descriptors go beside the message, more than the pipe takes at once."""
    indices = [ptcore.arange(k, k + 60_000) for k in range(40)]
    loader = DataLoader(Sums(), batch_size=None, sampler=indices, num_workers=1, prefetch_factor=40)
    assert list(loader) == [int(i.sum()) for i in indices]


class Sums(Dataset):
    def __getitem__(self, indices):
        return int(indices.sum())


# -- small tensors inside a message -------------------------------------------------------------------

def of_every_kind():
    found = []
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
                 "bfloat16", "float32", "float64", "complex64", "complex128"):
        x = ptcore.arange(24).to(getattr(ptcore, name))
        found += [x.reshape(2, 3, 4), x.reshape(4, 6).t(), x[3:9], x[::5], x[7], x[:0],
                  x.reshape(1, 24, 1).expand(2, 24, 3)]
    x = ptcore.arange(4.0)
    return [*found, x.clone().requires_grad_(), ptcore.nn.Parameter(x), ptcore.nn.Buffer(x), x.exp().requires_grad_()]


class Kinds(Dataset):
    def __getitem__(self, i):
        return of_every_kind()

    def __len__(self):
        return 3


def test_small_tensors_of_every_kind():
    want = of_every_kind()
    for found in DataLoader(Kinds(), batch_size=None, num_workers=1, collate_fn=list):
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            assert type(a) is type(b)
            assert a.dtype is b.dtype
            assert a.shape == b.shape
            assert a.requires_grad == b.requires_grad
            assert a.tolist() == b.tolist()
