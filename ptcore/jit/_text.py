"""Graphs as text, and back. The text is data: reading it looks names up in tables and runs nothing.

A line is a node, in the order in which they run, and the blocks of a node stand below it::

    graph(%x, %w = "weight"):
      %y = row.linear(%x, %w, None)  # "model.py" 7 "forward"
      %z = inplace.relu(%y)
      %k = cond(%p, %z)
        block(%z_1):
          return %z_1
        block(%z_2):
          %n = row.neg(%z_2)
          return %n
      return (%z, [1, 2.5, "a"])

Numbers are written so that the same bits come back; names of tensors that a graph reads of its module stand as texts.
``row.`` and ``inplace.`` name ops of the table, ``method.`` methods of Tensor, ``module.`` modules of the root; all
other functions are those that :func:`register` was told of.
"""
import json
import math
import operator
import re

from ptcore._device import device
from ptcore._dtype import dtype
from ptcore._expressions import FUNCTIONS
from ptcore._memory_format import memory_format
from ptcore._ops import function as function_of_row
from ptcore._ops.table.ids import op_name
from ptcore._shape import Size
from ptcore._tensor import strided
from ptcore.fx.experimental._sizes import check_guards, sym_dim, sym_size
from ptcore.fx.graph import Graph
from ptcore.fx.node import Node, OpFunction
from ptcore.serialization import CorruptFileError

__all__ = ["parse", "register", "to_text"]

LEVELS = 200                        # of values in values, and of blocks in blocks
_functions, _names = {}, {}


def register(name, function):
    """Gives a function that nodes call a name in texts, which stays its name in all later releases."""
    if name in _functions or not re.fullmatch(r"[a-z_]\w*(\.\w+)*", name):
        raise ValueError(f"register: {name!r} is taken, or is no name")
    _functions[name] = function
    _names[function] = name


for _name, _function in (("getitem", operator.getitem), ("size", sym_size), ("dim", sym_dim), ("check", check_guards)):
    register(_name, _function)
for _name, _function in sorted(FUNCTIONS.items()):             # two names may mean one function
    if _function not in _names:
        register(f"number.{_name.strip('_')}", _function)


# -- writing ------------------------------------------------------------------------------------------------

def to_text(graph):
    """The text of a graph.

    Raises
    ------
    TypeError
        If a node calls, or has an argument, that has no name in texts.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx.experimental.proxy_tensor import make_fx
    >>> from ptcore.jit._text import to_text
    >>> graph = make_fx(lambda x: x.sum(0) + 1.5, record_stack_traces=False)(ptcore.ones(2)).graph
    >>> print(to_text(graph), end="")
    graph(%x_1):
      %sum = row.sum(%x_1, (0,), False, None)
      %add = row.add(%sum, 1.5)
      return %add
    """
    lines = []
    _write(graph, "graph", "", lines)
    return "".join([f"{line}\n" for line in lines])


def _write(graph, word, indent, lines):
    nodes = list(graph.nodes)
    inputs = [node for node in nodes if node.op in ("placeholder", "get_attr")]
    head = []
    for node in inputs:
        text = f"%{node.name}{_type(node)}"
        if node.op == "get_attr":
            text += f" = {json.dumps(node.target)}"
        elif node.target != node.name:
            text += f" as {json.dumps(node.target)}"
        if node.op == "placeholder" and node.args:
            text += f" default {_value(node.args[0], node)}"
        head.append(text)
    lines.append(f"{indent}{word}({', '.join(head)}):")
    for node in nodes:
        if node.op in ("placeholder", "get_attr"):
            continue
        if node.op == "output":
            lines.append(f"{indent}  return {_value(node.args[0], node)}")
            continue
        args = [_value(a, node) for a in node.args]
        args += [f"{key}={_value(x, node)}" for key, x in node.kwargs.items()]
        where = node.meta.get("where")
        text = f"{indent}  %{node.name}{_type(node)} = {_target(node)}({', '.join(args)})"
        if where is not None:
            text += f"  # {json.dumps(where[0])} {where[1]} {json.dumps(where[2])}"
        lines.append(text)
        for block in getattr(node, "blocks", ()):
            _write(block, "block", f"{indent}    ", lines)


def _type(node):
    return "" if node.type is None else f": {json.dumps(str(node.type))}"


def _target(node):
    if node.op == "call_method":
        return f"method.{node.target}"
    if node.op == "call_module":
        return f"module.{node.target}"
    if type(node.target) is OpFunction:
        name = op_name(node.target.op)
        return f"row.{name}" if node.target is function_of_row(name) else f"inplace.{name}"
    name = _names.get(node.target)
    if name is None:
        raise TypeError(f"a graph that calls {getattr(node.target, '__name__', node.target)} has no text: it is no op "
                        f"of the table (node {node.name})")
    return name


def _value(x, node, level=0):
    """An argument as text."""
    if level > LEVELS:
        raise TypeError(f"a graph whose arguments are nested more than {LEVELS} deep has no text (node {node.name})")
    if x is None or x is True or x is False or type(x) is int:
        return str(x)
    kind = type(x)
    if kind is float:
        return repr(x) if math.isfinite(x) else "nan" if x != x else "inf" if x > 0 else "-inf"
    if kind is Node:
        return f"%{x.name}"
    if kind is str:
        return json.dumps(x)
    if kind is complex:
        return f"complex({_value(x.real, node)}, {_value(x.imag, node)})"
    if kind is Size or kind is tuple:
        inside = ", ".join([_value(a, node, level + 1) for a in x])
        return f"({inside},)" if len(x) == 1 else f"({inside})"
    if isinstance(x, list):
        return f"[{', '.join([_value(a, node, level + 1) for a in x])}]"
    if isinstance(x, dict):
        return "{" + ", ".join([f"{_value(key, node, level + 1)}: {_value(a, node, level + 1)}"
                                for key, a in x.items()]) + "}"
    if kind is slice:
        return f"slice({', '.join([_value(a, node, level + 1) for a in (x.start, x.stop, x.step)])})"
    if kind is dtype:
        return f"dtype.{x.name}"
    if kind is device:
        return f"device({json.dumps(str(x))})"
    if kind is memory_format:
        return f"memory_format.{str(x).rpartition('.')[2]}"
    if kind is type(strided):
        return f"layout.{str(x).rpartition('.')[2]}"
    raise TypeError(f"a graph with a value of {kind.__name__} has no text (node {node.name})")


# -- reading ------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"""
    (?P<node>%[A-Za-z_]\w*)
  | (?P<number>-?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+|inf\b))
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
  | (?P<mark>[()\[\]{},:=])
  | (?P<comment>\#)
  | (?P<space>[ ]+)
""", re.VERBOSE)
_CONSTANTS = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}
_MOST_DIGITS = 4000


class _Line:
    """The tokens of a line."""

    def __init__(self, number, text):
        self.number, self.at, self.tokens = number, 0, []
        end = 0
        while end < len(text):
            match = _TOKEN.match(text, end)
            if match is None:
                self.fail(f"{text[end:end + 20]!r} is no value")
            end = match.end()
            if match.lastgroup != "space":
                self.tokens.append((match.lastgroup, match.group()))
        self.tokens.append(("end", ""))

    def fail(self, why):
        raise CorruptFileError(f"the text of a graph is damaged at line {self.number}: {why}")

    def next(self, kind=None, text=None):
        token = self.tokens[self.at]
        if (kind is not None and token[0] != kind) or (text is not None and token[1] != text):
            self.fail(f"{text or kind} is expected, and {token[1]!r} found")
        self.at += 1
        return token[1]

    def has(self, text):
        """Whether the next token is this mark or name, which is then passed."""
        kind, found = self.tokens[self.at]
        if found != text or kind == "text":
            return False
        self.at += 1
        return True

    def text(self):
        return _text(self, self.next("text"))


def _text(line, token):
    try:
        return json.loads(token)
    except ValueError:
        line.fail("a text is damaged")


class _Reader:
    """Reads lines; a block ends where lines are less deep."""

    def __init__(self, text):
        self.lines = text.split("\n")
        if self.lines.pop():
            raise CorruptFileError("the text of a graph is cut off")
        self.at = 0

    def depth(self):
        """The spaces before the next line; -1: there is none."""
        if self.at == len(self.lines):
            return -1
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def line(self):
        if self.at == len(self.lines):
            raise CorruptFileError("the text of a graph is cut off")
        self.at += 1
        return _Line(self.at, self.lines[self.at - 1])

    def graph(self, word, depth=0):
        if depth > 4 * LEVELS:
            raise CorruptFileError("the text of a graph has too many blocks in blocks")
        line = self.line()
        line.next("name", word)
        graph, nodes = Graph(), {}
        line.next("mark", "(")
        while not line.has(")"):
            self.input(line, graph, nodes)
            if not line.has(","):
                line.next("mark", ")")
                break
        line.next("mark", ":")
        line.next("end")
        while True:
            if self.depth() != depth + 2:
                raise CorruptFileError(f"the text of a graph is damaged at line {self.at + 1}: it is not as deep as "
                                       "it has to be, or its return is missing")
            line = self.line()
            if line.has("return"):
                graph.output(self.value(line, nodes))
                line.next("end")
                return graph
            self.node(line, graph, nodes, depth)

    def named(self, line, nodes):
        name = line.next("node")[1:]
        if name in nodes:
            line.fail(f"there are two values %{name}")
        return name

    def input(self, line, graph, nodes):
        name = self.named(line, nodes)
        annotation = line.text() if line.has(":") else None
        target, op, args = name, "placeholder", ()
        if line.has("="):
            op, target = "get_attr", line.text()
        else:
            if line.has("as"):
                target = line.text()
            if line.has("default"):
                args = (self.value(line, nodes),)
        self.add(line, graph, nodes, op, target, args, {}, name, annotation)

    def add(self, line, graph, nodes, op, target, args, kwargs, name, annotation):
        node = graph.create_node(op, target, args, kwargs, name, annotation)
        if node.name != name:
            line.fail(f"%{name} is no name of a value")
        nodes[name] = node
        return node

    def node(self, line, graph, nodes, depth):
        name = self.named(line, nodes)
        annotation = line.text() if line.has(":") else None
        line.next("mark", "=")
        op, target = self.target(line)
        line.next("mark", "(")
        args, kwargs = [], {}
        while not line.has(")"):
            kind, key = line.tokens[line.at]
            if kind == "name" and line.tokens[line.at + 1] == ("mark", "="):
                line.at += 2
                if key in kwargs or "." in key:
                    line.fail(f"{key} is given twice, or is no name")
                kwargs[key] = self.value(line, nodes)
            elif kwargs:
                line.fail("an argument by position stands behind one by name")
            else:
                args.append(self.value(line, nodes))
            if not line.has(","):
                line.next("mark", ")")
                break
        where = None
        if line.has("#"):
            where = line.text(), self.whole(line), line.text()
        line.next("end")
        node = self.add(line, graph, nodes, op, target, tuple(args), kwargs, name, annotation)
        if where is not None:
            node.meta["where"] = where
        blocks = []
        while self.depth() == depth + 4:
            blocks.append(self.graph("block", depth + 4))
        if blocks:
            node.blocks = tuple(blocks)

    @staticmethod
    def whole(line):
        text = line.next("number")
        if not text.isdigit() or len(text) > 9:
            line.fail("a number of a line is expected")
        return int(text)

    @staticmethod
    def target(line):
        name = line.next("name")
        kind, _, rest = name.partition(".")
        if kind in ("row", "inplace"):
            try:
                function = function_of_row(rest, kind == "inplace")
            except (KeyError, AttributeError, TypeError):
                function = None
            if function is None:
                line.fail(f"there is no op {rest}" + (" in place" if kind == "inplace" else ""))
            return "call_function", function
        if kind == "method" and rest.isidentifier():
            return "call_method", rest
        if kind == "module" and rest:
            return "call_module", rest
        if name not in _functions:
            line.fail(f"there is no function {name}")
        return "call_function", _functions[name]

    def value(self, line, nodes, level=0):
        if level > LEVELS:
            line.fail("values are nested too deep")
        kind, token = line.tokens[line.at]
        line.at += 1
        if kind == "node":
            if token[1:] not in nodes:
                line.fail(f"there is no value {token} yet")
            return nodes[token[1:]]
        if kind == "number":
            return self.number(line, token)
        if kind == "text":
            return _text(line, token)
        if kind == "name":
            return self.word(line, token, nodes, level)
        if token == "(":
            items, single = self.items(line, nodes, ")", level)
            if len(items) == 1 and not single:
                line.fail("a tuple of one needs a comma")
            return tuple(items)
        if token == "[":
            return self.items(line, nodes, "]", level)[0]
        if token == "{":
            return self.pairs(line, nodes, level)
        return line.fail(f"a value is expected, and {token!r} found")

    @staticmethod
    def number(line, token):
        if len(token) > _MOST_DIGITS:
            line.fail("a number is too long")
        if token.lstrip("-").isdigit():
            return int(token)
        return float(token)

    def items(self, line, nodes, end, level):
        """The values up to a mark, and whether a comma stands behind the last."""
        items, comma = [], False
        while not line.has(end):
            items.append(self.value(line, nodes, level + 1))
            comma = line.has(",")
            if not comma:
                line.next("mark", end)
                break
        return items, comma

    def pairs(self, line, nodes, level):
        found = {}
        while not line.has("}"):
            key = self.value(line, nodes, level + 1)
            if not isinstance(key, (str, int, float, bool)) or key in found:
                line.fail("a key is no text or number, or stands twice")
            line.next("mark", ":")
            found[key] = self.value(line, nodes, level + 1)
            if not line.has(","):
                line.next("mark", "}")
                break
        return found

    def word(self, line, name, nodes, level):
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        kind, _, rest = name.partition(".")
        if kind in _WORDS and rest:
            found = _WORDS[kind]().get(rest)
            if found is None:
                line.fail(f"there is no {name}")
            return found
        if name in ("complex", "slice", "device"):
            line.next("mark", "(")
            items, _ = self.items(line, nodes, ")", level)
            try:
                return _made(name, items)
            except (TypeError, ValueError, RuntimeError):
                line.fail(f"it is no {name}")
        return line.fail(f"{name} is no value")


def _made(name, items):
    if name == "complex":
        real, imag = items
        if type(real) is not float or type(imag) is not float:
            raise TypeError(name)
        return complex(real, imag)
    if name == "slice":
        start, stop, step = items
        return slice(start, stop, step)
    (text,) = items
    if type(text) is not str:
        raise TypeError(name)
    return device(text)


def _dtypes():
    from ptcore import _dtype
    return {d.name: d for d in _dtype.ALL}


def _formats():
    import ptcore
    return {name: getattr(ptcore, name) for name in ("contiguous_format", "preserve_format", "channels_last",
                                                     "channels_last_3d")}


def _layouts():
    import ptcore
    return {"strided": ptcore.strided}


_WORDS = {"dtype": _dtypes, "memory_format": _formats, "layout": _layouts}


def parse(text):
    """The graph of a text.

    Raises
    ------
    CorruptFileError
        If it is no text of a graph, or names an op or a function that there is not.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.jit._text import parse, to_text
    >>> text = "graph(%x):\\n  %y = row.add(%x, 1)\\n  return (%y, %x)\\n"
    >>> to_text(parse(text)) == text
    True
    """
    reader = _Reader(text)
    graph = reader.graph("graph")
    if reader.at != len(reader.lines):
        raise CorruptFileError(f"the text of a graph goes on behind its end at line {reader.at + 1}")
    return graph
