"""Calls in a rewritten function: a function is rewritten as well, called as it is where it is pure, or refused."""
import collections
import collections.abc
import contextlib
import dataclasses
import decimal
import enum
import functools
import inspect
import itertools
import operator
import types
import weakref

import ptcore
from ptcore._interpret import aside
from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt
from ptcore._state import GradMode
from ptcore._subclass import carried_by, payload_of
from ptcore._tensor import Tensor
from ptcore.amp.autocast_mode import autocast
from ptcore.autograd.function import Function
from ptcore.jit._entry import CompiledFunction
from ptcore.jit._source import NoSource
from ptcore.jit.capture.guards import ABSENT, owner_of, tuple_of
from ptcore.jit.capture.kinds import (
    EXACT,
    MAPPINGS,
    OWN_FUNCTIONS,
    is_bound,
    is_container,
    is_generated,
    is_heap_type,
    is_sequence,
    is_value,
    seen_by_native,
    value_base,
)
from ptcore.jit.capture.rewrite import Unwritable, is_rewritten, made_by, rewritten
from ptcore.jit.capture.tracer import Sourceless, Stop, Unsupported
from ptcore.nn.modules.container import ModuleList, Sequential
from ptcore.nn.modules.module import Module

# Classes of Python whose instances depend on nothing outside if the program makes them.
PLAIN = {list, tuple, dict, set, frozenset, str, bytes, bytearray, range, slice, collections.OrderedDict,
         collections.defaultdict, collections.deque, collections.Counter, int, float, complex, bool, type(None)}
ITERATORS = {zip, enumerate, map, filter, reversed, types.GeneratorType, type(iter([])), type(iter(())), type(iter({})),
             type(iter({}.values())), type(iter({}.items())), type(iter(range(0))), type(iter("")), type(iter(set())),
             type(reversed([])), itertools.chain, itertools.count, itertools.islice, itertools.product,
             itertools.repeat, itertools.cycle, itertools.accumulate, itertools.starmap, itertools.zip_longest,
             itertools.permutations, itertools.combinations, itertools.takewhile, itertools.dropwhile,
             itertools.groupby}
# Methods of containers that only read them.
READING = {"get", "keys", "values", "items", "copy", "index", "count", "union", "intersection", "difference",
           "issubset", "issuperset", "isdisjoint", "symmetric_difference", "__contains__", "__getitem__", "__len__",
           "__iter__", "_asdict", "_replace"}
TAKING = {"extend", "update", "union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset",
          "isdisjoint", "fromkeys", "extendleft", "__init__"}
# Slots of containers that call no methods of their arguments, or whose arguments are prepared.
SLOTS = {"__init__", "__getitem__", "__setitem__", "__delitem__", "__len__", "__iter__", "__mul__", "__imul__",
         "__setattr__", "__getattribute__", "__repr__", "__str__", "__hash__"}
TENSOR_REFUSED = {
    "_version", "_base", "data_ptr", "storage", "untyped_storage", "_typed_storage", "register_hook", "retain_grad",
    "register_post_accumulate_grad_hook", "numpy", "__array__", "__array_interface__", "__dlpack__",
    "__arrow_c_array__", "share_memory_", "resize_", "set_", "pin_memory", "record_stream", "map_", "map2_", "apply_",
    "__reduce_ex__", "__cuda_array_interface__", "detach_", "resize_as_", "is_shared", "_backward_hooks", "names",
    "retains_grad", "output_nr", "is_pinned", "__copy__", "__deepcopy__", "module_load", "is_set_to", "_is_view",
    "is_inference"}
# Files of the package whose functions are called as they are: they depend on their arguments and the modes alone, and
# have no effect. Exceptions are named below.
OWN = ("ptcore._ops.", "ptcore._exchange.convert", "ptcore._exchange.values", "ptcore._exchange.arrays",
       "ptcore._dtype", "ptcore._device", "ptcore._sizes.symbolic", "ptcore._state", "ptcore._trees.tree",
       "ptcore._overrides", "ptcore._errors", "ptcore._shape", "ptcore.fft", "ptcore.linalg", "ptcore.special",
       "ptcore.func._vjp", "ptcore.func._jvp", "ptcore.signal", "ptcore.masked", "ptcore.nn.functional",
       "ptcore.return_types", "ptcore.autograd.batch", "ptcore.autograd.entry", "ptcore.autograd.function")
REFUSED_FILES = ("ptcore._ops.levels", "ptcore._ops.table.register")
REFUSED = {"backward", "set_default_dtype", "set_default_device", "register_backend", "put_grad_enabled",
           "set_autocast_mode", "set_setting", "warn", "set_data"}
PURE_MODULES = {"math", "cmath"}


def call(r, f, args, kwargs):
    """Records a call and returns its result."""
    kind = type(f)
    if SUBSTITUTES and isinstance(f, collections.abc.Hashable) and f in SUBSTITUTES:
        return call(r, SUBSTITUTES[f], args, kwargs)
    if kind is types.FunctionType:
        if is_rewritten(f):
            return f(*args, **kwargs)
        return _function(r, f, args, kwargs)
    if kind is types.MethodType:
        return _method(r, f, args, kwargs)
    if kind is CompiledFunction:
        return f._captured_as(r, args, kwargs)
    if isinstance(f, type):
        return _construct(r, f, args, kwargs)
    handler = SPECIAL.get(f) if kind is types.BuiltinFunctionType else None
    if handler is not None:
        return handler(r, *args, **kwargs)
    if kind in OWN_FUNCTIONS:
        if f in PYTHON:
            return PYTHON[f](r, *args, **kwargs)
        if kind is COMPILED_FUNCTION and isinstance(getattr(f, "_mode", None), GradMode):
            return _in_mode(r, f, args, kwargs)
        if kind is COMPILED_FUNCTION and not _is_pure(f, args):
            r.unsupported(f"it calls {name_of(f)}, which asks or changes what is no argument")
        return as_it_is(r, f, args, kwargs)
    if isinstance(f, Module):
        inner = f.__dict__.get("_captured_as")
        return _module(r, f, args, kwargs) if inner is None else inner(r, args, kwargs)
    if kind is functools.partial:
        return _partial(r, f, args, kwargs)
    if kind in GETTERS and len(args) == 1 and not kwargs:
        return _get(r, r.pinned(f), *args)
    if hasattr(kind, "is_outside"):
        return f.call(r, args, kwargs)
    if kind in BUILTIN:
        return _builtin(r, f, args, kwargs)
    found = r.in_class(kind, "__call__")
    if isinstance(found, types.FunctionType):
        return call(r, found, (f, *args), kwargs)
    if str(getattr(f, "__module__", None)).startswith("ptcore") and r.source_of(f) is None:
        return as_it_is(r, f, args, kwargs)
    r.unsupported(f"it calls {name_of(f)}, of which nothing is known")


SPECIAL, CLASSES, OPERATORS = {}, {}, {}  # filled by ``builtin``: functions, classes, and functions of ``operator``
SUBSTITUTES = {}                    # functions -> the Python functions that are captured in their place
BUILTIN = {types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
           types.ClassMethodDescriptorType}


COMPILED_FUNCTION = OWN_FUNCTIONS[2]


def _is_pure(f, args):
    """Whether a function of the package depends on its arguments and the modes alone, and has no effect."""
    module, name = f.__module__ or "", f.__name__
    if args and isinstance(args[0], Tensor) and getattr(Tensor, name, None) is f:
        return name not in TENSOR_REFUSED
    return (module.startswith(OWN) and name not in REFUSED and not module.startswith(REFUSED_FILES)) or (
        module == "ptcore" and name in ("broadcast_shapes", "is_tensor"))


def name_of(f):
    found = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    module = getattr(f, "__module__", None)
    if found is None:
        return f"an object of class {type(f).__name__}"
    return f"{module}.{found}" if module and module != "builtins" else found


# -- Python functions -------------------------------------------------------------------------------------------------

def is_by_identity(f):
    """Whether a Python function is guarded as an object and not by its code."""
    return (f in PYTHON or f in SUBSTITUTES or "_captured_as" in f.__dict__
            or (f.__code__.co_filename.startswith(_PACKAGE) and _is_pure(f, ())))


def _function(r, f, args, kwargs):
    special = PYTHON.get(f)
    if special is not None:
        return special(r, *args, **kwargs)
    inner = getattr(f, "_captured_as", None)
    if inner is not None:
        return inner(r, args, kwargs)
    if f.__code__.co_filename.startswith(_PACKAGE) and _is_pure(f, ()):
        return as_it_is(r, f, args, kwargs)
    if f.__name__ == "__new__" and is_generated(f):
        return f(*args, **kwargs)
    if f.__name__ == "__eq__" and is_generated(f):
        return _equal_fields(r, *args)
    base = r.function(f)
    try:
        make = rewritten(f.__code__)
    except NoSource as error:
        raise Sourceless(f"{name_of(f)}: {error}", f.__code__) from None
    except Unwritable as error:
        raise Unsupported(f"{name_of(f)}: {error.reason}", (f.__code__.co_filename, error.line)) from None
    where, defaults, words = r.source("attribute", base, "__defaults__", f"{base}.__defaults__"), f.__defaults__, None
    if base.kind == "object" or defaults is None:
        r.guard("is", where, defaults)
    else:
        r.guard("length", where, len(defaults))
    defaults = defaults and tuple([r.track(d, r.source("item", where, k, f"{where}[{k}]"))
                                   for k, d in enumerate(defaults)])
    if f.__kwdefaults__:
        where = r.source("attribute", base, "__kwdefaults__", f"{base}.__kwdefaults__")
        words = {k: r.track(d, r.source("item", where, k, f"{where}[{k!r}]")) for k, d in f.__kwdefaults__.items()}
    return made_by(make, r, f, defaults, words)(*args, **kwargs)


_PACKAGE = ptcore.__file__[:-len("__init__.py")]


def parts_of_method(r, f):
    """The object and the function of a bound method."""
    source, owner, function = r.source_of(f), f.__self__, f.__func__
    if source is not None:
        owner = r.track(owner, r.source("attribute", source, "__self__", f"{source}.__self__"))
        function = r.track(function, r.source("attribute", source, "__func__", f"{source}.__func__"))
    return owner, function


def _method(r, f, args, kwargs):
    owner, function = parts_of_method(r, f)
    if isinstance(owner, Tensor):
        if function.__name__ == "tolist" and payload_of(owner) is not None:
            payload = carried_by(owner, r.capture.tracer)
            if payload is None:
                r.unsupported("it reads the values of a tensor inside a transformation")
            known = payload.known_value()
            if known is None:
                return r.capture.reads(payload, "tolist")
            with aside():
                return known.tolist()
        if function is Tensor.item and not args and not kwargs and payload_of(owner) is not None:
            payload = carried_by(owner, r.capture.tracer)
            if payload is not None and payload.known_value() is None and owner.numel() == 1:
                return r.capture.defer(owner)
        if function is Tensor.to or function is Tensor.cpu:
            return _to(r, r.known_tensor(owner), ("cpu", *args) if function is Tensor.cpu else args, kwargs)
        return call(r, function, (owner, *args), kwargs)
    if isinstance(owner, type) and issubclass(owner, Function) and function.__name__ == "apply":
        return r.capture.grads.apply(owner, args, kwargs)
    return call(r, function, (owner, *args), kwargs)


def _in_mode(r, f, args, kwargs):
    """A call of a function decorated by a grad mode."""
    base = r.source_of(r.constant(f))
    mode = f._mode
    r.guard("is", r.source("attribute", base, "_mode", f"{base}._mode"), mode)
    function = r.track(f.__wrapped__, r.source("attribute", base, "__wrapped__", f"{base}.__wrapped__"))
    if type(mode).__name__ == "InferenceMode" or isinstance(mode, ptcore.inference_mode):
        r.unsupported("it uses inference_mode")
    with mode.clone():
        return call(r, function, args, kwargs)


def _to(r, x, args, kwargs):
    """``x.to(...)``. A device equal to the stand-in's own is left out: its memory lies on another device."""
    rest, words = [native(r, a) for a in args], _native_words(r, dict(kwargs))
    device, dtype = words.pop("device", None), words.pop("dtype", None)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device if device is None else device, other.dtype if dtype is None else dtype
    elif rest and (rest[0] is None or isinstance(rest[0], (ptcore.device, int)) or (
            isinstance(rest[0], str) and rest[0].partition(":")[0] in ("cpu", "cuda", "meta"))):
        device = rest.pop(0)
    if rest and not isinstance(rest[0], bool):
        dtype = rest.pop(0)
    words |= dict(zip(("non_blocking", "copy"), rest))
    if device is not None and ptcore.device(device) != x.device:
        words["device"] = device
    return x.to(dtype=x.dtype if dtype is None else dtype, **words)


def _module(r, f, args, kwargs):
    found = r.in_class(type(f), "__call__")
    if found is not _MODULE_CALL:
        return call(r, found, (f, *args), kwargs)
    if r.attribute(f, "_hooks") is not None:
        return call(r, found, (f, *args), kwargs)
    return call(r, r.attribute(f, "forward"), args, kwargs)


_MODULE_CALL = Module.__dict__["__call__"]


def _partial(r, f, args, kwargs):
    source = r.source_of(f)
    function, given, words = f.func, f.args, f.keywords
    if source is not None:
        def part(name, x):
            return r.track(x, r.source("attribute", source, name, f"{source}.{name}"))
        function, given, words = part("func", function), r.read(part("args", given)), r.read(part("keywords", words))
    return call(r, function, (*given, *args), {**words, **kwargs})


GETTERS = {operator.itemgetter, operator.attrgetter, operator.methodcaller}


def _get(r, f, x):
    """The items, attributes or method result that a getter of ``operator`` reads from an object."""
    kind, made = type(f), f.__reduce__()
    if kind is operator.methodcaller:       # ``__reduce__`` of one with keywords gives a partial
        name, *rest = made[1] if made[0] is kind else made[0].args + made[1]
        return r.method(x, name, *rest, **(made[0].keywords if made[0] is not kind else {}))
    found = [r.item(x, key) if kind is operator.itemgetter else functools.reduce(r.attribute, key.split("."), x)
             for key in made[1]]
    return found[0] if len(found) == 1 else tuple(found)


# -- arguments of functions that are called as they are ---------------------------------------------------------------

def as_it_is(r, f, args, kwargs):
    """Calls a function whose inside is not captured."""
    return f(*[native(r, a) for a in args], **_native_words(r, kwargs))


def native(r, x):
    """An argument of a function that is called as it is; everything in it from outside is guarded."""
    cls = type(x)
    if cls is int or cls is float or cls is str or cls is bool or x is None:
        return x
    if isinstance(x, Tensor):
        return x if payload_of(x) is not None else r.capture.unknown(x)
    if cls is slice:
        return slice(*[native(r, r.index(r.attribute(x, name))) for name in ("start", "stop", "step")])
    if cls is decimal.Decimal:
        r.unsupported("it calculates with a Decimal, which depends on the thread's context")
    if cls in CONTAINERS or isinstance(x, tuple):
        y = r.read(x)
        if isinstance(y, dict):
            items = {k: native(r, v) for k, v in y.items()}
            if all([items[k] is v for k, v in y.items()]):
                return y
            y = y.copy()
            y.update(items)
            return y
        items = [native(r, v) for v in y]
        if all([a is b for a, b in zip(items, y)]):
            return y
        return tuple_of(cls, items) if isinstance(y, tuple) else cls(items)
    if cls is types.FunctionType:
        if is_rewritten(x):
            return x
        if (x.__module__ or "").startswith("ptcore") and (r.source_of(x) is None or x.__closure__ is None
                                                          or is_by_identity(x)):
            return r.pinned(x)
        return as_function(r, x)
    if cls is types.MethodType or cls is functools.partial or isinstance(x, Module):
        return as_function(r, x)
    if "_captured_fields" in cls.__dict__ and r.source_of(x) is not None:     # rebuilt from its constructor's arguments
        return cls(*[native(r, r.attribute(x, name)) for name in cls._captured_fields])
    if isinstance(x, type) and is_heap_type(x) and not x.__module__.startswith("ptcore"):
        return x
    if value_base(cls) is not None or (is_heap_type(cls) and not isinstance(x, (enum.Enum, BaseException, type))):
        name = seen_by_native(cls)
        if name is not None and not cls.__module__.startswith("ptcore"):
            r.unsupported(f"an object of class {cls.__name__} is handed to a function in C, which may call its {name}")
        if value_base(cls) is not None:
            return x
    if r.source_of(x) is not None and (is_bound(x) or not isinstance(x, (type, types.ModuleType, enum.Enum,
                                                                         types.BuiltinFunctionType, *OWN_FUNCTIONS))):
        r.unsupported(f"{r.source_of(x)}, of class {cls.__name__}, is handed to a function that is no Python")
    return x


def concrete(r, x):
    """A value that is written as text: symbols become guarded numbers, and tensors are refused."""
    if isinstance(x, (SymInt, SymFloat, SymBool)):
        return x.guard()
    if isinstance(x, Tensor):
        r.unsupported("it formats a tensor")
    if type(x) is types.FunctionType:
        if r.source_of_any(x) is None:
            r.unsupported("it formats a function that it has made")
        return r.pinned(x)
    cls = type(x)
    if cls is ptcore.Size:
        return cls([concrete(r, v) for v in x])
    if is_container(x) and is_heap_type(cls) and not hasattr(cls, "_fields"):
        r.unsupported(f"it formats an object of class {cls.__name__}")
    if is_container(x):
        y = r.read(x)
        if isinstance(y, dict):
            items = [(concrete(r, k), concrete(r, v)) for k, v in y.items()]
            return cls(y.default_factory, items) if cls is collections.defaultdict else cls(items)
        items = [concrete(r, v) for v in y]
        return tuple_of(cls, items) if isinstance(x, tuple) else cls(items, y.maxlen) if cls is collections.deque \
            else cls(items)
    if not is_value(x) and not isinstance(x, (type, enum.Enum, slice)) and value_base(cls) is None:
        r.unsupported(f"it formats an object of class {cls.__name__}")
    return x if is_value(x) else native(r, x)


CONTAINERS = {list, tuple, dict, set, frozenset, collections.OrderedDict, collections.defaultdict, collections.deque}


def _native_words(r, kwargs):
    return {k: native(r, v) for k, v in kwargs.items()} if kwargs else kwargs


def native_callable(r, f):
    """A callable for native code that calls it."""
    cls = type(f)
    if is_heap_type(cls) and not isinstance(f, (type, Module)) and not cls.__module__.startswith("ptcore") \
            and isinstance(r.in_class(cls, "__call__"), types.FunctionType):
        return as_function(r, f)
    return native(r, f)


def as_function(r, f):
    """Wraps a function of the user for code that calls it without the recorder.

    That code may keep the wrapper where guards refer to it, so the wrapper holds no reference to the user's function.
    """
    place, ref = len(r.handed_on), weakref.ref(r)
    r.handed_on.append(f)

    def recorded(*args, **kwargs):
        r = ref()
        return call(r, r.handed_on[place], args, kwargs)
    recorded._captured_as = lambda r, args, kwargs: recorded(*args, **kwargs)       # for calls by the program itself
    return recorded


# -- C functions ------------------------------------------------------------------------------------------------------

def _builtin(r, f, args, kwargs):
    owner = getattr(f, "__self__", None)
    if is_bound(f) and r.source_of(f) is not None:
        source = r.source_of(f)
        found = r.track(owner, r.source("attribute", source, "__self__", f"{source}.__self__"))
        if found is not owner:
            return r.method(found, f.__name__, *args, **kwargs)
    if owner is None or isinstance(owner, types.ModuleType):
        cls = getattr(f, "__objclass__", None)
        if cls is not None:
            return _unbound(r, f, cls, args, kwargs)
        module = f.__module__ or ""
        if f in OPERATORS:
            return OPERATORS[f](r, *args, **kwargs)
        if module in PURE_MODULES or module.startswith("ptcore"):
            return as_it_is(r, f, args, kwargs)
        r.unsupported(f"it calls {name_of(f)}, a C function that is not known to be pure")
    if isinstance(owner, Tensor):
        if f.__name__ in TENSOR_REFUSED:
            r.unsupported(f"it calls .{f.__name__}() of a tensor")
        if f.__name__ == "storage_offset":
            return r.capture.offset_of(r.known_tensor(owner))
        return as_it_is(r, f, args, kwargs)
    if isinstance(owner, Module) and f.__name__ == "__getattr__":
        return r.registered(owner, *args)
    cls = type(owner)
    if isinstance(owner, type):
        if owner in PLAIN:
            if f.__name__ == "fromkeys" and args:
                return f([r.key(v) for v in r.elements(args[0])], *args[1:])
            return as_it_is(r, f, args, kwargs)
        if f.__name__ == "__new__":
            return f(*args[:1], *[native(r, a) for a in args[1:]], **_native_words(r, kwargs))
        r.unsupported(f"it calls {name_of(f)}, a C function that is not known to be pure")
    if r.source_of(owner) is not None:
        if isinstance(f, types.MethodWrapperType) and f.__name__ in ("__init__", "__setattr__"):
            return _slot(r, f, owner, args, kwargs)
        if f.__name__ not in READING or (cls not in CONTAINERS and not isinstance(owner, (tuple, dict))):
            r.unsupported(f"it calls .{f.__name__}() of {r.source_of(owner)}, a {cls.__name__} from outside")
        if not is_container(owner):
            r.unsupported(f"it calls .{f.__name__}() of {r.source_of(owner)}, of class {cls.__name__}")
        if f.__name__ == "get" and isinstance(owner, dict):
            return r.item(owner, args[0]) if r.contains(owner, args[0]) else (*args[1:], None)[0]
        made = r.read(owner)
        if f.__name__ in ("count", "index") and not kwargs:
            return r.search(made, f.__name__, *args)
        return getattr(made, f.__name__)(*[r.key(r.read(a)) for a in args], **kwargs)
    if isinstance(owner, (str, bytes, int, float, complex)):
        return f(*[concrete(r, a) for a in args], **{k: concrete(r, v) for k, v in kwargs.items()})
    if cls in PLAIN or isinstance(owner, (list, dict, tuple, set)):
        return _of_container(r, f, owner, args, kwargs)
    if cls in ITERATORS:
        r.changes()
        return f(*args, **kwargs)
    if isinstance(f, types.MethodWrapperType):
        return _slot(r, f, owner, args, kwargs)
    r.unsupported(f"it calls .{f.__name__}() of an object of class {cls.__name__}")


def _of_container(r, f, owner, args, kwargs):
    """A call of a method in C of a container that the program has made."""
    cls = type(owner)
    if f.__name__ not in READING:
        r.changes()
    if is_heap_type(cls) and type(f) is types.BuiltinFunctionType and f.__name__.startswith("__") \
            and f.__name__ not in READING:
        r.unsupported(f"it calls .{f.__name__}() of a {cls.__name__}")
    if isinstance(f, types.MethodWrapperType) and f.__name__ not in SLOTS:
        if f.__name__ == "__contains__" and not is_heap_type(cls):
            return r.contains(owner, *args)
        r.unsupported(f"it calls .{f.__name__}() of a {cls.__name__}")
    if f.__name__ in ("insert", "pop", "rotate", "__mul__", "__imul__") and not isinstance(owner, (dict, set)):
        args = [r.index(a) for a in args[:1]] + list(args[1:])
    if f.__name__ == "sort":
        items, owner[:] = owner[:], []      # what the key sees of the list while it is sorted
        try:
            made = SPECIAL[sorted](r, items, *args, **kwargs)
            is_changed = bool(owner)
        except BaseException:
            owner[:] = items
            raise
        owner[:] = made
        if is_changed:
            raise ValueError("list modified during sort")
        return None
    if isinstance(owner, (set, frozenset, dict)):
        return f(*[_hashed(r, a, f.__name__ in TAKING) for a in args], **kwargs)
    if is_sequence(owner) and f.__name__ in ("count", "index", "remove") and not kwargs:
        if f.__name__ != "remove":
            return r.search(owner, f.__name__, *args)
        del owner[r.search(owner, "remove", *args)]
        return None
    if f.__name__ in TAKING:
        args = [r.read(a) if type(a) in CONTAINERS else r.elements(a) for a in args]
    return f(*args, **kwargs)


def _hashed(r, x, taken):
    """An argument of a method of a set or a dictionary: a key, or with ``taken`` an iterable of keys."""
    if not taken:
        return r.key(x)
    if type(x) in MAPPINGS:
        return r.read(x)
    if r.in_class(type(x), "keys") is not ABSENT:
        r.unsupported(f"it reads a {type(x).__name__} as a mapping")
    found = r.elements(x)
    for item in found:
        r.key(item)
    return found


def _slot(r, f, owner, args, kwargs):
    """A call of ``object.__init__`` or a similar bound slot."""
    if f.__name__ == "__init__" and not args and not kwargs:
        return None
    if f.__name__ == "__setattr__":
        return _set_plain(r, owner, *args)
    if f.__name__ == "__init__" and isinstance(owner, BaseException):
        return f(*args, **kwargs)
    r.unsupported(f"it calls .{f.__name__}() of an object of class {type(owner).__name__}")


def _set_plain(r, x, name, value):
    if r.source_of(x) is not None or isinstance(x, (type, Tensor)):
        r.unsupported(f"it writes the attribute {name} of an object from outside")
    r.set_plain(x, name, value)


def _unbound(r, f, cls, args, kwargs):
    if issubclass(cls, Tensor) or cls is Tensor:
        if f.__name__ in TENSOR_REFUSED:
            r.unsupported(f"it calls .{f.__name__}() of a tensor")
        return as_it_is(r, f, args, kwargs)
    if args and isinstance(args[0], cls):
        return call(r, f.__get__(args[0]), args[1:], kwargs)
    return f(*args, **kwargs)               # raises: the first argument is missing or of another class


# -- classes ----------------------------------------------------------------------------------------------------------

def _construct(r, cls, args, kwargs):
    handler = CLASSES.get(cls)
    if handler is not None:
        return handler(r, *args, **kwargs)
    if cls is itertools.groupby:
        by = kwargs.get("key", args[1] if len(args) > 1 else None)
        return cls(r.iterator(args[0]), lambda v: r.key(v if by is None else call(r, by, (v,), {})))
    if cls is itertools.accumulate:
        return _accumulated(r, *args, **kwargs)
    if cls is itertools.starmap:
        return (call(r, args[0], tuple(r.elements(v)), {}) for v in r.iterator(args[1]))
    if cls is itertools.repeat:
        return cls(*args[:1], *map(r.index, args[1:]), **{k: r.index(v) for k, v in kwargs.items()})
    if cls in ITERATORS:
        return cls(*[native_callable(r, a) if callable(a) else r.iterator(a) if _iterable(a) else a for a in args],
                   **_native_words(r, kwargs))
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        new = r.in_class(cls, "__new__")
        new = new.__func__ if isinstance(new, staticmethod) else new
        if isinstance(new, types.FunctionType) and is_generated(new):
            _defaults_of(r, new)
            return cls(*args, **kwargs)
    if cls.__module__.startswith("ptcore"):
        if (cls is ModuleList or cls is Sequential) and not kwargs:
            return _container(r, cls, args)
        if issubclass(cls, Module):
            r.unsupported(f"it makes a module, {cls.__name__}")
        if issubclass(cls, (GradMode, Exception)) or cls in OWN_CLASSES:
            if cls.__name__ == "inference_mode":
                r.unsupported("it uses inference_mode")
            return cls(*[native(r, a) for a in args], **_native_words(r, kwargs))
        if is_heap_type(cls) and not issubclass(cls, Tensor):
            return _instance(r, cls, args, kwargs)
        r.unsupported(f"it makes an object of class {name_of(cls)}")
    if not is_heap_type(cls):               # a class written in C
        if cls in PLAIN or issubclass(cls, BaseException) or cls is object:
            return cls(*[native(r, a) for a in args], **_native_words(r, kwargs))
        if cls in EXACT and cls is not decimal.Decimal:
            return cls(*[native(r, a) for a in args], **_native_words(r, kwargs))
        r.unsupported(f"it makes an object of class {name_of(cls)}, of which nothing is known")
    if issubclass(cls, Module):
        r.unsupported(f"it makes a module, {cls.__name__}")
    if issubclass(cls, Tensor):
        r.unsupported(f"it makes a {cls.__name__}")
    return _instance(r, cls, args, kwargs)


def _container(r, cls, args):
    """Makes a container of modules from outside, as a slice of a container does."""
    given = [r.read(a) for a in args]
    modules = [m for a in given for m in (a.values() if isinstance(a, dict) else a if isinstance(a, list) else [a])]
    if not all([isinstance(m, Module) and r.source_of(m) is not None for m in modules]):
        r.unsupported(f"it makes a module, {cls.__name__}")
    with aside():
        return cls(*given)


def _accumulated(r, x, func=None, *, initial=None):
    """``itertools.accumulate``."""
    made, total, is_first = r.iterator(x), initial, initial is None
    if not is_first:
        yield total
    for item in made:
        total = item if is_first else r.binary("add", total, item) if func is None else call(r, func, (total, item), {})
        is_first = False
        yield total


OWN_CLASSES = {ptcore.Size, ptcore.device, ptcore.dtype, ptcore.finfo, ptcore.iinfo}


def _iterable(x):
    return not isinstance(x, (int, float, str, type(None), bool))


def _defaults_of(r, f):
    """Guards the defaults of a generated function, which may be replaced."""
    base = r.source_of(r.constant(f))
    r.guard("is", r.source("attribute", base, "__defaults__", f"{base}.__defaults__"), f.__defaults__)
    where = r.source("attribute", base, "__kwdefaults__", f"{base}.__kwdefaults__")
    r.guard("is", where, f.__kwdefaults__)
    for k, d in (f.__kwdefaults__ or {}).items():
        r.guard("is", r.source("item", where, k, f"{where}[{k!r}]"), d)


def _dataclass(r, cls, args, kwargs):
    """Makes an instance of a dataclass, whose ``__init__`` was generated and has no source."""
    if r.in_class(cls, "__new__") is not object.__dict__["__new__"]:
        r.unsupported(f"dataclass {cls.__name__} has a __new__")
    init = r.in_class(cls, "__init__")
    owner = owner_of(cls, "__init__")       # a subclass may have other fields
    if "__dataclass_fields__" not in vars(owner):
        r.unsupported(f"the __init__ of {cls.__name__} is no dataclass's own")
    fields = [f for f in owner.__dataclass_fields__.values() if f._field_type is not dataclasses._FIELD_CLASSVAR]
    if any(f._field_type is dataclasses._FIELD_INITVAR for f in fields):
        r.unsupported(f"dataclass {cls.__name__} has arguments that are no fields")
    _defaults_of(r, init)
    try:
        bound = inspect.signature(init).bind(None, *args, **kwargs)
    except TypeError:                       # Python's error names the function
        r.unsupported(f"the arguments do not fit dataclass {cls.__name__}")
    bound.apply_defaults()
    given = bound.arguments
    made = object.__new__(cls)
    setter = r.in_class(cls, "__setattr__")
    is_frozen = isinstance(setter, types.FunctionType) and is_generated(setter)
    for f in fields:
        if f.init and given[f.name] is not dataclasses._HAS_DEFAULT_FACTORY:
            value = given[f.name]
        elif f.default_factory is not dataclasses.MISSING:
            value = call(r, f.default_factory, (), {})
        elif f.default is not dataclasses.MISSING and f.name in init.__code__.co_names:
            value = f.default               # no argument, but the class has slots
        else:
            continue
        if is_frozen:
            object.__setattr__(made, f.name, value)
        else:
            r.set_attribute(value, made, f.name)
    if "__post_init__" in init.__code__.co_names:   # it was there when the class was made
        r.method(made, "__post_init__")
    return made


def _equal_fields(r, a, b):
    """``a == b`` of dataclasses, whose ``__eq__`` was generated."""
    if type(a) is not type(b):
        return NotImplemented
    names = [f.name for f in dataclasses.fields(a) if f.compare]
    return r.compare("eq", tuple([r.attribute(a, n) for n in names]), tuple([r.attribute(b, n) for n in names]))


def _instance(r, cls, args, kwargs):
    """Makes an object of a class of Python code."""
    meta = type(cls)
    found = r.in_class(meta, "__call__")
    if isinstance(found, types.FunctionType):
        if meta.__name__ == "EnumType" or meta.__name__ == "EnumMeta":
            return cls(*args, **kwargs)
        r.unsupported(f"class {cls.__name__} is made by a metaclass")
    if isinstance(r.in_class(cls, "__del__"), types.FunctionType):
        r.unsupported(f"it makes a {cls.__name__}, whose __del__ is called at any time")
    new, init = r.in_class(cls, "__new__"), r.in_class(cls, "__init__")
    if dataclasses.is_dataclass(cls) and isinstance(init, types.FunctionType) and is_generated(init):
        return _dataclass(r, cls, args, kwargs)
    new = new.__func__ if isinstance(new, staticmethod) else new
    if new is object.__new__:
        made = object.__new__(cls)
    elif isinstance(new, types.FunctionType):
        made = call(r, new, (cls, *args), kwargs)
        if not isinstance(made, cls):
            return made
    else:
        made = new(cls, *[native(r, a) for a in args], **_native_words(r, kwargs))
    if isinstance(init, types.FunctionType):
        call(r, init, (made, *args), kwargs)
    elif init is not object.__init__:
        init(made, *[native(r, a) for a in args], **_native_words(r, kwargs))
    elif args or kwargs:
        if new is object.__new__:
            raise TypeError(f"{cls.__name__}() takes no arguments")
    return made


# -- contexts ---------------------------------------------------------------------------------------------------------

class Watched:
    """Marks the part of a program whose errors the program may handle."""

    def __init__(self, capture):
        self.capture = capture

    def __enter__(self):
        self.capture.watching += 1

    def __exit__(self, kind, error, trace):
        self.capture.watching -= 1
        return False


class _Managed:
    """A context manager of Python code whose methods pass the recorder."""

    def __init__(self, r, x):
        self.r, self.x = r, x

    def __enter__(self):
        made = self.r.method(self.x, "__enter__")
        self.r.capture.watching += 1
        return made

    def __exit__(self, kind, error, trace):
        self.r.capture.watching -= 1
        if isinstance(error, Stop):
            return False
        if isinstance(error, Exception):
            self.r.check_error(error, True)
        return self.r.truth(self.r.method(self.x, "__exit__", kind, error, trace))


def is_range(x):
    """Whether a context is a range of a profile. A run of a captured function is one range as a whole."""
    from ptcore.autograd.profiler import record_function
    return type(x) is record_function


def context(r, x):
    """A context manager as the rewritten function uses it."""
    if (isinstance(x, GradMode) or type(x) is autocast) and r.source_of(x) is None:
        return x
    if type(x) is contextlib.nullcontext:
        return contextlib.nullcontext(r.attribute(x, "enter_result"))
    if is_range(x):
        return x
    found = r.in_class(type(x), "__enter__")
    if isinstance(found, types.FunctionType) and not type(x).__module__.startswith("ptcore"):
        return _Managed(r, x)
    r.unsupported(f"it uses a context of class {name_of(type(x))}")


# -- functions with a meaning of their own -----------------------------------------------------------------------------

PYTHON = {}
