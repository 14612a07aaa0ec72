"""The answers of a capture to calls of built-in functions and classes that inspect their arguments."""
import abc
import collections
import enum
import functools
import math
import operator
import types

from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt, sym_float, sym_int, sym_max, sym_min
from ptcore._tensor import Tensor
from ptcore.fx.operators import OPERATORS as PYTHON
from ptcore.jit._names import OUTSIDE
from ptcore.jit.capture.calls import (
    CLASSES,
    CONTAINERS,
    OPERATORS,
    PLAIN,
    SPECIAL,
    as_function,
    call,
    concrete,
    name_of,
    native,
    native_callable,
)
from ptcore.jit.capture.guards import ABSENT
from ptcore.jit.capture.kinds import NUMBERS, is_heap_type, is_mapping, is_value


def _seen_as(r, x):
    """An example of the class that a stand-in or a symbol has for the program."""
    if isinstance(x, Tensor):
        return r.original(x)
    kind = type(x)
    return 1 if kind is SymInt else 1.0 if kind is SymFloat else True if kind is SymBool else x


def _isinstance(r, x, cls):
    x = _seen_as(r, x)
    if isinstance(cls, tuple):
        cls = tuple(r.elements(cls))
    for c in cls if isinstance(cls, tuple) else (cls,):
        check = getattr(type(c), "__instancecheck__", None)
        if isinstance(check, types.FunctionType) and type(c).__module__ not in ("abc", "enum", "typing") \
                and not type(c).__module__.startswith("ptcore"):
            r.unsupported(f"{name_of(c)} has its own isinstance")
        if getattr(c, "_is_protocol", False):
            r.unsupported(f"{name_of(c)} is a protocol, whose isinstance reads attributes")
        _note_subclass(r, type(x), c)
    return isinstance(x, cls)


def _note_subclass(r, cls, c):
    """Guards whether a class is a subclass of an abstract one, with which more classes may be registered later."""
    if isinstance(c, abc.ABCMeta) and not c.__module__.startswith("ptcore"):
        r.guard("subclass", r.source_of(r.constant(c)), (cls, issubclass(cls, c)))


def _issubclass(r, cls, other):
    for c in r.elements(other) if isinstance(other, tuple) else (other,):
        check = getattr(type(c), "__subclasscheck__", None)
        if isinstance(check, types.FunctionType) and type(c).__module__ not in ("abc", "enum", "typing") \
                and not type(c).__module__.startswith("ptcore"):
            r.unsupported(f"{name_of(c)} has its own issubclass")
        _note_subclass(r, cls, c)
    return issubclass(cls, tuple(r.elements(other)) if isinstance(other, tuple) else other)


def _type(r, *args):
    if len(args) != 1:
        r.unsupported("it makes a class")
    return type(_seen_as(r, args[0]))


_MISSING = object()


def _getattr(r, x, name, default=_MISSING):
    try:
        return r.attribute(x, name)
    except AttributeError:
        if default is _MISSING:
            raise
        return default


def _hasattr(r, x, name):
    try:
        r.attribute(x, name)
    except AttributeError:
        return False
    return True


def _any(r, x):
    return any(r.truth(item) for item in r.iterator(x))


def _all(r, x):
    return all(r.truth(item) for item in r.iterator(x))


def _sum(r, x, start=0):
    for item in r.iterator(x):
        start = r.binary("add", start, item)
    return start


def _extreme(f):
    def extreme(r, /, *args, **kwargs):
        items = r.elements(args[0]) if len(args) == 1 else list(args)
        if kwargs.get("key") is not None or len(args) == 1:
            keys = _keys(r, items, kwargs.pop("key", None))
            return items[f(range(len(items)), key=keys.__getitem__)] if items else f(items, **kwargs)
        _orderable(r, items)
        if not kwargs and len(args) == 2 and any([all([isinstance(a, kinds) for a in args]) for kinds in (
                (int, SymInt), (float, SymFloat))]):        # of one type, since the result has that of its argument
            return (sym_max if f is max else sym_min)(*args)
        return f(*args, **kwargs)
    return extreme


def _orderable(r, keys):
    """Refuses objects of classes with an ``__lt__`` or ``__gt__`` written in Python."""
    for k in keys:
        if isinstance(k, (tuple, list)):
            _orderable(r, k)
        elif type(k) not in NUMBERS and any([isinstance(r.in_class(type(k), name), types.FunctionType)
                                             for name in ("__lt__", "__gt__")]):
            r.unsupported(f"it puts objects of class {type(k).__name__} in order, which has its own __lt__ or __gt__")


def _keys(r, items, key):
    keys = items if key is None else [call(r, key, (v,), {}) for v in items]
    _orderable(r, keys)
    return keys


def _sorted(r, x, *, key=None, reverse=False):
    items = r.elements(x)
    keys = _keys(r, items, key)
    if type(reverse) not in (bool, int):
        r.unsupported("it sorts with a reverse that is no bool")
    places = sorted(range(len(items)), key=keys.__getitem__, reverse=r.truth(reverse))
    return [items[k] for k in places]


def _iter(r, x, *more):
    if more:
        return iter(native_callable(r, x), *more)
    return r.iterator(x)


def _next(r, x, *default):
    found = r.in_class(type(x), "__next__")
    if isinstance(found, types.FunctionType):
        try:
            return call(r, found, (x,), {})
        except StopIteration:
            if default:
                return default[0]
            raise
    if r.source_of(x) is not None:
        r.unsupported(f"it takes from {r.source_of(x)}, an iterator from outside")
    return next(x, *default)


def _hash(r, x):
    if isinstance(x, Tensor) or type(x).__hash__ is object.__hash__:
        r.unsupported("it uses the hash of an object, which is its address")
    found = r.in_class(type(x), "__hash__")
    if isinstance(found, types.FunctionType) and not isinstance(x, enum.Enum):
        n = concrete(r, r.answer(found, x, (int, SymInt)))
        return -2 if n == -1 else n if -1 << 63 <= n < 1 << 63 else hash(n)
    return hash(x if is_value(x) else native(r, x))


def _id(r, x):
    source = r.source_of_any(x)
    if source is None:
        r.unsupported("it uses the address of an object that it has made")
    x = r.original(x) if isinstance(x, Tensor) else x
    r.guard("is", source, x)
    return id(x)


def _callable(r, x):
    r.in_class(type(x), "__call__")
    return callable(x)


def _refused(what):
    def refused(r, /, *args, **kwargs):
        r.unsupported(f"it {what}")
    return refused


def _round(r, x, *digits):
    found = r.in_class(type(x), "__round__")
    if isinstance(found, types.FunctionType):
        return call(r, found, (x, *digits), {})
    return round(native(r, x), *map(r.index, digits))


SPECIAL |= {
    len: lambda r, x: r.length(x), isinstance: _isinstance, issubclass: _issubclass,
    getattr: _getattr, hasattr: _hasattr, setattr: lambda r, x, name, value: r.set_attribute(value, x, name),
    delattr: lambda r, x, name: r.delete_attribute(x, name), any: _any, all: _all, sum: _sum, max: _extreme(max),
    min: _extreme(min), sorted: _sorted, iter: _iter, next: _next, hash: _hash, callable: _callable,
    abs: lambda r, x: r.unary("abs", x), round: _round, repr: lambda r, x: text_of(r, x, repr),
    format: lambda r, x, *spec: format(formatted(r, x), *spec),
    divmod: lambda r, a, b: divmod(native(r, a), native(r, b)),
    pow: lambda r, *args: pow(*[native(r, a) for a in args]), ord: lambda r, x: ord(native(r, x)),
    chr: lambda r, x: chr(r.index(x)),
    **{f: lambda r, x, f=f: f(r.index(x)) for f in (bin, hex, oct)},
    ascii: _refused("calls ascii()"), id: _id, **{f: _refused(what) for f, what in OUTSIDE.items()},
    functools.reduce: lambda r, f, x, *first: functools.reduce(
        lambda a, b: call(r, f, (a, b), {}), r.iterator(x), *first),
}


def _sequence(cls):
    def make(r, *args):
        if args and cls in (set, frozenset):
            return cls(map(r.key, r.elements(*args)))
        return cls(r.iterator(*args)) if args else cls()
    return make


def is_mapping_from_outside(r, x):
    """Whether ``x`` is a dictionary from outside, which is read as a whole."""
    return is_mapping(x) and r.source_of(x) is not None


def _dict(cls):
    def make(r, /, *args, **kwargs):
        first = args[:-1] if cls is collections.defaultdict else ()
        given = args[len(first):] if cls is not collections.defaultdict else args[1:]
        if cls is collections.defaultdict:
            first = args[:1]
        if given and type(given[0]) not in (dict, collections.OrderedDict, collections.defaultdict):
            if r.in_class(type(given[0]), "keys") is not ABSENT and not is_mapping_from_outside(r, given[0]):
                r.unsupported(f"it reads a {type(given[0]).__name__} as a mapping")
        if given and not isinstance(given[0], dict):
            given = ([tuple(r.elements(pair)) for pair in r.elements(given[0])],)
            for pair in given[0]:
                r.key(pair[0])
        return cls(*first, *[r.read(g) for g in given], **kwargs)
    return make


def _number(cls):
    def make(r, *args):
        if len(args) > 1:
            args = [a.guard() if type(a) in NUMBERS else a for a in args]
        elif args and not isinstance(args[0], (str, int, float, Tensor)):
            if isinstance(args[0], (SymInt, SymFloat, SymBool)):
                return sym_int(args[0]) if cls is int else sym_float(args[0]) if cls is float \
                    else cls(args[0])
            found = r.in_class(type(args[0]), f"__{cls.__name__}__")
            if isinstance(found, types.FunctionType):
                return r.answer(found, args[0], {int: (int, SymInt), float: (float, SymFloat)}.get(cls, (cls,)))
            if is_value(args[0]):
                return cls(*args)
        return cls(*[native(r, a) for a in args])
    return make


def _str(r, *args):
    if len(args) > 1:
        return str(*[native(r, a) for a in args])
    return text_of(r, args[0]) if args else ""


def _refuse_texts(r, meta):
    """Refuses the text of a class whose metaclass writes it."""
    if any([isinstance(r.in_class(meta, name), types.FunctionType) for name in ("__str__", "__repr__", "__format__")]) \
            and meta.__module__ not in ("enum", "abc"):
        r.unsupported(f"it formats a class of metaclass {meta.__name__}")


def text_of(r, x, write=str):
    """``str`` or ``repr`` of a value; refuses values that depend on tensors' data."""
    if isinstance(x, Tensor):
        r.unsupported("it formats a tensor")
    if isinstance(x, type):
        _refuse_texts(r, type(x))
    if isinstance(x, (type, types.FunctionType, enum.Enum)) or r.is_simple(x) or type(x) in CONTAINERS:
        return write(concrete(r, x))
    for name in ("__str__", "__repr__") if write is str else ("__repr__",):
        found = r.in_class(type(x), name)
        if isinstance(found, types.FunctionType) and not isinstance(x, BaseException):
            return r.answer(found, x, (str,))
    if isinstance(x, BaseException) and r.source_of(x) is None and all([is_value(v) for v in x.args]):
        return write(x)
    if is_value(x):
        return write(x)
    r.unsupported(f"it formats an object of class {type(x).__name__}")


def formatted(r, x, *spec):
    """The value as ``format`` gets it."""
    if isinstance(x, type):
        _refuse_texts(r, type(x))
    if type(x) in CONTAINERS or r.is_simple(x) or isinstance(x, (type, types.FunctionType, enum.Enum)):
        return concrete(r, x)
    if isinstance(r.in_class(type(x), "__format__"), types.FunctionType):
        r.unsupported(f"it formats an object of class {type(x).__name__}, which has its own __format__")
    return text_of(r, x)


def _reversed(r, x):
    if type(x) in PLAIN:
        return reversed(r.read(x))
    found = r.in_class(type(x), "__reversed__")
    if isinstance(found, types.FunctionType):
        return call(r, found, (x,), {})
    if found is ABSENT:                     # by its length and its elements
        return (r.item(x, k) for k in range(operator.index(r.length(x)) - 1, -1, -1))
    if r.source_of(x) is None and is_heap_type(type(x)):
        return reversed(x)                  # a method in C, which calls no others
    return reversed(r.elements(x))


def _made_partial(r, f, /, *args, **kwargs):
    if type(f) is functools.partial and r.source_of(f) is not None:     # the class would merge the inner partial
        f = as_function(r, f)
    return functools.partial(f, *args, **kwargs)


CLASSES |= {
    list: _sequence(list), tuple: _sequence(tuple), set: _sequence(set), frozenset: _sequence(frozenset),
    collections.deque: lambda r, iterable=(), maxlen=None: collections.deque(r.iterator(iterable), native(r, maxlen)),
    dict: _dict(dict), collections.OrderedDict: _dict(collections.OrderedDict),
    collections.defaultdict: _dict(collections.defaultdict),
    zip: lambda r, *xs, **kw: zip(*[r.iterator(x) for x in xs], **kw),
    enumerate: lambda r, iterable, start=0: enumerate(r.iterator(iterable), r.index(start)),
    map: lambda r, f, *xs: map(functools.partial(r.call, f), *[r.iterator(x) for x in xs]),
    filter: lambda r, f, x: (v for v in r.iterator(x) if r.truth(v if f is None else r.call(f, v))),
    reversed: _reversed, int: _number(int), float: _number(float), bool: lambda r, x=False: r.truth(x), str: _str,
    complex: _number(complex), range: lambda r, *xs: range(*[operator.index(r.index(x)) for x in xs]),
    type: _type, super: lambda r, *xs: super(*xs), slice: lambda r, *xs: slice(*map(r.index, xs)),
    object: lambda r: object(),
    functools.partial: _made_partial,
}


def _asked(kind, name):
    """The answer to a call of a function of ``operator``: that to the operator itself."""
    return lambda r, *args: getattr(r, kind)(name, *args)


OPERATORS |= {o.function: _asked(o.kind, o.name) for o in PYTHON.values()}
OPERATORS |= {o.inplace: _asked("augmented", o.inplace.__name__) for o in PYTHON.values() if o.inplace is not None}
OPERATORS |= {getattr(operator, name): _asked("compare", name) for name in ("is_", "is_not")}
OPERATORS |= {operator.index: lambda r, x: x if type(x) is SymInt else operator.index(r.index(x)),
              operator.abs: lambda r, x: r.unary("abs", x), operator.concat: lambda r, a, b: r.binary("add", a, b)}
OPERATORS |= {operator.getitem: lambda r, x, i: r.item(x, i),
              operator.contains: lambda r, x, i: r.contains(x, i), operator.not_: lambda r, x: not r.truth(x),
              operator.truth: lambda r, x: r.truth(x), math.prod: lambda r, x, *, start=1: functools.reduce(
                  lambda a, b: r.binary("mul", a, b), r.elements(x), start),
              operator.setitem: lambda r, x, i, v: r.set_item(v, x, i)}
