"""Trees: nested tuples, lists, dictionaries and registered classes, with anything else (None too) as leaves.

``tree_flatten`` takes a tree apart into its leaves and a ``TreeSpec``, which puts others of their kind together again.
What is done at each kind of node stands in one table; ``register_pytree_node`` enters another class. Names and
signatures are those of ``torch.utils._pytree``; ``ptcore.utils._pytree`` shows them. A tuple or list of leaves, which
most trees are, takes a short way; equal ones have one ``TreeSpec``.
"""
from collections import OrderedDict, defaultdict, deque
from itertools import islice
from types import UnionType
from typing import Any, NamedTuple

__all__ = [
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "broadcast_leaves",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any


class SequenceKey(NamedTuple):
    """A place in a tuple or list."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, node):
        return node[self.idx]


class MappingKey(NamedTuple):
    """A place in a dictionary."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, node):
        return node[self.key]


class GetAttrKey(NamedTuple):
    """A field of a named tuple or another object."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, node):
        return getattr(node, self.name)


class NodeDef(NamedTuple):
    """How nodes of a class are taken apart: ``flatten(node)`` gives children and a context, ``unflatten(children,
    context)`` a node, ``keys(node)`` the children's places."""

    flatten: Any
    unflatten: Any
    keys: Any = None


def _namedtuple_keys(node):
    return [GetAttrKey(name) for name in node._fields]


def _sequence_keys(node):
    return [SequenceKey(i) for i in range(len(node))]


def _mapping_keys(node):
    return [MappingKey(key) for key in node]


_NAMEDTUPLE = NodeDef(lambda node: (list(node), type(node)), lambda children, cls: cls(*children), _namedtuple_keys)
# Structures that C code returns have no _fields and take one sequence.
_STRUCTSEQ = NodeDef(lambda node: (list(node), type(node)), lambda children, cls: cls(children), _sequence_keys)

SUPPORTED_NODES = {
    tuple: NodeDef(lambda node: (list(node), None), lambda children, _: tuple(children), _sequence_keys),
    list: NodeDef(lambda node: (list(node), None), lambda children, _: list(children), _sequence_keys),
    dict: NodeDef(lambda node: (list(node.values()), list(node)), lambda children, keys: dict(zip(keys, children)),
                  _mapping_keys),
    OrderedDict: NodeDef(lambda node: (list(node.values()), list(node)),
                         lambda children, keys: OrderedDict(zip(keys, children)), _mapping_keys),
    defaultdict: NodeDef(lambda node: (list(node.values()), (node.default_factory, list(node))),
                         lambda children, context: defaultdict(context[0], zip(context[1], children)), _mapping_keys),
    deque: NodeDef(lambda node: (list(node), node.maxlen), deque, _sequence_keys),
}


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Makes instances of a class nodes of trees.

    Parameters
    ----------
    cls : type
    flatten_fn : callable
        ``flatten_fn(node)`` gives ``(children, context)``; contexts of nodes of equal structure are equal.
    unflatten_fn : callable
        ``unflatten_fn(children, context)`` gives the node.
    serialized_type_name, to_dumpable_context, from_dumpable_context : optional
        Taken as PyTorch takes them; a ``TreeSpec`` is not written to files.
    flatten_with_keys_fn : callable, optional
        ``flatten_with_keys_fn(node)`` gives ``([(key, child), ...], context)``.

    Raises
    ------
    ValueError
        If the class is registered already.

    Examples
    --------
    >>> from ptcore.utils import _pytree as pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    >>> pytree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    keys = None if flatten_with_keys_fn is None else lambda node: [key for key, _ in flatten_with_keys_fn(node)[0]]
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, keys)


def _node_of(tree):
    """What is done at a node of this kind; None: it is a leaf."""
    cls = type(tree)
    found = SUPPORTED_NODES.get(cls)
    if found is None and issubclass(cls, tuple):
        if isinstance(getattr(cls, "_fields", None), tuple):
            return _NAMEDTUPLE
        if hasattr(cls, "n_sequence_fields"):
            return _STRUCTSEQ
    return found


class TreeSpec:
    """The structure of a tree: the class of its root, what that keeps beside its children, and theirs.

    Two are equal if trees of both have their leaves in the same places.
    """

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type, context, children):
        self.type, self.context, self._children = type, context, tuple(children)
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum([c.num_nodes for c in self._children])
        self.num_leaves = sum([c.num_leaves for c in self._children])

    def children(self):
        return list(self._children)

    def child(self, index):
        return self._children[index]

    def is_leaf(self):
        return self.type is None

    def unflatten(self, leaves):
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """The parts of a tree at the places of this structure's leaves."""
        if self.is_leaf():
            return [tree]
        node = _node_of(tree)
        if node is None or type(tree) is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = node.flatten(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if issubclass(self.type, dict):
            mine = self.context[1] if self.type is defaultdict else self.context
            if set(mine) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {mine!r}, but got {list(tree)!r}.")
            children = [tree[key] for key in mine]
        elif context != self.context:
            raise ValueError(f"Node context mismatch; expected {self.context!r}, but got {context!r}.")
        return [part for spec, child in zip(self._children, children) for part in spec.flatten_up_to(child)]

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self.context == other.context and self._children == other._children

    def __hash__(self):
        return hash((self.type, self.num_nodes, self.num_leaves))

    def __repr__(self):
        if self.is_leaf():
            return "*"
        inside = ", ".join(map(repr, self._children))
        if self.type is tuple:
            return f"({inside},)" if self.num_children == 1 else f"({inside})"
        if self.type is list:
            return f"[{inside}]"
        if self.type is dict:
            return "{" + ", ".join([f"{k!r}: {c!r}" for k, c in zip(self.context, self._children)]) + "}"
        return f"TreeSpec({self.type.__name__}, {self.context!r}, [{inside}])"


class LeafSpec(TreeSpec):
    """The structure of a tree that is one leaf."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, None, ())
        self.num_leaves = 1


_LEAF = LeafSpec()
_FLAT: dict = {}             # (tuple or list, number of leaves) -> the TreeSpec of such a node
_MOST_FLAT = 64


def _flat_spec(cls, count):
    """The structure of a tuple or list of leaves."""
    spec = _FLAT.get((cls, count))
    if spec is None:
        spec = TreeSpec(cls, None, [_LEAF] * count)
        if count <= _MOST_FLAT:
            _FLAT[cls, count] = spec
    return spec


def _flatten(tree, leaves, is_leaf):
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        leaves.append(tree)
        return _LEAF
    cls = type(tree)
    if is_leaf is None and (cls is tuple or cls is list):
        for child in tree:
            if _node_of(child) is not None:
                break
        else:
            leaves.extend(tree)
            return _flat_spec(cls, len(tree))
    children, context = node.flatten(tree)
    return TreeSpec(type(tree), context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree, in order, and its structure. Where ``is_leaf(node)`` says so, a node is a leaf.

    Examples
    --------
    >>> from ptcore.utils import _pytree as pytree
    >>> pytree.tree_flatten({"a": (1, 2), "b": [3]})
    ([1, 2, 3], {'a': (*, *), 'b': [*]})
    """
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree of a structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError("tree_unflatten: expected `treespec` to be an instance of TreeSpec but got item of type "
                        f"{type(treespec)}.")
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                         f"holds {treespec.num_leaves} items ({treespec}).")
    if treespec.type is None:
        return leaves[0]
    return _built(treespec, iter(leaves))


def _built(spec, leaves):
    if spec.type is None:
        return next(leaves)
    if spec is _FLAT.get((spec.type, spec.num_children)):
        return spec.type(list(islice(leaves, spec.num_children)))
    children = [_built(child, leaves) for child in spec._children]
    node = SUPPORTED_NODES.get(spec.type)
    if node is None:
        node = _NAMEDTUPLE if hasattr(spec.type, "_fields") else _STRUCTSEQ
    return node.unflatten(children, spec.context)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after the other."""
    yield from tree_leaves(tree, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves, in order."""
    leaves = []
    _flatten(tree, leaves, is_leaf)
    return leaves


def tree_structure(tree, is_leaf=None):
    """The structure alone."""
    return _flatten(tree, [], is_leaf)


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with ``func`` of each leaf, and of what the other trees have in its place.

    Examples
    --------
    >>> from ptcore.utils import _pytree as pytree
    >>> pytree.tree_map(lambda x, y: x + y, (1, [2]), (10, [20]))
    (11, [22])
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(other) for other in rests]
    return tree_unflatten([func(*together) for together in zip(leaves, *others)], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls ``func`` as ``tree_map`` does, and returns the tree as it is."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for together in zip(leaves, *[spec.flatten_up_to(other) for other in rests]):
        func(*together)
    return tree


def tree_map_only(type_or_types_or_pred, func, tree, *rests, is_leaf=None):
    """``tree_map`` that leaves other leaves than those of a type, or for which a function holds, as they are."""
    chosen = type_or_types_or_pred
    if not isinstance(chosen, (type, tuple, UnionType)):
        return tree_map(lambda x, *more: func(x, *more) if chosen(x) else x, tree, *rests, is_leaf=is_leaf)
    return tree_map(lambda x, *more: func(x, *more) if isinstance(x, chosen) else x, tree, *rests, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether ``pred`` holds of every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether ``pred`` holds of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def broadcast_leaves(tree, treespec, is_leaf=None):
    """The leaves of a tree that is a prefix of a structure, each as often as the structure has leaves in its place.

    None where the tree is no such prefix.
    """
    if (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None:
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or type(tree) is not treespec.type:
        return None
    children, context = _node_of(tree).flatten(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec._children):
        part = broadcast_leaves(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


def _with_path(tree, path, found, is_leaf):
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        found.append((path, tree))
        return
    if node.keys is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
                         "flatten_with_keys_fn argument to register_pytree_node.")
    for key, child in zip(node.keys(tree), node.flatten(tree)[0]):
        _with_path(child, (*path, key), found, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """Pairs of a leaf's place, a tuple of keys, and the leaf; and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """Pairs of a leaf's place and the leaf."""
    found = []
    _with_path(tree, (), found, is_leaf)
    return found


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """``tree_map`` whose function gets the leaf's place first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(other) for other in rests]
    return tree_unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(found, *others)], spec)


def keystr(kp):
    """A place in a tree as text: ``[0].name['key']``."""
    return "".join(map(str, kp))
