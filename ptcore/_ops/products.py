"""Rows: products of matrices and vectors, norms and distances, as functions of other ops."""
from ptcore._ops._schema import FLOATING, REAL, composite, nondifferentiable, structured


def _row(signature, reference, text, example, result, **columns):
    composite(signature, reference=reference, doc=f"""{text}

>>> import ptcore
>>> {example}
{result}
""", **columns)


# -- sums with products ---------------------------------------------------------------------------

_row("outer(input, vec2)", "outer(x, y)", "Products of all pairs of two vectors' elements.",
     "ptcore.outer(ptcore.tensor([1, 2]), ptcore.tensor([3, 4]))", "tensor([[3, 4],\n        [6, 8]])",
     out_argument="inside", alias=("ger",))
_row("addmv(input, mat, vec, *, beta: Scalar = 1, alpha: Scalar = 1)", "beta * x + alpha * matmul(y, z)",
     "``beta * input + alpha * (mat @ vec)``.",
     "ptcore.addmv(ptcore.ones(1), ptcore.ones(1, 2), ptcore.ones(2))", "tensor([3.])", out_argument=True, inplace=True,
     autocast="low")
_row("addr(input, vec1, vec2, *, beta: Scalar = 1, alpha: Scalar = 1)", "beta * x + alpha * outer(y, z)",
     "``beta * input + alpha * outer(vec1, vec2)``.",
     "ptcore.addr(ptcore.zeros(1, 2), ptcore.ones(1), ptcore.tensor([1., 2.]))", "tensor([[1., 2.]])",
     out_argument=True, inplace=True, autocast="low")
_row("addbmm(input, batch1, batch2, *, beta: Scalar = 1, alpha: Scalar = 1)",
     "beta * x + alpha * matmul(y, z).sum(0)", "``beta * input + alpha * (sum over b of batch1[b] @ batch2[b])``.",
     "ptcore.addbmm(ptcore.zeros(1, 1), ptcore.ones(2, 1, 3), ptcore.ones(2, 3, 1))", "tensor([[6.]])",
     out_argument=True, inplace=True, autocast="low")
_row("baddbmm(input, batch1, batch2, *, beta: Scalar = 1, alpha: Scalar = 1)", "beta * x + alpha * matmul(y, z)",
     "``beta * input + alpha * bmm(batch1, batch2)``.",
     "ptcore.baddbmm(ptcore.zeros(1, 1, 1), ptcore.ones(1, 1, 3), ptcore.ones(1, 3, 1))", "tensor([[[3.]]])",
     out_argument=True, inplace=True, autocast="low")

# -- products --------------------------------------------------------------------------------------

_row("vdot(input, other)", "vdot(x, y)", "Sum of the products of two vectors' elements, the first conjugated.",
     "ptcore.vdot(ptcore.tensor([1j]), ptcore.tensor([1j]))", "tensor(1.+0.j)", out_argument=True,
     autocast="widest")
_row("inner(input, other)", "inner(x, y)", "Sums of products over the last dims of both tensors.",
     "ptcore.inner(ptcore.ones(2), ptcore.ones(2))", "tensor(2.)", out_argument=True, autocast="low")
_row("tensordot(a, b, dims: Obj = 2)", "tensordot(x, y, dims)",
     "Sums of products over the last ``dims`` dims of a and the first of b, or over the two lists of dims.",
     "ptcore.tensordot(ptcore.ones(2, 3), ptcore.ones(3, 4), 1).shape", "ptcore.Size([2, 4])", out_argument=True,
     method=False, autocast="widest")
_row("kron(input, other)", "kron(x, y)", "Kronecker product: each element of ``input`` times the whole of ``other``.",
     "ptcore.kron(ptcore.tensor([1, 2]), ptcore.tensor([1, 1]))", "tensor([1, 1, 2, 2])", out_argument=True)
_row("chain_matmul(matrices: Tensors)", "linalg.multi_dot(x) if len(x) > 1 else x[0]",
     "Product of several matrices, in the order of least work.",
     "ptcore.chain_matmul(ptcore.ones(1, 2), ptcore.ones(2, 1))", "tensor([[2.]])", method=False, varargs="matrices",
     out_argument=True, autocast="low")
_row("linalg_multi_dot(tensors: Obj)", "linalg.multi_dot(x)",
     "Product of several matrices, in the order of least work; the first and the last may be vectors.",
     "ptcore.linalg.multi_dot([ptcore.ones(1, 2), ptcore.ones(2)])", "tensor([2.])", method=False, out_argument=True,
     public=["linalg.multi_dot"], autocast="low")
_row("matrix_power(input, n: Int)", "linalg.matrix_power(x, n)", "A square matrix to a non-negative integer power.",
     "ptcore.matrix_power(ptcore.tensor([[1., 1.], [0., 1.]]), 3)", "tensor([[1., 3.],\n        [0., 1.]])",
     out_argument=True, public=["matrix_power", "linalg.matrix_power"], autocast="low")
_row("linalg_vecdot(x, y, *, dim=-1)", "sum(conj(x) * y, dim)",
     "Sum over ``dim`` of the products of two tensors' elements, the first conjugated.",
     "ptcore.linalg.vecdot(ptcore.ones(2, 3), ptcore.ones(3))", "tensor([3., 3.])", out_argument=True,
     public=["linalg.vecdot"], method=False, autocast="low", types=FLOATING, promote="none")
_row("cross(input, other, dim: Obj = None)", "cross(x, y, axis=-1 if dim is None else dim)",
     "Vector products along ``dim``, of size 3; along the first dim of that size if it is None.",
     "ptcore.cross(ptcore.tensor([1., 0., 0.]), ptcore.tensor([0., 1., 0.]))", "tensor([0., 0., 1.])",
     out_argument=True, autocast="widest")
_row("linalg_cross(input, other, *, dim=-1)", "cross(x, y, axis=dim)", "Vector products along ``dim``, of size 3.",
     "ptcore.linalg.cross(ptcore.tensor([1., 0., 0.]), ptcore.tensor([0., 1., 0.]))", "tensor([0., 0., 1.])",
     out_argument=True, public=["linalg.cross"], method=False)
_row("linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1)", "diagonal(x, offset, dim1, dim2)",
     "The diagonals of matrices, as the last dim.",
     "ptcore.linalg.diagonal(ptcore.ones(3, 2, 2)).shape", "ptcore.Size([3, 2])", public=["linalg.diagonal"],
     method=False)

# -- norms -------------------------------------------------------------------------------------------

_row('norm(input, p: Obj = "fro", dim: Obj = None, keepdim=False, *, dtype: DType = None)', "_norm(x, p, dim, keepdim)",
     "Vector norm of the elements over ``dim`` (all dims if None); ``p`` is a number, \"fro\" or \"nuc\".",
     "ptcore.norm(ptcore.tensor([3., 4.]))", "tensor(5.)", out_argument=True, autocast="high")
_row("linalg_vector_norm(x, ord: Float = 2.0, dim: Obj = None, keepdim=False, *, dtype: DType = None)",
     "_vector_norm(x, ord, dim, keepdim)", "``sum(abs(x)**ord)**(1 / ord)`` over ``dim`` (all dims if None).",
     "ptcore.linalg.vector_norm(ptcore.tensor([3., 4.]))", "tensor(5.)", out_argument=True,
     public=["linalg.vector_norm"], method=False, autocast="high")
_row('linalg_matrix_norm(A, ord: Obj = "fro", dim: Obj = (-2, -1), keepdim=False, *, dtype: DType = None)',
     "_matrix_norm(x, ord, dim, keepdim)",
     'Norms of matrices: "fro", "nuc", inf, -inf, 1, -1 (of rows and columns), 2, -2 (singular values).',
     "ptcore.linalg.matrix_norm(ptcore.tensor([[3., 0.], [0., 4.]]), 1)", "tensor(4.)", out_argument=True,
     public=["linalg.matrix_norm"], method=False, autocast="high")
_row("linalg_norm(A, ord: Obj = None, dim: Obj = None, keepdim=False, *, dtype: DType = None)",
     "_linalg_norm(x, ord, dim, keepdim)",
     "Norm of vectors (one dim, or ``ord=None``) or of matrices (two dims).",
     "ptcore.linalg.norm(ptcore.tensor([3., 4.]))", "tensor(5.)", out_argument=True, public=["linalg.norm"],
     method=False, autocast="high")
_row("dist(input, other, p: Float = 2.0)", "_vector_norm(x - y, p, None, False)", "The p-norm of ``input - other``.",
     "ptcore.dist(ptcore.tensor([3., 0.]), ptcore.tensor([0., 4.]))", "tensor(5.)", autocast="high")

# -- distances ---------------------------------------------------------------------------------------

_row("pairwise_distance(x1, x2, p: Float = 2.0, eps: Float = 1e-06, keepdim=False)",
     "_vector_norm(x1 - x2 + eps, p, -1, keepdim)", "The p-norms of the rows of ``x1 - x2 + eps``.",
     "ptcore.nn.functional.pairwise_distance(ptcore.tensor([[3., 0.]]), ptcore.tensor([[0., 4.]]))", "tensor([5.])",
     public=["pairwise_distance", "nn.functional.pairwise_distance"], method=False, autocast="high")
_row("cosine_similarity(x1, x2, dim=1, eps: Float = 1e-08)", "_cosine_similarity(x1, x2, dim, eps)",
     "``sum(x1 * x2) / (norm(x1) * norm(x2))`` over ``dim``, each norm at least ``eps``.",
     "ptcore.cosine_similarity(ptcore.tensor([[1., 0.]]), ptcore.tensor([[2., 0.]]))", "tensor([1.])",
     public=["cosine_similarity", "nn.functional.cosine_similarity"], method=False, autocast="high")
_row("normalize(input, p: Float = 2.0, dim: Obj = 1, eps: Float = 1e-12)",
     "x / maximum(_vector_norm(x, p, dim, True), eps)",
     "``input`` divided by its p-norm along ``dim``, at least ``eps``.",
     "ptcore.nn.functional.normalize(ptcore.tensor([[3., 4.]]))", "tensor([[0.6000, 0.8000]])",
     public=["nn.functional.normalize"], method=False, out_argument=True, autocast="high")
_row('cdist(x1, x2, p: Float = 2.0, compute_mode: Obj = "use_mm_for_euclid_dist_if_necessary")',
     "_vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1, False)",
     """The p-norm distance of each row of x1 from each row of x2. Euclidean distances of more than 25 rows come
from a matrix product, as ``compute_mode`` says.""",
     "ptcore.cdist(ptcore.tensor([[0., 0.]]), ptcore.tensor([[3., 4.]]))", "tensor([[5.]])", method=False,
     autocast="high")
_row("pdist(input, p: Float = 2.0)", "_pdist(x, p)", "The p-norm distances of all pairs of rows, as a vector.",
     "ptcore.nn.functional.pdist(ptcore.tensor([[0., 0.], [3., 4.]]))", "tensor([5.])",
     public=["pdist", "nn.functional.pdist"], method=False, autocast="high")

_row("bilinear(input1, input2, weight, bias: OptTensor = None)", "_bilinear(input1, input2, weight, bias)",
     "``input1 @ weight[k] @ input2 + bias[k]`` for each k, over the last dims of the inputs.",
     "ptcore.bilinear(ptcore.tensor([1., 2.]), ptcore.tensor([3.]), ptcore.ones(1, 2, 1))", "tensor([9.])",
     public=["bilinear", "nn.functional.bilinear"], method=False, autocast="widest")

# -- distances of rows, of which the differences are never held ---------------------------------------

structured(
    "pair_distances(x1, x2, p: Float)", types=REAL, kernel="pair_distances", layout="contiguous",
    internal=True, called="cdist", node="CdistBackward0", out="((*x1.shape[:-1], x2.shape[-2]), x1.dtype)",
    vjp=["pair_slope(g, x, y, out, p)", "pair_slope(g.mT, y, x, out.mT, p)"], batch="decompose", jvp="decompose",
    reference="_vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1, False)",
    doc="The p-norm distance of each row of x1 (*, m, d) from each of x2 (*, n, d).")

nondifferentiable(
    "pair_distances_slope(g, x1, x2, dist, p: Float)", types=REAL, promote="none", kernel="pair_distances_slope",
    layout="contiguous", internal=True, called="cdist", out="like_second", batch="decompose",
    reference="_pair_distances_slope(g, x1, x2, p)", doc="The gradient of such distances by x1.")

structured(
    "row_distances(input, p: Float)", types=REAL, kernel="row_distances", layout="contiguous", internal=True,
    called="pdist", node="PdistBackward0", out="((input.shape[0] * (input.shape[0] - 1) // 2,), input.dtype)",
    vjp=["row_slope(g, x, out, p)"], batch="decompose", jvp="decompose", reference="_pdist(x, p)",
    doc="The p-norm distances of all pairs of rows of a matrix.")

nondifferentiable(
    "row_distances_slope(g, input, dist, p: Float)", types=REAL, promote="none", kernel="row_distances_slope",
    layout="contiguous", internal=True, called="pdist", out="like_second", batch="decompose",
    reference="_row_distances_slope(g, input, p)", doc="The gradient of such distances by the matrix.")
