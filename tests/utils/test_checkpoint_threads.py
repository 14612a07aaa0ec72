"""Checkpoints and hooks in several threads at once: each has its own."""
import functools
import sys
import threading

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

pytestmark = pytest.mark.core


@pytest.fixture
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(function, n=3, meet=None):
    """Runs ``function(k)`` in n threads at once, which ``meet`` at a barrier; raises what one of them raises."""
    start, errors = threading.Barrier(n), []

    def run(k):
        try:
            start.wait(60)
            function(k)
        except BaseException as error:
            errors.append(error)
            if meet is not None:
                meet.abort()
    threads = [threading.Thread(target=run, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads)
    if errors:
        raise errors[0]


def program(k, meet):
    """A function of thread k, which saves another number of tensors than those of the others, and its gradient. All
    threads meet where it begins, inside of the checkpoints."""
    def f(x):
        meet.wait()
        for _ in range(k + 2):
            x = (x * x).sin()
        return x

    def slope(x):
        d = np.ones_like(x)
        for _ in range(k + 2):
            d, x = d * np.cos(x * x) * 2 * x, np.sin(x * x)
        return d
    return f, slope


@pytest.mark.parametrize("contexts", [None, [pt.sin]], ids=["all", "selective"])
def test_checkpoints(contexts, eager_switching):
    options = {} if contexts is None else {
        "context_fn": functools.partial(create_selective_checkpoint_contexts, contexts)}
    meet = threading.Barrier(3, timeout=60)

    def work(k):
        f, slope = program(k, meet)
        values = np.linspace(0.1, 1.2, 5 + k)
        for _ in range(200):
            x = pt.tensor(values, requires_grad=True)
            checkpoint(f, x, use_reentrant=False, **options).sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), slope(values), rtol=1e-12)
    in_threads(work, meet=meet)


def test_hooks_pack_what_their_thread_saves(eager_switching):
    inside = threading.Barrier(3, timeout=60)

    def work(k):
        mine = []
        for _ in range(200):
            del mine[:]
            x = pt.full((k + 1,), 2., dtype=pt.float64, requires_grad=True)
            with pt.autograd.graph.saved_tensors_hooks(lambda t: mine.append(t.shape[0]) or t * (k + 1),
                                                       lambda t: t / (k + 1)):
                inside.wait()
                y = (x * x).exp()
                inside.wait()
            y.sum().backward()
            assert mine == [k + 1] * 3
            np.testing.assert_allclose(x.grad.numpy(), np.full(k + 1, 4 * np.exp(4.)), rtol=1e-12)
    in_threads(work, meet=inside)


def test_a_backward_unpacks_on_its_own_thread():
    """The graph of one thread, walked by another: hooks run there, and what the second run of a checkpoint saves is
    packed by the hooks of the thread that walks."""
    where, packed = [], []
    x = pt.tensor([0.5], dtype=pt.float64, requires_grad=True)
    with pt.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (where.append(threading.get_ident()), t)[1]):
        y = x.exp()
    z = checkpoint(lambda t: t.sin().exp(), y, use_reentrant=False).sum()

    def work(k):
        with pt.autograd.graph.saved_tensors_hooks(lambda t: packed.append(k) or t, lambda t: t):
            z.backward()
        assert where == [threading.get_ident()]
    in_threads(work, 1)
    assert packed == []                 # the checkpoint's own are inside those of the thread
    e = np.exp(0.5)
    np.testing.assert_allclose(x.grad.numpy(), [np.exp(np.sin(e)) * np.cos(e) * e], rtol=1e-12)


def test_a_new_thread_begins_with_the_defaults():
    seen = []

    def look(_):
        with pytest.raises(RuntimeError, match="dual level"):
            pt.autograd.forward_ad.make_dual(pt.ones(1), pt.ones(1))
        seen.append((pt.is_grad_enabled(), pt.is_inference_mode_enabled(), pt.is_autocast_enabled("cpu"),
                     pt.ones(1).device.type, pt._state.mode_word()))
    refused = pt.autograd.graph.disable_saved_tensors_hooks("no")
    with pt.no_grad(), pt.autocast("cpu"), pt.device("meta"), refused, pt.autograd.forward_ad.dual_level():
        in_threads(look, 1)
    assert seen == [(True, False, False, "cpu", 0)]


def test_tracing_is_of_its_thread():
    """A function that asks whether it is traced, called by a thread beside the trace."""
    seen = []

    def traced(x):
        thread = threading.Thread(target=lambda: seen.append(pt.jit.is_tracing()))
        thread.start()
        thread.join()
        seen.append(pt.jit.is_tracing())
        return x + 1
    pt.jit.trace(traced, (pt.ones(2),), check_trace=False)
    assert seen == [False, True]


def test_casts_of_parameters_are_of_their_thread():
    weight = pt.ones(2, 2, requires_grad=True)
    x, found = pt.ones(1, 2), {}

    def work(k):
        with pt.autocast("cpu"):
            for _ in range(50):
                y = x @ weight
            found[k] = y.dtype
            y.sum().backward()
    in_threads(work)
    assert set(found.values()) == {pt.bfloat16}
    assert weight.grad.tolist() == [[3., 3.], [3., 3.]]
