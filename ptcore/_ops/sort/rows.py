"""Rows: sorting, selecting along a dim, searching, sets."""
from ptcore._ops.table.schema import INTEGRAL, ORDERED, REAL, composite, made, nondifferentiable, structured

structured(
    "sort(input, dim: Dim = -1, descending=False, *, stable=False)", types=ORDERED, kernel="sort",
    fields=("values", "indices"), out="with_indices",
    reference="_sort(x, dim, descending)", jvp="rule",
    doc="""Values in rising (or falling) order along ``dim`` and where they were. The order of
equals is kept, whatever ``stable`` says; NaN is the greatest.

>>> import ptcore
>>> ptcore.sort(ptcore.tensor([3, 1, 2])).values
tensor([1, 2, 3])
""")

structured(
    "topk(input, k: Int, dim: Dim = -1, largest=True, sorted=True)", types=ORDERED, kernel="topk",
    fields=("values", "indices"), out="topk",
    reference="_topk(x, k, dim, largest)", jvp="rule",
    doc="""The ``k`` largest (or smallest) values along ``dim`` and where they were, in order
whatever ``sorted`` says; of equals the first.

>>> import ptcore
>>> ptcore.topk(ptcore.tensor([3, 1, 2]), 2).indices
tensor([0, 2])
""")

structured(
    "kthvalue(input, k: Int, dim: Dim = -1, keepdim=False)", types=(*INTEGRAL, *REAL), kernel="kth",
    fields=("values", "indices"), out="kth_pair", reference="_kthvalue(x, k, dim, keepdim)", jvp="decompose",
    doc="""The ``k``-th smallest value along ``dim``, counted from 1, and where it was.

>>> import ptcore
>>> ptcore.kthvalue(ptcore.tensor([3, 1, 2]), 1).indices
tensor(1)
""")

structured(
    "median_along(input, skip_nan: Bool, dim: Dim, keepdim: Bool)", types=(*INTEGRAL, *REAL), kernel="median",
    internal=True, called="median", node="MedianBackward1", fields=("values", "indices"), out="reduced_pair",
    reference="_median_along(x, skip_nan, dim, keepdim)", jvp="decompose",
    doc="The lower median along a dim and where it was: the first NaN if there is one, or NaN left out.")

structured(
    "median_of(input, skip_nan: Bool, dim: Dim, keepdim: Bool)", types=(*INTEGRAL, *REAL), kernel="median",
    internal=True, called="median", node="MedianBackward0", fields=("values", "indices"), out="reduced_pair",
    reference="_median_along(x, skip_nan, dim, keepdim)", jvp="rule", batch="decompose",
    doc="The lower median of all elements, as one dim: what is equal to it shares the gradient.")

structured(
    "mode(input, dim: Dim = -1, keepdim=False)", types=ORDERED, kernel="mode", fields=("values", "indices"),
    out="reduced_pair", reference="_mode(x, dim, keepdim)", jvp="decompose",
    doc="""The most frequent value along ``dim``, the smallest of equally frequent ones, and where it was last.

>>> import ptcore
>>> ptcore.mode(ptcore.tensor([3, 1, 3])).values
tensor(3)
""")

nondifferentiable(
    "is_among(input, tests, invert: Bool)", types=(*INTEGRAL, *REAL), kernel="isin", internal=True, called="isin",
    layout="contiguous", out="cast(input, BOOL)", batch="decompose", reference="isin(x, y, invert=invert)",
    doc="Whether each element is among those of another tensor, or is not.")

nondifferentiable(
    "places_among(sorted_sequence, input, right: Bool)", types=ORDERED, kernel="places_among", internal=True,
    called="searchsorted",
    layout="contiguous", out="cast(input, INT64)", reference="_places_among(x, y, right)",
    batch="rows",
    doc="Where elements go among the rising ones of a vector, or of the last dim: see searchsorted.")

composite(
    "argsort(input, dim=-1, descending=False, *, stable=False)",
    reference="_sort(x, dim, descending)[1]",
    doc="""The indices that sort ``input`` along ``dim``; the order of equals is kept.

>>> import ptcore
>>> ptcore.argsort(ptcore.tensor([3, 1, 2]))
tensor([1, 2, 0])
""")

made("msort(input)", "sort(x, axis=0) if x.ndim else x", "Sorted along dim 0.",
     "ptcore.msort(ptcore.tensor([3, 1, 2]))", "tensor([1, 2, 3])", out_argument=True)

for _name, _text in (("median", "The lower median of all elements, or along ``dim`` with where it was. NaN wins."),
                     ("nanmedian",
                      "The lower median of the elements that are not NaN, or along ``dim`` with where it was.")):
    made(f"{_name}(input, dim: Obj = None, keepdim=False)", f"_{_name}(x, dim, keepdim)", _text,
         f"ptcore.{_name}(ptcore.tensor([3., 1., 2., 4.]))", "tensor(2.)", out_argument=True)

# -- values that occur ----------------------------------------------------------------------------
made("unique(input, sorted=True, return_inverse=False, return_counts=False, dim: Obj = None)",
     "_unique(x, return_inverse, return_counts, dim)",
     """The different elements in rising order, or the different slices along ``dim``; with ``return_inverse`` also
where each element went, with ``return_counts`` how often each came. The gradient goes to one of the elements that are
equal.""",
     "ptcore.unique(ptcore.tensor([3, 1, 3]))", "tensor([1, 3])", returns="Tensor | tuple[Tensor, ...]")

made("unique_consecutive(input, return_inverse=False, return_counts=False, dim: Obj = None)",
     "_unique_consecutive(x)",
     "Of equal neighbours the first; ``return_inverse`` and ``return_counts`` as for unique.",
     "ptcore.unique_consecutive(ptcore.tensor([3, 3, 1, 3]))", "tensor([3, 1, 3])",
     returns="Tensor | tuple[Tensor, ...]")

made("searchsorted(sorted_sequence, input: Obj, *, out_int32=False, right=False, side: Obj = None, sorter: Obj = None)",
     "_places_among(x, input, right)",
     """Where elements go among sorted ones to keep them sorted: before equals, or behind them with ``right=True`` or
``side="right"``. A vector serves all of ``input``; else rows of the last dims go together.""",
     "ptcore.searchsorted(ptcore.tensor([1, 3, 5]), ptcore.tensor([3, 6]))", "tensor([1, 3])", out_argument=True,
     method=False)

made("bucketize(input: Obj, boundaries, *, out_int32=False, right=False)", "_places_among(boundaries, input, right)",
     "The number of the interval between sorted boundaries that each element lies in.",
     "ptcore.bucketize(ptcore.tensor([0., 2.]), ptcore.tensor([1., 3.]))", "tensor([0, 1])", out_argument=True,
     method=False)
