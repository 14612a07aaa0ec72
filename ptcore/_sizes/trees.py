"""Symbolic numbers as trees of lists, which a program without Python can read and work out.

A tree is an int, a leaf that names an input, or ``[function, tree, ...]`` with the name of a function of
``FUNCTIONS``. It can be written as JSON.
"""
import operator
from functools import reduce

from ptcore._sizes.expressions import Expr, Leaf, Op
from ptcore._sizes.symbolic import SymBool, SymInt

# What trees are made of. Integers: // and % round down.
FUNCTIONS = {
    "add": lambda *xs: reduce(operator.add, xs), "mul": lambda *xs: reduce(operator.mul, xs),
    "floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "not_": operator.not_,
    "and_": operator.and_, "or_": operator.or_, "ite": lambda b, t, f: t if b else f,
}


def tree_of(x, leaf):
    """The tree of an int, a SymInt, a SymBool or an expression.

    Parameters
    ----------
    x : int, SymInt, SymBool or Expr
    leaf : callable
        What stands in the tree for a ``Leaf``.
    """
    if isinstance(x, (SymInt, SymBool)):
        x = x.expr
    if not isinstance(x, Expr):
        return x
    if type(x) is Leaf:
        return leaf(x)
    if type(x) is Op:
        if x.name not in FUNCTIONS:
            raise NotImplementedError(f"tree_of: {x.name!r} is no function of trees, in {x}")
        return [x.name, *[tree_of(a, leaf) for a in x.args]]
    terms = []
    for product, factor in x.terms.items():
        factors = [tree_of(atom, leaf) for atom, power in product for _ in range(power)]
        if factor != 1 or not factors:
            factors.insert(0, factor)
        terms.append(factors[0] if len(factors) == 1 else ["mul", *factors])
    return 0 if not terms else terms[0] if len(terms) == 1 else ["add", *terms]


def value_of(tree, leaf):
    """A tree worked out; ``leaf`` gives the value of a leaf."""
    if isinstance(tree, (int, bool)):
        return tree
    function = FUNCTIONS.get(tree[0])
    return leaf(tree) if function is None else function(*[value_of(x, leaf) for x in tree[1:]])
