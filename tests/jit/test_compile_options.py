"""Options of ``compile`` and what ``compiler`` offers: limits, backends, stances, what is left out or substituted."""
import copy
import functools
import itertools
import pickle

import pytest
import test_guards
from test_compile import LOG, branchy
from test_guards import Watched, X, equal

import ptcore as pt
from ptcore.jit import compiled as _compile

N = itertools.count()


def test_too_many_variants():
    class Settings:
        word = ""
    settings = Settings()
    watched = Watched(lambda x: x + len(settings.word))

    def calls():
        for k in range(12):
            settings.word = "a" * k
            watched(X)
    with pytest.warns(UserWarning, match=r"captured 8 times.*word") as found:
        calls()
    assert len(found) == 1 and watched.captures == 8 and found[0].filename in (__file__, test_guards.__file__)
    settings.word, eager = "aa", watched.eager
    watched(X)
    assert watched.eager == eager               # what was captured goes on being used


def test_fullgraph():
    with pytest.raises(RuntimeError, match=r"reads the value of a tensor.*test_compile.py:\d+"):
        pt.compile(branchy, fullgraph=True)(X)

    def f(x):
        print(x.shape)
        return x
    with pytest.raises(_compile.CaptureError, match=r"prints \(.*test_compile_options.py:\d+"):
        pt.compile(f, fullgraph=True)(X)
    compiled = pt.compile(lambda x: x * 2, fullgraph=True)
    equal(compiled(X), X * 2)


def test_errors_are_the_programs():
    def f(x, y):
        if x.shape[0] == 3:
            raise KeyError("three")
        return x @ y
    compiled = pt.compile(f, backend="eager")
    equal(compiled(X, X), X @ X)
    for _ in range(2):
        with pytest.raises(KeyError, match="three"):
            compiled(X[:3], X)
        with pytest.raises(RuntimeError):
            compiled(X, pt.ones(7))
    equal(compiled(X, X), X @ X)


def test_a_backend_of_ones_own():
    seen = []

    def backend(module, inputs, **options):
        seen.append((type(module), [tuple(x.shape) for x in inputs], options))
        return module.forward
    w = pt.ones(4)
    compiled = pt.compile(lambda x: x * w, backend=backend, options={"level": 3})
    equal(compiled(X), X)
    equal(compiled(X), X)
    assert seen == [(pt.fx.GraphModule, [(4,), (4,)], {"level": 3})]


def test_what_goes_wrong_with_symbols_is_captured_without():
    def f(x, n):
        return x[:n.bit_length()] * n.real + divmod(n, 2)[0]

    def g(x, n):
        table = {2: 1.0, 3: 2.0, 4: 3.0}
        return x * table[n] + [5, 6, 7, 8, 9][n]
    for h in (f, g):
        watched = Watched(h)
        for n in (2, 3, 4, 2, 3):
            watched(pt.ones(n + 1), n)
        assert watched.eager == 0


def test_branches_on_data_and_symbols():
    def f(x, k):
        x = x * k
        if x.sum() > 0:
            x = x.reshape(-1) * x.shape[0]
        return x.sum() * k
    for dynamic in (None, True, False):
        watched = Watched(f, dynamic=dynamic)
        for n, k in ((2, 0.5), (3, 0.25), (4, -1.0), (5, 1.5), (2, 0.5), (3, -2.0), (1, 1.0), (1, -1.0)):
            watched(pt.ones(n), k)
        assert watched.eager == 0


def test_what_a_backend_is_told():
    seen = []

    def backend(module, inputs):
        seen.append(module.meta)
        return module.forward

    def f(x, w):
        x.add_(1)
        return x * 2 if w.sum() > 0 else x
    pt.compile(f, backend=backend)(pt.ones(2), pt.ones(2))
    first, second = seen
    assert (first["inputs"], first["written"], first["asks"], first["grad"]) == (["x", "w"], [0], "truth", True)
    assert (second["inputs"], second["written"], second["impure"], second["asks"]) == (["x"], [], False, None)


def test_backends_by_name():
    pt.compiler.register_backend(lambda module, inputs: module.forward, name="mine")
    try:
        assert "mine" in pt.compiler.list_backends()
        equal(pt.compile(lambda x: x * 2, backend="mine")(X), X * 2)
        with pytest.raises(ValueError, match="already"):
            pt.compiler.register_backend(lambda module, inputs: module.forward, name="mine")
    finally:
        del _compile.backends["mine"]
    with pytest.raises(RuntimeError, match="no backend"):
        pt.compile(lambda x: x, backend="nothing")


def test_decorators_and_disable():
    @pt.compile(backend="eager")
    def f(x):
        "its text"
        return x * 2

    @pt.compile
    def g(x):
        return f(x) + 1
    equal(g(X), X * 2 + 1)
    assert f.__name__ == "f" and f.__doc__ == "its text"
    assert pt.compile(branchy, disable=True) is branchy
    for wrong in ({"mode": "fastest"}, {"mode": "default", "options": {}}):
        with pytest.raises(RuntimeError):
            pt.compile(branchy, **wrong)


@pt.compiler.disable
def left_out(x):
    LOG.append(pt.compiler.is_compiling())
    return x + 1


def test_disable():
    def f(x):
        return left_out(x * 2) + part(x)

    def part(x):
        return x.sin()
    LOG.clear()
    watched = Watched(f)
    watched(X)(X)
    assert LOG == [False] * 4 and watched.eager == 2
    (reason,) = pt.compiler.explain(f)(X).break_reasons
    assert "compiler.disable" in reason.reason


def test_disable_goes_down():
    inner = pt.compile(lambda x: x * 2, backend="eager")
    before = _compile.counts["captures"]
    equal(pt.compiler.disable(lambda x: inner(x) + 1)(X), X * 2 + 1)
    assert _compile.counts["captures"] == before
    equal(pt.compiler.disable(lambda x: inner(x) + 1, recursive=False)(X), X * 2 + 1)
    assert _compile.counts["captures"] == before + 1


def test_is_compiling():
    def f(x):
        return x * 2 if pt.compiler.is_compiling() else x
    equal(pt.compile(f, backend="eager")(X), X * 2)
    equal(f(X), X)


def test_stances():
    counts = _compile.counts
    compiled = pt.compile(lambda x: x * 2, backend="eager")
    with pt.compiler.set_stance("force_eager"):
        before = counts["captures"]
        compiled(X)
        assert counts["captures"] == before
    compiled(X)
    with pt.compiler.set_stance("fail_on_recompile"):
        compiled(X)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            compiled(X.double())
    with pt.compiler.set_stance("eager_on_recompile"):
        before = counts["captures"]
        equal(compiled(X.double()), X.double() * 2)
        assert counts["captures"] == before
    with pytest.raises(RuntimeError, match="stance"):
        pt.compiler.set_stance("other")


def test_reset():
    compiled = pt.compile(lambda x: x * 2, backend="eager")
    compiled(X)
    before = _compile.counts["captures"]
    pt.compiler.reset()
    compiled(X)
    assert _compile.counts["captures"] == before + 1


def test_constants():
    @pt.compiler.assume_constant_result
    def number():
        return next(N)
    compiled = pt.compile(lambda x: x + number(), backend="eager")
    first = compiled(X)
    equal(compiled(X), first)


def test_allow_in_graph():
    LOG.clear()

    @pt.compiler.allow_in_graph
    def opaque(x):
        LOG.append(1)
        return x * 3
    compiled = pt.compile(lambda x: opaque(x) + 1, backend="eager", fullgraph=True)
    equal(compiled(X), X * 3 + 1)
    compiled(X)
    assert LOG == [1]


def test_limits_and_names():
    compiled = pt.compile(lambda x, k: x + len(k), backend="eager", recompile_limit=2, name="lengths")

    def calls():
        for k in ("a", "bb", "ccc", "dddd"):
            equal(compiled(X, k), X + len(k))
    with pytest.warns(UserWarning, match="lengths was captured 2 times"):
        calls()


def test_a_default_backend():
    seen = []

    def backend(module, inputs):
        seen.append(module)
        return module.forward
    pt.compiler.set_default_backend(backend)
    try:
        assert pt.compiler.get_default_backend() is backend
        equal(pt.compile(lambda x: x * 2)(X), X * 2)
        assert len(seen) == 1
    finally:
        pt.compiler.set_default_backend(None)
    assert pt.compiler.get_default_backend() == "cpu"
    with pytest.raises(RuntimeError, match="no backend"):
        pt.compiler.set_default_backend("nothing")


def test_substitutes(monkeypatch):
    import bisect
    monkeypatch.setattr("ptcore.jit.capture.calls.SUBSTITUTES", {})

    @pt.compiler.substitute_in_graph(bisect.bisect_left)
    def left(a, x):
        return len([v for v in a if v < x])
    compiled = pt.compile(lambda x: x * bisect.bisect_left([1, 2, 3], 2), backend="eager", fullgraph=True)
    equal(compiled(X), X)


def test_modes_after_an_error():
    def f(x, index):
        with pt.no_grad():
            y = x[index]
        return y * x
    compiled, x = pt.compile(f, backend="eager"), X.clone().requires_grad_()
    for index in (2, 1, 9, 1, 9):
        places = pt.tensor([index])
        if index == 9:
            with pytest.raises(IndexError):
                compiled(x, places)
        else:
            equal(compiled(x, places), f(x, places))
        assert pt.is_grad_enabled()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_errors_of_a_backend(fullgraph):
    """They are not taken for those of the tracer, and what the call has done is taken back."""
    def backend(module, inputs):
        if len(made) == 1:
            raise ValueError("no second graph")
        made.append(module)
        return module.forward

    def f(x):
        try:
            x.add_(1)
            if not fullgraph and x.sum() > 0:
                return x * 2
        except Exception:                   # the program does not handle them either
            return None
        return x

    made = [None] if fullgraph else []
    x = pt.ones(2)
    with pytest.raises(RuntimeError, match=r"the backend of .*f raises ValueError: no second graph") as info:
        pt.compile(f, backend=backend, fullgraph=fullgraph)(x)
    assert isinstance(info.value.__cause__, ValueError) and x.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="the backend must return a callable, got int"):
        pt.compile(lambda x: x + 1, backend=lambda module, inputs: 5)(x)


def test_a_backend_that_takes_no_symbols():
    def backend(module, inputs):
        if any(not isinstance(x, pt.Tensor) for x in inputs):
            raise TypeError("only tensors")
        return module.forward
    compiled = pt.compile(lambda x, n: x * n, backend=backend)
    for n in (2, 3, 4):
        equal(compiled(X, n), X * n)


def test_options_of_the_own_backends_are_left_unread():
    for backend in ("cpu", "eager"):
        watched = pt.compile(lambda x: x * 2 + 1, backend=backend, options={"max_autotune": True}, fullgraph=True)
        equal(watched(X), X * 2 + 1)


@pytest.mark.parametrize("options", [{"fullgraph": "no"}, {"dynamic": "yes"}, {"disable": "no"}, {"backend": 5},
                                     {"recompile_limit": 1.5}, {"recompile_limit": 0}, {"options": [1]}], ids=str)
def test_options_of_wrong_types(options):
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        pt.compile(lambda x: x, **options)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        pt.compile(**options)(lambda x: x)


def test_pickles_keep_the_settings():
    module = pt.compile(pt.nn.Linear(2, 2), name="line", recompile_limit=3, dynamic=False)
    for other in (copy.copy(module), copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        found = other._compiled.settings
        assert (found.name, found.limit, found.dynamic) == ("line", 3, False)


def test_marks_on_what_takes_none():
    for mark in (pt.compiler.allow_in_graph, pt.compiler.assume_constant_result):
        with pytest.raises(TypeError, match="expected a function written in Python"):
            mark(len)
    for backend, name in (("cpu", "other"), (functools.partial(len), None), (len, 5)):
        with pytest.raises(TypeError, match="register_backend: "):
            pt.compiler.register_backend(backend, name)
