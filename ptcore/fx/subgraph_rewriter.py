"""``replace_pattern``: replaces the parts of a graph that match a pattern."""
import copy
from typing import NamedTuple

from ptcore._tensor import Tensor
from ptcore.fx._symbolic_trace import symbolic_trace
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import assign
from ptcore.fx.node import Node, attribute_at, free_name, map_arg
from ptcore.nn.modules.module import Module

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A part of a graph that was replaced: the last node of the pattern, and the matched node of each pattern node."""

    anchor: Node
    nodes_map: dict


def _graph_of(pattern):
    if isinstance(pattern, Graph):
        return pattern
    found = getattr(pattern, "graph", None)
    return found if isinstance(found, Graph) else symbolic_trace(pattern).graph


def _same(pattern, node, found):
    """Whether a pattern node matches a node; ``found`` collects the matches."""
    if pattern in found:
        return found[pattern] is node
    if isinstance(node, Node) and node in found.values():       # it matches another pattern node already
        return False
    if pattern.op == "placeholder":
        found[pattern] = node
        return True
    if not isinstance(node, Node) or pattern.op != node.op:
        return False
    if pattern.target != node.target and (pattern.op != "get_attr" or not _both_tensors(pattern, node)):
        return False
    if len(pattern.args) != len(node.args) or set(pattern.kwargs) != set(node.kwargs):
        return False
    found[pattern] = node
    return all(_same_arg(a, b, found) for a, b in [*zip(pattern.args, node.args),
                                                   *[(x, node.kwargs[key]) for key, x in pattern.kwargs.items()]])


def _both_tensors(a, b):
    """Whether two nodes look up tensors of one class. These match whatever their names and values."""
    if a.graph.owning_module is None or b.graph.owning_module is None:
        return False
    x, y = attribute_at(a.graph.owning_module, a.target), attribute_at(b.graph.owning_module, b.target)
    return isinstance(x, Tensor) and type(x) is type(y)


def _same_arg(a, b, found):
    if isinstance(a, Node):
        return (a.op == "placeholder" or isinstance(b, Node)) and _same(a, b, found)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(_same_arg(x, y, found) for x, y in zip(a, b))
    if isinstance(b, Node):
        return False
    return type(a) is type(b) and a == b


def replace_pattern(gm, pattern, replacement):
    """Replaces each part of a graph that matches a pattern. Parts do not overlap, and only the result of a part may
    have users outside.

    Parameters
    ----------
    gm : GraphModule
        Its graph is written to.
    pattern, replacement : callable, Module or Graph
        Functions of the same arguments. Their arguments stand for any value, each for another node. Modules and
        tensors of a replacement are copied where ``gm`` has none of their name.

    Returns
    -------
    list of Match

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import replace_pattern, symbolic_trace
    >>> traced = symbolic_trace(lambda x, w: ptcore.relu(ptcore.mm(x, w)))
    >>> matches = replace_pattern(traced, lambda a, b: ptcore.mm(a, b), lambda a, b: ptcore.matmul(b.t(), a.t()).t())
    >>> [node.name for node in traced.graph.nodes]
    ['x', 'w', 't', 't_1', 'matmul', 't_2', 'relu', 'output']
    >>> len(matches)
    1
    """
    graph, wanted, new = gm.graph, _graph_of(pattern), _graph_of(replacement)
    result = wanted.output_node().args[0]
    if not isinstance(result, Node):
        raise RuntimeError("replace_pattern: the pattern must return one value")
    taken, matches = set(), []
    for node in list(graph.nodes):
        found = {}
        if node.op in ("placeholder", "output") or not _same(result, node, found):
            continue
        inside = {n for p, n in found.items() if p.op != "placeholder"}
        if inside & taken or any(user not in inside for n in inside if n is not node for user in n.users):
            continue
        taken |= inside
        matches.append(Match(result, found))
    places = [n for n in new.nodes if n.op == "placeholder"]
    arguments = [n for n in wanted.nodes if n.op == "placeholder"]
    if len(places) != len(arguments):
        raise RuntimeError(f"replace_pattern: the replacement must take {len(arguments)} arguments, got {len(places)}")
    put = {}                            # removed node -> its replacement
    constants = _constants_of(new, gm) if matches else {}
    for match in matches:
        values, old = {}, match.nodes_map[result]
        for place, argument in zip(places, arguments):
            value = match.nodes_map.get(argument)
            values[place] = put.get(value, value) if isinstance(value, Node) else value
        user = next((n for n in graph.nodes if n in old.users), old.next)       # the first user of the result
        with graph.inserting_before(user):
            for n in new.nodes:
                if n.op not in ("placeholder", "output"):
                    values[n] = graph.node_copy(n, lambda x, values=values: values[x])
                    values[n].target = constants.get(n.target, n.target)
        last = map_arg(new.output_node().args[0], lambda x, values=values: values[x])
        old.replace_all_uses_with(last)
        put[old] = last
        for n in reversed([n for n in graph.nodes if n in set(match.nodes_map.values()) - set(
                match.nodes_map[a] for a in arguments if a in match.nodes_map)]):
            if not n.users:
                graph.erase_node(n)
    if isinstance(replacement, Module):
        gm.delete_all_unused_submodules()
    if new.owning_module is not None:
        _take_attributes(gm, new.owning_module)
    gm.recompile()
    return matches


def _constants_of(graph, gm):
    """Moves tensors that a traced function had from outside into a module under free names; returns {old name: new
    name}."""
    found, source = {}, graph.owning_module
    for node in graph.find_nodes(op="get_attr"):
        if source is not None and node.target.startswith("_tensor_constant") and node.target not in found:
            found[node.target] = free_name(gm, "_tensor_constant")
            assign(attribute_at(source, node.target), gm, found[node.target])
    return found


def _take_attributes(gm, replacement):
    """Copies attributes and modules that the new nodes use and the module lacks from the replacement's module."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            try:
                attribute_at(gm, node.target)
            except AttributeError:
                assign(copy.deepcopy(attribute_at(replacement, node.target)), gm, node.target)
