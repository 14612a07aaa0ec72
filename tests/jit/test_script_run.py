"""How graphs of script run: the text that they become, what it lets go of, its limits."""
import gc
import weakref

import pytest

import ptcore as pt
from ptcore import jit
from ptcore.fx.graph import Graph
from ptcore.jit._script.functions import from_graph
from ptcore.jit._script.run import Program


@jit.script
def total(n: int):
    t = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        t += i
    return t


def test_text():
    """Branches and loops of numbers are those of Python, without calls."""
    text = total._program.text
    assert "for " in text and "if " in text and "% 3" in text and text.count("(") <= 4 + text.count("range(")
    assert total(10) == 27 and total(0) == 0 and total(-3) == 0


def nested(levels, kind):
    """A program of so many levels."""
    lines = ["def f(n: int):", "    t = 0"]
    for k in range(levels):
        lines.append("    " * (k + 1) + {"if": f"if n > {k}:", "for": f"for i{k} in range(1):",
                                         "while": f"while t < {k + 1}:"}[kind])
        if kind == "while":
            lines.append("    " * (k + 2) + "t += 1")
    lines += ["    " * (levels + 1) + "t += n", "    return t"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("levels", [1, 5, 11, 12, 13, 19, 25, 40])
@pytest.mark.parametrize("kind", ["if", "for", "while"])
def test_levels(levels, kind, tmp_path):
    if kind != "if" and levels > 19:
        levels = 19                     # Python itself has 20
    path = tmp_path / "program.py"
    path.write_text(nested(levels, kind))
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    f = jit.script(space["f"])
    for n in (0, 3, 30, 100):
        assert f(n) == space["f"](n)


def test_many_branches(tmp_path):
    path = tmp_path / "program.py"
    lines = ["def f(n: int):", "    if n == 0:", "        return -1"]
    for k in range(1, 90):
        lines += [f"    elif n == {k}:", f"        return {k * k}"]
    path.write_text("\n".join([*lines, "    else:", "        return 7", ""]))
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    f = jit.script(space["f"])
    for n in (0, 1, 44, 89, 90):
        assert f(n) == space["f"](n)


def test_loops_move_values_at_once():
    @jit.script
    def fibonacci(n: int):
        a, b = 0, 1
        going = True
        while going:
            a, b = b, a + b
            going = b < n
        for _ in range(2):
            a, b = b, a
            if a > b:
                break
        return a, b
    assert fibonacci(30) == (34, 21)


def test_tensors_are_let_go_of():
    """What is used no more is no longer held while the rest runs, as in the round of a loop."""
    held, made = [], []

    def note(x):
        made.append(weakref.ref(x))
        return x + 0

    def count(x):
        gc.collect()
        held.append(sum([ref() is not None for ref in made]))
        return x
    graph = Graph()
    x = graph.placeholder("x")
    for _ in range(4):
        x = graph.call_function(note, (graph.call_function(pt.neg, (x,)),))
    x = graph.call_function(count, (x,))
    graph.output(x)
    assert pt.equal(from_graph("f", graph)(pt.ones(3)), pt.ones(3))
    assert held == [0] or held == [1]


def test_names_are_what_they_are():
    """No text of a graph becomes code: names that are none, or become others as identifiers, are looked up as given."""
    class Owner:
        pass
    owner, name = Owner(), "\ufb01eld"          # "field" to Python's parser
    assert name.isidentifier()
    owner.field = 0
    setattr(owner, name, 5)
    setattr(owner, "a b", 6)
    setattr(owner, "if", 7)
    graph = Graph()
    values = [graph.create_node("get_attr", target, name=f"g{k}") for k, target in enumerate([name, "a b", "if"])]
    graph.output(tuple(values))
    assert Program(graph, owner)() == (5, 6, 7)

    def keywords(**named):
        return named
    graph, key = Graph(), "x=print('harm'), y"
    made = graph.call_function(keywords, (), {"a": 1})
    made.kwargs = {key: 2, name: 3, "if": 4, "b": "'\"\\\n{}"}
    graph.output(made)
    assert Program(graph)() == {key: 2, name: 3, "if": 4, "b": "'\"\\\n{}"}


def test_literals():
    graph = Graph()
    values = (-3, 2 ** 70, -2 ** 70, float("inf"), -0.0, 1e-320, "\ud800", "a'\"", b"x", None, True, (1, [2]), ...)
    x = graph.placeholder("x")
    graph.output((*values, graph.call_function(pow, (-3, 2)), x))
    found = Program(graph)(1)
    assert repr(found) == repr((*values, 9, 1))


def test_warnings_of_literals(recwarn):
    import operator

    from ptcore.jit._script import operations
    graph = Graph()
    made = [graph.call_function(operations.is_none, (3,)), graph.call_function(operations.is_same, (3, 3)),
            graph.call_function(operations.is_not_none, ("a",)), graph.call_function(operator.getitem, ("abc", 1))]
    graph.output(tuple(made))
    assert Program(graph)() == (False, True, True, "b") and not recwarn.list


def test_the_line_of_an_error():
    @jit.script
    def f(items: list[int], n: int):
        t = 0
        for k in range(n):
            with pt.no_grad():
                if k >= 2:
                    t += items[k]           # here
        return t
    with pytest.raises(IndexError) as caught:
        f([1, 2], 5)
    assert any(["t += items[k]           # here" in note for note in caught.value.__notes__])
