"""``func`` beside torch's, on calls made of parts: every transformation inside every other, and modules as functions.

Together with test_parity_func.py: ``test_how_many`` counts what was compared."""
import itertools
import warnings

import numpy as np
import pytest
import test_parity_func

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, *[pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "UserWarning", "FutureWarning", "DeprecationWarning")]]

V = np.random.default_rng(4).normal(size=4)
U = np.random.default_rng(5).normal(size=4)


def weighted(m, y, u):
    """A number of a result of any shape."""
    found = [x for x in test_parity_func.leaves(y) if x.dtype.is_floating_point]
    return sum([(x * x.sin()).sum() * u.cos().sum() for x in found])


# A function of one vector made from a function of one vector.
TRANSFORMED = {
    "vmap": lambda m, f, u: lambda x: m.vmap(f)(x * m.linspace(0.5, 1.5, 3, dtype=m.float64)[:, None]),
    "vmap out_dims": lambda m, f, u: lambda x: m.vmap(lambda a: weighted(m, f(a), u), out_dims=0, chunk_size=2)(
        m.stack([x, x * 2, x.cos()])),
    "grad": lambda m, f, u: m.func.grad(lambda x: weighted(m, f(x), u)),
    "grad_and_value": lambda m, f, u: m.func.grad_and_value(lambda x: weighted(m, f(x), u)),
    "grad by u": lambda m, f, u: lambda x: m.func.grad(lambda a, b: weighted(m, f(a), b), argnums=1)(x, u * x),
    "vjp": lambda m, f, u: lambda x: (lambda y, back: back(y))(*m.func.vjp(f, x)),
    "jvp": lambda m, f, u: lambda x: m.func.jvp(f, (x,), (u,)),
    "jacrev": lambda m, f, u: m.func.jacrev(lambda x: weighted(m, f(x), u) * x[:2]),
    "jacfwd": lambda m, f, u: m.func.jacfwd(lambda x: weighted(m, f(x), u) * x[:2]),
    "hessian": lambda m, f, u: m.func.hessian(lambda x: weighted(m, f(x), u)),
}
BASES = {
    "sin": lambda m: lambda x: x.sin() * x.sum(),
    "write": lambda m: lambda x: x.clone().mul_(x).add_(1),
    "softmax": lambda m: lambda x: m.softmax(x, 0) @ x,
}
# torch refuses a tangent that samples share where a value that is batched is written to its place.
REFUSED = {("vmap", "jvp", "write"), ("vmap out_dims", "jvp", "write")}
NESTED = sorted({*itertools.product(TRANSFORMED, TRANSFORMED, BASES)} - REFUSED)


@pytest.mark.parametrize(("outer", "inner", "base"), NESTED, ids=str)
def test_nested(outer, inner, base):
    found = []
    for m in (pt, torch):
        x, u = m.asarray(V.copy()), m.asarray(U.copy())
        f = TRANSFORMED[inner](m, BASES[base](m), u)
        result = TRANSFORMED[outer](m, f, u)(x)
        found.append((test_parity_func.structure(result), test_parity_func.leaves(result)))
    (a, ours), (b, theirs) = found
    assert a == b
    for x, y in zip(ours, theirs):
        assert tuple(x.shape) == tuple(y.shape) and x.requires_grad == y.requires_grad
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6, atol=1e-8)


def net(m):
    """A module with tied weights, a buffer and a plain attribute."""
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = m.nn.Linear(4, 4, dtype=m.float64), m.nn.Linear(4, 4, dtype=m.float64)
            self.b.weight = self.a.weight
            self.register_buffer("count", m.zeros((), dtype=m.float64))

        def forward(self, x, scale=1.0, *, shift=0.0):
            self.count.add_(1)
            return self.b(m.tanh(self.a(x))) * scale + shift + self.count
    made = Net()
    made.load_state_dict({key: m.asarray(np.random.default_rng(len(key)).normal(size=tuple(value.shape)))
                          for key, value in made.state_dict().items()})
    return made


def changed(m, n, factor=2.0, names=None):
    state = {**dict(n.named_parameters()), **dict(n.named_buffers())}
    return {key: value.detach() * factor for key, value in state.items() if names is None or key in names}


def ensemble(m, count=3, make=None):
    make = make or (lambda: m.nn.Linear(4, 2, dtype=m.float64))
    models = [make() for _ in range(count)]
    for k, model in enumerate(models):
        model.load_state_dict({key: m.full_like(value, k + 1.0) if value.dtype.is_floating_point else value
                               for key, value in model.state_dict().items()})
    return models


MODULES = {
    "all": lambda m, n, x: m.func.functional_call(n, changed(m, n), (x,)),
    "one argument": lambda m, n, x: m.func.functional_call(n, changed(m, n), x),
    "some": lambda m, n, x: m.func.functional_call(n, changed(m, n, names=("a.bias",)), (x,)),
    "none": lambda m, n, x: m.func.functional_call(n, {}, (x,)),
    "two dicts": lambda m, n, x: m.func.functional_call(
        n, (changed(m, n, names=("a.weight",)), changed(m, n, names=("count",))), (x,)),
    "list of dicts": lambda m, n, x: m.func.functional_call(n, [changed(m, n, names=("a.bias", "b.bias"))], (x,)),
    "kwargs": lambda m, n, x: m.func.functional_call(n, changed(m, n), (x, 3.0), {"shift": 2.0}),
    "only kwargs": lambda m, n, x: m.func.functional_call(n, changed(m, n), None, {"x": x}),
    "untied": lambda m, n, x: m.func.functional_call(n, changed(m, n, names=("a.weight",)), (x,), tie_weights=False),
    "tied by the other": lambda m, n, x: m.func.functional_call(n, {"b.weight": n.a.weight.detach() * 3}, (x,)),
    "buffer is written": lambda m, n, x: (lambda d: (m.func.functional_call(n, d, (x,)), d["count"], n.count))(
        changed(m, n)),
    "own stay": lambda m, n, x: (m.func.functional_call(n, changed(m, n), (x,)), n.a.weight, n.count)[1:],
    "grad": lambda m, n, x: m.func.grad(
        lambda p: m.func.functional_call(n, (p, changed(m, n, 1, ("count",))), (x,)).sum())(
        changed(m, n, names=("a.weight", "a.bias", "b.bias"))),
    "jacrev": lambda m, n, x: m.func.jacrev(lambda p: m.func.functional_call(n, (p, {"count": x.sum() * 0}), (x,)))(
        changed(m, n, names=("a.bias",))),
    "jvp": lambda m, n, x: m.func.jvp(lambda p: m.func.functional_call(n, (p, {"count": x.sum() * 0}), (x,)),
                                      (changed(m, n, names=("a.bias",)),), (changed(m, n, 0.5, ("a.bias",)),)),
    "strict": lambda m, n, x: m.func.functional_call(n, changed(m, n), (x,), strict=True),
    "stack": lambda m, n, x: m.func.stack_module_state(ensemble(m)),
    "stack of one": lambda m, n, x: m.func.stack_module_state(ensemble(m, 1)),
    "stack of norms": lambda m, n, x: m.func.stack_module_state(ensemble(m, 2, lambda: m.nn.BatchNorm1d(3))),
    "stack of frozen": lambda m, n, x: m.func.stack_module_state([e.requires_grad_(False) for e in ensemble(m)]),
    "ensemble": lambda m, n, x: (lambda e: m.vmap(lambda p, b: m.func.functional_call(e[0], (p, b), (x,)))(
        *m.func.stack_module_state(e)))(ensemble(m)),
    "ensemble of inputs": lambda m, n, x: (lambda e: m.vmap(
        lambda p, b, y: m.func.functional_call(e[0], (p, b), (y,)), (0, 0, 0))(
        *m.func.stack_module_state(e), m.stack([x, x + 1, x + 2])))(ensemble(m)),
    "ensemble of gradients": lambda m, n, x: (lambda e: m.vmap(m.func.grad(
        lambda p: m.func.functional_call(e[0], p, (x,)).sin().sum()))(m.func.stack_module_state(e)[0]))(ensemble(m)),
    "unwrap": lambda m, n, x: m.func.debug_unwrap(x),
    "unwrap in vmap": lambda m, n, x: inside(m, lambda a: m.func.debug_unwrap(a), x),
    "unwrap of two": lambda m, n, x: inside(m, lambda a: inside(m, lambda b: m.func.debug_unwrap(b), a), x[None]),
    "unwrap once": lambda m, n, x: inside(
        m, lambda a: tuple(inside(m, lambda b: m.func.debug_unwrap(b, recurse=False), a).shape), x[None]),
}


def inside(m, look, x):
    """What is seen of a sample."""
    seen = []
    m.vmap(lambda a: seen.append(look(a)) or a)(x)
    return seen[0]


MODULE_ERRORS = {
    "no dict": lambda m, n, x: m.func.functional_call(n, 3, (x,)),
    "no dicts": lambda m, n, x: m.func.functional_call(n, [3], (x,)),
    "twice": lambda m, n, x: m.func.functional_call(n, (changed(m, n), changed(m, n)), (x,)),
    "ties": lambda m, n, x: m.func.functional_call(
        n, {"a.weight": n.a.weight.detach(), "b.weight": n.a.weight.detach() * 2}, (x,)),
    "strict and missing": lambda m, n, x: m.func.functional_call(
        n, changed(m, n, names=("a.bias",)), (x,), strict=True),
    "strict and more": lambda m, n, x: m.func.functional_call(n, {**changed(m, n), "c": x}, (x,), strict=True),
    "no tensor": lambda m, n, x: m.func.functional_call(n, {"a.bias": 3.0}, (x,)),
    "no argument": lambda m, n, x: m.func.functional_call(n, changed(m, n)),
    "wrong shape": lambda m, n, x: m.func.functional_call(n, {"a.weight": x.reshape(-1)[:3]}, (x,)),
    "unknown keyword": lambda m, n, x: m.func.functional_call(n, {}, (x,), {"other": 2}),
    "no models": lambda m, n, x: m.func.stack_module_state([]),
    "modes": lambda m, n, x: m.func.stack_module_state([m.nn.Linear(1, 1), m.nn.Linear(1, 1).eval()]),
    "classes": lambda m, n, x: m.func.stack_module_state([m.nn.Linear(1, 1), m.nn.ReLU()]),
    "shapes": lambda m, n, x: m.func.stack_module_state([m.nn.Linear(1, 1), m.nn.Linear(2, 1)]),
    "unwrap of a number": lambda m, n, x: m.func.debug_unwrap(3.0),
}


def outcome(m, call):
    n, x = net(m), m.asarray(np.random.default_rng(6).normal(size=(2, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(m, n, x)


def comparable(result):
    found = []
    for x in test_parity_func.leaves(result):
        is_size = hasattr(x, "numel") and not hasattr(x, "numpy")
        found.append(tuple(x) if is_size else (x.detach().numpy(), x.requires_grad) if hasattr(x, "numpy") else x)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    ours, theirs = (outcome(m, MODULES[name]) for m in (pt, torch))
    assert test_parity_func.structure(ours) == test_parity_func.structure(theirs)
    for a, b in zip(comparable(ours), comparable(theirs)):
        if isinstance(a, tuple) and isinstance(a[0], np.ndarray):
            assert a[1] == b[1]
            np.testing.assert_allclose(a[0], b[0], rtol=1e-6, atol=1e-8)
        else:
            assert a == b


@pytest.mark.parametrize("name", MODULE_ERRORS)
def test_module_errors(name):
    caught = []
    for m in (pt, torch):
        try:
            outcome(m, MODULE_ERRORS[name])
        except Exception as error:
            caught.append(error)
    ours, theirs = caught
    expected = (RuntimeError, ValueError, TypeError) if type(theirs) is AssertionError else type(theirs)
    assert isinstance(ours, expected), (ours, theirs)


def test_how_many():
    counts = {"nested": len(NESTED), "results": len(test_parity_func.CALLS), "modules": len(MODULES),
              "errors": len(test_parity_func.ERRORS) + len(MODULE_ERRORS), "signatures": len(test_parity_func.NAMES)}
    assert sum(counts.values()) >= 450, counts
    assert set(test_parity_func.NAMES) <= set(torch.func.__all__ if hasattr(torch.func, "__all__") else dir(torch.func))
    text = " ".join(test_parity_func.CALLS) + " ".join(TRANSFORMED) + "functional_call stack_module_state debug_unwrap"
    assert all(name in text for name in test_parity_func.NAMES)
