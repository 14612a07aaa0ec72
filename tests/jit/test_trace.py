"""``jit.trace``: functions and modules, other sizes, values that are read, what differs, what is refused."""
import copy
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore import jit
from ptcore.fx import verify

F = pt.nn.functional


def same(got, want):
    np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())


def test_a_function_runs_on_other_sizes():
    traced = jit.trace(lambda x, y: (x.view(x.shape[0], -1) @ y).softmax(-1), (pt.randn(2, 3, 4), pt.randn(12, 5)))
    assert isinstance(traced, jit.ScriptFunction) and verify(traced.graph) == "rows"
    for n in (2, 7, 3):
        x, y = pt.randn(n, 3, 4), pt.randn(12, 5)
        same(traced(x, y), (x.view(n, -1) @ y).softmax(-1))
    same(traced(y=y, x=x), traced(x, y))


def test_a_module_keeps_its_tensors():
    class Net(pt.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = pt.nn.Sequential(pt.nn.Conv2d(1, 2, 3), pt.nn.BatchNorm2d(2), pt.nn.ReLU())
            self.head = pt.nn.Linear(2, 3)
            self.register_buffer("scale", pt.full((3,), 2.0))

        def forward(self, x):
            return self.head(self.body(x).mean((2, 3))) * self.scale

    net = Net().eval()
    traced = jit.trace(net, pt.randn(2, 1, 8, 8))
    assert isinstance(traced, jit.ScriptModule)
    assert [n for n, _ in traced.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert traced.state_dict().keys() == net.state_dict().keys()
    x = pt.randn(5, 1, 9, 7)
    same(traced(x), net(x))
    with pt.no_grad():
        net.head.bias.add_(1)                       # the tensors are shared
    same(traced(x), net(x))
    other = copy.deepcopy(traced)
    with pt.no_grad():
        other.head.bias.add_(1)
    same(traced(x), net(x))
    assert not pt.equal(other(x), net(x))
    traced.load_state_dict({k: v * 0.5 if v.is_floating_point() else v for k, v in net.state_dict().items()})
    same(traced(x), net(x))
    assert "conv2d" in str(traced.graph) and "conv2d" in traced.code


def test_tensors_are_looked_up_at_each_call():
    net = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.Sequential(pt.nn.Linear(4, 4), pt.nn.Tanh()))
    traced = jit.trace(net, pt.randn(2, 3))
    x = pt.randn(5, 3)
    with pt.no_grad():
        for _ in range(2):
            same(traced(x), net(x))
        other = pt.nn.Linear(3, 4)
        traced._modules["0"].weight = net[0].weight = other.weight          # another parameter
        same(traced(x), net(x))
        traced._modules["0"] = net[0] = other                               # another submodule
        same(traced(x), net(x))
        inner = pt.nn.Sequential(pt.nn.Linear(4, 4), pt.nn.Tanh())
        traced._modules["1"] = net[1] = inner
        same(traced(x), net(x))
        same(traced(x), net(x))
        traced.double()
        net.double()
        same(traced(x.double()), net(x.double()))
        bias, inner[0].bias = inner[0].bias, None
        for _ in range(2):
            with pytest.raises(TypeError, match=r"1\.0\.bias of the module must be a Tensor"):
                traced(x.double())
        inner[0].bias = bias
        same(traced(x.double()), net(x.double()))


def test_training_goes_through_it():
    net = pt.nn.Sequential(pt.nn.Linear(4, 8), pt.nn.Tanh(), pt.nn.Linear(8, 1))
    other = copy.deepcopy(net)
    traced = jit.trace(net, pt.randn(3, 4))
    ours, theirs = pt.optim.Adam(traced.parameters(), 0.01), pt.optim.Adam(other.parameters(), 0.01)
    for _ in range(10):
        x = pt.randn(6, 4)
        for module, optimizer in ((traced, ours), (other, theirs)):
            optimizer.zero_grad()
            module(x).square().mean().backward()
            optimizer.step()
    for a, b in zip(traced.parameters(), other.parameters()):
        same(a, b)


def test_arguments_by_name():
    traced = jit.trace(lambda x, y: x - y, (pt.ones(2), pt.ones(2)))
    one, two = pt.ones(2), pt.full((2,), 2.0)
    for found in (traced(one, two), traced(one, y=two), traced(y=two, x=one)):
        assert found.tolist() == [-1, -1]
    for args, kwargs, text in (((one,), {"x": two}, "there is no argument 'x', or it is given twice"),
                               ((one,), {"z": two}, "there is no argument 'z', or"),
                               ((one,), {}, r"takes 2 arguments \(x, y\), got 1"),
                               ((one, one, one), {}, r"takes 2 arguments \(x, y\), got 3")):
        with pytest.raises(RuntimeError, match=text):
            traced(*args, **kwargs)


def test_copies_are_modules_of_their_own():
    net = pt.nn.Sequential(pt.nn.Linear(2, 2, bias=False), pt.nn.Tanh())
    net.register_parameter("scale", pt.nn.Parameter(pt.ones(2)))
    traced = jit.trace(net, pt.ones(1, 2))
    other = copy.deepcopy(traced)
    other.scale = pt.nn.Parameter(pt.full((2,), 7.0))
    assert other.scale[0] == 7 and other._parameters["scale"] is other.scale and traced.scale[0] == 1
    del other.scale
    assert not hasattr(other, "scale")
    other.double()
    assert other(pt.ones(1, 2, dtype=pt.float64)).dtype is pt.float64 and traced(pt.ones(1, 2)).dtype is pt.float32


def test_buffers_are_written_once():
    norm = pt.nn.BatchNorm1d(3)
    other = copy.deepcopy(norm)
    x = pt.randn(8, 3)
    traced = jit.trace(norm, x)
    assert norm.num_batches_tracked.item() == 0
    y = pt.randn(4, 3)
    same(traced(y), other(y))
    same(traced.running_mean, other.running_mean)


def test_values_that_are_read_warn_with_the_line():
    def f(x):
        if x.sum() > 0:             # this line
            return x + 1
        return x - 1
    with pytest.warns(jit.TracerWarning, match=r"test_trace\.py:\d+") as seen:
        traced = jit.trace(f, pt.ones(2))
    assert len(seen) == 1
    line = f.__code__.co_firstlineno + 1
    assert f":{line}" in str(seen[0].message)
    assert traced(-pt.ones(2)).tolist() == [0.0, 0.0]               # the branch of the trace


def test_another_branch_is_found_by_the_check():
    def f(x):
        return x + 1 if float(x.sum()) > 0 else x - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        with pytest.raises(jit.TracingCheckError, match="depends on values that were read"):
            jit.trace(f, pt.ones(2), check_inputs=[(-pt.ones(2),)])
        jit.trace(f, pt.ones(2), check_inputs=[(-pt.ones(2),)], check_trace=False)


def test_sizes_of_one_come_later():
    w = pt.randn(3)
    traced = jit.trace(lambda x: x * w + 1, pt.ones(2, 3))
    same(traced(pt.ones(1, 3)), pt.ones(1, 3) * w + 1)
    net = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.ReLU(), pt.nn.Linear(4, 2))
    traced = jit.trace(net, pt.randn(2, 3))
    for n in (1, 0, 5):
        x = pt.randn(n, 3)
        same(traced(x), net(x))


def test_a_size_that_was_asked_about_is_checked():
    traced = jit.trace(lambda x: x * 2 if x.shape[0] > 2 else x, pt.ones(3))
    assert traced(pt.ones(4)).tolist() == [2.0] * 4
    with pytest.raises(RuntimeError, match="sizes for which it does not hold"):
        traced(pt.ones(1))


def test_nested_arguments_and_results():
    def f(pair, more):
        x, y = pair
        return [x + y, (more["a"] * 2,)]
    traced = jit.trace(f, ((pt.ones(2), pt.ones(2)), {"a": pt.ones(3)}))
    first, (second,) = traced((pt.ones(4), pt.ones(4)), {"a": pt.full((2,), 4.0)})
    assert first.tolist() == [2.0] * 4 and second.tolist() == [8.0, 8.0]
    with pytest.raises(RuntimeError, match="nested as those it was traced with"):
        traced([pt.ones(3), pt.ones(3)], {"a": pt.ones(1)})
    with pytest.raises(RuntimeError, match="dict at the output"):
        jit.trace(lambda x: {"a": x + 1}, pt.ones(2))
    assert jit.trace(lambda x: {"a": x + 1}, pt.ones(2), strict=False)(pt.ones(3))["a"].tolist() == [2.0] * 3


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="arguments must be tensors"):
        jit.trace(lambda x, n: x * n, (pt.ones(2), 3))
    with pytest.raises(RuntimeError, match="only tensors"):
        jit.trace(lambda x: (x, 3), pt.ones(2))
    with pytest.raises(RuntimeError, match="example_inputs or example_kwarg_inputs"):
        jit.trace(lambda x: x)
    traced = jit.trace(lambda x, y: x + y, (pt.ones(2), pt.ones(2)))
    with pytest.raises(RuntimeError, match=r"takes 2 arguments \(x, y\), got 1"):
        traced(pt.ones(2))
    with pytest.raises(RuntimeError, match="no argument 'z'"):
        traced(pt.ones(2), z=pt.ones(2))
    with pytest.raises(RuntimeError, match="must be a Tensor, got int"):
        traced(pt.ones(2), 3)


def test_keywords_methods_and_several_graphs():
    class Net(pt.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = pt.nn.Parameter(pt.full((2,), 3.0))

        def forward(self, x, bias):
            return x * self.w + bias

        def twice(self, x):
            return 2 * x * self.w
    net = Net()
    traced = jit.trace(net, example_kwarg_inputs={"x": pt.ones(2), "bias": pt.ones(2)})
    assert traced(pt.ones(2), bias=pt.zeros(2)).tolist() == [3.0, 3.0]
    traced = jit.trace_module(net, {"forward": (pt.ones(2), pt.ones(2)), "twice": pt.ones(2)})
    assert traced.twice(pt.ones(2)).tolist() == [6.0, 6.0]
    method = jit.trace(net.twice, pt.ones(2))
    assert method(pt.ones(2)).tolist() == [6.0, 6.0]
    assert isinstance(method, jit.ScriptFunction)


def test_draws_are_drawn_anew():
    def f(x):
        return F.dropout(x, 0.5) + pt.rand(2)
    traced = jit.trace(f, pt.ones(2))
    for seed in (1, 2):
        pt.manual_seed(seed)
        want = f(pt.ones(2))
        pt.manual_seed(seed)
        same(traced(pt.ones(2)), want)


def test_is_tracing():
    seen = []
    jit.trace(lambda x: (seen.append(jit.is_tracing()), x + 1)[1], pt.ones(1))
    assert seen[0] is True and jit.is_tracing() is False


def test_arguments_by_name_are_in_the_order_of_the_signature():
    def f(a, b, c=0):
        return a - b * 2 + c
    x, y, z = pt.randn(3), pt.randn(3), pt.randn(3)
    traced = jit.trace(f, x, example_kwarg_inputs={"c": z, "b": y})
    assert pt.equal(traced(y, z, x), f(y, z, x)) and pt.equal(traced(b=x, c=y, a=z), f(z, x, y))


def test_a_program_that_gives_other_results_each_time():
    calls = []

    def f(x):
        calls.append(x)
        return (x, x * 2)[:1 + len(calls) % 2]
    with pytest.raises(jit.TracingCheckError, match="gives 2 results, the program 1"):
        jit.trace(f, pt.ones(2))

    def g(x):
        calls.append(x)
        y = x + pt.rand(2)
        if len(calls) > 1:
            raise ValueError("only once")
        return y
    states = []
    for check in (False, True):
        calls.clear()
        pt.manual_seed(0)
        try:
            jit.trace(g, pt.ones(2), check_trace=check)
        except ValueError:
            assert check
        states.append(pt.rand(1).item())
    assert states[0] == states[1]
