"""Guards: the conditions under which a captured program equals the user's function, as data, and their check.

A ``Source`` is a path to a value from what exists at each call: the arguments and constant objects. A ``Guard`` is a
condition on that value. ``Program`` holds the guards of one segment and compiles them to one ``Check``, which also
fetches the tensors that the segment takes.
"""
import types
import weakref

from ptcore.jit._entry import Check, Guards, Look, has_gradient_hooks
from ptcore.jit.capture.kinds import is_heap_type, value_base


class Source:
    """The path to a value.

    Attributes
    ----------
    kind : str
        "argument" (of the call, those by keyword behind), "object" (the key itself), "instance" (an entry of
        ``__dict__``), "attribute", "item", "cell" (the contents of one), or "class": what a class or its bases have
        under a name.
    parent : Source or None
    key
        An index, a name, a cell, an object; for "class" the class, the name, the entry found, the class that has it,
        and the order of classes.
    text : str
        For people.
    """

    __slots__ = ("key", "kind", "parent", "text")

    def __init__(self, kind, parent, key, text):
        self.kind, self.parent, self.key, self.text = kind, parent, key, text

    def __repr__(self):
        return self.text

    def may_change(self):
        """Whether an effect of a captured program may replace the object at this path."""
        return self.kind == "attribute" and self.key == "grad"

    def fetch(self, args):
        """The value of this source in a call."""
        kind = self.kind
        if kind == "argument":
            return args[self.key]
        if kind == "object":
            return self.key
        if kind == "cell":
            return self.key.cell_contents
        if kind == "class":
            return class_value(*self.key[:2])
        base = self.parent.fetch(args)
        if kind == "instance":
            return base.__dict__[self.key]
        return getattr(base, self.key) if kind == "attribute" else base[self.key]


RAISED = (KeyError, AttributeError, IndexError, ValueError, TypeError, ReferenceError)
ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()


def class_value(cls, name):
    """The entry of a class or its bases under a name, without binding; ABSENT if there is none."""
    owner = owner_of(cls, name)
    return ABSENT if owner is None else owner.__dict__[name]


def owner_of(cls, name):
    """The first of a class and its bases that defines a name, or None."""
    for c in cls.__mro__:
        if name in c.__dict__:
            return c
    return None


class Guard:
    """A condition on the value of a source.

    Attributes
    ----------
    kind : str
        A key of ``HOLDS``.
    source : Source
    expected
        The operand of the comparison.
    where : (file, line) or None
        The user's line that read it.
    """

    __slots__ = ("expected", "kind", "source", "where")

    def __init__(self, kind, source, expected, where=None):
        self.kind, self.source, self.expected, self.where = kind, source, expected, where

    def __repr__(self):
        return TEXTS[self.kind].format(self.source, _short(self.expected))

    def holds(self, args):
        """Whether the guard holds in a call. This is the slow form of the check that Program compiles."""
        try:
            return bool(HOLDS[self.kind](self.source.fetch(args), self.expected, args))
        except RAISED:                      # the path no longer exists
            return False


def _short(x):
    if isinstance(x, TensorLook):
        return repr(x)
    if isinstance(x, type):
        return x.__name__
    if isinstance(x, Source):
        return x.text
    if isinstance(x, types.CodeType):
        return f"that of {x.co_qualname}, line {x.co_firstlineno}"
    text = repr(x)
    return text if len(text) < 60 else f"{text[:56]} ..."


class TensorLook:
    """The facts about a tensor that a captured program relies on: everything except values."""

    __slots__ = ("cls", "device", "dtype", "dynamic", "is_hooked", "is_leaf", "look", "requires_grad", "shape",
                 "stride")

    def __init__(self, t, dynamic=()):
        self.cls, self.dtype, self.device = type(t), t.dtype, t.device
        self.shape, self.stride = tuple(t.shape), tuple(t.stride())
        self.requires_grad, self.is_leaf, self.dynamic = t.requires_grad, t.is_leaf, tuple(dynamic)
        self.is_hooked = has_gradient_hooks(t)
        self.look = None if self.dynamic else Look(t)

    def matches(self, t):
        if (type(t) is not self.cls or t.dtype is not self.dtype or t.requires_grad is not self.requires_grad
                or t.device != self.device or (self.requires_grad and t.is_leaf is not self.is_leaf)
                or has_gradient_hooks(t) is not self.is_hooked):
            return False
        if not self.dynamic:
            return t.shape == self.shape and t.stride() == self.stride
        return len(t.shape) == len(self.shape) and order_of(t.shape, t.stride()) == order_of(self.shape, self.stride) \
            and all([d in self.dynamic or t.shape[d] == n for d, n in enumerate(self.shape)])

    def difference(self, t):
        """The first thing in which a tensor differs, in words."""
        if type(t) is not self.cls:
            return f"class {type(t).__name__}, not {self.cls.__name__}"
        for name in ("dtype", "device", "requires_grad", "is_leaf"):
            if getattr(t, name) != getattr(self, name):
                return f"{name} {getattr(t, name)}, not {getattr(self, name)}"
        if has_gradient_hooks(t) is not self.is_hooked:
            return "no hooks on its gradient" if self.is_hooked else "hooks on its gradient"
        if tuple(t.shape) != self.shape:
            return f"shape {list(t.shape)}, not {list(self.shape)}"
        return f"strides {t.stride()}, not {self.stride}"

    def __repr__(self):
        sizes = [f"{n}*" if d in self.dynamic else str(n) for d, n in enumerate(self.shape)]
        return f"{self.dtype}[{', '.join(sizes)}] strides {list(self.stride)} on {self.device}" \
               f"{', requires_grad' if self.requires_grad else ''}"


def order_of(shape, strides):
    """The layout independent of sizes: the order of dims of a tensor without gaps, otherwise strides and shape."""
    dims = sorted([d for d, n in enumerate(shape) if n != 1], key=lambda d: (-strides[d], d))
    at = 1
    for d in reversed(dims):
        if strides[d] != at:
            return tuple(strides), tuple(shape)
        at *= shape[d]
    return tuple(dims)


PLAIN_EQUAL = {int, bool, str, bytes, type(None)}


def same_value(a, b):
    """Whether two values are the same. Type, sign of zero and text count, and NaN equals NaN."""
    if type(a) is not type(b):
        return False
    return a == b if type(a) in PLAIN_EQUAL else repr(a) == repr(b)


def same_base(a, b):
    """Whether two objects of one subclass of a class of values have the same value."""
    if type(a) is not type(b):
        return False
    write = value_base(type(b)).__repr__
    return write(a) == write(b)


def is_empty(cell):
    """Whether a cell is empty, because it was never set or was deleted."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def same_keys(value, keys):
    found = list(value)
    return len(found) == len(keys) and all([a is b or (type(a) is type(b) and a == b) for a, b in zip(found, keys)])


HOLDS = {
    "is": lambda v, e, args: v is e,
    "value": lambda v, e, args: same_value(v, e),
    "base value": lambda v, e, args: same_base(v, e),
    "type": lambda v, e, args: type(v) is e,
    "lacks": lambda v, e, args: not hasattr(v, e),
    "subclass": lambda v, e, args: issubclass(e[0], v) is e[1],
    "offset": lambda v, e, args: v.storage_offset() == e,
    "length": lambda v, e, args: len(v) == e,
    "keys": lambda v, e, args: same_keys(v, e),
    "dict keys": lambda v, e, args: same_keys(v, e),
    "no attribute": lambda v, e, args: e not in v.__dict__,
    "no key": lambda v, e, args: e not in v,
    "has key": lambda v, e, args: e in v,
    "class": lambda v, e, args: v is e,
    "function": lambda v, e, args: type(v) is types.FunctionType and v.__code__ is e,
    "empty": lambda v, e, args: is_empty(v),
    "tensor": lambda v, e, args: e.matches(v),
    "same": lambda v, e, args: v is e.fetch(args),
    "not same": lambda v, e, args: v is not e.fetch(args),
    "modes": lambda v, e, args: e.hold(),
    "apart": lambda v, e, args: e(v, args),
    "distinct": lambda v, e, args: e(v, args),
    "sizes": lambda v, e, args: e(args),
}
TEXTS = {
    "is": "{0} is {1}", "value": "{0} == {1}", "base value": "{0} == {1}", "lacks": "{0} has no attribute {1}",
    "subclass": "whether a class is a subclass of {0} is {1}", "offset": "{0}.storage_offset() == {1}",
    "type": "type({0}) is {1}", "length": "len({0}) == {1}",
    "keys": "list({0}) == {1}", "dict keys": "list({0}) == {1}",
    "no attribute": "{0} has no attribute {1}", "no key": "{1} not in {0}",
    "has key": "{1} in {0}", "class": "{0} is {1}", "function": "{0}.__code__ is {1}", "empty": "{0} is empty",
    "tensor": "{0} is {1}", "same": "{0} is {1}",
    "not same": "{0} is not {1}", "modes": "the modes of this thread are {1}", "apart": "{0} overlaps others as before",
    "distinct": "{0} is none of the others, as before", "sizes": "{0}",
}


def tuple_of(cls, parts):
    """A tuple of a class without a call of its ``__new__``: for Python's named tuples and those of C functions."""
    return cls(parts) if hasattr(cls, "n_sequence_fields") else tuple.__new__(cls, parts)


SLOW_CHECKS = 4
# Kinds that may occur several times on one source.
NAMED = ("no attribute", "no key", "has key", "lacks", "subclass")


class Program(Guards):
    """The guards of a segment and the inputs it takes.

    Attributes
    ----------
    guards : list of Guard
        In the order in which they are checked: a later one may rely on those before it.
    inputs : list of Source
    functions : dict of Source
        Where functions are called that are known by their code, and weak references to those of the capture.
    check : callable
        Of the arguments of a call. It may be stricter than the guards: see ``relaxed``.
    """

    def __init__(self):
        self.guards, self.inputs, self.functions = [], [], {}
        self._met = set()
        self.check, self.uses = self._first_checks, 0
        self.fixed, self.loose = {}, None   # functions that ``check`` compares by identity; a check that does not

    def add(self, kind, source, expected, where=None):
        """Adds a guard, once."""
        key = kind, id(source), expected if kind in NAMED else id(expected) if kind in ("same", "not same") else None
        if key not in self._met:
            self._met.add(key)
            self.guards.append(Guard(kind, source, expected, where))

    def add_function(self, source, function, where=None):
        """Guards the code of a function."""
        self.add("function", source, function.__code__, where)
        if source.kind != "object":
            self.functions[source] = weakref.ref(function)

    def failing(self, args):
        """The first guard that does not hold, or None."""
        return next((g for g in self.guards if not g.holds(args)), None)

    def _first_checks(self, args):
        """``check(args)`` gives the tuple of inputs, or None if a guard does not hold. The first calls check guard by
        guard, since compiling a check takes as long as some dozens of such calls."""
        self.uses += 1
        if self.uses > SLOW_CHECKS:
            met = {s: ref() for s, ref in self.functions.items()}
            self.fixed = {s: f for s, f in met.items() if f is not None}
            self.check = _compiled(self, self.fixed)
            return self.check(args)
        if self.failing(args) is not None:
            return None
        return tuple([s.fetch(args) for s in self.inputs])

    def relaxed(self, args):
        """Checks without comparing functions by identity; then drops the functions that were replaced from ``check``.

        ``check`` is cheap because it expects the function objects of the capture. Where it fails, the guards themselves
        may still hold. Returns the inputs, or None.
        """
        if not self.fixed:
            return None
        if self.loose is None:
            self.loose = _compiled(self, {})
        inputs = self.loose(args)
        if inputs is not None:
            self.fixed = {s: f for s, f in self.fixed.items() if s.fetch(args) is f}
            self.check = _compiled(self, self.fixed) if self.fixed else self.loose
        return inputs


class _Writer:
    """Writes guards as instructions of a ``Check``; a source is read once.

    ``fixed``: sources of functions that must be the same objects as before. Parts of a fixed function that cannot
    change are not read: its globals, its cells, and its default values.
    """

    def __init__(self, fixed):
        self.fixed = fixed
        self.instructions, self.places, self.dicts, self.said, self.n = [], {}, {}, set(), 0
        self.classes = {}               # class -> the conditions on it and its bases

    def say(self, op, a=0, b=0, key=None, expected=None, name=None):
        self.instructions.append((op, a, b, key, expected, name))

    def read(self, op, a=0, b=0, key=None):
        """Writes a read; returns the place of its value."""
        self.say(op, a, b, key)
        self.n += 1
        return self.n - 1

    def once(self, op, a, b=0, key=None, expected=None, name=None):
        """Writes a condition, unless it is written already."""
        said = op, a, b, id(key), id(expected), name
        if said not in self.said:
            self.said.add(said)
            self.say(op, a, b, key, expected, name)

    def dictionary(self, source):
        """The place of the ``__dict__`` of a source's value."""
        found = self.dicts.get(source)
        if found is None:
            found = self.dicts[source] = self.read("dict", self.place(source))
        return found

    def place(self, source):
        """The place of a source's value."""
        found = self.places.get(source)
        if found is None:
            found = self.places[source] = self._read(source)
        return found

    def part(self, source):
        """The value at a source below a fixed function if it cannot change, otherwise ABSENT."""
        found = self.fixed.get(source)
        if found is not None:
            return found
        key = source.key
        base = ABSENT if source.parent is None else self.part(source.parent)
        if type(base) is types.FunctionType and source.kind == "attribute" and key in PARTS:
            if key == "__defaults__":
                self.once("defaults", 0, key=base, expected=base.__defaults__)
            return getattr(base, key)
        return base[key] if source.kind == "item" and _has_item(base, key) else ABSENT

    def _read(self, source):
        kind, key = source.kind, source.key
        if self.fixed and source.parent is not None:
            base = self.part(source.parent)
            if type(base) is types.CellType and key == "cell_contents":
                return self.read("cell", key=base)
            if kind == "item" and _has_item(base, key):
                return self.read("constant", key=base[key])
        if kind == "argument":
            return self.read("argument", 0, key)
        if kind == "object":
            return self.read("constant", key=key)
        if kind == "class":                 # a guard of its own checks the identity of the class
            return self.read("constant", key=key[2])
        if kind == "cell":
            return self.read("cell", key=key)
        if kind == "instance":
            return self.read("item", self.dictionary(source.parent), key=key)
        return self.read(kind, self.place(source.parent), key=key)      # an attribute or an item

    def ask_class(self, cls, name, found, owner, mro):
        """Writes the conditions on the entry of a class and its bases under a name."""
        if _fixed(cls):
            return
        asked = self.classes.setdefault(cls, {("order", cls): ("order", 0, 0, cls, mro, None)})
        for c in mro:
            if not _fixed(c):
                asked[c, name] = ("own", 0, 0, c, found, name) if c is owner else ("foreign", 0, 0, c, name, None)
            if c is owner:
                break

    def all(self):
        """The instructions: conditions on classes first, since they read no value, then the rest."""
        first = []
        for cls, asked in self.classes.items():
            first += [("class", 0, len(asked), cls, None, None), *asked.values()]
        return first + self.instructions

    def same_object(self, source, expected):
        """Writes the condition that a source gives this object."""
        parent = source.parent
        if parent is not None and parent.kind == "object" and source not in self.places:
            if type(parent.key) is types.FunctionType and source.key == "__defaults__":
                self.once("defaults", 0, key=parent.key, expected=expected)
                return
            if type(parent.key) is dict and source.kind == "item":
                self.once("entry is", 0, key=parent.key, expected=expected, name=source.key)
                return
        self.once("is", self.place(source), expected=expected)

    def guard(self, g):
        kind, e = g.kind, g.expected
        if kind == "class":
            self.ask_class(*g.source.key)
            return
        if g.source.kind == "class" and kind in ("is", "value", "type"):
            return
        if kind == "no attribute":
            self.once("has not", self.dictionary(g.source), expected=e)
            return
        if kind == "modes":
            self.say("modes", expected=e)
            return
        if kind == "function" and g.source.kind == "object":
            self.once("code", 0, key=g.source.key, expected=e)
            return
        if kind in ("type", "function") and g.source in self.fixed:
            function = self.fixed[g.source]
            self.same_object(g.source, function)
            if kind == "function":
                self.once("code", 0, key=function, expected=e)
            return
        if self.fixed and kind in ("is", "value", "length") and g.source not in self.fixed:
            found = self.part(g.source)
            if found is not ABSENT and (kind != "length" or type(found) is tuple) and HOLDS[kind](found, e, ()):
                return                      # the guard holds and cannot fail later
        if kind == "is":
            self.same_object(g.source, e)
            return
        v = self.place(g.source)
        if kind == "function":
            self.once("type", v, expected=types.FunctionType)
            self.once("is", self.read("attribute", v, key="__code__"), expected=e)
        elif kind == "type":
            self.once(kind, v, expected=e)
        elif kind == "dict keys":
            self.once("keys", v, expected=e)
        elif kind == "length":
            self.once("length", v, e)
        elif kind == "value" and type(e) in (bool, type(None)):
            self.once("is", v, expected=e)
        elif kind == "value" and (type(e) in (int, str) or (type(e) is float and e == e and e != 0)):
            self.once("equal", v, expected=e)
        elif kind in ("no key", "has key"):
            self.once("has not" if kind == "no key" else "has", v, expected=e)
        elif kind in ("same", "not same"):
            self.once(kind, v, self.place(e))
        elif kind == "tensor" and e.look is not None:
            self.once("look", v, expected=e.look)
        else:
            self.once("ask", v, key=HOLDS[kind], expected=e)


def _has_item(x, k):
    """Whether ``x`` is a tuple with an item ``k``; defaults may have become fewer since the capture."""
    return type(x) is tuple and type(k) is int and -len(x) <= k < len(x)


def _fixed(cls):
    """Whether attributes of a class are read-only."""
    return not is_heap_type(cls)


PARTS = ("__globals__", "__closure__", "__defaults__")          # attributes of a function


def _compiled(program, fixed):
    writer = _Writer(fixed)
    for g in program.guards:
        writer.guard(g)
    inputs = [writer.place(s) for s in program.inputs]
    return Check(writer.all(), inputs, RAISED)
