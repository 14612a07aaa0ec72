"""Traced programs inside scripted ones: their graphs with static types."""
import operator

from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_unflatten
from ptcore.fx.graph import Graph
from ptcore.fx.node import Node
from ptcore.jit._script import operations
from ptcore.jit._script.functions import ScriptFunction
from ptcore.jit._script.modules import empty_module
from ptcore.jit._script.types import STR, TENSOR, Dict, List, Tuple, of_value, unify_all
from ptcore.jit._script.values import Parameter

__all__ = ["script_of_function", "script_of_module"]


def script_of_function(method):
    """The ScriptFunction of a traced function.

    Raises
    ------
    TypeError
        If the function has tensors of its own, or arguments without a type in script.
    """
    for node in method.graph.find_nodes(op="get_attr"):
        raise TypeError(f"the traced function {method.name} has tensors of its own ({node.target}); trace a module "
                        "that has them instead")
    return _scripted(method, None)


def script_of_module(module, methods):
    """The ScriptModule of a traced module, with its tensors and submodules."""
    made = empty_module(module.original_name, module)
    for name, method in methods.items():
        made._jit_methods[name] = _scripted(method, made)
        made._jit_show(name, made._jit_methods[name])
    return made


def _scripted(method, owner):
    graph, parameters, leaves = Graph(), [], []
    for name, spec in zip(method.names, method.in_spec.children()):
        t = _type_of(spec, method.name)
        parameters.append(Parameter(name, t, False, None, False))
        _take_apart(graph, graph.placeholder(name, t), spec, leaves)
    env = dict(zip(method.graph.find_nodes(op="placeholder"), leaves))
    for node in method.graph.nodes:
        if node.op in ("get_attr", "call_function"):
            env[node] = graph.node_copy(node, env.__getitem__)
    results = [env[x] if isinstance(x, Node) else x for x in method.graph.output_node().args[0]]
    types = tree_unflatten([TENSOR if isinstance(x, (Node, Tensor)) else of_value(x) for x in results], method.out_spec)
    result, returns = _put_together(graph, tree_unflatten(results, method.out_spec), types, method.name)
    graph.output(result, returns)
    return ScriptFunction(method.name, graph, parameters, returns, None, owner)


def _refuse(kind, name):
    raise TypeError(f"what was traced as {name} takes or gives a {kind.__name__}; script knows tensors in tuples, "
                    "lists and dicts of it")


def _type_of(spec, name):
    """The type of an argument."""
    if spec.is_leaf():
        return TENSOR
    inside = [_type_of(c, name) for c in spec.children()]
    if spec.type is tuple:
        return Tuple(inside)
    if spec.type is list and inside and len({*inside}) == 1:
        return List(inside[0])
    if spec.type is dict and len({*inside}) == 1 and all([type(key) is str for key in spec.context]):
        return Dict(STR, inside[0])
    return _refuse(spec.type, name)


def _take_apart(graph, value, spec, leaves):
    """Adds the tensors of an argument to the leaves."""
    if spec.is_leaf():
        leaves.append(value)
        return
    children = spec.children()
    if spec.type is list:
        value = graph.call_function(operations.checked_length, (value, len(children)), type_expr=value.type)
        value.meta["effect"] = True
    for key, child in zip(spec.context if spec.type is dict else range(len(children)), children):
        made = graph.call_function(operator.getitem, (value, key), type_expr=_type_of(child, ""))
        _take_apart(graph, made, child, leaves)


def _put_together(graph, result, types, name):
    """A result as values of a graph, and its type."""
    kind = type(types)
    if kind in (tuple, list):
        parts = [_put_together(graph, x, t, name) for x, t in zip(result, types)]
        values, inside = tuple([x for x, _ in parts]), [t for _, t in parts]
        if kind is tuple:
            return values, Tuple(inside)
        t = List(unify_all(inside) if inside else TENSOR)
        return graph.call_function(operations.make_list, values, type_expr=t), t
    if kind is dict:
        parts = {key: _put_together(graph, result[key], t, name) for key, t in types.items()}
        if not all([type(key) is str for key in parts]):
            _refuse(kind, name)
        t = Dict(STR, unify_all([t for _, t in parts.values()]) if parts else TENSOR)
        flat = [x for key, (value, _) in parts.items() for x in (key, value)]
        return graph.call_function(operations.make_dict, tuple(flat), type_expr=t), t
    if hasattr(kind, "_fields") or isinstance(types, tuple):
        _refuse(kind, name)
    return result, types
