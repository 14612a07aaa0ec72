"""Function schemas: PyTorch's text of an op's signature, ``foo(Tensor x, int[] dims=[0], *, str s="a") -> Tensor``.

``parse_schema`` reads a schema. Its arguments convert the values of callers (``Argument.convert``).
"""
import ast
import re

from ptcore import _dtype
from ptcore._device import device
from ptcore._errors import SchemaError
from ptcore._shape import is_symbolic_number
from ptcore._tensor import Tensor

__all__ = ["AliasInfo", "Argument", "FunctionSchema", "SchemaType", "parse_schema"]

_TOKEN = re.compile(r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
                         |(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?j?)
                         |(?P<word>[A-Za-z_][\w.]*(?:::\w[\w.]*)?)|(?P<sign>->|[()\[\]{}?*!,=|:-]))""", re.VERBOSE)
# Words for numbers in the schemas of PyTorch's own ops.
_WORDS = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2, "nan": float("nan"), "inf": float("inf"),
          "long": _dtype.int64, "float": _dtype.float32, "double": _dtype.float64}


class AliasInfo:
    """The annotation ``(a!)`` of a type: the sets of memory before and after the call, and whether it is written to.

    ``depth`` counts the brackets and question marks before it: ``Tensor(a!)[]`` has 0, ``Tensor[](a!)`` 1.
    """

    __slots__ = ("_after", "_before", "after_set", "before_set", "depth", "is_write")

    def __init__(self, before, after, is_write, depth=0):
        self._before, self._after, self.is_write, self.depth = before, after, is_write, depth
        self.before_set, self.after_set = frozenset(before), frozenset(after)

    def __str__(self):
        before, after = "|".join(self._before) + ("!" if self.is_write else ""), "|".join(self._after)
        return f"({before})" if self.before_set == self.after_set else f"({before} -> {after})"


class SchemaType:
    """A type of a schema: a word such as ``Tensor``; or an optional, a list, a tuple or a dict with types as items."""

    __slots__ = ("items", "size", "word")

    def __init__(self, word, items=(), size=None):
        self.word, self.items, self.size = word, tuple(items), size

    def __str__(self):
        if self.word == "?":
            return f"{self.items[0]}?"
        if self.word == "[]":
            return f"{self.items[0]}[{'' if self.size is None else self.size}]"
        inner = ", ".join(map(str, self.items))
        return f"({inner})" if self.word == "()" else f"{self.word}({inner})" if self.items else self.word

    def __repr__(self):
        return f"SchemaType({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, SchemaType) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    @property
    def is_optional(self):
        return self.word == "?"

    @property
    def is_list(self):
        return self.word == "[]"

    def getElementType(self):
        """The type of the items of a list, or the type that is optional."""
        return self.items[0]

    def has_tensors(self):
        """Whether values of the type are tensors, or contain tensors."""
        return self.word == "Tensor" or any(t.has_tensors() for t in self.items)


class Argument:
    """A parameter or a result: ``name``, ``type``, ``default_value``, ``kwarg_only``, ``alias_info`` or None."""

    __slots__ = ("_convert", "_default", "alias_info", "kwarg_only", "name", "type")

    def __init__(self, name, type, default=None, kwarg_only=False, alias_info=None):
        self.name, self.type, self.kwarg_only, self.alias_info = name, type, kwarg_only, alias_info
        self._default = default             # None, or (value, text)
        self._convert = _CONVERT.get(type.word, _anything)

    @property
    def default_value(self):
        return None if self._default is None else self._default[0]

    def has_default_value(self):
        return self._default is not None

    @property
    def is_write(self):
        return self.alias_info is not None and self.alias_info.is_write

    def convert(self, op, x):
        """A value converted to the form that the op's functions take.

        Raises
        ------
        SchemaError
            If the value is not of the type. (A RuntimeError and a TypeError.)
        """
        made = self._convert(self.type, x)
        if made is _WRONG:
            raise SchemaError(f"{op}() Expected a value of type '{_spelled(self.type)}' for argument '{self.name}' but "
                              f"instead found type '{_found(x)}'.")
        return made

    def __str__(self):
        text = _aliased(self.type, self.alias_info)
        text = f"{text} {self.name}" if self.name else text
        return text if self._default is None else f"{text}={self._default[1]}"

    __repr__ = __str__


class FunctionSchema:
    """A signature: ``name`` (with the namespace, if it has one), ``overload_name``, ``arguments``, ``returns``."""

    __slots__ = ("arguments", "name", "overload_name", "returns")

    def __init__(self, name, overload_name, arguments, returns):
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = list(arguments), list(returns)

    @property
    def is_mutable(self):
        """Whether the op writes to an argument."""
        return any(a.is_write for a in self.arguments)

    def _is_view_op(self):
        """Whether a result shares memory with an argument that is not written to."""
        return any(a.alias_info is not None and not a.is_write for a in self.arguments)

    @property
    def mutates(self):
        """The positions of the arguments that the op writes to."""
        return tuple([k for k, a in enumerate(self.arguments) if a.is_write])

    def __str__(self):
        name = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        parts, only = [], False
        for a in self.arguments:
            if a.kwarg_only and not only:
                parts.append("*")
                only = True
            parts.append(str(a))
        results = ", ".join(map(str, self.returns))
        single = len(self.returns) == 1 and not results.startswith("(")
        return f"{name}({', '.join(parts)}) -> {results if single else f'({results})'}"

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


# -- values -----------------------------------------------------------------------------------------------------------

_WRONG = object()


def _spelled(type):
    """A type as PyTorch's messages spell it."""
    if type.word == "?":
        return f"Optional[{_spelled(type.items[0])}]"
    if type.word == "[]":
        return f"List[{_spelled(type.items[0])}]"
    return {"SymInt": "int", "Scalar": "number", "ScalarType": "dtype"}.get(type.word, str(type))


def _found(x):
    """The type of a value, for messages."""
    if isinstance(x, (list, tuple)):
        return f"{type(x).__name__} of {', '.join(sorted({type(y).__name__ for y in x}))}" if x else "empty list"
    return type(x).__name__


def _anything(type, x):
    return x


def _tensor(type, x):
    return x if isinstance(x, Tensor) else _WRONG


def _integer(type, x):
    if isinstance(x, int) or is_symbolic_number(x):
        return x
    index = getattr(x, "__index__", None)
    return _WRONG if index is None or isinstance(x, Tensor) else index()


def _float(type, x):
    if isinstance(x, float) or is_symbolic_number(x):
        return x
    if isinstance(x, bool):
        return _WRONG
    if isinstance(x, (Tensor, str, complex)) or getattr(getattr(x, "dtype", None), "kind", None) == "c":
        return _WRONG                   # NumPy's complex numbers have __float__ and drop their imaginary part
    return float(x) if hasattr(x, "__float__") else _WRONG


def _bool(type, x):
    return x if isinstance(x, bool) or is_symbolic_number(x) else _WRONG


def _complex(type, x):
    return complex(x) if isinstance(x, (int, float, complex)) else _WRONG


def _number(type, x):
    if isinstance(x, (int, float, bool, complex)) or is_symbolic_number(x):
        return x
    return x.item() if isinstance(x, Tensor) and not x.ndim else _WRONG


def _string(type, x):
    return x if isinstance(x, str) else _WRONG


def _dtype_of(type, x):
    return x if isinstance(x, _dtype.dtype) else _WRONG


def _device_of(type, x):
    if isinstance(x, (str, int)) and not isinstance(x, bool):
        return device(x)
    return x if isinstance(x, device) else _WRONG


def _optional(type, x):
    return None if x is None else _CONVERT.get(type.items[0].word, _anything)(type.items[0], x)


def _list(type, x):
    item = type.items[0]
    convert = _CONVERT.get(item.word, _anything)
    if not isinstance(x, (list, tuple)):
        if type.size is None or isinstance(x, str):
            return _WRONG
        x = [x] * type.size                 # a number is repeated for int[2]
    made = [convert(item, y) for y in x]
    return _WRONG if any(y is _WRONG for y in made) else made


_CONVERT = {"Tensor": _tensor, "int": _integer, "SymInt": _integer, "float": _float, "SymFloat": _float,
            "bool": _bool, "SymBool": _bool, "complex": _complex, "Scalar": _number, "number": _number, "str": _string,
            "ScalarType": _dtype_of, "Device": _device_of, "?": _optional, "[]": _list}


# -- reading ----------------------------------------------------------------------------------------------------------

def parse_schema(text):
    """Reads a schema.

    Parameters
    ----------
    text : str
        Such as ``"mylib::foo.overload(Tensor(a!) x, *, int? n=None) -> (Tensor, Tensor[])"``; the name may be absent.

    Returns
    -------
    FunctionSchema

    Raises
    ------
    RuntimeError
        If the text is no schema; the message points to the place.

    Examples
    --------
    >>> from ptcore._ops.table.function_schema import parse_schema
    >>> schema = parse_schema("mylib::scale(Tensor x, float by=2) -> Tensor")
    >>> schema.name, [str(a) for a in schema.arguments], str(schema.returns[0].type)
    ('mylib::scale', ['Tensor x', 'float by=2'], 'Tensor')
    """
    return _Reader(text).schema()


class _Reader:
    def __init__(self, text):
        if not isinstance(text, str):
            raise TypeError(f"parse_schema: the schema must be a str, got {type(text).__name__}")
        self.text, self.tokens, place = text, [], 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                self.tokens.append(("", "", len(text) - len(text[place:].lstrip())))
                break
            self.tokens.append((found.lastgroup, found.group(found.lastgroup), found.start(found.lastgroup)))
            place = found.end()
        self.tokens.append(("end", "", len(text)))
        self.at = 0

    def error(self, expected):
        _, token, place = self.tokens[self.at]
        found = token or self.text[place:place + 1] or "the end"
        return RuntimeError(f"parse_schema: expected {expected}, got {found!r} "
                            f"at column {place + 1} of {self.text!r}")

    def peek(self, *signs):
        kind, token, _ = self.tokens[self.at]
        return kind == "sign" and token in signs

    def take(self, sign):
        if not self.peek(sign):
            return False
        self.at += 1
        return True

    def need(self, sign):
        if not self.take(sign):
            raise self.error(repr(sign))

    def word(self, what):
        kind, token, _ = self.tokens[self.at]
        if kind != "word":
            raise self.error(what)
        self.at += 1
        return token

    def schema(self):
        name = overload = ""
        if not self.peek("("):
            name = self.word("a name or '('")
            space, colons, rest = name.rpartition("::")
            rest, _, overload = rest.partition(".")
            name = space + colons + rest
        self.need("(")
        arguments, only = [], False
        while not self.peek(")"):
            if self.take("*"):
                only = True
            else:
                arguments.append(self.argument(only))
            if not self.take(","):
                break
        self.need(")")
        self.need("->")
        returns = self.returns()
        if self.tokens[self.at][0] != "end":
            raise self.error("the end")
        names = [a.name for a in arguments]
        for n in names:
            if names.count(n) > 1:
                raise RuntimeError(f"parse_schema: two arguments are called {n!r} in {self.text!r}")
        return FunctionSchema(name, overload, arguments, returns)

    def returns(self):
        if not self.take("("):
            return [self.result()]
        found = []
        while not self.peek(")"):
            found.append(self.result())
            if not self.take(","):
                break
        self.need(")")
        return found

    def result(self):
        type, alias = self.type()
        name = self.word("a name") if self.tokens[self.at][0] == "word" else ""
        return Argument(name, type, alias_info=alias)

    def argument(self, only):
        type, alias = self.type()
        name = self.word(f"the name of an argument of type {type}")
        default = None
        if self.take("="):
            start = self.tokens[self.at][2]
            value = self.default(type)
            default = value, self.text[start:self.tokens[self.at][2]].strip()
        return Argument(name, type, default, only, alias)

    def type(self):
        """Reads a type and the memory annotations in its brackets."""
        alias = None
        if self.take("("):
            items = [self.type()[0]]
            while self.take(","):
                items.append(self.type()[0])
            self.need(")")
            found = SchemaType("()", items)
        else:
            found = SchemaType(self.word("a type"))
            if found.word == "Dict" and self.take("("):
                key = self.type()[0]
                self.need(",")
                found = SchemaType("Dict", (key, self.type()[0]))
                self.need(")")
        depth = -1
        while True:
            depth += 1
            if self.peek("(") and alias is None:
                alias = self.alias(depth)
                depth -= 1
            elif self.take("?"):
                found = SchemaType("?", (found,))
            elif self.take("["):
                kind, token, _ = self.tokens[self.at]
                size = int(token) if kind == "number" and token.isdigit() else None
                self.at += size is not None
                self.need("]")
                found = SchemaType("[]", (found,), size)
            else:
                return found, alias

    def alias(self, depth):
        self.need("(")
        before, after, write = self.sets(), None, self.take("!")
        if self.take("->"):
            after = self.sets()
        self.need(")")
        return AliasInfo(before, before if after is None else after, write, depth)

    def sets(self):
        found = []
        while True:
            found.append("*" if self.take("*") else self.word("the name of a set of memory"))
            if not self.take("|"):
                return found

    def default(self, type):
        kind, token, _ = self.tokens[self.at]
        if self.take("["):
            item = next((t.items[0] for t in (type, *type.items) if t.word == "[]"), type)
            found = []
            while not self.peek("]"):
                found.append(self.default(item))
                if not self.take(","):
                    break
            self.need("]")
            return found
        self.at += 1
        inner = type.items[0] if type.is_optional else type
        if kind == "string":
            value = ast.literal_eval(token)
            return device(value) if inner.word == "Device" else value
        if kind == "number":
            value = ast.literal_eval(token)
            return float(value) if inner.word == "float" else value
        if kind == "word":
            if token in _WORDS:
                return _WORDS[token]
            return getattr(_dtype, token, token) if inner.word == "ScalarType" else token
        self.at -= 1
        raise self.error("a default")


def _aliased(type, alias):
    """The text of a type with its memory annotation."""
    if alias is None:
        return str(type)
    parts, inner = [], type
    while inner.word in ("?", "[]"):
        parts.append("?" if inner.word == "?" else f"[{'' if inner.size is None else inner.size}]")
        inner = inner.items[0]
    parts.reverse()
    return "".join([str(inner), *parts[:alias.depth], str(alias), *parts[alias.depth:]])
