"""Passes that change a graph of rows in place; values keep their bits, except by ``absorb_affine``.

``fold`` computes nodes that depend on constants alone. ``merge_equal`` removes repeated computations. ``absorb_affine``
multiplies operations behind a convolution or a linear layer into its weights. None of them touches memory that others
may see: memory that is written to, returned, or shown by a view of either.
"""
import operator

from ptcore._interpret import aside
from ptcore._ops import function as function_of_row
from ptcore._ops import row
from ptcore._ops.table.ids import op_name
from ptcore._state import no_grad
from ptcore._tensor import Tensor
from ptcore.fx.experimental.sizes import check_guards, sym_dim
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.node import Node, OpFunction, attribute_at, free_name, map_arg
from ptcore.fx.verify import of_sizes

# Kinds of rows whose results own their memory. MAY_RETURN_ARGUMENTS names the exceptions.
FRESH = {"elementwise", "structured", "bilinear", "nondifferentiable", "linear"}
MAY_RETURN_ARGUMENTS = {"to_dtype", "to_device", "row_major"}
LARGEST = 1 << 24                   # bytes of a constant that may replace a computation


def copy_of(module):
    """A GraphModule with a copy of the graph, over the same tensors."""
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    made = GraphModule(module, graph, type(module).__name__)
    made.meta = dict(getattr(module, "meta", {}))
    return made


def row_of(node):
    """The row that a node calls, or None."""
    return row(op_name(node.target.op)) if node.op == "call_function" and type(node.target) is OpFunction else None


def is_size(node):
    """Whether a node computes a number from sizes."""
    return node.op == "call_function" and type(node.target) is not OpFunction and node.target in of_sizes()


def changes_dims(node):
    """Whether a node is the in-place form of a view: its tensor gets other dims, which no plan repeats."""
    own = row_of(node)
    return own is not None and own.family == "view" and node.target.__name__.endswith("_")


class Memory:
    """Groups of nodes that may share memory, with the groups that are exposed or written to."""

    def __init__(self, nodes):
        self.parent = {}
        exposed, written = [], []
        for node in nodes:
            if node.op in ("call_function", "call_method", "call_module") and self.may_alias(node):
                for x in node.all_input_nodes:
                    if not is_size(x):
                        self.join(x, node)
            if self.writes(node):
                written += self.written_by(node)
            elif node.op in ("output", "placeholder"):
                exposed += [node, *node.all_input_nodes]
        self.written = {self.group(node) for node in written}
        self.exposed = {self.group(node) for node in exposed} | self.written

    @staticmethod
    def writes(node):
        own = row_of(node)
        if own is not None and own.mutates:
            return True
        return (own is not None and function_of_row(own.name) is not node.target) or "out" in node.kwargs or (
            own is None and node.is_impure(False) and node.op not in ("output", "placeholder")
            and node.target is not check_guards)

    def written_by(self, node):
        """The nodes that a node writes to."""
        own = row_of(node)
        if own is not None and own.mutates:
            names = [own.args[k].name for k in own.mutates]
            return [x for k, a in enumerate(node.args) if k in own.mutates for x in _nodes_in(a)] + [
                x for name, a in node.kwargs.items() if name in names for x in _nodes_in(a)]
        return [*node.all_input_nodes[:1], *_nodes_in(node.kwargs.get("out"))] if self.writes(node) else []

    @staticmethod
    def may_alias(node):
        own = row_of(node)
        if own is None:
            return not is_size(node)
        return own.kind not in FRESH or own.name in MAY_RETURN_ARGUMENTS or function_of_row(own.name) is not node.target

    def group(self, node):
        parent = self.parent
        above = parent.get(node, node)
        while above is not node:        # the path is halved on the way: later searches are short
            top = parent[node] = parent.get(above, above)
            node, above = top, parent.get(top, top)
        return node

    def join(self, a, b):
        a, b = self.group(a), self.group(b)
        if a is not b:
            self.parent[a] = b

    def is_exposed(self, node):
        """Whether the node's memory is an argument's, is written to, or is returned."""
        return self.group(node) in self.exposed


def _nodes_in(a):
    found = []
    map_arg(a, found.append)
    return found


def _sets_modes(graph):
    """Whether nodes of the graph change the recording for gradients, so that equal calls may differ."""
    return any([getattr(n.target, "sets_mode", False) or getattr(n.target, "makes_leaves", False)
                for n in graph.nodes if n.op == "call_function"])


# -- folding ----------------------------------------------------------------------------------------------------------

def fold(module, is_constant=lambda name: True):
    """Replaces nodes that depend on no argument and draw no random number by their values.

    Parameters
    ----------
    module : GraphModule
        Gets the values, as ``_constantN``.
    is_constant : callable
        Whether the tensor of a name never changes.

    Returns
    -------
    int
        How many calls are gone.
    """
    graph, known = module.graph, {}
    memory = Memory(graph.nodes)
    for node in list(graph.nodes):
        if node.op == "get_attr":
            value = attribute_at(module, node.target)
            if is_constant(node.target) and isinstance(value, Tensor) and not memory.is_exposed(node):
                known[node] = value.detach()
        elif (node.op == "call_function" and not node.is_impure() and not memory.is_exposed(node)
              and all([x in known for x in node.all_input_nodes])):
            with aside(), no_grad():
                value = node.target(*map_arg(node.args, known.__getitem__), **map_arg(node.kwargs, known.__getitem__))
            if not isinstance(value, Tensor) or value.numel() * value.element_size() <= LARGEST:
                known[node] = value
    return _put(module, known)


def _put(module, known):
    """Replaces nodes by their values."""
    graph, gone = module.graph, 0
    for node in reversed(list(graph.nodes)):
        if node not in known or node.op != "call_function":
            continue
        users = [u for u in node.users if u not in known]
        if users and not node.all_input_nodes:
            continue                    # computing a fill costs no more than a stored constant
        if users:
            value = known[node]
            if isinstance(value, Tensor):
                name = free_name(module, "_constant")
                module.register_buffer(name, value.detach(), persistent=False)
                with graph.inserting_before(node):
                    made = graph.get_attr(name)
                node.replace_all_uses_with(made)
            elif isinstance(value, (int, float, bool, complex, str, type(None))):
                for user in users:
                    user.args = map_arg(user.args, lambda x, n=node, v=value: v if x is n else x)
                    user.kwargs = map_arg(user.kwargs, lambda x, n=node, v=value: v if x is n else x)
            else:                       # a tuple, whose elements become constants themselves
                continue
        if not node.users:
            graph.erase_node(node)
            gone += 1
    graph.eliminate_dead_code(Node.must_run)
    module.recompile()
    return gone


# -- common subexpressions --------------------------------------------------------------------------------------------

def merge_equal(module):
    """Replaces a call by an equal one before it.

    Returns
    -------
    int
        How many calls are gone.
    """
    graph = module.graph
    if _sets_modes(graph):
        return 0
    memory, known, gone = Memory(graph.nodes), {}, 0
    for node in list(graph.nodes):
        if node.op not in ("call_function", "get_attr") or node.is_impure() or (
                node.op == "call_function" and memory.is_exposed(node)):
            continue
        if any([memory.group(x) in memory.written for x in (node, *node.all_input_nodes)]):
            continue
        try:
            key = node.op, node.target, argument_key(node.args), argument_key(node.kwargs)
            first = known.setdefault(key, node)
        except TypeError:               # an argument is not hashable
            continue
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)
            gone += 1
    module.recompile()
    return gone


def written_to(graph):
    """The nodes whose memory is written to."""
    memory = Memory(graph.nodes)
    return [node for node in graph.nodes if memory.group(node) in memory.written]


def argument_key(a):
    """An argument as a hashable key; numbers of another type or sign of zero are different."""
    if isinstance(a, (tuple, list)):
        return type(a).__name__, *map(argument_key, a)
    if isinstance(a, dict):
        return "dict", *[(key, argument_key(x)) for key, x in a.items()]
    if isinstance(a, slice):
        return "slice", argument_key(a.start), argument_key(a.stop), argument_key(a.step)
    if isinstance(a, (float, complex)):
        return type(a), repr(a)
    return (a,) if isinstance(a, Node) else (type(a), a)


# -- convolutions and linear layers -----------------------------------------------------------------------------------

# Rows that may follow a layer, and the allowed places of the layer's result among their arguments.
AFFINE = {"add": (0, 1), "sub": (0,), "mul": (0, 1), "div": (0,)}
# Rows whose (first) result has as many dims as their first argument.
OF_SAME_RANK = frozenset("""
    convolve_transposed linear max_pool_windows mean_pool resample pad_constant pad_edges softmax log_softmax
    layer_norm_stats rms_norm_stats group_norm_stats batch_norm_stats batch_norm_given slice transpose permute row_major
    clone detach to_dtype""".split())


def absorb_affine(module, is_constant=lambda name: True):
    """Multiplies additions and multiplications by per-channel constants into the weights of the layer before them.

    Results are rounded differently.

    Parameters
    ----------
    module : GraphModule
    is_constant : callable
        Whether the tensor of a name never changes.

    Returns
    -------
    int
        How many calls are gone.
    """
    graph, gone, found = module.graph, 0, True
    ranks = _ranks_of(module)
    while found:
        found = False
        for node in list(graph.nodes):
            own = row_of(node)
            if own is None or own.name not in ("convolve", "linear"):
                continue
            if Memory.writes(node) or len(node.users) != 1 or not _absorb(
                    module, node, next(iter(node.users)), is_constant, ranks):
                continue
            gone, found = gone + 1, True
    graph.eliminate_dead_code(Node.must_run)
    module.recompile()
    return gone


def _ranks_of(module):
    """The numbers of dims of the values of nodes, where they are known.

    Those of arguments have a guard, except in graphs of fixed sizes, where an argument counts as a batch of vectors.
    """
    ranks = {}
    for node in module.graph.nodes:
        own = row_of(node)
        inputs = [ranks.get(x) for x in node.all_input_nodes if not is_size(x)]
        if node.op == "placeholder":
            ranks[node] = next((eq.args[1] for dim in node.users if dim.target is sym_dim for eq in dim.users
                                if eq.target is operator.eq and type(eq.args[1]) is int), 2)
        elif node.op == "get_attr":
            ranks[node] = getattr(attribute_at(module, node.target), "ndim", None)
        elif node.target is operator.getitem and inputs:        # a result of several
            ranks[node] = inputs[0]
        elif own is None or not inputs or inputs[0] is None:
            continue
        elif own.name == "convolve":
            ranks[node] = inputs[1]                             # that of the weight
        elif own.name in OF_SAME_RANK or (own.name == "mean" and node.args[2:3] == (True,)):
            ranks[node] = inputs[0]
        elif own.name in ("reshape", "view", "expand") and isinstance(node.args[1], (tuple, list)):
            ranks[node] = len(node.args[1])
        elif own.name == "mean" and isinstance(node.args[1], (int, tuple, list)) and node.args[2:3] == (False,):
            ranks[node] = inputs[0] - (1 if isinstance(node.args[1], int) else len(node.args[1]))
        elif own.name in ("select", "unsqueeze"):
            ranks[node] = inputs[0] + (1 if own.name == "unsqueeze" else -1)
        elif own.kind == "elementwise" and None not in inputs:
            ranks[node] = max(inputs)
    return ranks


def _absorb(module, layer, user, is_constant, ranks):
    """Moves the operation on a layer's result into its weights, if possible; returns whether it did."""
    graph, own = module.graph, row_of(user)
    if own is None or own.name not in AFFINE or Memory.writes(user) or len(layer.args) < 3 or layer.kwargs:
        return False
    place = next((k for k in AFFINE[own.name] if len(user.args) > 1 and user.args[k] is layer), None)
    if place is None or user.args[1 - place] is layer or any([a is not None and a != 1 for a in user.args[2:]]) or any(
            [a is not None and a != 1 for a in user.kwargs.values()]):
        return False
    weight, bias = [None if a is None else _constant(module, a, is_constant) for a in layer.args[1:3]]
    other = user.args[1 - place]
    if weight is None or (bias is None and layer.args[2] is not None) or not weight.dtype.is_floating_point:
        return False
    n = weight.shape[0]
    if isinstance(other, Node):
        other = _constant(module, other, is_constant)
        if other is None or other.dtype != weight.dtype:
            return False
        behind = weight.ndim - 2 if row_of(layer).name == "convolve" else 0
        sizes = [1] * (behind + 1 - other.ndim) + list(other.shape)
        at = len(sizes) - 1 - behind
        if any([size != 1 for k, size in enumerate(sizes) if k != at]) or sizes[at] not in (1, n):
            return False
        if other.ndim > behind + 1 and other.ndim > (ranks.get(layer) or 0):
            return False                    # the result may have more dims than that of the layer
        other = other.reshape(-1)
    elif type(other) not in (int, float):
        return False
    with aside(), no_grad():
        bias = weight.new_zeros(n) if bias is None else bias.clone()
        if own.name in ("add", "sub"):
            bias = bias + other if own.name == "add" else bias - other
        else:
            factor = weight.new_ones(n) * other if own.name == "mul" else weight.new_ones(n) / other
            weight, bias = weight * factor.reshape(-1, *[1] * (weight.ndim - 1)), bias * factor
    made = []
    for value in (weight, bias):
        name = free_name(module, "_constant")
        module.register_buffer(name, value.detach(), persistent=False)
        with graph.inserting_before(layer):
            made.append(graph.get_attr(name))
    layer.args = layer.args[0], *made, *layer.args[3:]
    user.replace_all_uses_with(layer)
    graph.erase_node(user)
    return True


def _constant(module, node, is_constant):
    """The value of a module's tensor that never changes, or None."""
    if not isinstance(node, Node) or node.op != "get_attr" or not is_constant(node.target):
        return None
    value = attribute_at(module, node.target)
    return value.detach() if isinstance(value, Tensor) else None
