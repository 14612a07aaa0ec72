"""Python classes in script: ``__init__`` defines their attributes, and their methods are compiled."""
import ast
import builtins
import dataclasses
import enum
import inspect
import sys
import types as python_types

import ptcore
from ptcore.jit._script import types
from ptcore.jit._script.decorators import modifier
from ptcore.jit._script.functions import compiled
from ptcore.jit._script.source import ScriptError, Source
from ptcore.jit._script.types import AnnotationError, Type

__all__ = ["SPECIAL", "ClassInfo", "script_class"]

SPECIAL = {"__init__", "__bool__", "__len__", "__contains__", "__getitem__", "__setitem__", "__call__", "__enter__",
           "__exit__", "__str__", "__repr__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__add__",
           "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__", "__matmul__", "__and__", "__or__",
           "__xor__", "__lshift__", "__rshift__", "__neg__", "__pos__", "__invert__", "__iadd__", "__isub__",
           "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__imatmul__", "__iand__", "__ior__",
           "__ixor__", "__ilshift__", "__irshift__"}


def from_module(cls, text):
    """The meaning of an annotation's text in the module of a class."""
    def found(node):
        if isinstance(node, ast.Name):
            for known in (vars(sys.modules[cls.__module__]), vars(builtins)):
                if node.id in known:
                    return known[node.id]
            raise AnnotationError(f"there is no {node.id!r} in {cls.__module__}")
        if isinstance(node, ast.Attribute):
            return getattr(found(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            return found(node.value)[found(node.slice)]
        if isinstance(node, ast.Tuple):
            return tuple([found(x) for x in node.elts])
        if isinstance(node, ast.Constant):
            return node.value
        raise AnnotationError(f"{text} is no type")
    return found(ast.parse(text, mode="eval").body)


class ClassInfo:
    """The attributes and methods of a class in script.

    Attributes
    ----------
    attributes : dict of str to Type
    functions, statics, properties, setters : dict of str to function
    constants : dict of str to object
    open : bool
        Whether ``__init__`` is being compiled, which may set new attributes.
    """

    def __init__(self, cls):
        self.cls, self.type = cls, Type("Class", (), cls)
        self.attributes, self.functions, self.statics, self.properties, self.constants = {}, {}, {}, {}, {}
        self.setters = {}               # of the properties that can be set
        self.open = False
        self.fields = None              # the fields of a dataclass, whose constructor and comparisons are Python's own
        self._methods = {}

    def read(self):
        for name, value in vars(self.cls).items():
            if isinstance(value, staticmethod):
                self.statics[name] = value.__func__
            elif isinstance(value, property):
                self.properties[name] = self.functions[name] = value.fget
                if value.fset is not None:
                    self.setters[name] = value.fset
            elif isinstance(value, python_types.FunctionType):
                if dataclasses.is_dataclass(self.cls) and inspect.unwrap(
                        value).__code__.co_filename == "<string>":
                    continue
                if (not name.startswith("__") or name in SPECIAL) and modifier(value) != "unused":
                    self.functions[name] = value
            elif not name.startswith("__"):
                self.constants[name] = value
        if dataclasses.is_dataclass(self.cls):
            self.fields = dataclasses.fields(self.cls)
        source = Source(self.functions["__init__"]) if "__init__" in self.functions else None

        def look_up(text):
            if source is None:
                return from_module(self.cls, text)
            return source.evaluate(ast.parse(text, mode="eval").body)
        for name, text in getattr(self.cls, "__annotations__", {}).items():
            try:
                self.attributes[name] = types.from_annotation(text, look_up)
            except AnnotationError as error:
                raise ScriptError(f"class {self.cls.__name__}: the attribute {name!r}: {error}") from None
            self.constants.pop(name, None)
        if "__init__" in self.functions:
            self.open = True
            self.method("__init__")
            self.open = False
        return self

    def method(self, name):
        """A method, compiled."""
        return self._compiled(name, self.functions[name])

    def setter(self, name):
        """The function that sets a property, compiled."""
        return self._compiled(f"{name}.setter", self.setters[name])

    def _compiled(self, key, function):
        made = self._methods.get(key)
        if made is None:
            made = self._methods[key] = compiled(function, lambda: f"{self.cls.__name__}.{key}", cls=self.type)
        return made


def script_class(cls):
    """The ClassInfo of a class; it is read at its first use.

    Raises
    ------
    ScriptError
        If the class has a base class, or its methods cannot be compiled.
    """
    known = types.known_class(cls)
    if known is not None:
        return known
    if cls.__module__ == "builtins":
        raise ScriptError(f"{cls.__name__} is not supported in script")
    if len(cls.__mro__) > 2:
        bases = ", ".join([base.__name__ for base in cls.__mro__[1:-1]])
        raise ScriptError(f"class {cls.__name__} has base classes ({bases}): script has classes without inheritance, "
                          "modules of nn, NamedTuple and Enum")
    if type(cls) is not type or issubclass(cls, (ptcore.nn.Module, enum.Enum)):
        raise ScriptError(f"class {cls.__name__} has a metaclass, which is not supported in script")
    info = types._classes[cls] = ClassInfo(cls)
    try:
        return info.read()
    except Exception:
        del types._classes[cls]
        raise


def compile_all(info):
    """Compiles all methods, so that errors show when the class is scripted."""
    for name in info.functions:
        if modifier(info.functions[name]) != "ignore":
            info.method(name)
    for name in info.setters:
        info.setter(name)
