"""The sizes of an op's results as expressions, which programs without Python evaluate."""
from ptcore import _ops as ops
from ptcore._ops.table.evaluate import Sized, symbolic_sizes
from ptcore._sizes.symbolic import ShapeEnv
from ptcore._sizes.trees import tree_of, value_of
from ptcore._tensor import Tensor

# Letters of arguments with ints that may differ in another call; dims and words decide how a rule runs.
_NUMBERS = "ijzZ"


class SizeExpressions:
    """The sizes of the outputs of a call, as functions of its tensors' sizes and its ints.

    Attributes
    ----------
    outputs : list of list of tree
        The sizes of each output.
    conditions : list of tree
        The assumptions of the sizes: in a call that violates one of them the outputs differ, or the call is refused.

    Trees have the form of ``_sizes/trees.py``. Their leaves are ``["size", k, d]``, the size of dim d of the tensor at
    position k of a kernel's inputs, and ``["number", k, j]``, int j of the parameter at position k.
    """

    __slots__ = ("conditions", "outputs")

    def __init__(self, outputs, conditions):
        self.outputs, self.conditions = outputs, conditions

    def holds(self, sizes, numbers):
        """Whether the conditions hold for these tensor sizes and parameters, both in order."""
        return all(value_of(c, _reader(sizes, numbers)) for c in self.conditions)

    def sizes(self, sizes, numbers):
        """The sizes of each output."""
        return [tuple([value_of(n, _reader(sizes, numbers)) for n in found]) for found in self.outputs]


def _reader(sizes, numbers):
    return lambda leaf: (sizes if leaf[0] == "size" else numbers)[leaf[1]][leaf[2]]


class _Symbols:
    """The arguments of a call, with symbols in place of sizes and ints."""

    def __init__(self):
        self.env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
        self.leaves, self.conditions = {}, []
        self.tensors = self.params = 0

    def number(self, value, *place, low=None):
        n = self.env.fresh(value, low=low)
        self.leaves[n.expr.atoms()[0]] = list(place)
        return n

    def tensor(self, x):
        k = self.tensors
        self.tensors += 1
        if not isinstance(x, Tensor):
            return x
        return Sized([self.number(n, "size", k, d, low=0) for d, n in enumerate(x.shape)], x.dtype, x.device)

    def int(self, value, k, j):
        if value < 0:                   # it may have a special meaning, as -1 among the sizes of a view
            self.conditions.append(["eq", ["number", k, j], value])
            return value
        return self.number(value, "number", k, j, low=0)

    def param(self, value, letter):
        k = self.params
        self.params += 1
        if letter in _NUMBERS and isinstance(value, (tuple, list)):
            return tuple([self.int(n, k, j) for j, n in enumerate(value)])
        return self.int(value, k, 0) if letter in _NUMBERS and type(value) is int else value


def size_expressions(op, args):
    """The sizes of an op's outputs as expressions over the sizes and ints of its arguments.

    Parameters
    ----------
    op : str
        Name of a row that is not a composite.
    args : tuple
        Example arguments in the order that interpreters get them; the expressions hold for their dims, dtypes and
        words.

    Returns
    -------
    SizeExpressions

    Raises
    ------
    TypeError
        For a composite: the ops that it calls have rules.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore._ops.table.size_expressions import size_expressions
    >>> found = size_expressions("mm", (ptcore.ones(2, 3), ptcore.ones(3, 4)))
    >>> found.outputs
    [[['size', 0, 0], ['size', 1, 1]]]
    >>> found.conditions
    [['eq', ['size', 0, 1], ['size', 1, 0]]]
    """
    symbols, given = _Symbols(), []
    for value, own in zip(args, ops.arguments(ops.row(op))):
        if own.letter == "L":
            value = tuple([symbols.tensor(x) for x in value])
        elif own.is_tensor:
            value = symbols.tensor(value)
        else:
            value = symbols.param(value, own.letter)
        given.append(value)
    found = symbolic_sizes(op, tuple(given))
    if found is NotImplemented:
        raise TypeError(f"size_expressions: op must have a rule of shapes, got the composite {op!r}")
    leaf = symbols.leaves.__getitem__
    outputs = found if isinstance(found, list) else [found]
    return SizeExpressions([[tree_of(n, leaf) for n in sizes] for sizes in outputs],
                           symbols.conditions + [tree_of(guard.expr, leaf) for guard in symbols.env.guards])
