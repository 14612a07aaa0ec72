"""Rows: copies, casts and the joining of tensors."""
from ptcore._ops.table.schema import linear

linear(
    "to_dtype(input, dtype: DType)", node="ToCopyBackward0", kernel="copy", internal=True, called="to", promote="first",
    out="laid_cast", vjp=["to_dtype(g, x.dtype)"], batch="whole", reference="x.astype(dtype)",
    doc="The values in another dtype.")

linear(
    "to_device(input, device: Obj, non_blocking=False)", internal=True, called="to", promote="first",
    out="like(input) + (device,)", vjp=["to_device(g, x.device)"], batch="whole", reference="x",
    doc="The values on another device.")

linear(
    "clone(input, *, memory_format: Obj = None)", kernel="copy", out="laid", vjp=["g"], batch="whole",
    reference="x + 0", out_argument=False, select={"memory_format": "_arguments.clone_as"},
    doc="""A copy with its own memory; gradients flow through it. Its strides are those of the tensor if that
is dense, else row-major, or what a memory format says.

>>> import ptcore
>>> x = ptcore.tensor([1., 2.])
>>> ptcore.clone(x).data_ptr() == x.data_ptr()
False
""")

linear(
    "row_major(input)", node="CloneBackward0", internal=True, called="contiguous", kernel="copy", out="like",
    vjp=["g"], batch="whole", reference="x + 0", out_argument=False,
    doc="A copy in row-major order.")

linear(
    "cat(tensors: Tensors, dim: Dim = 0)", kernel="cat", out="cat",
    alias=("concat", "concatenate"), method=False, autocast="widest", reference="_cat(x, dim)",
    doc="""Tensors one after another along ``dim``.

>>> import ptcore
>>> ptcore.cat([ptcore.tensor([1., 2.]), ptcore.tensor([3.])])
tensor([1., 2., 3.])
""")

linear(
    "flip(input, dims: Dims)", kernel="flip", out="like", vjp=["flip(g, dims)"],
    varargs="dims", reference="flip(x, axis=dims)",
    doc="""Reversed along ``dims``, as a copy.

>>> import ptcore
>>> ptcore.flip(ptcore.tensor([1, 2, 3]), (0,))
tensor([3, 2, 1])
""")

for _name, _text in (("tril", "Lower"), ("triu", "Upper")):
    linear(
        f"{_name}(input, diagonal=0)", kernel=_name,
        out="like_matrix",
        vjp=[f"{_name}(g, diagonal)"], reference=f"{_name}(x, diagonal)",
        inplace=True,
        doc=f"""{_text} triangle of matrices; zero elsewhere.

>>> import ptcore
>>> ptcore.{_name}(ptcore.ones(2, 2)).sum()
tensor(3.)
""")
