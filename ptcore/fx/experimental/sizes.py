"""Symbols of sizes while a function is traced: the nodes that give them, sizes of results, and conditions on sizes."""
import operator

from ptcore._ops.table.evaluate import symbolic_layout, symbolic_sizes
from ptcore._sizes.expressions import Expr
from ptcore._sizes.symbolic import ShapeEnv, SymBool, SymFloat, SymInt
from ptcore._subclass import stands_for
from ptcore._tensor import Tensor
from ptcore.fx.experimental._payloads import Sized, Traced
from ptcore.fx.node import Node, has_side_effect

NUMBERS = (SymInt, SymFloat, SymBool)


def sym_size(input, dim):
    """The size of a dim, as a function that a graph's nodes call."""
    return input.shape[dim]


def sym_dim(input):
    """The number of dims of a value of a graph."""
    return input.ndim


@has_side_effect
def check_guards(texts, *holds):
    """Refuses sizes for which the traced program would take another path.

    Raises
    ------
    RuntimeError
        If one of the conditions does not hold; the message has its text.
    """
    for text, held in zip(texts, holds):
        if not held:
            raise RuntimeError(f"a traced program is run with sizes for which it does not hold: {text}")


class Sizes:
    """The symbols of one trace."""

    def __init__(self, tracer, env=None):
        self.tracer, self.env = tracer, ShapeEnv() if env is None else env
        self.sources = {}               # leaf -> (node, dim) that gives it; without a dim the node is the number itself
        self.given = []                 # (node, dim, size in the traced function) of the arguments
        self.dims = []                  # (node, number of dims) of tensor arguments
        self.nodes = {}                 # (node, dim) or expression -> node

    # -- arguments and results ---------------------------------------------------------------------------------

    def number(self, n, node):
        """An int argument as the traced function gets it."""
        return self.symbol(n, node, None)

    def symbol(self, hint, node, dim):
        n = self.env.symbol(hint, f"{node.name}" if dim is None else f"{node.name}.shape[{dim}]")
        self.given.append((node, dim, n))
        if type(n) is SymInt:
            for leaf in n.expr.atoms():
                self.sources.setdefault(leaf, (node, dim))
        return n

    def input(self, value, node, device):
        """The stand-in of a tensor argument."""
        self.dims.append((node, value.ndim))
        sizes = [self.symbol(n, node, d) for d, n in enumerate(value.shape)]
        return self.stand_in(value, node, device, sizes)

    def stand_in(self, value, node, device, sizes, layout=None):
        if not any(type(n) is SymInt for n in sizes):
            return stands_for(value, Traced(value, node, self.tracer, device))
        return stands_for(value, Sized(value, node, self.tracer, device, sizes, layout))

    def results(self, row, args, values, nodes, device):
        """The stand-ins of an op's results. A size that no rule gives is a symbol of its own."""
        found, layouts = symbolic_sizes(row.name, args), None
        if found is NotImplemented:
            found = [None] * len(values)
        elif not isinstance(found, list):
            found = [found] if len(values) == 1 else [found] * len(values)
        if row.kind == "view" and _has_layout(args[0]):
            layouts = symbolic_layout(row.name, args)
            layouts = layouts if isinstance(layouts, list) else [layouts] * len(values)
        made = []
        for k, (value, node) in enumerate(zip(values, nodes)):
            if not isinstance(value, Tensor):
                made.append(value)
                continue
            sizes = [self.fresh(n, node, d) for d, n in enumerate(value.shape)] if found[k] is None else found[k]
            made.append(self.stand_in(value, node, device, sizes, layouts[k] if layouts else None))
        return tuple(made)

    @staticmethod
    def check_write(row, args):
        """Records the condition that a written value has the sizes of its target."""
        symbolic_sizes(row.name, args)

    def fresh(self, hint, node, dim):
        n = self.env.fresh(hint, f"{node.name}.shape[{dim}]")
        for leaf in n.expr.atoms():
            self.sources[leaf] = node, dim
        return n

    # -- numbers as nodes ------------------------------------------------------------------------------------

    @staticmethod
    def is_number(x):
        return type(x) in NUMBERS

    def node(self, x):
        """The node that gives a symbolic number, or the number if it is known."""
        expr = x.expr if type(x) in NUMBERS else x
        return expr.fold(self.leaf, self.operation) if isinstance(expr, Expr) else expr

    def leaf(self, leaf):
        return self.size(*self.sources[leaf])

    def size(self, node, dim):
        """The node that gives a size of another node's value."""
        if dim is None:
            return node
        found = self.nodes.get((node, dim))
        if found is None:
            found = self.nodes[node, dim] = self.tracer.node("call_function", sym_size, (node, dim), {}, "sym_size")
        return found

    def operation(self, function, args):
        if not any(isinstance(a, Node) for a in args):
            return function(*args)
        key = function, tuple(args), tuple(map(type, args))
        found = self.nodes.get(key)
        if found is None:
            found = self.nodes[key] = self.tracer.node("call_function", function, tuple(args), {},
                                                       function.__name__.strip("_"))
        return found

    def check_guards(self):
        """Adds the conditions on sizes to the graph. Those on sizes of arguments are checked before anything else, the
        rest at the end."""
        early, late = {}, {}                # text -> node
        for node, n in self.dims:
            found = self.operation(sym_dim, (node,))
            early[f"{node.name}.dim() == {n}"] = self.operation(operator.eq, (found, n))
        for node, dim, n in self.given:
            place = node.name if dim is None else f"{node.name}.shape[{dim}]"
            if type(n) is not SymInt:
                early[f"{place} == {n}"] = self.operation(operator.eq, (self.size(node, dim), n))
                continue
            (leaf,) = n.expr.atoms()
            if self.sources[leaf] != (node, dim):
                early[f"{place} == {leaf}"] = self.operation(operator.eq, (self.size(node, dim), self.leaf(leaf)))
            early[f"{leaf} >= {leaf.low}"] = self.operation(operator.le, (leaf.low, self.leaf(leaf)))
        for guard in self.env.guards:
            (late if guard.is_deferred else early)[repr(guard)] = self.node(guard.expr)
        checks = []
        for found in (early, late):
            held = {text: node for text, node in found.items() if isinstance(node, Node)}
            if held:
                checks.append(self.tracer.node("call_function", check_guards, (tuple(held), *held.values()), {},
                                               "check_guards"))
        self._begin_with_sizes(checks)

    def _begin_with_sizes(self, checks):
        """Moves computations on the arguments' sizes alone to the place behind the arguments."""
        movable, known, last = {*self.nodes.values(), *checks}, set(), None
        for node in list(self.tracer.graph.nodes):
            if node.op == "placeholder":
                known.add(node)
                last = node
            elif node in movable and known.issuperset(node.all_input_nodes):
                known.add(node)
                last.append(node)
                last = node


def _has_layout(x):
    """Whether a tensor has strides."""
    try:
        return x.stride() is not None and x.storage_offset() is not None
    except RuntimeError:
        return False
