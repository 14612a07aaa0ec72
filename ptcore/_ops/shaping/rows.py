"""Rows: joins, repeats, diagonals, triangles, turns: copies in another shape."""
from ptcore._ops.table.schema import composite, linear, made, structured

linear(
    "cat(tensors: Tensors, dim: Dim = 0)", kernel="cat", out="cat", keeps="channels_last",
    alias=("concat", "concatenate"), method=False, autocast="widest", reference="_cat(x, dim)", out_dtype="cast",
    doc="""Tensors one after another along ``dim``.

>>> import ptcore
>>> ptcore.cat([ptcore.tensor([1., 2.]), ptcore.tensor([3.])])
tensor([1., 2., 3.])
""")

linear(
    "flip(input, dims: DimList)", kernel="flip", out="as_input", vjp=["flip(g, dims)"],
    varargs="dims", reference="flip(x, axis=dims)",
    doc="""Reversed along ``dims``, as a copy.

>>> import ptcore
>>> ptcore.flip(ptcore.tensor([1, 2, 3]), (0,))
tensor([3, 2, 1])
""")

for _name, _text in (("tril", "Lower"), ("triu", "Upper")):
    linear(
        f"{_name}(input, diagonal=0)", kernel=_name,
        out="matrices",
        vjp=[f"{_name}(g, diagonal)"], reference=f"{_name}(x, diagonal)",
        inplace=True,
        doc=f"""{_text} triangle of matrices; zero elsewhere.

>>> import ptcore
>>> ptcore.{_name}(ptcore.ones(2, 2)).sum()
tensor(3.)
""")

composite(
    "stack(tensors: Obj, dim=0)", out_argument="inside",
    method=False, autocast="widest", reference="stack(x, axis=dim)", out_dtype="cast",
    doc="""Tensors of one shape along a new dim.

>>> import ptcore
>>> ptcore.stack([ptcore.tensor([1, 2]), ptcore.tensor([3, 4])], dim=1)
tensor([[1, 3],
        [2, 4]])
""")

# -- repeats and turns --------------------------------------------------------------------------
made("repeat(input, repeats: Obj)", "tile(x, repeats)",
     "The tensor repeated along each dim, new dims in front; a copy.",
     "ptcore.tensor([1, 2]).repeat(2, 2)", "tensor([[1, 2, 1, 2],\n        [1, 2, 1, 2]])", varargs="repeats",
     public=[])

made("tile(input, dims: Obj)", "tile(x, dims)",
     "The tensor repeated along its last dims, or along new ones in front, as ``numpy.tile``.",
     "ptcore.tile(ptcore.tensor([[1, 2]]), (2,))", "tensor([[1, 2, 1, 2]])", varargs="dims")

made("repeat_interleave(input, repeats: Obj = None, dim: Obj = None, *, output_size: Obj = None)",
     "_repeat_interleave(x, repeats, dim)",
     """Each slice along ``dim`` several times in a row, a number or one number each; of the flattened tensor if
``dim`` is None. Without ``repeats``, ``input`` holds the numbers and the result the positions.""",
     "ptcore.repeat_interleave(ptcore.tensor([1, 2]), ptcore.tensor([1, 2]))", "tensor([1, 2, 2])")

made("roll(input, shifts: Obj, dims: Obj = None)", "roll(x, shifts, dims)",
     "Elements shifted along ``dims``, coming in again at the other end; the flattened tensor if ``dims`` is None.",
     "ptcore.roll(ptcore.tensor([1, 2, 3]), 1)", "tensor([3, 1, 2])")

made("rot90(input, k=1, dims: Obj = (0, 1))", "rot90(x, k, dims)",
     "Turned by ``k`` quarters in the plane of two dims, from the first towards the second.",
     "ptcore.rot90(ptcore.tensor([[1, 2], [3, 4]]))", "tensor([[2, 4],\n        [1, 3]])")

made("fliplr(input)", "fliplr(x)", "Dim 1 reversed, as a copy.",
     "ptcore.fliplr(ptcore.tensor([[1, 2]]))", "tensor([[2, 1]])")

made("flipud(input)", "flipud(x)", "Dim 0 reversed, as a copy.",
     "ptcore.flipud(ptcore.tensor([1, 2]))", "tensor([2, 1])")

# -- joins --------------------------------------------------------------------------------------
for _name, _text, _example, _result in (
        ("hstack", "Tensors side by side: along dim 1, vectors along dim 0.",
         "([ptcore.tensor([1]), ptcore.tensor([2])])", "tensor([1, 2])"),
        ("vstack", "Tensors below each other, vectors as rows.", "([ptcore.tensor([1]), ptcore.tensor([2])])",
         "tensor([[1],\n        [2]])"),
        ("dstack", "Tensors along dim 2, which smaller ones get.", "([ptcore.tensor([1]), ptcore.tensor([2])])",
         "tensor([[[1, 2]]])"),
        ("column_stack", "Tensors along dim 1, vectors as columns.", "([ptcore.tensor([1]), ptcore.tensor([2])])",
         "tensor([[1, 2]])")):
    made(f"{_name}(tensors: Obj)", f"{_name}(x)", _text, f"ptcore.{_name}{_example}", _result, out_argument="inside",
         method=False, alias=("row_stack",) if _name == "vstack" else (), autocast="widest", out_dtype="cast")

for _k in (1, 2, 3):
    made(f"atleast_{_k}d(tensors: Tensors)", f"_at_least(atleast_{_k}d, x)",
         f"Tensors with dims of size 1 added until they have {_k}; one tensor gives one, several a tuple.",
         f"ptcore.atleast_{_k}d(ptcore.tensor(1)).ndim", str(_k), method=False, varargs="tensors",
         returns="Tensor | tuple[Tensor, ...]")

made("block_diag(tensors: Tensors)", "_block_diag(x)", "A matrix with the tensors as blocks on its diagonal.",
     "ptcore.block_diag(ptcore.ones(1, 1), ptcore.tensor([[2.]]))", "tensor([[1., 0.],\n        [0., 2.]])",
     method=False, varargs="tensors", autocast="widest")

made("broadcast_tensors(tensors: Tensors)", "broadcast_arrays(*x)", "Views of the tensors in their common shape.",
     "ptcore.broadcast_tensors(ptcore.ones(2, 1), ptcore.ones(3))[1].shape", "ptcore.Size([2, 3])", method=False,
     varargs="tensors", returns="tuple[Tensor, ...]")

made("meshgrid(tensors: Tensors, *, indexing: Obj = None)", "_meshgrid(x, indexing)",
     """Coordinates of the points of a grid, one tensor for each axis: rows first (``indexing="ij"``, the
default) or columns first (``"xy"``).""",
     'ptcore.meshgrid(ptcore.tensor([1, 2]), ptcore.tensor([3]), indexing="ij")[0]', "tensor([[1],\n        [2]])",
     method=False, varargs="tensors", returns="tuple[Tensor, ...]")

made("cartesian_prod(tensors: Tensors)", "_cartesian_prod(x)", "All choices of one element from each vector, as rows.",
     "ptcore.cartesian_prod(ptcore.tensor([1, 2]), ptcore.tensor([3]))", "tensor([[1, 3],\n        [2, 3]])",
     method=False, varargs="tensors")

made("combinations(input, r=2, with_replacement=False)", "_combinations(x, r, with_replacement)",
     "The choices of ``r`` elements of a vector, in order, as rows.",
     "ptcore.combinations(ptcore.tensor([1, 2, 3])).shape", "ptcore.Size([3, 2])")

# -- diagonals and triangles ----------------------------------------------------------------------
made("diag(input, diagonal=0)", "diag(x, diagonal)",
     "The diagonal of a matrix, or the matrix with a vector as its diagonal.",
     "ptcore.diag(ptcore.tensor([1, 2]))", "tensor([[1, 0],\n        [0, 2]])", out_argument=True)

made("diagflat(input, offset=0)", "diagflat(x, offset)", "The matrix with the flattened elements as its diagonal.",
     "ptcore.diagflat(ptcore.tensor([1, 2]))", "tensor([[1, 0],\n        [0, 2]])")

made("diag_embed(input, offset=0, dim1=-2, dim2=-1)", "_diag_embed(x, offset, dim1, dim2)",
     "Matrices in the dims ``dim1`` and ``dim2`` with the vectors of the last dim as their diagonals.",
     "ptcore.diag_embed(ptcore.ones(3, 2)).shape", "ptcore.Size([3, 2, 2])")

made("trace(input)", "trace(x)", "Sum of a matrix' diagonal.", "ptcore.trace(ptcore.ones(2, 3))", "tensor(2.)",
     autocast="high")

for _name, _text in (("tril", "lower"), ("triu", "upper")):
    made(f"{_name}_indices(row: Int, col: Int, offset=0, *, dtype: DType = None, device: Obj = None, "
         "layout: Obj = None)",
         f"array({_name}_indices(row, offset, col))",
         f"Rows and columns of the {_text} triangle of a ``(row, col)`` matrix, as two rows.",
         f"ptcore.{_name}_indices(1, 1)", "tensor([[0],\n        [0]])", method=False)

made("one_hot(input, num_classes=-1)", "_one_hot(x, num_classes)",
     "int64 vectors with a 1 at each class and 0 elsewhere; ``num_classes`` is the largest class + 1 unless given.",
     "ptcore.nn.functional.one_hot(ptcore.tensor([0, 1]))", "tensor([[1, 0],\n        [0, 1]])",
     public=["nn.functional.one_hot"], method=False)

made("select_scatter(input, src, dim: Int, index: Int)", "_select_scatter(x, y, dim, index)",
     "A copy of ``input`` with ``src`` in the place of one slice.",
     "ptcore.select_scatter(ptcore.zeros(2), ptcore.tensor(5.), 0, 1)", "tensor([0., 5.])")

made("slice_scatter(input, src, dim=0, start: Obj = None, end: Obj = None, step=1)",
     "_slice_scatter(x, y, dim, start, end, step)",
     "A copy of ``input`` with ``src`` in the place of a slice of a dim.",
     "ptcore.slice_scatter(ptcore.zeros(3), ptcore.ones(2), 0, 1)", "tensor([0., 1., 1.])", out_argument=True)

made("diagonal_scatter(input, src, offset=0, dim1=0, dim2=1)", "_diagonal_scatter(x, y, offset, dim1, dim2)",
     "A copy of ``input`` with ``src`` in the place of a diagonal.",
     "ptcore.diagonal_scatter(ptcore.zeros(2, 2), ptcore.ones(2))", "tensor([[1., 0.],\n        [0., 1.]])")

made("as_strided_scatter(input, src, size: Sizes, stride: Sizes, storage_offset: OptInt = None)",
     "_as_strided_scatter(x, y, size, stride, storage_offset)",
     "A copy of ``input`` with ``src`` in the place of the elements that :func:`ptcore.as_strided` names.",
     "ptcore.as_strided_scatter(ptcore.zeros(3), ptcore.ones(2), (2,), (2,))", "tensor([1., 0., 1.])")

# -- complex numbers -------------------------------------------------------------------------------
structured(
    "complex_pair(real, imag)", types=("float32", "float64"), kernel="complex_pair", internal=True, called="complex",
    node="ComplexBackward0", out="complex_pair", vjp=["real(g)", "imag(g)"],
    batch="decompose", jvp="decompose", reference="x + 1j * y",
    doc="Complex numbers from parts of one shape and dtype, float32 or float64.")

made("complex_of(real, imag)", "x + 1j * y", "Complex numbers from their real and imaginary parts.",
     "ptcore.complex(ptcore.tensor([1.]), ptcore.tensor([2.]))", "tensor([1.+2.j])", public=["complex"],
     called="complex", method=False,
     out_argument=True)

made("polar(abs, angle)", "x * exp(1j * y)", "Complex numbers from their magnitude and angle.",
     "ptcore.polar(ptcore.tensor([2.]), ptcore.tensor([0.]))", "tensor([2.+0.j])", method=False, out_argument=True,
     autocast=("high", None))
