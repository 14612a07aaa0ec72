"""The work of a first call grows as the program's length does: calls of Python functions are counted."""
import itertools
import linecache
import sys

import pytest

import ptcore as pt
from ptcore import nn
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

SHORT, LONG = 150, 600


def body(line, n, end="x"):
    return "".join(f"    {line.format(k=k, i=k % 4, j=(k + 1) % 4)}\n" for k in range(n)) + f"    return {end}\n"


# name: the body of a function of x that has n statements
BODIES = {
    "chain": lambda n: body("x = x * 1.5 + {k}", n),
    "writes in place": lambda n: "    x = x.clone()\n" + body("x.mul_(1.5)", n),
    "writes through views": lambda n: "    x = x.clone()\n" + body("x[{i}].mul_(1.5)", n),
    "items": lambda n: "    x = x.clone()\n" + body("x[{i}] = x[{j}] * 2", n),
    "objects from outside": lambda n: body("x = x + WEIGHTS[{k}]", n),
    "entries of a dict": lambda n: body("x = x + TABLE['{k}'] * NUMBERS[{k}]", n),
    "a list": lambda n: "    found = []\n" + body("found.append(x * {k})", n, "P.stack(found)"),
    "a loop": lambda n: f"    for k in range({n}):\n        x = x * 1.01 + k\n    return x\n",
    "a fan": lambda n: body("y{k} = x * {k}", n // 2, "").rpartition("    return")[0] + body(
        "x = x + y{k}", n // 2),
    "joins": lambda n: "    y = x\n" + body("y = P.cat([y, x])[:4]", n, "y"),
}
NAMES = {"P": pt, "WEIGHTS": [pt.ones(4) for _ in range(LONG)], "NUMBERS": [float(k) for k in range(LONG)],
         "TABLE": {str(k): pt.ones(4) for k in range(LONG)}}


def test_an_expression_that_is_too_deep_runs_as_it_is():
    f = defined(f"def f(x):\n    return x{' * 1.001' * 900}\n")
    compiled, x = pt.compile(f), pt.ones(3)
    for _ in range(2):
        assert compiled(x).equal(f(x))


class Deep(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(n)])

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


_numbers = itertools.count()


def defined(text):
    """The function f of a text, which Python can read again."""
    name = f"<long program {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = dict(NAMES)
    exec(compile(text, name, "exec"), space)
    return space["f"]


def calls_of(function):
    """How many functions a call of ``function`` calls."""
    seen = 0

    def count(frame, event, arg):
        nonlocal seen
        seen += event in ("call", "c_call")
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return seen


def grows(first_call):
    """The calls for each statement of the longer program over those of the shorter one."""
    first_call(8)()                     # what the first program of all imports
    return calls_of(first_call(LONG)) / calls_of(first_call(SHORT)) * SHORT / LONG


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_compiled_functions(name, grad):
    def first_call(n):
        f, x = pt.compile(defined("def f(x):\n" + BODIES[name](n))), pt.ones(4, requires_grad=grad)
        return (lambda: f(x).sum().backward()) if grad else lambda: f(x)
    assert grows(first_call) < 1.15


def test_compiled_modules():
    def first_call(n):
        m, x = pt.compile(Deep(n // 3)), pt.ones(2, 2)
        return lambda: m(x).sum().backward()
    assert grows(first_call) < 1.15


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("maker", ["trace", "make_fx"])
def test_recorded_functions(maker, name):
    def first_call(n):
        f, x = defined("def f(x):\n" + BODIES[name](n)), pt.ones(4)
        return (lambda: pt.jit.trace(f, (x,))) if maker == "trace" else lambda: make_fx(f)(x)
    assert grows(first_call) < 1.15
