"""``split_module``: cuts a graph into parts, each a module."""
import operator

from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.node import attribute_at, map_arg

__all__ = ["split_module"]


class _Part:
    """The nodes of one module, the values they need of other parts, and the values that others need, in order.
    """

    def __init__(self, name):
        self.name, self.nodes = name, []
        self.inputs, self.outputs, self.needs, self.users = {}, {}, {}, {}


def _ordered(parts):
    """The parts in an order in which each is behind those whose values it needs, as directly as possible."""
    waits = {key: set(part.needs) for key, part in parts.items()}
    ready, order = [key for key in parts if not waits[key]], []
    while ready:
        done = ready.pop()
        order.append(parts[done])
        for key in parts[done].users:
            waits[key].discard(done)
            if not waits[key]:
                ready.append(key)
    if len(order) < len(parts):
        raise RuntimeError(f"split_module: the parts {[key for key in parts if waits[key]]} need values of each other")
    return order


def split_module(m, root_m, split_callback, qualname_map=None, keep_original_order=False,
                 keep_original_node_name=False, keep_original_input_name=True, *, partition_affix=None,
                 tuple_return=False):
    """Makes a graph of parts; each part is a submodule ``submod_<id>``.

    Parameters
    ----------
    m : GraphModule
    root_m : Module
        Not used: what the parts call is taken from ``m``.
    split_callback : callable
        ``split_callback(node)`` gives the id of the part that a node belongs to.
    qualname_map : dict, optional
        Gets, for each submodule of a part, the name that it had in ``m``.
    keep_original_order : bool
        Parts are called in the order of their first nodes; otherwise as soon as the values they need are there.
    keep_original_node_name : bool
        Nodes keep their names.
    keep_original_input_name : bool
        Arguments of a part have the names of the nodes whose values they are; otherwise ``arg_0``, ``arg_1``, ...
    partition_affix : str, optional
        Submodules are called ``submod_<affix>_<id>``.
    tuple_return : bool
        A part with one result returns a tuple as well.

    Returns
    -------
    GraphModule

    Raises
    ------
    RuntimeError
        If parts need values of each other in a circle.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import symbolic_trace
    >>> from ptcore.fx.passes.split_module import split_module
    >>> traced = symbolic_trace(lambda x: (x + 1).sin() * 2)
    >>> parts = split_module(traced, None, lambda node: int(node.name == "mul"))
    >>> [node.name for node in parts.graph.nodes]
    ['x', 'submod_0', 'submod_1', 'output']
    >>> [node.name for node in parts.submod_0.graph.nodes]
    ['x', 'add', 'sin', 'output']
    >>> ptcore.equal(parts(ptcore.ones(2)), traced(ptcore.ones(2)))
    True
    """
    prefix = "submod_" if partition_affix is None else f"submod_{partition_affix}_"
    parts, place = {}, {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            key = place[node] = split_callback(node)
            parts.setdefault(key, _Part(f"{prefix}{key}")).nodes.append(node)
    for node in m.graph.nodes:
        here = place.get(node)
        for used in node.all_input_nodes:
            there = place.get(used)
            if there is not None and there != here:
                parts[there].outputs.setdefault(used)
            if here is not None and there != here:
                parts[here].inputs.setdefault(used)
                if there is not None:
                    parts[here].needs.setdefault(there)
                    parts[there].users.setdefault(here)
    order = _ordered(parts)
    if keep_original_order:
        first = list(parts.values())
        if any(first.index(parts[key]) > k for k, part in enumerate(first) for key in part.needs):
            raise RuntimeError("split_module: a part needs what a later one gives, keep_original_order=False calls it "
                               "later")
        order = first

    base, values, modules = Graph(tracer_cls=m.graph._tracer_cls), {}, {}
    base._trees = m.graph._trees

    def value(node):
        """The node of the new graph. A parameter is looked up at its old place, or before the part that needs it."""
        if node not in values:
            if node.op == "get_attr":
                modules[node.target] = attribute_at(m, node.target)
            values[node] = base.node_copy(node)
        return values[node]
    for node in m.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and not keep_original_order):
            value(node)
    for part in order:
        inside, module = _module_of(m, part, keep_original_node_name, keep_original_input_name, tuple_return)
        if qualname_map is not None:
            qualname_map.update({f"{part.name}.{new}": old for new, old in inside.items()})
        modules[part.name] = module
        call = base.call_module(part.name, tuple([value(x) for x in part.inputs]))
        if len(part.outputs) == 1 and not tuple_return:
            values[next(iter(part.outputs))] = call
        else:
            for k, x in enumerate(part.outputs):
                values[x] = base.call_function(operator.getitem, (call, k))
    end = m.graph.output_node()
    made = base.output(map_arg(end.args[0], value), end.type)
    made.meta = dict(end.meta)
    return GraphModule(modules, base)


def _module_of(m, part, keep_names, keep_inputs, tuple_return):
    """{name in the part: name in m} of the modules and attributes that the part uses, and the part as a module."""
    graph, values, targets, old = Graph(), {}, {}, {}
    known = {}                          # name in m: name in the part
    for k, x in enumerate(part.inputs):
        values[x] = graph.placeholder(x.name if keep_inputs else f"arg_{k}", x.type)
        values[x].meta = dict(x.meta)
    for node in part.nodes:
        target = node.target
        if node.op == "call_module":
            target = known.get(node.target, node.target.replace(".", "_"))
            while old.get(target, node.target) != node.target:      # as those of "a.b" and "a_b"
                target += "_"
            known[node.target] = target
            targets[target], old[target] = attribute_at(m, node.target), node.target
        made = graph.create_node(node.op, target, map_arg(node.args, lambda x: values[x]),
                                 dict(map_arg(node.kwargs, lambda x: values[x])),
                                 node.name if keep_names else None, node.type)
        made.meta = dict(node.meta)
        values[node] = made
    results = tuple([values[x] for x in part.outputs])
    graph.output(results[0] if len(results) == 1 and not tuple_return else results)
    return old, GraphModule(targets, graph, part.name)
