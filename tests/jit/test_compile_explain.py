"""``compiler.explain`` says why a program is not compiled, or not as one graph; the source of a function is proved."""
import contextlib
import functools
import gc
import linecache
import math
import random
import re
import time
import weakref
from pathlib import Path

import pytest
from test_guards import X, equal

import ptcore as pt
from ptcore import nn
from ptcore.jit._source import NoSource, find

COUNT, SEEN = 0, []


class Square(pt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        self.count += 1         # line: attribute
        return x + self.count


def prints(x):
    print(x.shape)              # line: print
    return x + 1


def writes_a_global(x):
    global COUNT
    COUNT += 1                  # line: global
    return x + COUNT


def writes_a_list(x):
    SEEN.append(1)              # line: list
    return x + len(SEEN)


def branches(x):
    if x.sum() > 0:             # line: branch
        return x + 1
    return x - 1


def asks_the_time(x):
    return x + (time.time() > 0)        # line: time


def draws_a_number(x):
    return x * random.random()          # line: random


def goes_to_numpy(x):
    return x + float(x.numpy().sum())   # line: numpy


def own_backward(x):
    x = x.clone().requires_grad_()
    return Square.apply(x) + 1          # line: function


def steps(x):
    w = x.clone().requires_grad_()
    (w * w).sum().backward(create_graph=True)       # line: backward
    return w.grad


def defines_a_class(x):
    class Inside:               # line: class
        k = 2
    return x * Inside.k


def without_source():
    space = {}
    exec("def f(x):\n    return x + 1", space)
    return space["f"]


def line_of(word):
    lines = Path(__file__).read_text().split("\n")
    return next(k for k, line in enumerate(lines, 1) if line.endswith(f"# line: {word}"))


@pytest.mark.parametrize(("f", "reason", "word"), [
    (prints, "prints", "print"), (writes_a_global, "writes the global name COUNT", "global"),
    (writes_a_list, r"append\(\) of SEEN, a list from outside", "list"),
    (branches, "reads the value of a tensor", "branch"), (asks_the_time, "time.time", "time"),
    (draws_a_number, "random", "random"), (goes_to_numpy, "numpy", "numpy"), (own_backward, "Square", "function"),
    (steps, r"backward\(create_graph=True\)", "backward"), (defines_a_class, "class is defined", "class"),
    (Counter(), r"writes the attribute Counter.count", "attribute")],
    ids=lambda x: getattr(x, "__name__", str(x)[:12]))
def test_why(f, reason, word, capsys):
    found = pt.compiler.explain(f)(X)
    capsys.readouterr()
    (only,) = [r for r in found.break_reasons if r.function == getattr(f, "__qualname__", "Counter")]
    assert re.search(reason, only.reason)
    assert only.where == (__file__, line_of(word))
    assert f"{__file__}:{line_of(word)}" in str(found)


def test_no_source():
    (only,) = pt.compiler.explain(without_source())(X).break_reasons
    assert "no source" in only.reason


def test_one_graph():
    def f(x):
        return (x * math.pi).relu()
    found = pt.compiler.explain(f, X)
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 2)
    assert [op.__name__ for op in found.ops_per_graph[0]] == ["mul", "relu"]
    assert "math.pi == 3.14" in str(found) and "none" in str(found)
    assert any(g.where == (__file__, f.__code__.co_firstlineno + 1) for g in found.out_guards)


def part(x):
    return (x * 2).sin()


def test_parts_are_compiled():
    model = nn.Linear(4, 4)

    def f(x):
        print("here")
        return part(model(x)) + part(x)
    found = pt.compiler.explain(f)(X)
    assert found.graph_count >= 2 and [r.function for r in found.break_reasons] == [f.__qualname__]
    assert any("linear" in str(op) for ops in found.ops_per_graph for op in ops)


def test_classes_inside_are_compiled():
    def f(x):
        class Inside(nn.Module):
            def forward(self, x):
                return part(x) + 1
        return Inside()(x)
    found = pt.compiler.explain(f)(X)
    assert found.graph_count == 1 and found.op_count == 3


class Talks(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4)

    def forward(self, x):
        x = self.first(x)
        print(end="")
        return self.second(x) + part(x)


def test_parts_of_modules_are_compiled():
    model = nn.Sequential(nn.Linear(4, 4), Talks(), nn.Linear(4, 2))
    found = pt.compiler.explain(model)(X)
    assert found.graph_count == 5                   # two layers around it, and its three parts
    assert {r.function for r in found.break_reasons} == {"Sequential", "Talks"}
    compiled = pt.compile(model, backend="eager")
    for _ in range(3):
        equal(compiled(X), model(X))
    with pytest.raises(RuntimeError) as error:
        compiled(X[:3])
    assert "in module '0' (Linear)" in str(error.value.__notes__)


def test_parts_of_modules_are_compiled_once_their_hooks_are_gone():
    model, made = nn.Sequential(Talks(), nn.Linear(4, 2)), []
    for register in (nn.modules.module.register_module_forward_hook, model.register_forward_hook):
        handle = register(lambda *args: made.append(len(args)))
        found = pt.compiler.explain(model)(X)
        assert made and found.graph_count < 4
        handle.remove()
        made.clear()
        assert pt.compiler.explain(model)(X).graph_count == 4 and not made


def test_modules_that_are_made_inside_are_let_go():
    seen = []

    def f(x):
        module = nn.Linear(4, 4)
        seen.append(weakref.ref(module))
        return module(x)
    compiled = pt.compile(f, backend="eager")
    for _ in range(3):
        compiled(X)
    gc.collect()
    assert [r() for r in seen] == [None] * 3 and compiled._compiled.parts == {}


def apply_twice(g, x):
    return g(g(x))


def test_functions_inside_are_compiled():
    model = nn.Linear(4, 4)

    def f(x):
        def inner(y, k=2):
            return part(y) * k

        def loss():
            return model(x).sum()
        print(end="")
        return apply_twice(inner, x) + apply_twice(lambda y: y + len([1]), x), loss()
    found = pt.compiler.explain(f)(X)
    assert [r.function for r in found.break_reasons] == [f.__qualname__] and found.graph_count == 3
    compiled = pt.compile(f, backend="eager")
    for _ in range(2):
        equal(compiled(X), f(X))


# -- sources ----------------------------------------------------------------------------------------------------------

def test_stale_source(tmp_path, monkeypatch):
    path = tmp_path / "edited_module.py"
    path.write_text("import ptcore as pt\n\n\ndef f(x):\n    return x + 1\n\n\ndef g(x):\n    return x * 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    import edited_module
    path.write_text("import ptcore as pt\n\n\ndef f(x):\n    return x + 2\n\n\ndef g(x):\n    return x * 5\n")
    linecache.checkcache()
    compiled = pt.compile(edited_module.f, backend="eager")
    with pytest.warns(UserWarning, match="has changed since it was compiled.* runs as it is"):
        equal(compiled(X), X + 1)
    equal(compiled(X), X + 1)
    (only,) = pt.compiler.explain(edited_module.f)(X).break_reasons
    assert "has changed since" in only.reason
    assert pt.compiler.explain(edited_module.g)(X).graph_break_count == 0


LAMBDAS = [lambda x: x + 1, lambda x: x + 2,
           lambda x: x + 3]
(FIRST, SECOND), THIRD = (lambda x, k=1: x * k, lambda x, k=2: x * k), functools.partial(lambda x, y: x - y, y=4)


def in_a_text(x):
    text = """
not the end
"""
    return x + len(text)


@contextlib.contextmanager
def around(x):
    yield x


def test_lambdas_and_texts():
    for k, f in enumerate(LAMBDAS, 1):
        equal(pt.compile(f, backend="eager", fullgraph=True)(X), X + k)
    for f in (FIRST, SECOND, THIRD, in_a_text):
        equal(pt.compile(f, backend="eager", fullgraph=True)(X), f(X))


def test_another_function_of_the_same_line():
    found = [find(f.__code__).body.right.value for f in LAMBDAS]
    assert found == [1, 2, 3]
    with pytest.raises(NoSource, match="cannot be read"):
        find(without_source().__code__)
