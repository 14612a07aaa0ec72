"""The tables of Python's operators and builtins: both fronts know each entry, or refuse it by its name."""
import ast
import builtins
import linecache
import operator

import pytest

import ptcore as pt
from ptcore import jit
from ptcore.fx import Graph
from ptcore.fx.operators import INFIX, INPLACE, OPERATORS
from ptcore.jit._names import BUILTINS, BY_NODE, COMPARISONS, OUTSIDE
from ptcore.jit._script.names import function_named, name_of
from ptcore.jit.capture import calls

pytestmark = pytest.mark.core
X, Y = pt.tensor([1, 2, 3]), pt.tensor([2, 2, 2])
F, G = pt.tensor([1.0, 2.0]), pt.tensor([[1.0, 2.0], [3.0, 4.0]])


def defined(text, **space):
    """The function ``f`` of a text that is as good as in a file."""
    name = f"<text {len(linecache.cache)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space |= {"Tensor": pt.Tensor, "operator": operator, "__name__": "text"}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space["f"]


def of(o):
    """A function that uses an operator, and its arguments."""
    args = (G, G) if o.name == "matmul" else (F, pt.tensor([3.0, 0.5])) if o.name in ("truediv", "pow") else (X, Y)
    text = o.infix.format(*("xy" if o.kind != "unary" else "x"))
    return text, args if o.kind != "unary" else args[:1]


# -- operators --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("o", OPERATORS.values(), ids=OPERATORS)
def test_operators(o):
    """Eager, captured as an operator and as a function of ``operator``, scripted, and printed from a graph."""
    text, args = of(o)
    names = ", ".join("xy"[:len(args)])
    plain = defined(f"def f({names}):\n    return {text}\n")
    want = plain(*args)
    assert pt.equal(want, o.function(*args))
    called = defined(f"def f({names}):\n    return operator.{o.name}({names})\n")
    for f in (plain, called):
        assert pt.equal(pt.compile(f, fullgraph=True)(*args), want)
    typed = defined(f"def f({', '.join([f'{n}: Tensor' for n in names.split(', ')])}):\n    return {text}\n")
    assert pt.equal(jit.script(typed)(*args), want)
    graph = Graph()
    graph.output(graph.call_function(o.function, tuple([graph.placeholder(n) for n in names.split(", ")])))
    assert f" = {text};" in graph.python_code("self").src
    assert function_named(f"operator.{o.name}") is o.function and name_of(o.function) == f"operator.{o.name}"


@pytest.mark.parametrize("o", [o for o in OPERATORS.values() if o.inplace], ids=lambda o: o.name)
def test_augmented_assignments(o):
    _, (a, b) = of(o)
    plain = defined(f"def f(x, y):\n    z = x + 0\n    z {o.symbol}= y\n    return z\n")
    if o.name == "matmul":              # tensors have no such method: the result is a new one
        assert pt.equal(plain(a, b), a @ b)
    want = plain(a, b)
    called = defined(f"def f(x, y):\n    return operator.{o.inplace.__name__}(x + 0, y)\n")
    for f in (plain, called):
        assert pt.equal(pt.compile(f, fullgraph=True)(a, b), want)
    typed = defined(f"def f(x: Tensor, y: Tensor):\n    z = x + 0\n    z {o.symbol}= y\n    return z\n")
    assert pt.equal(jit.script(typed)(a, b), want)
    graph = Graph()
    graph.output(graph.call_function(o.inplace, (graph.placeholder("x"), graph.placeholder("y"))))
    assert f"    x {o.symbol}= y;" in graph.python_code("self").src
    assert name_of(o.inplace) == f"operator.{o.inplace.__name__}"


def test_the_table_is_whole():
    """All operators of Python's syntax, and all functions of ``operator`` behind them."""
    nodes = {c for base in (ast.operator, ast.unaryop, ast.cmpop) for c in base.__subclasses__()}
    assert nodes - {ast.Not} == {*BY_NODE, *COMPARISONS}
    assert {o.name for o in BY_NODE.values()} == {*OPERATORS}
    assert {*INFIX} == {o.function for o in OPERATORS.values()} | {operator.getitem}
    assert {*INPLACE} == {getattr(operator, n) for n in dir(operator) if n.startswith("i") and n[1:] in {
        o.rstrip("_") for o in OPERATORS} and n != "iconcat"}


# -- builtins ---------------------------------------------------------------------------------------------------------

def test_builtins_are_all_known():
    found = {n for n, f in vars(builtins).items() if callable(f) and not (isinstance(f, type) and issubclass(
        f, BaseException)) and type(f).__module__ not in ("_sitebuiltins", "_pytest") and not n.startswith("__")}
    assert {n for n in BUILTINS if not n.startswith("__")} == {n for n in found if n != "_"}
    assert all(BUILTINS[f.__name__] == "outside" for f in OUTSIDE)


@pytest.mark.parametrize("name", [n for n, kind in BUILTINS.items() if kind == "outside" and not n.startswith("__")])
def test_what_reaches_out_is_refused_by_name(name):
    f = defined(f"def f(x):\n    {name}('1')\n    return x\n")
    with pytest.raises(RuntimeError, match="not captured as one graph") as info:
        pt.compile(f, fullgraph=True)(X)
    assert OUTSIDE[getattr(builtins, name)] in str(info.value)
    if name != "print":                 # which script runs
        with pytest.raises(jit.ScriptError, match=name):
            jit.script(defined(f"def f(x: Tensor):\n    {name}('1')\n    return x\n"))


@pytest.mark.parametrize("name", [n for n, kind in BUILTINS.items() if kind != "outside"])
def test_other_builtins(name):
    """A capture answers each by itself, or calls it as it is; script reads it, or names it as what it has not."""
    f = getattr(builtins, name)
    known = calls.CLASSES if isinstance(f, type) else calls.SPECIAL
    if f not in known:
        assert name in AS_THEY_ARE
    if name not in jit._script.builtin.Builtins.SPECIAL_NAMES:
        with pytest.raises(jit.ScriptError, match=name):
            jit.script(defined(f"def f(x: Tensor):\n    return {name}(x)\n"))


AS_THEY_ARE = {"bytearray", "bytes", "memoryview", "frozendict", "classmethod", "property", "sentinel", "staticmethod",
               "aiter", "anext"}
