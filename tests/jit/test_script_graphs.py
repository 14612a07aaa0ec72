"""Graphs with blocks in ``fx``: printed, checked, copied, pickled, run and transformed as others are."""
import copy
import operator
import pickle
import sys
from pathlib import Path

import pytest

import ptcore
from ptcore import jit
from ptcore.fx import Graph, GraphModule, Interpreter, Transformer, verify
from ptcore.fx import blocks as _blocks

sys.path.insert(0, str(Path(__file__).parent))
import test_script_control_flow as functions
import test_script_functions as others
from _script_outcomes import plain

PROGRAMS = [(functions.deep, [(n, 3) for n in range(7)]), (functions.nested_loops, [(n,) for n in range(8)]),
            (functions.early_returns, [(n,) for n in range(-12, 12, 5)]),
            (others.optional_break, [([1, 9, 2],), ([1],)]), (functions.ranges, [(5,)]),
            (others.tensor_loop, [(ptcore.ones(2, 3),)]), (functions.boolean, [(True, False, 3)])]
NAMES = [f.__name__ for f, _ in PROGRAMS]


def same(run, f, calls):
    for args in calls:
        assert plain(run(*copy.deepcopy(args))) == plain(f(*copy.deepcopy(args)))


@pytest.mark.parametrize("f, calls", PROGRAMS, ids=NAMES)
def test_other_ways_to_run(f, calls):
    module = GraphModule({}, copy.deepcopy(jit.script(f).graph))
    module.graph.lint()
    assert verify(module.graph) == "python"
    same(module, f, calls)
    same(Interpreter(module).run, f, calls)
    same(Transformer(module).transform(), f, calls)
    same(copy.deepcopy(module), f, calls)
    same(pickle.loads(pickle.dumps(module)), f, calls)


@pytest.mark.parametrize("f, calls", PROGRAMS, ids=NAMES)
def test_code_runs(f, calls):
    """The code of a graph, which is for people, is right."""
    module = GraphModule({}, copy.deepcopy(jit.script(f).graph))
    code = module.graph.python_code("self")
    space = dict(code.globals)
    exec(code.src, space)
    same(lambda *args: space["forward"](module, *args), f, calls)


@pytest.mark.parametrize("f, calls", PROGRAMS, ids=NAMES)
def test_code_with_statements_runs(f, calls):
    """So is that of a scripted function, with ``if``, ``for`` and ``while``."""
    from typing import Optional

    from ptcore.jit._script import operations
    space = {"ptcore": ptcore, "operator": operator, "builtins": __import__("builtins"), "Tensor": ptcore.Tensor,
             "List": list, "Dict": dict, "Optional": Optional, "Tuple": tuple, **operations.NAMES}
    exec(jit.script(f).code, space)
    same(space[f.__name__], f, calls)


def test_counting_interpreter_sees_blocks():
    class Count(Interpreter):
        seen = []  # noqa: RUF012

        def call_function(self, target, args, kwargs):
            self.seen.append(target)
            return super().call_function(target, args, kwargs)
    module = GraphModule({}, copy.deepcopy(jit.script(functions.while_loop).graph))
    Count(module).run(3)
    assert Count.seen.count(operator.eq) >= 3


def test_printing_and_lint():
    @jit.script
    def f(x, n: int):
        if n > 2:
            x = x + 1
        return x
    text = str(f.graph)
    assert "target=ptcore.fx.blocks.cond" in text and text.count("graph():") == 3
    (node,) = f.graph.find_nodes(op="call_function", target=_blocks.cond)
    assert len(node.blocks) == 2 and node.is_impure()
    broken = copy.deepcopy(f.graph)
    (node,) = broken.find_nodes(op="call_function", target=_blocks.cond)
    node.blocks = (Graph(), node.blocks[1])
    with pytest.raises(RuntimeError, match="a block of cond has no output"):
        broken.lint()
    assert len(f.graph.find_nodes(op="call_function", target=_blocks.cond)[0].blocks[0].nodes) == 3


def test_blocks_are_closed():
    """A block uses its own arguments alone."""
    def look(graph):
        own = set(graph.nodes)
        for node in graph.nodes:
            assert all(used in own for used in node.all_input_nodes)
            for block in node.blocks:
                look(block)
    for f, _ in PROGRAMS:
        look(jit.script(f).graph)


def test_each_node_has_its_line():
    lines = Path(functions.__file__).read_text().split("\n")

    def look(graph):
        for node in graph.nodes:
            if node.op != "placeholder":
                file, line, name = node.meta["where"] if "where" in node.meta else (functions.__file__, 1, "deep")
                assert file == functions.__file__ and name == "deep"
                if node.target is operator.mod:
                    assert "%" in lines[line - 1]
            for block in node.blocks:
                look(block)
    look(jit.script(functions.deep).graph)


def test_empty_loops_and_nothing_to_do():
    @jit.script
    def f(n: int):
        for _ in range(n):
            pass
        while n > 5:
            break
        if n > 2:
            pass
        return n
    assert f(3) == 3 and f(9) == 9
