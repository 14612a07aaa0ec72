"""Shared storages within one process: they move once, all views follow; what a pipe carries and what it refuses."""
import dis
import functools
import gc
import importlib
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
import types
from queue import Full

import numpy as np
import pytest
from interpreters import Batcher

import ptcore as pt
import ptcore.multiprocessing as mp
from ptcore._memory import segments
from ptcore.multiprocessing import reductions

pytestmark = pytest.mark.core
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")


@pytest.fixture(params=segments.STRATEGIES, autouse=True)
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def passed(obj):
    """What arrives at the other end of a pipe."""
    a, b = mp.Pipe()
    a.send(obj)
    return b.recv()


def place(tensor):
    return tensor.untyped_storage()._place


def test_share_memory_moves_once_and_views_follow():
    x = pt.arange(12.0).reshape(3, 4)
    row, storage = x[1], x.untyped_storage()
    assert not x.is_shared()
    assert not row.is_shared()
    assert x.share_memory_() is x
    where = place(x)
    assert row.is_shared()
    assert storage.is_shared()
    assert x.untyped_storage() is storage
    row.fill_(7)
    assert x.tolist() == [[0, 1, 2, 3], [7] * 4, [8, 9, 10, 11]]
    row.share_memory_()
    storage.share_memory_()
    assert place(x) == where
    assert passed(x).untyped_storage() is storage
    assert place(x) == where


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 4096, 65536, 65537, 3_000_000])
def test_sizes(nbytes):
    x = pt.arange(nbytes, dtype=pt.int64).to(pt.uint8)
    want = x.clone()
    others = [pt.full((nbytes,), i, dtype=pt.uint8).share_memory_() for i in range(3)]
    x.share_memory_()
    assert x.is_shared()
    assert (x == want).all()
    for i, other in enumerate(others):
        assert (other == i).all()


def test_what_is_sent_is_moved_in_place():
    x = pt.zeros(5)
    y = passed(x[1:4])
    assert x.is_shared()
    y += 2
    assert x.tolist() == [0, 2, 2, 2, 0]


@LINUX
@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue", "SimpleQueue"])
def test_put_returns_when_the_tensor_has_moved(kind):
    """Else what is written to it next would be lost, as the queue's thread copies meanwhile."""
    queue = getattr(mp, kind)()
    for i in range(20):
        x = pt.zeros(20_000)
        queue.put({"x": x, "i": i})
        assert x.is_shared()
        x += 1
        got = queue.get()
        assert got["i"] == i
        assert got["x"].untyped_storage() is x.untyped_storage()
        assert float(x.min()) == 1
    queue.close()


@LINUX
@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue"])
def test_a_queue_has_no_end(kind):
    queue = getattr(mp, kind)()
    for i in range(5):
        queue.put(pt.full((2,), float(i)), timeout=5)
    assert [queue.get(timeout=5)[0].item() for _ in range(5)] == [0, 1, 2, 3, 4]
    queue.close()


@LINUX
def test_what_finds_no_room_in_a_queue_is_not_packed():
    queue = mp.Queue(1)
    queue.put(pt.ones(2))
    x = pt.ones(3)
    with pytest.raises(Full):
        queue.put(x, timeout=0.01)
    assert not x.is_shared()
    assert queue.get().tolist() == [1, 1]
    queue.close()
    with pytest.raises(ValueError, match="closed"):
        queue.put(x)
    assert not x.is_shared()


def test_sent_twice_is_one_storage():
    x = pt.ones(3)
    y, z = passed(x), passed([x, x[:1]])
    assert y.untyped_storage() is x.untyped_storage() is z[0].untyped_storage() is z[1].untyped_storage()


def test_a_place_is_forgotten_with_its_storage():
    x = pt.ones(3).share_memory_()
    segment, offset = place(x)
    del x
    gc.collect()
    assert segment.storage(offset, 12) is not None
    assert place(pt.ones(3).share_memory_()) != (segment, offset)       # never given again
    for bad in ((-1, 4), (segment.nbytes, 1), (0, segment.nbytes + 1), (0, -1)):
        with pytest.raises(ValueError, match="leave the segment"):
            segment.storage(*bad)


CASES = [lambda: pt.tensor(3), lambda: pt.ones(0, 3), lambda: pt.arange(6.0).reshape(2, 3).T,
         lambda: pt.arange(5)[::-1],
         lambda: pt.ones(2, 1).expand(2, 5), lambda: pt.tensor([1 + 2j, 3j]), lambda: pt.tensor([True, False]),
         lambda: pt.ones(3, dtype=pt.bfloat16), lambda: pt.arange(24.0).reshape(2, 3, 4)[:, 1:, ::2],
         lambda: pt.ones(2, requires_grad=True), lambda: pt.ones(2, 3, device="meta"), lambda: pt.ones(4)[2:]]


@pytest.mark.parametrize("make", CASES)
def test_geometry(make):
    x = make()
    y = passed(x)
    assert (y.dtype, y.shape, y.stride(), y.requires_grad) == (x.dtype, x.shape, x.stride(), x.requires_grad)
    assert y.device == x.device
    if x.device.type == "cpu":
        assert (x == y).all()
        assert not x.numel() or y.untyped_storage() is x.untyped_storage()


def test_parameters_gradients_and_attributes():
    w = pt.nn.Parameter(pt.ones(3))
    w.note = "kept"
    (w * 2).sum().backward()
    v = passed(w)
    assert type(v) is pt.nn.Parameter
    assert v.requires_grad
    assert v.note == "kept"
    assert v.grad.tolist() == [2, 2, 2]
    assert v.grad.untyped_storage() is w.grad.untyped_storage()
    frozen = passed(pt.nn.Parameter(pt.ones(2, dtype=pt.int64), requires_grad=False))
    assert type(frozen) is pt.nn.Parameter
    assert not frozen.requires_grad
    buffer = passed(pt.nn.Buffer(pt.ones(2)))
    assert isinstance(buffer, pt.nn.Buffer)
    net = pt.nn.Linear(3, 2)
    assert net.share_memory() is net
    assert all(p.is_shared() for p in net.parameters())
    other = passed(net)
    assert other.weight.untyped_storage() is net.weight.untyped_storage()
    assert isinstance(other.weight, pt.nn.Parameter)


class Marked(pt.Tensor):
    pass


class Weights(pt.nn.Parameter):
    pass


class Apart(pt.Tensor):
    def __reduce_ex__(self, protocol):
        return Apart.made, (self.tolist(),)

    @staticmethod
    def made(values):
        return pt.tensor(values).as_subclass(Apart)


def test_subclasses():
    """They are shared as well, unless they say how they are pickled."""
    x = pt.ones(3).as_subclass(Marked)
    x.note = "kept"
    y = passed(x)
    assert (type(y), y.note) == (Marked, "kept")
    y += 1
    assert x.tolist() == [2, 2, 2]
    w = Weights(pt.ones(2))
    v = passed(w)
    assert type(v) is Weights
    assert v.requires_grad
    assert v.untyped_storage() is w.untyped_storage()
    own = pt.ones(2).as_subclass(Apart)
    assert type(passed(own)) is Apart
    assert not own.is_shared()
    multiprocessing.reduction.ForkingPickler.register(Marked, lambda x: (str, ("registered",)))
    try:
        assert passed(x) == "registered"
    finally:
        del multiprocessing.reduction.ForkingPickler._extra_reducers[Marked]


def test_attributes_that_hold_the_tensor_itself():
    x = pt.ones(2)
    x.group = [x, x[1:]]
    y = passed(x)
    assert y.group[0] is y
    assert y.group[1].untyped_storage() is x.untyped_storage()


def test_gradients_of_every_kind():
    empty = pt.ones(0, requires_grad=True)
    empty.sum().backward()
    assert passed(empty).grad.shape == (0,)
    w = pt.ones(2, requires_grad=True)
    (w ** 3).sum().backward(create_graph=True)
    with pytest.raises(RuntimeError, match=r"a gradient \(of create_graph=True\)"):
        passed(w)
    w.grad = w.grad.detach()
    assert passed(w).grad.tolist() == [3, 3]


def test_autograd_does_not_see_the_move():
    w = pt.ones(3, requires_grad=True)
    loss = (w * w).sum()
    w.share_memory_()
    passed(w)
    loss.backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_history_does_not_cross():
    w = pt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="only if it is a leaf"):
        passed(w * 2)
    assert passed((w * 2).detach()).tolist() == [2, 2]


@pytest.mark.parametrize("make", [lambda a: pt.from_numpy(a), lambda a: pt.from_numpy(a.T),
                                  lambda a: pt.from_numpy(a[::-1]),
                                  lambda a: pt.from_numpy(a)[1], lambda a: pt.from_numpy(a)[:, 1:2]])
def test_memory_that_must_stay_is_copied(make):
    array = np.arange(6.0).reshape(2, 3)
    x = make(array)
    with pytest.raises(BufferError, match="in use outside"):
        x.share_memory_()
    y = passed(x)
    assert y.is_shared()
    assert not x.is_shared()
    assert (x == y).all()
    y.fill_(9)
    assert array.max() == 5
    u = passed(pt.from_numpy(array).untyped_storage())
    assert bytes(u[i] for i in range(len(u))) == array.tobytes()


def test_shared_memory_keeps_its_size():
    x = pt.ones(4).share_memory_()
    assert not x.untyped_storage().resizable()
    for call in (lambda: x.resize_(100), lambda: x.untyped_storage().resize_(2)):
        with pytest.raises(BufferError, match="shared"):
            call()
    assert x.resize_(2).tolist() == [1, 1]
    assert pt.ones(2, device="meta").share_memory_().is_shared() is False


def test_devices_are_refused():
    x = types.SimpleNamespace(device=types.SimpleNamespace(type="other"))
    with pytest.raises(NotImplementedError, match=r"other.* cannot be sent .* send tensor.cpu\(\)"):
        reductions._shared(x)


def test_traced_values_are_refused():
    with Batcher() as batcher:
        x = batcher.sample(pt.ones(2, 3))
        with pytest.raises(RuntimeError, match="share_memory_: the memory of a traced or batched"):
            x.share_memory_()


def test_strategies(strategy):
    assert mp.get_sharing_strategy() == strategy
    assert strategy in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="expected one of"):
        mp.set_sharing_strategy("pigeon")
    assert mp.get_sharing_strategy() == strategy
    old = pt.ones(2).share_memory_()
    for other in mp.get_all_sharing_strategies():
        mp.set_sharing_strategy(other)
        assert passed(old).untyped_storage() is old.untyped_storage()


def test_every_standard_name_is_here():
    assert set(multiprocessing.__all__) <= set(mp.__all__) <= set(dir(mp))
    assert mp.connection is multiprocessing.connection
    assert mp.get_start_method() == multiprocessing.get_start_method()
    with pytest.raises(AttributeError):
        getattr(mp, "nothing")          # noqa: B009
    with pytest.raises(ValueError, match="cannot find context"):
        mp.get_context("telepathy")


@LINUX
def test_messages_with_many_segments():
    """More descriptors than one call to the kernel takes."""
    many = [pt.full((20_000,), float(i)) for i in range(300)]
    step = segments.Anonymous.step
    segments.Anonymous.step = staticmethod(lambda: 10_000)
    a, b = mp.Pipe()
    try:
        a.send(many)
        back = b.recv()
    finally:
        segments.Anonymous.step = step
    assert all(x.untyped_storage() is y.untyped_storage() for x, y in zip(many, back, strict=True))


@LINUX
def test_raw_bytes(strategy):
    """What came beside them is there until the thread's next message, and closed then."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    a, b = mp.Pipe()
    x = pt.full((100_000,), 1.0)
    for _ in range(3):
        a.send(x)
        data = b.recv_bytes()
    y = multiprocessing.reduction.ForkingPickler.loads(data)
    assert y.untyped_storage() is x.untyped_storage()
    if strategy == "file_descriptor":
        a.send_bytes(data)
        data = b.recv_bytes()
        with pytest.raises(RuntimeError, match="beside the bytes"):
            multiprocessing.reduction.ForkingPickler.loads(data)
    a.send(None)
    b.recv()
    a.close()
    b.close()
    del x, y
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


@LINUX
def test_raw_bytes_in_a_thread_that_ends():
    def work():
        a.send(pt.ones(100_000))
        b.recv_bytes()

    a, b = mp.Pipe()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


@functools.cache
def interruptible(code):
    """Where in a function the interpreter looks for signals: it begins, something was called, it has jumped back."""
    found, before = set(), ""
    for instruction in dis.get_instructions(code):
        if before.startswith(("CALL", "JUMP_BACKWARD", "RESUME")):
            found.add(instruction.offset)
        before = instruction.opname
    return found


@LINUX
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_handler_of_a_signal_that_raises_anywhere():
    """No lock stays taken, and no descriptor is closed that is still in use."""
    class Stop(Exception):
        pass

    def trace(frame, event, arg):
        nonlocal passed
        if not frame.f_code.co_filename.startswith(folders):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in interruptible(frame.f_code):
            passed += 1
            if passed == last:
                raise Stop
        return trace

    folders = tuple([os.path.dirname(module.__file__) for module in (mp, segments)])
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True      # else CPython 3.12.1 shows the trace function no instruction
    for last in itertools.count(1):
        passed = 0
        a, b = mp.Pipe()
        sys.settrace(trace)
        try:
            a.send(pt.ones(20_000))
            b.recv()
        except Stop:
            pass
        finally:
            sys.settrace(before)
        os.fstat(a.fileno())
        os.fstat(b.fileno())
        a.close()
        b.close()
        thread = threading.Thread(target=pt.ones(20_000).share_memory_)
        thread.daemon = True
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        if passed < last:
            break
    assert last > 50


def test_submodules_of_the_standard_module():
    assert mp.shared_memory.SharedMemory is importlib.import_module("multiprocessing.shared_memory").SharedMemory


@LINUX
def test_names_are_released_later_when_descriptors_are_out(strategy):
    if strategy != "file_system":
        return
    import resource

    def there():
        return any(os.path.exists(os.path.join(segments._FOLDER, key)) for key in keys)

    many = [pt.ones(100_000).share_memory_() for _ in range(3)]
    keys = [place(x)[0].key for x in many]
    assert there()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        del many
        gc.collect()
        with pytest.raises(OSError, match="Too many open files"):
            pt.ones(100_000).share_memory_()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    thread = threading.Thread(target=pt.ones(2).share_memory_)      # the lock was given back
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert not there()


@LINUX
def test_pages_of_the_old_block_are_given_back():
    """64 MB that move do not count twice."""
    def anonymous():
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("RssAnon")) // 1024
    x = pt.ones(16_000_000)
    before = anonymous()
    x.share_memory_()
    assert anonymous() < before - 55
    assert float(x.sum()) == 16_000_000


LIMITED = """
import os, resource, sys
import ptcore as pt, ptcore.multiprocessing as mp
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
size = int(sys.argv[1])

def other(q, r):
    kept = [q.get() for _ in range(10)]
    kept = [x for part in kept for x in part]
    r.put((sum(x.numel() for x in kept), [float(x[0]) for x in kept[::1111]], len(os.listdir("/proc/self/fd"))))
    q.get()

q, r = mp.Queue(), mp.Queue()
p = mp.get_context("fork").Process(target=other, args=(q, r))
p.start()
all_of_them = [pt.full((size,), float(i)) for i in range(10_000)]
for i in range(10):
    q.put(all_of_them[1000 * i:1000 * (i + 1)])
total, some, descriptors = r.get()
q.put(None)
p.join()
assert p.exitcode == 0 and total == size * 10_000, total
assert some == [1111.0 * i for i in range(10)], some
assert descriptors < 200 and len(os.listdir("/proc/self/fd")) < 200, descriptors
"""


@LINUX
@pytest.mark.parametrize("size", [10, 3000])
@pytest.mark.outer
def test_ten_thousand_tensors(size, strategy):
    """Living ones, in processes that may open 256 files."""
    if strategy == "file_descriptor":
        subprocess.run([sys.executable, "-P", "-c", LIMITED, str(size)], check=True, timeout=100)


@LINUX
def test_out_of_descriptors(strategy):
    """A message whose descriptors cannot be received says so."""
    if strategy != "file_descriptor":
        return
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    a, b = mp.Pipe()
    a.send(pt.ones(100_000))
    try:
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        with pytest.raises(OSError, match="no more files"):
            b.recv()
        with pytest.raises(OSError, match=r"no descriptor for \d+ bytes .*ulimit -n"):
            pt.ones(100_000).share_memory_()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    a.send(1)
    assert b.recv() == 1


@pytest.mark.parametrize("strategy", sorted(mp.get_all_sharing_strategies()))
def test_shared_until_python_ends(strategy):
    """A tensor that goes with the last modules, in a process that shared it or was given it, ends without a word."""
    program = f"""
import sys
import ptcore
import ptcore.multiprocessing as mp

def keep(tensor):
    sys.kept_until_the_end = tensor
    tensor += 1

if __name__ == "__main__":
    mp.set_sharing_strategy({strategy!r})
    x = ptcore.ones(3).share_memory_()
    process = mp.get_context("fork").Process(target=keep, args=(x,))
    process.start()
    process.join()
    keep(x)
    print(process.exitcode, x.tolist())
"""
    out = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert (out.stdout, out.stderr) == ("0 [3.0, 3.0, 3.0]\n", "")
