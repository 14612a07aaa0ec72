"""``TorchDispatchMode``: what a mode gets, and what comes of what it returns."""
import threading

import pytest

import ptcore as pt
from ptcore.compat.torch._python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)

F = pt.nn.functional
aten = pt.ops.aten
pytestmark = pytest.mark.core


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))

    @property
    def functions(self):
        return [func for func, *_ in self.seen]


def test_what_it_gets():
    x = pt.arange(6.0).reshape(2, 3)
    with Log() as log:
        y = x.mm(x.T)
        y.add_(1)
        pt.mul(y, y, out=x[:, :2])
        y.sum(0, keepdim=True)
    assert [f.__name__ for f in log.functions] == ["permute", "mm", "add_", "slice", "mul", "sum"]
    assert aten.mm.default in log.functions and aten.add_.Tensor in log.functions
    _, types, args, kwargs = log.seen[1]
    assert types == () and args[0] is x and len(args) == 2 and kwargs == {}
    assert list(log.seen[4][3]) == ["out"] and log.seen[4][3]["out"].shape == (2, 2)
    assert log.seen[5][2][1:] == (0, True) and log.seen[5][3] == {}
    assert y.tolist() == [[6, 15], [15, 51]] and x[0, 0] == 36


def test_gradients_are_those_without_it():
    layer = pt.nn.Linear(3, 2)
    x = pt.rand(4, 3)

    def step():
        layer.zero_grad()
        loss = F.layer_norm(layer(x).relu(), (2,)).square().mean()
        loss.backward()
        return loss.item(), layer.weight.grad.clone()

    plain, gradient = step()
    with Log() as log:
        found, watched = step()
    assert found == plain and pt.equal(gradient, watched)
    assert pt.mm in log.functions or pt.matmul in log.functions     # of the backward
    with BaseTorchDispatchMode():
        assert step()[0] == plain


def test_results_that_it_changes():
    class Halves(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **kwargs or {})
            return result / 2 if func is aten.exp.default else result

    x = pt.zeros(2, requires_grad=True)
    with Halves():
        y = x.exp()
    assert y.tolist() == [0.5, 0.5]
    assert pt.autograd.grad(y.sum(), x)[0].tolist() == [0.5, 0.5]       # of what it called


def test_modes_in_each_other_and_in_transformations():
    x = pt.ones(2)
    with Log() as outer:
        assert _get_current_dispatch_mode() is outer
        with Log() as inner:
            assert _get_current_dispatch_mode_stack() == [outer, inner]
            x.exp()
        with inner:                                             # again
            x.sin()
    assert inner.functions == outer.functions == [pt.exp, pt.sin]
    assert _get_current_dispatch_mode() is None
    with Log() as log:
        assert pt.vmap(lambda x: x.sin().sum())(pt.zeros(3, 4)).tolist() == [0, 0, 0]
        assert pt.func.grad(lambda x: x.exp().sum())(pt.zeros(2)).tolist() == [1, 1]
    assert pt.sin in log.functions and pt.exp in log.functions


def test_subclasses_threads_and_errors():
    class Sub(pt.Tensor):
        pass

    with Log() as log:
        y = pt.ones(2).as_subclass(Sub) + 1
    assert type(y) is Sub and log.seen[-1][1] in ((), (Sub,))
    with Log() as log:
        thread = threading.Thread(target=lambda: pt.ones(2).exp())
        thread.start()
        thread.join()
    assert log.seen == []                                       # it is the thread's
    with pytest.raises(NotImplementedError, match="TorchDispatchMode has no __torch_dispatch__"), TorchDispatchMode():
        pt.ones(2)

    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    one = pt.ones(())
    with pytest.raises(KeyError, match="exp"), Fails():
        one.exp()
    assert one.exp().item() == pytest.approx(2.718281828)


def test_one_mode_in_two_threads():
    """Each enters and leaves its own; enter and exit are C, which no interrupt divides."""
    log, inside, done = Log(), threading.Event(), threading.Event()

    def other():
        with log:
            inside.set()
            done.wait(20)

    thread = threading.Thread(target=other)
    with log:
        thread.start()
        assert inside.wait(20)
    done.set()
    thread.join()
    assert _get_current_dispatch_mode() is None
    assert "__enter__" not in vars(TorchDispatchMode) and not log.seen
