"""Operators of script: the types of their operands and results."""
import ast
import operator

from ptcore.jit._names import BY_NODE
from ptcore.jit._script import operations
from ptcore.jit._script.types import (
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STR,
    TENSOR,
    Tuple,
    is_subtype,
    unify,
    without_none,
)
from ptcore.jit._script.values import Val

__all__ = ["binary", "compare", "unary"]

_ORDER = [BOOL, INT, FLOAT, COMPLEX]


def _wider(a, b):
    if NUMBER in (a, b):
        return NUMBER
    return _ORDER[max(_ORDER.index(a), _ORDER.index(b))]


def binary(c, op, a, b, inplace=False):
    """The value of a binary operator."""
    known = BY_NODE[op]
    symbol, function, magic = known.symbol, known.function, known.magic
    made = _of_class(c, f"__i{magic[2:]}", a, b) if inplace else None
    if made is None:
        made = _of_class(c, magic, a, b)
    if made is not None:
        return made
    s, t = a.type, b.type
    if TENSOR in (s, t) and all([x == TENSOR or x.is_number for x in (s, t)]):
        if inplace and s == TENSOR:
            function = known.inplace
        return c.emit(function, (a, b), TENSOR)
    if s.is_number and t.is_number:
        made = _numbers(c, op, function, a, b)
        if made is not None:
            return made
    elif op is ast.Add and s == t == STR:
        return c.emit(operator.add, (a, b), STR)
    elif op is ast.Mult and {s, t} == {STR, INT}:
        return c.emit(operator.mul, (a, b), STR)
    elif op is ast.Add and s.kind == t.kind == "List" and s == t:
        return c.emit(operator.iadd if inplace else operator.add, (a, b), s)
    elif op is ast.Mult and s.kind == "List" and t == INT:
        return c.emit(operator.imul if inplace else operator.mul, (a, b), s)
    elif op is ast.Mult and t.kind == "List" and s == INT and not inplace:
        return c.emit(operator.mul, (a, b), t)
    elif op is ast.Add and s.is_tuple and t.is_tuple:
        if isinstance(a.arg, tuple) and isinstance(b.arg, tuple):
            return Val(tuple(a.arg) + tuple(b.arg), Tuple(s.args + t.args))
        return c.emit(operator.add, (a, b), Tuple(s.args + t.args))
    elif op is ast.Mod and s == STR:
        return c.emit(operator.mod, (a, b), STR)
    if s.is_optional or t.is_optional:
        raise c.error(f"{symbol} of {s} and {t}: a value that may be None has no operators; test it by `is not None` "
                      "first")
    raise c.error(f"{symbol} of {s} and {t} is not supported")


def _numbers(c, op, function, a, b):
    s, t = a.type, b.type
    kind = _wider(s, t)
    if op is ast.Div:
        return c.emit(function, (a, b), COMPLEX if kind == COMPLEX else NUMBER if kind == NUMBER else FLOAT)
    if op is ast.Pow:
        if kind in (INT, BOOL):
            return c.emit(operations.int_pow, (a, b), FLOAT)
        return c.emit(function, (a, b), kind)
    if op in (ast.Add, ast.Sub, ast.Mult):
        return c.emit(function, (a, b), INT if kind == BOOL else kind)
    if op in (ast.FloorDiv, ast.Mod) and kind != COMPLEX:
        return c.emit(function, (a, b), INT if kind == BOOL else kind)
    if op in (ast.BitAnd, ast.BitOr, ast.BitXor) and kind in (BOOL, INT):
        return c.emit(function, (a, b), kind)
    if op in (ast.LShift, ast.RShift) and kind in (BOOL, INT):
        return c.emit(function, (a, b), INT)
    return None


def _of_class(c, magic, *args):
    """The operator as a call of a scripted class's method."""
    if args[0].type.kind == "Class":
        found = c.method_of_class(args[0], magic)
        if found is not None:
            return c.call_method_of_class(args[0], magic, list(args[1:]), {})
    return None


def unary(c, op, a):
    symbol, function, magic = BY_NODE[op].symbol, BY_NODE[op].function, BY_NODE[op].magic
    made = _of_class(c, magic, a)
    if made is not None:
        return made
    t = a.type
    if t == TENSOR:
        return c.emit(function, (a,), TENSOR)
    if t.is_number and not (op is ast.Invert and t not in (INT, BOOL)):
        if isinstance(a.arg, (int, float, complex)):
            return Val(function(a.arg), INT if t == BOOL else t)
        return c.emit(function, (a,), INT if t == BOOL else t)
    raise c.error(f"{symbol} of {t} is not supported")


def compare(c, op, a, b):
    """A comparison of two values by any operator except ``is`` and ``in``."""
    symbol, function, magic = BY_NODE[op].symbol, BY_NODE[op].function, BY_NODE[op].magic
    made = _of_class(c, magic, a, b)
    if made is not None:
        return made
    s, t = a.type, b.type
    if TENSOR in (s, t) and all([x == TENSOR or x.is_number for x in (s, t)]):
        return c.emit(function, (a, b), TENSOR)
    if s.is_number and t.is_number:
        if COMPLEX in (s, t) and op not in (ast.Eq, ast.NotEq):
            raise c.error(f"{symbol} of {s} and {t}: complex numbers have no order")
        return c.emit(function, (a, b), BOOL)
    if s == t == STR:
        return c.emit(function, (a, b), BOOL)
    if s == t and s.kind == "Class" and (
            c.class_info(a).fields is not None) and getattr(s.cls, magic) is not getattr(object, magic):
        return c.emit(function, (a, b), BOOL)
    if op in (ast.Eq, ast.NotEq):
        same = s == t or unify(without_none(s), without_none(t)) is not None
        if {s, t} == {DEVICE, STR} or (s == t and s in (DEVICE, DTYPE)) or s.kind == t.kind == "Enum":
            return c.emit(function, (a, b), BOOL)
        if same and not holds_tensors(s) and not holds_tensors(t):
            return c.emit(function, (a, b), BOOL)
        if same:
            raise c.error(f"{symbol} of {s} and {t}: what holds tensors has no truth value for equality; compare the "
                          "tensors by ptcore.equal")
    elif s.kind == t.kind == "List" and s == t and s.args[0] in (INT, FLOAT, STR, BOOL):
        return c.emit(function, (a, b), BOOL)
    elif s.is_tuple and t.is_tuple and all([x in (INT, FLOAT, STR, BOOL) for x in s.args + t.args]):
        return c.emit(function, (a, b), BOOL)
    raise c.error(f"{symbol} of {s} and {t} is not supported")


def holds_tensors(t):
    return t == TENSOR or any(map(holds_tensors, t.args))


def contains(c, item, container):
    """``in``."""
    made = _of_class(c, "__contains__", container, item)
    if made is not None:
        return made
    t = container.type
    if t.kind in ("List", "Dict"):
        if not is_subtype(item.type, t.args[0]) and not (item.type.is_number and t.args[0].is_number):
            raise c.error(f"in: {item.type} is no item of {t}")
        if holds_tensors(t.args[0]) and t.kind == "List" and t.args[0] != TENSOR:
            raise c.error(f"in: items of {t} have no equality")
        if t.args[0] == TENSOR:
            raise c.error(f"in: equality of tensors is a tensor; look at the items of {t} in a loop")
        return c.emit(operator.contains, (container, item), BOOL)
    if t == STR and item.type == STR:
        return c.emit(operator.contains, (container, item), BOOL)
    if t == TENSOR:
        return c.emit(operator.contains, (container, item), BOOL)
    if t.is_tuple and not holds_tensors(t) and item.type != TENSOR:
        return c.emit(operator.contains, (container, item), BOOL)
    raise c.error(f"in: {t} is nothing to look into")


def identity(c, same, a, b):
    """``is`` and ``is not``, decided at script time where the types suffice."""
    s, t = a.type, b.type
    if NONE in (s, t):
        other = t if s == NONE else s
        value = b if s == NONE else a
        if other == NONE:
            return same
        if not other.is_optional and other.kind != "Any":
            return not same
        return c.emit(operations.is_none if same else operations.is_not_none, (value,), BOOL)
    if s == t == BOOL or s.kind == t.kind == "Enum" or (s == t and s in (DTYPE,)) or s.kind == t.kind == "Class" \
            or s == t == TENSOR:
        made = c.emit(operations.is_same, (a, b), BOOL)
        return made if same else c.emit(operations.negate, (made,), BOOL)
    raise c.error(f"is of {s} and {t}: only None, bools, enums, dtypes and objects are looked at so")
