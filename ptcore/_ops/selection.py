"""Rows: reading and writing by positions and masks, as functions of other ops."""
from ptcore._ops._schema import composite


def _row(signature, reference, text, example, result, **columns):
    composite(signature, reference=reference, doc=f"""{text}

>>> import ptcore
>>> {example}
{result}
""", **columns)


_row("scatter(input, dim: Int, index: Obj, src: Obj = None, *, reduce: Obj = None, value: Obj = None)",
     "_scatter(x, dim, index, src)",
     """``input`` with ``src`` (a tensor or a number) written at positions along ``dim``, or combined with what is
there: ``reduce`` is None, "add" or "multiply".""",
     "ptcore.scatter(ptcore.zeros(3), 0, ptcore.tensor([2]), 5.)", "tensor([0., 0., 5.])", out_argument=True,
     inplace=True)
_row("scatter_reduce(input, dim: Int, index: Index, src, reduce: Obj, *, include_self=True)",
     "_scatter_reduce(x, dim, index, src, reduce, include_self)",
     """``src`` combined at positions along ``dim`` by "sum", "prod", "mean", "amax" or "amin"; with what ``input`` has
there unless ``include_self=False``.""",
     'ptcore.scatter_reduce(ptcore.zeros(2), 0, ptcore.tensor([0, 0]), ptcore.tensor([2., 3.]), "amax")',
     "tensor([3., 0.])", out_argument=True, inplace=True)
_row("index_fill(input, dim: Int, index: Index, value: Obj)", "_index_fill(x, dim, index, value)",
     "``input`` with one value written to slices along ``dim``.",
     "ptcore.index_fill(ptcore.zeros(3), 0, ptcore.tensor([2]), 5)", "tensor([0., 0., 5.])", inplace=True)
_row("index_reduce(input, dim: Int, index: Index, source, reduce: Obj, *, include_self=True)",
     "_index_reduce(x, dim, index, source, reduce, include_self)",
     """Slices of ``source`` combined at positions along ``dim`` by "prod", "mean", "amax" or "amin"; with what
``input`` has there unless ``include_self=False``.""",
     'ptcore.index_reduce(ptcore.ones(2), 0, ptcore.tensor([0, 0]), ptcore.tensor([2., 3.]), "prod")',
     "tensor([6., 1.])", out_argument=True, inplace=True)
_row("take_along_dim(input, indices: Index, dim: Obj = None)", "take_along_axis(x, indices, dim)",
     "Elements picked along ``dim`` as by gather, the other dims broadcast; of the flattened input if ``dim`` is None.",
     "ptcore.take_along_dim(ptcore.tensor([[3, 5]]), ptcore.tensor([[1]]), 1)", "tensor([[5]])", out_argument=True)
_row("masked_scatter(input, mask, source)", "_masked_scatter(x, mask, source)",
     "The elements of ``source``, one after another, where ``mask`` holds; ``input`` elsewhere.",
     "ptcore.masked_scatter(ptcore.zeros(3), ptcore.tensor([True, False, True]), ptcore.tensor([1., 2.]))",
     "tensor([1., 0., 2.])", inplace=True)
_row("argwhere(input)", "argwhere(x)", "The coordinates of the nonzero elements, ``(count, ndim)``.",
     "ptcore.argwhere(ptcore.tensor([0, 3]))", "tensor([[1]])")
_row("searchsorted(sorted_sequence, input: Obj, *, out_int32=False, right=False, side: Obj = None, sorter: Obj = None)",
     "_places_among(x, input, right)",
     """Where elements go among sorted ones to keep them sorted: before equals, or behind them with ``right=True`` or
``side="right"``. A vector serves all of ``input``; else rows of the last dims go together.""",
     "ptcore.searchsorted(ptcore.tensor([1, 3, 5]), ptcore.tensor([3, 6]))", "tensor([1, 3])", out_argument=True,
     method=False)
_row("bucketize(input: Obj, boundaries, *, out_int32=False, right=False)", "_places_among(boundaries, input, right)",
     "The number of the interval between sorted boundaries that each element lies in.",
     "ptcore.bucketize(ptcore.tensor([0., 2.]), ptcore.tensor([1., 3.]))", "tensor([0, 1])", out_argument=True,
     method=False)
_row("renorm(input, p: Float, dim: Int, maxnorm: Float)", "_renorm(x, p, dim, maxnorm)",
     "The slices along ``dim`` whose p-norm exceeds ``maxnorm`` made that long.",
     "ptcore.renorm(ptcore.tensor([[3., 4.]]), 2, 0, 1)", "tensor([[0.6000, 0.8000]])", out_argument=True, inplace=True,
     autocast="high")
_row("embedding(weight, indices: Index, padding_idx=-1, scale_grad_by_freq=False, sparse=False)", "take(x, y, axis=0)",
     """The rows of a matrix at the positions in ``indices``; the row ``padding_idx`` (-1: none) gets no gradient,
with ``scale_grad_by_freq`` the others theirs over how often they occur. ``sparse`` must be False.""",
     "ptcore.embedding(ptcore.tensor([[1., 2.], [3., 4.]]), ptcore.tensor([1]))", "tensor([[3., 4.]])", method=False)
_row("embedding_function(input, weight, padding_idx: Obj = None, max_norm: Obj = None, norm_type: Float = 2.0, "
     "scale_grad_by_freq=False, sparse=False)", "take(weight, input, axis=0)",
     """The rows of ``weight`` at the positions in ``input``. The row ``padding_idx`` gets no gradient; rows that are
used and longer than ``max_norm`` are first made that long, in place. ``sparse`` must be False.""",
     "ptcore.nn.functional.embedding(ptcore.tensor([1]), ptcore.tensor([[1., 2.], [3., 4.]]))", "tensor([[3., 4.]])",
     public=["nn.functional.embedding"], called="embedding", method=False)
_row("embedding_bag(input, weight, offsets: Obj = None, max_norm: Obj = None, norm_type: Float = 2.0, "
     'scale_grad_by_freq=False, mode: Obj = "mean", sparse=False, per_sample_weights: Obj = None, '
     "include_last_offset=False, padding_idx: Obj = None)", "_embedding_bag(input, weight, mode)",
     """The rows of ``weight`` summed, averaged or maximised within bags of positions: the rows of a matrix ``input``,
or the stretches of a vector that begin at ``offsets``. ``sparse`` must be False.""",
     'ptcore.nn.functional.embedding_bag(ptcore.tensor([[0, 1]]), ptcore.tensor([[1.], [3.]]), mode="sum")',
     "tensor([[4.]])", public=["nn.functional.embedding_bag"], method=False)
