"""``freeze`` and ``optimize_for_inference``: what they keep, what they round, what they refuse."""
import io

import pytest

import ptcore as pt
from ptcore import jit, nn


def net():
    pt.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
                         nn.Linear(4 * 36, 5), nn.BatchNorm1d(5))
    for b in made.buffers():
        if b.dtype.is_floating_point:
            b.uniform_(0.5, 1.5)
    return made.eval()


def names(m):
    return [n.target.__name__ for n in m.graph.nodes if n.op == "call_function" and hasattr(n.target, "op")]


X = pt.randn(2, 3, 8, 8)


def test_freeze():
    model = net()
    traced = jit.trace(model, X)
    before = names(traced)
    frozen = jit.freeze(traced)
    assert names(traced) == before and isinstance(frozen, jit.ScriptModule) and frozen is not traced
    assert names(frozen) == ["convolve", "relu", "reshape", "linear"]
    assert list(frozen.parameters()) == [] and list(frozen.state_dict()) == []
    for n in (2, 5):
        x = pt.randn(n, 3, 8, 8)
        pt.testing.assert_close(frozen(x), model(x))
    with pt.no_grad():
        model[0].weight.zero_()
    x = pt.randn(2, 3, 8, 8)
    pt.testing.assert_close(frozen(x), jit.freeze(jit.trace(net(), X))(x))         # it is a copy


def test_without_other_roundings():
    model = net()
    frozen = jit.freeze(jit.trace(model, X), optimize_numerics=False)
    assert pt.equal(frozen(X), model(X)) and "rsqrt" not in names(frozen) and "sub" in names(frozen)
    jit.run_frozen_optimizations(frozen)
    assert names(frozen) == ["convolve", "relu", "reshape", "linear"]
    pt.testing.assert_close(frozen(X), model(X))


def test_optimize_for_inference():
    model = net()
    fast = jit.optimize_for_inference(jit.trace(model, X))
    assert names(fast) == ["convolve", "relu", "reshape", "linear"]
    pt.testing.assert_close(fast(X), model(X))
    again = jit.optimize_for_inference(jit.freeze(jit.trace(model, X)))
    assert pt.equal(again(X), fast(X))


def test_files():
    frozen, file = jit.freeze(jit.trace(net(), X)), io.BytesIO()
    jit.save(frozen, file)
    loaded = jit.load(io.BytesIO(file.getvalue()))
    assert pt.equal(loaded(X), frozen(X)) and list(loaded.state_dict()) == []


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.register_buffer("scale", pt.tensor(2.0))

    def forward(self, x):
        return self.a(x) * self.scale

    def other(self, x):
        return self.b(x) * self.scale.exp() + self.scale.exp()


def test_attributes_and_methods_that_are_preserved():
    model = Several().eval()
    x = pt.randn(3, 2)
    traced = jit.trace_module(model, {"forward": x, "other": x})
    frozen = jit.freeze(traced, ["other", "scale"])
    pt.testing.assert_close(frozen(x), model(x))
    pt.testing.assert_close(frozen.other(x), model.other(x))
    assert list(frozen.state_dict()) == ["scale"]
    frozen.scale.fill_(3.0)
    model.scale.fill_(3.0)
    pt.testing.assert_close(frozen(x), model(x))
    pt.testing.assert_close(frozen.other(x), model.other(x))
    alone = jit.freeze(traced)
    with pytest.raises(AttributeError):
        alone.other(x)
    both = jit.optimize_for_inference(traced, ["other"])
    pt.testing.assert_close(both.other(x), jit.freeze(traced, ["other"]).other(x))
    with pytest.raises(RuntimeError, match="no attribute 'nothing'"):
        jit.freeze(traced, ["nothing"])


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="training mode"):
        jit.freeze(jit.trace(nn.Linear(2, 2), pt.ones(1, 2)))
    with pytest.raises(RuntimeError, match="expected a ScriptModule, got Linear"):
        jit.freeze(nn.Linear(2, 2).eval())
    with pytest.raises(RuntimeError, match="training mode"):
        jit.freeze(jit.script(nn.Linear(2, 2)))
    with pytest.raises(RuntimeError, match="expected a frozen ScriptModule"):
        jit.run_frozen_optimizations(nn.Linear(2, 2))

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", pt.zeros(()))

        def forward(self, x):
            self.count += 1
            return x + self.count
    traced = jit.trace(Counts().eval(), pt.ones(2))
    with pytest.raises(RuntimeError, match="writes to count"):
        jit.freeze(traced)
    kept = jit.freeze(traced, ["count"])
    first = kept(pt.zeros(2))
    assert pt.equal(kept(pt.zeros(2)), first + 1)


def test_gradients_by_inputs():
    frozen, model = jit.freeze(jit.trace(net(), X), optimize_numerics=False), net()
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    frozen(x).sum().backward()
    model(y).sum().backward()
    pt.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("of", [lambda: nn.Linear(4, 3), lambda: nn.Conv2d(4, 3, 1)], ids=["linear", "convolve"])
@pytest.mark.parametrize("operation", [lambda y, c: y * c, lambda y, c: y + c, lambda y, c: c - y, lambda y, c: y / c])
def test_constants_of_more_dims_than_the_result(of, operation):
    class Scaled(nn.Module):
        def __init__(self, constant):
            super().__init__()
            self.layer = of()
            self.register_buffer("c", constant)

        def forward(self, x):
            return operation(self.layer(x), self.c)

    behind = (1, 1) if "Conv" in str(of()) else ()
    for shape in ((3, *behind), (1, 3, *behind), (1, 1, 3, *behind), (1, 1, 1, 3, *behind), (1, 1), ()):
        model = Scaled(pt.rand(shape) + 1).eval()
        for n in ((2,), ()):
            x = pt.randn(*n, 4, *[5 for _ in behind])
            pt.testing.assert_close(jit.freeze(jit.trace(model, x))(x), model(x))
