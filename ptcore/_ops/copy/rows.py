"""Rows: copies and casts."""
from ptcore._ops.table.schema import linear

linear(
    "to_dtype(input, dtype: DType)", node="ToCopyBackward0", kernel="copy", internal=True, called="to", promote="first",
    out="laid_cast", vjp=["to_dtype(g, x.dtype)"], batch="whole", reference="x.astype(dtype)",
    doc="The values in another dtype.")

linear(
    "to_device(input, device: Obj, non_blocking=False)", internal=True, called="to", promote="first",
    out="moved", vjp=["to_device(g, x.device)"], batch="whole", reference="x",
    doc="The values on another device.")

linear(
    "clone(input, *, memory_format: Obj = None)", kernel="copy", out="as_laid", vjp=["g"], batch="whole",
    reference="x + 0", out_argument=False, select={"memory_format": "methods.clone_as"},
    doc="""A copy with its own memory; gradients flow through it. Its strides are those of the tensor if that
is dense, else row-major, or what a memory format says.

>>> import ptcore
>>> x = ptcore.tensor([1., 2.])
>>> ptcore.clone(x).data_ptr() == x.data_ptr()
False
""")

linear(
    "row_major(input)", node="CloneBackward0", internal=True, called="contiguous", kernel="copy", out="as_input",
    vjp=["g"], batch="whole", reference="x + 0", out_argument=False,
    doc="A copy in row-major order.")
