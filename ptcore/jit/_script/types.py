"""Static types of script: the meaning of annotations, the subtype relation, and types of Python values."""
import builtins
import enum
import inspect
import numbers
import sys
import types as python_types
import typing

import ptcore
from ptcore._dtype import dtype as _dtype
from ptcore._memory_format import memory_format as _memory_format
from ptcore._random import Generator as _Generator
from ptcore._tensor import Tensor as _Tensor


class Type:
    """A static type: a kind, its type arguments, and a Python class where the kind has one.

    Types are values: two are equal if their fields are.
    """

    __slots__ = ("args", "cls", "kind")

    def __init__(self, kind, args=(), cls=None):
        self.kind, self.args, self.cls = kind, tuple(args), cls

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Type) or self.kind != other.kind or self.cls is not other.cls:
            return False
        return frozenset(self.args) == frozenset(other.args) if self.kind == "Union" else self.args == other.args

    def __hash__(self):
        args = frozenset(self.args) if self.kind == "Union" else self.args
        return hash((self.kind, args, id(self.cls)))

    def __str__(self):
        if self.kind in ("NamedTuple", "Class", "Enum", "Module"):
            return self.cls.__qualname__.rpartition("<locals>.")[2]
        if self.kind == "Tuple" and not self.args:
            return "Tuple[()]"
        if self.kind == "Union" and NONE in self.args:
            rest = [a for a in self.args if a != NONE]
            inside = str(rest[0]) if len(rest) == 1 else f"Union[{', '.join(map(str, rest))}]"
            return f"Optional[{inside}]"
        return f"{self.kind}[{', '.join(map(str, self.args))}]" if self.args else self.kind

    __repr__ = __str__

    @property
    def is_number(self):
        return self.kind in ("int", "float", "bool", "complex", "number")

    @property
    def is_tuple(self):
        return self.kind in ("Tuple", "NamedTuple")

    @property
    def is_optional(self):
        return self.kind == "Union" and NONE in self.args


TENSOR, INT, FLOAT, BOOL, COMPLEX, STR, NONE, DEVICE, DTYPE, MEMORY_FORMAT, GENERATOR, ANY, NUMBER = map(Type, (
    "Tensor", "int", "float", "bool", "complex", "str", "None", "device", "dtype", "memory_format",
    "Generator", "Any", "number"))
_NAMED = {str(t): t for t in (TENSOR, INT, FLOAT, BOOL, COMPLEX, STR, NONE, DEVICE, DTYPE, MEMORY_FORMAT,
                              GENERATOR, ANY, NUMBER)}
_OF_CLASS = {_Tensor: TENSOR, ptcore.nn.Parameter: TENSOR, builtins.int: INT, builtins.float: FLOAT,
             builtins.bool: BOOL, builtins.complex: COMPLEX, builtins.str: STR, type(None): NONE, None: NONE,
             ptcore.device: DEVICE, _dtype: DTYPE, _memory_format: MEMORY_FORMAT, _Generator: GENERATOR,
             typing.Any: ANY, ptcore.Size: Type("List", (INT,)),
             builtins.list: Type("List", (TENSOR,)), builtins.tuple: Type("Tuple")}


def List(t):
    return Type("List", (t,))


def Dict(k, v):
    return Type("Dict", (k, v))


def Tuple(args):
    return Type("Tuple", args)


def Future(t):
    return Type("Future", (t,))


def union(types):
    """A type that includes all of several types."""
    flat = []
    for t in types:
        for each in t.args if t.kind == "Union" else (t,):
            if each not in flat:
                flat.append(each)
    if ANY in flat:
        return ANY
    return flat[0] if len(flat) == 1 else Type("Union", flat)


def Optional(t):
    return t if t in (NONE, ANY) else union((t, NONE))


def without_none(t):
    """An Optional without None."""
    return union([a for a in t.args if a != NONE]) if t.is_optional and t != NONE else t


def own_annotations(cls):
    """The annotations of a class itself, as objects or as text."""
    if sys.version_info >= (3, 14):                     # names that are not bound yet stay unevaluated
        import annotationlib
        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(cls)


def named_tuple(cls, lookup=None):
    """The type of a NamedTuple class; fields without an annotation are tensors."""
    hints = cls.__annotations__ if hasattr(cls, "__annotations__") else {}
    return Type("NamedTuple", [from_annotation(hints.get(name, _Tensor), lookup) for name in cls._fields], cls)


def fields(t):
    """The field names of a NamedTuple, or of a result of ptcore."""
    return getattr(t.cls, "_fields", None) or t.cls.__match_args__


class AnnotationError(TypeError):
    """An annotation without a meaning in script."""


_classes = {}                   # scripted classes -> their ClassInfo


def known_class(cls):
    return _classes.get(cls)


def needs_types(a):
    """Whether an annotation is a container without the types of its items."""
    return any(a is x for x in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple,      # noqa: UP006
                                typing.Optional, typing.Union))


def from_annotation(a, lookup=None):
    """The Type or Python object that an annotation means; ``lookup(text)`` evaluates annotations written as text."""
    if isinstance(a, Type):
        return a
    if isinstance(a, (str, typing.ForwardRef)):
        text = a if isinstance(a, str) else a.__forward_arg__
        if lookup is None:
            if text in _NAMED:
                return _NAMED[text]
            raise AnnotationError(f"the annotation {text!r} is text that cannot be looked up here")
        return from_annotation(lookup(text), lookup)
    try:
        if a in _OF_CLASS:
            return _OF_CLASS[a]
    except TypeError:
        pass
    origin, args = typing.get_origin(a), typing.get_args(a)
    if needs_types(a):
        raise AnnotationError(f"{a} needs the types of what it holds, as in List[int]")
    if origin in (builtins.list, list):
        return List(from_annotation(args[0], lookup))
    if origin is builtins.dict:
        key, value = (from_annotation(x, lookup) for x in args)
        if key not in (INT, FLOAT, STR, BOOL, COMPLEX, TENSOR):
            raise AnnotationError(f"keys of a Dict are int, float, bool, complex, str or Tensor, not {key}")
        return Dict(key, value)
    if origin is builtins.tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            raise AnnotationError("a Tuple has a fixed number of items; List[T] has any")
        return Tuple([from_annotation(x, lookup) for x in args if x != ()])
    if origin in (typing.Union, python_types.UnionType):
        return union([from_annotation(x, lookup) for x in args])
    if origin in (typing.Final, typing.ClassVar, typing.Annotated):
        return from_annotation(args[0], lookup)
    if origin is not None and origin is _future_class():
        return Future(from_annotation(args[0], lookup))
    if isinstance(a, type):
        if issubclass(a, builtins.tuple) and hasattr(a, "_fields"):
            return named_tuple(a, lookup)
        if issubclass(a, enum.Enum):
            return enum_type(a)
        if issubclass(a, _Tensor):
            return TENSOR
        if a in _classes:
            return Type("Class", (), a)
        if issubclass(a, ptcore.nn.Module):
            raise AnnotationError(f"{a.__qualname__} is a module: modules are not arguments of scripted functions, "
                                  "they are attributes of modules")
        raise AnnotationError(f"the class {a.__qualname__} is not scripted; decorate it with @jit.script")
    raise AnnotationError(f"{a!r} is no type of script; those are Tensor, int, float, bool, complex, str, None, "
                          "device, dtype, Any, List, Dict, Tuple, Optional, Union, NamedTuple and Enum classes, and "
                          "scripted classes")


def _future_class():
    from ptcore.jit._script.asynchronous import Future as found
    return found


def enum_type(cls):
    kinds = {type(member.value) for member in cls}
    if not kinds <= {int, float, str} or len(kinds) != 1:
        raise AnnotationError(f"the values of enum {cls.__name__} must all be int, or all float, or all str")
    return Type("Enum", (), cls)


def of_value(x):
    """The type of a Python value; raises AnnotationError where script has no type for it."""
    known = _OF_CLASS.get(type(x))
    if known is not None and type(x) not in (list, tuple):
        return known
    if isinstance(x, _Tensor):
        return TENSOR
    if isinstance(x, enum.Enum):
        return enum_type(type(x))
    if isinstance(x, tuple):
        if hasattr(x, "_fields"):
            return named_tuple(type(x))
        return Tuple([of_value(item) for item in x])
    if isinstance(x, list):
        return List(_all_one([of_value(item) for item in x], "list") if x else TENSOR)
    if isinstance(x, dict):
        if not x:
            return Dict(STR, TENSOR)
        return Dict(_all_one(list(map(of_value, x)), "dict's keys"),
                    _all_one(list(map(of_value, x.values())), "dict's values"))
    if type(x) in _classes:
        return Type("Class", (), type(x))
    raise AnnotationError(f"a value of type {type(x).__name__} has no type of script")


def _all_one(types, what):
    made = unify_all(types)
    if made is None:
        raise AnnotationError(f"the items of a {what} have several types: {', '.join(sorted(set(map(str, types))))}")
    return made


def is_subtype(a, b):
    """Whether each value of type a is one of type b."""
    if b == ANY or a == b:
        return True
    if a.kind == "Union":
        return all([is_subtype(x, b) for x in a.args])
    if b.kind == "Union":
        return any([is_subtype(a, x) for x in b.args])
    if b == NUMBER:
        return a in (INT, FLOAT, BOOL, COMPLEX)
    if a.is_tuple and b.kind == "Tuple":
        return len(a.args) == len(b.args) and all([is_subtype(x, y) for x, y in zip(a.args, b.args)])
    return False


def unify(a, b):
    """A common type of two: the wider one, or an Optional; None if there is none."""
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if a == NONE or b == NONE:
        return Optional(a if b == NONE else b)
    if a.is_optional or b.is_optional:
        inner = unify(without_none(a), without_none(b))
        return None if inner is None else Optional(inner)
    if a.is_tuple and b.is_tuple and len(a.args) == len(b.args):
        items = [unify(x, y) for x, y in zip(a.args, b.args)]
        return None if None in items else Tuple(items)
    return None


def unify_all(types):
    made = types[0]
    for t in types[1:]:
        made = unify(made, t)
        if made is None:
            return None
    return made


def holds(t, x):
    """Whether a Python value is of a type. Items of containers are checked as well."""
    kind = t.kind
    if kind == "Any":
        return True
    if kind == "Tensor":
        return isinstance(x, _Tensor)
    if kind in ("int", "float", "bool", "complex", "str"):
        return type(x) is _PLAIN[kind] or (kind == "str" and isinstance(x, str))
    if kind == "None":
        return x is None
    if kind == "number":
        return type(x) in (int, float, bool, complex)
    if kind == "List":
        return isinstance(x, list) and all([holds(t.args[0], item) for item in x])
    if kind == "Dict":
        return isinstance(x, dict) and all([holds(t.args[0], k) and holds(t.args[1], v) for k, v in x.items()])
    if kind == "Tuple":
        return isinstance(x, tuple) and len(x) == len(t.args) and all([holds(a, b) for a, b in zip(t.args, x)])
    if kind == "NamedTuple":
        return isinstance(x, t.cls)
    if kind == "Union":
        return any([holds(a, x) for a in t.args])
    if kind in ("Enum", "Class", "Module"):
        return isinstance(x, t.cls)
    if kind == "Future":
        return isinstance(x, _future_class())
    return isinstance(x, _PLAIN[kind])


_PLAIN = {"int": int, "float": float, "bool": bool, "complex": complex, "str": str, "device": ptcore.device,
          "dtype": _dtype, "memory_format": _memory_format, "Generator": _Generator}


# The NumPy numbers, of any precision, that are accepted as Python numbers.
_ABSTRACT = {"float": numbers.Real, "complex": numbers.Complex}


def given(t, x):
    """Converts a Python value to an argument of a type; raises TypeError if that is impossible.

    Python's own conversions apply: an int for a float, a tuple for a list, numbers of NumPy for Python's. A list or
    dict of the type is passed itself.
    """
    if holds(t, x):
        return x
    kind = t.kind
    if kind == "Union":
        for a in t.args:
            try:
                return given(a, x)
            except TypeError:
                continue
    elif kind in ("float", "complex") and isinstance(x, (int, float)) and not isinstance(x, bool):
        return _PLAIN[kind](x)
    elif kind in ("int", "float") and not isinstance(x, (bool, _Tensor, str)) and hasattr(x, "__index__"):
        return _PLAIN[kind](x)
    elif kind in _ABSTRACT and type(x).__module__ == "numpy" and isinstance(x, _ABSTRACT[kind]):
        return _PLAIN[kind](x)
    elif kind == "bool" and type(x).__name__ in ("bool_", "bool") and not isinstance(x, _Tensor):
        return bool(x)
    elif kind == "List" and isinstance(x, (list, tuple)):
        return [given(t.args[0], item) for item in x]
    elif kind == "Dict" and isinstance(x, dict):
        return {given(t.args[0], k): given(t.args[1], v) for k, v in x.items()}
    elif kind == "Tuple" and isinstance(x, tuple) and len(x) == len(t.args):
        return tuple([given(a, b) for a, b in zip(t.args, x)])
    elif kind == "device" and isinstance(x, str):
        return ptcore.device(x)
    raise TypeError(f"expected a value of type {t}, got {_described(x)}")


def _described(x):
    try:
        return f"{x!r} of type {of_value(x)}" if isinstance(x, (int, float, str)) else f"one of type {of_value(x)}"
    except TypeError:
        return f"one of type {type(x).__name__}"


def runtime_class(t):
    """The Python class of a type's values, if there is one."""
    known = {"Tensor": _Tensor, "None": type(None), "List": list, "Dict": dict, "Tuple": tuple}
    return known.get(t.kind) or _PLAIN.get(t.kind)
