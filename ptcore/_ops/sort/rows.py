"""Rows: sorting and selecting along a dim, values and indices."""
from ptcore._ops.table.schema import ORDERED, nondifferentiable, structured

structured(
    "sort(input, dim: Dim = -1, descending=False, *, stable=False)", types=ORDERED, kernel="sort",
    fields=("values", "indices"), out="like_pair",
    reference="_sort(x, dim, descending)", jvp="rule",
    doc="""Values in rising (or falling) order along ``dim`` and where they were. The order of
equals is kept, whatever ``stable`` says; NaN is the greatest.

>>> import ptcore
>>> ptcore.sort(ptcore.tensor([3, 1, 2])).values
tensor([1, 2, 3])
""")

structured(
    "topk(input, k: Int, dim: Dim = -1, largest=True, sorted=True)", types=ORDERED, kernel="topk",
    fields=("values", "indices"), out="topk_spec('topk', input, k, dim)",
    reference="_topk(x, k, dim, largest)", jvp="rule",
    doc="""The ``k`` largest (or smallest) values along ``dim`` and where they were, in order
whatever ``sorted`` says; of equals the first.

>>> import ptcore
>>> ptcore.topk(ptcore.tensor([3, 1, 2]), 2).indices
tensor([0, 2])
""")

nondifferentiable(
    "places_among(sorted_sequence, input, right: Bool)", types=ORDERED, kernel="places_among", internal=True,
    called="searchsorted",
    layout="contiguous", out="(input.shape, INT64)", reference="_places_among(x, y, right)",
    batch="refused: a sequence of one dim and one with the dims of input are read differently",
    doc="Where elements go among the rising ones of a vector, or of the last dim: see searchsorted.")
