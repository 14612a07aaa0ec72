"""Tensors between processes: every start method and strategy, any order of ends, kills, and ops after a fork."""
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ptcore as pt
import ptcore.multiprocessing as mp
from ptcore._memory import segments

METHODS = [m for m in ("fork", "spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
FOLDER = "/dev/shm"

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=segments.STRATEGIES)
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def ended(process):
    process.join(60)
    assert process.exitcode == 0


# -- every start method and every way -------------------------------------------------------------

def exchange(strategy, given, q, r, pipe):
    mp.set_sharing_strategy(strategy)
    given += 1
    x = q.get()
    x += 2
    r.put(x)                                # the same memory comes back
    own = pt.full((3,), 5.0)
    pipe.send([own, own[1:], given])
    while not q.get():                      # until the parent has read everything
        pass


@pytest.mark.core
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue", "SimpleQueue"])
@pytest.mark.outer
def test_exchange(method, kind, strategy):
    context = mp.get_context(method)
    q, r = getattr(context, kind)(), getattr(context, kind)()
    here, there = context.Pipe()
    given, x = pt.zeros(4), pt.zeros(2)
    given.share_memory_()
    p = context.Process(target=exchange, args=(strategy, given, q, r, there))
    p.start()
    q.put(x)
    back = r.get()
    assert back.untyped_storage() is x.untyped_storage()
    assert x.tolist() == [2, 2]
    own, tail, again = here.recv()
    assert tail.untyped_storage() is own.untyped_storage()
    assert own.tolist() == [5, 5, 5]
    assert again.untyped_storage() is given.untyped_storage()
    assert given.tolist() == [1, 1, 1, 1]
    q.put(True)
    ended(p)
    assert own.tolist() == [5, 5, 5]        # the child's memory, which is gone


def doubled(q, r):
    x = q.get()
    x.copy_(x.to(pt.complex64).real * 2)
    r.put(x)
    q.get()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e8m0fnu", "complex32"])
def test_stored_types(dtype):
    """float8 and complex32 arrive with their dtype, over the same memory."""
    context = mp.get_context(METHODS[0])
    q, r = context.SimpleQueue(), context.SimpleQueue()
    x = pt.tensor([1.0, 2.0, 16.0], dtype=getattr(pt, dtype))
    p = context.Process(target=doubled, args=(q, r))
    p.start()
    q.put(x)
    back = r.get()
    assert back.dtype is x.dtype and back.untyped_storage() is x.untyped_storage()
    assert x.tolist() == [2.0, 4.0, 32.0]
    q.put(True)
    ended(p)


def twice(x):
    return x * 2, x


@pytest.mark.core
def test_pool(strategy):
    with mp.get_context("fork").Pool(2) as pool:
        items = [pt.full((n,), float(n)) for n in (1, 10, 30_000)]
        for x, (doubled, same) in zip(items, pool.map(twice, items), strict=True):
            assert (doubled == 2 * x).all()
            assert same.untyped_storage() is x.untyped_storage()
        with pytest.raises(multiprocessing.pool.MaybeEncodingError, match="only if it is a leaf"):
            pool.apply(twice, (pt.ones(1, requires_grad=True),))


@pytest.mark.core
def test_manager_and_standard_queue():
    """Pipes that are not this package's: a server in the sender hands the descriptors out."""
    x = pt.ones(3)
    with mp.Manager() as manager:
        box = manager.list([x])
        y = box[0]
        assert y.tolist() == [1, 1, 1]
        x += 1
        assert box[0].tolist() == [2, 2, 2]
    queue = multiprocessing.Queue()
    queue.put(x)
    assert queue.get().untyped_storage() is x.untyped_storage()
    queue.close()
    queue.join_thread()


def add_up(pipe, *given):
    pipe.send([float(x[-1]) for x in given])


@pytest.mark.core
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.outer
def test_what_a_process_is_started_with(method, strategy):
    """Also copies that only the message needs: of memory whose address is known to NumPy."""
    context = mp.get_context(method)
    here, there = context.Pipe(duplex=False)
    arrays = [np.full(n, float(i)) for i, n in enumerate([1_000_000, *[4000] * 20])]
    p = context.Process(target=add_up, args=(there, *map(pt.from_numpy, arrays)))
    p.start()
    there.close()
    assert here.recv() == [float(i) for i in range(len(arrays))]
    ended(p)


@pytest.mark.core
@pytest.mark.skipif("forkserver" not in METHODS, reason="no fork server")
@pytest.mark.outer
def test_more_descriptors_than_a_fork_server_takes():
    context = mp.get_context("forkserver")
    here, there = context.Pipe(duplex=False)
    step, segments.Anonymous.step = segments.Anonymous.step, staticmethod(lambda: 10_000)
    try:
        many = [pt.full((20_000,), float(i)) for i in range(300)]
        p = context.Process(target=add_up, args=(there, *many))
        p.start()
    finally:
        segments.Anonymous.step = step
    there.close()
    assert here.recv() == [float(i) for i in range(300)]
    ended(p)


def unpicklable(queue, pipe):
    queue.put(lambda: None)
    queue.put(pt.ones(2))
    pipe.recv()         # a queue's thread stops at an error when the process is ending


@pytest.mark.core
def test_what_cannot_be_pickled_does_not_stop_a_queue(capfd):
    queue = mp.get_context("fork").Queue()
    here, there = mp.Pipe()
    p = mp.get_context("fork").Process(target=unpicklable, args=(queue, there))
    p.start()
    assert queue.get(timeout=60).tolist() == [1, 1]
    here.send(0)
    ended(p)
    assert "pickle" in capfd.readouterr().err.lower()


# -- ends in any order -----------------------------------------------------------------------------

def send_and_go(strategy, pipe, how):
    mp.set_sharing_strategy(strategy)
    pipe.send([pt.full((100_000,), 3.0), pt.full((7,), 4.0)])
    if how:
        os.kill(os.getpid(), how)


@pytest.mark.core
@pytest.mark.parametrize("how", [0, signal.SIGKILL])
def test_the_sender_is_gone_before_the_message_is_read(strategy, how):
    context = mp.get_context("fork")
    here, there = context.Pipe()
    p = context.Process(target=send_and_go, args=(strategy, there, how))
    p.start()
    there.close()
    p.join()
    assert p.exitcode == -how
    large, small = here.recv()
    assert large.sum() == 300_000
    assert small.tolist() == [4] * 7


FAMILY = """
import os, signal, sys, time
import ptcore as pt, ptcore.multiprocessing as mp
mp.set_sharing_strategy(sys.argv[1])

def child(pipe, kept):
    here.close()
    x = pipe.recv()
    pipe.send(1)
    try:
        pipe.recv()
    except EOFError:
        pass
    while os.getppid() == int(sys.argv[3]):     # until it is another one's
        time.sleep(0.01)
    x += 1
    fresh = pt.ones(50_000).share_memory_()
    open(sys.argv[2], "w").write(f"{float(x.sum())} {float(kept[0])} {float(fresh.sum())}")

sys.argv.append(str(os.getpid()))
here, there = mp.Pipe()
kept = pt.full((9,), 6.0).share_memory_()
p = mp.get_context("fork").Process(target=child, args=(there, kept))
p.start()
there.close()
here.send(pt.ones(100_000))
here.recv()
os.kill(os.getpid(), signal.SIGKILL)
"""


def names():
    return {n for n in os.listdir(FOLDER) if n.startswith("ptcore-")}


def lasting(before, seconds=20):
    """The names that have come since and do not go; those of other tests beside this one go."""
    left, end = names() - before, time.monotonic() + seconds
    while left and time.monotonic() < end:
        segments.sweep()
        time.sleep(0.02)
        left &= names()
    return left


@pytest.mark.core
@LINUX
def test_a_killed_parent(strategy, tmp_path):
    """The child goes on with what it has, and nothing stays when it has ended."""
    before = names()
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-P", "-c", FAMILY, strategy, str(out)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + 30
    while (not out.exists() or not out.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    assert out.read_text() == "200000.0 6.0 50000.0"
    assert not lasting(before)


def chatter(strategy, seed, pipe):
    mp.set_sharing_strategy(strategy)
    numbers = random.Random(seed)
    kept = []
    while True:
        x = pipe.recv()
        kept = [*kept[-20:], x]
        pipe.send([x, pt.ones(numbers.choice([3, 1000, 200_000]))])


def talk(pipe, numbers, answered):
    while True:
        pipe.send(pt.ones(numbers.choice([3, 1000, 200_000])))
        if numbers.random() < answered:
            x, y = pipe.recv()
            assert float(x[0] + y[-1]) == 2


def open_now():
    gc.collect()
    with open("/proc/self/maps") as f:
        return len(os.listdir("/proc/self/fd")), sum("ptcore" in line and "/core" not in line and ".so" not in line
                                                     for line in f)


@pytest.mark.core
@LINUX
@pytest.mark.parametrize("rounds", [12, pytest.param(400, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
@pytest.mark.outer
def test_children_killed_at_random_points(strategy, rounds):
    """Descriptors, mappings and names are counted before and after: only half-filled segments may stay."""
    context = mp.get_context("fork")
    numbers = random.Random(rounds)
    before, files = open_now(), names()
    for seed in range(rounds):
        here, there = context.Pipe()
        p = context.Process(target=chatter, args=(strategy, seed, there), daemon=True)
        p.start()
        there.close()
        timer = threading.Timer(numbers.uniform(0.005, 0.06), p.kill)
        timer.start()
        with pytest.raises((EOFError, OSError)):
            talk(here, numbers, 1 if strategy == "file_system" else 0.8)
        timer.join()
        p.join()
        assert p.exitcode == -signal.SIGKILL
        here.close()
        p.close()
    segments.sweep()
    after = open_now()
    assert after[0] <= before[0] + len(segments._slabs)
    assert after[1] <= before[1] + len(segments._slabs)
    # A name on its way from or to a child that was killed stays until this process ends.
    under_way = 3 * rounds if strategy == "file_system" else 0
    assert len(names() - files) <= len(segments._slabs) + under_way


END = """
import sys
import ptcore.multiprocessing as mp
sys.path.insert(0, sys.argv[2])
import test_processes
mp.set_sharing_strategy(sys.argv[1])
test_processes.test_children_killed_at_random_points(sys.argv[1], 5)
"""


@pytest.mark.core
@LINUX
@pytest.mark.outer
def test_no_name_outlives_the_processes(strategy):
    before = names()
    subprocess.run([sys.executable, "-P", "-c", END, strategy, os.path.dirname(__file__)], check=True, timeout=100)
    assert not lasting(before)


FIRST = """
import threading
import ptcore as pt
go = threading.Barrier(8)
wrong = []

def work():
    go.wait()
    try:
        a = pt.ones(300, 300)
        assert float((a @ a)[0, 0]) == 300
    except BaseException as e:
        wrong.append(e)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not wrong, wrong
"""


@pytest.mark.core
@pytest.mark.outer
def test_first_products_of_several_threads():
    """SciPy's BLAS is loaded once."""
    for _ in range(4):
        subprocess.run([sys.executable, "-P", "-c", FIRST], check=True, timeout=60)


# -- a forked child ------------------------------------------------------------------------------------

def compute(pipe):
    x = pt.ones(300_000)
    for _ in range(3):
        assert float((x * 2 + 1).sum()) == 900_000
        a = pt.ones(200, 200)
        assert float((a @ a).sum()) == 200.0 ** 3
    w = pt.ones(200_000, requires_grad=True)
    (w * w).sum().backward()
    pipe.send([w.grad.sum().item(), pt.get_num_threads()])


@pytest.mark.core
@pytest.mark.skipif("fork" not in METHODS, reason="no fork")
@pytest.mark.outer
def test_ops_in_children_forked_while_others_compute():
    # Once before: a child that is forked while another thread imports a module waits for it for ever, in any program.
    here, there = mp.Pipe()
    compute(there)
    here.recv()
    pt.ones(2).exp()
    pt.empty(10).resize_(20)
    threads = pt.get_num_threads()
    pt.set_num_threads(4)
    stop = threading.Event()

    def work():
        x, a = pt.ones(400_000), pt.ones(300, 300)
        while not stop.is_set():
            (x.exp() + x).sum()
            a @ a
            pt.empty(1000).resize_(2000)
    workers = [threading.Thread(target=work) for _ in range(3)]
    for t in workers:
        t.start()
    try:
        context = mp.get_context("fork")
        for _ in range(10):
            here, there = context.Pipe()
            p = context.Process(target=compute, args=(there,))
            p.start()
            there.close()
            assert here.poll(60)
            assert here.recv() == [400_000, 4]
            ended(p)
    finally:
        stop.set()
        for t in workers:
            t.join()
        pt.set_num_threads(threads)
