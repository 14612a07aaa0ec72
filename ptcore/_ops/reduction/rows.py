"""Rows: reductions over one, several or all dims."""
from ptcore._ops.table.schema import (
    ALL,
    FLOATING,
    ORDERED,
    REAL,
    composite,
    linear,
    made,
    nondifferentiable,
    structured,
    uniform,
)

linear(
    "sum(input, dim: Dims = None, keepdim=False, *, dtype: DType = None)",
    kernel="sum", promote="dtype", out="reduced_sum",
    reference="sum(x, axis=dim, keepdims=keepdim)", autocast=(None, "high"), out_dtype="cast",
    doc="""Sum over ``dim`` (all dims if None). Integers and bools give int64 unless ``dtype``
says otherwise.

>>> import ptcore
>>> ptcore.sum(ptcore.tensor([[1., 2.], [3., 4.]]), dim=0)
tensor([4., 6.])
""")

structured(
    "nansum(input, dim: Dims = None, keepdim=False, *, dtype: DType = None)", types=ORDERED,
    kernel="nansum", promote="dtype", out="reduced_sum", jvp="decompose",
    reference="nansum(x, axis=dim, keepdims=keepdim)", out_dtype="cast",
    doc="""Sum over ``dim`` (all dims if None) of the elements that are not NaN.

>>> import ptcore
>>> ptcore.nansum(ptcore.tensor([1., float("nan")]))
tensor(1.)
""")

structured(
    "prod_dims(input, dim: Dims = None, keepdim=False, *, dtype: DType = None)", node="ProdBackward0",
    internal=True, called="prod",
    kernel="prod", promote="dtype", out="reduced_sum",
    reference="prod(x, axis=dim, keepdims=keepdim)", jvp="reduced", autocast="high",
    sample=uniform(0.5, 2),
    doc="Product over dims.")

linear(
    "mean(input, dim: Dims = None, keepdim=False, *, dtype: DType = None)", types=FLOATING,
    kernel="mean", promote="dtype", out="reduced",
    reference="mean(x, axis=dim, keepdims=keepdim)", out_dtype="cast",
    doc="""Mean over ``dim`` (all dims if None) of a floating-point tensor.

>>> import ptcore
>>> ptcore.mean(ptcore.tensor([1., 2., 6.]))
tensor(3.)
""")

linear(
    "mean_of_terms(input, dim: Dims = None, keepdim=False)", types=FLOATING, internal=True, called="mean",
    node="MeanBackward0", kernel="mean", promote="none", out="reduced",
    reference="mean(x, axis=dim, keepdims=keepdim)",
    doc="The mean of all numbers that nobody else has, as a loss's terms: its gradient needs no memory of their size.")

for _name, _text in (("amax", "Largest"), ("amin", "Smallest")):
    structured(
        f"{_name}(input, dim: Dims = None, keepdim=False)", types=ORDERED, kernel=_name,
        out="reduced_nonempty",
        reference=f"{_name}(x, axis=dim, keepdims=keepdim)", jvp="reduced",
        doc=f"""{_text} value over ``dim``; equal ones share the gradient. NaN wins.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([[1., 1.], [1., 1.]]), dim=1)
tensor([1., 1.])
""")

for _name in ("max_dim", "min_dim"):
    structured(
        f"{_name}(input, dim: Dim, keepdim=False)", types=ORDERED, kernel=_name, internal=True,
        called=_name[:3], node=f"{_name[:3].title()}Backward0", fields=("values", "indices"),
        out="reduced_pair",
        reference="_" + _name, jvp="reduced",
        doc="Values and the index of the first occurrence.")

for _name in ("argmax", "argmin"):
    nondifferentiable(
        f"{_name}(input, dim: OptDim = None, keepdim=False)", types=ORDERED, kernel=_name,
        out="reduced_index",
        reference=f"{_name}(x, axis=dim, keepdims=keepdim)",
        doc=f"""Index of the {'largest' if _name == 'argmax' else 'smallest'} value, the first
among equals; of the flattened tensor if ``dim`` is None.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([5., 5.]))
tensor(0)
""")

for _name, _text in (("any", "Whether any element is nonzero."),
                     ("all", "Whether all elements are nonzero.")):
    nondifferentiable(
        f"{_name}(input, dim: DimList = None, keepdim=False)", types=ALL, kernel=_name,
        out="reduced_bool",
        reference=f"{_name}(x, axis=dim, keepdims=keepdim)",
        doc=f"""{_text} An empty tuple names no dim: each element is looked at by itself.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([True, True]))
tensor(True)
""")

nondifferentiable(
    "count_nonzero(input, dim: Dims = None)", types=ALL, kernel="count_nonzero",
    out="counted", reference="count_nonzero(x, axis=dim)",
    doc="""Number of nonzero elements.

>>> import ptcore
>>> ptcore.count_nonzero(ptcore.tensor([0, 3, 4]))
tensor(2)
""")

composite(
    "hash_tensor(input, dim: Dims = None, *, keepdim=False, mode: Int = 0)", out_argument=True,
    reference="_hash_tensor(x, dim, keepdim)", out_dtype="exact",
    doc="""A hash of the elements: the exclusive or of their bits as numbers of 64 bits, as uint64. ``mode`` must be 0.

>>> import ptcore
>>> ptcore.hash_tensor(ptcore.tensor([1, 2, 4]))
tensor(7, dtype=ptcore.uint64)
""")

structured(
    "var_dims(input, dim: Dims = None, correction: Float = 1.0, keepdim=False)", node="VarBackward0", types=REAL,
    kernel="var", internal=True, called="var", out="reduced",
    reference="var(x, axis=dim, ddof=correction, keepdims=keepdim)", jvp="reduced",
    doc="Variance with a correction to the divisor.")

structured(
    "std_dims(input, dim: Dims = None, correction: Float = 1.0, keepdim=False)", node="StdBackward0", types=REAL,
    kernel="std", internal=True, called="std", out="reduced",
    reference="std(x, axis=dim, ddof=correction, keepdims=keepdim)", jvp="reduced",
    doc="Standard deviation: the root of a variance that the dtype need not hold.")

structured(
    "logsumexp_of(input, dim: Dims, keepdim=False)", types=REAL, promote="float",
    kernel="logsumexp", out="reduced", internal=True, called="logsumexp", node="LogsumexpBackward0",
    reference="special.logsumexp(x, axis=dim, keepdims=keepdim)", jvp="reduced", out_dtype="cast",
    doc="``logsumexp`` of real numbers, in one pass.")

composite(
    "logsumexp(input, dim: Obj, keepdim=False)", out_argument=True,
    reference="special.logsumexp(x, axis=dim, keepdims=keepdim)", autocast=(None, "high"), out_dtype="cast",
    doc="""``log(sum(exp(input)))`` over ``dim``, without overflow.

>>> import ptcore
>>> ptcore.logsumexp(ptcore.tensor([1000., -1000.]), 0)
tensor(1000.)
""", wide=True)

structured(
    "vector_norm(input, ord: Float = 2.0, dim: Dims = None, keepdim=False)",
    node="LinalgVectorNormBackward0", types=REAL,
    kernel="vector_norm", internal=True, called="norm", out="reduced",
    sample=uniform(0.2, 3), reference="_vector_norm(x, ord, dim, keepdim)", jvp="reduced",
    autocast=(None, "high"),
    doc="Norm of the elements over dims.")

composite(
    "max(input, dim: Obj = None, keepdim=False)", out_argument=True,
    reference="max(x, axis=dim)", numpy="amax", out_dtype="cast one",
    doc="""The largest element; with ``dim`` a pair (values, indices), with a tensor in its
place the elementwise maximum.

>>> import ptcore
>>> ptcore.max(ptcore.tensor([[1, 5], [7, 2]]), 1).indices
tensor([1, 0])
""")

composite(
    "min(input, dim: Obj = None, keepdim=False)", out_argument=True,
    reference="min(x, axis=dim)", numpy="amin", out_dtype="cast one",
    doc="""The smallest element; with ``dim`` a pair (values, indices), with a tensor in its
place the elementwise minimum.

>>> import ptcore
>>> ptcore.min(ptcore.tensor([[1, 5], [7, 2]]), 1).values
tensor([1, 2])
""")

composite(
    "prod(input, dim: Obj = None, keepdim=False, *, dtype: DType = None)", out_argument=True,
    autocast="high", reference="prod(x, axis=dim)", out_dtype="cast",
    doc="""Product over ``dim`` (all dims if None).

>>> import ptcore
>>> ptcore.prod(ptcore.tensor([2., 3.]))
tensor(6.)
""")

for _name, _text in (("var", "Variance"), ("std", "Standard deviation")):
    composite(
        f"{_name}(input, dim: Obj = None, unbiased: Obj = None, keepdim=False, *, correction: Obj = None, "
        "dtype: DType = None, ddof: Obj = None)", out_argument=True, out_dtype="cast", wide=_name == "std",
        reference=f"{_name}(x, axis=dim, ddof=1)",
        doc=f"""{_text} over ``dim`` (all dims if None) with the divisor ``n - correction``
(correction is 1 unless given). As NumPy has them: ``ddof``, another name of
``correction``, and ``dtype``, that to compute in.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1., 1.]))
tensor(0.)
""")

# -- moments ------------------------------------------------------------------------------------
for _name, _text, _values in (("std_mean", "Standard deviation", "(tensor(1.4142), tensor(2.))"),
                              ("var_mean", "Variance", "(tensor(2.), tensor(2.))")):
    made(f"{_name}(input, dim: Obj = None, unbiased: Obj = None, keepdim=False, *, correction: Obj = None)",
         f"_{_name}(x, dim, correction)",
         f"{_text} and mean over ``dim`` (all dims if None); the divisor is ``n - correction``, with 1 unless given.",
         f"ptcore.{_name}(ptcore.tensor([1., 3.]))", _values, method=False, returns="tuple[Tensor, Tensor]",
         wide=True)

made("nanmean(input, dim: Obj = None, keepdim=False, *, dtype: DType = None)", "nanmean(x, axis=dim, keepdims=keepdim)",
     "Mean over ``dim`` (all dims if None) of the elements that are not NaN.",
     "ptcore.nanmean(ptcore.tensor([1., float('nan')]))", "tensor(1.)", out_argument=True, autocast=(None, "high"),
    out_dtype="cast", wide=True)

# -- order --------------------------------------------------------------------------------------
made("aminmax(input, *, dim: Obj = None, keepdim=False)", "_aminmax(x, dim, keepdim)",
     "The smallest and the largest value along ``dim``, or of all elements; equal ones share the gradient.",
     "ptcore.aminmax(ptcore.tensor([3, 1, 2])).max", "tensor(3)", out_argument=True, returns="tuple[Tensor, Tensor]")

# -- pieces -------------------------------------------------------------------------------------
_PIECES = 'axis: Int, reduce: "sum|mean|prod|max|min", start: Float, given: Bool'
structured(
    f"segments(data, offsets: Index, {_PIECES})", types=REAL, promote="none", kernel="segments", layout="contiguous",
    internal=True, called="segment_reduce", node="SegmentReduceBackward0", out="segments",
    batch="decompose", jvp="decompose", reference="_segments(x, y, axis, reduce, start, given)",
    doc="Reductions of the pieces of a dim that begin and end at the offsets.")

nondifferentiable(
    f"segments_slope(g, data, out: Index, offsets: Index, {_PIECES})", types=REAL, promote="none",
    kernel="segments_slope", layout="contiguous", internal=True, called="segment_reduce", out="as_input(data)",
    batch="decompose", reference="_segments_slope(x, data, out, offsets, axis, reduce, start, given)",
    doc="The gradient of the data for a backward that is not recorded.")

composite("segment_reduce(data, reduce: Obj, *, lengths: Obj = None, indices: Obj = None, offsets: Obj = None, "
          "axis=0, unsafe=False, initial: OptFloat = None)", method=False,
          reference="_segment_reduce(data, reduce, lengths, axis)",
          doc="""Sums, means, products or extremes of consecutive pieces of a dim.

Parameters
----------
data : Tensor
    Of a floating-point dtype.
reduce : {"sum", "mean", "max", "min", "prod"}
lengths : Tensor, optional
    How long the pieces are; its last dim is `axis`, the dims in front of it are those of data.
offsets : Tensor, optional
    In place of `lengths`: where the pieces begin, and where the last one ends.
axis : int
    The dim.
unsafe : bool
    Whether lengths that do not add up to the size of the dim are taken as they are.
initial : float, optional
    What each reduction begins with; pieces without elements have this value.

Examples
--------
>>> import ptcore
>>> ptcore.segment_reduce(ptcore.tensor([1., 2., 3.]), "sum", lengths=ptcore.tensor([2, 1]))
tensor([3., 3.])
""")
