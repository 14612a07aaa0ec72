"""The recorder's answers to operators, comparisons, truth and text."""
import dataclasses
import enum
import operator
import sys
import types
from collections import OrderedDict, deque

from ptcore._sizes.symbolic import SymBool, SymInt
from ptcore._subclass import carried_by, payload_of
from ptcore._tensor import Tensor
from ptcore.fx.operators import COMPARED
from ptcore.jit.capture import builtin, calls
from ptcore.jit.capture.guards import ABSENT, same_value
from ptcore.jit.capture.kinds import (
    NUMBERS,
    OBJECTS,
    SETS,
    VALUES,
    is_container,
    is_generated,
    is_heap_type,
    is_mapping,
    is_nan,
    is_sequence,
    is_single,
    is_value,
    value_base,
)
from ptcore.jit.capture.rewrite import NAMESPACE
from ptcore.jit.capture.tracer import Stop

KEYS = type({}.keys()), type(OrderedDict().keys())
KEYED = (*SETS, *KEYS)
ITEMS = type({}.values()), type({}.items()), type(OrderedDict().values()), type(OrderedDict().items())


class Operators:
    """The half of the recorder that answers expressions."""

    def sliced(self, start, stop, step):
        return slice(self.index(start), self.index(stop), self.index(step))

    def truth(self, x):
        cls = type(x)
        if cls is bool or x is None:
            return x is True
        if isinstance(x, Tensor):
            return self.truth_of_tensor(self.known_tensor(x))
        if cls in VALUES or cls in NUMBERS:
            return bool(x)
        source = self.source_of(x)
        if source is None and cls in calls.PLAIN:
            return bool(x)
        return self.truth_of_object(x, cls, source)

    def truth_of_tensor(self, x):
        found = self.replaced(x, "__bool__")
        if found is not None:
            return self.truth(self.call(found, x))
        payload = carried_by(x, self.capture.tracer)
        if payload is None or x.numel() != 1 or payload.known_value() is not None:
            return bool(x)
        return self.capture.reads(payload, "truth")

    def truth_of_object(self, x, cls, source):
        if isinstance(x, OBJECTS) and not isinstance(x, type):
            return True
        found = ABSENT if not is_heap_type(cls) and is_container(x) else self.in_class(cls, "__bool__")
        if source is not None and found is ABSENT and is_container(x):
            return self.length(x) != 0
        if isinstance(found, types.FunctionType):
            return bool(self.answer(found, x, (bool, SymBool)))
        if found is ABSENT:
            found = self.in_class(cls, "__len__")
            if isinstance(found, types.FunctionType):
                return bool(self.length_by(found, x) != 0)
        if found is not ABSENT and source is not None and value_base(cls) is None:
            self.unsupported(f"it reads the truth of {source}, of class {cls.__name__}")
        return bool(x)

    def length(self, x):
        if isinstance(x, Tensor) and self.replaced(x, "__len__") is None:
            return len(self.known_tensor(x))
        source = self.source_of(x)
        if source is not None and is_container(x):
            self.guard("length", source, len(x))
            return len(x)
        found = self.in_class(type(x), "__len__")
        if isinstance(found, types.FunctionType):
            return self.length_by(found, x)
        if source is not None:
            self.unsupported(f"it reads the length of {source}, a {type(x).__name__}")
        return len(x)

    def answer(self, method, x, kinds):
        """What a special method gives, which must be of these classes."""
        made = self.call(method, x)
        if not isinstance(made, kinds):
            raise TypeError(f"{method.__name__} returned a {type(made).__name__}")
        return int(made) if type(made) is bool and kinds[0] is int else made

    def length_by(self, method, x):
        """The length that a method of Python gives."""
        n = self.call(method, x)
        if type(n) is not SymInt:
            n = operator.index(self.index(n))
        if n < 0:
            raise ValueError("__len__() should return >= 0")
        return n

    def both(self, first, *later):
        for x in later:
            if not self.truth(first):
                return first
            first = x()
        return first

    def either(self, first, *later):
        for x in later:
            if self.truth(first):
                return first
            first = x()
        return first

    def is_simple(self, x):
        cls = type(x)
        return cls in VALUES or cls in NUMBERS or (isinstance(x, Tensor) and payload_of(x) is not None)

    def replaced(self, x, *names):
        """The first of these special methods that Python code has put into the class of a tensor, or None; guarded."""
        if isinstance(x, Tensor):
            for name in names:
                found = self.in_class(type(x), name)
                if isinstance(found, types.FunctionType):
                    return found
        return None

    def unary(self, name, x):
        found = self.in_class(type(x), f"__{name}__")
        if isinstance(found, types.FunctionType) and type(x) not in NUMBERS:
            return self.call(found, x)
        if self.is_simple(x):
            return getattr(operator, name)(x)
        if isinstance(x, Tensor):
            return getattr(operator, name)(self.known_tensor(x))
        return getattr(operator, name)(self.native(x))

    def binary(self, name, a, b):
        if type(a) is str and name == "mod":
            return a % calls.concrete(self, b)
        word = name.rstrip("_")
        mine, other = self.replaced(a, f"__{word}__"), self.replaced(b, f"__r{word}__")
        if mine is None and other is None and self.is_simple(a) and self.is_simple(b):
            return getattr(operator, name)(a, b)
        mine, other = self.in_class(type(a), f"__{word}__"), self.in_class(type(b), f"__r{word}__")
        if isinstance(other, types.FunctionType) and (type(b) is not type(a) and issubclass(type(b), type(a))):
            result = self.call(other, b, a)
            if result is not NotImplemented:
                return result
        if isinstance(mine, types.FunctionType):
            result = self.call(mine, a, b)
            if result is not NotImplemented or not isinstance(other, types.FunctionType):
                if result is NotImplemented:
                    raise TypeError(f"unsupported operand type(s) for {word}: {type(a).__name__!r} and "
                                    f"{type(b).__name__!r}")
                return result
        if isinstance(other, types.FunctionType) and not self.takes_as_number(a, b):
            if not isinstance(a, Tensor) and mine is not ABSENT and not isinstance(mine, types.FunctionType):
                result = getattr(type(a), f"__{word}__")(a, b)
                if result is not NotImplemented:
                    return result
            return self.call(other, b, a)
        if not isinstance(a, Tensor) and not isinstance(b, Tensor) and (is_container(a) or is_container(b)):
            # containers of elements as the program sees them
            a, b = self.read(a), self.read(b)
            return getattr(operator, name)(*[x if is_container(x) else self.index(x) for x in (a, b)])
        return getattr(operator, name)(self.native(a), self.native(b))

    @staticmethod
    def takes_as_number(a, b):
        """Whether the operators of a tensor ``a`` take ``b``, of a subclass of numbers, without asking its methods."""
        return isinstance(a, Tensor) and isinstance(b, (int, float, complex)) and value_base(type(b)) is not None

    def augmented(self, name, a, b):
        if self.is_simple(a) and self.is_simple(b) and self.replaced(a, f"__{name}__") is None:
            return getattr(operator, name)(a, b)
        found = self.in_class(type(a), f"__{name}__")
        if isinstance(found, types.FunctionType):
            result = self.call(found, a, b)
            if result is not NotImplemented:
                return result
        elif found is not ABSENT and not isinstance(a, Tensor):
            if self.source_of(a) is not None:
                self.unsupported(f"it writes to {self.source_of(a)}, a {type(a).__name__} from outside")
            self.changes()
            if is_container(a) and type(b) not in NUMBERS and any([isinstance(
                    self.in_class(type(b), n), types.FunctionType) for n in (f"__r{name[1:]}__", "keys")]):
                self.unsupported(f"it puts an object of class {type(b).__name__} into a container")
            if not is_container(a):
                b = self.native(b)
            elif name == "imul":
                b = self.index(b)
            elif type(b) in calls.CONTAINERS:
                b = self.read(b)
            elif self.source_of(b) is not None or (isinstance(a, (list, deque)) and is_heap_type(type(b))):
                b = self.elements(b)
            return getattr(operator, name)(a, b)
        elif isinstance(a, Tensor):
            return getattr(operator, name)(self.known_tensor(a), self.native(b))
        word = name[1:]
        return self.binary(word + "_" if word in ("and", "or") else word, a, b)

    def compare(self, name, a, b):
        if name in ("is_", "is_not"):
            return self.same(a, b) == (name == "is_")
        if name in ("in_", "not_in"):
            found = self.contains(b, a)
            return found if name == "in_" else not self.truth(found)
        mine, other = self.replaced(a, f"__{name}__"), self.replaced(b, f"__{COMPARED[name]}__")
        if mine is None and other is None and self.is_simple(a) and self.is_simple(b):
            return getattr(operator, name)(a, b)
        for x, y, word in ((a, b, name), (b, a, COMPARED[name])):
            found = self.in_class(type(x), f"__{word}__")
            if self.takes_as_number(y, x) and x is b:
                break
            if isinstance(found, types.FunctionType):
                result = self.call(found, x, y)
                if result is not NotImplemented:
                    return result
            elif found is object.__ne__ and isinstance(self.in_class(type(x), "__eq__"), types.FunctionType):
                result = self.call(self.in_class(type(x), "__eq__"), x, y)
                if result is not NotImplemented:
                    return not self.truth(result)
        if name in ("eq", "ne"):
            if type(a) is type(b) is types.MethodType:
                parts = zip(calls.parts_of_method(self, a), calls.parts_of_method(self, b))
                return all([self.same(x, y) for x, y in parts]) == (name == "eq")
            if self.by_identity(a) and self.by_identity(b):
                return self.same(a, b) == (name == "eq")
            found = self.compare_containers(a, b)
            if found is not NotImplemented:
                return found == (name == "eq")
            for x, y in ((a, b), (b, a)):
                if type(y) in VALUES and (self.by_identity(x) or (type(x) in calls.CONTAINERS
                                                                  and type(y) in (int, float, bool, str, type(None)))):
                    return name == "ne"
        if isinstance(a, KEYED) and isinstance(b, KEYED):
            a, b = [set(map(self.key, self.elements(x))) for x in (a, b)]
            return getattr(operator, name)(a, b)
        return getattr(operator, name)(self.native(a), self.native(b))

    def by_identity(self, x):
        return type(x) not in VALUES and not isinstance(x, Tensor) and type(x).__eq__ is object.__eq__

    def same(self, a, b):
        """``a is b``, guarded where both are from outside."""
        a, b = [x.guard() if type(x) in NUMBERS else x for x in (a, b)]     # small numbers are one object each
        if type(a) is type(b) and is_value(a) and not is_single(a) and same_value(a, b):
            self.unsupported(f"it asks whether two values are one object, which are both {a!r}")
        first, second = self.source_of_any(a), self.source_of_any(b)
        found = a is b
        if first is not None and second is not None and first is not second \
                and not (first.kind == "object" and second.kind == "object"):
            self.guard("same" if found else "not same", first, second)
        return found

    def source_of_any(self, x):
        if isinstance(x, Tensor):
            real = self.originals.get(id(x))
            return None if real is None else self.stands[id(real)][1]
        return self.source_of(x)

    def key(self, x):
        """Guards an object that is put into a set or used as a key; returns the key."""
        if type(x) is frozenset or (isinstance(x, tuple) and type(x).__hash__ is tuple.__hash__):
            for v in self.elements(x):
                self.key(v)
        elif isinstance(x, Tensor):
            self.keyed.add(Tensor)
        elif type(x) is types.MethodType:
            for part in calls.parts_of_method(self, x):
                self.key(part)
        elif is_value(x):
            if is_nan(x):
                self.unsupported("it uses NaN as a key, which is found by its identity")
        else:
            if self.source_of(x) is not None:
                self.keyed.add(type(x))
            self.hashed(x)
        return x

    def keys(self, x):
        """The elements of ``*x`` as keys of a set."""
        return [self.key(v) for v in self.elements(x)]

    def hashed(self, x):
        """Guards the values that the hash of an object is computed from, and that it is compared by."""
        cls = type(x)
        found = self.in_class(cls, "__eq__")
        if isinstance(found, types.FunctionType) and not is_generated(found) and not isinstance(x, enum.Enum):
            self.refuse_symbols(cls)
            self.probe(found, x, x)     # guards what a comparison with a key reads
        found = self.in_class(cls, "__hash__")
        if not isinstance(found, types.FunctionType) or isinstance(x, enum.Enum):
            return
        self.refuse_symbols(cls)
        if dataclasses.is_dataclass(cls) and is_generated(found):
            for f in dataclasses.fields(cls):
                if f.compare:
                    self.key(self.attribute(x, f.name))
        else:
            self.probe(found, x)

    def probe(self, method, *args):
        """Calls a method for its guards alone; native code calls it again, or does not."""
        self.probing += 1
        try:
            self.call(method, *args)
        finally:
            self.probing -= 1

    def refuse_symbols(self, cls):
        """Native code calls methods of this class: what they make of a symbol is no guard."""
        if self.capture.symbolic:
            self.unsupported(f"it uses a {cls.__name__} as a key, which has its own methods for that")

    def contains(self, x, item):
        source, cls = self.source_of(x), type(x)
        if cls in SETS or is_mapping(x):
            self.key(item)
            if source is None and not is_heap_type(cls):
                return item in x
        if isinstance(x, Tensor) and self.replaced(x, "__contains__") is None:
            return operator.contains(self.known_tensor(x), self.native(item))
        if source is not None and (is_mapping(x) or cls in SETS):
            item = self.pinned(item)
            found = item in x
            self.guard("has key" if found else "no key", source, item)
            return found
        if source is not None and is_sequence(x):
            x = self.elements(x)
        found = self.in_class(cls, "__contains__")
        if (isinstance(found, types.FunctionType) and source is None) or (
                source is not None and isinstance(found, types.FunctionType)):
            return self.truth(self.call(found, x, item))
        if type(x) in (list, tuple, deque, *ITEMS) or found is ABSENT:
            return any(self.is_equal(v, item) for v in self.iterator(x))
        if type(x) in KEYS:
            if source is not None:
                return any([self.is_equal(v, item) for v in self.iterator(x)])
            return operator.contains(x, self.key(item))
        return operator.contains(self.native(x), self.native(item))

    def is_equal(self, a, b):
        """Whether two elements are equal to a container: the same object, or equal."""
        if (type(a) in NUMBERS or is_value(a)) and (type(b) in NUMBERS or is_value(b)) and not is_nan(a):
            return self.truth(self.compare("eq", a, b))
        return self.same(a, b) or self.truth(self.compare("eq", a, b))

    def compare_containers(self, a, b):
        """``a == b`` of two lists, tuples or dictionaries; NotImplemented for others."""
        for cls in (list, tuple, deque):
            if isinstance(a, cls) and isinstance(b, cls):
                if not is_sequence(a) or not is_sequence(b):
                    return NotImplemented
                if self.length(a) != self.length(b):
                    return False
                return all([self.is_equal(x, y) for x, y in zip(self.elements(a), self.elements(b))])
        if isinstance(a, KEYED) and isinstance(b, KEYED):
            return set(map(self.key, self.elements(a))) == set(map(self.key, self.elements(b)))
        if type(a) is type(b) is dict:
            a, b = self.read(a), self.read(b)
            return len(a) == len(b) and all([k in b and self.is_equal(v, b[k]) for k, v in a.items()])
        return NotImplemented

    def search(self, items, name, x, start=0, stop=None):
        """``items.count(x)``, ``items.index(x, ...)`` or the place for ``items.remove(x)`` of a list, a tuple or a
        deque."""
        places = range(len(items))[start:stop]
        if name == "count":
            return sum([self.is_equal(items[k], x) for k in places])
        for k in places:
            if self.is_equal(items[k], x):
                return k
        if not is_value(x):
            self.unsupported(f"it looks for an object of class {type(x).__name__} where there is none")
        return getattr(type(items)(), name)(x)      # raises

    def chain(self, first, *pairs):
        result = True
        for name, later in zip(pairs[::2], pairs[1::2]):
            second = later()
            result = self.compare(name, first, second)
            if name != pairs[-2] or later is not pairs[-1]:
                if not self.truth(result):
                    return result
            first = second
        return result

    def text(self, x, conversion):
        """The text of an f-string's field; ``conversion`` is the letter behind ``!`` or -1."""
        if conversion == -1:
            return x if type(x) in VALUES and not isinstance(x, tuple) else builtin.formatted(self, x)
        made = builtin.text_of(self, x, str if conversion == ord("s") else repr)
        return ascii(made)[1:-1] if conversion == ord("a") else made

    def context(self, x):
        return calls.context(self, x)

    def watched(self):
        """The context of the body of ``try``."""
        return calls.Watched(self.capture)

    def classes_caught(self, behind):
        """What stands behind ``except``, as a function: a class, or a tuple of such, whose elements are guarded."""
        return () if isinstance(sys.exc_info()[1], Stop) else self.classes_in(behind())

    def classes_in(self, x):
        return tuple([self.classes_in(v) for v in self.elements(x)]) if isinstance(x, tuple) else x

    def caught(self, is_named):
        """The first call of each exception handler. It raises exceptions that end a capture again, and errors that only
        the tracer may have raised. Errors of operations have another text in a capture: they are raised again where the
        handler names them."""
        self.check_error(sys.exc_info()[1], is_named)

    def finished(self):
        """The first call of each ``finally``, which may drop the error: by ``return``, ``break``, ``continue``, or
        another error."""
        error = sys.exc_info()[1]
        if error is not None:
            self.check_error(error, False)

    def check_error(self, error, is_named):
        """Refuses to go on behind an error that the program itself would not meet, or not with this text."""
        if isinstance(error, Stop):
            raise error
        trace = error.__traceback__
        if trace is None:
            return
        while trace.tb_next is not None:
            trace = trace.tb_next
        space = trace.tb_frame.f_globals
        if space is NAMESPACE:
            return
        name = space.get("__name__", "")
        if isinstance(error, RuntimeError) or self.capture.symbolic:    # no guard says which symbols raise it
            self.unsupported(f"it handles an error that an operation raised: {error}")
        elif is_named and name.startswith("ptcore.") and (      # the recorder's own have Python's text but for calls
                not name.startswith("ptcore.jit.capture.") or isinstance(error, TypeError)):
            self.unsupported(f"it reads an error that an operation raised: {error}")
