"""Scopes during compilation: the variables of a graph, and the values that blocks capture."""
from ptcore.fx.graph import Graph
from ptcore.fx.node import Node, map_arg
from ptcore.jit._script.values import Missing

__all__ = ["Frame"]


class Frame:
    """A graph being written, the variables that it knows, and the nodes that it captures of the graph around it.

    Parameters
    ----------
    graph : Graph
    parent : Frame, optional
        That of the graph, or of the scope, around.
    """

    def __init__(self, graph=None, parent=None):
        self.graph, self.parent = Graph() if graph is None else graph, parent
        # name -> value; name -> its declared type, or the type that it was first set with
        self.vars, self.types = {}, {}
        self.assigned = {}                  # names that were assigned here, in order
        self.annotated = set()
        self.captured = {}                  # node outside -> placeholder here
        self.exited = False                 # whether the code that follows is unreachable

    @property
    def scope(self):
        """Whether this frame is only a scope of names and writes to its parent's graph."""
        return self.parent is not None and self.parent.graph is self.graph

    def lookup(self, name):
        frame = self
        while frame is not None:
            if name in frame.vars:
                return frame.vars[name]
            frame = frame.parent
        return None

    def declared(self, name):
        """The frame and the type with which a name was declared, or None."""
        frame = self
        while frame is not None:
            if name in frame.types:
                return frame, frame.types[name]
            frame = frame.parent
        return None, None

    def set(self, name, value):
        self.vars[name] = value
        self.assigned[name] = None

    def node(self, node):
        """This graph's node for ``node``. A node of a graph around it is captured by a placeholder."""
        if node.graph is self.graph:
            return node
        if self.scope:
            return self.parent.node(node)
        outer = self.parent.node(node)
        found = self.captured.get(outer)
        if found is None:
            found = self.captured[outer] = self.input(outer.name, outer.type)
        return found

    def input(self, name, type):
        """Adds a placeholder behind those that exist."""
        graph = self.graph
        last = None
        for node in graph.nodes:
            if node.op != "placeholder":
                break
            last = node
        with graph.inserting_after(last) if last is not None else graph.inserting_before(None):
            made = graph.create_node("placeholder", name, (), type_expr=type)
        made.target = made.name
        return made

    def local(self, a):
        """An argument with its outer nodes replaced by those of this graph."""
        return map_arg(a, self.node) if not isinstance(a, Node) else self.node(a)


def order_inputs(graph, nodes):
    """Moves placeholders to the front of a graph, in the given order."""
    for node in reversed(nodes):
        first = next(iter(graph.nodes))
        if first is not node:
            first.prepend(node)


def missing(name, why):
    return Missing(f"{name!r} has no value here: {why}")
