"""The recorder: answers the questions of a rewritten function as Python would, and writes guards for the answers."""
import builtins
import enum
import functools
import itertools
import operator
import sys
import types
from collections import OrderedDict, defaultdict, deque
from importlib import import_module

from ptcore._interpret import aside
from ptcore._node import user_at
from ptcore._sizes.symbolic import SymInt
from ptcore._subclass import carried_by, payload_of
from ptcore._tensor import Tensor
from ptcore.jit._entry import CompiledFunction
from ptcore.jit.capture import calls
from ptcore.jit.capture.effects import outside_method
from ptcore.jit.capture.guards import ABSENT, Source, owner_of, tuple_of
from ptcore.jit.capture.kinds import (
    ASKED,
    FIELD,
    MAPPINGS,
    NUMBERS,
    OBJECTS,
    READS,
    SEQUENCES,
    SETS,
    VALUES,
    VIEWS,
    is_bound,
    is_container,
    is_heap_type,
    is_mapping,
    is_sequence,
    is_value,
    value_base,
)
from ptcore.jit.capture.operators import Operators
from ptcore.jit.capture.rewrite import is_rewritten
from ptcore.jit.capture.tracer import Unsupported
from ptcore.jit.capture.writes import Writes
from ptcore.nn.modules.module import REGISTRIES, Module

# Attributes of a function that a rewritten one does not have as the original.
OF_TEXT = {"__qualname__", "__module__", "__doc__", "__annotations__", "__code__", "__globals__", "__closure__",
           "__type_params__", "__annotate__", "__builtins__"}
MODULE_GETATTR = vars(Module)["__getattr__"]


class Recorder(Operators, Writes):
    """A capture's access to everything outside of the call."""

    def __init__(self, capture):
        self.capture = capture
        self.sources = {}               # (id of parent, kind, id of key or key) -> source
        self.known = {}                 # id -> (object, source) of objects from outside with attributes or elements
        self.stands, self.originals = {}, {}    # id of a tensor -> its stand-in; id of a stand-in -> the tensor
        self.copies = {}                # id of a container -> its elements as the program sees them
        self.classes, self.class_sources = {}, {}       # (class, name) -> entry of the class; its source
        self.kept, self.handed_on = [], []      # objects kept alive; functions given to code that knows no recorder
        self.probing = 0                # how many methods of keys are called for their guards alone
        self.keyed = set()  # classes of objects used as keys, whose identity counts; Tensor stands for all tensors

    # -- sources and guards --------------------------------------------------------------------------------------

    def source(self, kind, parent, key, text):
        where = kind, id(parent), key if type(key) in (int, str) else id(key)
        found = self.sources.get(where)
        if found is None:
            found = self.sources[where] = Source(kind, parent, key, text)
            self.kept.append(key)
        return found

    def object_source(self, x, text=None):
        return self.source("object", None, x, text or getattr(x, "__qualname__", None) or type(x).__name__)

    def guard(self, kind, source, expected):
        self.capture.settle()
        self.guard_before(kind, source, expected)

    def guard_before(self, kind, source, expected):
        """``guard`` of what no effect changes: it is checked before the effects of the segment."""
        self.capture.program.add(kind, source, expected, user_at() if self.capture.located else None)

    def unsupported(self, reason):
        stop, closing = Unsupported(reason), sys.exc_info()[1]
        if isinstance(closing, GeneratorExit):      # the interpreter would report and drop another error
            raise closing
        raise stop

    def constant(self, x, text=None):
        """Registers an object that a guarded object always refers to; reads of it are guarded."""
        found = self.known.get(id(x))
        if found is None:
            self.known[id(x)] = x, self.object_source(x, text)
        elif found[1].kind != "object":     # guarded to be the same object at the other source as well
            self.guard("is", found[1], x)
        return x

    def source_of(self, x):
        """The source of an object from outside; None if the program made it."""
        found = self.known.get(id(x))
        return None if found is None else found[1]

    def track(self, x, source):
        """Guards a value read from outside, and returns the value that the program gets."""
        cls = type(x)
        if isinstance(x, enum.Enum):
            self.guard("is", source, x)
            return self.constant(x, source.text)
        if is_value(x):
            if cls is int or cls is float:
                made = self.capture.number(x, source)
                if made is not None:
                    return made
            self.guard("is" if x is None else "value", source, x)
            return x
        if isinstance(x, Tensor):
            return self.tensor(x, source)
        if isinstance(x, OBJECTS) and not is_bound(x) and (cls is not types.FunctionType or source.kind == "class"
                                       or calls.is_by_identity(x)):
            self.guard("is", source, x)
            return self.constant(x, source.text)
        found = self.known.get(id(x))
        if found is not None:
            if found[1].kind == "object":
                self.guard("is", source, x)
            elif found[1] is not source:
                self.guard("same", source, found[1])
            return x
        self.guard("type" if value_base(cls) is None else "base value", source, cls if value_base(cls) is None else x)
        if is_bound(x):
            self.guard("value", self.source("attribute", source, "__name__", f"{source}.__name__"), x.__name__)
        self.known[id(x)] = x, source
        return x

    def function(self, f):
        """The source of a Python function that is called, whose code is guarded.

        A later call may pass another function with the same code, so the defaults, cells and globals that the code uses
        are guarded when they are read.
        """
        source = self.source_of(f)
        if source is None:              # a function of a class, or one from native code
            source = self.source_of(self.constant(f))
        self.capture.settle()
        self.capture.program.add_function(source, f, user_at() if self.capture.located else None)
        return source

    def pinned(self, x):
        """An object from outside whose identity is guarded, or a tuple of such objects."""
        if type(x) is tuple:
            return tuple([self.pinned(v) for v in self.elements(x)])
        source, x = self.source_of_any(x), self.original(x)
        if source is not None and source.kind != "object":
            self.guard("is", source, x)
        return x

    def tensor(self, x, source):
        found = self.stands.get(id(x))
        if found is not None:
            if found[1] is not source:
                self.guard("same", source, found[1])
            return found[0]
        if payload_of(x) is not None:
            if carried_by(x, self.capture.tracer) is not None:
                return x                # a stand-in that the program keeps somewhere
            self.unsupported(f"{source} belongs to a transformation or another trace")
        s = self.capture.input(x, source)
        self.stands[id(x)] = s, source
        self.originals[id(s)] = x
        self.kept.append(x)
        return s

    def original(self, s):
        """The tensor of an input's stand-in; another tensor is returned unchanged."""
        return self.originals.get(id(s), s)

    # -- names ---------------------------------------------------------------------------------------------------

    def global_(self, space, name):
        base = self.object_source(space, "globals")
        if name in space:
            return self.track(space[name], self.source("item", base, name, name))
        self.guard("no key", base, name)
        inbuilt = vars(builtins)
        if name not in inbuilt:
            raise NameError(f"name {name!r} is not defined")
        return self.track(inbuilt[name], self.source("item", self.object_source(inbuilt, "builtins"), name, name))

    def cell(self, function, k, name):
        """The content of a function's cell number ``k``."""
        cell, base = function.__closure__[k], self.source_of(function)
        is_constant = base is None or base.kind == "object"
        if is_constant:
            where = self.object_source(cell, f"the cell of {name}")
        else:
            where = self.source("attribute", base, "__closure__", f"{base}.__closure__")
            where = self.source("item", where, k, f"{where}[{k}]")
        try:
            value = cell.cell_contents
        except ValueError:
            self.guard("empty", where, None)
            raise NameError(f"cannot access free variable {name!r} where it is not associated with a value in "
                            "enclosing scope") from None
        if is_constant:
            return self.track(value, self.source("cell", None, cell, name))
        return self.track(value, self.source("attribute", where, "cell_contents", f"{base}.__closure__.{name}"))

    def globals_of(self, function):
        """The globals of a function, whose dictionary is guarded."""
        base = self.source_of(function)
        if base is not None and base.kind != "object":
            self.guard("is", self.source("attribute", base, "__globals__", f"{base}.__globals__"),
                       function.__globals__)
        return function.__globals__

    def import_module(self, outside, name, last):
        found = sys.modules.get(name)
        if found is None and name.startswith("ptcore."):
            with aside():
                found = import_module(name)
        if found is None:
            self.unsupported(f"module {name} is imported inside of it for the first time")
        base = self.object_source(sys.modules, "sys.modules")
        made = self.track(found, self.source("item", base, name, f"sys.modules[{name!r}]"))
        if last or "." not in name:
            return made
        first = name.partition(".")[0]
        return self.track(sys.modules[first], self.source("item", base, first, f"sys.modules[{first!r}]"))

    def import_name(self, outside, module, name, level):
        if level:
            package = outside.space.get("__package__") or outside.space["__name__"].rpartition(".")[0]
            for _ in range(level - 1):
                package = package.rpartition(".")[0]
            module = f"{package}.{module}" if module else package
        found = self.import_module(outside, module, True)
        try:
            return self.attribute(found, name)
        except AttributeError:
            return self.import_module(outside, f"{module}.{name}", True)

    # -- attributes ----------------------------------------------------------------------------------------------

    def in_class(self, cls, name):
        """The entry of a class under a name, guarded and without binding; ABSENT if there is none."""
        key = cls, name
        found = self.classes.get(key)
        if found is None:
            owner = owner_of(cls, name)
            found = ABSENT if owner is None else owner.__dict__[name]
            source = self.class_sources[key] = Source("class", None, (cls, name, found, owner, cls.__mro__),
                                                      f"{cls.__name__}.{name}")
            heap = [c for c in cls.__mro__ if is_heap_type(c)]
            if heap:                    # a class of Python code; steps of optimizers put no methods into Tensor
                (self.guard_before if issubclass(cls, Tensor) else self.guard)("class", source, found)
            if type(found) is CompiledFunction:
                found = found._compiled.function        # a captured program contains the function itself
            self.classes[key] = found
        return found

    def class_source(self, cls, name):
        self.in_class(cls, name)
        return self.class_sources[cls, name]

    def attribute(self, x, name):
        cls = type(x)
        if isinstance(x, Tensor):
            return self.tensor_attribute(x, name)
        if cls in VALUES:
            return getattr(x, name)
        if cls in NUMBERS:
            return getattr(x if hasattr(cls, name) and name != "__class__" else x.guard(), name)
        if name == "__traceback__" or cls is types.TracebackType:
            self.unsupported("it reads a traceback")        # that of a rewritten function has other frames
        if cls is types.ModuleType or isinstance(x, types.ModuleType):
            return self.module_attribute(x, name)
        if isinstance(x, type):
            return self.attribute_of_class(x, name)
        if cls is super:
            return self.super_attribute(x, name)
        return self.instance_attribute(x, name)

    def module_attribute(self, x, name):
        space = x.__dict__
        if name not in space:
            try:
                with aside():
                    found = getattr(x, name)    # a lazy name
            except AttributeError:
                asked = "__getattr__" in space or type(x) is not types.ModuleType
                for key in (name,) if asked else (name, "__getattr__"):
                    self.guard("no key", self.object_source(space, x.__name__), key)
                if asked:
                    self.guard("lacks", self.object_source(x), name)
                raise
            if name not in space:
                source = self.source("attribute", self.object_source(x), name, f"{x.__name__}.{name}")
                if not isinstance(found, (types.ModuleType, *OBJECTS)) and not is_value(found):
                    self.unsupported(f"{source} is made by the module when asked")
                return self.track(found, source)
        base = self.object_source(space, x.__name__)
        return self.track(space[name], self.source("item", base, name, f"{x.__name__}.{name}"))

    def attribute_of_class(self, x, name):
        if name in ("__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__dict__", "__class__"):
            if name == "__dict__":
                self.unsupported(f"it reads all attributes of class {x.__name__}")
            value = getattr(x, name)
            if type(value) is not str or not is_heap_type(x):
                return value
            return self.track(value, self.source("attribute", self.source_of(self.constant(x)), name,
                                                 f"{x.__name__}.{name}"))
        if name in calls.TENSOR_REFUSED and issubclass(x, Tensor):
            self.unsupported(f"it uses {x.__name__}.{name}")
        meta = self.in_class(type(x), name)
        if meta is not ABSENT and self.in_class(type(meta), "__set__") is not ABSENT:
            self.unsupported(f"{x.__name__}.{name} is a property of a metaclass")
        raw = self.in_class(x, name)
        if raw is ABSENT:
            more = self.in_class(type(x), "__getattr__")
            if meta is ABSENT and isinstance(more, types.FunctionType):
                return self.call(more, x, name)
            if type(x) is type or meta is ABSENT:
                return getattr(x, name)
            return self.bound(meta, x, type(x), name)
        if isinstance(raw, (staticmethod, classmethod, types.ClassMethodDescriptorType)):
            return self.bound(raw, None, x, name)
        if isinstance(raw, OBJECTS) or self.in_class(type(raw), "__get__") is ABSENT:
            return self.track(raw, self.class_source(x, name))
        self.unsupported(f"{x.__name__}.{name} is a descriptor")

    def super_attribute(self, x, name):
        start, cls, self_ = x.__thisclass__, x.__self_class__, x.__self__
        base = self.source_of(self.constant(cls))
        self.guard("is", self.source("attribute", base, "__mro__", f"{base}.__mro__"), cls.__mro__)
        for c in cls.__mro__[cls.__mro__.index(start) + 1:]:
            space = c.__dict__
            if is_heap_type(c):
                base = self.object_source(space, c.__name__)
                if name not in space:
                    self.guard("no key", base, name)
                    continue
                source = self.source("item", base, name, f"{c.__name__}.{name}")
                if self.in_class(type(space[name]), "__get__") is ABSENT:
                    return self.track(space[name], source)
                self.guard("is", source, space[name])
            elif name not in space:
                continue
            if isinstance(space[name], property):
                return self.call(space[name].fget, self_)
            return self.bound(space[name], None if self_ is cls else self_, cls, name)
        return getattr(x, name)

    def bound(self, raw, x, cls, name):
        """Binds a class's entry ``raw`` to an instance, or to the class if ``x`` is None."""
        if isinstance(raw, types.FunctionType):
            self.constant(raw)
            return raw if x is None else types.MethodType(raw, x)
        if isinstance(raw, classmethod):
            return types.MethodType(self.constant(raw.__func__), cls)
        if isinstance(raw, staticmethod):
            return self.constant(raw.__func__)
        getter = self.in_class(type(raw), "__get__")
        if getter is ABSENT:
            return self.track(raw, self.class_source(cls, name))
        if isinstance(raw, (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
                            types.BuiltinFunctionType, *calls.OWN_FUNCTIONS)):
            return raw.__get__(x, cls)
        if isinstance(raw, functools.cached_property):
            self.unsupported(f"{cls.__name__}.{name} is a cached_property: the first read writes the attribute")
        if isinstance(getter, types.FunctionType):
            return self.call(types.MethodType(getter, self.constant(raw, f"{cls.__name__}.{name}")), x, cls)
        self.unsupported(f"{cls.__name__}.{name} is a descriptor of class {type(raw).__name__}")

    def instance_attribute(self, x, name):
        cls, source = type(x), self.source_of(x)
        if name == "__class__":
            return cls
        if isinstance(x, ASKED):
            return self.asked(x, name, source)
        if cls is types.FunctionType and name in OF_TEXT and is_rewritten(x):
            self.unsupported(f"it reads {name} of a function that it has made")
        if cls in SEQUENCES or cls in MAPPINGS or cls in SETS:
            value = getattr(x, name)
            return value if source is None or is_bound(value) else self.asked(x, name, source)
        if isinstance(self.in_class(cls, "__getattribute__"), types.FunctionType):
            self.unsupported(f"class {cls.__name__} has its own __getattribute__")
        made = None if source is None else outside_method(x, name)
        if made is not None:
            return made
        raw = self.in_class(cls, name)
        kind = type(raw)
        if kind is FIELD and issubclass(cls, tuple):
            return self.item(x, cls._fields.index(name))
        if raw is not ABSENT and any([self.in_class(kind, n) is not ABSENT for n in ("__set__", "__delete__")]):
            asks = True
            if isinstance(raw, property):
                if raw.fget is None:
                    raise AttributeError(f"property {name!r} of {cls.__name__!r} object has no getter")
                if isinstance(raw.fget, types.FunctionType):
                    try:
                        return self.call(raw.fget, x)
                    except AttributeError:
                        if isinstance(self.in_class(cls, "__getattr__"), types.FunctionType):
                            self.unsupported(f"the property {name} of a {cls.__name__} raises an AttributeError")
                        raise
            elif kind is not types.MemberDescriptorType and kind is not types.GetSetDescriptorType:
                if self.in_class(kind, "__get__") is not ABSENT:
                    return self.bound(raw, x, cls, name)
                asks = False                # the instance's own entry comes first
            if asks:
                try:
                    return self.asked(x, name, source)
                except AttributeError:
                    more = self.in_class(cls, "__getattr__")
                    if isinstance(more, types.FunctionType):
                        return self.call(more, x, name)
                    raise
        space = getattr(x, "__dict__", None) if cls.__dictoffset__ else None
        if space is not None:
            if name in space:
                value = space[name]
                return value if source is None else self.track(value, self.source("instance", source, name,
                                                                                  f"{source}.{name}"))
            if source is not None:
                self.guard("no attribute", source, name)
        if raw is not ABSENT:
            return self.bound(raw, x, cls, name)
        more = self.in_class(cls, "__getattr__")
        if more is MODULE_GETATTR:
            return self.registered(x, name)
        if isinstance(more, types.FunctionType):
            return self.call(more, x, name)
        if isinstance(x, types.FunctionType) or not is_heap_type(cls):
            return self.asked(x, name, source)
        return getattr(x, name)                 # raises AttributeError

    def asked(self, x, name, source):
        """An attribute that each check asks the object for."""
        try:
            value = getattr(x, name)
        except AttributeError:
            if source is not None:
                self.guard("lacks", source, name)
            raise
        return value if source is None else self.track(value, self.source("attribute", source, name,
                                                                          f"{source}.{name}"))

    def registered(self, x, name):
        """What ``Module.__getattr__`` finds."""
        for table in REGISTRIES:
            if table in x.__dict__:
                try:
                    return self.item(self.instance_attribute(x, table), name)
                except KeyError:            # the absence of the key is guarded
                    continue
            if self.source_of(x) is not None:
                self.guard("no attribute", self.source_of(x), table)
        raise AttributeError(f"{type(x).__name__!r} object has no attribute {name!r}")

    def tensor_attribute(self, x, name):
        if payload_of(x) is None:
            x = self.capture.unknown(x)
        real = self.originals.get(id(x))
        if name in calls.TENSOR_REFUSED and name != "register_hook":
            self.unsupported(f"it uses .{name} of a tensor")
        if name == "is_leaf" and real is not None:
            return real.is_leaf
        if name == "grad":
            return self.grad_of(x, real)
        if name == "grad_fn" and real is not None:
            if real.is_leaf:
                return None
            self.unsupported("it reads .grad_fn of a tensor")
        if name == "__class__":
            return type(x if real is None else real)
        raw = self.in_class(type(x), name)          # a user may have put it there
        if isinstance(raw, property) and isinstance(raw.fget, types.FunctionType):
            return self.call(raw.fget, x)
        try:
            return getattr(x, name)
        except AttributeError:
            if real is None:
                raise
            return self.asked(real, name, self.stands[id(real)][1])

    def grad_of(self, x, real):
        """The gradient of a tensor at this point of the program."""
        capture = self.capture
        if real is None:
            found = capture.grads.of(x)
            if found is None and not x.is_leaf:
                self.unsupported("it reads .grad of a tensor that is no leaf")
            return found
        if capture.effects:
            capture.cut([], "nothing", None)
        source = self.stands[id(real)][1]
        return self.track(real.grad, self.source("attribute", source, "grad", f"{source}.grad"))

    # -- elements ------------------------------------------------------------------------------------------------

    def index(self, x):
        """An index or a part of a slice, as native code would ask it for its number."""
        if type(x) is int or x is None or isinstance(x, (Tensor, NUMBERS)):
            return x
        if type(x) is slice:
            if self.source_of(x) is None:
                return x
            return slice(*[self.index(self.attribute(x, name)) for name in ("start", "stop", "step")])
        if type(x) is tuple:
            return tuple([self.index(v) for v in self.elements(x)])
        found = self.in_class(type(x), "__index__")
        if not isinstance(found, types.FunctionType):
            return self.native(x)
        return self.answer(found, x, (int, SymInt))

    def item(self, x, index):
        if isinstance(x, Tensor) and self.replaced(x, "__getitem__") is None:
            return self.known_tensor(x)[self.native(self.index(index))]
        source, cls = self.source_of(x), type(x)
        if isinstance(x, type):
            return self.item_of_class(x, index)
        if source is None:
            if cls is defaultdict and x.default_factory not in calls.PLAIN and x.default_factory is not None \
                    and self.key(index) not in x:
                x[index] = self.call(x.default_factory)
            if is_mapping(x) and self.key(index) not in x:
                missing = self.in_class(cls, "__missing__")
                if isinstance(missing, types.FunctionType):
                    return self.call(missing, x, index)
            if cls in calls.PLAIN or is_container(x):
                return operator.getitem(x, self.key(index) if is_mapping(x) else self.index(index))
        elif is_sequence(x):
            index = self.index(index)
            if isinstance(index, slice):
                return self.elements(x)[index] if issubclass(cls, list) else tuple(self.elements(x))[index]
            index = operator.index(index)
            if not -len(x) <= index < len(x):
                self.guard("length", source, len(x))
            return self.track(x[index], self.source("item", source, index, f"{source}[{index}]"))
        elif is_mapping(x):
            index = self.pinned(index)
            if index in x:
                text = repr(index) if type(index) in VALUES else getattr(index, "__qualname__", type(index).__name__)
                return self.track(x[index], self.source("item", source, index, f"{source}[{text}]"))
            if self.in_class(cls, "__missing__") is not ABSENT:
                self.unsupported(f"{source}[{index!r}] of a {cls.__name__} asks for a default")
            self.guard("no key", source, index)
            raise KeyError(index)
        found = self.in_class(cls, "__getitem__")
        if isinstance(found, types.FunctionType):
            return self.call(found, x, index)
        if source is None:
            return operator.getitem(x, index)
        self.unsupported(f"it reads elements of {source}, a {cls.__name__}")

    def item_of_class(self, x, index):
        """``C[index]``: an element by the metaclass, or a generic class."""
        found = self.in_class(type(x), "__getitem__")
        if isinstance(found, types.FunctionType):
            return self.call(found, x, index)
        found = self.in_class(x, "__class_getitem__")
        if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType) \
                and found.__func__.__module__ != "typing":
            return self.call(self.bound(found, None, x, "__class_getitem__"), index)
        return operator.getitem(x, self.key(index))

    def known_tensor(self, x):
        return x if payload_of(x) is not None else self.capture.unknown(x)

    def contents(self, x, source):
        """A container from outside, read as a whole: a list of elements, or a dict or set that the program owns."""
        found = self.copies.get(id(x))
        if found is None:
            if is_heap_type(type(x)) and is_container(x):      # a subclass, whose methods are guarded
                for name in READS:
                    self.in_class(type(x), name)
            if is_sequence(x):
                self.guard("length", source, len(x))
                found = [self.track(v, self.source("item", source, k, f"{source}[{k}]")) for k, v in enumerate(x)]
            elif is_mapping(x):
                keys = list(x)
                if not all(type(k) in VALUES or isinstance(k, OBJECTS) for k in keys):
                    self.unsupported(f"the keys of {source} are no plain values")
                # An OrderedDict may have another order than the dict that it is a subclass of, unless it is empty.
                plain = type(x) in (dict, defaultdict) or (type(x) is OrderedDict and not keys)
                self.guard("dict keys" if plain else "keys", source, keys)
                self.known_keys(keys)
                found = {k: self.track(x[k], self.source("item", source, k, f"{source}[{k!r}]")) for k in keys}
            elif type(x) in SETS:
                if not all(type(k) in VALUES or isinstance(k, OBJECTS) for k in x):
                    self.unsupported(f"the elements of {source} are no plain values")
                self.guard("keys", source, list(x))
                found = self.known_keys(list(x))
            elif type(x) in VIEWS:
                found = self.viewed(x, source)
            else:
                return None
            self.copies[id(x)] = found
        return found

    def viewed(self, x, source):
        """The elements of a view of a dictionary."""
        keys, kind = list(x.mapping), type(x).__name__.rpartition("_")[2]
        if not all(type(k) in VALUES or isinstance(k, OBJECTS) for k in keys):
            self.unsupported(f"the keys of {source} are no plain values")
        under = self.source("attribute", source, "mapping", f"{source}.mapping")
        self.guard("keys", under, keys)
        self.known_keys(keys)
        if kind == "keys":
            return keys
        values = [self.track(x.mapping[k], self.source("item", under, k, f"{under}[{k!r}]")) for k in keys]
        return values if kind == "values" else list(zip(keys, values))

    def known_keys(self, keys):
        """Keys of a container from outside, after a guard has fixed the objects."""
        for k in keys:
            if type(k) not in VALUES:
                self.constant(k)
        return keys

    def read(self, x):
        """A copy, owned by the program, of a container from outside; other objects are returned unchanged."""
        source = self.known.get(id(x))
        if source is None or source[0] is not x:
            return x
        found = self.contents(x, source[1])
        if found is None:
            return x
        cls = type(x)
        if isinstance(found, dict):
            if cls is defaultdict:
                made = defaultdict(self.asked(x, "default_factory", source[1]), found)
            else:
                made = OrderedDict(found) if issubclass(cls, OrderedDict) else dict(found)
        elif issubclass(cls, list):
            made = list(found)
        elif issubclass(cls, tuple):
            made = tuple_of(cls, found)
        elif cls in VIEWS:
            made = found
        else:
            made = cls(found, self.asked(x, "maxlen", source[1])) if cls is deque else cls(found)
        return made

    def iterate(self, x, pattern=None):
        """An iterator that unpacks each element by ``pattern``."""
        made = self.iterator(x)
        if pattern is None:
            return made
        return (self.unpack(item, pattern) for item in made)

    def iterator(self, x):
        if isinstance(x, Tensor) and self.replaced(x, "__iter__") is None:
            return iter(self.known_tensor(x))
        cls = type(x)
        if self.source_of(x) is not None:
            found = self.contents(x, self.source_of(x))
            if found is not None:
                return iter(found)
        elif cls in calls.PLAIN or cls in calls.ITERATORS:
            return iter(x)
        if cls in VIEWS:
            return iter(x)
        found = self.in_class(cls, "__iter__")
        if isinstance(found, types.FunctionType):
            made = self.call(found, x)
            if self.in_class(type(made), "__next__") is ABSENT:
                raise TypeError(f"iter() returned non-iterator of type {type(made).__name__!r}")
            return self.iterator(made)
        if found is ABSENT:
            getter = self.in_class(cls, "__getitem__")
            if isinstance(getter, types.FunctionType):
                return self.counted(x, getter)
        step = self.in_class(cls, "__next__")
        if isinstance(step, types.FunctionType):
            return self.stepped(x, step)
        if self.source_of(x) is not None and value_base(cls) is None:
            self.unsupported(f"it iterates over {self.source_of(x)}, a {cls.__name__}")
        return iter(x)

    def counted(self, x, getter):
        k = 0
        while True:
            try:
                yield self.call(getter, x, k)
            except IndexError:
                return
            k += 1

    def stepped(self, x, step):
        while True:
            try:
                value = self.call(step, x)
            except StopIteration:
                return
            yield value

    def elements(self, x):
        return list(self.iterator(x))

    def unpack(self, x, pattern):
        made = self.iterator(x)
        # Python takes one element more than there are names, and no other.
        found = list(made) if "*" in pattern else list(itertools.islice(made, len(pattern) + 1))
        if any(type(p) is tuple for p in pattern):
            stars = [k for k, p in enumerate(pattern) if p == "*"]
            if stars:
                behind = len(pattern) - stars[0] - 1
                places = {k: p for k, p in enumerate(pattern[:stars[0]])}
                places |= {len(found) - behind + k: p for k, p in enumerate(pattern[stars[0] + 1:])}
            else:
                places = dict(enumerate(pattern))
            found = [self.unpack(v, places[k]) if type(places.get(k)) is tuple else v for k, v in enumerate(found)]
        return found

    def keywords(self, x):
        if is_mapping(x):
            return self.read(x)
        self.unsupported(f"it spreads {self.source_of(x) or 'an object'}, a {type(x).__name__}")

    def merged(self, *pairs):
        """The keywords of a call, from names and values; the name None stands for ``**value``."""
        found = {}
        for name, value in zip(pairs[::2], pairs[1::2]):
            for key, item in (self.keywords(value).items() if name is None else [(name, value)]):
                if key in found or type(key) is not str:    # Python's error names the function
                    self.unsupported(f"its keyword {key!r} is given twice or is no word")
                found[key] = item
        return found

    # -- calls ---------------------------------------------------------------------------------------------------

    def super_of(self, cls, x):
        return super(cls, x)

    def method(self, x, name, /, *args, **kwargs):
        return calls.call(self, self.attribute(x, name), args, kwargs)

    def call(self, f, /, *args, **kwargs):
        return calls.call(self, f, args, kwargs)

    def native(self, x):
        return calls.native(self, x)
