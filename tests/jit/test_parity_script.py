"""``jit.script`` beside ``torch.jit.script``: what is accepted, what is refused, and what comes out."""
# ruff: noqa: UP006, UP035, PT017 - these forms are what is tested
import enum
import itertools
import linecache
import math
import re
import textwrap
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import pytest
from _script_bodies import ACCEPTED, NARROWER, REFUSED, WIDER

import ptcore

torch = pytest.importorskip("torch")

HEAD = ("def f(x: Tensor, n: int, r: float, s: str, b: bool, a: List[int], d: Dict[str, int], o: Optional[int], "
        "t: Tuple[int, str], u: Union[int, str], y: Any):\n")
NUMBER = itertools.count()


class Rewritten:
    """A program for one of the two."""

    def __init__(self, module, body):
        self.module = module
        text = HEAD + textwrap.indent(body.strip("\n"), "    ") + "\n"
        name = f"<parity {next(NUMBER)}>"
        linecache.cache[name] = len(text), None, text.splitlines(True), name

        def helper(n: int, k: int = 2):
            return n * k

        class Point(NamedTuple):
            n: int
            x: module.Tensor

        class Color(enum.Enum):
            RED = 1
            BLUE = 2
        helper.__module__ = Point.__module__ = Color.__module__ = __name__
        space = {"Tensor": module.Tensor, "torch": module, "math": math, "List": List, "Dict": Dict, "Any": Any,
                 "Optional": Optional, "Tuple": Tuple, "Union": Union, "helper": helper, "Point": Point, "Color": Color,
                 "number": 3, "F": module.nn.functional, "__name__": __name__}
        exec(compile(text, name, "exec"), space)
        self.f = space["f"]

    def script(self):
        return self.module.jit.script(self.f)

    def arguments(self):
        x = self.module.tensor([[1.0, 2.0], [3.0, 4.0]])
        return x, 3, 2.5, "ab", True, [1, 2, 3], {"k": 1}, 4, (1, "q"), 5, [7]


def split(text):
    return [body.strip("\n") for body in text.split("---\n")]


def plain_numbers(x):
    """Numbers rounded: the last bits of functions differ."""
    if isinstance(x, list):
        return [plain_numbers(i) for i in x]
    return round(x, 3) if isinstance(x, float) else x


def plain(x):
    if hasattr(x, "tolist") and hasattr(x, "dtype"):
        return str(x.dtype).split(".")[-1], plain_numbers(x.tolist())
    if isinstance(x, enum.Enum):
        return x.name
    if isinstance(x, (list, tuple)):
        return "list" if isinstance(x, list) else "tuple", [plain(i) for i in x]
    if isinstance(x, dict):
        return [(k, plain(v)) for k, v in x.items()]
    return (type(x).__name__, x) if isinstance(x, (int, float, str, bool, complex, type(None))) else None


def name(body):
    return body.replace("\n", "; ")[:50]


# Of torch's script; the last two are faults of it, where it looks for the place of the error.
THEIR_ERRORS = (RuntimeError, torch.jit.frontend.FrontendError, TypeError, AttributeError)


@pytest.mark.parametrize("body", split(ACCEPTED), ids=name)
def test_accepted_by_both(body, capfd):
    ours, theirs = Rewritten(ptcore, body), Rewritten(torch, body)
    got, want = ours.script(), theirs.script()
    a, b = ours.arguments(), theirs.arguments()
    try:
        expected = want(*b)
    except Exception as error:
        assert isinstance(error, torch.jit.Error)
        with pytest.raises(ptcore.jit.Error) as info:
            got(*a)
        assert str(info.value) and str(info.value) in str(error)
        return
    assert plain(got(*a)) == plain(expected)


# What is said of each.
REFUSED_SAYS = [
    "try is not supported in script", "import is not supported in script",
    "lambda is not supported in script", "sets is not supported in script",
    "functions inside functions is not supported in script", "yield is not supported in script",
    "global is not supported in script", "'z' has no value here: it is set in one branch of the `if` in line 2",
    "'z' has no value here: its type is int in one branch and str in the",
    "'z' has no value here: it is set in the loop in line 2 only, which",
    "variable 'z' has type int and cannot get a value of type None",
    "variable 'z' has type int and cannot get a value of type float",
    "+ of Optional[int] and int: a value that may be None has no operators", "+ of int and str is not supported",
    "name 'undefined' is not defined", "the method foo is not a value of script",
    "Tensor has no attribute 'foo' in script", "list has no method 'foo' in script",
    "List[int].append(str) is not supported", "an item of the list must be of type int, not str",
    "one branch gives int, the other float", "one branch gives int, the other str",
    "f returns values of several types: int, str", "the argument 'n' of helper must be of type int, not str",
    "helper misses the argument 'n': helper(n: int, k: int = 2)",
    "helper takes 2 arguments, not 3: helper(n: int, k: int = 2)",
    "helper has no argument 'q': helper(n: int, k: int = 2)", "a value of type int cannot be looped over",
    "a global variable of type int is not a value of script: its value",
    "items of Tuple[int, str] have several types: the index must be known", "the key must be of type str, not int",
    "else of a loop is not supported", "2 targets for 3 values", "** in a dict is not supported",
    "a comprehension has one `for`", "relu: the argument 'input' cannot be of type str",
    "relu: too many positional arguments", "relu: missing a required argument: 'input'",
    "'open' cannot be called in script", "assignment in an expression is not supported in script",
    "yield is not supported in script", "raise alone is not supported: nothing is caught in script",
    "in: equality of tensors is a tensor", "+ of Union[int, str] and int is not supported",
    "+ of Any and int is not supported", "'n' has no value here: it was deleted in line 2",
    "async functions is not supported in script", "classes inside functions is not supported in script",
    "attributes of a value of type int cannot be set", "items of a value of type Tuple[int, str] cannot be set",
    "match is not supported in script", "Tensor.numpy is not supported in script: it gives what has no type",
    "Tensor.tolist is not supported in script: it gives what has no type",
    "a value of type Optional[int] may be None: test it by `is not None`",
    "int of a value of type Optional[int] is not supported", "a tensor takes no index of type str",
    "with of a value of type int is not supported", "< of List[int] and int is not supported",
    "Tensor has no attribute 'undefined_method' in script"]


@pytest.mark.parametrize(("body", "says"), [*zip(split(REFUSED), REFUSED_SAYS, strict=True)],
                         ids=[*map(name, split(REFUSED))])
def test_refused_by_both(body, says):
    with pytest.raises(THEIR_ERRORS):
        Rewritten(torch, body).script()
    with pytest.raises(ptcore.jit.ScriptError, match="^" + re.escape(says)):
        Rewritten(ptcore, body).script()


@pytest.mark.parametrize("body", split(WIDER), ids=name)
def test_more_is_accepted(body):
    with pytest.raises(THEIR_ERRORS):
        Rewritten(torch, body).script()
    ours = Rewritten(ptcore, body)
    assert plain(ours.script()(*ours.arguments())) == plain(ours.f(*ours.arguments()))


@pytest.mark.parametrize("body, message", NARROWER, ids=[b for b, _ in NARROWER])
def test_less_is_accepted(body, message):
    Rewritten(torch, body).script()
    with pytest.raises(ptcore.jit.ScriptError, match=message):
        Rewritten(ptcore, body).script()


def test_there_are_enough():
    assert len(split(ACCEPTED)) + len(split(REFUSED)) >= 140
