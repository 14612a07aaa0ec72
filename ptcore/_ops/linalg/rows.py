"""Rows: systems of equations, factors and inverses of matrices, and functions computed from them."""
from ptcore._ops.table.schema import COMPLEX, composite, nondifferentiable, structured

structured(
    "_linalg_svd(A, full_matrices=False, compute_uv=True)", types=("float32", "float64", *COMPLEX),
    kernel="svd",
    internal=True, called="linalg_svd", fields=("U", "S", "Vh"), out="svd",
    jvp="rule", autocast="high", reference="_svd(A, full_matrices, compute_uv)",
    doc="Factors ``U diag(S) Vh``, singular values in descending order; U and Vh empty unless compute_uv.")

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
``driver`` is None; on a CUDA device "gesvd", "gesvdj" and "gesvda" are taken too, where the size alone decides between
the first two.

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

_TYPES = ("float32", "float64", *COMPLEX)


def _factor(signature, kernel, out, text, **columns):
    name = signature.partition("(")[0]
    structured(signature, types=_TYPES, promote="none", kernel=kernel, out=out, internal=True,
               called=columns.pop("called", name[1:]), autocast="high", doc=text, **columns)


_factor("_linalg_solve(A, B)", "solve", "solve",
        "The solutions of ``A X = B`` for batches of one shape.", node="LinalgSolveExBackward0",
        jvp=["-_linalg_solve(x, matmul(t, out))", "_linalg_solve(x, t)"], reference="linalg.solve(x, B)")

_factor("_linalg_solve_triangular(A, B, upper: Bool, unitriangular: Bool)", "solve_triangular",
        "solve",
        "The solutions of ``A X = B`` where A is a triangle, for batches of one shape.",
        jvp=["triangular_forward(t, x, out, upper, unitriangular)",
             "_linalg_solve_triangular(x, t, upper, unitriangular)"],
        node="LinalgSolveTriangularBackward0", reference="_solve_triangular(x, B, upper, unitriangular)")

_factor("_linalg_cholesky(A, upper: Bool, check: Bool)", "cholesky", "square_with_infos",
        "The Cholesky factor and which leading minor of each matrix is not positive, 0 if all are.",
        fields=("L", "info"), node="LinalgCholeskyExBackward0", jvp="rule", reference="_cholesky(x, upper)")

_factor('_linalg_qr(A, mode: "reduced|complete|r")', "qr", "qr",
        "An orthogonal factor, empty for mode r, and an upper triangle.",
        fields=("Q", "R"), node="LinalgQrBackward0", jvp="rule", reference="_qr(x, mode)")

_factor("_linalg_eigh(A, lower: Bool, vectors: Bool)", "eigh", "eigh",
        "Eigenvalues, ascending, of matrices that equal their adjoint, and the eigenvectors or nothing.",
        fields=("eigenvalues", "eigenvectors"), node="LinalgEighBackward0", jvp="rule",
        reference="_eigh(x, lower)")

_factor("_linalg_det(A)", "det", "det", "Determinants.",
        node="LinalgDetBackward0", jvp="rule", reference="linalg.det(x)")

_factor("_linalg_slogdet(A)", "slogdet", "slogdet",
        "The signs of determinants, or their directions, and the logarithms of their moduli.",
        fields=("sign", "logabsdet"), node="LinalgSlogdetBackward0", jvp="rule", reference="linalg.slogdet(x)")

_factor("_linalg_solve_ex(A, B, check: Bool)", "solve_ex", "solve_ex",
        "The solutions of ``A X = B``, and 0 or the number of the pivot that is zero.", called="linalg_solve_ex",
        fields=("result", "info"), node="LinalgSolveExBackward0",
        jvp=["-_linalg_solve(x, matmul(t, out))", "_linalg_solve(x, t)"], reference="_solve_ex(x, y)")

_factor("_linalg_inv(A, check: Bool)", "inv", "square_with_infos",
        "Inverses, and 0 or the number of the pivot that is zero.", called="linalg_inv",
        fields=("inverse", "info"), node="LinalgInvExBackward0", jvp="rule", reference="_inv_ex(x)")

_factor("_linalg_eig(A, vectors: Bool)", "eig", "eig",
        "Complex eigenvalues of any square matrix, and the eigenvectors or nothing.",
        fields=("eigenvalues", "eigenvectors"), node="LinalgEigBackward0", jvp="rule", reference="_eig(x)")

_factor("_linalg_lu(A, check: Bool, pivot=True)", "lu", "lu_factor",
        "Both triangles of ``P L U`` in one matrix, the rows swapped, and 0 or the number of the zero of U's diagonal.",
        called="linalg_lu_factor", fields=("LU", "pivots", "info"), node="LinalgLuFactorExBackward0", jvp="rule",
        reference="_lu(x)")

nondifferentiable(
    "_linalg_lu_solve(LU, pivots: Index, B, transposed: Bool)", types=_TYPES, promote="none", kernel="lu_solve",
    internal=True, called="linalg_lu_solve", out="solve(LU, B)", autocast="high",
    reference="_lu_solved(x, y, z, transposed)",
    doc="The solutions of ``A X = B``, or ``A^T X = B``, from LU and pivots of A, without a derivative.")

nondifferentiable(
    "_pivot_order(pivots: Index, rows: Int)", kernel="pivot_order", internal=True, called="lu_unpack",
    layout="contiguous", out="pivot_order", reference="_pivot_order(x, rows)",
    doc="Where each row of L goes: ``P[order[i], i] = 1``.")

_factor("_linalg_ldl(A, hermitian: Bool, check: Bool)", "ldl", "ldl_factor",
        "Factors of ``L D L^H`` or ``L D L^T`` by the lower triangle, and the swaps of rows.",
        called="linalg_ldl_factor", fields=("LD", "pivots", "info"), node="LinalgLdlFactorExBackward0", jvp="rule",
        reference="_ldl(x)")

_factor("_linalg_ldl_solve(LD, pivots: Index, B, hermitian: Bool)", "ldl_solve", "ldl_solve",
        "The solutions of ``A X = B`` from the factors of A.", called="linalg_ldl_solve",
        node="LinalgLdlSolveBackward0", jvp="rule", reference="_ldl_solve(x, y, z)")

_factor("_geqrf(input)", "geqrf", "geqrf", "R above the reflectors of QR, and their sizes.",
        called="geqrf", fields=("a", "tau"), node="GeqrfBackward0", jvp="rule", reference="_geqrf(x)")

nondifferentiable(
    "_linalg_householder(input, tau)", types=_TYPES, promote="none", kernel="householder", internal=True,
    called="linalg_householder_product", out="householder", autocast="high",
    reference="_householder(x, y)", doc="The first columns of a product of reflectors, without a derivative.")

_factor("_linalg_matrix_exp(A)", "matrix_exp", "square",
        "Exponentials of matrices.", called="linalg_matrix_exp", node="LinalgMatrixExpBackward0", jvp="rule",
        reference="_matrix_exp(x)")

_factor("_linalg_pinv_of(P: Index, A)", "copy", "pinv",
        "P, of which it is known that it is the pseudoinverse of A: derivatives follow from that.",
        called="linalg_pinv", node="LinalgPinvBackward0", jvp=[None, "pinv_forward(t, y, out)"],
        vjp=[None, "pinv_backward(g, y, out)"], batch="broadcast", reference="linalg.pinv(A)")


def _row(signature, text, example, result, reference=None, **columns):
    name = signature.partition("(")[0]
    if name.startswith("linalg_"):
        columns.setdefault("public", ["linalg." + name[7:]])
        columns.setdefault("method", False)
    composite(signature, reference=reference or f"_{name}", out_argument=True, autocast="high",
              doc=f"""{text}

>>> import ptcore
>>> {example}
{result}
""", **columns)


_EXAMPLE = "ptcore.tensor([[2., 0.], [0., 4.]])"

# -- equations ---------------------------------------------------------------------------------------
_row("linalg_solve(A, B, *, left=True)",
     """X with ``A X = B``, or ``X A = B`` if not ``left``; B is a matrix, or a vector for each matrix of A.

Raises LinAlgError where a matrix is singular.""",
     f"ptcore.linalg.solve({_EXAMPLE}, ptcore.tensor([2., 2.]))", "tensor([1.0000, 0.5000])")

_row("linalg_solve_triangular(A, B, *, upper: Bool, left=True, unitriangular=False)",
     """X with ``A X = B``, or ``X A = B`` if not ``left``, of which only the upper or lower triangle is read; the
diagonal is taken for ones if ``unitriangular``. A zero on it gives infinities.""",
     f"ptcore.linalg.solve_triangular({_EXAMPLE}, ptcore.ones(2, 1), upper=True)",
     "tensor([[0.5000],\n        [0.2500]])")

_row("cholesky_solve(input, L, upper=False)",
     "X with ``A X = input``, where L is the Cholesky factor of A.",
     "ptcore.cholesky_solve(ptcore.ones(1, 1), ptcore.tensor([[2.]]))", "tensor([[0.2500]])", out_dtype="cast")

_row("cholesky_inverse(input, upper=False)", "The inverse of the matrix whose Cholesky factor ``input`` is.",
     "ptcore.cholesky_inverse(ptcore.tensor([[2.]]))", "tensor([[0.2500]])", out_dtype="cast")

_row("linalg_lstsq(A, B, rcond: Obj = None, *, driver: Obj = None)",
     """X of least norm that makes ``norm(A X - B)`` least, with the residuals (where A has full rank and more rows than
columns), the ranks and, for the drivers "gelsd" and "gelss", the singular values. Singular values up to
``rcond`` times the largest count as zero. The driver is "gelsy" on every device unless one is given.""",
     f"ptcore.linalg.lstsq({_EXAMPLE}, ptcore.ones(2, 1)).solution", "tensor([[0.5000],\n        [0.2500]])",
    out_dtype="cast")

# -- inverses and determinants ---------------------------------------------------------------------
for _name in ("linalg_inv(A)", "inverse(input)"):
    _row(_name, "Inverses of matrices; LinAlgError where one is singular.",
         f"ptcore.linalg.inv({_EXAMPLE})", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")

for _name in ("linalg_det(A)", "det(input)"):
    _row(_name, "Determinants of matrices.", f"ptcore.linalg.det({_EXAMPLE})", "tensor(8.)")

for _name in ("linalg_slogdet(A)", "slogdet(input)"):
    _row(_name, """The signs of determinants (for complex matrices their directions) and the logarithms of their moduli,
as ``(sign, logabsdet)``.""", f"ptcore.linalg.slogdet({_EXAMPLE}).sign", "tensor(1.)")

_row("logdet(input)", "Logarithms of determinants; NaN where one is negative.",
     "ptcore.logdet(ptcore.eye(2))", "tensor(0.)")

_row("linalg_pinv(A, rtol: Obj = None, *, atol: Obj = None, hermitian=False)",
     """Pseudoinverses. Singular values up to ``max(atol, rtol * largest)`` count as zero; ``rtol`` is
``max(m, n) * eps`` if neither is given.""",
     f"ptcore.linalg.pinv({_EXAMPLE})", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])", out_dtype="cast")

_row("pinverse(input, rcond: Float = 1e-15)", "Pseudoinverses; see :func:`ptcore.linalg.pinv`.",
     f"ptcore.pinverse({_EXAMPLE})", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")

# -- factors -----------------------------------------------------------------------------------------
for _name in ("linalg_cholesky(A, *, upper=False)", "cholesky(input, upper=False)"):
    _row(_name, """Lower triangle L with ``A = L @ L.mH``, or its adjoint if ``upper``.

Raises LinAlgError where a matrix is not positive-definite.""",
         "ptcore.linalg.cholesky(ptcore.tensor([[4., 2.], [2., 5.]]))",
         "tensor([[2., 0.],\n        [1., 2.]])", out_dtype="exact" if _name.startswith("linalg") else "cast")

_row("linalg_cholesky_ex(A, *, upper=False, check_errors=False)",
     "Cholesky factors and, for each matrix, 0 or the order of the leading minor that is not positive.",
     f"ptcore.linalg.cholesky_ex({_EXAMPLE}).info", "tensor(0, dtype=ptcore.int32)")

_row('linalg_qr(A, mode: "reduced|complete|r" = "reduced")',
     """``A = Q @ R`` with orthonormal columns of Q and an upper triangle R. Q is ``(m, min(m, n))``, with mode
"complete" ``(m, m)``, with mode "r" empty.""",
     f"ptcore.linalg.qr({_EXAMPLE}).R.shape", "ptcore.Size([2, 2])")

_row("qr(input, some=True)", "``input = Q @ R``; see :func:`ptcore.linalg.qr`.",
     f"ptcore.qr({_EXAMPLE}).R.shape", "ptcore.Size([2, 2])")

_row('linalg_eigh(A, UPLO: Obj = "L")',
     """Eigenvalues, ascending, and eigenvectors, the columns of a matrix, of matrices that equal their adjoint; only
the triangle that UPLO names, "L" or "U", is read.""",
     f"ptcore.linalg.eigh({_EXAMPLE}).eigenvalues", "tensor([2., 4.])")

_row('linalg_eigvalsh(A, UPLO: Obj = "L")', "Eigenvalues, ascending, of matrices that equal their adjoint.",
     f"ptcore.linalg.eigvalsh({_EXAMPLE})", "tensor([2., 4.])")

# -- numbers -----------------------------------------------------------------------------------------
_row("linalg_matrix_rank(A, tol: Obj = None, hermitian=False, *, atol: Obj = None, rtol: Obj = None)",
     "How many singular values are larger than ``max(atol, rtol * largest)``, or than ``tol``.",
     f"ptcore.linalg.matrix_rank({_EXAMPLE})", "tensor(2)", out_dtype="cast")

# -- elimination -------------------------------------------------------------------------------------
_row("linalg_lu_factor(A, *, pivot=True)",
     """LU, which holds L below its diagonal (whose ones are left out) and U from it on, and pivots, the number of the
row that each row was swapped with, from 1. On CUDA devices ``pivot`` may be False: no rows are swapped, which is not
stable.

Raises LinAlgError where a zero stands on U's diagonal.""",
     f"ptcore.linalg.lu_factor({_EXAMPLE}).pivots", "tensor([1, 2], dtype=ptcore.int32)")

_row("linalg_lu_factor_ex(A, *, pivot=True, check_errors=False)",
     "As ``lu_factor``, with a third result: 0 or the number of the zero on U's diagonal, in place of an error.",
     f"ptcore.linalg.lu_factor_ex({_EXAMPLE}).info", "tensor(0, dtype=ptcore.int32)")

_row("linalg_lu(A, *, pivot=True)",
     """``A = P @ L @ U``: a permutation (empty without pivots), a lower triangle with ones on the diagonal, an upper
triangle.""",
     f"ptcore.linalg.lu({_EXAMPLE}).U", "tensor([[2., 0.],\n        [0., 4.]])")

_row("lu(input, pivot=True, get_infos=False)",
     "LU and pivots of :func:`ptcore.linalg.lu_factor`, and with ``get_infos`` the third of ``lu_factor_ex``.",
     f"ptcore.lu({_EXAMPLE})[1]", "tensor([1, 2], dtype=ptcore.int32)",
     reference="_lu_of", returns="tuple[Tensor, ...]", out_dtype="any")

_row("lu_unpack(LU_data, LU_pivots: Index, unpack_data=True, unpack_pivots=True)",
     "P, L and U of what ``lu_factor`` returned; those that are not unpacked are empty.",
     f"ptcore.lu_unpack(*ptcore.linalg.lu_factor({_EXAMPLE})).L", "tensor([[1., 0.],\n        [0., 1.]])")

_row("linalg_lu_solve(LU, pivots: Index, B, *, left=True, adjoint=False)",
     """X with ``A X = B``, or ``X A = B`` if not ``left``, from ``lu_factor(A)``; with ``adjoint`` that of
``A.mH``.""",
     f"ptcore.linalg.lu_solve(*ptcore.linalg.lu_factor({_EXAMPLE}), ptcore.ones(2, 1))",
     "tensor([[0.5000],\n        [0.2500]])")

_row("lu_solve(input, LU_data, LU_pivots: Index)", "X with ``A X = input``; see :func:`ptcore.linalg.lu_solve`.",
     f"ptcore.lu_solve(ptcore.ones(2, 1), *ptcore.linalg.lu_factor({_EXAMPLE}))",
     "tensor([[0.5000],\n        [0.2500]])")

_row("linalg_solve_ex(A, B, *, left=True, check_errors=False)",
     """As ``solve``, with a second result: 0, or the number of the pivot that is zero, in place of an error; the first
is then not finite.""", f"ptcore.linalg.solve_ex({_EXAMPLE}, ptcore.ones(2)).info", "tensor(0, dtype=ptcore.int32)")

_row("linalg_inv_ex(A, *, check_errors=False)",
     "As ``inv``, with a second result: 0, or the number of the pivot that is zero, in place of an error.",
     f"ptcore.linalg.inv_ex({_EXAMPLE}).info", "tensor(0, dtype=ptcore.int32)")

_row("triangular_solve(input, A, upper=True, transpose=False, unitriangular=False)",
     "X with ``A X = input`` for a triangle A (or its transpose), and a copy of A; the older function.",
     f"ptcore.triangular_solve(ptcore.ones(2, 1), {_EXAMPLE}).solution", "tensor([[0.5000],\n        [0.2500]])")

_row("linalg_ldl_factor(A, *, hermitian=False)",
     """Factors ``L D L.mT`` of symmetric matrices, or ``L D L.mH``, in one matrix, and the swaps of rows in LAPACK's
form. Only the lower triangle is read. They have no derivative.""",
     f"ptcore.linalg.ldl_factor({_EXAMPLE}).LD", "tensor([[2., 0.],\n        [0., 4.]])")

_row("linalg_ldl_factor_ex(A, *, hermitian=False, check_errors=False)",
     "As ``ldl_factor``, with a third result: 0, or the number of the block of D that is zero, in place of an error.",
     f"ptcore.linalg.ldl_factor_ex({_EXAMPLE}).info", "tensor(0, dtype=ptcore.int32)")

_row("linalg_ldl_solve(LD, pivots: Index, B, *, hermitian=False)",
     "X with ``A X = B`` from ``ldl_factor(A)``.",
     f"ptcore.linalg.ldl_solve(*ptcore.linalg.ldl_factor({_EXAMPLE}), ptcore.ones(2, 1))",
     "tensor([[0.5000],\n        [0.2500]])")

# -- eigenvalues, reflectors, exponentials -----------------------------------------------------------
_row("linalg_eig(A)",
     """Eigenvalues and eigenvectors, the columns of a matrix, of any square matrices; both are complex. The vectors
have length one and are defined up to a factor of modulus one: a loss that depends on it has no derivative.""",
     f"ptcore.linalg.eig({_EXAMPLE}).eigenvalues", "tensor([2.+0.j, 4.+0.j])", out_dtype="cast")

_row("linalg_eigvals(A)", "Eigenvalues of any square matrices, which are complex, in no order.",
     f"ptcore.linalg.eigvals({_EXAMPLE})", "tensor([2.+0.j, 4.+0.j])", out_dtype="cast")

_row("geqrf(input)",
     """R on and above the diagonal, below it the reflectors whose product is Q, and their sizes ``tau``; see
:func:`ptcore.linalg.householder_product`. They have no derivative.""",
     "ptcore.geqrf(ptcore.ones(2, 1)).a", "tensor([[-1.4142],\n        [ 0.4142]])", out_dtype="cast")

_reflected = """The first columns of the product of reflectors ``1 - tau[i] v[i] v[i].mH``, where ``v[i]`` stands below
the diagonal of column i, whose one is left out."""

for _name in ("linalg_householder_product(A, tau)", "orgqr(input, tau)"):
    _row(_name, _reflected, "ptcore.linalg.householder_product(*ptcore.geqrf(ptcore.ones(2, 1)))",
         "tensor([[-0.7071],\n        [-0.7071]])", out_dtype="cast")

_row("ormqr(input, tau, other, left=True, transpose=False)",
     """``Q @ other``, or ``other @ Q`` if not ``left``, where Q is the square matrix of the reflectors in ``input``, or
its adjoint if ``transpose``.""",
     "ptcore.ormqr(*ptcore.geqrf(ptcore.ones(2, 1)), ptcore.eye(2)).abs()",
     "tensor([[0.7071, 0.7071],\n        [0.7071, 0.7071]])")

for _name in ("linalg_matrix_exp(A)", "matrix_exp(input)"):
    _row(_name, "Exponentials of matrices, ``1 + A + A @ A / 2 + ...``.",
         "ptcore.linalg.matrix_exp(ptcore.tensor([[0., 1.], [0., 0.]]))", "tensor([[1., 1.],\n        [0., 1.]])")

# -- arrays ------------------------------------------------------------------------------------------
_row("linalg_tensorinv(A, ind=2)",
     """The inverse of the map from the dims behind ``ind`` to those before, whose sizes must have one product:
``tensordot(tensorinv(A), A, ind)`` is the identity.""",
     "ptcore.linalg.tensorinv(ptcore.eye(4).reshape(2, 2, 4)).shape", "ptcore.Size([4, 2, 2])", out_dtype="cast")

_row("linalg_tensorsolve(A, B, dims: Obj = None)",
     "X with ``tensordot(A, X, X.ndim) = B``; ``dims`` of A are moved behind the others first.",
     "ptcore.linalg.tensorsolve(ptcore.eye(4).reshape(2, 2, 4), ptcore.ones(2, 2))", "tensor([1., 1., 1., 1.])",
    out_dtype="cast")

_row("linalg_vander(x, *, N: OptInt = None)",
     "A row of powers ``x**0, x**1, ...`` for each element, as many as the last dim has or N.",
     "ptcore.linalg.vander(ptcore.tensor([2, 3]))", "tensor([[1, 2],\n        [1, 3]])", wide=True)

_row("vander(x, N: OptInt = None, increasing=False)",
     "A row of powers for each element of a vector, falling unless ``increasing``.",
     "ptcore.vander(ptcore.tensor([2, 3]))", "tensor([[2, 1],\n        [3, 1]])", method=False, wide=True)

# -- of low rank, by iteration ---------------------------------------------------------------------
composite(
    "lobpcg(A, k: Obj = None, B: Obj = None, X: Obj = None, n: Obj = None, iK: Obj = None, niter: Obj = None, "
    "tol: Obj = None, largest: Obj = None, method: Obj = None, tracker: Obj = None, ortho_iparams: Obj = None, "
    "ortho_fparams: Obj = None, ortho_bparams: Obj = None)", method=False, random=True, file="low_rank",
    returns="tuple[Tensor, Tensor]",
    doc="""Largest or smallest eigenvalues of a symmetric matrix, and their vectors, by conjugate gradients of a block.

Parameters
----------
A : Tensor
    Symmetric matrices ``(*, m, m)``.
k : int, optional
    How many; the number of columns of X unless given, else 1. The matrices must have at least ``3 * n`` rows.
B : Tensor, optional
    Positive definite matrices ``(*, m, m)``: ``A x = e B x`` is solved.
X : Tensor, optional
    Vectors ``(*, m, n)`` to begin with, random ones unless given.
n : int, optional
    How many vectors are iterated, `k` unless given.
iK : Tensor, optional
    Preconditioner ``(*, m, m)``.
niter : int, optional
    Most iterations, 1000 unless given; -1: as many as it takes.
tol : float, optional
    The relative residual to reach, the square root of the dtype's eps unless given.
largest : bool, optional
    Whether the largest (the default) or the smallest.
method : {"ortho", "basic"}, optional
    One method serves both: the basis is orthonormal.
tracker, ortho_iparams, ortho_fparams, ortho_bparams : optional
    Must be None.

Returns
-------
E, X : Tensor
    Eigenvalues ``(*, k)``, the most extreme one first, and vectors ``(*, m, k)``.

Notes
-----
Where A or B requires grad the eigenvalues are those of a full decomposition, which has derivatives of every order.
A. V. Knyazev, SIAM J. Sci. Comput. 23, 517 (2001).

Examples
--------
>>> import ptcore
>>> E, X = ptcore.lobpcg(ptcore.diag(ptcore.arange(1., 10.)), 1)
>>> round(E.item(), 3)
9.0
""")

composite(
    "svd_lowrank(A, q: Obj = 6, niter: Obj = 2, M: OptTensor = None)", method=False, random=True, file="low_rank",
    returns="tuple[Tensor, Tensor, Tensor]",
    doc="""U, S and V of a matrix of rank ``q`` near A (less M, if given), by products with random vectors.

Parameters
----------
A : Tensor
    Matrices ``(*, m, n)``.
q : int
    The rank, somewhat above that of A; at most the smaller size of A counts.
niter : int
    How often the vectors are multiplied with A and its adjoint in turn.
M : Tensor, optional
    What is subtracted from A.

Examples
--------
>>> import ptcore
>>> U, S, V = ptcore.svd_lowrank(ptcore.ones(4, 3), 2)
>>> S.shape
ptcore.Size([2])
""")

composite(
    "pca_lowrank(A, q: Obj = None, center: Obj = True, niter: Obj = 2)", method=False, random=True, file="low_rank",
    returns="tuple[Tensor, Tensor, Tensor]",
    doc="""Principal components: :func:`ptcore.svd_lowrank` of a matrix whose columns are centred.

>>> import ptcore
>>> U, S, V = ptcore.pca_lowrank(ptcore.eye(4, 3), 2)
>>> V.shape
ptcore.Size([3, 2])
""")
