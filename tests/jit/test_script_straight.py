"""Graphs of script without blocks as plans: beside the same calls op by op and beside eager ones, and where they stay
op by op."""
import copy
import io
import threading
import traceback

import numpy as np
import pytest

import ptcore as pt
from ptcore import jit, nn
from ptcore.jit._script.run import Program
from ptcore.nn import functional as F


def plans_of(f):
    """The plans that a scripted function, or forward of a module, has; None where it has none of its own."""
    program = (f if isinstance(f, jit.ScriptFunction) else f._jit_methods["forward"])._program
    return None if isinstance(program, Program) else [p for v in program.variants.values() for p in v.planned.plans]


def same(got, want):
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    elif isinstance(want, pt.Tensor):
        assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
        np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
    else:
        assert got == want


def chain(x, y):
    z = x * y + 1
    z = (z - y).relu() * 2
    a = pt.cat([z, x], dim=0)
    return a.view(a.size(0), -1).softmax(1), z.sum(), a.shape[0]


def logarithm(x):
    return ((x * 2 - 1).exp() + 3).log() * x


def fresh(function):
    """The function scripted anew, without the plans of other tests."""
    return jit.script(type(function)(function.__code__, function.__globals__, function.__name__))


def test_a_function_is_a_plan_for_each_size():
    f = fresh(chain)
    for n in (3, 5, 3, 8):
        x, y = pt.randn(n, 4), pt.randn(4)
        same(f(x, y), chain(x, y))
        with jit.optimized_execution(False):
            same(f(x, y), chain(x, y))
    assert len(plans_of(f)) == 3
    assert "group" in plans_of(f)[0].steps
    x = pt.randn(4, 3).t()                          # other strides
    same(f(x, pt.ones(1)), chain(x, pt.ones(1)))
    same(f(pt.ones(2, 4, dtype=pt.int64), pt.ones(4)), chain(pt.ones(2, 4, dtype=pt.int64), pt.ones(4)))


def test_short_graphs_and_graphs_with_branches_stay_as_they_are():
    @jit.script
    def short(x):
        return (x + 1).relu()

    @jit.script
    def branches(x, flag: bool):
        if flag:
            x = x + 1
        return ((x * 2 - 1).exp() + 3).log() * x

    @jit.script
    def prints(x):
        y = ((x * 2 - 1).exp() + 3).log() * x
        print(y.shape)
        return y - 1

    @jit.script
    def creates(x):
        return ((pt.zeros(3) + 2) * x - 1).exp() * x + 3

    @jit.script
    def tells(x):
        y = ((x * 2 - 1).exp() + 3).log() * x
        return y - 1, x.requires_grad, x.data_ptr()
    for f in (short, branches, prints, creates, tells):
        assert plans_of(f) is None


def test_values_that_are_read():
    @jit.script
    def f(x):
        y = ((x * 2 - 1).exp() + 3).log() * x
        n = int(y.sum())
        return y[:n] - 1
    for k in (1.0, 0.5, 1.0):
        x = pt.full((4,), k)
        same(f(x), f.original_function(x))


def test_arguments_that_are_no_tensors():
    @jit.script
    def f(x, flag: bool, n: int, y: pt.Tensor | None = None):
        z = F.softmax(x * 2, 0) + F.dropout(x, 0.5, flag)
        return (z + 1).exp() * z.sum() - n
    x = pt.randn(5)
    for args in ((x, True, 1), (x, False, 2), (x, True, 1, x), (x, False, 3)):
        pt.manual_seed(3)
        got = f(*args)
        pt.manual_seed(3)
        same(got, f.original_function(*args))

    @jit.script
    def g(x, flag: bool):
        z = F.softmax(x * 2, 0) + F.dropout(x, 0.5, flag)
        return (z + 1).exp() * z.sum() - 1
    for flag in (True, False, True, False):
        pt.manual_seed(4)
        got = g(x, flag)
        pt.manual_seed(4)
        same(got, g.original_function(x, flag))
    assert len(plans_of(g)) == 2


def test_draws_follow_each_other():
    @jit.script
    def f(x):
        a = F.dropout(x * 2, 0.5, True)
        b = F.dropout(x * 2, 0.5, True)
        return a + b * 3 - pt.rand_like(x).exp() + 1
    x = pt.ones(50)
    pt.manual_seed(0)
    got = [f(x) for _ in range(3)]
    pt.manual_seed(0)
    same(got, [f.original_function(x) for _ in range(3)])
    assert not pt.equal(got[0], got[1])


def test_gradients_go_op_by_op():
    f = fresh(chain)
    x, y = pt.randn(3, 4, requires_grad=True), pt.randn(4)
    f(x.detach(), y)
    got, want = f(x, y), chain(x, y)
    same(got, want)
    same(pt.autograd.grad(got[0].square().sum() + got[1], x), pt.autograd.grad(want[0].square().sum() + want[1], x))
    with pt.no_grad():
        same(f(x, y), chain(x, y))
        assert f(x, y)[0].grad_fn is None
    assert len(plans_of(f)) == 1


def test_writes_and_results_that_are_arguments():
    @jit.script
    def f(x, y):
        x.add_(1)
        x *= 2
        z = (x * y).relu_() + 1
        y[0] = 5
        return x, z.mul_(2) - y, y.t()
    for _ in range(3):
        a, b = pt.randn(3, 3), pt.randn(3, 3)
        mine, theirs = (a.clone(), b.clone()), (a.clone(), b.clone())
        got, want = f(*mine), f.original_function(*theirs)
        same(got, want)
        same(mine, theirs)
        assert got[0] is mine[0] and got[2].data_ptr() == mine[1].data_ptr()
        assert mine[0]._version == theirs[0]._version


def test_the_default_dtype_counts():
    @jit.script
    def f(x):
        y = x / 2 + x
        return ((y - 1).exp() + x.sum() / 3).sqrt() * 2
    x = pt.tensor([1, 2, 3])
    assert f(x).dtype == pt.float32
    pt.set_default_dtype(pt.float64)
    try:
        same(f(x), f.original_function(x))
    finally:
        pt.set_default_dtype(pt.float32)
    same(f(x), f.original_function(x))

    traced = jit.trace(lambda x: (x / 2).exp() + x, x)
    compiled = pt.compile(lambda x: (x / 2).exp() + x)
    for dtype in (pt.float32, pt.float64, pt.float32):
        pt.set_default_dtype(dtype)
        try:
            assert traced(x).dtype == compiled(x).dtype == dtype
            y = pt.tensor([1., 2, 3], requires_grad=True, dtype=dtype)
            assert jit.trace(lambda y, x: x / 2 * y, (y, x))(y, x).dtype == dtype
        finally:
            pt.set_default_dtype(pt.float32)


def test_errors_show_the_users_line():
    @jit.script
    def f(x, y):
        z = (x * 2 - 1).exp() + 3
        return (z.log() * x + z) @ y        # here
    with pytest.raises(RuntimeError) as caught:
        f(pt.ones(2, 3), pt.ones(2, 3))
    assert "# here" in "".join(traceback.format_exception(caught.value))
    same(f(pt.ones(2, 3), pt.ones(3)), f.original_function(pt.ones(2, 3), pt.ones(3)))

    @jit.script
    def g(x, i):
        z = (x * 2 - 1).exp() + 3
        return (z.log() * x + z)[i]         # there
    same(g(pt.ones(3), pt.tensor([1])), g.original_function(pt.ones(3), pt.tensor([1])))
    with pytest.raises(IndexError) as caught:
        g(pt.ones(3), pt.tensor([7]))
    assert "# there" in "".join(traceback.format_exception(caught.value))


def test_many_sizes_and_threads():
    f = fresh(chain)
    for n in range(1, 40):
        x, y = pt.randn(n, 4), pt.randn(4)
        same(f(x, y), chain(x, y))
    assert len(plans_of(f)) == 16

    g, found = fresh(logarithm), []
    x = pt.randn(3000)
    want = ((x * 2 - 1).exp() + 3).log() * x

    def run():
        for _ in range(50):
            found.append(g(x))
    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 200
    for got in found:
        same(got, want)


def test_transformations_see_the_ops():
    f = fresh(logarithm)
    x = pt.randn(4, 3)
    f(x[0])
    same(pt.func.vmap(f)(x), f(x))
    with pt.no_grad():
        same(pt.func.jvp(f, (x,), (pt.ones(4, 3),))[1], pt.func.jvp(f.original_function, (x,), (pt.ones(4, 3),))[1])
    assert "exp" in str(jit.trace(f, x).graph)
    with pt.inference_mode():
        assert f(x).is_inference()


# -- frozen modules ------------------------------------------------------------------------------------

NETS = {
    "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                                          nn.Flatten(), nn.Linear(36, 10), nn.Dropout(0.5)),
                    lambda n: pt.randn(n, 1, 8, 8)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), lambda n: pt.randn(n, 5, 16)),
    "recurrent": (lambda: nn.LSTM(8, 8), lambda n: pt.randn(5, n, 8)),
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU(),
                                         nn.Linear(8, 3), nn.Softmax(-1)), lambda n: pt.randn(n, 6)),
}


@pytest.mark.parametrize("name", sorted(NETS))
def test_frozen_modules(name):
    make, data = NETS[name]
    net = make().eval()
    frozen = jit.freeze(jit.script(net))
    for n in (2, 3, 2):
        x = data(n)
        with pt.no_grad():
            same(frozen(x), net(x))
    assert len(plans_of(frozen)) == 2
    x = data(2).requires_grad_()
    same(frozen(x), net(x))

    file = io.BytesIO()
    jit.save(frozen, file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    with pt.no_grad():
        same(loaded(x), net(x))
    assert len(plans_of(loaded)) == 1

    frozen.double()                                     # other tensors in the same places
    net.double()
    with pt.no_grad():
        same(frozen(x.double()), net(x.double()))
        other = copy.deepcopy(frozen)
        same(other(x.double()), net(x.double()))
        for b in other.buffers():
            if b.is_floating_point():
                b.mul_(0.5)
        same(frozen(x.double()), net(x.double()))
        for b in net.state_dict(keep_vars=True).values():
            if b.is_floating_point():
                b.mul_(0.5)
        same(other(x.double()), net(x.double()))


def test_what_is_preserved_may_change():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.drop, self.scale = nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Parameter(pt.ones(3))

        def forward(self, x):
            x = (self.norm(x) * self.scale + 1).exp()
            return (self.drop(x) - 1).relu() * 2 + self.scale

    net = Net().eval()
    frozen = jit.freeze(jit.script(net), preserved_attrs=["norm", "scale"])
    x = pt.randn(4, 3)
    with pt.no_grad():
        same(frozen(x), net(x))
        frozen.norm.eps = net.norm.eps = 1.0
        frozen.scale.mul_(3)
        same(frozen(x), net(x))
        frozen.norm.train()
        net.norm.train()
        same(frozen(x), net(x))
    frozen.scale.grad = None
    frozen(x).sum().backward()
    assert frozen.scale.grad is not None


def test_a_module_in_training_mode_runs_op_by_op():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    frozen = jit.freeze(jit.script(net))
    x = pt.randn(6, 3)
    with pt.no_grad():
        same(frozen(x), net(x))
        frozen.train()
        with jit.optimized_execution(False):
            want = copy.deepcopy(frozen)(x)
        same(frozen(x), want)
