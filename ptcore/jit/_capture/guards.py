"""Guards: what must hold for a captured program to be what the user's function would do, as data, and their check.

A ``Source`` is a path from what is there at each call, the arguments and constant objects, to a value. A ``Guard``
says what that value must be. ``Program`` holds the guards of one segment and compiles them to one Python function,
which also fetches the tensors that the segment takes.
"""
__all__ = ["Guard", "Program", "Source"]

# What a source is, and how its value is written: {0} is its parent's value, {1} its key.
READS = {
    "argument": "args[{1}]",        # of the call, keywords behind
    "object": "{1}",                # the key itself
    "instance": "{0}.__dict__[{1}]",
    "attribute": "getattr({0}, {1})",
    "item": "{0}[{1}]",
    "cell": "{1}.cell_contents",
}


class Source:
    """Where a value comes from.

    Attributes
    ----------
    kind : str
        A key of ``READS``, or "class": what a class or its bases have under a name.
    parent : Source or None
    key
        An index, a name, a cell, an object; of "class" the class, the name, what was found, in which class, and the
        order of classes.
    text : str
        For people.
    """

    __slots__ = ("key", "kind", "parent", "text")

    def __init__(self, kind, parent, key, text):
        self.kind, self.parent, self.key, self.text = kind, parent, key, text

    def __repr__(self):
        return self.text

    def fetch(self, args):
        """Its value in a call."""
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


ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()


def class_value(cls, name):
    """What a class or its bases have under a name, as it is there; ABSENT if nothing."""
    owner = owner_of(cls, name)
    return ABSENT if owner is None else owner.__dict__[name]


def owner_of(cls, name):
    """The first of a class and its bases that has a name, or None."""
    for c in cls.__mro__:
        if name in c.__dict__:
            return c
    return None


class Guard:
    """A condition on the value of a source.

    Attributes
    ----------
    kind : str
        A key of ``CONDITIONS``.
    source : Source
    expected
        What the kind compares with.
    where : (file, line) or None
        The user's line that read it.
    """

    __slots__ = ("expected", "kind", "source", "where")

    def __init__(self, kind, source, expected, where=None):
        self.kind, self.source, self.expected, self.where = kind, source, expected, where

    def __repr__(self):
        return TEXTS[self.kind].format(self.source, _short(self.expected))

    def holds(self, args):
        """Whether it holds in a call; the slow form of what Program compiles."""
        try:
            value = self.source.fetch(args)
        except (KeyError, AttributeError, IndexError, ValueError, TypeError):
            return False
        return bool(HOLDS[self.kind](value, self.expected, args))


def _short(x):
    if isinstance(x, TensorLook):
        return repr(x)
    if isinstance(x, type):
        return x.__name__
    if isinstance(x, Source):
        return x.text
    text = repr(x)
    return text if len(text) < 60 else f"{text[:56]} ..."


class TensorLook:
    """What a captured program takes for granted of a tensor: all but its values."""

    __slots__ = ("cls", "device", "dtype", "dynamic", "is_leaf", "requires_grad", "shape", "stride")

    def __init__(self, t, dynamic=()):
        self.cls, self.dtype, self.device = type(t), t.dtype, t.device
        self.shape, self.stride = tuple(t.shape), tuple(t.stride())
        self.requires_grad, self.is_leaf, self.dynamic = t.requires_grad, t.is_leaf, tuple(dynamic)

    def matches(self, t):
        if (type(t) is not self.cls or t.dtype is not self.dtype or t.requires_grad is not self.requires_grad
                or t.device != self.device or (self.requires_grad and t.is_leaf is not self.is_leaf)):
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
        if tuple(t.shape) != self.shape:
            return f"shape {list(t.shape)}, not {list(self.shape)}"
        return f"strides {t.stride()}, not {self.stride}"

    def __repr__(self):
        sizes = [f"{n}*" if d in self.dynamic else str(n) for d, n in enumerate(self.shape)]
        return f"{self.dtype}[{', '.join(sizes)}] strides {list(self.stride)} on {self.device}" \
               f"{', requires_grad' if self.requires_grad else ''}"


def order_of(shape, strides):
    """What of strides does not depend on sizes: the order of the dims and whether there are gaps; None for others."""
    dims = sorted([d for d, n in enumerate(shape) if n != 1], key=lambda d: (-strides[d], d))
    at = 1
    for d in reversed(dims):
        if strides[d] != at:
            return tuple(strides), tuple(shape)
        at *= shape[d]
    return tuple(dims)


def same_value(a, b):
    """Whether a number or word is the same, kind, sign of zero and NaN included."""
    return type(a) is type(b) and (a == b or (a != a and b != b)) and (a != 0 or str(a) == str(b))


def same_keys(value, keys):
    found = list(value)
    return len(found) == len(keys) and all([a is b or (type(a) is type(b) and a == b) for a, b in zip(found, keys)])


HOLDS = {
    "is": lambda v, e, args: v is e,
    "value": lambda v, e, args: same_value(v, e),
    "type": lambda v, e, args: type(v) is e,
    "length": lambda v, e, args: len(v) == e,
    "keys": lambda v, e, args: same_keys(v, e),
    "no attribute": lambda v, e, args: e not in v.__dict__,
    "no key": lambda v, e, args: e not in v,
    "has key": lambda v, e, args: e in v,
    "class": lambda v, e, args: v is e,
    "tensor": lambda v, e, args: e.matches(v),
    "same": lambda v, e, args: v is e.fetch(args),
    "not same": lambda v, e, args: v is not e.fetch(args),
    "call": lambda v, e, args: v() == e,
    "apart": lambda v, e, args: e(v, args),
    "distinct": lambda v, e, args: e(v, args),
    "sizes": lambda v, e, args: e(args),
}
TEXTS = {
    "is": "{0} is {1}", "value": "{0} == {1}", "type": "type({0}) is {1}", "length": "len({0}) == {1}",
    "keys": "list({0}) == {1}", "no attribute": "{0} has no attribute {1}", "no key": "{1} not in {0}",
    "has key": "{1} in {0}", "class": "{0} is {1}", "tensor": "{0} is {1}", "same": "{0} is {1}",
    "not same": "{0} is not {1}", "call": "{0} == {1}", "apart": "{0} overlaps others as before",
    "distinct": "{0} is none of the others, as before", "sizes": "{0}",
}


def tuple_of(cls, parts):
    """A tuple of a class, as that of its own makes one: named tuples of Python, and those that C functions return."""
    return cls(parts) if hasattr(cls, "n_sequence_fields") else tuple.__new__(cls, parts)


SLOW_CHECKS = 4
NAMED = ("no attribute", "no key", "has key")       # several of them may be on one source


class Program:
    """The guards of a segment and the inputs it takes.

    Attributes
    ----------
    guards : list of Guard
        In the order in which they are checked: a later one may rely on those before it.
    inputs : list of Source
    check : callable
        Of the arguments of a call.
    """

    def __init__(self):
        self.guards, self.inputs = [], []
        self._met = set()
        self.check, self.uses = self._first_checks, 0

    def add(self, kind, source, expected, where=None):
        """Adds a guard, once."""
        key = kind, id(source), expected if kind in NAMED else id(expected) if kind in ("same", "not same") else None
        if key not in self._met:
            self._met.add(key)
            self.guards.append(Guard(kind, source, expected, where))

    def failing(self, args):
        """The first guard that does not hold, or None."""
        return next((g for g in self.guards if not g.holds(args)), None)

    def _first_checks(self, args):
        """``check(args)`` gives the tuple of inputs, or None if a guard does not hold. The first times it asks guard by
        guard; to compile a check takes as long as some dozens of such."""
        self.uses += 1
        if self.uses > SLOW_CHECKS:
            self.check = _compiled(self)
            return self.check(args)
        if self.failing(args) is not None:
            return None
        return tuple([s.fetch(args) for s in self.inputs])


class _Text:
    """The text of a check: statements, the names of objects in it, and which source has which variable."""

    def __init__(self):
        self.lines, self.space, self.variables, self.objects = [], {}, {}, {}
        self.spaces, self.said = {}, set()

    def object(self, x):
        if x is None or x is True or x is False or type(x) is int or type(x) is str:
            return repr(x)
        return self.named(x)

    def named(self, x):
        """The name of an object."""
        if x is None or x is True or x is False:
            return repr(x)
        name = self.objects.get(id(x))
        if name is None:
            name = self.objects[id(x)] = f"c{len(self.objects)}"
            self.space[name] = x
        return name

    def variable(self, source):
        found = self.variables.get(source)
        if found is None:
            if source.kind == "object":
                return self.object(source.key)
            if source.kind == "class":          # a guard of its own says that it is this object
                return self.object(source.key[2])
            parent = None if source.parent is None else self.variable(source.parent)
            value = READS[source.kind].format(parent, self.object(source.key))
            if source.kind == "attribute" and source.key.isidentifier():
                value = f"{parent}.{source.key}"
            found = self.variables[source] = f"v{len(self.variables)}"
            self.lines.append(f"{found} = {value}")
        return found

    def fails(self, condition):
        if condition not in self.said:
            self.said.add(condition)
            self.lines.append(f"if {condition}: return None")

    def space_of(self, cls):
        """The name of a class's dictionary."""
        name = self.spaces.get(cls)
        if name is None:
            name = self.spaces[cls] = f"d{len(self.spaces)}"
            self.space[name] = cls.__dict__
        return name

    def guard(self, g):
        kind, e = g.kind, g.expected
        if kind == "class":
            cls, name, _, owner, mro = g.source.key
            self.fails(f"{self.named(cls)}.__mro__ is not {self.named(mro)}")
            for c in mro:
                if c is owner:
                    if not _fixed(c):
                        self.fails(f"{self.space_of(c)}[{name!r}] is not {self.named(e)}")
                    break
                if not _fixed(c):
                    self.fails(f"{name!r} in {self.space_of(c)}")
            return
        if g.source.kind == "class" and kind in ("is", "value", "type"):
            return
        v = self.variable(g.source)
        if kind == "is":
            self.fails(f"{v} is not {self.named(e)}")
        elif kind == "type":
            self.fails(f"type({v}) is not {self.object(e)}")
        elif kind == "length":
            self.fails(f"len({v}) != {e}")
        elif kind == "value" and type(e) in (bool, type(None)):
            self.fails(f"{v} is not {e!r}")
        elif kind == "value" and type(e) in (int, str):
            self.fails(f"{v} != {e!r} or type({v}) is not {type(e).__name__}")
        elif kind == "no attribute":
            self.fails(f"{e!r} in {v}.__dict__")
        elif kind in ("no key", "has key"):
            self.fails(f"{self.object(e)} {'in' if kind == 'no key' else 'not in'} {v}")
        elif kind in ("same", "not same"):
            self.fails(f"{v} is {'not ' if kind == 'same' else ''}{self.variable(e)}")
        elif kind == "call":
            self.fails(f"{v}() != {self.object(e)}")
        elif kind == "tensor" and not e.dynamic:
            t = self.object(e)
            leaf = f" or {v}.is_leaf is not {e.is_leaf}" if e.requires_grad else ""
            self.fails(f"type({v}) is not {self.object(e.cls)} or {v}.dtype is not {self.object(e.dtype)} or "
                       f"{v}.shape != {self.object(e.shape)} or {v}.stride() != {self.object(e.stride)} or "
                       f"{v}.requires_grad is not {e.requires_grad}{leaf} or {v}.device != {t}.device")
        else:
            self.fails(f"not {self.object(HOLDS[kind])}({v}, {self.object(e)}, args)")


def _fixed(cls):
    """Whether the attributes of a class cannot be written."""
    return not cls.__flags__ & 1 << 9       # no heap type


_made = 0


def _compiled(program):
    global _made
    text = _Text()
    for g in program.guards:
        text.guard(g)
    inputs = [text.variable(s) for s in program.inputs]
    body = text.lines + [f"return ({', '.join(inputs)}{',' if len(inputs) == 1 else ''})"]
    source = "def check(args):\n  try:\n    " + "\n    ".join(body) + "\n  except RAISED: return None\n"
    text.space["RAISED"] = (KeyError, AttributeError, IndexError, ValueError, TypeError)
    _made += 1
    name = f"<guards {_made}>"
    # The text consists of the forms above; what the program read stands in it as names of objects or by repr.
    exec(compile(source, name, "exec"), text.space)
    made = text.space["check"]
    made.source = source
    return made
