"""The backward pass runs on the forward's streams, and the caller's stream has all of it behind it."""
import pytest

import ptcore
from ptcore import cuda

N = 400


@pytest.fixture(autouse=True)
def done():
    yield
    cuda.synchronize()


def seen_streams(streams):
    """A function whose backward notes the stream that it runs on."""
    class Note(ptcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            streams.append(cuda.current_stream(g.device))
            return g * 1
    return Note.apply


def test_rules_run_where_the_ops_ran():
    side, streams = cuda.Stream(), []
    note = seen_streams(streams)
    x = ptcore.ones(3, device="cuda", requires_grad=True)
    with cuda.stream(side):
        side.wait_stream(cuda.default_stream())
        y = note(x)
    cuda.default_stream().wait_stream(side)
    z = note(y)
    assert z.grad_fn.stream == (1, 0, 0)
    assert y.grad_fn.stream == (1, 0, side.cuda_stream)
    third = cuda.Stream()
    third.wait_stream(cuda.default_stream())
    with cuda.stream(third):
        z.sum().backward()
        assert cuda.current_stream() == third
    third.synchronize()
    assert streams == [cuda.default_stream(), side]
    assert x.grad.tolist() == [1, 1, 1]


def test_the_host_is_no_stream():
    """A graph that goes to the CPU and back."""
    side = cuda.Stream()
    x = ptcore.ones(3, requires_grad=True)
    with cuda.stream(side):
        y = (x.cuda() * 2).cpu() * 3
        assert y.grad_fn.stream is None
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


def build(a, b, first, second):
    """Two branches on two streams, joined on the default one."""
    main = cuda.default_stream()
    first.wait_stream(main)
    second.wait_stream(main)
    with cuda.stream(first):
        u = a
        for _ in range(3):
            u = u * b
    with cuda.stream(second):
        v = b
        for _ in range(3):
            v = v * a
    main.wait_stream(first)
    main.wait_stream(second)
    u.record_stream(main)
    v.record_stream(main)
    return (u + v).sum()                        # a b**3 + b a**3


@pytest.mark.parametrize("how", ["backward", "grad", "hooks", "elsewhere", "twice"])
def test_branches(order, how):
    """Right whatever order the streams' work is done in: a wait that is missing shows in some of the seeds."""
    first, second, caller = cuda.Stream(), cuda.Stream(), cuda.Stream()
    want_a, want_b = 2.0 ** 3 + 3 * 2.0 * 3.0 ** 2, 3 * 3.0 * 2.0 ** 2 + 3.0 ** 3
    for seed in range(12):
        order(seed)
        a = ptcore.full((N,), 3.0, device="cuda", requires_grad=True)
        b = ptcore.full((N,), 2.0, device="cuda", requires_grad=True)
        seen = []
        if how == "hooks":
            a.register_hook(lambda g, seen=seen: seen.append((g * 1).sum()))
        loss = build(a, b, first, second)
        if how == "grad":
            # gradients of leaves and of a result
            ga, gb = ptcore.autograd.grad(loss, [a, b])
        elif how == "elsewhere":
            caller.wait_stream(cuda.default_stream())
            with cuda.stream(caller):
                loss.backward()
                ga, gb = a.grad * 1, b.grad * 1
            caller.synchronize()
        else:
            loss.backward(retain_graph=how == "twice")
            if how == "twice":
                loss.backward()
            ga, gb = a.grad, b.grad
        del loss
        scale = 2 if how == "twice" else 1
        assert (ga * 1).cpu().eq(want_a * scale).all()
        assert (gb * 1).cpu().eq(want_b * scale).all()
        if how == "hooks":
            assert [s.item() for s in seen] == [N * want_a]


def test_results_in_between(order):
    """A gradient of a result, made on one stream and read on another."""
    side = cuda.Stream()
    for seed in range(12):
        order(seed)
        x = ptcore.full((N,), 3.0, device="cuda", requires_grad=True)
        side.wait_stream(cuda.default_stream())
        with cuda.stream(side):
            y = x * x
            z = y * y
        cuda.default_stream().wait_stream(side)
        gy, gx = ptcore.autograd.grad(z.sum(), [y, x])
        assert (gy + 0).cpu().eq(18.0).all()
        assert (gx + 0).cpu().eq(108.0).all()


def test_second_order():
    side = cuda.Stream()
    x = ptcore.full((3,), 2.0, device="cuda", dtype=ptcore.float64, requires_grad=True)
    side.wait_stream(cuda.default_stream())
    with cuda.stream(side):
        y = (x ** 3).sum()
    cuda.default_stream().wait_stream(side)
    g, = ptcore.autograd.grad(y, x, create_graph=True)
    h, = ptcore.autograd.grad(g.sum(), x)
    assert h.tolist() == [12, 12, 12]


def test_an_error_leaves_the_callers_stream():
    side = cuda.Stream()

    class Fails(ptcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no")

    x = ptcore.ones(3, device="cuda", requires_grad=True)
    with cuda.stream(side):
        y = Fails.apply(x)
    with pytest.raises(ValueError, match="no"):
        y.sum().backward()
    assert cuda.current_stream() == cuda.default_stream()


@pytest.mark.skipif(cuda.device_count() < 2, reason="needs two devices")
def test_two_devices(order):
    first, second = cuda.Stream("cuda:0"), cuda.Stream("cuda:1")
    for seed in range(8):
        order(seed)
        x = ptcore.full((N,), 3.0, device="cuda:0", requires_grad=True)
        first.wait_stream(cuda.default_stream("cuda:0"))
        with cuda.stream(first), cuda.stream(second):
            y = (x * 2).to("cuda:1")
            z = (y * y).sum()
        cuda.default_stream("cuda:1").wait_stream(second)
        with cuda.device(0):
            z.backward()
            assert cuda.current_stream("cuda:1") == cuda.default_stream("cuda:1")
            assert (x.grad * 1).cpu().eq(24.0).all()
