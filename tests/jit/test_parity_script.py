"""``jit.script`` beside ``torch.jit.script``: what is accepted, what is refused, and what comes out."""
# ruff: noqa: UP006, UP035, PT011, PT017 - these forms are what is tested
import enum
import itertools
import linecache
import math
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


@pytest.mark.parametrize("body", split(ACCEPTED), ids=name)
def test_accepted_by_both(body, capfd):
    ours, theirs = Rewritten(ptcore, body), Rewritten(torch, body)
    got, want = ours.script(), theirs.script()
    a, b = ours.arguments(), theirs.arguments()
    try:
        expected = want(*b)
    except Exception as error:
        with pytest.raises(Exception) as info:
            got(*a)
        assert str(info.value) in str(error)
        assert isinstance(error, torch.jit.Error) == isinstance(info.value, ptcore.jit.Error)
        return
    assert plain(got(*a)) == plain(expected)


@pytest.mark.parametrize("body", split(REFUSED), ids=name)
def test_refused_by_both(body):
    with pytest.raises(Exception):  # noqa: B017 - torch raises several classes
        Rewritten(torch, body).script()
    with pytest.raises(ptcore.jit.ScriptError):
        Rewritten(ptcore, body).script()


@pytest.mark.parametrize("body", split(WIDER), ids=name)
def test_more_is_accepted(body):
    with pytest.raises(Exception):  # noqa: B017 - torch raises several classes
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
