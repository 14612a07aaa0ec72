"""Rows: windows of a tensor's memory. The function of each row's name in views.pyx computes
sizes, strides and offset; the derivative is the inverse window."""
from ptcore._ops.table.schema import composite, made, view

view(
    "view(input, shape: Sizes)", vjp=["reshape(g, x.shape)"], varargs="shape", public=[],
    batch="sizes",
    reference="reshape(x, shape)",
    doc="""The same elements in another shape, without a copy; one size may be -1. Raises where
strides do not allow it (``reshape`` copies then).

>>> import ptcore
>>> ptcore.arange(4).view(2, -1)
tensor([[0, 1],
        [2, 3]])
""")

view(
    "reshape(input, shape: Sizes)", vjp=["reshape(g, x.shape)"], varargs="shape", batch="sizes",
    reference="reshape(x, shape)",
    doc="""The same elements in another shape: a view where strides allow, else a copy.

>>> import ptcore
>>> ptcore.reshape(ptcore.arange(4), (2, 2))
tensor([[0, 1],
        [2, 3]])
""")

view(
    "expand(input, size: Sizes)", vjp=["sum_to(g, x.shape)"], varargs="size", public=[],
    batch="sizes",
    reference="_expand(x, size)",
    doc="""Sizes of 1 repeated by strides of 0; -1 keeps a size.

>>> import ptcore
>>> ptcore.tensor([[1], [2]]).expand(-1, 2)
tensor([[1, 1],
        [2, 2]])
""")

view(
    "transpose(input, dim0: Dim, dim1: Dim)", vjp=["transpose(g, dim0, dim1)"],
    reference="swapaxes(x, dim0, dim1)", alias=("swapdims",), inplace=True,
    doc="""Two dims exchanged.

>>> import ptcore
>>> ptcore.transpose(ptcore.tensor([[1, 2]]), 0, 1)
tensor([[1],
        [2]])
""")

view(
    "t(input)", vjp=["t(g)"], batch="decompose", reference="transpose(x)", inplace=True,
    doc="""The transpose of a matrix; vectors and 0-d tensors as they are.

>>> import ptcore
>>> ptcore.t(ptcore.ones(2, 3)).shape
ptcore.Size([3, 2])
""")

view(
    "permute(input, dims: Sizes)", vjp=["permute(g, inverse_permutation(dims))"],
    varargs="dims", batch="permute", reference="transpose(x, dims)",
    doc="""The dims in another order.

>>> import ptcore
>>> ptcore.permute(ptcore.ones(2, 3, 4), (2, 0, 1)).shape
ptcore.Size([4, 2, 3])
""")

view(
    "squeeze(input, dim: Obj = None)", vjp=["reshape(g, x.shape)"], batch="squeeze",
    reference="_squeeze(x, dim)", inplace=True,
    doc="""Without its dims of size 1: all of them, or those named (others are left alone).

>>> import ptcore
>>> ptcore.squeeze(ptcore.ones(1, 2, 1)).shape
ptcore.Size([2])
""")

view(
    "unsqueeze(input, dim: NewDim)", vjp=["reshape(g, x.shape)"],
    reference="expand_dims(x, dim)", inplace=True,
    doc="""With a new dim of size 1 at position ``dim``.

>>> import ptcore
>>> ptcore.unsqueeze(ptcore.ones(2), 0).shape
ptcore.Size([1, 2])
""")

view(
    "select(input, dim: Dim, index: Int)", vjp=["select_backward(g, x.shape, dim, index)"],
    reference="take(x, index, axis=dim)",
    doc="""The slice at one index of a dim, which is dropped.

>>> import ptcore
>>> ptcore.select(ptcore.tensor([[1, 2], [3, 4]]), 1, 0)
tensor([1, 3])
""")

view(
    "unbind(input, dim: Dim = 0)", vjp=["unbind_backward(g, x.shape, dim)"], reference="_unbind(x, dim)",
    returns="tuple[Tensor, ...]",
    doc="""All slices along a dim, as views.

>>> import ptcore
>>> ptcore.unbind(ptcore.tensor([1, 2]))
(tensor(1), tensor(2))
""")

# PyTorch's node name tells which function was called. Parts that PyTorch makes one by one may be written to.
for _name, _node in (("split_evenly", "SplitBackward0"), ("split_by_sizes", "SplitWithSizesBackward0"),
                     ("split_by_slices", "SliceBackward0"), ("split_unsafely", "UnsafeSplitBackward0"),
                     ("split_by_sizes_unsafely", "UnsafeSplitWithSizesBackward0")):
    view(
        f"{_name}(input, sizes: Ints, dim: Dim)", internal=True, called="split", method=False, node=_node,
        vjp=["split_backward(g, x.shape, sizes, dim)"], reference="_split(x, sizes, dim)",
        returns="tuple[Tensor, ...]", doc="Consecutive stretches of a dim, of the sizes given, as views.")

view(
    "slice(input, dim: Dim, start: OptInt = None, end: OptInt = None, step: Int = 1)",
    internal=True, called="index", method=False, vjp=["slice_backward(g, x.shape, dim, start, end, step)"],
    reference="_slice(x, dim, start, end, step)",
    doc="Python's slice along one dim; a negative step reverses.")

view(
    "as_strided_of(input, size: Sizes, stride: Sizes, storage_offset: Int, input_stride: Obj, "
    "input_offset: Int)", internal=True, called="as_strided", method=False,
    vjp=["as_strided_backward(g, x.shape, size, stride, storage_offset, input_stride, "
         "input_offset)"],
    batch="strided", jvp="rule", inplace=True,
    reference="_as_strided(x, size, stride, storage_offset)",
    doc="A window of given sizes, strides and offset; the input's geometry is for the gradient.")

for _name, _rule, _text, _result in (
        ("real", "to_dtype(g, x.dtype)", "real", "1., 3."),
        ("imag", "to_dtype(g, x.dtype) * 1j", "imaginary", "2., 4.")):
    view(
        f"{_name}(input)", method=False, vjp=[_rule], batch="whole", reference=f"{_name}(x)",
        doc=f"""The {_text} parts of complex numbers, as a view{
            "; a real tensor itself" if _name == "real" else ""}.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1 + 2j, 3 + 4j]))
tensor([{_result}])
""")

view(
    "detach(input)", public=[], method=False, vjp=[None], jvp=None, batch="whole", reference="x",
    doc="""The same memory without history. Graphs have it as a node; programs call the method of methods.pyx.

>>> import ptcore
>>> ptcore.ones(1, requires_grad=True).detach().requires_grad
False
""")

view(
    "view_as_real(input)", method=False, vjp=["view_as_complex(row_major(g))"], batch="whole",
    reference="stack([x.real, x.imag], -1)",
    doc="""Complex numbers as pairs of reals in a new last dim, as a view.

>>> import ptcore
>>> ptcore.view_as_real(ptcore.tensor([1 + 2j]))
tensor([[1., 2.]])
""")

view(
    "view_as_complex(input)", method=False, vjp=["view_as_real(g)"], batch="whole",
    reference="x[..., 0] + 1j * x[..., 1]",
    doc="""Pairs of reals in the last dim as complex numbers, as a view.

>>> import ptcore
>>> ptcore.view_as_complex(ptcore.tensor([[1., 2.]]))
tensor([1.+2.j])
""")

view(
    "unfold(input, dimension: Dim, size: Int, step: Int)", public=[],
    vjp=["unfold_backward(g, x.shape, dimension, size, step)"], reference="_unfold(x, dimension, size, step)",
    doc="""All windows of ``size`` neighbours along a dim, ``step`` apart, as a view with the windows' dim last.

>>> import ptcore
>>> ptcore.arange(4).unfold(0, 2, 1)
tensor([[0, 1],
        [1, 2],
        [2, 3]])
""")

view(
    "diagonal(input, offset=0, dim1: Dim = 0, dim2: Dim = 1)",
    vjp=["diagonal_backward(g, x.shape, offset, dim1, dim2)"],
    reference="diagonal(x, offset, dim1, dim2)",
    doc="""The diagonal of two dims, as the last dim.

>>> import ptcore
>>> ptcore.diagonal(ptcore.tensor([[1, 2], [3, 4]]))
tensor([1, 4])
""")

composite(
    "flatten(input, start_dim=0, end_dim=-1)", reference="_flatten(x, start_dim, end_dim)",
    doc="""The dims from start_dim to end_dim made one.

>>> import ptcore
>>> ptcore.flatten(ptcore.ones(2, 3, 4), 1).shape
ptcore.Size([2, 12])
""")

composite(
    "unflatten(input, dim: Int, sizes: Obj)", reference="_unflatten(x, dim, sizes)",
    doc="""One dim split into several; one size may be -1.

>>> import ptcore
>>> ptcore.unflatten(ptcore.ones(2, 12), 1, (3, -1)).shape
ptcore.Size([2, 3, 4])
""")

composite(
    "movedim(input, source: Obj, destination: Obj)", alias=("moveaxis",),
    reference="moveaxis(x, source, destination)",
    doc="""Dims moved to other positions, the others keeping their order.

>>> import ptcore
>>> ptcore.movedim(ptcore.ones(2, 3, 4), 0, -1).shape
ptcore.Size([3, 4, 2])
""")

composite(
    "narrow(input, dim: Int, start: Obj, length: Int)", reference="_narrow(x, dim, start, length)",
    doc="""``length`` elements of ``dim`` from ``start`` on, as a view.

>>> import ptcore
>>> ptcore.narrow(ptcore.arange(5), 0, 1, 2)
tensor([1, 2])
""")

composite(
    "split(tensor, split_size_or_sections: Obj, dim=0)", reference="_split(x, split_size_or_sections, dim)",
    returns="tuple[Tensor, ...]",
    doc="""Views of consecutive parts: of one size, or of the sizes listed.

>>> import ptcore
>>> ptcore.split(ptcore.arange(5), 2)
(tensor([0, 1]), tensor([2, 3]), tensor([4]))
""")

composite(
    "chunk(input, chunks: Int, dim=0)", reference="_chunk(x, chunks, dim)", returns="tuple[Tensor, ...]",
    doc="""Views of at most ``chunks`` equal parts.

>>> import ptcore
>>> ptcore.chunk(ptcore.arange(4), 2)
(tensor([0, 1]), tensor([2, 3]))
""")

made("ravel(input)", "ravel(x)", "All elements as one dim, contiguous; a view if the tensor is.",
     "ptcore.ravel(ptcore.ones(2, 2)).shape", "ptcore.Size([4])")

made("swapaxes(input, axis0: Int, axis1: Int)", "swapaxes(x, axis0, axis1)", "Two dims exchanged, under NumPy's name.",
     "ptcore.swapaxes(ptcore.tensor([[1, 2]]), 0, 1)", "tensor([[1],\n        [2]])", inplace="inside")

composite(
    "as_strided(input, size: Sizes, stride: Sizes, storage_offset: OptInt = None)", inplace="inside", file="inplace",
    reference="_as_strided(x, size, stride, storage_offset or 0)",
    doc="""A window of the input's storage with given sizes, strides and offset, in elements.

Raises
------
RuntimeError
    If the window leaves the storage.

>>> import ptcore
>>> ptcore.as_strided(ptcore.arange(4), (3, 2), (1, 1))
tensor([[0, 1],
        [1, 2],
        [2, 3]])
""")

made("sum_to_size(input, size: Sizes)", "_sum_to_size(x, size)",
     "Summed over the dims by which ``size`` would be broadcast to this shape; the tensor itself if there are none.",
     "ptcore.ones(2, 3).sum_to_size(1, 3)", "tensor([[2., 2., 2.]])", public=[], varargs="size")

made("fill_diagonal_inplace(input, fill_value: Scalar, wrap=False)", "_fill_diagonal(x, fill_value, wrap)",
     """Sets the elements whose indices are equal and returns the tensor; with ``wrap`` the diagonal of a tall matrix
starts again.""", "ptcore.zeros(2, 2).fill_diagonal_(1.)", "tensor([[1., 0.],\n        [0., 1.]])", public=[],
     method="fill_diagonal_", called="fill_diagonal_", mutates=("input",))

# -- parts --------------------------------------------------------------------------------------
made("tensor_split(input, indices_or_sections: Obj, dim=0)", "_array_split(x, indices_or_sections, dim)",
     "Views of parts: that many of nearly equal size, or cut at the positions listed.",
     "ptcore.tensor_split(ptcore.arange(3), 2)", "(tensor([0, 1]), tensor([2]))", returns="tuple[Tensor, ...]")

for _name, _dim, _example in (("hsplit", "1 (0 of vectors)", "ptcore.hsplit(ptcore.arange(4), 2)"),
                              ("vsplit", "0", "ptcore.vsplit(ptcore.ones(2, 1), 2)[0].shape"),
                              ("dsplit", "2", "ptcore.dsplit(ptcore.ones(1, 1, 4), 2)[0].shape")):
    made(f"{_name}(input, indices_or_sections: Obj)", f"_{_name}(x, indices_or_sections)",
         f"Views of parts along dim {_dim}: that many of equal size, or cut at the positions listed.", _example,
         {"hsplit": "(tensor([0, 1]), tensor([2, 3]))", "vsplit": "ptcore.Size([1, 1])",
          "dsplit": "ptcore.Size([1, 1, 2])"}[_name], returns="tuple[Tensor, ...]")

made("split_with_sizes(input, split_sizes: Obj, dim=0)", "_split(x, split_sizes, dim)",
     "Views of consecutive parts of the sizes listed.", "ptcore.split_with_sizes(ptcore.arange(3), [1, 2])",
     "(tensor([0]), tensor([1, 2]))", returns="tuple[Tensor, ...]")

for _signature, _reference, _like, _example in (
        ("unsafe_split(input, split_size: Int, dim=0)", "_split(x, split_size, dim)", "split", "2"),
        ("unsafe_split_with_sizes(input, split_sizes: Obj, dim=0)", "_split(x, split_sizes, dim)", "split_with_sizes",
         "[2, 1]"),
        ("unsafe_chunk(input, chunks: Int, dim=0)", "_chunk(x, chunks, dim)", "chunk", "2")):
    made(_signature, _reference,
         f"Views as of ``{_like}`` that may be written to one by one while gradients are recorded.",
         f"ptcore.{_signature.partition('(')[0]}(ptcore.arange(3), {_example})", "(tensor([0, 1]), tensor([2]))",
         returns="tuple[Tensor, ...]")

# -- copies ---------------------------------------------------------------------------------------
_NUMBERS = "ptcore.arange(4).view(2, 2)"
for _signature, _reference, _example, _result in (
        ("alias_copy(input)", "x", "(ptcore.tensor([1, 2]))", "tensor([1, 2])"),
        ("detach_copy(input)", "x", "(ptcore.ones(2, requires_grad=True))", "tensor([1., 1.])"),
        ("as_strided_copy(input, size: Sizes, stride: Sizes, storage_offset: OptInt = None)",
         "_as_strided(x, size, stride, storage_offset or 0)", f"({_NUMBERS}, (2,), (2,), 1)", "tensor([1, 3])"),
        ("diagonal_copy(input, offset=0, dim1: Dim = 0, dim2: Dim = 1)", "diagonal(x, offset, dim1, dim2)",
         f"({_NUMBERS})", "tensor([0, 3])"),
        ("expand_copy(input, size: Sizes, *, implicit=False)", "_expand(x, size)", "(ptcore.tensor([1]), (2,))",
         "tensor([1, 1])"),
        ("narrow_copy(input, dim: Int, start: Obj, length: Int)", "_narrow(x, dim, start, length)",
         "(ptcore.arange(5), 0, 1, 2)", "tensor([1, 2])"),
        ("permute_copy(input, dims: Sizes)", "transpose(x, dims)", "(ptcore.tensor([[1, 2]]), (1, 0)).shape",
         "ptcore.Size([2, 1])"),
        ("select_copy(input, dim: Dim, index: Int)", "take(x, index, axis=dim)", f"({_NUMBERS}, 1, 0)",
         "tensor([0, 2])"),
        ("slice_copy(input, dim: Dim = 0, start: OptInt = None, end: OptInt = None, step: Int = 1)",
         "_slice(x, dim, start, end, step)", "(ptcore.arange(5), 0, 1, 4, 2)", "tensor([1, 3])"),
        ("split_copy(input, split_size: Int, dim=0)", "_split(x, split_size, dim)", "(ptcore.arange(3), 2)",
         "(tensor([0, 1]), tensor([2]))"),
        ("split_with_sizes_copy(input, split_sizes: Obj, dim=0)", "_split(x, split_sizes, dim)",
         "(ptcore.arange(3), [1, 2])", "(tensor([0]), tensor([1, 2]))"),
        ("squeeze_copy(input, dim: Obj = None)", "_squeeze(x, dim)", "(ptcore.ones(1, 2, 1)).shape",
         "ptcore.Size([2])"),
        ("t_copy(input)", "transpose(x)", "(ptcore.tensor([[1, 2]])).shape", "ptcore.Size([2, 1])"),
        ("transpose_copy(input, dim0: Dim, dim1: Dim)", "swapaxes(x, dim0, dim1)",
         "(ptcore.tensor([[1, 2]]), 0, 1).shape", "ptcore.Size([2, 1])"),
        ("unbind_copy(input, dim: Dim = 0)", "_unbind(x, dim)", "(ptcore.tensor([1, 2]))", "(tensor(1), tensor(2))"),
        ("unfold_copy(input, dimension: Dim, size: Int, step: Int)", "_unfold(x, dimension, size, step)",
         "(ptcore.arange(3), 0, 2, 1)", "tensor([[0, 1],\n        [1, 2]])"),
        ("unsqueeze_copy(input, dim: NewDim)", "expand_dims(x, dim)", "(ptcore.ones(2), 0).shape",
         "ptcore.Size([1, 2])"),
        ("view_copy(input, size: Obj)", "reshape(x, size)", "(ptcore.arange(4), (2, -1))",
         "tensor([[0, 1],\n        [2, 3]])"),
        ("view_as_real_copy(input)", "stack([x.real, x.imag], -1)", "(ptcore.tensor([1 + 2j]))", "tensor([[1., 2.]])"),
        ("view_as_complex_copy(input)", "x[..., 0] + 1j * x[..., 1]", "(ptcore.tensor([[1., 2.]]))",
         "tensor([1.+2.j])")):
    _name = _signature.partition("(")[0]
    _of = {"alias_copy": "``input`` itself", "detach_copy": "``input`` without its history"}.get(
        _name, f"What ``{_name.removesuffix('_copy')}`` shows")
    made(_signature, _reference, f"{_of}, in memory of its own that lies in row-major order.",
         f"ptcore.{_name}{_example}", _result, method=_name == "narrow_copy", out_argument=True,
         returns="tuple[Tensor, ...]" if _result[0] == "(" else None)

# -- as another tensor is, conjugation that is carried out at once, a selection -----------------------
for _name, _reference, _text in (
        ("view_as", "reshape(x, y.shape)", "viewed in the shape of ``other``, without a copy."),
        ("reshape_as", "reshape(x, y.shape)", "in the shape of ``other``."),
        ("expand_as", "broadcast_to(x, y.shape)", "expanded to the shape of ``other``.")):
    made(f"{_name}(input, other)", _reference, f"``input`` {_text}",
         f"ptcore.ones(2).{_name}(ptcore.ones(1, 2)).shape", "ptcore.Size([1, 2])", public=[])

made("type_as(input, other)", "_type_as(x, y)", "``input`` in the dtype of ``other`` and on its device.",
     "ptcore.tensor([1.5]).type_as(ptcore.tensor([1]))", "tensor([1])", public=[])

made("broadcast_to(input, size: Sizes)", "broadcast_to(x, size)", "``input`` expanded to a shape.",
     "ptcore.broadcast_to(ptcore.tensor([1, 2]), (2, 2))", "tensor([[1, 2],\n        [1, 2]])")

made("conj(input)", "conj(x)", "The complex conjugate; a real tensor itself.", "ptcore.conj(ptcore.tensor([1 + 2j]))",
     "tensor([1.-2.j])")

made("adjoint(input)", "conj(swapaxes(x, -1, -2))", "The conjugate transpose of the last two dims.",
     "ptcore.adjoint(ptcore.tensor([[1 + 2j, 3j]]))", "tensor([[1.-2.j],\n        [0.-3.j]])")

for _name, _mark in (("resolve_conj", "conjugate"), ("resolve_neg", "negative")):
    made(f"{_name}(input)", "x", f"The tensor itself: no tensor is marked as the {_mark} of its memory.",
         f"ptcore.{_name}(ptcore.tensor([1.]))", "tensor([1.])")

made("to_dense(input, dtype: DType = None, *, masked_grad: Obj = None)", "x",
     "The tensor itself, which is dense, or in another dtype.", "ptcore.ones(1).to_dense()", "tensor([1.])", public=[])

made("masked_select(input, mask)", "_masked_select(x, mask)",
     "The elements of ``input`` where ``mask`` holds, as a vector; the two broadcast.",
     "ptcore.masked_select(ptcore.tensor([1, 2]), ptcore.tensor([False, True]))", "tensor([2])", out_argument=True)
