"""``utils._pytree`` beside torch's: leaves, structures, maps, prefixes, errors."""
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from ptcore._trees.tree import broadcast_leaves
from ptcore.utils import _pytree as ours

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils._pytree")

pytestmark = pytest.mark.parity

Point = namedtuple("Point", "x y")


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __eq__(self, other):
        return isinstance(other, Pair) and (self.a, self.b) == (other.a, other.b)

    __hash__ = None

    def __repr__(self):
        return f"Pair({self.a}, {self.b})"


for _m in (ours, theirs):
    _m.register_pytree_node(Pair, lambda p: ([p.a, p.b], "pair"), lambda children, context: Pair(*children))

DEFAULT = defaultdict(list, {"k": [1, 2]})
TREES = [1, None, (), [], {}, (1, [2, 3]), {"b": 1, "a": (2, {"c": None})}, Point(1, (2,)), [Point(1, 2)],
         OrderedDict([("z", 1), ("y", [2])]), DEFAULT, deque([1, (2,)], 5), Pair(1, [2, 3]),
         {"deep": [[[[1], (2,)], {"x": Pair(3, 4)}]]}, [(), {}, None, 5], "text", (1,)]


@pytest.mark.parametrize("tree", TREES, ids=range(17))
def test_trees(tree):
    a, spec = ours.tree_flatten(tree)
    b, other = theirs.tree_flatten(tree)
    assert a == b
    for name in ("num_nodes", "num_leaves", "num_children"):
        assert getattr(spec, name) == getattr(other, name)
    assert spec.type is (None if spec.is_leaf() else type(tree))
    assert spec.is_leaf() == other.is_leaf()
    assert ours.tree_unflatten(a, spec) == tree == theirs.tree_unflatten(b, other)
    assert type(ours.tree_unflatten(a, spec)) is type(tree)
    assert ours.tree_map(lambda x: (x, 0), tree) == theirs.tree_map(lambda x: (x, 0), tree)
    for chosen in (int, (int, str), int | str):
        assert ours.tree_map_only(chosen, repr, tree) == theirs.tree_map_only(chosen, repr, tree)
    assert ours.tree_map(lambda x, y: [x, y], tree, tree) == theirs.tree_map(lambda x, y: [x, y], tree, tree)
    assert ours.tree_leaves(tree) == list(ours.tree_iter(tree)) == theirs.tree_leaves(tree)
    assert ours.tree_structure(tree) == spec
    stop = lambda t: isinstance(t, (list, Pair))                # noqa: E731
    assert ours.tree_leaves(tree, stop) == theirs.tree_leaves(tree, stop)
    for predicate in (lambda x: x is None, lambda x: isinstance(x, int)):
        assert ours.tree_all(predicate, tree) == theirs.tree_all(predicate, tree)
        assert ours.tree_any(predicate, tree) == theirs.tree_any(predicate, tree)


@pytest.mark.parametrize("tree", [t for t in TREES if not isinstance(t, Pair) and "Pair" not in str(t)], ids=str)
def test_paths(tree):
    a, b = ours.tree_flatten_with_path(tree)[0], theirs.tree_flatten_with_path(tree)[0]
    assert [(ours.keystr(path), leaf) for path, leaf in a] == [(theirs.keystr(path), leaf) for path, leaf in b]
    assert ours.tree_map_with_path(lambda path, x: (len(path), x), tree) == theirs.tree_map_with_path(
        lambda path, x: (len(path), x), tree)


def test_equal_structures():
    specs = [(ours.tree_structure(t), theirs.tree_structure(t)) for t in TREES]
    for a, x in specs:
        for b, y in specs:
            assert (a == b) == (x == y)


PREFIXES = [(0, (1, [2, 3])),
            ((0, 1), (1, [2, 3])), ((0, [1, 2]), (1, [2, 3])), ((0, [1]), (1, [2, 3])), ([0, 1], (1, 2)),
            ({"a": 0}, {"a": (1, 2)}), ({"b": 0}, {"a": 1}), (None, {"a": 1, "b": 2}), ((0,), (1, 2))]


@pytest.mark.parametrize(("prefix", "tree"), PREFIXES, ids=str)
def test_prefixes(prefix, tree):
    assert broadcast_leaves(prefix, ours.tree_structure(tree)) == theirs._broadcast_to_and_flatten(
        prefix, theirs.tree_structure(tree))


@pytest.mark.parametrize(("call", "says"), [
    (lambda m: m.tree_unflatten([1], m.tree_structure((1, 2))),
     r"`leaves` has length 1 but the spec refers to a pytree that holds 2 items"),
    (lambda m: m.tree_unflatten([1], 3),
     r"xpected `treespec` to be an instance of \w+ but got item of type <class 'int'>"),
    (lambda m: m.tree_map(lambda x, y: x, (1, 2), (1, 2, 3)), "Node arity mismatch; expected 2, but got 3"),
    (lambda m: m.tree_map(lambda x, y: x, (1, 2), [1, 2]),
     "ype mismatch; expected <class 'tuple'>, but got <class 'list'>"),
    (lambda m: m.tree_map(lambda x, y: x, {"a": 1}, {"b": 1}), "Node keys mismatch; .*'a'.*'b'"),
    (lambda m: m.tree_map(lambda x, y: x, Point(1, 2), (1, 2)), "ype mismatch; expected .*, but got <class 'tuple'>"),
    (lambda m: m.register_pytree_node(Pair, None, None), r"Pair'> is already registered as pytree node"),
    (lambda m: m.tree_leaves_with_path(Pair(1, 2)), "Did not find a flatten_with_keys_fn for type: .*Pair"),
], ids=range(8))
def test_errors(call, says):
    with pytest.raises((ValueError, TypeError), match=says) as expected:
        call(theirs)
    with pytest.raises(type(expected.value), match=says):
        call(ours)
