"""Rows: reading and writing by positions and masks."""
from ptcore._ops.table.schema import (
    ALL,
    INTEGRAL,
    ORDERED,
    REAL,
    composite,
    linear,
    made,
    nondifferentiable,
    structured,
)

linear(
    "gather(input, dim: Dim, index: Index)", kernel="gather",
    out="gather",
    vjp=["ungathered(g, x.shape, dim, index)", None],
    reference="_gather(x, dim, index)",
    doc="""Elements picked along ``dim``: ``out[i][j] = input[index[i][j]][j]`` for dim 0.

>>> import ptcore
>>> ptcore.gather(ptcore.tensor([[1, 2], [3, 4]]), 1, ptcore.tensor([[0, 0], [1, 0]]))
tensor([[1, 1],
        [4, 3]])
""")

structured(
    "scatter_add(input, dim: Dim, index: Index, src)", types=ALL, kernel="scatter_add",
    promote="none", out="scatter",
    vjp=["g", None, "corner_of(gather(g, dim, index), z.shape)"],
    jvp="linear", autocast=(None, "widest"), reference="_scatter_add(x, dim, index, src)",
    inplace=True, updates=True,
    doc="""``input`` with ``src`` added at positions along ``dim``, the inverse of gather.

>>> import ptcore
>>> ptcore.scatter_add(ptcore.zeros(3), 0, ptcore.tensor([0, 0, 2]), ptcore.ones(3))
tensor([2., 0., 1.])
""")

structured(
    "scatter_src(input, dim: Dim, index: Index, src)", node="ScatterBackward0", kernel="scatter", promote="none",
    internal=True, called="scatter", out="scatter",
    vjp=["scatter_src(g, dim, index, zeros_for(g, index.shape))", None,
         "corner_of(gather(g, dim, index), z.shape)"],
    jvp="linear", reference="_scatter(x, dim, index, src)", doc="``input`` with ``src`` written along dim.")

linear(
    "index_select(input, dim: Dim, index: Index)", kernel="index_select",
    out="index_select",
    vjp=["onto_zeros('index_add', g, x.shape, dim, index, g, 1)", None],
    batch="shift input", reference="take(x, index, axis=dim)",
    doc="""The slices of ``input`` along ``dim`` at the positions in a vector.

>>> import ptcore
>>> ptcore.index_select(ptcore.tensor([[1, 2], [3, 4]]), 0, ptcore.tensor([1, 1]))
tensor([[3, 4],
        [3, 4]])
""")

structured(
    "index_add(input, dim: Dim, index: Index, source, *, alpha: Scalar = 1)", types=ALL,
    kernel="index_add", promote="none", out="index_add",
    vjp=["g", None, "index_select(g, dim, index) * alpha"],
    batch="shift input source", jvp="linear",
    reference="_index_add(x, dim, index, source, alpha)", inplace=True, updates=True,
    doc="""``input`` with slices of ``source`` added at positions along ``dim``.

>>> import ptcore
>>> ptcore.index_add(ptcore.zeros(3), 0, ptcore.tensor([1, 1]), ptcore.ones(2))
tensor([0., 2., 0.])
""")

structured(
    "index_copy(input, dim: Dim, index: Index, source)", kernel="index_copy", promote="none", out="index_copy",
    autocast=("widest", None),
    vjp=["index_filled(g, dim, index, zeros_for(g, ()))", None, "reshape(index_select(g, dim, index), z.shape)"],
    batch="shift input source", jvp="linear", reference="_index_copy(x, dim, index, source)", inplace=True,
    updates=True,
    doc="""``input`` with slices of ``source`` written at positions along ``dim``.

>>> import ptcore
>>> ptcore.index_copy(ptcore.zeros(3), 0, ptcore.tensor([2]), ptcore.ones(1))
tensor([0., 0., 1.])
""")

structured(
    "index_filled(input, dim: Dim, index: Index, value)", kernel="index_copy", promote="none", internal=True,
    called="index_fill", node="IndexFillBackward0", out="as_input",
    vjp=["index_filled(g, dim, index, zeros_for(g, ()))", None,
         "sum(g * index_filled(zeros_for(g, g.shape), dim, index, ones_like(sum(g))))"],
    batch="decompose", jvp="linear", reference="_index_fill(x, dim, index, value)", inplace=True, updates=True,
    doc="``input`` with the element of a 0-d tensor in slices at positions along ``dim``.")

linear(
    "index_get(input, indices: Obj, dims: Obj, shape: Sizes)", node="IndexBackward0", kernel="index_get",
    internal=True, called="index",
    out="sized", vjp=["onto_zeros('index_accumulate', g, x.shape, g, unchanged(indices), dims, True)"],
    batch="index", reference="_index_get(x, indices, dims, shape)",
    doc="Advanced indexing: index tensors, broadcast to one shape, for the dims named.")

structured(
    "index_accumulate(input, values, indices: Obj, dims: Obj, accumulate=True)", node="IndexPutBackward0",
    kernel="index_put", types=ALL, internal=True, called="index_put", out="as_input", promote="none",
    prefill=True, updates=True, vjp=["g", "index_get(g, unchanged(indices), dims, y.shape)"],
    batch="index", jvp="linear", autocast=(None, "widest"),
    reference="_index_accumulate(x, values, indices, dims)",
    doc="A copy of input with values added at advanced indices.")

structured(
    "index_write(input, values, indices: Obj, dims: Obj, accumulate=False)", node="IndexPutBackward0",
    kernel="index_put", types=ALL, internal=True, called="index_put", out="as_input", promote="none",
    prefill=True, updates=True, vjp=["index_write(g, zeros_for(g, y.shape), unchanged(indices), dims)",
                                     "index_get(g, unchanged(indices), dims, y.shape)"],
    batch="index", jvp="linear", autocast=(None, "widest"),
    reference="_index_write(x, values, indices, dims)",
    doc="A copy of input with values written at advanced indices.")

nondifferentiable(
    "nonzero_of(input, count: Int)", types=ALL, kernel="nonzero", internal=True, called="nonzero",
    out="places_of", reference="_nonzero(x)",
    batch="refused: the number of nonzero elements may differ between samples",
    doc="Coordinates of the nonzero elements, whose number is known.")

composite(
    "nonzero(input, *, as_tuple=False)", out_argument="inside", reference="_nonzero(x)",
    returns="Tensor | tuple[Tensor, ...]",
    doc="""The coordinates of the nonzero elements: ``(count, ndim)``, or with ``as_tuple`` one vector a dim.

>>> import ptcore
>>> ptcore.nonzero(ptcore.tensor([0, 3, 4]))
tensor([[1],
        [2]])
""")

composite(
    "index_put(input, indices: Obj, values, accumulate=False)", inplace="inside",
    autocast=(None, "widest"), reference="_index_put(x, indices, values, accumulate)",
    doc="""A copy of ``input`` with values written (or added) at the positions that index tensors name.

>>> import ptcore
>>> ptcore.index_put(ptcore.zeros(3), (ptcore.tensor([2, 0]),), ptcore.tensor([1., 2.]))
tensor([2., 0., 1.])
""")

structured(
    "scatter_prod(input, dim: Dim, index: Index, src)", node="ScatterReduceBackward0", types=ALL, kernel="scatter_prod",
    promote="none", internal=True, called="scatter_reduce",
    out="scatter",
    vjp=["g * conj_of(factors_of(x, dim, index, z))", None,
         "corner_of(gather(g, dim, index) * conj_of(other_factors(x, dim, index, z, out)), z.shape)"],
    jvp=["t * factors_of(x, dim, index, z)", None,
         "scatter_add(zeros_for(t, x.shape), dim, index, pointwise(t, other_factors(x, dim, index, z, out)))"],
    reference="_scatter_with(multiply, x, dim, index, src)",
    doc="``input`` multiplied by ``src`` at positions along dim.")

for _name, _function in (("scatter_amax", "maximum"), ("scatter_amin", "minimum")):
    structured(
        f"{_name}(input, dim: Dim, index: Index, src, own: Bool = True)", node="ScatterReduceBackward0", types=ORDERED,
        kernel=_name,
        promote="none", internal=True, called="scatter_reduce",
        out="scatter",
        vjp=["g * (x == out) / winners(x, dim, index, z, out, own)", None,
             "corner_of(gather(g / winners(x, dim, index, z, out, own), dim, index) * is_winner(dim, index, z, out),"
             " z.shape)"],
        jvp=["t * (x == out) / winners(x, dim, index, z, out, own)", None,
             "scatter_add(zeros_for(t, x.shape), dim, index, pointwise(t, is_winner(dim, index, z, out)))"
             " / winners(x, dim, index, z, out, own)"],
        reference=f"_scatter_with({_function}, x, dim, index, src)",
        doc=f"""The {_function} of ``input`` and ``src`` at positions along dim; equals share the gradient, but for
elements of input that only begin there (not ``own``).""")

# -- windows, lists and masks of the whole tensor -------------------------------------------------
structured(
    "overwritten(input, src, stride: Ints, offset: Int)", node="SliceScatterBackward0", kernel="overwritten",
    promote="none", internal=True, called="as_strided_scatter", out="as_input", updates=True,
    vjp=["overwritten(g, zeros_for(g, y.shape), stride, offset)", "picked(g, y.shape, stride, offset)"],
    jvp="linear", batch="decompose", reference="_overwritten(x, src, stride, offset)",
    doc="``input`` with ``src`` in a window of its elements in row-major order, where no two places meet.")

linear(
    "picked(input, size: Sizes, stride: Ints, offset: Int)", kernel="picked", layout="contiguous", internal=True,
    called="as_strided", out="sized(input, size)",
    vjp=["onto_zeros('overwritten', g, x.shape, g, stride, offset)"], batch="decompose",
    reference="_picked(x, size, stride, offset)", doc="The elements of such a window.")

linear(
    "take(input, index: Index)", kernel="take", out="take",
    vjp=["onto_zeros('put', g, x.shape, index, g, True)", None], batch="decompose", reference="take(x, index)",
    doc="""Elements of the flattened input; negative positions count from the end.

>>> import ptcore
>>> ptcore.take(ptcore.tensor([[1, 2], [3, 4]]), ptcore.tensor([0, -1]))
tensor([1, 4])
""")

structured(
    "put(input, index: Index, source, accumulate=False)", kernel="put", promote="none", out="put",
    vjp=["kept_by_put(g, index, accumulate)", None, "reshape(take(g, index), z.shape)"], jvp="linear",
    batch="decompose", inplace=True, updates=True, reference="_put(x, index, source, accumulate)",
    out_argument=False,
    doc="""A copy of ``input`` with ``source`` written (or added) at positions of the flattened tensor.

>>> import ptcore
>>> ptcore.put(ptcore.zeros(3), ptcore.tensor([-1]), ptcore.ones(1))
tensor([0., 0., 1.])
""")

structured(
    "masked_write(input, mask: Index, source)", node="MaskedScatterBackward0", kernel="masked_write", promote="none",
    internal=True, called="masked_scatter", out="as_input", updates=True,
    vjp=["masked_fill(g, mask, 0)", None, "masked_collect(g, mask, z.shape)"], jvp="linear", batch="decompose",
    reference="_masked_scatter(x, mask, source)",
    doc="The elements of ``source``, one after another, where a mask of input's shape holds.")

linear(
    "masked_collect(input, mask: Index, shape: Sizes)", node="MaskedSelectBackward0", kernel="masked_collect",
    layout="contiguous", internal=True, called="masked_select", out="sized",
    vjp=["onto_zeros('masked_write', g, x.shape, mask, g)", None],
    batch="decompose", reference="_masked_collect(x, mask, shape)",
    doc="The elements where a mask of input's shape holds, one after another, then zeros up to a shape.")

nondifferentiable(
    "triangle_places(input, rows: Int, columns: Int, offset: Int, lower: Bool, shape: Sizes)",
    types=(*INTEGRAL, *REAL), kernel="triangle", internal=True, called="tril_indices", out="sized", batch="decompose",
    reference="_triangle_places(rows, columns, offset, lower)",
    doc="Rows and columns of a triangle of a matrix, as two rows of input's dtype; ``shape`` is (2, how many).")

made("scatter(input, dim: Int, index: Obj, src: Obj = None, *, reduce: Obj = None, value: Obj = None)",
     "_scatter(x, dim, index, src)",
     """``input`` with ``src`` (a tensor or a number) written at positions along ``dim``, or combined with what is
there: ``reduce`` is None, "add" or "multiply".""",
     "ptcore.scatter(ptcore.zeros(3), 0, ptcore.tensor([2]), 5.)", "tensor([0., 0., 5.])", out_argument=True,
     inplace=True)

made("scatter_reduce(input, dim: Int, index: Index, src, reduce: Obj, *, include_self=True)",
     "_scatter_reduce(x, dim, index, src, reduce, include_self)",
     """``src`` combined at positions along ``dim`` by "sum", "prod", "mean", "amax" or "amin"; with what ``input`` has
there unless ``include_self=False``.""",
     'ptcore.scatter_reduce(ptcore.zeros(2), 0, ptcore.tensor([0, 0]), ptcore.tensor([2., 3.]), "amax")',
     "tensor([3., 0.])", out_argument=True, inplace=True)

made("index_fill(input, dim: Int, index: Index, value: Obj)", "_index_fill(x, dim, index, value)",
     "``input`` with one value written to slices along ``dim``.",
     "ptcore.index_fill(ptcore.zeros(3), 0, ptcore.tensor([2]), 5)", "tensor([0., 0., 5.])", inplace=True)

made("index_reduce(input, dim: Int, index: Index, source, reduce: Obj, *, include_self=True)",
     "_index_reduce(x, dim, index, source, reduce, include_self)",
     """Slices of ``source`` combined at positions along ``dim`` by "prod", "mean", "amax" or "amin"; with what
``input`` has there unless ``include_self=False``.""",
     'ptcore.index_reduce(ptcore.ones(2), 0, ptcore.tensor([0, 0]), ptcore.tensor([2., 3.]), "prod")',
     "tensor([6., 1.])", out_argument=True, inplace=True, wide=True)

made("take_along_dim(input, indices: Index, dim: Obj = None)", "take_along_axis(x, indices, dim)",
     "Elements picked along ``dim`` as by gather, the other dims broadcast; of the flattened input if ``dim`` is None.",
     "ptcore.take_along_dim(ptcore.tensor([[3, 5]]), ptcore.tensor([[1]]), 1)", "tensor([[5]])", out_argument=True)

made("masked_scatter(input, mask, source)", "_masked_scatter(x, mask, source)",
     "The elements of ``source``, one after another, where ``mask`` holds; ``input`` elsewhere.",
     "ptcore.masked_scatter(ptcore.zeros(3), ptcore.tensor([True, False, True]), ptcore.tensor([1., 2.]))",
     "tensor([1., 0., 2.])", inplace=True)

made("argwhere(input)", "argwhere(x)", "The coordinates of the nonzero elements, ``(count, ndim)``.",
     "ptcore.argwhere(ptcore.tensor([0, 3]))", "tensor([[1]])")

made("renorm(input, p: Float, dim: Int, maxnorm: Float)", "_renorm(x, p, dim, maxnorm)",
     "The slices along ``dim`` whose p-norm exceeds ``maxnorm`` made that long.",
     "ptcore.renorm(ptcore.tensor([[3., 4.]]), 2, 0, 1)", "tensor([[0.6000, 0.8000]])", out_argument=True, inplace=True,
     autocast=(None, "high"), wide=True)

made("embedding(weight, indices: Index, padding_idx=-1, scale_grad_by_freq=False, sparse=False)", "take(x, y, axis=0)",
     """The rows of a matrix at the positions in ``indices``; the row ``padding_idx`` (-1: none) gets no gradient,
with ``scale_grad_by_freq`` the others theirs over how often they occur. ``sparse`` must be False.""",
     "ptcore.embedding(ptcore.tensor([[1., 2.], [3., 4.]]), ptcore.tensor([1]))", "tensor([[3., 4.]])", method=False)

made("embedding_function(input, weight, padding_idx: Obj = None, max_norm: Obj = None, norm_type: Float = 2.0, "
     "scale_grad_by_freq=False, sparse=False)", "take(weight, input, axis=0)",
     """The rows of ``weight`` at the positions in ``input``. The row ``padding_idx`` gets no gradient; rows that are
used and longer than ``max_norm`` are first made that long, in place. ``sparse`` must be False.""",
     "ptcore.nn.functional.embedding(ptcore.tensor([1]), ptcore.tensor([[1., 2.], [3., 4.]]))", "tensor([[3., 4.]])",
     public=["nn.functional.embedding"], called="embedding", method=False)

made("embedding_bag(input, weight, offsets: Obj = None, max_norm: Obj = None, norm_type: Float = 2.0, "
     'scale_grad_by_freq=False, mode: Obj = "mean", sparse=False, per_sample_weights: Obj = None, '
     "include_last_offset=False, padding_idx: Obj = None)", "_embedding_bag(input, weight, mode)",
     """The rows of ``weight`` summed, averaged or maximised within bags of positions: the rows of a matrix ``input``,
or the stretches of a vector that begin at ``offsets``. ``sparse`` must be False.""",
     'ptcore.nn.functional.embedding_bag(ptcore.tensor([[0, 1]]), ptcore.tensor([[1.], [3.]]), mode="sum")',
     "tensor([[4.]])", public=["nn.functional.embedding_bag"], method=False)

made("nonzero_static(input, *, size: Int, fill_value: Int = -1)", "_nonzero_static(x, size, fill_value)",
     """The coordinates of the first ``size`` nonzero elements, ``(size, ndim)``; ``fill_value`` where there are fewer.
The shape does not depend on the elements.""",
     "ptcore.nonzero_static(ptcore.tensor([0, 3]), size=2)", "tensor([[ 1],\n        [-1]])", out_argument=True)

made("fill(input, value: Obj)", "full(x.shape, value, x.dtype)",
     "``input`` with every element replaced by one value, a number or a 0-d tensor.",
     "ptcore.fill(ptcore.zeros(2), 3.)", "tensor([3., 3.])", method=False, out_argument=True)
