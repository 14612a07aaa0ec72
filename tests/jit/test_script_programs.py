"""Random programs of the subset of ``jit.script``: the same source run by Python is the oracle.

``PTCORE_SCRIPT_PROGRAMS`` sets how many programs are tried.
"""
# ruff: noqa: UP006, UP035 - these forms are what is tested
import contextlib
import copy
import itertools
import linecache
import os
import random

import pytest

import ptcore
from ptcore import jit

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

EXAMPLES = int(os.environ.get("PTCORE_SCRIPT_PROGRAMS", "500"))
_number = itertools.count()
HEAD = ("def f(a: int, b: int, items: List[int], words: Dict[str, int], maybe: Optional[int], flag: bool,\n"
        "      s: str, pair: Tuple[int, str]):\n")
# Name -> type of the variables that a program has from its start.
START = {"a": "int", "b": "int", "items": "list", "words": "dict", "maybe": "opt", "flag": "bool", "s": "str",
         "pair": "pair"}


class Writer:
    """Writes a program; every choice is one of ``draw``.

    Loops are bounded by a counter of their own. Variables are used where script has them: those that a block defines
    are forgotten behind it.
    """

    def __init__(self, draw):
        self.draw, self.lines, self.names = draw, [], itertools.count()
        self.budget = 40

    def pick(self, options):
        return options[self.draw(len(options))]

    def of(self, known, kind):
        return [name for name, t in known.items() if t == kind]

    def ints(self, known, depth=0):
        forms = ["const", "name", "name"]
        if depth < 3:
            forms += ["op", "op", "len", "item", "ternary", "get", "call", "sum", "min", "bool", "find", "pair",
                      "narrow"]
        form = self.pick(forms)
        if form == "name" and self.of(known, "int"):
            return self.pick(self.of(known, "int"))
        if form == "op":
            left, right = self.ints(known, depth + 1), self.ints(known, depth + 1)
            return f"({left} {self.pick(['+', '-', '*', '//', '%', '&', '|', '^'])} {right})"
        if form == "len":
            return f"len({self.pick(self.of(known, 'list') + self.of(known, 'dict'))})"
        if form == "item":
            return f"{self.pick(self.of(known, 'list'))}[{self.ints(known, depth + 1)} % 5]"
        if form == "ternary":
            yes, test, no = self.ints(known, depth + 1), self.bools(known, depth + 1), self.ints(known, depth + 1)
            return f"({yes} if {test} else {no})"
        if form == "get":
            return f"{self.pick(self.of(known, 'dict'))}.get({self.text(known)}, {self.ints(known, depth + 1)})"
        if form == "call":
            return f"helper({self.ints(known, depth + 1)}, {self.ints(known, depth + 1)})"
        if form == "sum":
            return f"sum([q * {self.ints(known, depth + 1)} for q in {self.lists(known, depth + 1)}])"
        if form == "min":
            return f"{self.pick(['min', 'max'])}({self.ints(known, depth + 1)}, {self.ints(known, depth + 1)})"
        if form == "bool":
            return f"int({self.bools(known, depth + 1)})"
        if form == "find":
            return f"{self.texts(known, depth + 1)}.{self.pick(['find', 'count'])}({self.texts(known, depth + 1)})"
        if form == "pair" and self.of(known, "pair"):
            return f"{self.pick(self.of(known, 'pair'))}[0]"
        if form == "narrow" and self.of(known, "opt"):
            name = self.pick(self.of(known, "opt"))
            return f"({name} + {self.ints(known, depth + 1)} if {name} is not None else {self.ints(known, depth + 1)})"
        return str(self.draw(12) - 3)

    def bools(self, known, depth=0):
        forms = ["compare", "name"]
        if depth < 3:
            forms += ["compare", "not", "and", "or", "in", "chain", "optional", "text"]
        form = self.pick(forms)
        if form == "name" and self.of(known, "bool"):
            return self.pick(self.of(known, "bool"))
        if form == "not":
            return f"(not {self.bools(known, depth + 1)})"
        if form in ("and", "or"):
            return f"({self.bools(known, depth + 1)} {form} {self.bools(known, depth + 1)})"
        if form == "text":
            left, sign = self.texts(known, depth + 1), self.pick(["==", "<", "in", "not in"])
            return f"({left} {sign} {self.texts(known, depth + 1)})"
        if form == "in":
            return f"({self.ints(known, depth + 1)} {self.pick(['in', 'not in'])} {self.lists(known, depth + 1)})"
        if form == "chain":
            return f"({self.ints(known, 2)} < {self.ints(known, 2)} <= {self.ints(known, 2)})"
        if form == "optional" and self.of(known, "opt"):
            name = self.pick(self.of(known, "opt"))
            return self.pick([f"({name} is None)", f"({name} is not None and {name} > {self.ints(known, 3)})",
                              f"({name} is None or {name} < {self.ints(known, 3)})"])
        return f"({self.ints(known, depth + 1)} {self.pick(['==', '!=', '<', '>='])} {self.ints(known, depth + 1)})"

    def lists(self, known, depth=0):
        form = self.pick(["name", "name", "literal", "slice", "comprehension", "plus"] if depth < 2 else ["name"])
        if form == "literal":
            return f"[{self.ints(known, 2)}, {self.ints(known, 2)}]"
        if form == "slice":
            return f"{self.pick(self.of(known, 'list'))}[{self.draw(3)}:{self.draw(5)}]"
        if form == "comprehension":
            test = f" if q > {self.ints(known, 3)}" if self.draw(2) else ""
            return f"[q + {self.ints(known, 2)} for q in {self.pick(self.of(known, 'list'))}{test}]"
        if form == "plus":
            return f"({self.lists(known, depth + 1)} + {self.lists(known, depth + 1)})"
        return self.pick(self.of(known, "list"))

    def texts(self, known, depth=0):
        forms = ["const", "slice", "str", "pair", "upper", "join", "format"] if depth < 2 else []
        form = self.pick(["name", "name", *forms])
        if form == "const":
            return self.pick(["'a'", "'b1'", "''", "'xyz'"])
        if form == "slice":
            return f"{self.texts(known, 2)}[{self.draw(3) - 1}:{self.ints(known, 3)}]"
        if form == "str":
            return f"str({self.ints(known, 2)})"
        if form == "pair" and self.of(known, "pair"):
            return f"{self.pick(self.of(known, 'pair'))}[1]"
        if form == "upper":
            call = self.pick(["upper()", "strip()", "title()", "replace(chr(97), s)"])
            return f"{self.texts(known, depth + 1)}.{call}"
        if form == "join":
            return f"'-'.join([str(q) for q in {self.lists(known, 1)}[:3]])"
        if form == "format":
            return f"f'{{{self.ints(known, 3)}}}:{{{self.texts(known, 2)}}}'".replace("''", "")
        return self.pick(self.of(known, "str"))

    def text(self, known):
        return self.pick(["'x'", "'y'", "'z'", "str(a)", "f'k{b}'"])

    def statements(self, known, indent, loop, n=None):
        """A block; variables that it makes are known in it alone."""
        known = dict(known)
        count = 1 + self.draw(4) if n is None else n
        for _ in range(count):
            if self.budget <= 0:
                break
            self.budget -= 1
            if self.statement(known, indent, loop):
                return
        if not self.lines or self.lines[-1].endswith(":"):
            self.add(indent, "pass")

    def add(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, known, indent, loop):
        """Writes a statement; whether what follows is never reached."""
        forms = ["assign", "assign", "augment", "append", "set", "optional", "pop", "assert", "swap", "new", "text",
                 "pair", "refine", "unpack"]
        if indent < 5:
            forms += ["if", "if", "if", "for", "for", "while", "each", "with"]
        if indent > 1:
            forms += ["return", "raise"]
        if loop:
            forms += ["break", "continue", "break", "continue"]
        form = self.pick(forms)
        if form in ("break", "continue"):
            self.add(indent, form)
            return True
        if form == "return":
            self.add(indent, f"return {self.result(known)}")
            return True
        if form == "raise":
            if self.draw(3):
                return False
            self.add(indent, f"raise ValueError(f'at {{a}}', {self.ints(known, 2)})")
            return True
        if form == "assign":
            self.add(indent, f"{self.pick(['a', 'b', *self.of(known, 'int')])} = {self.ints(known)}")
        elif form == "new":
            name, kind = f"v{next(self.names)}", self.pick(["int", "bool", "list", "str"])
            self.add(indent, f"{name} = " + {"int": self.ints, "bool": self.bools, "list": self.lists,
                                             "str": self.texts}[kind](known))
            known[name] = kind
        elif form == "augment":
            name, sign = self.pick(self.of(known, "int")), self.pick(["+", "-", "*", "%"])
            self.add(indent, f"{name} {sign}= {self.ints(known)}")
        elif form == "append":
            name = self.pick(self.of(known, "list"))
            self.add(indent, f"{name}.{self.pick(['append', 'append', 'remove'])}({self.ints(known)})")
        elif form == "pop":
            self.add(indent, f"{self.pick(['a', 'b'])} = {self.pick(self.of(known, 'list'))}.pop()")
        elif form == "set":
            self.add(indent, self.pick([f"words[{self.text(known)}] = {self.ints(known)}",
                                        f"items[{self.ints(known, 2)} % 3] = {self.ints(known)}",
                                        f"words[{self.text(known)}] += {self.ints(known)}"]))
        elif form == "optional":
            self.add(indent, self.pick([f"maybe = {self.ints(known)}", "maybe = None",
                                        f"maybe = {self.ints(known, 2)} if {self.bools(known, 2)} else None"]))
        elif form == "text":
            self.add(indent, self.pick([f"s = {self.texts(known)}[:9]", f"s += {self.texts(known)}[:3]"]))
        elif form == "pair":
            self.add(indent, self.pick([f"pair = ({self.ints(known)}, {self.texts(known)})", "pair = (a, s)"]))
        elif form == "unpack":
            self.add(indent, self.pick(["a, s = pair", f"(a, b), s = (b, {self.ints(known)}), pair[1]"]))
        elif form == "refine":
            name = f"m{next(self.names)}"
            form = self.pick(["block", "else", "assert", "leave" if loop else "return"])
            if form == "block":
                self.add(indent, "if maybe is not None:")
                self.add(indent + 1, f"{name} = maybe + 1")
                self.statements({**known, name: "int"}, indent + 1, loop)
            elif form == "else":
                self.add(indent, "if maybe is None:")
                self.statements(known, indent + 1, loop)
                self.add(indent, "else:")
                self.add(indent + 1, f"{name} = maybe * 2")
                self.statements({**known, name: "int"}, indent + 1, loop)
            else:
                if form == "assert":
                    self.add(indent, "assert maybe is not None")
                else:
                    self.add(indent, "if maybe is None:")
                    self.add(indent + 1, self.pick(["break", "continue"]) if form == "leave"
                             else f"return {self.result(known)}")
                self.add(indent, f"{name} = maybe - 1")
                known[name] = "int"
        elif form == "assert":
            self.add(indent, f"assert {self.bools(known)} or a > -3, f'{{a}} {{b}}'")
        elif form == "swap":
            self.add(indent, f"a, b = b, {self.ints(known)}")
        elif form == "if":
            self.add(indent, f"if {self.bools(known)}:")
            self.statements(known, indent + 1, loop)
            if self.draw(2):
                self.add(indent, f"elif {self.bools(known)}:")
                self.statements(known, indent + 1, loop)
            if self.draw(2):
                self.add(indent, "else:")
                self.statements(known, indent + 1, loop)
        elif form == "with":
            self.add(indent, "with no_grad():")
            self.statements(known, indent + 1, loop)
        elif form == "for":
            name = f"i{next(self.names)}"
            self.add(indent, f"for {name} in range({self.pick(['3', 'a % 5', '2, 7, 2', 'b % 4, -1, -1'])}):")
            self.statements({**known, name: "int"}, indent + 1, True)
        elif form == "each":
            name, k = f"e{next(self.names)}", f"k{next(self.names)}"
            text, more = self.pick([(f"for {name} in {self.lists(known, 1)}[:4]:", {}),
                                    (f"for {k}, {name} in enumerate({self.lists(known, 1)}[:3]):", {k: "int"}),
                                    (f"for {k}, {name} in zip(range(4), {self.lists(known, 1)}):", {k: "int"}),
                                    (f"for {k}, {name} in words.items():", {})])
            self.add(indent, text)
            self.statements({**known, name: "int", **more}, indent + 1, True)
        elif form == "while":
            name = f"w{next(self.names)}"
            self.add(indent, f"{name} = 0")
            known[name] = "counter"
            self.add(indent, f"while {name} < {2 + self.draw(3)} and {self.bools(known)}:")
            self.add(indent + 1, f"{name} += 1")
            self.statements(known, indent + 1, True)
        return False

    def result(self, known):
        return f"{self.ints(known)}, {self.bools(known, 2)}, {self.pick(self.of(known, 'list'))}, maybe, s, pair"

    def program(self):
        self.statements(START, 1, False, 3 + self.draw(5))
        self.add(1, f"return {self.result(START)}")
        return HEAD + "\n".join(self.lines) + "\n"


def helper(x: int, y: int):
    if x > y:
        return x - y
    for k in range(3):
        if k * x > y:
            return k
    return y


def outcome(f, args):
    """What a call gives, or raises, and what it made of its arguments."""
    args = copy.deepcopy(args)
    try:
        found = f(*args)
    except Exception as error:
        return "raised", next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"), str(error), args
    return found, args


ARGUMENTS = [(3, 2, [1, 2, 3], {"x": 1}, None, True, "abc", (4, "q")), (0, -1, [], {}, 4, False, "", (0, "")),
             (7, 5, [5, -1, 0, 9], {"y": 2, "z": 0}, 0, True, "a-b a", (-2, "ab"))]


HELD = """
class Held(nn.Module):
    def __init__(self, a, b, maybe: Optional[int], flag, s):
        super().__init__()
        self.a, self.b, self.flag, self.s = a, b, flag, s
        self.maybe: Optional[int] = maybe

    def forward(self, items: List[int], words: Dict[str, int], pair: Tuple[int, str]):
        return f(self.a, self.b, items, words, self.maybe, self.flag, self.s, pair)
"""


@contextlib.contextmanager
def defined(text):
    """The names that a program defines; script finds its text."""
    from typing import Dict, List, Optional, Tuple
    name = f"<program {next(_number)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space = {"List": List, "Dict": Dict, "Optional": Optional, "Tuple": Tuple, "helper": helper,
             "no_grad": ptcore.no_grad, "nn": ptcore.nn, "__name__": __name__}
    try:
        exec(compile(text, name, "exec"), space)
        yield space
    finally:
        linecache.cache.pop(name, None)


def check(text):
    """Runs a program by Python and by script."""
    with defined(text) as space:
        scripted = jit.script(space["f"])
        scripted.graph.lint()
        for args in ARGUMENTS:
            want, got = outcome(space["f"], args), outcome(scripted, args)
            assert got == want, f"{text}\n{args}\nscript {got}\nPython {want}"


def check_frozen(text):
    """Runs a program by Python, and by a frozen module that has most arguments as constants."""
    with defined(text + HELD) as space:
        for a, b, items, words, maybe, flag, s, pair in ARGUMENTS:
            frozen = jit.freeze(jit.script(space["Held"](a, b, maybe, flag, s).eval()))
            frozen.graph.lint()
            want = outcome(lambda *x, k=(a, b, maybe, flag, s): space["f"](*k[:2], *x[:2], *k[2:], x[2]),
                           (items, words, pair))
            got = outcome(frozen, (items, words, pair))
            assert got == want, f"{text}\n{(a, b, maybe, flag, s)}\nfrozen {got}\nPython {want}"


@settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES <= 2000, suppress_health_check=list(HealthCheck),
          database=None)
@given(st.randoms(use_true_random=True))
def test_random_programs(source):
    check(Writer(lambda n: source.randrange(n)).program())


@pytest.mark.parametrize("seed", range(20))
def test_fixed_programs(seed):
    source = random.Random(seed)
    check(Writer(lambda n: source.randrange(n)).program())


@pytest.mark.parametrize("seed", range(100))
def test_frozen_programs(seed):
    source = random.Random(seed)
    check_frozen(Writer(lambda n: source.randrange(n)).program())
