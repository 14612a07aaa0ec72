"""What can be compiled and what it may call: objects, partial functions, containers of modules, parametrizations,
checkpoints, functions of one's own derivative, other compiled functions, several threads."""
import dataclasses
import functools
import linecache
import threading
import typing

import numpy as np
import pytest
from test_guards import Watched, X, equal

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile
from ptcore.nn.utils import parametrizations, parametrize
from ptcore.utils.checkpoint import checkpoint


class Scale:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k

    def method(self, x, *, more=1):
        return x * self.k + more

    @staticmethod
    def plain(x):
        return x + 1

    @classmethod
    def made(cls, x):
        return cls(3)(x)


@pytest.mark.parametrize("f", [
    Scale(2), Scale(2).method, Scale.plain, Scale.made, functools.partial(Scale(3).method, more=4), pt.relu,
    pt.nn.functional.gelu, lambda x, *rest, k=2, **words: x * k + len(rest) + len(words),
    pt.Tensor.sin, pt.vmap(lambda x: x * 2), pt.func.grad(lambda x: (x ** 3).sum())],
    ids=lambda f: getattr(f, "__name__", type(f).__name__))
def test_callables(f):
    watched = Watched(f)
    watched(X)(X)(X + 1)
    assert (watched.captures, watched.eager) == (1, 0)


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})
        self.listed = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
        self.weights = nn.ParameterList([nn.Parameter(pt.ones(4) * k) for k in range(3)])
        self.table = nn.ParameterDict({"w": nn.Parameter(pt.ones(4))})
        self.order: typing.Final = ["a", "b"]

    def forward(self, x):
        for name in self.order:
            x = self.named[name](x)
        for module in reversed(self.listed):
            x = module(x)
        for k, w in enumerate(self.weights):
            x = x + w * k
        for name, module in self.named.items():
            x = module(x) + len(name)
        return x * self.table["w"] + len(self.listed) + ("a" in self.named) + sum(p.sum() for p in self.parameters())


def test_containers_of_modules():
    module = Parts()
    watched = Watched(module)
    watched(X)(X)
    assert (watched.captures, watched.eager) == (1, 0)
    module.weights.append(nn.Parameter(pt.ones(4)))
    module.named["c"] = nn.Sigmoid()
    watched(X)(X)
    assert (watched.captures, watched.eager) == (2, 0)
    module.order.append("c")
    watched(X)(X)
    assert (watched.captures, watched.eager) == (3, 0)


class Doubled(nn.Module):
    def forward(self, w):
        return w * 2


def test_parametrizations():
    module = nn.Linear(4, 4)
    parametrize.register_parametrization(module, "weight", Doubled())
    watched = Watched(module)
    watched(X)(X)
    assert watched.eager == 0
    parametrize.register_parametrization(module, "bias", Doubled())
    watched(X)
    parametrize.remove_parametrizations(module, "weight")
    watched(X)(X)


def test_weight_norm():
    watched = Watched(parametrizations.weight_norm(nn.Linear(4, 4)))
    watched(X)(X)
    assert watched.eager == 0


class Square(pt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 7 * g * ctx.saved_tensors[0]


@pytest.mark.parametrize("f", [
    lambda x: Square.apply(x) + 1, lambda x: checkpoint(lambda y: (y * y).sin(), x, use_reentrant=False),
    lambda x: pt.func.functional_call(LINEAR, dict(LINEAR.named_parameters()), (x,))], ids=("function", "checkpoint",
                                                                                          "functional_call"))
def test_gradients_of_their_own(f):
    """What is not captured runs eagerly, with its own gradients."""
    compiled = pt.compile(f, backend="eager")
    for _ in range(2):
        a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
        compiled(a).sum().backward()
        f(b).sum().backward()
        equal(a.grad, b.grad)


LINEAR = nn.Linear(4, 4)



MODEL = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))


def residual(x):
    """The residual of a differential equation, with second derivatives."""
    x = x.detach().reshape(-1, 1).requires_grad_()
    u = MODEL(x)
    (d,) = pt.autograd.grad(u.sum(), x, create_graph=True)
    (dd,) = pt.autograd.grad(d.sum(), x, create_graph=True)
    return ((dd + u) ** 2).mean(), d


def penalty(x):
    mixed = (x * 0.5 + 1).detach()
    mixed.requires_grad = True
    (g,) = pt.autograd.grad(MODEL(mixed.reshape(-1, 1)).sum(), mixed, create_graph=True)
    return (g.norm() - 1) ** 2, mixed


def made_inside(x):
    w = pt.zeros(4, requires_grad=True)
    v = pt.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (g,) = pt.autograd.grad(((w + x) ** 2 * v).sum(), w)
    return g, w, v, (v * 2).requires_grad, w.is_leaf, g.requires_grad


def switched_off(x):
    w = x.clone().detach().requires_grad_()
    y = (w * 2).sum()
    with pt.no_grad():
        z = w * 3
    w2 = pt.ones(2).requires_grad_().requires_grad_(False)
    return pt.autograd.grad(y, w)[0], z, w2


@pytest.mark.parametrize("f", [residual, penalty, made_inside, switched_off], ids=lambda f: f.__name__)
def test_gradients_of_what_is_made_inside(f):
    watched = Watched(f)
    watched(X)(X)(X * 2)
    assert (watched.captures, watched.eager) == (1, 0)
    compiled = pt.compile(f, backend="eager")
    found = []
    for g in (compiled, compiled, f):
        MODEL.zero_grad()
        out = g(X)
        if f in (residual, penalty):
            out[0].backward()
        found.append([p.grad for p in MODEL.parameters()] + [t.is_leaf for t in out if isinstance(t, pt.Tensor)])
    for a in found[:2]:
        for s, t in zip(a, found[2]):
            equal(s, t)


def test_an_input_that_is_made_to_require_grad():
    def f(x):
        x.requires_grad_()
        return pt.autograd.grad((x * x).sum(), x)[0]
    compiled = pt.compile(f, backend="eager")
    for _ in range(2):
        a, b = X.clone(), X.clone()
        equal(compiled(a), f(b))
        assert a.requires_grad and b.requires_grad


@pytest.mark.parametrize("f", [
    lambda x: pt.vmap(lambda v: (v * LINEAR.bias).sum() * len(str(1)))(x.expand(3, 4)),
    lambda x: pt.func.grad(lambda v: LINEAR(v).pow(2).sum())(x), lambda x: pt.func.jacrev(lambda v: v * LINEAR.bias)(x),
    lambda x: pt.func.hessian(lambda v: (v ** 3 * LINEAR.bias).sum())(x), lambda x: pt.vmap(LINEAR)(x.expand(3, 4)),
    lambda x: pt.func.jvp(lambda v: v.sin() * LINEAR.bias, (x,), (x,)),
    lambda x: pt.func.grad(lambda v: v.sum() if v.sum() > 0 else -(v * LINEAR.bias).sum())(x)])
def test_transformations_inside(f):
    watched = Watched(f)
    watched(X)(X)(-X)(X * 2)
    assert watched.eager == 0


@pytest.mark.parametrize("around", [lambda f: f, pt.compile], ids=("plain", "compiled"))
def test_compiled_inside(around):
    inner = around(lambda x: x * 2)
    module = pt.compile(nn.Linear(4, 4)) if around is pt.compile else nn.Linear(4, 4)

    def f(x):
        return inner(module(x)) + inner(x)
    watched = Watched(f, fullgraph=True)
    watched(X)(X)
    assert (watched.captures, watched.eager) == (1, 0) or around is pt.compile


def test_hooks_of_inputs_and_second_derivatives():
    def f(x):
        return (x ** 3).sum()
    compiled = pt.compile(f, backend="eager")
    for _ in range(2):
        x, seen = X.clone().requires_grad_(), []
        x.register_hook(seen.append)
        (g,) = pt.autograd.grad(compiled(x), x, create_graph=True)
        (h,) = pt.autograd.grad(g.sum(), x)
        equal(h, 6 * X)
        assert len(seen) == 2
    assert pt.autograd.gradcheck(compiled, (X.double().requires_grad_(),))
    assert pt.autograd.gradgradcheck(compiled, (X.double().requires_grad_(),))


def test_saved_tensors_are_watched():
    """A write to what a compiled call saved for the backward raises, as eagerly."""
    compiled = pt.compile(lambda x: (x * x).sum(), backend="eager")
    for _ in range(2):
        x = X.clone().requires_grad_()
        y = x * 1
        loss = compiled(y)
        with pt.no_grad():
            y.add_(1)
        with pytest.raises(RuntimeError, match=r"modified|version"):
            loss.backward()


def test_threads():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    compiled, wrong = pt.compile(model, backend="eager"), []

    def work(k):
        for n in range(1, 8):
            x = pt.randn(n, 4)
            if not np.array_equal(compiled(x).detach().numpy(), model(x).detach().numpy()):
                wrong.append((k, n))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_inference_mode_and_no_grad_results():
    compiled = pt.compile(lambda x, w: x * w, backend="eager")
    w = pt.ones(4, requires_grad=True)
    assert compiled(X, w).requires_grad
    with pt.no_grad():
        assert not compiled(X, w).requires_grad
    with pt.inference_mode():
        assert compiled(X, w).is_inference()
    assert compiled(X, w).requires_grad


def test_an_error_that_is_handled():
    """An operation's error that the program handles: it may be the tracer's alone, so that the function is not
    captured."""
    def f(x):
        try:
            return x @ pt.ones(7)
        except RuntimeError:
            return x + 1

    def own(x):
        try:
            raise RuntimeError("mine")
        except RuntimeError as error:
            return x + len(str(error))
    watched = Watched(f)
    watched(X)(X)
    assert watched.eager == 2
    watched = Watched(own)
    watched(X)(X)
    assert (watched.captures, watched.eager) == (1, 0)


class Counted:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if not self.n:
            raise StopIteration
        self.n -= 1
        return self.n


def test_iterators_of_ones_own():
    def f(x):
        it = Counted(1)
        return x * next(it, 7) + next(it, 7)
    equal(pt.compile(f, backend="eager", fullgraph=True)(X), f(X))
    equal(f(X), X * 0 + 7)


def test_iterators_and_generators_from_outside():
    def f(x, it):
        return x * next(it)
    compiled = pt.compile(f, backend="eager")
    it = iter([1, 2, 3])
    for k in (1, 2, 3):
        equal(compiled(X, it), X * k)

    def g(x):
        for k in range(3):
            yield x * k
    made = list(pt.compile(g, backend="eager")(X))
    for a, b in zip(made, g(X)):
        equal(a, b)


def test_arrays_and_scalars_of_numpy():
    scalar, array = np.float32(2.5), np.arange(4.0)
    watched = Watched(lambda x: x * scalar)
    watched(X)(X)
    compiled = pt.compile(lambda x: x * pt.from_numpy(array), backend="eager")
    for _ in range(2):
        equal(compiled(X), X * pt.from_numpy(array))
        array += 1


@dataclasses.dataclass
class Output:
    loss: pt.Tensor
    parts: list = dataclasses.field(default_factory=list)
    scale: float = 2.0

    def __post_init__(self):
        self.total = self.loss * self.scale


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int
    b: int = 3


def test_dataclasses():
    def f(x):
        out = Output(x, scale=3.0)
        out.parts.append(x)
        y = Frozen(2)
        return out.total * y.a + y.b, out.parts, Output(x).total, y == Frozen(2)
    watched = Watched(f)
    watched(X)(X)
    assert (watched.captures, watched.eager) == (1, 0)
    compiled = pt.compile(lambda x: Output(x * 2), backend="eager")
    for _ in range(2):
        made = compiled(X)
        assert type(made) is Output and made.scale == 2.0 and made.parts == []
        equal(made.total, X * 4)


def test_hooks_of_a_compiled_module():
    module, seen = nn.Linear(4, 4), []
    compiled = pt.compile(module, backend="eager")
    expected = compiled(X)
    handle = compiled.register_forward_hook(lambda m, args, out: seen.append(m) or out * 2)
    equal(compiled(X), expected * 2)
    handle.remove()
    equal(compiled(X), expected)
    assert len(seen) == 1


@pt.no_grad()
def without_history(x, w):
    return x * w


class Decorated(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.k = nn.Parameter(pt.ones(4)), 2

    @pt.enable_grad()
    def forward(self, x):
        return x * self.weight * self.k

    @pt.no_grad()
    def score(self, x):
        return self(x) + 1


def test_functions_that_a_mode_decorates():
    module = Decorated()
    for f in (lambda x: without_history(x, module.weight) + module.weight, module, module.score):
        watched = Watched(f)
        watched(X)(X)
        module.k += 1
        watched(X)
        with pt.no_grad():
            watched(X)
        assert watched.eager == 0


def test_types_of_symbols():
    def f(x, n, r):
        assert_is = (isinstance(n, int), type(n) is int, isinstance(r, float), isinstance(x.shape[0], int))
        return x * n * r, assert_is, n + 1, f"{n}"
    watched = Watched(f)
    for n in (2, 3, 4):
        watched(pt.ones(n + 1), n, n / 7)


def test_options_reach_the_parts():
    seen = []

    def backend(module, inputs):
        seen.append(module)
        return module.forward

    def f(x):
        print(end="")
        return part(x)
    compiled = pt.compile(f, backend=backend)
    compiled(X)
    compiled(X)
    assert len(seen) == 1
    assert "cpu" in _compile.backends


def part(x):
    return x.sin()


SHELL = """
import collections, contextlib, dataclasses

@dataclasses.dataclass
class Own:
    x: int
    y: int = 3
    def __init__(self, x):
        self.x, self.y = x * 10, FACTOR
    def __eq__(self, other):
        return self.x == -other.x
    def __hash__(self):
        return FACTOR

class Turned(collections.namedtuple("Turned", "a b")):
    def __new__(cls, a, b):
        return super().__new__(cls, b * FACTOR, a)

@dataclasses.dataclass(init=False)
class Bare:
    x: int = 4

class Given(contextlib.nullcontext):
    def __enter__(self):
        return FACTOR

def made(x):
    own = Own(2)
    return x * own.x + own.y

def equal(x):
    return x * (2 if Own(1) == Own(-1) else 3)

def turned(x):
    return x * Turned(1, 2).a

def bare(x):
    return x * Bare().x

def entered(x):
    with Given() as factor:
        return x * factor
"""


@pytest.mark.parametrize("name", ["made", "equal", "turned", "bare", "entered"])
def test_methods_that_were_typed_into_a_shell_are_the_programs_own(name):
    """The file of such code has a name as that of generated methods: <ipython-input-1>."""
    file = "<ipython-input-1>"
    space = {"__name__": "shell", "FACTOR": 7}
    linecache.cache[file] = len(SHELL), None, SHELL.splitlines(True), file
    exec(compile(SHELL, file, "exec"), space)
    compiled = pt.compile(space[name])
    for factor in (7, 5):
        space["FACTOR"] = factor
        equal(compiled(X), space[name](X))
