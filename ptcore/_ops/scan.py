"""Rows: cumulative operations along a dim."""
from ptcore._ops._schema import linear

linear(
    "cumsum(input, dim: Dim, *, dtype: DType = None)", kernel="cumsum", promote="dtype",
    out="like(input, summed_dtype(input, dtype))", vjp=["flip(cumsum(flip(g, (dim,)), dim), (dim,))"],
    reference="cumsum(x, axis=dim)",
    doc="""Running sum along ``dim``.

>>> import ptcore
>>> ptcore.cumsum(ptcore.tensor([1., 2., 3.]), 0)
tensor([1., 3., 6.])
""")
