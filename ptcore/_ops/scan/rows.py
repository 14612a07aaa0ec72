"""Rows: cumulative operations along a dim."""
from ptcore._ops.table.schema import COMPLEX, FLOATING, ORDERED, REAL, linear, nondifferentiable, structured, uniform

linear(
    "cumsum(input, dim: Dim, *, dtype: DType = None)", kernel="cumsum", promote="dtype",
    out="summed", vjp=["flip(cumsum(flip(g, (dim,)), dim), (dim,))"],
    autocast=(None, "high"), reference="cumsum(x, axis=dim)",
    inplace=True, out_dtype="own",
    doc="""Running sum along ``dim``.

>>> import ptcore
>>> ptcore.cumsum(ptcore.tensor([1., 2., 3.]), 0)
tensor([1., 3., 6.])
""")

structured(
    "cumprod(input, dim: Dim, *, dtype: DType = None)", kernel="cumprod", promote="dtype",
    out="summed", inplace=True, sample=uniform(0.5, 2),
    jvp="rule", autocast=(None, "high"), reference="cumprod(x, axis=dim)", out_dtype="own",
    doc="""Running product along ``dim``.

>>> import ptcore
>>> ptcore.cumprod(ptcore.tensor([1., 2., 3.]), 0)
tensor([1., 2., 6.])
""")

for _name, _text in (("cummax", "largest"), ("cummin", "smallest")):
    structured(
        f"{_name}(input, dim: Dim)", types=ORDERED, kernel=_name, fields=("values", "indices"),
        out="with_indices", jvp="rule", reference=f"_{_name}(x, dim)",
        doc=f"""The {_text} value so far along ``dim`` and where it is, the last of equals. NaN wins.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([2., 2.]), 0).indices
tensor([0, 1])
""")

structured(
    "logcumsumexp(input, dim: Dim)", types=FLOATING, kernel="logcumsumexp", out="as_input", jvp="rule",
    reference="_logcumsumexp(x, dim)",
    doc="""``log(cumsum(exp(input)))`` along ``dim``, without overflow.

>>> import ptcore
>>> ptcore.logcumsumexp(ptcore.tensor([0., 0.]), 0)
tensor([0.0000, 0.6931])
""")

nondifferentiable(
    "logcumsumexp_slope(g, input, dim: Dim)", types=REAL, promote="none", kernel="logcumsumexp_slope",
    layout="contiguous", internal=True, called="logcumsumexp", out="as_input(input)", batch="decompose",
    reference="_logcumsumexp_slope(x, y, dim)", doc="The gradient of the input of logcumsumexp.")

nondifferentiable(
    "products_slope(g, input, out, dim: Dim)", types=("float32", "float64", *COMPLEX), promote="none",
    kernel="products_slope", layout="contiguous", internal=True, called="cumprod", out="as_input(input)",
    batch="shift g input out", reference="_products_slope(x, y, dim)",
    doc="The gradient of the input of cumprod, or of prod along a dim if g and out have one element there.")
