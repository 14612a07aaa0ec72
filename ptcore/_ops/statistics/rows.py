"""Rows: order statistics, counts, differences and integrals."""
from ptcore._ops.table.schema import INTEGRAL, REAL, made, nondifferentiable

nondifferentiable(
    'binned(input, edges: Index, weight: OptIndex, bins: Ints, places: "searched|even|computed")', types=REAL,
    promote="none", kernel="binned", internal=True, called="histogram", out="sized(input, bins)",
    batch="refused: the counts of samples are those of one more coordinate",
    reference="_binned(x, edges, weight, bins, places)",
    doc="""Sums of weights, or counts, of rows of coordinates in boxes. ``edges`` has those of each coordinate one after
the other; even ones are found by a guess; of places that are computed it has the first and the last alone.""")

nondifferentiable(
    "counted(input, weight: OptIndex, bins: Int)", types=INTEGRAL, promote="none", kernel="counted", internal=True,
    called="bincount", out="tallied",
    batch="refused: the counts of samples are those of one more coordinate",
    reference="bincount(x.astype(int), weight, bins)[:bins]",
    doc="How often each integer from 0 to ``bins`` - 1 occurs, or the sum of the weights that stand beside it.")

made("cov(input, *, correction=1, fweights: Obj = None, aweights: Obj = None)", "cov(x, ddof=correction)",
     """Covariances of variables (rows) over observations (columns), which may have counts ``fweights`` and weights
``aweights``.""", "ptcore.cov(ptcore.tensor([[0., 2.], [2., 0.]]))",
     "tensor([[ 2., -2.],\n        [-2.,  2.]])")

made("corrcoef(input)", "corrcoef(x)", "Correlation coefficients of variables (rows) over observations (columns).",
     "ptcore.corrcoef(ptcore.tensor([[0., 2.], [2., 0.]])).shape", "ptcore.Size([2, 2])")

for _name, _text in (("quantile", "Quantiles of all elements, or along ``dim``; NaN where there is one."),
                     ("nanquantile", "Quantiles of the elements that are not NaN, of all or along ``dim``.")):
    made(f'{_name}(input, q: Obj, dim: Obj = None, keepdim=False, *, interpolation: Obj = "linear")',
         f"{_name}(x, q, axis=dim, keepdims=keepdim, method=interpolation)",
         f"{_text}\n\n``q``, in [0, 1], is a number or a vector, which adds a first dim.",
         f"ptcore.{_name}(ptcore.tensor([1., 2., 4.]), 0.75)", "tensor(3.)", out_argument=True, autocast=("high", None))

made("bincount(input, weights: Obj = None, minlength=0)", "bincount(x, weights, minlength)",
     "How often each non-negative integer occurs, or the sum of the weights that stand beside it.",
     "ptcore.bincount(ptcore.tensor([0, 2, 2]))", "tensor([1, 0, 2])")

made("histc(input, bins=100, min: Scalar = 0, max: Scalar = 0)",
     "histogram(x, bins, (min, max) if min != max else None)[0]",
     "Counts in ``bins`` equal intervals of [min, max]; of the elements' range if both are equal.",
     "ptcore.histc(ptcore.tensor([0., 1., 2.]), bins=2)", "tensor([1., 2.])", out_argument=True)

# -- differences and integrals ----------------------------------------------------------------------
made("diff(input, n=1, dim=-1, prepend: Obj = None, append: Obj = None)", "diff(x, n, dim)",
     "Differences of neighbours along ``dim``, ``n`` times; ``prepend`` and ``append`` are joined on first.",
     "ptcore.diff(ptcore.tensor([1, 3, 2]))", "tensor([ 2, -1])", out_argument=True, out_dtype="cast", wide=True)

made("trapezoid(y, x: Obj = None, *, dx: Obj = None, dim=-1)", "_trapezoid",
     "Integral along ``dim`` by the trapezoidal rule, with steps ``dx`` (1) or at the places ``x``.",
     "ptcore.trapezoid(ptcore.tensor([1., 3.]))", "tensor(2.)", method=False, alias=("trapz",))

made("cumulative_trapezoid(y, x: Obj = None, *, dx: Obj = None, dim=-1)", "_cumulative_trapezoid",
     "Running integral along ``dim`` by the trapezoidal rule.",
     "ptcore.cumulative_trapezoid(ptcore.tensor([1., 3., 3.]))", "tensor([2., 5.])", method=False)

# -- sets, counts and slopes -------------------------------------------------------------------------
made("isin(elements: Obj, test_elements: Obj, *, assume_unique=False, invert=False)",
     "isin(elements, test_elements, invert=invert)",
     "Whether each element is among the test elements, or is not if ``invert``.",
     "ptcore.isin(ptcore.tensor([1, 2]), ptcore.tensor([2, 3]))", "tensor([False,  True])", method=False,
     out_argument=True)

made("gradient(input, *, spacing: Obj = 1, dim: Obj = None, edge_order=1)",
     "_gradient(x, spacing, dim, edge_order)",
     """Slopes along each dim in ``dim`` (all if None) by central differences, one-sided at the ends; ``spacing`` is a
distance or one for each dim, or coordinates for each dim.""",
     "ptcore.gradient(ptcore.tensor([1., 2., 4.]))", "(tensor([1.0000, 1.5000, 2.0000]),)", method=False,
     returns="tuple[Tensor, ...]")

made("histogram(input, bins: Obj, *, range: Obj = None, weight: Obj = None, density=False)",
     "_histogram(x, bins, range, density)",
     """Counts (or sums of weights) of elements in bins, as floats, and the bins' edges; ``bins`` is their number or
their edges. With ``density`` the area is 1. There is no derivative.""",
     "ptcore.histogram(ptcore.tensor([1., 2., 2.]), 2).hist", "tensor([1., 2.])", returns="tuple[Tensor, Tensor]",
     out_argument=True)

made("histogramdd(input, bins: Obj, *, range: Obj = None, weight: Obj = None, density=False)",
     "_histogramdd(x, bins, range, density)",
     "As :func:`ptcore.histogram`, of rows of coordinates, with a tuple of edges for each coordinate.",
     "ptcore.histogramdd(ptcore.tensor([[0., 1.], [1., 0.]]), [2, 2]).hist", "tensor([[0., 1.],\n        [1., 0.]])",
     method=False, returns="tuple[Tensor, tuple[Tensor, ...]]")

made("unravel_index(indices, shape: Obj)", "unravel_index(x, shape)",
     "The coordinates, one tensor for each dim, of positions in a flattened tensor of this shape.",
     "ptcore.unravel_index(ptcore.tensor([4]), (2, 3))", "(tensor([1]), tensor([1]))", method=False,
     returns="tuple[Tensor, ...]")
