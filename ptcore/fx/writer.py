"""The walk over the arguments of nodes by which graphs are written, as Python code and as the text of files."""
import enum

from ptcore.fx.node import Node


class ValueWriter:
    """Writes arguments. A dialect has ``leaf`` for what holds no other values, and its own forms of some others."""

    CALL = "{}({})"                     # a word in front of parentheses

    def value(self, a):
        """An argument as text."""
        if isinstance(a, Node):
            return self.node(a)
        if isinstance(a, enum.Enum):
            return self.member(a)
        if isinstance(a, tuple):
            return self.sequence(a)
        if isinstance(a, list):
            return f"[{self.values(a)}]"
        if isinstance(a, dict):
            return "{" + ", ".join([f"{self.value(key)}: {self.value(x)}" for key, x in a.items()]) + "}"
        if isinstance(a, slice):
            return self.CALL.format("slice", self.values((a.start, a.stop, a.step)))
        return self.leaf(a)

    def values(self, items):
        return ", ".join(map(self.value, items))

    def arguments(self, args, kwargs):
        """The arguments of a call."""
        return ", ".join([*map(self.value, args), *[f"{key} = {self.value(x)}" for key, x in kwargs.items()]])

    def node(self, node):
        return node.name

    def member(self, a):
        return self.leaf(a)

    def sequence(self, a):
        return f"({self.values(a)}{',' if len(a) == 1 else ''})"
