"""Tensors between several devices: broadcast, scatter, gather, sums, and what is refused."""
import numpy as np
import pytest

import ptcore
from ptcore import cuda
from ptcore.cuda import comm

pytestmark = pytest.mark.skipif(cuda.device_count() < 2, reason="needs two devices")
BOTH = ("cuda:0", "cuda:1")


@pytest.fixture(autouse=True)
def first_device():
    cuda.set_device(0)
    yield
    for k in range(2):
        cuda.synchronize(k)


def places(tensors):
    return [str(t.device) for t in tensors]


def test_broadcast():
    a = np.arange(6.0).reshape(2, 3)
    for x in (ptcore.from_numpy(a), ptcore.from_numpy(a).cuda()):
        copies = comm.broadcast(x, [0, "cuda:1"])
        assert places(copies) == [*BOTH]
        for copy in copies:
            np.testing.assert_array_equal(copy.cpu().numpy(), a)
    assert copies[0] is x
    out = [ptcore.empty(3, 2, dtype=ptcore.float64, device=d).t() for d in BOTH]
    got = comm.broadcast(x, out=out)
    assert all(g is o for g, o in zip(got, out, strict=True))
    for o in out:
        np.testing.assert_array_equal(o.cpu().numpy(), a)
    lists = comm.broadcast_coalesced([x, x + 1], iter(BOTH))
    assert [places(row) for row in lists] == [["cuda:0"] * 2, ["cuda:1"] * 2]
    np.testing.assert_array_equal(lists[1][1].cpu().numpy(), a + 1)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("sizes", [None, [1, 3], [4, 0]])
def test_scatter_and_gather(dim, sizes):
    a = np.arange(16.0).reshape(4, 4)
    for x in (ptcore.from_numpy(a), ptcore.from_numpy(a).to("cuda:1")):
        parts = comm.scatter(x, BOTH, sizes, dim)
        assert places(parts) == [*BOTH]
        for part, want in zip(parts, np.split(a, [sizes[0] if sizes else 2], dim), strict=True):
            np.testing.assert_array_equal(part.cpu().numpy(), want)
        for destination in (None, 1, "cuda:1", "cpu"):
            whole = comm.gather(parts, dim, destination)
            assert str(whole.device) == {None: "cuda:0", 1: "cuda:1"}.get(destination, destination)
            np.testing.assert_array_equal(whole.cpu().numpy(), a)
    out = [ptcore.zeros_like(part) for part in parts]
    assert comm.scatter(x, dim=dim, out=out)[1] is out[1]
    whole = ptcore.empty(4, 4, dtype=ptcore.float64)
    assert comm.gather(out, dim, out=whole) is whole
    np.testing.assert_array_equal(whole.numpy(), a)


def test_streams(order):
    x = ptcore.arange(8.0).pin_memory()
    for k in range(3):
        order(k)
        streams = [cuda.Stream(d) for d in BOTH]
        parts = comm.scatter(x, BOTH, streams=streams)
        for stream in streams:
            stream.synchronize()
        assert [p.tolist() for p in parts] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_sums():
    a = np.arange(6.0)
    for destination in (None, 1):
        total = comm.reduce_add([ptcore.from_numpy(a + k).to(d) for k, d in enumerate((*BOTH, "cuda:1"))], destination)
        assert total.device.index == (destination or 0)
        np.testing.assert_array_equal(total.cpu().numpy(), 3 * a + 3)
    inputs = [ptcore.ones(2, device=d) for d in (*BOTH, *BOTH)]
    comm.reduce_add(inputs)
    assert all(x.tolist() == [1, 1] for x in inputs)            # the sum is a tensor of its own
    one = ptcore.ones(2, device="cuda:1")
    assert comm.reduce_add([one], 1) is one
    first, second = comm.reduce_add_coalesced([[ptcore.ones(2, device=d), ptcore.ones(3, device=d)] for d in BOTH])
    assert first.tolist() == [2, 2] and second.tolist() == [2, 2, 2]


def test_gradients():
    x = ptcore.arange(6.0, dtype=ptcore.float64, device="cuda:0").requires_grad_()
    there = comm.broadcast(x, BOTH)
    parts = comm.scatter(there[1] ** 2, BOTH)
    whole = comm.gather(parts, destination=1)
    total = comm.reduce_add([whole, whole * 2, there[0]])
    total.sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 6 * np.arange(6.0) + 1)


WRONG = {
    "comm.broadcast(x)": (RuntimeError, "neither"),
    "comm.broadcast(x, BOTH, out=[x])": (RuntimeError, "both"),
    "comm.broadcast(x, [1, 0])": (ValueError, "begin with the tensor's, cuda:0, got cuda:1"),
    "comm.broadcast(x, [])": (ValueError, "empty"),
    "comm.broadcast(x, ['cpu'])": (ValueError, "CUDA device"),
    "comm.broadcast(x, out=[x[:2]])": (ValueError, r"out\[0\].*\(4,\), got \(2,\)"),
    "comm.broadcast(x, out=[x.cpu()])": (ValueError, r"out\[0\] must be on a CUDA device"),
    "comm.scatter(x)": (RuntimeError, "neither"),
    "comm.scatter(x, BOTH, [1, 2])": (ValueError, r"add up to 4, got \[1, 2\]"),
    "comm.scatter(x, BOTH, [4])": (ValueError, "chunk_sizes must have an entry for each of 2 devices, got 1"),
    "comm.scatter(x, BOTH, streams=[None])": (ValueError, "streams must have"),
    "comm.scatter(x, chunk_sizes=[4], out=[x])": (RuntimeError, "chunk_sizes"),
    "comm.gather([])": (ValueError, "empty"),
    "comm.gather([x.cpu()])": (ValueError, "tensor 0 must be on a CUDA device"),
    "comm.gather([x], destination=1, out=x)": (RuntimeError, "destination"),
    "comm.gather([x, x[None]])": (RuntimeError, "cat"),
    "comm.reduce_add([x], 1)": (RuntimeError, "destination, cuda:1"),
    "comm.reduce_add([x, x[:2]])": (ValueError, r"input 1 must be of shape \(4,\), got \(2,\)"),
    "comm.reduce_add([x.cpu()])": (ValueError, "input 0"),
    "comm.reduce_add([])": (ValueError, "empty"),
}


@pytest.mark.parametrize("call", WRONG)
def test_what_is_refused(call):
    error, text = WRONG[call]
    with pytest.raises(error, match=text):
        eval(call, {"comm": comm, "x": ptcore.ones(4, device="cuda:0"), "BOTH": BOTH})


def test_both_names():
    from ptcore.nn.parallel import comm as newer
    assert newer.scatter is comm.scatter and set(newer.__all__) == set(comm.__all__)
