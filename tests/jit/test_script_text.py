"""The text form of graphs: there and back gives the same graph, and nothing but graphs is read."""
import copy
import enum
import random
import subprocess
import sys
from pathlib import Path
from typing import List  # noqa: UP035

import pytest

import ptcore
from ptcore import jit
from ptcore.jit._script.functions import from_graph
from ptcore.jit._text import TextError, class_name, parse, to_text

sys.path.insert(0, str(Path(__file__).parent))
import test_script_control_flow as control_flow
import test_script_functions as functions
import test_script_modules as modules
import test_script_programs as programs

NAMES = ["if_else", "early_returns", "while_loop", "nested_loops", "deep", "list_grows", "ranges", "boolean",
         "list_methods", "dict_methods", "tuples", "comprehensions", "iteration", "text", "numbers", "maths",
         "complexes", "optionals", "unions", "anything", "enums", "named", "raises", "calls", "tensors",
         "with_blocks", "fork_and_wait", "writes"]
CLASSES = {class_name(c): c for c in (functions.Color, functions.Point, modules.Counter, modules.Pair)}


def called(graph):
    """The ScriptFunctions that a graph calls."""
    found = {}
    for node in graph.nodes:
        for a in (node.target, *node.args):
            if isinstance(a, jit.ScriptFunction):
                found[a.qualified_name] = a
        for block in node.blocks:
            found |= called(block)
    return found


def same(a, b):
    """Whether two graphs are the same."""
    for x, y in zip(a.nodes, b.nodes, strict=True):
        assert (x.op, x.name, x.type, str(x.args), str(x.kwargs)) == (y.op, y.name, y.type, str(y.args), str(y.kwargs))
        assert x.target is y.target or x.target == y.target
        assert x.meta.get("where") == y.meta.get("where") and x.meta.get("effect") == y.meta.get("effect")
        for p, q in zip(x.blocks, y.blocks, strict=True):
            same(p, q)


def there_and_back(graph):
    text = to_text(graph)
    made = parse(text, called(graph), CLASSES)
    made.lint()
    assert to_text(made) == text
    same(graph, made)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_functions(name):
    there_and_back(jit.script(getattr(control_flow, name, None) or getattr(functions, name)).graph)


def test_what_is_read_runs():
    scripted = jit.script(control_flow.deep)
    made = jit.ScriptFunction("deep", there_and_back(scripted.graph), scripted.parameters, scripted.returns)
    assert [made(n, 3) for n in range(9)] == [control_flow.deep(n, 3) for n in range(9)]


def with_defaults(x, n: int = 3, a: List[int] = [1, 2], *, flag: bool = False, s: str = "q"):  # noqa: B006, UP006
    return x * n + sum(a), flag, s


def test_functions_are_made_of_graphs():
    """Names, types and defaults of the arguments are in the graph."""
    scripted = jit.script(with_defaults)
    made = from_graph("with_defaults", there_and_back(scripted.graph))
    assert made.schema == scripted.schema
    x = ptcore.ones(1)
    assert str(made(x)) == str(scripted(x)) == str(with_defaults(x))
    assert str(made(x, 2, flag=True)) == str(with_defaults(x, 2, flag=True))
    with pytest.raises(RuntimeError, match="takes 3 arguments, got 4"):
        made(x, 2, [1], True)


def test_modules_and_classes():
    net = jit.script(modules.Recurrent())
    there_and_back(net.graph)
    there_and_back(jit.script(modules.use_class).graph)
    there_and_back(jit.script(ptcore.nn.Sequential(ptcore.nn.Linear(2, 2), ptcore.nn.ReLU())).graph)
    net = jit.script(modules.Net())
    there_and_back(net.graph)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed):
    source = random.Random(1000 + seed)
    text = programs.Writer(lambda n: source.randrange(n)).program()
    found = []
    original = jit.script
    try:
        programs.jit.script = lambda f: found.append(original(f)) or found[-1]
        programs.check(text)
    finally:
        programs.jit.script = original
    there_and_back(found[0].graph)


def test_ignored_functions_have_no_name():
    with pytest.raises(TextError, match=r"from_python.*@ignore"):
        to_text(jit.script(functions.calls_python).graph)


class Local(enum.Enum):
    A = 1


BAD = [
    '',
    'graph',
    'graph {',
    'graph { return }',
    'graph { return 1 } x',
    'graph { %x = placeholder x return 1 }',
    'graph { %x = call "os.system" ("ls") return 1 }',
    'graph { %x = call "builtins.eval" ("1") return 1 }',
    'graph { %x = call "builtins.open" ("a") return 1 }',
    'graph { return %y }',
    'graph { return (1) }',
    'graph { %x = placeholder "x" %x = placeholder "x" return 1 }',
    'graph { %x : Foo = placeholder "x" return 1 }',
    'graph { %x : List[int, int] = placeholder "x" return 1 }',
    'graph { %x = call "row.nothing" () return 1 }',
    'graph { %x = call "block.cond" (True) return 1 }',
    'graph { %x = call "function.f" () return 1 }',
    'graph { %x = call "class.a:B" () return 1 }',
    'graph { return enum "a:B" "C" }',
    'graph { return dtype "os" }',
    'graph { return dtype "nn" }',
    'graph { return memory_format "strided" }',
    'graph { return memory_format 1 }',
    'graph { return {"a": 1, "a": 2} }',
    'graph { return {[1]: 1} }',
    'graph { return {1: 1, True: 2} }',
    'graph { return object "builtins.exec" }',
    'graph { return device "nowhere" }',
    'graph { %x = jump "a" return 1 }',
    'graph { return "\\x" }',
    'graph { return complex (1, 2) }',
    'graph { %class = placeholder "x" return 1 }',
    'graph { return ' + '(' * 5000 + ' }',
    'graph { return 1 } }',
    'graph { return $ }',
    'graph { %x : ' + 'List[' * 5000 + ' = placeholder "x" return 1 }',
    'graph { %x = call "block.loop" (1, True, 2) graph { return (True,) } return 1 }',
]


@pytest.mark.parametrize("text", BAD, ids=[b[:40] for b in BAD])
def test_bad_texts(text):
    with pytest.raises(TextError, match="line 1 of a graph's text"):
        parse(text)


def test_a_text_imports_nothing():
    done = subprocess.run([sys.executable, "-P", "-c", """
import sys
from ptcore.jit._text import TextError, parse
for word in ("dtype", "memory_format"):
    try:
        parse(f'graph {{ return {word} "distributions" }}')
    except TextError:
        pass
print("ptcore.distributions" in sys.modules)
"""], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stdout + done.stderr


def test_damaged_texts():
    """What is changed in a text is read as another graph, or refused."""
    source = random.Random(0)
    text = to_text(jit.script(control_flow.deep).graph)
    read = 0
    for _ in range(500):
        k = source.randrange(len(text))
        n = source.randrange(3)
        damaged = text[:k] + source.choice(["", "(", "}", "%", "\"", "1", "graph {", "None", "\\"]) + text[k + n:]
        try:
            parse(damaged)
            read += 1
        except TextError:
            pass
    assert read < 500


def test_deep_copies_are_the_same():
    graph = jit.script(control_flow.deep).graph
    same(graph, copy.deepcopy(graph))
