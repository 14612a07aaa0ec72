"""Rows: products of matrices and vectors."""
from ptcore._ops.table.schema import FLOATING, NUMERIC, bilinear, composite, made, structured

bilinear(
    "mm(input, mat2)", types=NUMERIC, kernel="mm", promote="none",
    out="mm", vjp=["mm(g, adjoint_of(y))", "mm(adjoint_of(x), g)"],
    batch="product ik,kj->ij", autocast="low", reference="matmul(x, y)",
    doc="""Product of two matrices, ``(N, K)`` by ``(K, M)``.

>>> import ptcore
>>> ptcore.mm(ptcore.tensor([[1., 2.]]), ptcore.tensor([[3.], [4.]]))
tensor([[11.]])
""")

bilinear(
    "bmm(input, mat2)", types=NUMERIC, kernel="bmm", promote="none",
    out="bmm", vjp=["bmm(g, adjoint_of(y))", "bmm(adjoint_of(x), g)"],
    batch="product bik,bkj->bij", autocast="low", reference="matmul(x, y)",
    doc="""Batch of matrix products, ``(B, N, K)`` by ``(B, K, M)``.

>>> import ptcore
>>> ptcore.bmm(ptcore.ones(2, 1, 3), ptcore.ones(2, 3, 1)).shape
ptcore.Size([2, 1, 1])
""")

bilinear(
    "mv(input, vec)", types=NUMERIC, kernel="mv", promote="none",
    out="mv", vjp=["outer_conj(g, y)", "mv(adjoint_of(x), g)"],
    batch="product ik,k->i", autocast=(None, "low"), reference="matmul(x, y)",
    doc="""Product of a matrix and a vector.

>>> import ptcore
>>> ptcore.mv(ptcore.ones(2, 3), ptcore.ones(3))
tensor([3., 3.])
""")

bilinear(
    "dot(input, tensor)", types=NUMERIC, kernel="dot", promote="none",
    out="dot", vjp=["g * conj_of(y)", "g * conj_of(x)"],
    batch="product k,k->", autocast=(None, "widest"), reference="dot(x, y)",
    doc="""Sum of the products of two vectors' elements (no conjugation).

>>> import ptcore
>>> ptcore.dot(ptcore.tensor([1., 2.]), ptcore.tensor([3., 4.]))
tensor(11.)
""")

structured(
    "addmm(input, mat1, mat2, *, beta: Scalar = 1, alpha: Scalar = 1)", types=NUMERIC,
    kernel="addmm", promote="none", out="addmm",
    vjp=["sum_to(g * conj_of(beta), x.shape)", "mm(g, adjoint_of(z)) * conj_of(alpha)",
         "mm(adjoint_of(y), g) * conj_of(alpha)"],
    batch="decompose", jvp=["t * beta", "mm(t, z) * alpha", "mm(y, t) * alpha"],
    autocast="low", reference="beta * x + alpha * matmul(y, z)",
    inplace=True,
    doc="""``beta * input + alpha * (mat1 @ mat2)``, input broadcast to the product's shape.

>>> import ptcore
>>> ptcore.addmm(ptcore.ones(1), ptcore.ones(1, 2), ptcore.ones(2, 1))
tensor([[3.]])
""")

structured(
    "linear(input, weight, bias: OptTensor = None)", types=NUMERIC, kernel="linear",
    promote="none", out="linear", public=["nn.functional.linear"],
    method=False, vjp=["linear_input(g, y)", "linear_weight(g, x)",
                       "sum_to(g, z.shape)"],
    batch="shift input", jvp=["linear(t, y)", "linear(x, t)", "t"],
    autocast="low", reference="matmul(x, y.T) + z",
    doc="""``input @ weight.T + bias`` for input ``(*, in_features)``, weight
``(out_features, in_features)`` and bias ``(out_features)``.

>>> import ptcore
>>> ptcore.nn.functional.linear(ptcore.ones(1, 2), ptcore.ones(3, 2), ptcore.zeros(3))
tensor([[2., 2., 2.]])
""")

bilinear(
    "cross_of(input, other, dim: Dim)", types=NUMERIC, kernel="cross_of", internal=True,
    called="linalg_cross", node="LinalgCrossBackward0", out="as_input",
    vjp=["cross_of(conj_of(y), g, dim)", "cross_of(g, conj_of(x), dim)"], batch="decompose",
    reference="cross(x, y, axis=dim)", doc="Products of vectors of 3 elements along ``dim``, of tensors of one shape.")

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
    "einsum(equation: Obj, operands: Tensors)", method=False, varargs="operands",
    autocast=(None, "low"), reference="_einsum(equation, operands)",
    doc="""Sums of products, named by a letter for each dim: letters that the output lacks are
summed over, a letter twice in one operand takes the diagonal, ``...`` stands for the other dims.
Without ``->`` the output has the letters that occur once, in alphabetical order. Operands may
also be given each with a list of ints in place of letters.

>>> import ptcore
>>> ptcore.einsum("ij,j->i", ptcore.ones(2, 3), ptcore.ones(3))
tensor([3., 3.])
""")

# -- sums with products ---------------------------------------------------------------------------
made("outer(input, vec2)", "outer(x, y)", "Products of all pairs of two vectors' elements.",
     "ptcore.outer(ptcore.tensor([1, 2]), ptcore.tensor([3, 4]))", "tensor([[3, 4],\n        [6, 8]])",
     out_argument="inside", alias=("ger",), out_dtype="cast")

made("addmv(input, mat, vec, *, beta: Scalar = 1, alpha: Scalar = 1)", "beta * x + alpha * matmul(y, z)",
     "``beta * input + alpha * (mat @ vec)``.",
     "ptcore.addmv(ptcore.ones(1), ptcore.ones(1, 2), ptcore.ones(2))", "tensor([3.])", out_argument=True, inplace=True,
     autocast=(None, "low"), wide=True)

made("addr(input, vec1, vec2, *, beta: Scalar = 1, alpha: Scalar = 1)", "beta * x + alpha * outer(y, z)",
     "``beta * input + alpha * outer(vec1, vec2)``.",
     "ptcore.addr(ptcore.zeros(1, 2), ptcore.ones(1), ptcore.tensor([1., 2.]))", "tensor([[1., 2.]])",
     out_argument=True, inplace=True, autocast=(None, "low"), out_dtype="cast", wide=True)

made("addbmm(input, batch1, batch2, *, beta: Scalar = 1, alpha: Scalar = 1)",
     "beta * x + alpha * matmul(y, z).sum(0)", "``beta * input + alpha * (sum over b of batch1[b] @ batch2[b])``.",
     "ptcore.addbmm(ptcore.zeros(1, 1), ptcore.ones(2, 1, 3), ptcore.ones(2, 3, 1))", "tensor([[6.]])",
     out_argument=True, inplace=True, autocast="low", wide=True)

made("baddbmm(input, batch1, batch2, *, beta: Scalar = 1, alpha: Scalar = 1)", "beta * x + alpha * matmul(y, z)",
     "``beta * input + alpha * bmm(batch1, batch2)``.",
     "ptcore.baddbmm(ptcore.zeros(1, 1, 1), ptcore.ones(1, 1, 3), ptcore.ones(1, 3, 1))", "tensor([[[3.]]])",
     out_argument=True, inplace=True, autocast="low", wide=True)

# -- products --------------------------------------------------------------------------------------
made("vdot(input, other)", "vdot(x, y)", "Sum of the products of two vectors' elements, the first conjugated.",
     "ptcore.vdot(ptcore.tensor([1j]), ptcore.tensor([1j]))", "tensor(1.+0.j)", out_argument=True,
     autocast=(None, "widest"))

made("inner(input, other)", "inner(x, y)", "Sums of products over the last dims of both tensors.",
     "ptcore.inner(ptcore.ones(2), ptcore.ones(2))", "tensor(2.)", out_argument="inside", autocast=(None, "low"))

made("tensordot(a, b, dims: Obj = 2)", "tensordot(x, y, dims)",
     "Sums of products over the last ``dims`` dims of a and the first of b, or over the two lists of dims.",
     "ptcore.tensordot(ptcore.ones(2, 3), ptcore.ones(3, 4), 1).shape", "ptcore.Size([2, 4])", out_argument=True,
     method=False, autocast=(None, "widest"))

made("kron(input, other)", "kron(x, y)", "Kronecker product: each element of ``input`` times the whole of ``other``.",
     "ptcore.kron(ptcore.tensor([1, 2]), ptcore.tensor([1, 1]))", "tensor([1, 1, 2, 2])", out_argument=True,
    out_dtype="cast")

made("chain_matmul(matrices: Tensors)", "linalg.multi_dot(x) if len(x) > 1 else x[0]",
     "Product of several matrices, in the order of least work.",
     "ptcore.chain_matmul(ptcore.ones(1, 2), ptcore.ones(2, 1))", "tensor([[2.]])", method=False, varargs="matrices",
     out_argument=True, autocast=(None, "low"), wide=True)

made("linalg_multi_dot(tensors: Obj)", "linalg.multi_dot(x)",
     "Product of several matrices, in the order of least work; the first and the last may be vectors.",
     "ptcore.linalg.multi_dot([ptcore.ones(1, 2), ptcore.ones(2)])", "tensor([2.])", method=False, out_argument=True,
     public=["linalg.multi_dot"], autocast=(None, "low"), wide=True)

made("matrix_power(input, n: Int)", "linalg.matrix_power(x, n)", "A square matrix to a non-negative integer power.",
     "ptcore.matrix_power(ptcore.tensor([[1., 1.], [0., 1.]]), 3)", "tensor([[1., 3.],\n        [0., 1.]])",
     out_argument=True, public=["matrix_power", "linalg.matrix_power"], autocast=(None, "low"), wide=True)

made("linalg_vecdot(x, y, *, dim=-1)", "sum(conj(x) * y, dim)",
     "Sum over ``dim`` of the products of two tensors' elements, the first conjugated.",
     "ptcore.linalg.vecdot(ptcore.ones(2, 3), ptcore.ones(3))", "tensor([3., 3.])", out_argument=True,
     public=["linalg.vecdot"], method=False, autocast="low", types=FLOATING, promote="none", wide=True)

made("cross(input, other, dim: Obj = None)", "cross(x, y, axis=-1 if dim is None else dim)",
     "Vector products along ``dim``, of size 3; along the first dim of that size if it is None.",
     "ptcore.cross(ptcore.tensor([1., 0., 0.]), ptcore.tensor([0., 1., 0.]))", "tensor([0., 0., 1.])",
     out_argument=True, autocast=(None, "widest"))

made("linalg_cross(input, other, *, dim=-1)", "cross(x, y, axis=dim)", "Vector products along ``dim``, of size 3.",
     "ptcore.linalg.cross(ptcore.tensor([1., 0., 0.]), ptcore.tensor([0., 1., 0.]))", "tensor([0., 0., 1.])",
     out_argument=True, public=["linalg.cross"], method=False, wide=True)

made("linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1)", "diagonal(x, offset, dim1, dim2)",
     "The diagonals of matrices, as the last dim.",
     "ptcore.linalg.diagonal(ptcore.ones(3, 2, 2)).shape", "ptcore.Size([3, 2])", public=["linalg.diagonal"],
     method=False)

made("bilinear(input1, input2, weight, bias: OptTensor = None)", "_bilinear(input1, input2, weight, bias)",
     "``input1 @ weight[k] @ input2 + bias[k]`` for each k, over the last dims of the inputs.",
     "ptcore.bilinear(ptcore.tensor([1., 2.]), ptcore.tensor([3.]), ptcore.ones(1, 2, 1))", "tensor([9.])",
     public=["bilinear", "nn.functional.bilinear"], method=False, autocast=("off", "widest"), wide=True)
