"""The text form of graphs: ``to_text`` writes, ``parse`` reads; there and back gives the same graph.

A graph is ``graph { ... }`` with one node a line::

    graph {
      %x : Tensor = placeholder "x"
      %n : int = placeholder "n" = 3
      %mul : Tensor = call "row.mul" (%x, %n) @ "net.py" 12 "f"
      %sum : Tensor = method "sum" (%mul, dim = 0)
      %w : Tensor = attr "layer.weight"
      %y : Tensor = module "layer" (%sum)
      %cond = call "block.cond" (True, %y) graph {
        ...
      } graph {
        ...
      }
      return %y : Tensor
    }

Functions are named in a closed table. Nothing is imported, looked up in modules that a text names, or run. The caller
gives ``parse`` the functions and classes of the program itself.
"""
import enum
import json
import math
import re

import ptcore
from ptcore._dtype import dtype as _dtype
from ptcore._ops import function as function_of_row
from ptcore._ops import row
from ptcore._ops.table.ids import op_name
from ptcore._ops.table.schema import DTYPES
from ptcore.fx import blocks as _blocks
from ptcore.fx.graph import Graph
from ptcore.fx.node import Node, OpFunction
from ptcore.fx.writer import ValueWriter
from ptcore.jit._script import types
from ptcore.jit._script.functions import ScriptFunction
from ptcore.jit._script.names import function_named, name_of
from ptcore.jit._script.types import Type
from ptcore.serialization import CorruptFileError

__all__ = ["Names", "TextError", "class_name", "parse", "parse_type", "parse_value", "to_text", "value_text"]

_WORDS = {"call_function": "call", "call_method": "method", "call_module": "module", "get_attr": "attr"}
_OPS = {word: op for op, word in _WORDS.items()}
_PARENS = {"(": ")", "[": "]", "{": "}"}


class TextError(CorruptFileError):
    """Raised for a text that is no graph, naming the line, and for a graph that cannot be written as text.
    """


def class_name(cls):
    """The name of a program's own class in texts."""
    return f"{cls.__module__}:{cls.__qualname__}"


# -- writing -------------------------------------------------------------------------------------------

def to_text(graph, names=None):
    """A graph as text.

    Parameters
    ----------
    graph : Graph
    names : Names, optional
        Names of the program's own functions and classes, for use if qualified names may be ambiguous.

    Returns
    -------
    str

    Raises
    ------
    TextError
        If the graph holds an object without a name, such as a Python function that it calls.
    """
    return "\n".join(_Writer(names or Names()).graph(graph, 0)) + "\n"


def value_text(a, names=None):
    """A value, or a static type, as text."""
    writer = _Writer(names or Names())
    return writer.type(a) if isinstance(a, Type) else writer.value(a)


class Names:
    """The names of a program's own functions and classes in its texts; by default their qualified names."""

    def of_function(self, f):
        return f.qualified_name

    def of_class(self, cls):
        return class_name(cls)


class _Writer(ValueWriter):
    """Writes lines of graphs."""

    CALL = "{} ({})"

    def __init__(self, names):
        self.names = names

    def graph(self, graph, indent):
        pad = "  " * (indent + 1)
        lines = ["graph {"]
        for node in graph.nodes:
            where = node.meta.get("where")
            at = "" if where is None else f" @ {json.dumps(where[0])} {where[1]} {json.dumps(where[2])}"
            effect = " effect" if node.meta.get("effect") else ""
            of_type = "" if node.type is None else f" : {self.type(node.type)}"
            if node.op == "output":
                lines.append(f"{pad}return {self.value(node.args[0])}{of_type}{at}")
                continue
            head = f"{pad}%{node.name}{of_type} = "
            if node.op == "placeholder":
                default = f" = {self.value(node.args[0])}" if node.args else ""
                only = " keyword_only" if node.meta.get("keyword_only") else ""
                lines.append(f"{head}placeholder {json.dumps(node.target)}{only}{default}{at}")
                continue
            target = node.target if isinstance(node.target, str) else self.function(node.target)
            called = "" if node.op == "get_attr" else f" ({self.arguments(node.args, node.kwargs)})"
            lines.append(f"{head}{_WORDS[node.op]} {json.dumps(target)}{called}{effect}{at}")
            for block in node.blocks:
                first, *rest = self.graph(block, indent + 1)
                lines[-1] += f" {first}"
                lines += rest
        return [*lines, "  " * indent + "}"]

    def function(self, f):
        if isinstance(f, OpFunction):
            name = op_name(f.op)
            return f"row.{name}" if function_of_row(name) is f else f"inplace.{name}"
        if isinstance(f, ScriptFunction):
            return f"function.{self.names.of_function(f)}"
        name = name_of(f)
        if name is not None:
            return name
        if isinstance(f, type) and (hasattr(f, "_fields") or issubclass(f, (enum.Enum, Exception))
                                    or types.known_class(f) is not None):
            return f"class.{self.names.of_class(f)}"
        raise TextError(f"{getattr(f, '__qualname__', f)!r} has no name in the text form of a graph: functions of "
                        "Python that are called as they are (@ignore) cannot be written")

    def node(self, node):
        return f"%{node.name}"

    def member(self, a):
        return f"enum {json.dumps(self.names.of_class(type(a)))} {json.dumps(a.name)}"

    def leaf(self, a):
        if a is None or a is True or a is False:
            return str(a)
        if a is Ellipsis:
            return "..."
        if isinstance(a, int):
            return repr(int(a))
        if isinstance(a, float):
            return float.__repr__(a) if math.isfinite(a) else {math.inf: "inf", -math.inf: "-inf"}.get(a, "nan")
        if isinstance(a, complex):
            return f"complex ({self.value(a.real)}, {self.value(a.imag)})"
        if isinstance(a, str):
            return json.dumps(a)
        if isinstance(a, _dtype):
            return f"dtype {json.dumps(a.name)}"
        if isinstance(a, ptcore.device):
            return f"device {json.dumps(str(a))}"
        if isinstance(a, ptcore.memory_format):
            return f"memory_format {json.dumps(a.name)}"
        if isinstance(a, type(ptcore.strided)):
            return f"layout {json.dumps(str(a).rpartition('.')[2])}"
        if isinstance(a, Type):
            return f"type {self.type(a)}"
        return f"object {json.dumps(self.function(a))}"

    def type(self, t):
        if not isinstance(t, Type):
            raise TextError(f"the type {t!r} of a node is none of script")
        if t.kind == "NamedTuple" and getattr(ptcore.return_types, t.cls.__name__, None) is t.cls:
            return f"Result {json.dumps(t.cls.__name__)}"
        if t.kind in ("NamedTuple", "Enum", "Class", "Module"):
            return f"{t.kind} {json.dumps(self.names.of_class(t.cls))}"
        return f"{t.kind}[{', '.join(map(self.type, t.args))}]" if t.args or t.kind == "Tuple" else t.kind


# -- reading -------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"""\s*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<node>%[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+)|-inf) | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<dots>\.\.\.) | (?P<sign>[()\[\]{}=:,@]) )""", re.X)
_PLAIN = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}
_KINDS = ("Tensor", "int", "float", "bool", "complex", "str", "None", "device", "dtype", "memory_format", "Generator",
          "Any", "number", "List", "Dict", "Tuple", "Union", "Future", "context", "finfo", "iinfo")
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_DEPTH, _DIGITS = 200, 4000


def parse(text, functions=None, classes=None):
    """The graph of a text.

    Parameters
    ----------
    text : str
    functions : mapping of str to ScriptFunction, optional
        The program's own functions, by their qualified names.
    classes : mapping of str to type, optional
        The program's own classes, by what ``class_name`` says.

    Returns
    -------
    Graph

    Raises
    ------
    TextError
        If the text is no graph, or contains an unknown name.
    """
    reader = _Reader(text, functions or {}, classes or {})
    graph = reader.graph(0)
    reader.end()
    return graph


def parse_value(text, functions=None, classes=None):
    """The value of a text."""
    reader = _Reader(text, functions or {}, classes or {})
    value = reader.value({})
    reader.end()
    return value


def parse_type(text, classes=None):
    """The static type of a text."""
    reader = _Reader(text, {}, classes or {})
    found = reader.type()
    reader.end()
    return found


class _Reader:
    """Reads a text, token by token."""

    def __init__(self, text, functions, classes):
        self.text, self.functions, self.classes, self.place = text, functions, classes, 0
        self.advance()

    def error(self, message):
        line = self.text.count("\n", 0, self.start) + 1
        raise TextError(f"line {line} of a graph's text: {message}")

    def advance(self):
        found = _TOKEN.match(self.text, self.place)
        self.start = self.place
        if found is None:
            if self.text[self.place:].strip():
                self.error(f"{self.text[self.place:].lstrip()[:20]!r} cannot be read")
            self.kind, self.token = "end", ""
            return
        self.kind, self.token = found.lastgroup, found.group(found.lastgroup)
        self.start, self.place = found.start(found.lastgroup), found.end()

    def take(self, kind, token=None):
        if self.kind != kind or (token is not None and self.token != token):
            self.error(f"expected {token or kind}, got {self.token!r}")
        found = self.token
        self.advance()
        return found

    def skip(self, token):
        """Passes over the next token if it is this sign or word; returns whether it was."""
        if self.kind in ("sign", "word") and self.token == token:
            self.advance()
            return True
        return False

    def end(self):
        if self.kind != "end":
            self.error(f"{self.token!r} behind the end")

    def string(self):
        start = self.start
        token = self.take("string")
        try:
            return json.loads(token)
        except ValueError:
            self.start = start
            self.error(f"{token} is no text")

    # -- graphs ------------------------------------------------------------------------------------

    def graph(self, depth):
        if depth > _DEPTH:
            self.error("blocks are nested too deep")
        self.take("word", "graph")
        self.take("sign", "{")
        graph, known = Graph(), {}
        while True:
            if self.skip("return"):
                value = self.value(known)
                node = graph.output(value, self.type() if self.skip(":") else None)
                self.where(node)
                break
            self.node(graph, known, depth)
        self.take("sign", "}")
        return graph

    def node(self, graph, known, depth):
        name = self.take("node")[1:]
        if name in known:
            self.error(f"%{name} is there already")
        of_type = self.type() if self.skip(":") else None
        self.take("sign", "=")
        word = self.take("word")
        if word == "placeholder":
            target, args, kwargs, op = self.string(), (), {}, word
            only = self.skip("keyword_only")
            if self.skip("="):
                args = (self.value(known),)
        elif word in _OPS:
            op, target = _OPS[word], self.string()
            args, kwargs = ((), {}) if op == "get_attr" else self.arguments(known)
            if op == "call_function":
                target = self.function(target)
        else:
            self.error(f"{word} is no kind of node")
        node = graph.create_node(op, target, args, kwargs, name, of_type)
        if node.name != name:
            self.error(f"%{name} is no name of a node")
        if word == "placeholder" and only:
            node.meta["keyword_only"] = True
        if self.skip("effect"):
            node.meta["effect"] = True
        self.where(node)
        blocks = []
        while self.kind == "word" and self.token == "graph":
            blocks.append(self.graph(depth + 1))
        self.check_blocks(node, blocks)
        node.blocks = tuple(blocks)
        known[name] = node

    def check_blocks(self, node, blocks):
        wanted = {_blocks.cond: 2, _blocks.loop: 1, _blocks.with_block: 1}.get(node.target if node.op == "call_function"
                                                                              else None, 0)
        if len(blocks) != wanted:
            self.error(f"%{node.name} has {len(blocks)} blocks, not {wanted}")
        for block in blocks:
            given = len(node.args) - (1 if node.target is _blocks.loop or node.target is _blocks.cond else 0)
            taken = len(block.find_nodes(op="placeholder"))
            if taken != given or not isinstance(block.output_node().args[0], tuple):
                self.error(f"a block of %{node.name} has {taken} arguments for {given} values, or gives no tuple")

    def where(self, node):
        if self.skip("@"):
            node.meta["where"] = self.string(), self.line(), self.string()

    def line(self):
        found = self.number()
        if not isinstance(found, int) or found < 0:
            self.error("a number of a line is expected")
        return found

    def arguments(self, known):
        args, kwargs = [], {}
        self.take("sign", "(")
        while not self.skip(")"):
            if self.kind == "word" and self.token not in _PLAIN and self.text[self.place:self.place + 2] == " =":
                key = self.take("word")
                self.take("sign", "=")
                kwargs[key] = self.value(known)
            else:
                args.append(self.value(known))
            if not self.skip(","):
                self.take("sign", ")")
                break
        return tuple(args), kwargs

    def function(self, name):
        head, _, rest = name.partition(".")
        if head in ("row", "inplace"):
            try:
                row(rest)
                found = function_of_row(rest, head == "inplace")
            except (KeyError, AttributeError):
                found = None
        elif head == "function":
            found = self.functions.get(rest)
        elif head == "class":
            found = self.classes.get(rest)
        else:
            found = function_named(name)
        if found is None:
            self.error(f"there is no function {name!r}")
        return found

    def class_of(self):
        name = self.string()
        found = self.classes.get(name)
        if found is None:
            self.error(f"the class {name!r} is not known")
        return found

    # -- values and types --------------------------------------------------------------------------

    def value(self, known, depth=0):
        if depth > _DEPTH:
            self.error("values are nested too deep")
        if self.kind == "node":
            node = known.get(self.token[1:])
            if node is None:
                self.error(f"{self.token} is not known here")
            self.advance()
            return node
        if self.kind == "string":
            return self.string()
        if self.kind == "number":
            return self.number()
        if self.kind == "dots":
            self.advance()
            return Ellipsis
        if self.kind == "sign" and self.token in "([{":
            return self.container(known, depth)
        word = self.take("word")
        if word in _PLAIN:
            return _PLAIN[word]
        method = getattr(self, f"read_{word}", None)
        if method is None:
            self.error(f"{word} is no value")
        return method(known, depth)

    def number(self):
        start, token = self.start, self.take("number")
        if len(token) > _DIGITS:
            self.start = start
            self.error("a number is too long")
        return int(token) if re.fullmatch(r"-?\d+", token) else float(token)

    def container(self, known, depth):
        start = self.take("sign")
        end, items, keys, commas = _PARENS[start], [], set(), 0
        while not self.skip(end):
            item = self.value(known, depth + 1)
            if start == "{":
                if not isinstance(item, (str, int, float, complex, Node)) or item in keys:
                    self.error("a key is no text, number or value, or stands twice")
                keys.add(item)
                self.take("sign", ":")
                item = item, self.value(known, depth + 1)
            items.append(item)
            if not self.skip(","):
                self.take("sign", end)
                break
            commas += 1
        if start == "(" and len(items) == 1 and not commas:
            self.error("a value in parentheses alone")
        return tuple(items) if start == "(" else items if start == "[" else dict(items)

    def some(self, known, depth, n):
        items = self.value(known, depth + 1)
        if not isinstance(items, tuple) or len(items) != n:
            self.error(f"expected {n} values in parentheses")
        return items

    def read_complex(self, known, depth):
        parts = self.some(known, depth, 2)
        if not all([isinstance(p, float) for p in parts]):
            self.error("a complex number has two floats")
        return complex(*parts)

    def read_slice(self, known, depth):
        return slice(*self.some(known, depth, 3))

    def read_dtype(self, known, depth):
        name = self.string()
        if name not in DTYPES:
            self.error(f"there is no dtype {name!r}")
        return getattr(ptcore, name)

    def read_device(self, known, depth):
        name = self.string()
        try:
            return ptcore.device(name)
        except (RuntimeError, ValueError):
            self.error(f"there is no device {name!r}")

    def read_memory_format(self, known, depth):
        name = self.string()
        if name not in _MEMORY_FORMATS:
            self.error(f"there is no memory format {name!r}")
        return getattr(ptcore, name)

    def read_layout(self, known, depth):
        if self.string() != "strided":
            self.error("there is no such layout")
        return ptcore.strided

    def read_enum(self, known, depth):
        cls, name = self.class_of(), self.string()
        if not issubclass(cls, enum.Enum) or name not in cls.__members__:
            self.error(f"there is no member {name!r}")
        return cls[name]

    def read_type(self, known, depth):
        return self.type()

    def read_object(self, known, depth):
        return self.function(self.string())

    def type(self, depth=0):
        if depth > _DEPTH:
            self.error("types are nested too deep")
        kind = self.take("word")
        if kind == "Result":
            name = self.string()
            if name not in ptcore.return_types.__all__:
                self.error(f"there is no type of results {name!r}")
            cls = getattr(ptcore.return_types, name)
            return Type("NamedTuple", (types.TENSOR,) * len(cls.__match_args__), cls)
        if kind in ("NamedTuple", "Enum", "Class"):
            cls = self.class_of()
            return types.named_tuple(cls) if kind == "NamedTuple" else Type(kind, (), cls)
        if kind not in _KINDS:
            self.error(f"{kind} is no type")
        args = []
        if self.skip("["):
            while not self.skip("]"):
                args.append(self.type(depth + 1))
                if not self.skip(","):
                    self.take("sign", "]")
                    break
        wanted = {"List": 1, "Future": 1, "Dict": 2}.get(kind)
        if (len(args) != wanted) if wanted else (args and kind not in ("Tuple", "Union")):
            self.error(f"{kind} of {len(args)} types")
        return Type(kind, args)
