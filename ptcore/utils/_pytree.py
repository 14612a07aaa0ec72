"""Trees of tuples, lists, dictionaries and registered classes, by the names of ``torch.utils._pytree``."""
from collections import namedtuple

from ptcore._trees.tree import (
    SUPPORTED_NODES,
    GetAttrKey,
    LeafSpec,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    TreeSpec,
    keystr,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_flatten_with_path,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
)

__all__ = ["SUPPORTED_NODES", "GetAttrKey", "LeafSpec", "MappingKey", "NodeDef", "PyTree", "SequenceKey", "TreeSpec",
           "keystr", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_flatten_with_path",
           "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
           "tree_map_with_path", "tree_structure", "tree_unflatten"]


def _dict_flatten(d):
    """What takes dictionaries apart: (values, keys)."""
    return list(d.values()), list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values))


def _dict_flatten_with_keys(d):
    """The same with the place of each value, as ``flatten_with_keys_fn`` gives it."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten_with_keys(d):
    """What takes lists apart, with the place of each item."""
    return [(SequenceKey(k), x) for k, x in enumerate(d)], None


def _get_node_type(tree):
    """What nodes are registered by: ``namedtuple`` for all of its classes."""
    return namedtuple if isinstance(tree, tuple) and hasattr(tree, "_fields") else type(tree)
