"""A graph as Python text, for people: blocks become ``if``, ``for``, ``while`` and ``with``."""
import operator

from ptcore.fx import blocks
from ptcore.fx.graph import CodeWriter, path_of
from ptcore.jit._script import operations
from ptcore.jit._script.types import Type

__all__ = ["code_of"]


class _Text(CodeWriter):
    """Writes statements; ``names_of`` names the nodes."""

    def __init__(self, graph):
        super().__init__(graph, "self")
        self.names_of, self.taken = {}, {"self"}

    def name(self, node, wanted=None):
        """A name for a node: the wanted one, with a number if it is taken."""
        base = wanted or node.name
        if base in operations.NAMES:
            base += "_1"
        made, k = base, 0
        while made in self.taken:
            k += 1
            made = f"{base}_{k}"
        self.taken.add(made)
        self.names_of[node] = made
        return made

    def node(self, node):
        return self.names_of[node]

    def leaf(self, a):
        return str(a) if isinstance(a, Type) else super().leaf(a)

    def function(self, function):
        name = super().function(function)
        return name.rpartition("operations.")[2] if "_script.operations." in name else name

    def expression(self, node):
        if node.op == "get_attr":
            return path_of("self", node.target) if node.target else "self"
        text = super().expression(node)
        return text.replace("_script_operations_", "")

    def lines(self, graph, results, indent):
        """The statements of a graph. ``results`` are the names of its results; None stands for a function's body."""
        pad, made = "  " * indent, []
        for node in graph.nodes:
            if node.op == "placeholder" or node in self.names_of:
                continue
            if node.op == "output":
                value = node.args[0]
                if results is None:
                    made.append(f"{pad}return {self.value(value)}")
                else:
                    made += [f"{pad}{name} = {self.value(a)}" for name, a in zip(results, value)
                             if name != self.value(a)]
            elif node.blocks:
                self.block_lines(node, indent, made)
            elif node.users:
                made.append(f"{pad}{self.name(node)} = {self.expression(node)}")
            else:
                made.append(f"{pad}{self.expression(node)}")
        return made

    def block_lines(self, node, indent, made):
        pad, inside = "  " * indent, "  " * (indent + 1)
        parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
        n = len(node.blocks[-1].output_node().args[0]) - (node.target is blocks.loop)
        results = [self.name(parts[k]) if k in parts else f"_{k}" for k in range(n)]
        first, *rest = node.args
        if node.target is blocks.cond:
            for word, block in zip((f"if {self.value(first)}:", "else:"), node.blocks):
                self.bind(block, [self.value(a) for a in rest])
                lines = self.lines(block, results, indent + 1)
                if lines or word != "else:":
                    made += [pad + word, *(lines or [f"{inside}pass"])]
        elif node.target is blocks.with_block:
            (block,) = node.blocks
            entered = next(iter(block.nodes))
            name = f" as {self.name(entered)}" if entered.users else ""
            self.names_of.setdefault(entered, "_")
            made.append(f"{pad}with {self.value(first)}{name}:")
            self.bind(block, [None, *[self.value(a) for a in rest]])
            made += self.lines(block, results, indent + 1) or [f"{inside}pass"]
        else:
            self.loop_lines(node, results, indent, made)

    def loop_lines(self, node, results, indent, made):
        pad, inside = "  " * indent, "  " * (indent + 1)
        trips, condition, *values = node.args
        (block,) = node.blocks
        index = next(iter(block.nodes))
        made += [f"{pad}{name} = {self.value(a)}" for name, a in zip(results, values)]
        self.bind(block, [None, *results, *[self.value(a) for a in values[len(results):]]])
        counter = self.name(index, "k")
        again = block.output_node().args[0][0]
        if trips is not None and condition is True and again is True:
            made.append(f"{pad}for {counter} in range({self.value(trips)}):")
            made += self.updated(block, results, indent + 1) or [f"{inside}pass"]
            return
        go = self.name(node, "go")
        made += [f"{pad}{go} = {self.value(condition)}", f"{pad}{counter} = 0"]
        more = "" if trips is None else f" and {counter} < {self.value(trips)}"
        made.append(f"{pad}while {go}{more}:")
        made += self.updated(block, results, indent + 1, go)
        made.append(f"{inside}{counter} += 1")

    def updated(self, block, results, indent, go=None):
        """The body of a loop. Its results are assigned to the loop's variables all at once."""
        out = block.output_node()
        made = self.lines(block, [], indent)
        again, *new = out.args[0]
        names = ([go] if go else []) + results
        values = ([self.value(again)] if go else []) + [self.value(a) for a in new]
        pairs = [(n, v) for n, v in zip(names, values) if n != v]
        if pairs:
            made.append("  " * indent + f"{', '.join([n for n, _ in pairs])} = {', '.join([v for _, v in pairs])}")
        return made

    def bind(self, block, names):
        for node, name in zip([x for x in block.nodes if x.op == "placeholder"], names):
            if name is not None:
                self.names_of[node] = name


def code_of(function):
    """The text of a ScriptFunction."""
    writer = _Text(function.graph)
    arguments = ["self"] if function._owner is not None else []
    inputs = [node for node in function.graph.nodes if node.op == "placeholder"]
    for node, p in zip(inputs, function.parameters):
        name = writer.name(node, p.name)
        default = f"={p.default!r}" if p.has_default else ""
        arguments.append(f"{name}: {p.type}{default}")
    head = f"def {function.__name__}({', '.join(arguments)}) -> {function.returns}:"
    return "\n".join([head, *writer.lines(function.graph, None, 1)]) + "\n"
