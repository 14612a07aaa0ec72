"""Rows: cumulative operations along a dim."""
from ptcore._ops._schema import linear, structured, uniform

linear(
    "cumsum(input, dim: Dim, *, dtype: DType = None)", kernel="cumsum", promote="dtype",
    out="like(input, summed_dtype(input, dtype))", vjp=["flip(cumsum(flip(g, (dim,)), dim), (dim,))"],
    autocast="high", reference="cumsum(x, axis=dim)",
    inplace=True,
    doc="""Running sum along ``dim``.

>>> import ptcore
>>> ptcore.cumsum(ptcore.tensor([1., 2., 3.]), 0)
tensor([1., 3., 6.])
""")

structured(
    "cumprod(input, dim: Dim, *, dtype: DType = None)", kernel="cumprod", promote="dtype",
    out="like(input, summed_dtype(input, dtype))", inplace=True, sample=uniform(0.5, 2),
    jvp="rule", autocast="high", reference="cumprod(x, axis=dim)",
    doc="""Running product along ``dim``.

>>> import ptcore
>>> ptcore.cumprod(ptcore.tensor([1., 2., 3.]), 0)
tensor([1., 2., 6.])
""")
