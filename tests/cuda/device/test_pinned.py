"""Page-locked memory, copies that need not wait, and memory that several streams use."""
import copy
import inspect
import os
import threading

import numpy as np
import pytest

import ptcore
from ptcore import cuda
from ptcore.autograd.graph import save_on_cpu
from ptcore.utils.data import DataLoader, Dataset, TensorDataset

STANDIN = os.environ.get("PTCORE_TEST_CUDA") == "standin"


@pytest.fixture(autouse=True)
def done():
    yield
    cuda.synchronize()


def host_blocks():
    ptcore.empty(1).pin_memory()                # starts the pool
    return cuda.host_memory_stats()["active_requests.current"]


def test_pin_memory():
    x = ptcore.arange(6.).reshape(2, 3)
    before = host_blocks()
    p = x.pin_memory()
    assert p.is_pinned()
    assert not x.is_pinned()
    assert p.equal(x)
    assert p.data_ptr() != x.data_ptr()
    assert p.pin_memory() is p
    assert p.t().is_pinned() and p[1].is_pinned() and p.detach().is_pinned()
    assert not p.clone().is_pinned()
    assert np.asarray(p).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ptcore.from_numpy(np.asarray(p)).is_pinned()         # by the address, whoever describes the memory
    assert host_blocks() == before + 1
    transposed = x.t().pin_memory()                             # dense layouts stay
    assert transposed.stride() == (1, 3) and transposed.equal(x.t())
    assert x[:, ::2].pin_memory().stride() == (2, 1)
    assert ptcore.empty(0).pin_memory().shape == (0,)
    assert ptcore.tensor(3).pin_memory().item() == 3
    part = p[0]
    del p
    assert part.tolist() == [0, 1, 2]                           # a view keeps the block
    del part, transposed
    assert host_blocks() == before


def test_creation():
    for made in (ptcore.empty(3, pin_memory=True), ptcore.zeros(2, 2, pin_memory=True),
                 ptcore.full((2,), 7, pin_memory=True), ptcore.randn(3, pin_memory=True),
                 ptcore.arange(4, pin_memory=True),
                 ptcore.tensor([1., 2.], pin_memory=True), ptcore.ones(2).new_zeros(3, pin_memory=True),
                 ptcore.empty_like(ptcore.ones(2, 3), pin_memory=True)):
        assert made.is_pinned()
    assert ptcore.zeros(2, 2, pin_memory=True).tolist() == [[0, 0], [0, 0]]
    leaf = ptcore.tensor([1., 2.], pin_memory=True, requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad and leaf.is_pinned()
    leaf = ptcore.ones(2, pin_memory=True, requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad and leaf.is_pinned()
    with pytest.raises(TypeError, match="zeros: pin_memory must be a bool, got 1"):
        ptcore.zeros(2, pin_memory=1)
    with pytest.raises(RuntimeError, match="ones: pin_memory: only tensors on the CPU can be pinned, got one on cuda"):
        ptcore.ones(2, device="cuda", pin_memory=True)
    with pytest.raises(RuntimeError, match="only tensors on the CPU"):
        ptcore.ones(2, device="cuda").pin_memory()
    assert not ptcore.ones(2, device="cuda").is_pinned()


ONES = ptcore.ones(3)
ARGUMENTS = {"arange": (3,), "bartlett_window": (3,), "blackman_window": (3,), "empty": (3,), "empty_like": (ONES,),
             "empty_permuted": ((3, 2), (1, 0)), "empty_strided": ((3,), (2,)), "eye": (3,), "full": ((3,), 1.0),
             "full_like": (ONES, 1.0), "hamming_window": (3,), "hann_window": (3,), "kaiser_window": (3,),
             "linspace": (0, 1, 3), "logspace": (0, 1, 3), "normal": (0.0, 1.0, (3,)), "ones": (3,),
             "ones_like": (ONES,), "rand": (3,), "rand_like": (ONES,), "randint": (5, (3,)),
             "randint_like": (ONES, 5), "randn": (3,), "randn_like": (ONES,), "randperm": (3,),
             "range": (0, 3), "scalar_tensor": (3,), "tensor": ([1, 2],), "zeros": (3,), "zeros_like": (ONES,)}
OF_TENSORS = {"new_empty": ((3,),), "new_empty_strided": ((3,), (1,)), "new_full": ((3,), 1.0), "new_ones": ((3,),),
              "new_tensor": ([1],), "new_zeros": ((3,),)}


def makers(space):
    """The names of the functions that take ``pin_memory``."""
    found = set()
    for name in dir(space):
        try:
            if not name.startswith("_") and "pin_memory" in inspect.signature(getattr(space, name)).parameters:
                found.add(name)
        except (TypeError, ValueError):
            pass
    return found - {"from_file"}                # refuses it: the memory is the file's


@pytest.mark.parametrize("length", [None, 0, 1])
def test_every_function_that_takes_it_gives_pinned_memory(length):
    assert makers(ptcore) == set(ARGUMENTS) and makers(ptcore.Tensor) <= set(OF_TENSORS)
    for name, given in ARGUMENTS.items():
        if length is not None:
            if not name.endswith("_window"):
                continue
            given = (length,)
        made = getattr(ptcore, name)(*given, pin_memory=True)
        assert made.is_pinned() or length == 0, name
        assert not getattr(ptcore, name)(*given).is_pinned(), name
    for name in makers(ptcore.Tensor):
        assert getattr(ptcore.ones(2), name)(*OF_TENSORS[name], pin_memory=True).is_pinned(), name


def test_saved_tensors_are_kept_in_pinned_memory():
    seen = []
    for pin_memory in (True, False):
        with save_on_cpu(pin_memory):
            x = ptcore.full((1000,), 3.0, device="cuda", requires_grad=True)
            y = x * x
        seen.append(host_blocks())
        y.sum().backward()
        assert x.grad.cpu().tolist() == [6] * 1000
        del x, y
    assert seen[0] > seen[1]


def test_history_goes_on():
    x = ptcore.ones(3, requires_grad=True)
    (x.pin_memory() * ptcore.tensor([1., 2, 3])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


def test_deepcopy_and_resize():
    p = ptcore.ones(3).pin_memory()
    assert copy.deepcopy(p).tolist() == [1, 1, 1]
    p = ptcore.ones(3).pin_memory()
    p.resize_(1000)                             # moves to ordinary memory
    assert p[:3].tolist() == [1, 1, 1]
    assert not p.is_pinned()


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "complex64"])
def test_there_and_back(dtype):
    values = ptcore.tensor([[0., 1, 2], [3, 4, 0]]).to(getattr(ptcore, dtype))
    there = values.pin_memory().to("cuda", non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    assert back.is_pinned()
    cuda.synchronize()
    assert back.equal(values)
    assert there.t().to("cpu", non_blocking=True).is_pinned()
    assert not there.cpu().is_pinned()
    assert there.to("cpu", non_blocking=False).equal(values)
    assert values.cuda(non_blocking=True).cpu().equal(values)           # from ordinary memory
    half = values.to("cuda", ptcore.float16, non_blocking=True) if dtype != "complex64" else None
    assert half is None or half.dtype is ptcore.float16


def test_copies_run_late(order):
    """A copy that need not wait is done by its stream, later; the memory it uses is nobody else's until then."""
    n = 1000
    source = ptcore.ones(n).pin_memory()
    target = ptcore.zeros(n).pin_memory()
    at = source.data_ptr()
    late = 0
    for seed in range(10):
        order(seed)
        target.fill_(0)
        source.fill_(seed + 1)
        x = ptcore.zeros(n, device="cuda")
        x.copy_(source, non_blocking=True)
        target.copy_(x * 2, non_blocking=True)
        late += target[0].item() == 0
        cuda.synchronize()
        assert target.tolist() == [2 * seed + 2] * n
    assert late > 0 or not STANDIN
    x = ptcore.zeros(n, device="cuda")
    x.copy_(source, non_blocking=True)
    event = cuda.current_stream().record_event()
    if not event.query():                                       # not yet copied: the block waits for the event
        del source
        assert ptcore.empty(n, pin_memory=True).data_ptr() != at
    cuda.synchronize()
    assert x.sum().item() == 10 * n


def test_copy_into():
    """copy_ between host and device without a tensor in between, through views, and with what it must refuse."""
    x = ptcore.arange(6., device="cuda").reshape(2, 3)
    buffer = ptcore.zeros(3, 3).pin_memory()
    buffer[1:].copy_(x, non_blocking=True)
    cuda.synchronize()
    assert buffer.tolist() == [[0, 0, 0], [0, 1, 2], [3, 4, 5]]
    before = cuda.memory_stats()["allocation.all.allocated"]
    plain = ptcore.zeros(2, 3, dtype=ptcore.float64)
    version = plain._version
    plain.copy_(x.double())
    assert plain._version == version + 1
    count = cuda.memory_stats()["allocation.all.allocated"] - before
    assert count == 1                                           # x.double() alone
    whole = ptcore.zeros(2, 3, dtype=ptcore.int64)
    assert whole.copy_(x + 0.7).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ptcore.zeros(2, 3).t().copy_(x.t()).tolist() == x.t().tolist()
    assert ptcore.zeros(2, 3).copy_(x[0]).tolist() == [[0, 1, 2], [0, 1, 2]]        # broadcast
    row = ptcore.zeros(1, 3).expand(2, 3)
    with pytest.raises(RuntimeError):
        row.copy_(x)                                            # several elements at one place
    leaf = ptcore.zeros(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.copy_(x)
    with ptcore.no_grad():
        leaf.copy_(x)
    assert leaf.tolist() == x.tolist()
    w = ptcore.ones(2, 3, device="cuda", requires_grad=True)
    y = ptcore.zeros(2, 3)
    y.copy_(w * 2)
    (y * y).sum().backward()
    assert w.grad.tolist() == [[8.0] * 3] * 2
    if cuda.device_count() > 1:
        other = ptcore.zeros(2, 3, device="cuda:1")
        assert other.copy_(x, non_blocking=True).tolist() == x.tolist()


def test_record_stream(order):
    """Memory that another stream uses comes back when that stream is done with it."""
    side = cuda.Stream()
    x = ptcore.ones(1000, device="cuda")
    at = x.data_ptr()
    total = ptcore.zeros(1000, device="cuda")
    cuda.synchronize()
    order(4)
    with cuda.stream(side):
        for _ in range(5):
            total.add_(x)
        done = side.record_event()
    x.record_stream(side)
    del x
    if not done.query():
        assert ptcore.empty(1000, device="cuda").data_ptr() != at
    side.synchronize()
    assert total.tolist() == [5.0] * 1000
    with pytest.raises(NotImplementedError, match="tensors on cpu have no streams"):
        ptcore.ones(1).record_stream(side)
    with pytest.raises(TypeError, match="stream must be a Stream, got int"):
        ptcore.ones(1, device="cuda").record_stream(3)
    if cuda.device_count() > 1:
        with pytest.raises(RuntimeError, match="the stream is of cuda:1, the tensor on cuda:0"):
            ptcore.ones(1, device="cuda").record_stream(cuda.Stream("cuda:1"))


def test_out_of_pinned_memory():
    with pytest.raises(ptcore.OutOfMemoryError, match="page-locked memory"):
        ptcore.empty(1, dtype=ptcore.uint8).expand(1 << 45).pin_memory()


def test_module_and_loader():
    model = ptcore.nn.Linear(3, 2)
    want = [p.clone() for p in model.parameters()]
    model.to("cuda", non_blocking=True)
    assert all(p.is_cuda and p.cpu().equal(w) for p, w in zip(model.parameters(), want))
    data = TensorDataset(ptcore.arange(12.).reshape(6, 2), ptcore.arange(6))
    for a, b in DataLoader(data, batch_size=2, pin_memory=True):
        assert a.is_pinned() and b.is_pinned()
        assert a.to("cuda", non_blocking=True).cpu().equal(a)


class Rows(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return {"x": ptcore.full((3000,), float(i)), "name": str(i)}


@pytest.mark.parametrize("context", ["fork", "thread"])
@pytest.mark.parametrize("in_order", [True, False])
def test_loader_pins_beside_the_loop(context, in_order, monkeypatch):
    """Batches of workers are copied by a thread; each is handed out once and pinned."""
    from ptcore.utils.data import dataloader

    threads, pin = set(), dataloader._pin

    def noted(batch):
        threads.add(threading.current_thread().name)
        return pin(batch)

    monkeypatch.setattr(dataloader, "_pin", noted)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2, pin_memory=True, in_order=in_order,
                                          multiprocessing_context=context)
    assert len(iter(loader)) == 10
    for _ in range(2):
        seen = []
        for batch in loader:
            assert batch["x"].is_pinned()
            assert batch["x"][:, 0].tolist() == batch["x"][:, -1].tolist() == [float(n) for n in batch["name"]]
            assert batch["x"].to("cuda", non_blocking=True).cpu()[1, 7] == batch["x"][1, 7]
            seen += batch["name"]
        assert sorted(map(int, seen)) == list(range(40))
    assert all(name.startswith("DataLoader pin_memory") for name in threads)


def test_loader_tells_what_cannot_be_pinned():
    class Refuses:
        def pin_memory(self):
            raise ValueError("not this one")

    loader = DataLoader([Refuses()] * 4, batch_size=None, num_workers=1, pin_memory=True,
                                          collate_fn=lambda x: x, multiprocessing_context="thread")
    with pytest.raises(ValueError, match="not this one"):
        next(iter(loader))
