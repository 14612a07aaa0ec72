"""Rows: functions of other ops, written in bodies.py. Derivatives are inherited."""
from ptcore._ops.table.schema import composite

composite(
    "clamp(input, min: Obj = None, max: Obj = None)", out_argument="inside",
    alias=("clip",), reference="clip(x, min, max)",
    inplace="inside",
    doc="""Elements limited to ``[min, max]``; either bound may be absent, a number or a tensor.

>>> import ptcore
>>> ptcore.clamp(ptcore.tensor([-1., 0.5, 2.]), 0, 1)
tensor([0.0000, 0.5000, 1.0000])
""")

composite(
    "max(input, dim: Obj = None, keepdim=False)", out_argument=True,
    reference="max(x, axis=dim)", numpy="amax",
    doc="""The largest element; with ``dim`` a pair (values, indices), with a tensor in its
place the elementwise maximum.

>>> import ptcore
>>> ptcore.max(ptcore.tensor([[1, 5], [7, 2]]), 1).indices
tensor([1, 0])
""")

composite(
    "min(input, dim: Obj = None, keepdim=False)", out_argument=True,
    reference="min(x, axis=dim)", numpy="amin",
    doc="""The smallest element; with ``dim`` a pair (values, indices), with a tensor in its
place the elementwise minimum.

>>> import ptcore
>>> ptcore.min(ptcore.tensor([[1, 5], [7, 2]]), 1).values
tensor([1, 2])
""")

composite(
    "prod(input, dim: Obj = None, keepdim=False, *, dtype: DType = None)", out_argument=True,
    autocast="high", reference="prod(x, axis=dim)",
    doc="""Product over ``dim`` (all dims if None).

>>> import ptcore
>>> ptcore.prod(ptcore.tensor([2., 3.]))
tensor(6.)
""")

for _name, _text in (("var", "Variance"), ("std", "Standard deviation")):
    composite(
        f"{_name}(input, dim: Obj = None, unbiased: Obj = None, keepdim=False, *, correction: Obj = None, "
        "dtype: DType = None, ddof: Obj = None)", out_argument=True,
        reference=f"{_name}(x, axis=dim, ddof=1)",
        doc=f"""{_text} over ``dim`` (all dims if None) with the divisor ``n - correction``
(correction is 1 unless given). As NumPy has them: ``ddof``, another name of
``correction``, and ``dtype``, that to compute in.

>>> import ptcore
>>> ptcore.{_name}(ptcore.tensor([1., 1.]))
tensor(0.)
""")

composite(
    "matmul(input, other)", out_argument="inside", public=["matmul", "linalg.matmul"],
    autocast="low", reference="matmul(x, y)",
    doc="""Matrix product with NumPy's rules: vectors are promoted to matrices, leading dims
broadcast as batches.

>>> import ptcore
>>> ptcore.matmul(ptcore.ones(2, 3), ptcore.ones(3))
tensor([3., 3.])
""")

composite(
    "stack(tensors: Obj, dim=0)", out_argument="inside",
    method=False, autocast="widest", reference="stack(x, axis=dim)",
    doc="""Tensors of one shape along a new dim.

>>> import ptcore
>>> ptcore.stack([ptcore.tensor([1, 2]), ptcore.tensor([3, 4])], dim=1)
tensor([[1, 3],
        [2, 4]])
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

composite(
    "allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False)", returns="bool",
    reference="allclose(x, y, rtol, atol)",
    doc="""Whether all elements agree within ``atol + rtol * abs(other)``.

>>> import ptcore
>>> ptcore.allclose(ptcore.tensor([1.]), ptcore.tensor([1. + 1e-7]))
True
""")

composite(
    "isclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False)",
    reference="isclose(x, y, rtol, atol)",
    doc="""Which elements agree within ``atol + rtol * abs(other)``.

>>> import ptcore
>>> ptcore.isclose(ptcore.tensor([1., 2.]), ptcore.tensor([1., 3.]))
tensor([ True, False])
""")

composite(
    "equal(input, other)", reference="array_equal(x, y)", returns="bool",
    doc="""Whether two tensors have the same shape and elements, as a Python bool.

>>> import ptcore
>>> ptcore.equal(ptcore.tensor([1]), ptcore.tensor([1]))
True
""")

composite(
    "svd(input, some=True, compute_uv=True)", out_argument=True,
    autocast="high", reference="_svd(x, not some, compute_uv)",
    doc="""Singular value decomposition ``input = U @ diag(S) @ V.mH`` of matrices ``(*, m, n)``: U
``(*, m, k)``, S ``(*, k)`` descending, V ``(*, n, k)`` with ``k = min(m, n)``; square U and V
unless ``some``, zeros unless ``compute_uv``. ``ptcore.linalg.svd`` returns ``V.mH``.

Raises LinAlgError where the input is not finite or the iteration does not converge.

>>> import ptcore
>>> ptcore.svd(ptcore.tensor([[0., 2.], [1., 0.]])).S
tensor([2., 1.])
""")

composite(
    "linalg_svd(A, full_matrices=True, *, driver: Obj = None)", out_argument=True,
    public=["linalg.svd"], method=False,
    autocast="high", reference="_svd(A, full_matrices, True)",
    doc="""Singular value decomposition ``A = U @ diag(S) @ Vh`` of matrices ``(*, m, n)``.

U is ``(*, m, m)``, S ``(*, k)`` real and descending with ``k = min(m, n)``, Vh ``(*, n, n)``; with
``full_matrices=False`` U is ``(*, m, k)`` and Vh ``(*, k, n)``. The columns of U and rows
of Vh are defined up to a common factor of modulus one (and up to a rotation where
singular values repeat): the gradient is that of functions that do not depend on it.

Raises LinAlgError where A is not finite or the iteration does not converge.

>>> import ptcore
>>> U, S, Vh = ptcore.linalg.svd(ptcore.ones(3, 2), full_matrices=False)
>>> U.shape, S.shape, Vh.shape
(ptcore.Size([3, 2]), ptcore.Size([2]), ptcore.Size([2, 2]))
""")

composite(
    "linalg_svdvals(A, *, driver: Obj = None)", out_argument=True,
    public=["linalg.svdvals"], method=False,
    autocast="high", reference="_svd(A, False, False)",
    doc="""Singular values of matrices ``(*, m, n)``, descending, ``(*, min(m, n))``.

>>> import ptcore
>>> ptcore.linalg.svdvals(ptcore.tensor([[0., 2.], [1., 0.]]))
tensor([2., 1.])
""")

composite(
    "argsort(input, dim=-1, descending=False, *, stable=False)",
    reference="_sort(x, dim, descending)[1]",
    doc="""The indices that sort ``input`` along ``dim``; the order of equals is kept.

>>> import ptcore
>>> ptcore.argsort(ptcore.tensor([3, 1, 2]))
tensor([1, 2, 0])
""")

composite(
    "einsum(equation: Obj, operands: Tensors)", method=False, varargs="operands",
    autocast="low", reference="_einsum(equation, operands)",
    doc="""Sums of products, named by a letter for each dim: letters that the output lacks are
summed over, a letter twice in one operand takes the diagonal, ``...`` stands for the other dims.
Without ``->`` the output has the letters that occur once, in alphabetical order. Operands may
also be given each with a list of ints in place of letters.

>>> import ptcore
>>> ptcore.einsum("ij,j->i", ptcore.ones(2, 3), ptcore.ones(3))
tensor([3., 3.])
""")
