"""``Graph``: nodes in the order in which they run, their names, and their Python code."""
import builtins
import cmath
import copy
import keyword
import operator
import re
from collections.abc import Hashable
from typing import Any, NamedTuple

from ptcore._dtype import dtype
from ptcore._memory_format import memory_format
from ptcore._trees.tree import tree_flatten
from ptcore.fx.immutable_collections import immutable_dict
from ptcore.fx.node import Node, attribute_at, has_side_effect, map_arg, name_of_function
from ptcore.fx.operators import INFIX, INPLACE
from ptcore.fx.writer import ValueWriter

__all__ = ["Graph", "PythonCode", "has_side_effect"]

_ILLEGAL = {*keyword.kwlist, *dir(builtins), "inf", "nan", "NoneType", "torch", "device"}
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_NONE = immutable_dict()


class PythonCode(NamedTuple):
    """Source of a graph's function, and the names that it uses."""

    src: str
    globals: dict[str, Any]


class Namespace:
    """Unique names, none of them a keyword or the name of a builtin."""

    def __init__(self):
        self._names = {}                # id -> (object, name)
        self._used, self._count = set(), {}

    def create_name(self, candidate, obj=None):
        """A name like the candidate; the same object gets the same name again."""
        if obj is not None and id(obj) in self._names:
            return self._names[id(obj)][1]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = re.fullmatch(r"(.*?)(?:_(\d+))?", candidate, re.DOTALL).groups()
        if not base:
            base, number = candidate, None
        if number is None or candidate in self._used:
            n = self._count.get(base, 0)
            if candidate in _ILLEGAL:
                n += 1
                candidate = f"{base}_{n}"
        else:
            n = int(number)
        while candidate in self._used:
            n += 1
            candidate = f"{base}_{n}"
        self._used.add(candidate)
        self._count[base] = n
        if obj is not None:
            self._names[id(obj)] = obj, candidate
        return candidate

    def numbered(self, word):
        """The word, with a number if it is taken or reserved."""
        if word not in self._used and word not in _ILLEGAL:
            self._used.add(word)
            self._count.setdefault(word, 0)
            return word
        n = self._count.get(word, 0) + 1
        while f"{word}_{n}" in self._used:
            n += 1
        self._count[word] = n
        self._used.add(f"{word}_{n}")
        return f"{word}_{n}"

    def associate_name_with_obj(self, name, obj):
        self._names[id(obj)] = obj, name

    def __setstate__(self, state):
        vars(self).update(state)
        self._names = {id(obj): (obj, name) for obj, name in self._names.values()}  # ids are valid in one process only


class _Nodes:
    """The nodes of a graph, from first to last or back."""

    def __init__(self, graph, backwards=False):
        self._graph, self._backwards = graph, backwards

    def __len__(self):
        return self._graph._len

    def __iter__(self):
        root = self._graph._root
        node = root._prev if self._backwards else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if self._backwards else node._next

    def __reversed__(self):
        return iter(_Nodes(self._graph, not self._backwards))


class _At:
    """A block in which new nodes go to another place."""

    def __init__(self, graph, insert):
        self.graph, self.before, graph._insert = graph, graph._insert, insert

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.graph._insert = self.before


class Graph:
    """A function as a list of nodes.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import Graph, GraphModule
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(ptcore.add, (x, 1)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %add : [num_users=1] = call_function[target=ptcore.add](args = (%x, 1), kwargs = {})
        return add
    >>> GraphModule({}, graph)(ptcore.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert = self._root.prepend
        self._namespace = Namespace()
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._trees = None              # the structure of arguments and results, if they are flattened

    @property
    def nodes(self):
        """The nodes, in order."""
        return _Nodes(self)

    def output_node(self):
        """The output node."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of a kind, or of a kind and a target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # -- making nodes ------------------------------------------------------------------------------

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Makes a node and puts it at the place for new nodes."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"create_node: args must be a tuple, got {type(args).__name__}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"create_node: kwargs must be a dict, got {type(kwargs).__name__}")
        for node in tree_flatten((args, dict(kwargs)))[0]:
            if isinstance(node, Node) and node.graph is not self:
                raise RuntimeError(f"create_node: argument {node} belongs to another graph")
        name = self._namespace.create_name(_name_of_target(target) if name is None else name)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _add(self, op, target, args, kwargs, name):
        """Makes a node at the end of the graph for a tracer. Arguments must be nodes of this graph, and the name a
        word."""
        node = Node.__new__(Node)
        name = self._namespace.numbered(name)
        self._namespace.associate_name_with_obj(name, node)
        root = self._root
        last = root._prev
        inputs = {}
        node.graph, node.name, node.op, node.target, node.type = self, name, op, target, None
        node.users, node.meta, node._erased, node._input_nodes, node.blocks = {}, {}, False, inputs, ()
        node._args, node._kwargs, node._prev, node._next = args, _NONE, last, root
        last._next = root._prev = node
        self._len += 1
        if kwargs:
            node._set(args, kwargs)
            return node
        for a in args:
            if type(a) is Node:
                inputs[a] = None
                a.users[node] = None
            elif type(a) is tuple or type(a) is list:
                node._set(args, kwargs)
                break
        return node

    def placeholder(self, name, type_expr=None, default_value=...):
        """An argument of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """A parameter or another attribute of the owning module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a module inside the owning one."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """The result of the function."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """Copies a node of another graph; ``arg_transform`` gives this graph's node for a node of the other graph."""
        made = self.create_node(node.op, node.target, map_arg(node.args, arg_transform),
                                dict(map_arg(node.kwargs, arg_transform)), node.name, node.type)
        made.meta = copy.copy(node.meta)
        made.blocks = tuple([copy.deepcopy(block) for block in node.blocks])
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies all nodes of another graph up to its output, and returns the output's value in this graph.

        ``val_map`` maps nodes of the other graph to existing nodes of this one. Copied nodes are added to it.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], lambda n: val_map[n])
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        made = Graph(tracer_cls=self._tracer_cls)
        found = made.graph_copy(self, val_map := {}, True)
        made._trees = self._trees
        if found is not None:
            result, old = found
            node = made.output(result, old.type)
            node.meta = copy.copy(old.meta)
            val_map[old] = node
        return made

    # -- places and removal ------------------------------------------------------------------------

    def inserting_before(self, n=None):
        """New nodes go before node ``n``, or before all nodes if it is None: in a ``with`` block or from now on."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError(f"inserting_before: {n} belongs to another graph")
        return _At(self, n.prepend)

    def inserting_after(self, n=None):
        """New nodes go behind node ``n``, or behind all nodes if it is None: in a ``with`` block or from now on. A new
        node goes before those inserted there earlier."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError(f"inserting_after: {n} belongs to another graph")
        return _At(self, n.append)

    def erase_node(self, to_erase):
        """Removes a node without users.

        Raises
        ------
        RuntimeError
            If another node uses it, or it belongs to another graph.
        """
        if to_erase.users:
            raise RuntimeError(f"erase_node: {to_erase} is still used by {list(to_erase.users)}")
        if to_erase.graph is not self:
            raise RuntimeError(f"erase_node: {to_erase} belongs to another graph")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase.args, to_erase.kwargs = (), {}

    def eliminate_dead_code(self, is_impure_node=None):
        """Removes nodes without users, from last to first, also in graphs that nodes look up. Returns whether there
        were any."""
        kept = is_impure_node or Node.is_impure
        n = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not kept(node):
                self.erase_node(node)
        changed = len(self.nodes) < n
        for node in self.nodes:
            for block in node.blocks:
                changed = block.eliminate_dead_code(is_impure_node) or changed
        if self.owning_module is not None:
            looked_up = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in looked_up and isinstance(getattr(child, "graph", None), Graph):
                    changed = child.graph.eliminate_dead_code() or changed
                    child.recompile()
        return changed

    def lint(self):
        """Checks the graph: arguments are nodes of this graph before their users, names are unique, and called modules
        and attributes exist.

        Raises
        ------
        RuntimeError
            If it is not so.
        """
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"lint: {node} belongs to another graph")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"lint: argument {used} of {node} belongs to another graph; copy nodes by "
                                       "node_copy with arg_transform")
                if used not in seen:
                    raise RuntimeError(f"lint: {node} stands before its argument {used}")
            if node.name in names:
                raise RuntimeError(f"lint: two nodes have the name {node.name}")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                here = self.owning_module
                for k, part in enumerate(path := node.target.split(".") if node.target else []):
                    if not hasattr(here, part):
                        raise RuntimeError(f"lint: the target {node.target} of {node} is not there: "
                                           f"{'.'.join(path[:k]) or 'the root'} has no {part}")
                    here = getattr(here, part)
            for block in node.blocks:
                if not block.find_nodes(op="output"):
                    raise RuntimeError(f"lint: a block of {node} has no output")
                block.lint()

    # -- as text -----------------------------------------------------------------------------------

    def __str__(self):
        return "\n    ".join(["graph():", *[node.format_node() for node in self.nodes]])

    def print_tabular(self):
        """Prints the nodes in columns."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(dict(n.kwargs))) for n in self.nodes]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        lines = ["  ".join([cell.ljust(w) for cell, w in zip(row, widths)]).rstrip() for row in rows]
        print("\n".join([lines[0], "  ".join(["-" * w for w in widths]), *lines[1:]]))

    def python_code(self, root_module, **options):
        """The source of the graph as a function ``forward``; ``root_module`` is the name of the owner of attributes.

        Returns
        -------
        PythonCode
        """
        return CodeWriter(self, root_module).code()

    def process_inputs(self, *args):
        """The flat arguments of the nodes, from those of the function."""
        return args if self._trees is None else self._trees.flat(args)

    def process_outputs(self, out):
        """The function's result, from that of the nodes."""
        return out if self._trees is None else self._trees.nested(out)

    def on_generate_code(self, make_transformer):
        """Absent: no source of a graph is run, so no source can be changed before it runs. Use a :class:`Transformer`
        to change a graph, or an :class:`Interpreter` to watch it run.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError("on_generate_code: a graph is run by its nodes, its code is for people: change the "
                                  "nodes, or run them by an Interpreter")


def _name_of_target(target):
    text = target if isinstance(target, str) else target.__name__
    if text.startswith("__") and text.endswith("__") and len(text) > 4:
        text = text[2:-2]
    return _CAPITAL.sub(r"_\1", text).lower()


class CodeWriter(ValueWriter):
    """The source of a graph."""

    def __init__(self, graph, root):
        self.graph, self.root = graph, root
        self.own_name, self.is_method = "forward", root == "self"
        self.globals, self.names = {}, Namespace()
        for name in ("self", root, *[node.name for node in graph.nodes]):
            self.names._used.add(name)

    def global_name(self, hint, value):
        """A name of the source for a value."""
        for name, known in self.globals.items():
            if known is value:
                return name
        name = self.names.create_name(hint.replace(".", "_"))
        self.globals[name] = value
        return name

    def function(self, function):
        path = name_of_function(function)
        top, _, rest = path.partition(".")
        if getattr(builtins, path, None) is function:
            return path
        try:
            module = __import__(top)
            if rest and attribute_at(module, rest) is function:
                self.globals[top] = module
                return path
        except (ImportError, AttributeError):
            pass
        return self.global_name(path, function)

    def sequence(self, a):
        if hasattr(a, "_fields"):
            return f"{self.global_name(type(a).__name__, type(a))}({self.values(a)})"
        return super().sequence(a)

    def leaf(self, a):
        if isinstance(a, (float, complex)) and not cmath.isfinite(a):
            return f"{'float' if isinstance(a, float) else 'complex'}({str(a)!r})"
        if a is None or a is Ellipsis or isinstance(a, bool):
            return repr(a)
        for plain in (int, float, complex, str, bytes):     # a subclass, as NumPy's float64, may write itself otherwise
            if isinstance(a, plain):
                return plain.__repr__(a)
        if isinstance(a, type) or callable(a):
            return self.function(a)
        if isinstance(a, (dtype, memory_format)):
            self.globals["ptcore"] = __import__("ptcore")
            return f"ptcore.{a.name}"
        text = repr(a)
        if text.startswith("ptcore.") and text[7:].isidentifier():
            self.globals["ptcore"] = __import__("ptcore")
            return text
        return self.global_name(f"_{type(a).__name__}", a)

    def expression(self, node):
        if node.op == "call_method":
            first, *rest = node.args
            owner = self.value(first)
            owner = owner if owner.isidentifier() else f"({owner})"
            return f"{owner}.{node.target}({self.arguments(rest, node.kwargs)})"
        if node.op == "call_module":
            return f"{path_of(self.root, node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return path_of(self.root, node.target)
        if not node.kwargs and isinstance(node.target, Hashable) and node.target in INFIX:
            first, *rest = map(self.value, node.args)
            if node.target is operator.pow and first.startswith("-"):
                first = f"({first})"                # the sign of a number binds weaker than a power
            return INFIX[node.target].format(first, *rest)
        if node.target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
            return f"{self.value(node.args[0])}.{node.args[1]}"
        return f"{self.function(node.target)}({self.arguments(node.args, node.kwargs)})"

    def code(self):
        last = {}                       # node -> nodes whose last use it is
        met = set()
        for node in reversed(self.graph.nodes):
            for used in node._input_nodes:
                if used not in met:
                    met.add(used)
                    last.setdefault(node, []).append(used)
        parameters, lines = [], []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                default = f" = {self.value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{default}")
                raw = node.target.lstrip("*")
                if raw != node.name:
                    lines.append(f"{node.name} = {raw}")
                continue
            gone = last.get(node, ())
            done = f";  {' = '.join([used.name for used in gone])} = None" if gone and node.op != "output" else ""
            if node.op == "output":
                lines.append(f"return {self.value(node.args[0])}")
                continue
            if node.op == "call_function" and node.target is operator.setitem:
                first, key, value = map(self.value, node.args)
                lines.append(f"{first}[{key}] = {value};  {node.name} = None")
                continue
            if node.op == "call_function" and isinstance(node.target, Hashable) and node.target in INPLACE:
                first, second = map(self.value, node.args)
                lines.append(f"{first} {INPLACE[node.target]} {second};  {node.name} = {first}{done}")
                continue
            if not node.users:
                done = f";  {node.name} = None{done}"
            expression = self.expression(node)
            if node.blocks:
                names = [self.block(node, k, block, lines) for k, block in enumerate(node.blocks)]
                expression = f"{expression[:-1]}, blocks = [{', '.join(names)}])"
            lines.append(f"{node.name} = {expression}{done}")
        body = "\n".join([f"    {line}" for line in lines or ["pass"]])
        own = ["self"] if self.is_method else []
        head = f"def {self.own_name}({', '.join([*own, *parameters])}):"
        return PythonCode(f"\n\n\n{head}\n{body}", dict(self.globals))

    def block(self, node, k, graph, lines):
        """Writes a block of a node as a function, and returns its name."""
        name = self.names.create_name(f"{node.name}_block_{k}")
        inner = CodeWriter(graph, "")
        inner.root, inner.globals = self.root, self.globals
        inner.names._used |= self.names._used
        inner.own_name = name
        lines += inner.code().src.strip("\n").split("\n")
        lines.append(f"{name}.results = {len(graph.output_node().args[0])}")
        return name


def path_of(root, target):
    """An expression that looks up a dotted name."""
    for part in target.split(".") if target else ():
        root = f"{root}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({root}, "{part}")'
    return root
