"""``GraphModule``: a module that runs a graph."""
import copy

import ptcore
from ptcore._ops import function as function_of_row
from ptcore._ops.table.ids import op_name
from ptcore._tensor import Tensor
from ptcore.fx.graph import Graph
from ptcore.fx.node import Node, OpFunction, attribute_at, map_aggregate, map_arg
from ptcore.nn.modules.module import Module

__all__ = ["GraphModule"]


class GraphModule(Module):
    """A module whose ``forward`` runs the nodes of a graph.

    Parameters
    ----------
    root : Module or dict
        The owner of the names in the graph; its modules, parameters and buffers are taken over.
    graph : Graph
    class_name : str

    Attributes
    ----------
    graph : Graph
        Set it, or call ``recompile`` after writing to it.
    code : str
        The graph as Python source, for people: nothing runs it.

    Raises
    ------
    RuntimeError
        If the graph names what the root lacks.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import symbolic_trace
    >>> traced = symbolic_trace(ptcore.nn.Sequential(ptcore.nn.ReLU()))
    >>> for node in traced.graph.nodes:
    ...     print(node.op, node.target)
    placeholder input
    call_module 0
    output output
    """

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self._class_name = class_name
        names = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            for name in names:
                _take_over(root, self, name)
        elif isinstance(root, dict):
            for name in names:
                if name not in root:
                    raise RuntimeError(f"GraphModule: root has no {name}, which a node uses")
            for name in sorted(dict.fromkeys(names), key=lambda name: name.count(".")):
                assign(root[name], self, name)
        else:
            raise RuntimeError(f"GraphModule: root must be a Module or a dict, got {type(root).__name__}")
        self.meta = dict(getattr(root, "meta", {})) if isinstance(root, GraphModule) else {}
        self.graph = graph

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, g):
        if not isinstance(g, Graph):
            raise AssertionError(f"GraphModule: graph must be a Graph, got {type(g).__name__}")
        self._graph = g
        g.owning_module = self
        self._prepare()

    @property
    def code(self):
        return self._graph.python_code("self").src

    def recompile(self):
        """Prepares ``forward`` for a changed graph; returns the graph's code."""
        self._prepare()
        return self._graph.python_code("self")

    def _prepare(self):
        """Lists the steps of ``forward``: each node, and the nodes whose values it uses last."""
        last, met = {}, set()
        for node in reversed(self._graph.nodes):
            for used in node._input_nodes:
                if used not in met:
                    met.add(used)
                    last.setdefault(node, []).append(used)
        self._steps = [(node, tuple(last.get(node, ()))) for node in self._graph.nodes]

    def forward(self, *args, **kwargs):
        if kwargs and self._graph._trees is not None:
            args, kwargs = self._graph._trees.by_position(args, kwargs), {}
        given = self._graph.process_inputs(*args) if not kwargs else args
        values, place = {}, 0

        def load(node):
            return values[node]
        for node, done in self._steps:
            if node.op == "placeholder":
                values[node], place = self._argument(node, given, place, kwargs)
                continue
            if node.op == "output":
                if kwargs:
                    raise TypeError(f"forward() got an unexpected keyword argument '{next(iter(kwargs))}'")
                if place < len(given):
                    raise TypeError(f"forward() takes {place} positional arguments but {len(given)} were given")
                return self._graph.process_outputs(filled(node.args[0], load))
            try:
                values[node] = self._value(node, load)
            except Exception as error:
                _say_where(error, node)
                raise
            for used in done:
                del values[used]
        return None

    def _argument(self, node, given, place, kwargs):
        if node.target.startswith("**"):
            rest = dict(kwargs)
            kwargs.clear()
            return rest, place
        if node.target.startswith("*"):
            return tuple(given[place:]), len(given)
        if place < len(given):
            return given[place], place + 1
        if node.target in kwargs:
            return kwargs.pop(node.target), place
        if node.args:
            return node.args[0], place
        raise TypeError(f"forward() missing 1 required positional argument: '{node.target}'")

    def _value(self, node, load):
        if node.op == "get_attr":
            return attribute_at(self, node.target)
        args, kwargs = filled(node.args, load), filled(node.kwargs, load)
        if node.blocks:
            return node.target(*args, blocks=[_Block(block, self) for block in node.blocks])
        if node.op == "call_function":
            return node.target(*args, **kwargs)
        if node.op == "call_module":
            return attribute_at(self, node.target)(*args, **kwargs)
        first, *rest = args
        return getattr(first, node.target)(*rest, **kwargs)

    # -- parts -------------------------------------------------------------------------------------

    def add_submodule(self, target, m):
        """Puts a module at a dotted name, and adds modules for missing parts; False if a part is no module."""
        *path, name = target.split(".")
        here = self
        for part in path:
            if not hasattr(here, part):
                here.add_module(part, Module())
            here = getattr(here, part)
            if not isinstance(here, Module):
                return False
        here.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Removes the module at a dotted name; False if there is none."""
        *path, name = target.split(".")
        here = self
        for part in path:
            here = getattr(here, part, None)
            if not isinstance(here, Module):
                return False
        if not isinstance(getattr(here, name, None), Module):
            return False
        delattr(here, name)
        return True

    def delete_all_unused_submodules(self):
        """Removes modules that no node calls or looks up."""
        used = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[:k + 1]) for k in range(len(parts))}
                if node.op == "call_module":
                    try:
                        used |= {f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules()}
                    except AttributeError:
                        pass
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- copies and files --------------------------------------------------------------------------

    def __deepcopy__(self, memo):
        made = GraphModule.__new__(type(self))
        Module.__init__(made)
        memo[id(self)] = made
        for name, value in vars(self).items():
            if name not in ("_graph", "_steps"):
                vars(made)[name] = copy.deepcopy(value, memo)
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __copy__(self):
        return GraphModule(self, copy.deepcopy(self._graph), self._class_name)

    def __reduce__(self):
        """The nodes as plain data, so that unpickling runs no code of a graph."""
        state = {name: value for name, value in vars(self).items() if name not in ("_graph", "_steps", "shape_env")}
        return _rebuilt, (state, _packed(self._graph))

    def to_folder(self, folder, module_name="FxModule"):
        """Absent: PyTorch writes a package whose import runs its source. A pickle of the module holds its nodes as
        data, ``ptcore.save(module.state_dict(), path)`` saves its state, and ``print_readable`` shows the program.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError("to_folder: no source is written that loading would run: pickle the module, whose "
                                  "nodes are data; module.print_readable(False) is its text")

    def _get_name(self):
        return self._class_name

    def print_readable(self, print_output=True, **options):
        """The module's code under its name; printed, and returned."""
        text = f"class {self._class_name}(ptcore.nn.Module):" + self.code.replace("\n", "\n    ")
        if print_output:
            print(text)
        return text

    def __str__(self):
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self.code, hint])


class _Block:
    """A block of a node, as a callable."""

    def __init__(self, graph, module):
        self.graph, self.module = graph, module
        self.results = result_count(graph)

    def __call__(self, *args):
        values, given = {}, iter(args)
        for node in self.graph.nodes:
            if node.op == "output":
                return filled(node.args[0], values.__getitem__)
            values[node] = next(given) if node.op == "placeholder" else self.module._value(node, values.__getitem__)
        return None


def result_count(block):
    """The number of a block's results."""
    return len(block.output_node().args[0])


def filled(a, load):
    """An argument of a node as a function gets it: ``load`` gives the values of nodes, and lists and dictionaries are
    mutable copies."""
    if isinstance(a, Node):
        return load(a)
    if isinstance(a, list):
        return [filled(x, load) for x in a]
    if isinstance(a, dict):
        return {key: filled(x, load) for key, x in a.items()}
    if type(a) is tuple:
        return tuple([filled(x, load) for x in a])
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return type(a)(*[filled(x, load) for x in a])
    if isinstance(a, slice):
        return slice(filled(a.start, load), filled(a.stop, load), filled(a.step, load))
    return a


def _take_over(root, to, path):
    """Puts the attribute of ``root`` at a dotted name into another module."""
    *parts, name = path.split(".")
    for part in parts:
        root = getattr(root, part)
        if not hasattr(to, part):
            setattr(to, part, Module())
        to = getattr(to, part)
    value = getattr(root, name)
    if isinstance(value, Tensor) and not isinstance(value, ptcore.nn.Parameter):
        if name not in to._buffers:
            to.register_buffer(name, value, persistent=name not in root._non_persistent_buffers_set)
    else:
        setattr(to, name, value)


def assign(value, to, path):
    """Puts a value at a dotted name into a module."""
    *parts, name = path.split(".")
    for part in parts:
        if not hasattr(to, part):
            setattr(to, part, Module())
        to = getattr(to, part)
    if isinstance(value, Tensor) and not isinstance(value, ptcore.nn.Parameter):
        to.register_buffer(name, value)
    else:
        setattr(to, name, value)


def _say_where(error, node):
    """Adds to an error the node in which it happened and the place where the node was traced."""
    if hasattr(error, "add_note") and not any("While running" in note for note in getattr(error, "__notes__", ())):
        text = f"While running %{node.name} of a graph"
        error.add_note(text if node.stack_trace is None else f"{text}, which was traced "
                                                             f"at\n{node.stack_trace.rstrip()}")


# -- nodes as plain data -----------------------------------------------------------------------------------

class _Ref:
    """A reference to a node among the arguments of another node: its position in the graph."""

    __slots__ = ("place",)

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return _Ref, (self.place,)


def _packed(graph):
    places = {node: _Ref(k) for k, node in enumerate(graph.nodes)}

    def reference(a):
        return map_arg(a, lambda node: places[node])
    return [(node.op, node.name, _packed_target(node.target), reference(node.args), reference(node.kwargs), node.type,
             [_packed(block) for block in node.blocks]) for node in graph.nodes], graph._trees


def _packed_target(target):
    """The target of a node: an op as the name of its row, any other object pickled."""
    if type(target) is not OpFunction:
        return target
    name = op_name(target.op)
    return _Op(name, target is not function_of_row(name))


class _Op:
    """An op, or its in-place form, as the name of its row."""

    __slots__ = ("inplace", "name")

    def __init__(self, name, inplace):
        self.name, self.inplace = name, inplace

    def __reduce__(self):
        return _Op, (self.name, self.inplace)


def _unpacked(packed):
    nodes, trees = packed
    graph, made = Graph(), []

    def reference(a):
        return map_aggregate(a, lambda x: made[x.place] if isinstance(x, _Ref) else x)
    for op, name, target, args, kwargs, annotation, blocks in nodes:
        if type(target) is _Op:
            target = function_of_row(target.name, target.inplace)
        made.append(graph.create_node(op, target, reference(args), dict(reference(kwargs)), name, annotation))
        made[-1].blocks = tuple(map(_unpacked, blocks))
    graph._trees = trees
    return graph


def _rebuilt(state, packed):
    module = GraphModule.__new__(GraphModule)
    Module.__init__(module)
    module.__setstate__(state)
    module.graph = _unpacked(packed)
    return module


