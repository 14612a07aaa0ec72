"""Functions that a compiled function is given or reads: known by their code and by what it reads of their cells, their
defaults and their globals, so that one that is made anew is captured once."""
import functools
import itertools
import operator
import types
import warnings

import numpy as np
import pytest
from test_guards import Watched, X, equal

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile
from ptcore.jit.capture import guards
from ptcore.nn.attention._block_mask import ordered
from ptcore.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention, noop_mask
from ptcore.utils.checkpoint import checkpoint

HERE = globals()


@pytest.fixture(autouse=True, params=[0, 2, 4], ids=["compiled", "soon", "asked"])
def restore(request, monkeypatch):
    monkeypatch.setattr(guards, "SLOW_CHECKS", request.param)
    kept = dict(HERE)
    yield
    HERE.update(kept)


def apply(x, f):
    return f(x)


def calls(watched, make, *values, times=1):
    """Calls with a function that is made anew for each."""
    for v in values:
        for _ in range(times):
            watched(X, make(v))
    return watched


def times(k):
    return lambda t: t * k


def plus(k):
    def add(t):
        return t + k
    return add


def shared_lambda(t):
    return t * 2 - 1


# -- one code, made anew ----------------------------------------------------------------------------------------------

def test_a_lambda_made_anew_is_captured_once():
    watched = Watched(apply, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            watched(X, lambda t: t * 2)
    assert (watched.captures, watched.eager) == (1, 0)


def test_other_code_is_captured_anew():
    watched = Watched(apply)
    for _ in range(7):
        watched(X, lambda t: t * 2)(X, lambda t: t + 2)(X, shared_lambda)
    assert (watched.captures, watched.eager) == (3, 0)


def test_code_that_is_equal_is_other_code():
    first, second = [eval("lambda t: t.relu()") for _ in range(2)]
    assert first.__code__ == second.__code__ and first.__code__ is not second.__code__
    compiled = pt.compile(apply, backend="eager")
    for f in (first, second, first):
        equal(compiled(X, f), X.relu())     # without source: the call runs eagerly


def test_what_is_read_late_is_no_constant():
    """Through globals, cells of the compiled function, attributes and containers."""
    holder, table, local = types.SimpleNamespace(), {}, None

    def f(x):
        return LATE(local(holder.g(table["h"](x))))
    watched = Watched(f)
    for _ in range(9):
        HERE["LATE"], local, holder.g, table["h"] = [(lambda t: t * 2) if k < 2 else (lambda t: t + 1)
                                                     for k in range(4)]
        watched(X)
    assert (watched.captures, watched.eager) == (1, 0)
    local = table["h"]
    watched(X)(X)
    assert watched.captures == 2


def test_a_function_that_stays_is_replaced_late():
    """What was one object in all calls is asked for as that object; the guards say what must hold."""
    def f(x):
        return LATE(x)
    watched = Watched(f)
    HERE["LATE"] = times(2.0)
    for _ in range(8):
        watched(X)
    for k, captures in ((2.0, 1), (2.0, 1), (3.0, 2), (3.0, 2), (2.0, 2)):
        HERE["LATE"] = times(k)
        watched(X)(X)
        assert watched.captures == captures
    HERE["LATE"] = plus(2.0)
    watched(X)(X)
    assert watched.captures == 3


LATE = None


# -- cells ------------------------------------------------------------------------------------------------------------

def test_numbers_in_cells():
    assert calls(Watched(apply), times, 2.0, times=9).captures == 1
    assert calls(Watched(apply), times, 2, 3, 4, 5, 6, 2, 7, 8, 9, times=2).captures == 2
    assert calls(Watched(apply), times, 2.5, 3.5, 4.5, 5.5, 2.5, 7.5, 8.5, 9.5, 0.5).captures == 2
    assert calls(Watched(apply, dynamic=False), times, 2, 3, 2, 3, 4).captures == 3
    assert calls(Watched(apply), times, 2, 2.0, True, 2, 2.0, True).captures == 3


def test_tensors_in_cells():
    watched = calls(Watched(apply), times, *[pt.full((4,), k) for k in (2.0, 3.0, 4.0)], times=3)
    assert watched.captures == 1
    calls(watched, times, pt.full((4,), 2.0, dtype=pt.float64), pt.full((4,), 2.0, requires_grad=True))
    assert watched.captures == 3


def test_a_tensor_in_a_cell_gets_its_gradient():
    compiled = pt.compile(apply, backend="eager")
    for _ in range(3):
        w = pt.ones(4, requires_grad=True)
        compiled(X, lambda t, w=w: (t * w).sum()).backward()
        np.testing.assert_array_equal(w.grad.numpy(), X.numpy())


def test_containers_and_modules_in_cells():
    def listed(k):
        parts = [k, 2.0]
        return lambda t: t * parts[0] + len(parts)
    assert calls(Watched(apply), listed, 2.0, 2.0, 3.0, times=3).captures == 2
    layers = [nn.Linear(4, 4) for _ in range(3)]

    def layered(m):
        return lambda t: m(t)
    watched = calls(Watched(apply), layered, *layers, times=2)
    assert watched.captures == 1
    calls(watched, layered, nn.Linear(4, 4, bias=False), nn.Identity(), nn.Linear(4, 4, bias=False))
    assert watched.captures == 3


def test_functions_in_cells():
    def around(inner):
        return lambda t: inner(t) * inner(t)
    watched = Watched(apply)
    for _ in range(4):
        watched(X, around(times(2.0)))(X, around(times(3.0)))(X, around(plus(3.0)))(X, around(pt.relu))
    assert (watched.captures, watched.eager) == (4, 0)


def test_a_function_that_holds_itself():
    def power(k):
        def go(t, n):
            return t if n == 0 else go(t * k, n - 1)
        return go

    def mutual(k):
        def even(t, n):
            return t if n == 0 else odd(t + k, n - 1)

        def odd(t, n):
            return t if n == 0 else even(t * k, n - 1)
        return even
    for make in (power, mutual):
        watched = Watched(lambda x, f: f(x, 3))
        calls(watched, make, 2.0, times=6)
        assert watched.captures == 1
        calls(watched, make, 3.0, 4.0, 5.0, times=3)
        assert (watched.captures, watched.eager) == (2, 0)


def test_a_function_that_holds_another_of_its_code():
    """Not itself, as the first time."""
    def go(t, n):
        return t if n == 0 else again(t * 2, n - 1)
    again = go
    watched = Watched(lambda x, f: f(x, 2))
    watched(X, go)(X, go)
    again = types.FunctionType(go.__code__, HERE, "go", None, (types.CellType(lambda t, n: -t),))
    watched(X, go)(X, go)
    again = go
    watched(X, go)
    assert watched.captures == 2


def test_cells_that_are_written():
    def counter():
        k = 2.0

        def read(t):
            return t * k

        def write(new):
            nonlocal k
            k = new
        return read, write
    watched = Watched(apply)
    for new in (2.0, 3.0, 2.0, 4.0):
        read, write = counter()
        watched(X, read)
        write(new)
        watched(X, read)(X, read)
    assert (watched.captures, watched.eager) == (2, 0)


def test_a_function_that_writes_its_cell():
    def counter():
        n = 0

        def f(t):
            nonlocal n
            n += 1
            return t + n
        return f
    compiled = pt.compile(apply, backend="eager")
    before = _compile.counts["captures"]
    for _ in range(12):
        f = counter()
        equal([compiled(X, f) for _ in range(3)], [X + 1, X + 2, X + 3])
    assert _compile.counts["captures"] - before == 2            # of what calls it, and of itself
    with pytest.raises(_compile.CaptureError, match="writes the name n"):
        pt.compile(apply, backend="eager", fullgraph=True)(X, counter())


def test_an_empty_cell():
    def f(x, g):
        try:
            return g(x)
        except NameError:
            return x - 1

    def make(filled):
        if filled:
            k = 2.0
        return lambda t: t * k
    watched = Watched(f)
    for filled in (False, True, False, True, True, False):
        watched(X, make(filled))
    assert watched.captures == 2


def test_cells_that_two_functions_share():
    def pair(k):
        return (lambda t: t * k), (lambda t: t + k)
    watched = Watched(lambda x, fs: fs[0](x) + fs[1](x))
    calls(watched, pair, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert watched.captures == 2            # all numbers that differ are learnt to vary
    watched(X, (pair(2.0)[0], pair(3.0)[1]))


# -- defaults and globals ---------------------------------------------------------------------------------------------

def test_defaults():
    def make(k):
        def f(t, n=k, *, w=k):
            return t * n + w
        return f
    watched = calls(Watched(apply), make, 2.0, times=6)
    assert watched.captures == 1
    f = make(2.0)
    for _ in range(6):
        watched(X, f)
    f.__defaults__ = (3.0,)
    watched(X, f)(X, f)
    f.__kwdefaults__ = {"w": 7.0}
    watched(X, f)(X, f)
    f.__kwdefaults__["w"] = 8.0
    watched(X, f)(X, f)
    f.__defaults__ = (2.0,)
    watched(X, f)(X, f)
    f.__kwdefaults__["w"] = 2.0
    seen = watched.captures
    watched(X, f)(X, make(2.0))
    assert watched.captures == seen
    f.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required"):
        watched.compiled(X, f)


def test_more_and_fewer_defaults():
    def make():
        def f(t, a=1.0, b=2.0):
            return t * a + b
        return f
    watched = Watched(lambda x, f: f(x, 5.0))
    watched(X, make())(X, make())
    f = make()
    f.__defaults__ = (2.0,)
    watched(X, f)(X, f)
    f.__defaults__ = (7.0,)
    watched(X, f)
    f.__defaults__ = (9.0, 2.0)
    watched(X, f)


def test_defaults_that_are_objects():
    given = [2.0]

    def make(k=given):
        def f(t, parts=k, g=None):
            return g(t) * parts[0]
        f.__defaults__ = (k, times(3.0))
        return f
    watched = Watched(apply)
    for _ in range(6):
        watched(X, make())
    assert watched.captures == 1
    f = make()
    watched(X, f)(X, f)(X, f)(X, f)(X, f)
    given[0] = 3.0
    watched(X, f)(X, make())
    assert watched.captures == 2


def test_globals_are_those_of_the_function():
    spaces = [{"k": 2.0}, {"k": 3.0}, {"k": 2.0, "abs": lambda v: v * 100}]

    def f(t):
        return t * k + abs(k)  # noqa: F821
    watched = Watched(apply)
    for _ in range(6):
        for space in spaces:
            watched(X, types.FunctionType(f.__code__, space, "f"))
    assert (watched.captures, watched.eager) == (3, 0)
    spaces[0]["k"] = 5.0
    watched(X, types.FunctionType(f.__code__, spaces[0], "f"))


def test_the_code_of_a_function_is_replaced():
    f = times(2.0)
    watched = Watched(apply)
    for _ in range(6):
        watched(X, f)
    f.__code__ = (lambda k: lambda t: t + k)(2.0).__code__
    watched(X, f)(X, f)
    assert watched.captures == 2


# -- methods and partial functions ------------------------------------------------------------------------------------

class Scaled:
    def __init__(self, k):
        self.k = k

    def apply(self, x):
        return x * self.k

    def other(self, x):
        return x - self.k

    @classmethod
    def of_class(cls, x):
        return x + 4

    def __call__(self, x):
        return x + self.k


def test_methods():
    watched = calls(Watched(apply), lambda k: Scaled(k).apply, 2.0, times=9)
    assert watched.captures == 1
    calls(watched, lambda k: Scaled(k).apply, 3.0, 4.0)
    assert watched.captures == 2
    calls(watched, lambda k: Scaled(k).other, 2.0, 2.0)
    assert watched.captures == 3
    calls(watched, lambda k: types.MethodType(lambda self, t: t / self.k, Scaled(k)), 2.0, 2.0, 2.0)
    assert watched.captures == 4
    calls(watched, Scaled, 2.0, 2.0)
    calls(watched, lambda k: Scaled.of_class, 2.0, 2.0)
    assert (watched.captures, watched.eager) == (6, 0)


def test_a_method_of_a_class_is_replaced():
    watched = calls(Watched(apply), lambda k: Scaled(k).apply, 2.0, times=6)
    before = Scaled.apply
    try:
        Scaled.apply = lambda self, x: x * 100
        calls(watched, lambda k: Scaled(k).apply, 2.0, times=2)
    finally:
        Scaled.apply = before
    calls(watched, lambda k: Scaled(k).apply, 2.0, times=2)
    assert watched.captures == 2


def test_partial_functions():
    def make(k):
        return functools.partial(lambda a, t, c: a * t + c, k, c=k)
    watched = calls(Watched(apply), make, 2.0, times=9)
    assert watched.captures == 1
    calls(watched, make, 3.0, 4.0, 5.0, 2.0)
    assert (watched.captures, watched.eager) == (2, 0)
    calls(Watched(apply), lambda k: functools.partial(times(k)), 2.0, 3.0, 2.0, 4.0)


def test_partial_functions_of_its_own():
    def f(x, g, p):
        q, r = functools.partial(g, x), functools.partial(p, c=x)
        return q(), q.func is g, q.args[0] is x, r(x), functools.reduce(functools.partial(lambda k, a, b: a * k + b, 2),
                                                                       [x, x, x])
    watched = Watched(f)
    for k in (2.0, 2.0, 3.0, 4.0, 5.0, 2.0):
        watched(X, times(k), functools.partial(lambda a, t, c=None: a * t + c, k))
    assert (watched.captures, watched.eager) == (2, 0)


@pytest.mark.parametrize("get", [
    operator.itemgetter(1), operator.itemgetter(0, 1), operator.attrgetter("shape"), operator.methodcaller("sum"),
    operator.attrgetter("T.shape", "dtype"), operator.methodcaller("sum", 0), operator.methodcaller("sum", dim=0),
    operator.methodcaller("sum", 0, keepdim=True)])
def test_getters(get):
    x = X.reshape(2, 2)
    watched = Watched(apply)
    for _ in range(6):
        watched(x, get)
    assert (watched.captures, watched.eager) == (1, 0)
    watched(x, operator.itemgetter(0))(x, get)
    watched = Watched(lambda x, g: (g(x), sorted([(3, 1), (1, 2)], key=operator.itemgetter(1))))
    watched(x, get)(x, get)
    assert (watched.captures, watched.eager) == (1, 0)


def test_decorated_functions():
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return f(*args, **kwargs) * 2
        return wrapper
    watched = Watched(apply)
    for _ in range(5):
        watched(X, twice(times(2.0)))(X, twice(plus(2.0)))
    assert (watched.captures, watched.eager) == (2, 0)


# -- which one it is --------------------------------------------------------------------------------------------------

FS = [times(float(k)) for k in range(4)]
NAMES, PAIR = {FS[0]: 10.0, FS[1]: 20.0}, FS[:2]


def looked_up(x, f):
    try:
        return x * NAMES[f]
    except KeyError:
        return -x


@pytest.mark.parametrize("f", [
    lambda x, f: x if f is FS[0] else -x, lambda x, f: x if f == FS[0] else -x, lambda x, f: x * FS.index(f),
    lambda x, f: x * NAMES.get(f, 7), lambda x, f: x * NAMES[f] if f in NAMES else x, lambda x, f: x * (f in FS[:2]),
    lambda x, f: x * sum([v for k, v in NAMES.items() if k is f]), lambda x, f: x * FS.count(f),
    lambda x, f: x * sum([v for k, v in NAMES.items() if k == f]), lambda x, f: x * len({f, FS[0]}),
    lambda x, f: x * {(g, 1): v for g, v in NAMES.items()}.get((f, 1), 7), lambda x, f: (x, f), lambda x, f: {f: x},
    lambda x, f: [{"f": f, f: f(x)}], lambda x, f: (x, str(f), f"{f}", repr([f, {1: f}])), lambda x, f: (x, id(f)),
    lambda x, f: x * len([g for g in NAMES if g is f]), lambda x, f: x * [*FS, FS[0]].index(f),
    lambda x, f: x * {checkpoint: 3, FS[1]: 5}.get(f, 1), lambda x, f: x if f is checkpoint else -x,
    lambda x, f: x * PAIR.count(f), lambda x, f: x * [*PAIR].count(f), looked_up,
    lambda x, f: (x, frozenset([f])), lambda x, f: (x, f.__name__, f.__qualname__, f.__defaults__),
    lambda x, f: (x, callable(f), isinstance(f, types.FunctionType), bool(f), f is None, f == "relu")])
def test_which_function_it_is(f):
    watched = Watched(f, recompile_limit=20)
    for g in (*FS, *FS, *FS):
        watched(X, g)
    if "checkpoint" in f.__code__.co_names:
        watched(X, checkpoint)(X, FS[1])(X, checkpoint)
    assert watched.eager == 0
    seen = watched.captures
    for g in FS:
        watched(X, g)
    assert watched.captures == seen
    watched = Watched(f, recompile_limit=20)
    for g in (*FS[::-1], *FS):
        watched(X, g)


def test_one_function_twice():
    watched = Watched(lambda x, f, g: f(x) if f is g else f(x) - g(x))
    f, g = times(2.0), times(2.0)
    watched(X, f, f)(X, f, g)(X, g, g)(X, g, f)(X, f, f)
    assert watched.captures == 2
    watched = Watched(lambda x, f, g: f(x) - g(x))
    watched(X, times(3.0), times(2.0))(X, times(3.0), times(2.0))(X, times(4.0), times(3.0))
    f = times(3.0)
    watched(X, f, f)(X, times(4.0), times(3.0))


def test_methods_are_compared():
    objects = [Scaled(2.0), Scaled(2.0)]
    watched = Watched(lambda x, m: x if m == objects[0].apply else x * 2 if m != objects[1].other else -x)
    for m in (objects[0].apply, objects[1].apply, objects[0].other, objects[1].other) * 2:
        watched(X, m)
    assert watched.eager == 0
    for f in (lambda x, m: x if m == objects[0].apply else -x, lambda x, m: x if m != objects[0].apply else -x):
        watched = Watched(f)
        for m in (objects[1].apply, objects[0].apply, objects[0].other, objects[0].apply):
            watched(X, m)
        assert watched.eager == 0


def test_objects_as_keys():
    """They are told apart as functions are."""
    objects = [Scaled(float(k)) for k in range(3)]
    table = {objects[0]: 1.0, objects[1]: 2.0}
    for f in (lambda x, o: x * table.get(o, 5.0), lambda x, o: {o: x}, lambda x, o: x * objects.index(o),
              lambda x, o: x * (o in table)):
        watched = Watched(f)
        for o in objects * 3:
            watched(X, o)
        watched = Watched(f)
        for o in objects[::-1]:
            watched(X, o)
    watched = Watched(lambda x, y: {y: x * 2, "k": y})
    compiled = watched.compiled
    for _ in range(3):
        y = X + 1
        found = compiled(X, y)
        assert list(found) == [y, "k"] and found["k"] is y


def test_a_function_as_an_argument_is_the_compiled_one():
    def f(x, g):
        return x + 1 if g is None else g(x, None) * 2
    watched = Watched(f)
    watched(X, None)(X, f)(X, lambda x, g: x * 3)(X, f)
    assert watched.captures == 3


def test_a_callable_object_that_is_the_compiled_one():
    class Callable:
        def __init__(self, k):
            self.k = k

        def __call__(self, x, other):
            return x * other.k
    first, second = Callable(2.0), Callable(3.0)
    watched = Watched(first)
    watched(X, first)(X, second)(X, first)(X, second)


# -- what functions are handed to -------------------------------------------------------------------------------------

def test_functions_with_a_meaning_of_their_own():
    """Of the package: they are known as the objects that they are."""
    def mine(f, *args, use_reentrant=None):
        return f(*args) + 100
    watched = Watched(lambda x, way: way(times(2.0), x, use_reentrant=False))
    watched(X, checkpoint)(X, mine)(X, checkpoint)(X, mine)
    assert watched.captures == 2


def test_compiled_and_disabled_functions_as_arguments():
    watched = Watched(apply)
    inner, other = pt.compile(times(2.0), backend="eager"), pt.compile(plus(2.0), backend="eager")
    inner(X), other(X)
    watched(X, inner)(X, other)(X, inner)(X, other)
    assert watched.captures == 2
    watched(X, pt.compiler.disable(times(5.0)))(X, pt.compiler.disable(times(6.0)))


def test_functions_handed_to_transformations():
    watched = Watched(lambda x, f: pt.vmap(f)(x) + pt.func.grad(lambda t: f(t).sum())(x))
    calls(watched, times, 2.0, times=9)
    assert (watched.captures, watched.eager) == (1, 0)
    calls(watched, times, 3.0, 4.0, 2.0)
    assert watched.captures == 2
    watched = Watched(lambda x, f: sum(map(f, [x, x + 1])) + max([x.shape[0], 2], key=f))
    calls(watched, times, 2, 2, 2)
    assert (watched.captures, watched.eager) == (1, 0)


def test_a_function_of_the_package_is_handed_on():
    watched = Watched(lambda x, f: pt.vmap(f, in_dims=(0, None, None, None))(x, x, x, x))
    for f in (noop_mask, lambda b, h, i, j: b > 0, noop_mask):
        watched(X, f)(X, f)
    assert (watched.captures, watched.eager) == (2, 0)
    watched = Watched(lambda x, f: list(itertools.starmap(f, [(x,)])))
    for f in (ordered, lambda t: (t, t), ordered):
        watched(X, f)(X, f)
    assert (watched.captures, watched.eager) == (2, 0)


def attend(q, k, v, score_mod=None, block_mask=None):
    return flex_attention(q, k, v, score_mod, block_mask)


def test_flex_attention():
    q, k, v = pt.randn(3, 1, 2, 8, 4)
    watched = Watched(attend, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            watched(q, k, v, lambda s, b, h, i, j: s * 2)
        assert watched.captures == 1
        for slopes in (pt.tensor([0.5, 0.25]), pt.tensor([2.0, 3.0])):
            for _ in range(4):
                watched(q, k, v, lambda s, b, h, i, j, slopes=slopes: s - slopes[h] * (i - j))
        assert watched.captures == 2


def test_masks_of_flex_attention():
    q, k, v = pt.randn(3, 1, 2, 8, 4)

    def near(n):
        return and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i - j < n)
    watched = Watched(attend)
    for n in (2, 2, 2, 2, 2, 2, 3, 4, 5, 6, 2):
        watched(q, k, v, None, create_block_mask(near(n), None, None, 8, 8, device="cpu"))
    assert (watched.captures, watched.eager) == (2, 0)


# -- segments, limits and texts ---------------------------------------------------------------------------------------

def test_behind_a_read_of_a_value():
    def f(x, g):
        y = g(x)
        if y.sum() > 0:
            return g(y) + 1
        return y - 1
    watched = Watched(f)
    for k in (2.0, 2.0, -2.0, 2.0, -2.0, 2.0):
        calls(watched, times, k)
        calls(watched, plus, k)
    assert watched.eager == 0
    seen = watched.captures
    for k in (2.0, -2.0) * 4:
        calls(watched, times, k)
        calls(watched, plus, k)
    assert watched.captures == seen


def test_a_cell_that_is_read_behind_a_read_of_a_value():
    def make(k, n):
        def g(t):
            if (t * k).sum() > 0:
                return t * n
            return t - n
        return g
    watched = Watched(apply)
    for k, n in ((1.0, 2.0), (1.0, 2.0), (-1.0, 2.0), (-1.0, 5.0), (1.0, 5.0), (1.0, 2.0), (1.0, 6.0), (-1.0, 6.0)):
        watched(X, make(k, n))
    assert watched.eager == 0


def test_the_limit():
    watched = Watched(apply, recompile_limit=3)
    functions = (lambda t: t * 2, lambda t: t * 3, lambda t: t * 4, lambda t: t * 5, lambda t: t * 6) * 3
    with pytest.warns(UserWarning, match="f.__code__ is that of .*<lambda>, line"):
        calls(watched, lambda g: g, *functions)
    (variants,) = watched.compiled._compiled.forms.values()
    assert len(variants) == 3 and watched.eager == 6    # which the first three functions go on to be answered by


def test_stances():
    compiled = pt.compile(apply, backend="eager")
    compiled(X, times(2.0))
    with pt.compiler.set_stance("fail_on_recompile"):
        for _ in range(7):
            equal(compiled(X, times(2.0)), X * 2)
        with pytest.raises(_compile.CaptureError, match="does not hold"):
            compiled(X, plus(2.0))


def test_explain_names_what_is_guarded():
    found = [repr(g) for g in pt.compiler.explain(apply)(X, times(2.5)).out_guards]
    code = times.__code__.co_consts[-1] if isinstance(times.__code__.co_consts[-1], types.CodeType) else next(
        c for c in times.__code__.co_consts if isinstance(c, types.CodeType))
    assert f"f.__code__ is that of times.<locals>.<lambda>, line {code.co_firstlineno}" in found
    assert "f.__closure__.k == 2.5" in found and "type(f) is function" in found
    assert not any("f is" in text or "0x" in text for text in found)


def test_a_function_that_stays_is_asked_for_as_itself():
    """Which is cheap; one that does not is asked for its code."""
    first, second = times(2.0), times(2.0)
    for functions, stays in (([first] * 9, True), ([first, second] * 5, False), ([first] * 9 + [second], False)):
        compiled = pt.compile(apply, backend="eager")
        for f in functions:
            compiled(X, f)
        ((segment,),) = compiled._compiled.forms.values()
        assert [f for s, f in segment.program.fixed.items() if s.text == "f"] == ([first] if stays else [])


def test_functions_that_an_eager_one_calls():
    """Those with cells, and those that are made anew: they are compiled, and captured once."""
    def decorated(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args) * 2
        return wrapper
    double, k = decorated(lambda t: t.relu() + 1), 3.0

    def program(x):
        print(end="")
        return double(x) + (lambda t: t * k)(x) + (lambda t: t - 1)(x)
    found = pt.compiler.explain(program)(X)
    assert found.graph_count == 3 and found.op_count == 3 + 1 + 1
    watched = Watched(program)
    for _ in range(6):
        watched(X)
    assert watched.captures == 1 + 3 + 1    # one without cells is taken for one that stays at first
    k = 4.0
    watched(X)(X)
    assert watched.captures == 1 + 3 + 1 + 1


def test_decorated_functions_that_an_eager_one_calls():
    """They have one code, and no limit in common."""
    def decorated(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)
        return wrapper
    made = [decorated(eval(f"lambda t: t + {k}")) for k in range(12)]
    for k, f in enumerate(made):
        f.__qualname__ = f"made_{k}"

    def program(x):
        print(end="")
        return [f(x) for f in made]
    compiled = pt.compile(program, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            equal(compiled(X), [X + k for k in range(12)])


def test_functions_are_let_go():
    """A function that is made anew is not kept, nor is what it holds."""
    import gc
    import weakref
    for program in (apply, lambda x, f: pt.vmap(f)(x), lambda x, f: functools.reduce(lambda a, b: f(a) + b, [x, x]),
                    lambda x, f: (f(x), f), lambda x, f: functools.partial(f)(x), lambda x, f: x * len({f})):
        compiled, refs = pt.compile(program, backend="eager"), []
        for _ in range(8):
            f = times(pt.ones(4))
            refs.append(weakref.ref(f))
            found = compiled(X, f)
        del f, found
        gc.collect()
        assert [r() for r in refs] == [None] * 8
