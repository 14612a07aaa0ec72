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
    """The flattening function of dictionaries: (values, keys)."""
    return list(d.values()), list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values))


def _dict_flatten_with_keys(d):
    """The flattening of dictionaries with the place of each value, in the form of ``flatten_with_keys_fn``."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten_with_keys(d):
    """The flattening of lists, with the place of each item."""
    return [(SequenceKey(k), x) for k, x in enumerate(d)], None


def _get_node_type(tree):
    """The class by which nodes are registered: ``namedtuple`` for all named tuples."""
    return namedtuple if isinstance(tree, tuple) and hasattr(tree, "_fields") else type(tree)
