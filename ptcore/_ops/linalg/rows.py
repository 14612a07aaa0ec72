"""Rows: products of matrices and vectors, and decompositions."""
from ptcore._ops.table.schema import COMPLEX, NUMERIC, bilinear, structured

bilinear(
    "mm(input, mat2)", types=NUMERIC, kernel="mm", promote="none",
    out="mm", vjp=["mm(g, adjoint(y))", "mm(adjoint(x), g)"],
    batch="product ik,kj->ij", autocast="low", reference="matmul(x, y)",
    doc="""Product of two matrices, ``(N, K)`` by ``(K, M)``.

>>> import ptcore
>>> ptcore.mm(ptcore.tensor([[1., 2.]]), ptcore.tensor([[3.], [4.]]))
tensor([[11.]])
""")

bilinear(
    "bmm(input, mat2)", types=NUMERIC, kernel="bmm", promote="none",
    out="bmm", vjp=["bmm(g, adjoint(y))", "bmm(adjoint(x), g)"],
    batch="product bik,bkj->bij", autocast="low", reference="matmul(x, y)",
    doc="""Batch of matrix products, ``(B, N, K)`` by ``(B, K, M)``.

>>> import ptcore
>>> ptcore.bmm(ptcore.ones(2, 1, 3), ptcore.ones(2, 3, 1)).shape
ptcore.Size([2, 1, 1])
""")

bilinear(
    "mv(input, vec)", types=NUMERIC, kernel="mv", promote="none",
    out="mv", vjp=["outer_conj(g, y)", "mv(adjoint(x), g)"],
    batch="product ik,k->i", autocast="low", reference="matmul(x, y)",
    doc="""Product of a matrix and a vector.

>>> import ptcore
>>> ptcore.mv(ptcore.ones(2, 3), ptcore.ones(3))
tensor([3., 3.])
""")

bilinear(
    "dot(input, tensor)", types=NUMERIC, kernel="dot", promote="none",
    out="dot", vjp=["g * conj_of(y)", "g * conj_of(x)"],
    batch="product k,k->", autocast="widest", reference="dot(x, y)",
    doc="""Sum of the products of two vectors' elements (no conjugation).

>>> import ptcore
>>> ptcore.dot(ptcore.tensor([1., 2.]), ptcore.tensor([3., 4.]))
tensor(11.)
""")

structured(
    "addmm(input, mat1, mat2, *, beta: Scalar = 1, alpha: Scalar = 1)", types=NUMERIC,
    kernel="addmm", promote="none", out="addmm",
    vjp=["sum_to(g * conj_of(beta), x.shape)", "mm(g, adjoint(z)) * conj_of(alpha)",
         "mm(adjoint(y), g) * conj_of(alpha)"],
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
    method=False, vjp=["linear_input(g, y)", "linear_weight(g, x, y.shape)",
                       "sum_to(g, z.shape)"],
    batch="shift input", jvp=["linear(t, y)", "linear(x, t)", "t"],
    autocast="low", reference="matmul(x, y.T) + z",
    doc="""``input @ weight.T + bias`` for input ``(*, in_features)``, weight
``(out_features, in_features)`` and bias ``(out_features)``.

>>> import ptcore
>>> ptcore.nn.functional.linear(ptcore.ones(1, 2), ptcore.ones(3, 2), ptcore.zeros(3))
tensor([[2., 2., 2.]])
""")

structured(
    "_linalg_svd(A, full_matrices=False, compute_uv=True)", types=("float32", "float64", *COMPLEX),
    kernel="svd",
    internal=True, called="linalg_svd", fields=("U", "S", "Vh"), out="svd_spec(A, full_matrices, compute_uv)",
    jvp="rule", autocast="high", reference="_svd(A, full_matrices, compute_uv)",
    doc="Factors ``U diag(S) Vh``, singular values in descending order; U and Vh empty unless compute_uv.")

bilinear(
    "cross_of(input, other, dim: Dim)", types=NUMERIC, kernel="cross_of", internal=True,
    called="linalg_cross", node="LinalgCrossBackward0", out="like",
    vjp=["cross_of(conj_of(y), g, dim)", "cross_of(g, conj_of(x), dim)"], batch="decompose",
    reference="cross(x, y, axis=dim)", doc="Products of vectors of 3 elements along ``dim``, of tensors of one shape.")
