"""The meanings of expressions at compile time: values of the graph, and objects known at script time alone."""

__all__ = ["Iterable", "Method", "Missing", "Mod", "Parameter", "Py", "Val"]


class Val:
    """A value of the program, with its static type: a node, a constant, or a tuple of these."""

    __slots__ = ("arg", "type")

    def __init__(self, arg, type):
        self.arg, self.type = arg, type


class Py:
    """A Python object known at script time: a function, a class, a module of Python."""

    __slots__ = ("obj",)

    def __init__(self, obj):
        self.obj = obj


class Mod:
    """A submodule (of nn) of the module whose method is compiled."""

    __slots__ = ("module", "path")

    def __init__(self, path, module):
        self.path, self.module = path, module

    def below(self, name):
        return f"{self.path}.{name}" if self.path else name


class Method:
    """A method as a callable: of a value, of a module, or of ``super()``."""

    __slots__ = ("function", "name", "owner")

    def __init__(self, owner, name, function=None):
        self.owner, self.name, self.function = owner, name, function


class Missing:
    """A variable without a value here, and the reason."""

    __slots__ = ("why",)

    def __init__(self, why):
        self.why = why


class Iterable:
    """An object that a loop iterates over.

    Attributes
    ----------
    length : function
        Gives the number of rounds as a value; None if ``items`` is set.
    item : function
        Gives the item of a round, by the value of its number.
    fixed : bool
        Whether the length cannot change in the loop.
    items : list or None
        The items themselves, where they are known at script time: the loop is written out.
    """

    __slots__ = ("fixed", "item", "items", "length")

    def __init__(self, length=None, item=None, fixed=True, items=None):
        self.length, self.item, self.fixed, self.items = length, item, fixed, items


class Parameter:
    """An argument of a scripted function."""

    __slots__ = ("default", "has_default", "keyword_only", "name", "type")

    def __init__(self, name, type, has_default=False, default=None, keyword_only=False):
        self.name, self.type, self.has_default, self.default = name, type, has_default, default
        self.keyword_only = keyword_only
