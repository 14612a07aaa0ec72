"""Rows: systems of equations, factors and inverses of matrices, and what is worked out from them."""
from ptcore._ops._schema import COMPLEX, composite, structured

_TYPES = ("float32", "float64", *COMPLEX)


def _factor(signature, kernel, out, text, **columns):
    name = signature.partition("(")[0]
    structured(signature, types=_TYPES, promote="none", kernel=kernel, out=out, internal=True,
               called=columns.pop("called", name[1:]), autocast="high", doc=text, **columns)


_factor("_linalg_solve(A, B)", "solve", "solve_spec('linalg_solve', A, B)",
        "The solutions of ``A X = B`` for batches of one shape.", node="LinalgSolveExBackward0",
        jvp=["-_linalg_solve(x, matmul(t, out))", "_linalg_solve(x, t)"], reference="linalg.solve(x, B)")
_factor("_linalg_solve_triangular(A, B, upper: Bool, unitriangular: Bool)", "solve_triangular",
        "solve_spec('linalg_solve_triangular', A, B)",
        "The solutions of ``A X = B`` where A is a triangle, for batches of one shape.",
        jvp=["triangular_forward(t, x, out, upper, unitriangular)",
             "_linalg_solve_triangular(x, t, upper, unitriangular)"],
        node="LinalgSolveTriangularBackward0", reference="_solve_triangular(x, B, upper, unitriangular)")
_factor("_linalg_cholesky(A, upper: Bool, check: Bool)", "cholesky", "cholesky_spec(A)",
        "The Cholesky factor and which leading minor of each matrix is not positive, 0 if all are.",
        fields=("L", "info"), node="LinalgCholeskyExBackward0", jvp="rule", reference="_cholesky(x, upper)")
_factor('_linalg_qr(A, mode: "reduced|complete|r")', "qr", "qr_spec(A, mode)",
        "An orthogonal factor, empty for mode r, and an upper triangle.",
        fields=("Q", "R"), node="LinalgQrBackward0", jvp="rule", reference="_qr(x, mode)")
_factor("_linalg_eigh(A, lower: Bool, vectors: Bool)", "eigh", "eigh_spec(A, vectors)",
        "Eigenvalues, ascending, of matrices that equal their adjoint, and the eigenvectors or nothing.",
        fields=("eigenvalues", "eigenvectors"), node="LinalgEighBackward0", jvp="rule",
        reference="_eigh(x, lower)")
_factor("_linalg_det(A)", "det", "(square('linalg_det', A)[:-2], A.dtype)", "Determinants.",
        node="LinalgDetBackward0", jvp="rule", reference="linalg.det(x)")
_factor("_linalg_slogdet(A)", "slogdet", "slogdet_spec(A)",
        "The signs of determinants, or their directions, and the logarithms of their moduli.",
        fields=("sign", "logabsdet"), node="LinalgSlogdetBackward0", jvp="rule", reference="linalg.slogdet(x)")
_factor("_linalg_pinv_of(P: Index, A)", "copy", "like(P, A.dtype)",
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
     "ptcore.cholesky_solve(ptcore.ones(1, 1), ptcore.tensor([[2.]]))", "tensor([[0.2500]])")
_row("cholesky_inverse(input, upper=False)", "The inverse of the matrix whose Cholesky factor ``input`` is.",
     "ptcore.cholesky_inverse(ptcore.tensor([[2.]]))", "tensor([[0.2500]])")
_row("linalg_lstsq(A, B, rcond: Obj = None, *, driver: Obj = None)",
     """X of least norm that makes ``norm(A X - B)`` least, with the residuals (where A has full rank and more rows than
columns), the ranks and, for the drivers "gelsd" and "gelss", the singular values. Singular values up to
``rcond`` times the largest count as zero.""",
     f"ptcore.linalg.lstsq({_EXAMPLE}, ptcore.ones(2, 1)).solution", "tensor([[0.5000],\n        [0.2500]])")

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
     f"ptcore.linalg.pinv({_EXAMPLE})", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")
_row("pinverse(input, rcond: Float = 1e-15)", "Pseudoinverses; see :func:`ptcore.linalg.pinv`.",
     f"ptcore.pinverse({_EXAMPLE})", "tensor([[0.5000, 0.0000],\n        [0.0000, 0.2500]])")

# -- factors -----------------------------------------------------------------------------------------

for _name in ("linalg_cholesky(A, *, upper=False)", "cholesky(input, upper=False)"):
    _row(_name, """Lower triangle L with ``A = L @ L.mH``, or its adjoint if ``upper``.

Raises LinAlgError where a matrix is not positive-definite.""",
         "ptcore.linalg.cholesky(ptcore.tensor([[4., 2.], [2., 5.]]))",
         "tensor([[2., 0.],\n        [1., 2.]])")
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
     f"ptcore.linalg.matrix_rank({_EXAMPLE})", "tensor(2)")
_row("linalg_cond(A, p: Obj = None)",
     """Condition numbers: the norm of a matrix times that of its inverse, in the norm ``p`` of
:func:`ptcore.linalg.matrix_norm`; None: the ratio of the extreme singular values.""",
     f"ptcore.linalg.cond({_EXAMPLE})", "tensor(2.)")
