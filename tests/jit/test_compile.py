"""``compile``: what a call does beside its values, where it is cut, sizes that vary, options, and what is left out."""
import contextlib
import copy
import functools
import itertools
import math
import operator
import pickle
import warnings

import numpy as np
import pytest
from test_guards import Watched, X, equal

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile

N = itertools.count()
LOG = []


def counted(f, *calls, captures, eager=0, **options):
    watched = Watched(f, **options)
    for args in calls:
        watched(*args)
    assert (watched.captures, watched.eager) == (captures, eager)
    return watched


def both(f, make, times=3, **options):
    """Calls with inputs made twice over; results, inputs, versions, gradients and random numbers are the same."""
    compiled = pt.compile(f, backend="eager", **options)
    for _ in range(times):
        a, b = make(), make()
        pt.manual_seed(0)
        first = compiled(*a)
        drawn = pt.rand(1)
        pt.manual_seed(0)
        second = f(*b)
        equal(drawn, pt.rand(1))
        equal(first, second)
        equal(list(a), list(b))
        for x, y in zip(a, b):
            if isinstance(x, pt.Tensor):
                assert x._version == y._version
        for s, t in zip(flat(first), flat(second)):
            assert s._version == t._version and s.is_leaf == t.is_leaf
            for x, y in zip(a, b):
                if isinstance(x, pt.Tensor):
                    assert (s is x) == (t is y)
                    assert (s.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) == (
                        t.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())
        for out in (first, second):
            leaves = [t for t in flat(out) if t.requires_grad]
            if leaves:
                sum([(t * t).sum() for t in leaves]).backward()
        for x, y in zip(a, b):
            if isinstance(x, pt.Tensor) and x.is_leaf and x.grad is not None:
                equal(x.grad, y.grad)
    return compiled


def flat(x):
    if isinstance(x, pt.Tensor):
        return [x]
    return [t for y in x for t in flat(y)] if isinstance(x, (list, tuple)) else []


# -- memory and effects -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("f", [
    lambda x: x.add_(1), lambda x: x, lambda x: (x, x), lambda x: x[1:], lambda x: x.reshape(2, 2).T,
    lambda x: x.mul_(2)[0], lambda x: x.unsqueeze(0).add_(1).squeeze(0), lambda x: (x.relu_(), x),
    lambda x: [x.clone().add_(1), x.view(-1)], lambda x: x.zero_() + 1, lambda x: x.copy_(x * 2), lambda x: x.detach(),
    lambda x: (x.detach().add_(1), x * 2), lambda x: x.data, lambda x: x.fill_(3).sum(),
    lambda x: (x[::2].add_(5), x.flatten()), lambda x: pt.add(x, 1, out=x), lambda x: x.contiguous(),
    lambda x: x.to(pt.float32), lambda x: x.to("cpu"), lambda x: x.to(x.device), lambda x: x.to(x), lambda x: x.cpu(),
    lambda x: x.to("cpu", pt.float32), lambda x: x.to(device=pt.device("cpu"), copy=True), lambda x: x.type_as(x),
    lambda x: x.new_zeros(2), lambda x: pt.zeros(2, device=x.device) + x[:2], lambda x: pt.empty_like(x).copy_(x),
    lambda x: (x.expand(3, 4), x.chunk(2)), lambda x: x.T, lambda x: (x + 0, None, 3, "a")])
def test_writes_and_views(f):
    both(f, lambda: (pt.tensor([1.0, -2.0, 3.0, 4.0]),))


def test_writes_by_index():
    def f(x, y):
        x[0] = y[1]
        x[1:3] += y[1:3]
        x[..., 3] = 7
        return x * 2
    both(f, lambda: (pt.ones(4), pt.arange(4.0)))


def test_a_written_input_with_history():
    def f(x, w):
        x.add_(w)
        return x * w
    both(f, lambda: (pt.ones(4), pt.arange(4.0).requires_grad_()))


@pytest.mark.parametrize("f", [
    lambda x, w: (x * w).tanh() @ w, lambda x, w: pt.where(x > 0, x * w, w), lambda x, w: (x * w).detach() * w,
    lambda x, w: x.mul(w).mul_(w), lambda x, w: [x * w, w], lambda x, w: (w * w).relu_().sum() * x])
def test_gradients(f):
    both(f, lambda: (pt.tensor([1.0, -2.0, 3.0]), pt.tensor([0.5, 2.0, -1.0], requires_grad=True)))
    both(f, lambda: (pt.tensor([1.0, -2.0, 3.0]), pt.tensor([0.5, 2.0, -1.0], requires_grad=True) * 1))


def test_no_grad_inside():
    def f(x, w):
        with pt.no_grad():
            k = (x * w).sum()
            with pt.enable_grad():
                h = x * w
        pt.set_grad_enabled(False)
        m = w * 2
        pt.set_grad_enabled(True)
        return h * k, m, k
    both(f, lambda: (pt.ones(3), pt.arange(3.0).requires_grad_()))


def test_a_mode_that_a_function_leaves_set():
    def f(x):
        pt.set_grad_enabled(False)
        return x * 2
    compiled = pt.compile(f, backend="eager")
    for _ in range(2):
        compiled(X)
        assert not pt.is_grad_enabled()
        pt.set_grad_enabled(True)


def test_gradients_inside():
    def f(x):
        with pt.enable_grad():
            y = x.detach() * 1
            return pt.func.grad(lambda t: (t * t * t).sum())(y), pt.func.vmap(lambda t: t.sum())(x.reshape(2, 2))
    both(f, lambda: (pt.arange(4.0),))


def test_random_numbers():
    def f(x):
        a = pt.rand(3)
        pt.randn(2)
        return nn.functional.dropout(x, 0.5) + a.sum(), pt.rand_like(x), pt.randint(0, 5, (2,)), x.clone().normal_()
    both(f, lambda: (pt.ones(4),))


def test_fresh_tensors_are_fresh():
    def f(x):
        a = pt.tensor([1.0, 2.0])
        a += 1
        return a, pt.zeros(2).add_(x.sum()), pt.arange(3), pt.full((2,), 3)
    compiled = both(f, lambda: (pt.ones(4),))
    first, second = compiled(X)[0], compiled(X)[0]
    assert first.data_ptr() != second.data_ptr()


def test_results_of_all_kinds():
    class Holder:
        def __init__(self, x):
            self.x, self.k = x, 3

    def f(x):
        shared = [x + 1]
        return {"a": shared, "b": (shared, 3), "c": Holder(x * 2), "d": None, "e": {1, 2}, "f": pt.float32}
    compiled = pt.compile(f, backend="eager")
    for _ in range(2):
        made = compiled(X)
        assert made["a"] is made["b"][0] and type(made["c"]) is Holder and made["c"].k == 3
        equal(made["c"].x, X * 2)
        made["a"].append(1)


# -- Python -----------------------------------------------------------------------------------------------------------

def decorated(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) + 1
    return inner


@decorated
def with_decorator(x, k=2):
    return x * k


def generator(x):
    for k in range(3):
        yield x * k


def recursive(x, n):
    return x if n == 0 else recursive(x * 2, n - 1) + n


@contextlib.contextmanager
def managed(x):
    yield x * 2


class Base:
    def __init__(self, k):
        self.__k = k

    def value(self, x):
        return x * self.__k

    def __add__(self, other):
        return type(self)(self.__k + (other.__k if isinstance(other, Base) else other))

    def __radd__(self, other):
        return self + other

    def __eq__(self, other):
        return isinstance(other, Base) and self.__k == other.__k

    def __hash__(self):
        return 1

    def __bool__(self):
        return self.__k > 1

    def __call__(self, x):
        return x + self.__k

    def __contains__(self, k):
        return k == self.__k

    def __iter__(self):
        yield self.__k
        yield 2

    def __lt__(self, other):
        return self.__k < other.__k


class Derived(Base):
    def __init__(self, k):
        super().__init__(k)
        self.more = k + 1

    def value(self, x):
        return super().value(x) + self.more


THING = Derived(3)
PARTIAL = functools.partial(operator.mul, 3)


def program_comprehensions(x):
    xs = [x * k for k in range(4) if k % 2]
    d = {k: v for k, v in enumerate(xs)}
    return xs, d, sum(v.sum() for v in xs), [a + b for a, b in zip(xs, xs[:1])], [[y for y in xs] for _ in range(2)]


def program_control(x):
    total, k = x, 0
    while True:
        k += 1
        if k == 2:
            continue
        total = total + k
        if k > 4:
            break
    else:
        total = total * 100
    for _ in range(2):
        pass
    else:
        total = total - 1
    try:
        {}["missing"]
    except KeyError as error:
        total = total + len(error.args)
    finally:
        total = total * 2
    return total if total.shape[0] else None


def program_closures(x):
    k = 2

    def add(y, j=k):
        nonlocal k
        k += 1
        return y + k + j
    scaled = [(lambda y, j=j, *, shift=j + 1: y * j + shift) for j in (2, 3)]
    return (add(x), add(x), (lambda y: y * k)(x), list(map(add, [x, x])), sorted([3, 1, 2], key=lambda v: -v),
            [f(x) for f in scaled], (lambda y, *, j: y * j)(x, j=3))


def program_operators(x):
    a, *b, c = [x, x + 1, x + 2, x + 3]
    (d, (e, f)) = (a, (b[0], c))
    d = -d + ~pt.tensor([True]) * (e // 2) % 3 ** 2
    first = x[0:2, None] if x.ndim else x
    return a, b, c, d, f, first, 1 < 2 < 3, 1 < 3 < 2, None or x, 0 and x, not x.shape, x.shape[0] in (1, 4), "a" "b"


def program_strings(x):
    name = f"{x.ndim}-{x.dtype}-{3:>4}" + "abc".upper() + ",".join(["a", "b"]) + str([1, "x"]) + repr((1,))
    return x + len(name), name.split("-"), f"{1} {2}", "%s" % 3     # noqa: UP031


def program_generators(x):
    total = x
    for y in generator(x):
        total = total + y
    return total, list(generator(x)), next(generator(x)), sum(y.sum() for y in generator(x)), max(1, 2), min([3, 4])


def program_classes(x):
    y = Derived(2)
    z = y + 1 + THING
    y.more = 9
    return (y.value(x), THING.value(x), (1 + y).value(x), y == THING, bool(y), y(x), 3 in THING, list(THING),
            THING < z, y != z, isinstance(y, Base), type(y).__name__, hasattr(y, "none"), y.more)


def program_library(x):
    return (math.sqrt(2) * x, math.prod([2, 3]), functools.reduce(operator.add, [1, 2, 3]), PARTIAL(x),
            list(itertools.chain([1], [2])), operator.getitem([x], 0), divmod(7, 2), abs(-x), round(2.6),
            dict(a=1, **{"b": 2}), [*range(3)], {**{"a": x}}, any([0, 1]), all([]), tuple(reversed([1, 2])))


def program_functions(x):
    return with_decorator(x), with_decorator(x, k=3), recursive(x, 3), (lambda *a, **k: a[0] * k["z"])(x, z=2)


def program_import(x):
    import math as m
    from math import floor

    import ptcore.nn.functional as F
    return F.relu(x) * m.pi + floor(2.5)


def program_walrus(x):
    if (n := x.shape[0]) > 2:
        x = x * n
    return x, [y for k in range(3) if (y := k * 2) > 1], n


def program_managed(x):
    with managed(x) as y, contextlib.nullcontext(3) as k:
        return y * k


def program_ranges(x):
    with pt.profiler.record_function("doubling"), pt.profiler.record_function("again") as again:
        x = x * 2
    return x + len(again.name)


def program_chained(x):
    x = y = x + 1
    x += 2
    holder = [x, y]
    holder[0] += 1
    holder[1], holder[0] = holder
    table = {}
    table["a"] = table["b"] = x
    del table["a"], holder[0]
    table.setdefault("c", []).append(y)
    return x, y, holder, table


PROGRAMS = [f for name, f in sorted(globals().items()) if name.startswith("program_")]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_python(f):
    counted(f, (X,), (X,), (X + 1,), captures=1)


# -- branches on data -------------------------------------------------------------------------------------------------

def branchy(x):
    x = x * 2
    if x.sum() > 0:
        x = x + 1
        if x.max() > 5:
            return x, "big"
        return x, "positive"
    return x - 1, "negative"


def test_branches_on_data():
    counted(branchy, (X,), (-X,), (X,), (X / 10,), (-X,), (X / 20,), captures=3)


def test_numbers_from_data():
    def f(x, n):
        k = int(n)
        return x[:k] * float(n) + n.item(), n.tolist(), bool(n)
    counted(f, *[(X, pt.tensor(k)) for k in (1, 2, 1, 3, 2)], captures=3)


def test_a_loop_on_data():
    def f(x):
        k = 0
        while x.abs().max() > 1:
            x, k = x / 2, k + 1
        return x, k
    counted(f, (X,), (X * 4,), (X,), (X / 8,), (X * 4,), captures=3)


def test_values_pass_through_branches():
    def f(x, w):
        a, b = x * w, x + w
        if a.sum() > 0:
            a = a * 2
        c = b.tanh()
        if b.sum() > 0:
            return a + b + c + w, x
        return a - c, x
    both(f, lambda: (pt.ones(3), pt.arange(3.0).requires_grad_()))
    both(f, lambda: (-pt.ones(3), pt.arange(3.0).requires_grad_()))
    w = pt.arange(3.0)
    counted(f, *[(pt.ones(3) * s, w) for s in (1, -1, 1, -0.5, -5)], captures=3)


def test_writes_before_a_branch():
    def f(x):
        x.add_(1)
        if x.sum() > 0:
            x.mul_(2)
        return x + pt.rand(1)
    both(f, lambda: (pt.ones(3),))
    both(f, lambda: (-3 * pt.ones(3),))


def test_sizes_that_depend_on_values():
    counted(lambda x: x[x > 0] * 2, (X,), (X,), (-X,), (X.abs(),), captures=4 - 1)


def test_too_many_ways_on():
    watched = Watched(lambda x: x * x.sum().item())

    def calls():
        for k in range(12):
            watched(X + k)
    with pytest.warns(UserWarning, match="captured 8 times") as found:
        calls()
    assert len(found) == 1 and watched.captures == 9


def test_an_effect_is_taken_back():
    """What follows a branch cannot be captured: the call begins again, eagerly, as if nothing had run."""
    def f(x):
        x.add_(1)
        y = pt.rand(1)
        if x.sum() > 0:
            LOG.append(1)
        return x + y
    LOG.clear()
    compiled = pt.compile(f, backend="eager")
    for sign in (-1, 1, -1, 1):
        a, b = sign * 3 * pt.ones(3), sign * 3 * pt.ones(3)
        pt.manual_seed(0)
        first = compiled(a)
        pt.manual_seed(0)
        equal(first, f(b))
        equal(a, b)
    assert LOG == [1] * 4


# -- sizes and numbers that vary --------------------------------------------------------------------------------------

def test_sizes_become_symbols():
    def f(x, w):
        return (x @ w).relu().reshape(x.shape[0], -1) * x.shape[0]
    w = pt.randn(4, 4)
    counted(f, *[(pt.randn(n, 4), w) for n in (3, 5, 7, 3, 20, 2)], captures=2)
    counted(f, *[(pt.randn(n, 4), w) for n in (3, 5, 3, 5)], captures=2, dynamic=False)
    counted(f, *[(pt.randn(n, 4), w) for n in (3, 5, 7, 9)], captures=1, dynamic=True)


def test_sizes_of_one():
    counted(lambda x: x * 2 + x.shape[0], *[(pt.randn(n, 4),) for n in (3, 5, 1, 7, 1)], captures=3)


def test_a_branch_on_a_size():
    def f(x):
        return x * 2 if x.shape[0] > 5 else x + 1
    counted(f, *[(pt.randn(n),) for n in (3, 4, 9, 5, 8, 2)], captures=3)


def test_sizes_that_belong_together():
    def f(x, y):
        return x + y
    counted(f, *[(pt.randn(n), pt.randn(m)) for n, m in ((3, 3), (4, 4), (5, 5), (4, 1), (6, 6))], captures=3)


def test_a_module_of_varying_batches():
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
    watched = Watched(model)
    for n in (2, 3, 5, 8, 2):
        watched(pt.randn(n, 4))
    assert watched.captures == 2


def test_numbers_become_inputs():
    counted(lambda x, k: x * k + k, *[(X, k) for k in (0.5, 0.25, 0.1, 3.5, -1.0)], captures=2)
    counted(lambda x, k: x * k, *[(X, k) for k in (2, 3, 4, 10)], captures=2)
    x = pt.arange(4)
    counted(lambda x, k: x * k, *[(x, k) for k in (0.5, 0.25, 0.1)], captures=2)


def test_a_branch_on_a_number():
    counted(lambda x, k: x * k if k > 1 else x, *[(X, k) for k in (0.5, 0.25, 0.1, 2.5, 3.5)], captures=3)


def test_attributes_that_vary():
    class Layer(nn.Module):
        rate = 0.5

        def forward(self, x):
            return x * self.rate
    layer = Layer()
    watched = Watched(layer)
    for k in range(6):
        layer.rate = 0.1 * (k + 1)
        watched(X)
    assert watched.captures == 2


# -- modules ----------------------------------------------------------------------------------------------------------

def test_a_compiled_module_is_the_module():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    compiled = pt.compile(model, backend="eager")
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [n for n, _ in compiled.named_parameters()] == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    compiled.eval()
    assert not model.training and not compiled.training
    equal(compiled(X), model(X))
    compiled.extra = 3
    assert model.extra == 3
    assert pt.compile(compiled) is compiled
    twin = copy.deepcopy(compiled)
    equal(twin(X), compiled(X))
    assert twin._orig_mod is not model
    equal(pickle.loads(pickle.dumps(twin))(X), twin(X))


def test_module_compile():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    expected = model(X)
    before = _compile.counts["captures"]
    assert model.compile(backend="eager") is None
    equal(model(X), expected)
    equal(model(X), expected)
    assert _compile.counts["captures"] == before + 1
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    equal(copy.deepcopy(model)(X), expected)
    equal(pickle.loads(pickle.dumps(model))(X), expected)


def test_training():
    pt.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
    twin = copy.deepcopy(model)
    x, y = pt.randn(16, 4), pt.randn(16, 1)
    losses = []
    for m, f in ((model, pt.compile(model, backend="eager")), (twin, twin)):
        pt.manual_seed(1)
        optimizer = pt.optim.Adam(m.parameters(), lr=0.1)
        schedule = pt.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for _ in range(10):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(f(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    assert losses[:10] == losses[10:]
    for a, b in zip(model.state_dict().values(), twin.state_dict().values()):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_training_step():
    model, x = nn.Linear(4, 1), pt.randn(8, 4)
    optimizer = pt.optim.SGD(model.parameters(), lr=0.1)
    twin = copy.deepcopy(model)
    other = pt.optim.SGD(twin.parameters(), lr=0.1)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()
    compiled = pt.compile(step, backend="eager")
    before = _compile.counts["captures"]
    for _ in range(4):
        equal(compiled(model, optimizer, x), step(twin, other, x))
    equal(model.weight, twin.weight)
    assert _compile.counts["captures"] == before + 1


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted(branchy, (X,), (-X,), captures=2)



class Named:
    def __init__(self, k):
        self.k = k

    def __str__(self):
        return f"s{self.k}"

    def __repr__(self):
        return f"r{self.k}"

    def __lt__(self, other):
        return self.k < other.k


def test_texts():
    thing = Named(3)

    def f(x):
        fresh = Named(4)
        return (x, f"{thing} {thing!r} {thing!s} {fresh!r:>5} {[1, 'a']!r} {1.5!r:>6} {'é'!a}", str(fresh), repr(thing),
                str(ValueError("e")), f"{x.dtype!r}", repr("a"), format(3, "04d"), f"{True!s:>6}")
    watched = Watched(f)
    watched(X)(X)
    thing.k = 5
    watched(X)
    assert (watched.captures, watched.eager) == (2, 0)


def test_order():
    things = [Named(2), Named(1)]

    def f(x):
        keys = sorted(things, key=lambda t: (t.k, "a"))
        largest, numbers = max(things, key=lambda t: t.k), [3, 1, 2]
        numbers.sort(key=lambda v: -v)
        return x * largest.k + keys[0].k, numbers, sorted("bca", reverse=True), min(3, 2), max([1, 5], default=0)
    watched = Watched(f)
    watched(X)(X)
    things[1].k = 9
    watched(X)
    assert (watched.captures, watched.eager) == (2, 0)
    watched = Watched(lambda x: x * sorted(things)[0].k)
    watched(X)
    things[0].k = 20
    watched(X)


def test_an_error_behind_a_branch():
    def f(x):
        x.add_(1)
        if x.sum() > 0:
            raise ValueError("positive")
        return x * 2
    compiled = pt.compile(f, backend="eager")
    for sign in (-1, 1, -1, 1, -1):
        a, b = pt.ones(2) * 3 * sign, pt.ones(2) * 3 * sign
        if sign > 0:
            with pytest.raises(ValueError, match="positive"):
                compiled(a)
            b.add_(1)
        else:
            equal(compiled(a), f(b))
        equal(a, b)
    assert not compiled._compiled.is_full
