"""Rows: norms, condition numbers and distances."""
from ptcore._ops.table.schema import REAL, composite, made, nondifferentiable, structured

# -- norms -------------------------------------------------------------------------------------------
made('norm(input, p: Obj = "fro", dim: Obj = None, keepdim=False, *, dtype: DType = None)', "_norm(x, p, dim, keepdim)",
     "Vector norm of the elements over ``dim`` (all dims if None); ``p`` is a number, \"fro\" or \"nuc\".",
     "ptcore.norm(ptcore.tensor([3., 4.]))", "tensor(5.)", out_argument=True, autocast=(None, "high"), wide=True)

made("linalg_vector_norm(x, ord: Float = 2.0, dim: Obj = None, keepdim=False, *, dtype: DType = None)",
     "_vector_norm(x, ord, dim, keepdim)", "``sum(abs(x)**ord)**(1 / ord)`` over ``dim`` (all dims if None).",
     "ptcore.linalg.vector_norm(ptcore.tensor([3., 4.]))", "tensor(5.)", out_argument=True,
     public=["linalg.vector_norm"], method=False, autocast=(None, "high"), wide=True)

made('linalg_matrix_norm(A, ord: Obj = "fro", dim: Obj = (-2, -1), keepdim=False, *, dtype: DType = None)',
     "_matrix_norm(x, ord, dim, keepdim)",
     'Norms of matrices: "fro", "nuc", inf, -inf, 1, -1 (of rows and columns), 2, -2 (singular values).',
     "ptcore.linalg.matrix_norm(ptcore.tensor([[3., 0.], [0., 4.]]), 1)", "tensor(4.)", out_argument=True,
     public=["linalg.matrix_norm"], method=False, autocast=(None, "high"), wide=True)

made("linalg_norm(A, ord: Obj = None, dim: Obj = None, keepdim=False, *, dtype: DType = None)",
     "_linalg_norm(x, ord, dim, keepdim)",
     "Norm of vectors (one dim, or ``ord=None``) or of matrices (two dims).",
     "ptcore.linalg.norm(ptcore.tensor([3., 4.]))", "tensor(5.)", out_argument=True, public=["linalg.norm"],
     method=False, autocast=(None, "high"), wide=True)

made("dist(input, other, p: Float = 2.0)", "_vector_norm(x - y, p, None, False)", "The p-norm of ``input - other``.",
     "ptcore.dist(ptcore.tensor([3., 0.]), ptcore.tensor([0., 4.]))", "tensor(5.)", autocast=(None, "high"), wide=True)

# -- distances ---------------------------------------------------------------------------------------
made("pairwise_distance(x1, x2, p: Float = 2.0, eps: Float = 1e-06, keepdim=False)",
     "_vector_norm(x1 - x2 + eps, p, -1, keepdim)", "The p-norms of the rows of ``x1 - x2 + eps``.",
     "ptcore.nn.functional.pairwise_distance(ptcore.tensor([[3., 0.]]), ptcore.tensor([[0., 4.]]))", "tensor([5.])",
     public=["pairwise_distance", "nn.functional.pairwise_distance"], method=False, autocast=(None, "high"), wide=True)

made("cosine_similarity(x1, x2, dim=1, eps: Float = 1e-08)", "_cosine_similarity(x1, x2, dim, eps)",
     "``sum(x1 * x2) / (norm(x1) * norm(x2))`` over ``dim``, each norm at least ``eps``.",
     "ptcore.cosine_similarity(ptcore.tensor([[1., 0.]]), ptcore.tensor([[2., 0.]]))", "tensor([1.])",
     public=["cosine_similarity", "nn.functional.cosine_similarity"], method=False, autocast=(None, "high"), wide=True)

made("normalize(input, p: Float = 2.0, dim: Obj = 1, eps: Float = 1e-12)",
     "x / maximum(_vector_norm(x, p, dim, True), eps)",
     "``input`` divided by its p-norm along ``dim``, at least ``eps``.",
     "ptcore.nn.functional.normalize(ptcore.tensor([[3., 4.]]))", "tensor([[0.6000, 0.8000]])",
     public=["nn.functional.normalize"], method=False, out_argument=True, autocast=(None, "high"), out_dtype="cast",
     wide=True)

made('cdist(x1, x2, p: Float = 2.0, compute_mode: Obj = "use_mm_for_euclid_dist_if_necessary")',
     "_vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1, False)",
     """The p-norm distance of each row of x1 from each row of x2. Euclidean distances of more than 25 rows come
from a matrix product, as ``compute_mode`` says.""",
     "ptcore.cdist(ptcore.tensor([[0., 0.]]), ptcore.tensor([[3., 4.]]))", "tensor([[5.]])", method=False,
     autocast="high", wide=True)

made("pdist(input, p: Float = 2.0)", "_pdist(x, p)", "The p-norm distances of all pairs of rows, as a vector.",
     "ptcore.nn.functional.pdist(ptcore.tensor([[0., 0.], [3., 4.]]))", "tensor([5.])",
     public=["pdist", "nn.functional.pdist"], method=False, autocast=(None, "high"), wide=True)

# -- distances of rows, of which the differences are never held ---------------------------------------
structured(
    "pair_distances(x1, x2, p: Float)", types=REAL, kernel="pair_distances", layout="contiguous",
    internal=True, called="cdist", node="CdistBackward0", out="pair_distances",
    vjp=["pair_slope(g, x, y, out, p)", "pair_slope(g.mT, y, x, out.mT, p)"], batch="stack", jvp="decompose",
    reference="_vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1, False)",
    doc="The p-norm distance of each row of x1 (*, m, d) from each of x2 (*, n, d).")

nondifferentiable(
    "pair_distances_slope(g, x1, x2, dist, p: Float)", types=REAL, promote="none", kernel="pair_distances_slope",
    layout="contiguous", internal=True, called="cdist", out="as_input(x1)", batch="stack",
    reference="_pair_distances_slope(g, x1, x2, p)", doc="The gradient of such distances by x1.")

structured(
    "row_distances(input, p: Float)", types=REAL, kernel="row_distances", layout="contiguous", internal=True,
    called="pdist", node="PdistBackward0", out="row_distances",
    vjp=["row_slope(g, x, out, p)"], batch="decompose", jvp="decompose", reference="_pdist(x, p)",
    doc="The p-norm distances of all pairs of rows of a matrix.")

nondifferentiable(
    "row_distances_slope(g, input, dist, p: Float)", types=REAL, promote="none", kernel="row_distances_slope",
    layout="contiguous", internal=True, called="pdist", out="as_input", batch="decompose",
    reference="_row_distances_slope(g, input, p)", doc="The gradient of such distances by the matrix.")

made("linalg_cond(A, p: Obj = None)", "_linalg_cond",
     """Condition numbers: the norm of a matrix times that of its inverse, in the norm ``p`` of
:func:`ptcore.linalg.matrix_norm`; None: the ratio of the extreme singular values.""",
     "ptcore.linalg.cond(ptcore.tensor([[2., 0.], [0., 4.]]))", "tensor(2.)", out_argument=True, autocast="high",
     public=["linalg.cond"], method=False, out_dtype="cast")

composite("norm_except_dim(v, pow: Float = 2, dim: Int = 0)", method=False, autocast=(None, "high"),
          reference="_norm_except_dim(v, pow, dim)",
          doc="""Norms over all dims but one, which are kept with size 1; all of them if ``dim`` is -1.
>>> import ptcore
>>> ptcore.norm_except_dim(ptcore.tensor([[3., 4.], [0., 1.]]))
tensor([[5.],
        [1.]])
""", wide=True)
