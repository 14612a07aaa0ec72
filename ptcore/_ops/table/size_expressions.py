"""The sizes of an op's results as expressions, which a program that has no Python works out."""
from ptcore import _ops as ops
from ptcore._ops.table.evaluate import Sized, rule_arguments
from ptcore._ops.table.ids import op_id, spec_of
from ptcore._sizes.symbolic import ShapeEnv
from ptcore._sizes.trees import tree_of, value_of
from ptcore._tensor import Tensor

# Letters of arguments whose ints may be other ones in another call; dims and words choose a rule's way.
_NUMBERS = "ijzZ"


class SizeExpressions:
    """What the outputs of a call are, by the sizes of its tensors and its ints.

    Attributes
    ----------
    outputs : list of (list of tree, dtype)
        The sizes of each output.
    conditions : list of tree
        What must hold for it: in another call for which one does not, the outputs are others, or it is refused.

    Trees are those of ``_sizes/trees.py``. Their leaves are ``["size", k, d]``, the size of dim d of the tensor at
    place k of a kernel's inputs, and ``["number", k, j]``, int j of the parameter at place k.
    """

    __slots__ = ("conditions", "outputs")

    def __init__(self, outputs, conditions):
        self.outputs, self.conditions = outputs, conditions

    def holds(self, sizes, numbers):
        """Whether the conditions hold for these sizes of tensors and these parameters, both in their order."""
        return all(value_of(c, _reader(sizes, numbers)) for c in self.conditions)

    def sizes(self, sizes, numbers):
        """The sizes of each output."""
        return [tuple([value_of(n, _reader(sizes, numbers)) for n in found]) for found, _ in self.outputs]


def _reader(sizes, numbers):
    return lambda leaf: (sizes if leaf[0] == "size" else numbers)[leaf[1]][leaf[2]]


def size_expressions(op, args):
    """The sizes of a structured op's outputs as expressions over the sizes and ints of its arguments.

    Parameters
    ----------
    op : str
        Name of a row.
    args : tuple
        Arguments in the order that interpreters get them: an example, whose dims, dtypes and words the expressions are
        for.

    Returns
    -------
    SizeExpressions

    Examples
    --------
    >>> import ptcore
    >>> from ptcore._ops.table.size_expressions import size_expressions
    >>> found = size_expressions("mm", (ptcore.ones(2, 3), ptcore.ones(3, 4)))
    >>> found.outputs
    [([['size', 0, 0], ['size', 1, 1]], ptcore.float32)]
    >>> found.conditions
    [['eq', ['size', 0, 1], ['size', 1, 0]]]
    """
    row = ops.row(op)
    env, leaves = ShapeEnv(duck_shape=False, specialize_zero_one=False), {}

    def number(hint, *place, low=None):
        n = env.fresh(hint, low=low)
        leaves[n.expr.atoms()[0]] = list(place)
        return n

    def sized(x):
        nonlocal tensors
        tensors += 1
        if not isinstance(x, Tensor):
            return x
        return Sized([number(n, "size", tensors - 1, d, low=0) for d, n in enumerate(x.shape)], x.dtype, x.device)

    tensors, params, given = 0, 0, []
    for value, own in zip(rule_arguments(row, args), ops.arguments(row)):
        if own.is_tensor:
            value = tuple([sized(x) for x in value]) if own.letter == "L" else sized(value)
        else:
            if own.letter in _NUMBERS and isinstance(value, tuple):
                value = tuple([number(n, "number", params, j) for j, n in enumerate(value)])
            elif own.letter in _NUMBERS and type(value) is int:
                value = number(value, "number", params, 0)
            params += 1
        given.append(value)
    specs = spec_of(op_id(op))(*given)
    specs = specs if isinstance(specs, list) else [specs]
    leaf = leaves.__getitem__
    return SizeExpressions([([tree_of(n, leaf) for n in spec[0]], spec[1]) for spec in specs],
                           [tree_of(guard.expr, leaf) for guard in env.guards])
