"""``ptcore.ops.namespace.name``: ops by PyTorch's names: those of ``ptcore.library``, and built-in ops as ``aten``.

A name may have several overloads; ``Packet`` stands for all of them. An overload is the op's function itself, so
that graphs, ``__torch_function__`` and ``ops.mylib.foo.default`` refer to one object. ``attribute_of`` has the
attributes of PyTorch's OpOverload.
"""
import threading

from ptcore import _ops
from ptcore._contexts import Changed
from ptcore._ops import aten
from ptcore._ops.table import ids as _table
from ptcore._ops.table.function_schema import Argument, FunctionSchema, SchemaType
from ptcore._state import setting

__all__ = ["Namespace", "OpFunction", "Packet", "attribute_of", "namespace"]

OpFunction = type(_table.function_of(0))
_spaces, _packets = {}, {}
custom = {}                         # "namespace::name" -> {overload: function}; library._definition fills it
ATEN = ("aten", "prims")
_TYPES = {"T": "Tensor", "I": "Tensor", "O": "Tensor?", "J": "Tensor?", "L": "Tensor[]", "i": "int", "f": "float",
          "b": "bool", "s": "Scalar", "j": "int?", "g": "float?", "d": "int", "n": "int", "e": "int?", "D": "int[]?",
          "R": "int[]", "z": "SymInt[]", "Z": "int[]", "t": "ScalarType?", "w": "str", "o": "Any"}
_NAMES = {"input": "self"}


class _Thread(threading.local):
    skips = None                    # the definition that sends its next call to its kernels
    grad_enabled = None             # whether gradients were recorded at the call of that op


thread = _Thread()


class below_autograd(Changed):
    """Context in which custom ops call their kernels at once: the code that enters it handles gradients itself.

    Parameters
    ----------
    on : bool
        False: calls inside have gradients again.
    """

    def __init__(self, on=True):
        super().__init__((None, {"below autograd": on}))


def is_below_autograd():
    """Whether this thread is in a ``below_autograd`` context."""
    return setting("below autograd", False)


def namespace(name):
    """``ops.name``. Any name has a namespace, as in PyTorch; its attributes are the ops."""
    found = _spaces.get(name)
    if found is None:
        found = _spaces[name] = Namespace(name)
    return found


class Namespace:
    """The ops of one namespace, as attributes.

    Raises
    ------
    AttributeError
        If the namespace has no op of that name.
    """

    def __init__(self, name):
        self.__name__ = self.name = name
        self.__module__ = "ptcore.ops"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = packet(f"{self.name}::{name}")
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self):
        own = [name.partition("::")[2] for name in custom if name.startswith(f"{self.name}::")]
        return sorted(own + (aten.names() if self.name == "aten" else []))

    __iter__ = None

    def __repr__(self):
        return f"<ptcore.ops.{self.name}>"


def packet(qualname):
    """The overloads of a name; None if it has none."""
    if qualname not in custom:
        space, _, name = qualname.partition("::")
        if space not in ATEN or not aten.function_of(name):
            _packets.pop(qualname, None)
            return None
    found = _packets.get(qualname)
    if found is None:
        found = _packets[qualname] = Packet(qualname)
    return found


class Packet:
    """An op's name with its overloads: ``ops.mylib.foo``. A call goes to the overload whose schema takes the arguments.

    Attributes
    ----------
    default, ... : OpFunction
        Each overload. For ``aten`` any overload name stands for the op: a row takes the arguments of all overloads.
    """

    def __init__(self, qualname):
        space, _, name = qualname.partition("::")
        self._qualified_op_name, self._namespace = qualname, space
        self.__name__, self.__module__, self.__qualname__ = name, "ptcore.ops", f"{space}.{name}"

    def overloads(self):
        """The names of the overloads."""
        return list(custom.get(self._qualified_op_name, ("default",)))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._find(name)
        if found is None:
            known = ", ".join(self.overloads())
            raise AttributeError(f"The underlying op of '{self._qualified_op_name}' has no overload name '{name}'; "
                                 f"there are: {known}")
        return found

    def _find(self, overload):
        own = custom.get(self._qualified_op_name)
        if own is None:
            return None if overload.startswith("_") else aten.function_of(self.__name__)
        return own.get(overload)

    @property
    def _opoverload(self):
        """The op's function; AttributeError if there are several overloads."""
        names = self.overloads()
        if len(names) != 1:
            raise AttributeError(f"{self._qualified_op_name} has several overloads: {', '.join(names)}")
        return self._find(names[0])

    @property
    def op(self):
        """The id of the op, if it has only one overload."""
        return self._opoverload.op

    def __call__(self, *args, **kwargs):
        own = custom.get(self._qualified_op_name)
        if own is None:
            return aten.function_of(self.__name__)(*args, **kwargs)
        if len(own) == 1:
            (function,) = own.values()
            return function(*args, **kwargs)
        return self._resolve(own, args, kwargs)(*args, **kwargs)

    def _resolve(self, own, args, kwargs):
        """Calls the first overload with a schema that accepts the arguments."""
        refused = []
        for function in own.values():
            schema = function._schema
            try:
                bind(schema, args, kwargs)
            except (RuntimeError, TypeError) as error:
                refused.append(f"{schema}: {error}")
                continue
            return function
        raise RuntimeError(f"No matching overload of {self._qualified_op_name}: " + "\n".join(refused))

    def __eq__(self, other):
        return self is other or (isinstance(other, Packet) and self._qualified_op_name == other._qualified_op_name)

    def __hash__(self):
        return hash(self._qualified_op_name)

    def __reduce__(self):
        return _packet_of, (self._qualified_op_name,)

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"


def _packet_of(qualname):
    return getattr(namespace(qualname.partition("::")[0]), qualname.partition("::")[2])


def bind(schema, args, kwargs):
    """The converted values of all arguments of a schema, in its order; raises if the arguments do not fit."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    if len(args) > len(positional):
        raise TypeError(f"{schema.name}() expected at most {len(positional)} argument(s) but received {len(args)}")
    given = {a.name: x for a, x in zip(positional, args)}
    for name in kwargs:
        if name in given or all(a.name != name for a in schema.arguments):
            raise TypeError(f"{schema.name}() got an unexpected keyword argument {name!r}, or got it twice")
    given.update(kwargs)
    found = []
    for a in schema.arguments:
        if a.name not in given and not a.has_default_value():
            raise TypeError(f"{schema.name}() is missing value for argument {a.name!r}")
        found.append(a.convert(schema.name, given[a.name]) if a.name in given else a.default_value)
    return found


def schema_of(function):
    """The schema of an op's function; for a row of the table it is made from the signature."""
    row = _ops.row(_table.op_name(function.op))
    if row.kind == "custom":
        return row.definition.schema
    inplace = function is _table.function_of(function.op, True)
    arguments = []
    for a in row.args:
        word = _TYPES[a.letter]
        type, size = SchemaType(word.rstrip("?[]")), None
        if "[]" in word:
            type = SchemaType("[]", (type,), size)
        if word.endswith("?"):
            type = SchemaType("?", (type,))
        default = None if a.required else (a.default, repr(a.default))
        arguments.append(Argument(_NAMES.get(a.name, a.name), type, default, a.keyword_only))
    results = [Argument(name, SchemaType("Tensor")) for name in row.fields or ("",)]
    return FunctionSchema(f"aten::{row.name}{'_' if inplace else ''}", "", arguments, results)


def attribute_of(function, name):
    """An attribute of PyTorch's OpOverload for an op's function."""
    made = _ATTRIBUTES.get(name)
    if made is None:
        raise AttributeError(f"'{type(function).__name__}' object has no attribute {name!r}")
    return made(function)


def _qualname(function):
    """namespace::name, overload."""
    schema = schema_of(function)
    return schema.name, schema.overload_name


def _full(function):
    name, overload = _qualname(function)
    return f"{name}.{overload}" if overload else name


def definition_of(function):
    return _ops.row(_table.op_name(function.op)).definition


def _redispatch(function):
    def redispatch(keyset, *args, **kwargs):
        with below_autograd():
            return function(*args, **kwargs)
    return redispatch


_ATTRIBUTES = {
    "_schema": schema_of,
    "_name": _full,
    "name": lambda f: lambda: _full(f),
    "namespace": lambda f: _qualname(f)[0].partition("::")[0],
    "_namespace": lambda f: _qualname(f)[0].partition("::")[0],
    "_opname": lambda f: _qualname(f)[0].partition("::")[2],
    "_overloadname": lambda f: _qualname(f)[1] or "default",
    "overloadpacket": lambda f: packet(_qualname(f)[0]),
    "_overloadpacket": lambda f: packet(_qualname(f)[0]),
    "is_view": lambda f: schema_of(f)._is_view_op() or _ops.row(_table.op_name(f.op)).kind == "view",
    "tags": lambda f: [] if definition_of(f) is None else list(definition_of(f).tags),
    "redispatch": _redispatch,
    "default": lambda f: f,
}
