"""Rows: moments, order statistics, counts, differences, and numbers in place of others; functions of other ops."""
from ptcore._ops._schema import composite


def _row(signature, reference, text, example, result, **columns):
    composite(signature, reference=reference, doc=f"""{text}

>>> import ptcore
>>> {example}
{result}
""", **columns)


# -- moments ------------------------------------------------------------------------------------

for _name, _text, _values in (("std_mean", "Standard deviation", "(tensor(1.4142), tensor(2.))"),
                              ("var_mean", "Variance", "(tensor(2.), tensor(2.))")):
    _row(f"{_name}(input, dim: Obj = None, unbiased: Obj = None, keepdim=False, *, correction: Obj = None)",
         f"_{_name}(x, dim, correction)",
         f"{_text} and mean over ``dim`` (all dims if None); the divisor is ``n - correction``, with 1 unless given.",
         f"ptcore.{_name}(ptcore.tensor([1., 3.]))", _values, method=False, returns="tuple[Tensor, Tensor]")
_row("nansum(input, dim: Obj = None, keepdim=False, *, dtype: DType = None)", "nansum(x, axis=dim, keepdims=keepdim)",
     "Sum over ``dim`` (all dims if None) of the elements that are not NaN.",
     "ptcore.nansum(ptcore.tensor([1., float('nan')]))", "tensor(1.)", out_argument=True, autocast="high")
_row("nanmean(input, dim: Obj = None, keepdim=False, *, dtype: DType = None)", "nanmean(x, axis=dim, keepdims=keepdim)",
     "Mean over ``dim`` (all dims if None) of the elements that are not NaN.",
     "ptcore.nanmean(ptcore.tensor([1., float('nan')]))", "tensor(1.)", out_argument=True, autocast="high")
_row("cov(input, *, correction=1, fweights: Obj = None, aweights: Obj = None)", "cov(x, ddof=correction)",
     """Covariances of variables (rows) over observations (columns), which may have counts ``fweights`` and weights
``aweights``.""", "ptcore.cov(ptcore.tensor([[0., 2.], [2., 0.]]))",
     "tensor([[ 2., -2.],\n        [-2.,  2.]])")
_row("corrcoef(input)", "corrcoef(x)", "Correlation coefficients of variables (rows) over observations (columns).",
     "ptcore.corrcoef(ptcore.tensor([[0., 2.], [2., 0.]])).shape", "ptcore.Size([2, 2])")

# -- order --------------------------------------------------------------------------------------

_row("aminmax(input, *, dim: Obj = None, keepdim=False)", "_aminmax(x, dim, keepdim)",
     "The smallest and the largest value along ``dim``, or of all elements; equal ones share the gradient.",
     "ptcore.aminmax(ptcore.tensor([3, 1, 2])).max", "tensor(3)", out_argument=True, returns="tuple[Tensor, Tensor]")
_row("msort(input)", "sort(x, axis=0) if x.ndim else x", "Sorted along dim 0.",
     "ptcore.msort(ptcore.tensor([3, 1, 2]))", "tensor([1, 2, 3])", out_argument=True)
_row("kthvalue(input, k: Int, dim=-1, keepdim=False)", "_kthvalue(x, k, dim, keepdim)",
     "The ``k``-th smallest value along ``dim``, counted from 1, and where it was.",
     "ptcore.kthvalue(ptcore.tensor([3, 1, 2]), 1).indices", "tensor(1)", out_argument=True,
     returns="tuple[Tensor, Tensor]")
for _name, _text in (("median", "The lower median of all elements, or along ``dim`` with where it was. NaN wins."),
                     ("nanmedian",
                      "The lower median of the elements that are not NaN, or along ``dim`` with where it was.")):
    _row(f"{_name}(input, dim: Obj = None, keepdim=False)", f"_{_name}(x, dim, keepdim)", _text,
         f"ptcore.{_name}(ptcore.tensor([3., 1., 2., 4.]))", "tensor(2.)", out_argument=True)
_row("mode(input, dim=-1, keepdim=False)", "_mode(x, dim, keepdim)",
     "The most frequent value along ``dim``, the smallest of equally frequent ones, and where it was last.",
     "ptcore.mode(ptcore.tensor([3, 1, 3])).values", "tensor(3)", out_argument=True, returns="tuple[Tensor, Tensor]")
for _name, _text in (("quantile", "Quantiles of all elements, or along ``dim``; NaN where there is one."),
                     ("nanquantile", "Quantiles of the elements that are not NaN, of all or along ``dim``.")):
    _row(f'{_name}(input, q: Obj, dim: Obj = None, keepdim=False, *, interpolation: Obj = "linear")',
         f"{_name}(x, q, axis=dim, keepdims=keepdim, method=interpolation)",
         f"{_text}\n\n``q``, in [0, 1], is a number or a vector, which adds a first dim.",
         f"ptcore.{_name}(ptcore.tensor([1., 2., 4.]), 0.75)", "tensor(3.)", out_argument=True)

# -- values that occur ----------------------------------------------------------------------------

_row("unique(input, sorted=True, return_inverse=False, return_counts=False, dim: Obj = None)",
     "_unique(x, return_inverse, return_counts, dim)",
     """The different elements in rising order, or the different slices along ``dim``; with ``return_inverse`` also
where each element went, with ``return_counts`` how often each came.""",
     "ptcore.unique(ptcore.tensor([3, 1, 3]))", "tensor([1, 3])", returns="Tensor | tuple[Tensor, ...]")
_row("unique_consecutive(input, return_inverse=False, return_counts=False, dim: Obj = None)",
     "_unique_consecutive(x)",
     "Of equal neighbours the first; ``return_inverse`` and ``return_counts`` as for unique.",
     "ptcore.unique_consecutive(ptcore.tensor([3, 3, 1, 3]))", "tensor([3, 1, 3])",
     returns="Tensor | tuple[Tensor, ...]")
_row("bincount(input, weights: Obj = None, minlength=0)", "bincount(x, weights, minlength)",
     "How often each non-negative integer occurs, or the sum of the weights that stand beside it.",
     "ptcore.bincount(ptcore.tensor([0, 2, 2]))", "tensor([1, 0, 2])")
_row("histc(input, bins=100, min: Scalar = 0, max: Scalar = 0)",
     "histogram(x, bins, (min, max) if min != max else None)[0]",
     "Counts in ``bins`` equal intervals of [min, max]; of the elements' range if both are equal.",
     "ptcore.histc(ptcore.tensor([0., 1., 2.]), bins=2)", "tensor([1., 2.])", out_argument=True)

# -- differences and integrals ----------------------------------------------------------------------

_row("diff(input, n=1, dim=-1, prepend: Obj = None, append: Obj = None)", "diff(x, n, dim)",
     "Differences of neighbours along ``dim``, ``n`` times; ``prepend`` and ``append`` are joined on first.",
     "ptcore.diff(ptcore.tensor([1, 3, 2]))", "tensor([ 2, -1])", out_argument=True)
_row("trapezoid(y, x: Obj = None, *, dx: Obj = None, dim=-1)", "_trapezoid",
     "Integral along ``dim`` by the trapezoidal rule, with steps ``dx`` (1) or at the places ``x``.",
     "ptcore.trapezoid(ptcore.tensor([1., 3.]))", "tensor(2.)", method=False, alias=("trapz",))
_row("cumulative_trapezoid(y, x: Obj = None, *, dx: Obj = None, dim=-1)", "_cumulative_trapezoid",
     "Running integral along ``dim`` by the trapezoidal rule.",
     "ptcore.cumulative_trapezoid(ptcore.tensor([1., 3., 3.]))", "tensor([2., 5.])", method=False)

# -- numbers ----------------------------------------------------------------------------------------

_row("nan_to_num(input, nan: Obj = None, posinf: Obj = None, neginf: Obj = None)",
     "nan_to_num(x, True, nan or 0.0, posinf, neginf)",
     "Numbers in the place of NaN (0) and the infinities (the dtype's largest and lowest).",
     "ptcore.nan_to_num(ptcore.tensor([float('nan'), 1.]))", "tensor([0., 1.])", out_argument="inside", inplace=True)
_row("logit(input, eps: Obj = None)", "special.logit(x if eps is None else clip(x, eps, 1 - eps))",
     "``log(input / (1 - input))``, of elements first limited to [eps, 1 - eps].",
     "ptcore.logit(ptcore.tensor([0.5]))", "tensor([0.])", out_argument=True, inplace=True)
_row("polygamma_function(n: Int, input)", "special.polygamma(n, input)", "The ``n``-th derivative of digamma.",
     "ptcore.polygamma(1, ptcore.tensor([1.]))", "tensor([1.6449])", public=["polygamma"],
     called="polygamma", method=False,
     out_argument=True)
_row("ldexp(input, other: Obj)", "ldexp(x, other)", "``input * 2**other``.",
     "ptcore.ldexp(ptcore.tensor([3.]), ptcore.tensor([2]))", "tensor([12.])", out_argument=True, inplace=True)
_row("frexp(input)", "_frexp(x)",
     "``mantissa`` in [0.5, 1) and int32 ``exponent`` with ``input = mantissa * 2**exponent``.",
     "ptcore.frexp(ptcore.tensor([3.])).exponent", "tensor([2], dtype=ptcore.int32)", out_argument=True,
     returns="tuple[Tensor, Tensor]")
_row("float_power(input: Obj, exponent: Obj)", "power(input * 1.0, exponent)",
     "Power in float64 (complex128 for complex arguments); negative exponents of integers are fractions.",
     "ptcore.float_power(ptcore.tensor([2]), -1)", "tensor([0.5000], dtype=ptcore.float64)", out_argument=True)
_row("rsub(input, other: Obj, *, alpha: Scalar = 1)", "other - alpha * x", "``other - alpha * input``.",
     "ptcore.rsub(ptcore.tensor([1.]), 3)", "tensor([2.])")
_row("positive(input)", "x", "The tensor itself, unless it is bool.", "ptcore.positive(ptcore.tensor([-1.]))",
     "tensor([-1.])")
_row("isreal(input)", "isreal(x)", "Whether each element has no imaginary part.",
     "ptcore.isreal(ptcore.tensor([1.]))", "tensor([True])")

# -- special functions ------------------------------------------------------------------------------

_row("mvlgamma(input, p: Int)", "special.multigammaln(x, p)",
     "Logarithm of the multivariate gamma function of dimension ``p``, element by element.",
     "ptcore.mvlgamma(ptcore.tensor([2.]), 1)", "tensor([0.])", public=["mvlgamma", "special.multigammaln"],
     out_argument=True, inplace=True)
_row("special_ndtr(input)", "special.ndtr(x)", "The area below the normal density from -inf to x.",
     "ptcore.special.ndtr(ptcore.tensor([0., 1.]))", "tensor([0.5000, 0.8413])", public=["special.ndtr"],
     called="special.ndtr", method=False, out_argument=True, autocast="high")
_row("special_xlog1py(input, other)", "special.xlog1py(x, y)", "``input * log1p(other)``, and 0 where input is 0.",
     "ptcore.special.xlog1py(ptcore.tensor([0., 1.]), ptcore.tensor([-1., 0.]))", "tensor([0., 0.])",
     public=["special.xlog1py"], called="special.xlog1py", method=False, out_argument=True)

# -- sets, counts and slopes -------------------------------------------------------------------------

_row("isin(elements: Obj, test_elements: Obj, *, assume_unique=False, invert=False)",
     "isin(elements, test_elements, invert=invert)",
     "Whether each element is among the test elements, or is not if ``invert``.",
     "ptcore.isin(ptcore.tensor([1, 2]), ptcore.tensor([2, 3]))", "tensor([False,  True])", method=False,
     out_argument=True)
_row("gradient(input, *, spacing: Obj = 1, dim: Obj = None, edge_order=1)",
     "_gradient(x, spacing, dim, edge_order)",
     """Slopes along each dim in ``dim`` (all if None) by central differences, one-sided at the ends; ``spacing`` is a
distance or one for each dim, or coordinates for each dim.""",
     "ptcore.gradient(ptcore.tensor([1., 2., 4.]))", "(tensor([1.0000, 1.5000, 2.0000]),)", method=False,
     returns="tuple[Tensor, ...]")
_row("histogram(input, bins: Obj, *, range: Obj = None, weight: Obj = None, density=False)",
     "_histogram(x, bins, range, density)",
     """Counts (or sums of weights) of elements in bins, as floats, and the bins' edges; ``bins`` is their number or
their edges. With ``density`` the area is 1. There is no derivative.""",
     "ptcore.histogram(ptcore.tensor([1., 2., 2.]), 2).hist", "tensor([1., 2.])", returns="tuple[Tensor, Tensor]",
     out_argument=True)
_row("histogramdd(input, bins: Obj, *, range: Obj = None, weight: Obj = None, density=False)",
     "_histogramdd(x, bins, range, density)",
     "As :func:`ptcore.histogram`, of rows of coordinates, with a tuple of edges for each coordinate.",
     "ptcore.histogramdd(ptcore.tensor([[0., 1.], [1., 0.]]), [2, 2]).hist", "tensor([[0., 1.],\n        [1., 0.]])",
     method=False, returns="tuple[Tensor, tuple[Tensor, ...]]")
_row("unravel_index(indices, shape: Obj)", "unravel_index(x, shape)",
     "The coordinates, one tensor for each dim, of positions in a flattened tensor of this shape.",
     "ptcore.unravel_index(ptcore.tensor([4]), (2, 3))", "(tensor([1]), tensor([1]))", method=False,
     returns="tuple[Tensor, ...]")
