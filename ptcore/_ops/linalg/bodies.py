"""Bodies: systems of equations, factors and inverses of matrices, and functions computed from them."""
from cython.cimports.ptcore._ops._common import wrap_dim

from ptcore._dtype import as_dtype
from ptcore._errors import ChoiceError, DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._interpret import transformed, written_for_later
from ptcore._ops import checked, results
from ptcore._ops.call.run import check_sizes
from ptcore._ops.creation.creation import arange, empty, eye, full, ones, zeros
from ptcore._ops.functions import (
    _geqrf,
    _linalg_cholesky,
    _linalg_det,
    _linalg_eig,
    _linalg_eigh,
    _linalg_householder,
    _linalg_inv,
    _linalg_ldl,
    _linalg_ldl_solve,
    _linalg_lu,
    _linalg_lu_solve,
    _linalg_matrix_exp,
    _linalg_pinv_of,
    _linalg_qr,
    _linalg_slogdet,
    _linalg_solve,
    _linalg_solve_ex,
    _linalg_solve_triangular,
    _linalg_svd,
    _pivot_order,
    abs,
    amax,
    cat,
    clone,
    cumprod,
    expand,
    flip,
    gather,
    log,
    masked_fill,
    maximum,
    reshape,
    slice,
    squeeze,
    sum,
    transpose,
    tril,
    triu,
    unsqueeze,
    where,
)
from ptcore._ops.history import has_values
from ptcore._ops.product.bodies import _square, matmul, product_of
from ptcore._ops.table.ids import op_id
from ptcore._ops.table.shapes import INT32, broadcast_shapes
from ptcore._ops.view.bodies import movedim
from ptcore._state import is_history_recorded, no_grad
from ptcore._tensor import Tensor

_INFINITY = float("inf")
_HOUSEHOLDER = op_id("_linalg_householder")


def _svd_driver(op, A, driver):
    """Checks the driver. On CUDA devices cuSOLVER's names are accepted, but the size decides on the algorithm."""
    names = (None, "gesvd", "gesvdj", "gesvda") if A.device.type == "cuda" else (None,)
    if driver not in names:
        raise RuntimeError(f"{op}: driver must be {' or '.join(map(repr, names))} on {A.device.type}, got {driver!r}")


def linalg_svd(A, full_matrices, driver):
    _svd_driver("linalg_svd", A, driver)
    return results.packed(results.linalg_svd, _linalg_svd(A, full_matrices, True))


def differentiated(x):
    """Whether a derivative of a function of x may be needed: it is recorded, or an interpreter may ask for it."""
    return (x.requires_grad and is_history_recorded()) or x.is_meta or transformed()


def written_or_differentiated(x):
    """Whether a derivative may be needed, now or of the graph that is written. ``differentiated`` is asked where the
    last digits depend on it, and where an op without a derivative raises if one is asked for."""
    return differentiated(x) or written_for_later()


def linalg_svdvals(A, driver):
    """The derivative needs the singular vectors; they are not computed if no derivative is needed."""
    _svd_driver("linalg_svdvals", A, driver)
    return _linalg_svd(A, False, differentiated(A))[1]


def svd(input, some, compute_uv):
    if compute_uv:
        u, s, vh = _linalg_svd(input, not some, True)
        return results.svd((u, s, vh.mH))
    s = linalg_svdvals(input, None)
    batch, m, n = input.shape[:-2], input.shape[-2], input.shape[-1]
    return results.svd((zeros((*batch, m, m), dtype=input.dtype, device=input.device), s,
                         zeros((*batch, n, n), dtype=input.dtype, device=input.device)))


def _numbers(op, x):
    if x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
        raise UnsupportedDTypeError(f"{op}: dtype must be float32, float64, complex64 or complex128, got "
                                    f"{x.dtype.name}")


def _matrices(op, name, x):
    if x.ndim < 2:
        raise ShapeError(f"{op}: {name} must have at least 2 dimensions, got shape {list(x.shape)}")


def _identity(x):
    """Identity matrices of the shape of square matrices."""
    return expand(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)


def _pair(op, A, B):
    """Two stacks of matrices, with the batch dims broadcast."""
    _square(op, A)
    _numbers(op, A)
    _matrices(op, "B", B)
    if A.dtype is not B.dtype:
        raise DTypeError(f"{op}: A and B must have one dtype, got {A.dtype.name} and {B.dtype.name}")
    batch = broadcast_shapes(op, A.shape[:-2], B.shape[:-2])
    return (A if tuple(A.shape[:-2]) == batch else expand(A, (*batch, *A.shape[-2:])),
            B if tuple(B.shape[:-2]) == batch else expand(B, (*batch, *B.shape[-2:])))


def _fitting(op, A, B, left):
    if B.shape[-2 if left else -1] != A.shape[-1]:
        raise ShapeError(f"{op}: A and B do not fit for left={left}, got shapes {list(A.shape)} and {list(B.shape)}")


def t(x):
    return transpose(x, -2, -1)


def adjoint(x):
    x = transpose(x, -2, -1)
    return x.conj() if x.dtype.is_complex else x


# -- equations ---------------------------------------------------------------------------------------
def _equation(op, A, B, left):
    """(A, B, whether B was a vector for each matrix) with the batch dims broadcast."""
    _square(op, A)
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1]))
    if vector:
        if not left:
            raise RuntimeError(f"{op}: left=False needs a matrix B, got shape {list(B.shape)}")
        B = unsqueeze(B, -1)
    A, B = _pair(op, A, B)
    _fitting(op, A, B, left)
    return A, B, vector


def linalg_solve(A, B, left):
    A, B, vector = _equation("linalg_solve", A, B, left)
    if not left:
        return t(_linalg_solve(t(A), t(B)))
    X = _linalg_solve(A, B)
    return squeeze(X, -1) if vector else X


def linalg_solve_ex(A, B, left, check_errors):
    A, B, vector = _equation("linalg_solve_ex", A, B, left)
    X, info = _linalg_solve_ex(A, B, check_errors) if left else _linalg_solve_ex(t(A), t(B), check_errors)
    return results.linalg_solve_ex((squeeze(X, -1) if vector else X if left else t(X), info))


def linalg_inv_ex(A, check_errors):
    _square("linalg_inv_ex", A)
    _numbers("linalg_inv_ex", A)
    return results.packed(results.linalg_inv_ex, _linalg_inv(A, check_errors))


def linalg_solve_triangular(A, B, upper, left, unitriangular):
    op = "linalg_solve_triangular"
    A, B = _pair(op, A, B)
    _fitting(op, A, B, left)
    if not left:
        return t(_linalg_solve_triangular(t(A), t(B), not upper, unitriangular))
    return _linalg_solve_triangular(A, B, upper, unitriangular)


def triangular_solve(input, A, upper, transpose, unitriangular):
    op = "triangular_solve"
    copy = clone(A)
    A, input = _pair(op, A, input)
    _fitting(op, A, input, True)
    if transpose:
        A, upper = t(A), not upper
    return results.triangular_solve((_linalg_solve_triangular(A, input, upper, unitriangular), copy))


def cholesky_solve(input, L, upper):
    op = "cholesky_solve"
    L, input = _pair(op, L, input)
    _fitting(op, L, input, True)
    if upper:
        L = adjoint(L)
    return _linalg_solve_triangular(adjoint(L), _linalg_solve_triangular(L, input, False, False), True, False)


def cholesky_inverse(input, upper):
    _square("cholesky_inverse", input)
    return cholesky_solve(_identity(input), input, upper)


def linalg_lstsq(A, B, rcond, driver):
    op = "linalg_lstsq"
    _matrices(op, "A", A)
    _numbers(op, A)
    if A.dtype is not B.dtype:
        raise DTypeError(f"{op}: A and B must have one dtype, got {A.dtype.name} and {B.dtype.name}")
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{op}: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', got {driver!r}")
    vector = B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1])
    if vector:
        B = unsqueeze(B, -1)
    if B.ndim < 2 or B.shape[-2] != A.shape[-2]:
        raise ShapeError(f"{op}: A and B must have equally many rows, got shapes {list(A.shape)} and {list(B.shape)}")
    m, n = A.shape[-2:]
    rtol = _epsilon(A) * max_of(m, n) if rcond is None else checked.real(op, "rcond", rcond)
    rtol = 0.0 if driver == "gels" else rtol
    found = _of_full_rank(A, B, rtol) if driver in ("gels", "gelsy") else None
    if found is None:
        P, s, kept = _pseudoinverse(A, None, rtol)
        X, rank = matmul(P, B), sum(kept, -1)
    else:
        X, s, rank = found
    residuals = empty((0,), dtype=s.dtype, device=A.device)
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all())):
        error = matmul(A, X) - B
        residuals = sum(abs(error) ** 2, -2)
    elif X.requires_grad:               # empty, with a history as PyTorch's
        residuals = abs(reshape(X, (-1,))[:0])
    if driver == "gels":
        rank = empty((0,), dtype=rank.dtype, device=A.device)
    if driver not in ("gelsd", "gelss"):
        s = empty((0,), dtype=s.dtype, device=A.device)
    return results.linalg_lstsq((squeeze(X, -1) if vector else X, residuals, rank, s))


def _of_full_rank(A, B, rtol):
    """(X of least norm that makes ``norm(A X - B)`` least, no singular values, the ranks) by QR factors; None where a
    matrix may have a singular value up to ``rtol`` times the largest, or where values are not known.

    With ``A = Q R`` the ratio of the singular values is at least ``1 / (norm(R) norm(R^-1))``, in Frobenius norms.
    """
    m, n = A.shape[-2:]
    if not A.is_cpu or not has_values(A) or not A.numel():
        return None
    with no_grad():
        x = A.detach()
        Q, R = _linalg_qr(x if m >= n else adjoint(x), "reduced")
        k = R.shape[-1]
        inverse = linalg_solve_triangular(R, eye(k, dtype=R.dtype), True, True, False)
        product = sum(abs(R) ** 2, (-2, -1)) * sum(abs(inverse) ** 2, (-2, -1))
        if not bool((product < (rtol ** -2 if rtol > 0 else _INFINITY)).all()):
            return None
        left, right = (inverse, adjoint(Q)) if m >= n else (Q, adjoint(inverse))
    if A.requires_grad and is_history_recorded():
        with no_grad():
            P = matmul(left, right)
        X = matmul(_linalg_pinv_of(P, A), B)
    else:
        X = matmul(left, matmul(right, B))
    return X, empty((0,), dtype=product.dtype), full(A.shape[:-2], k, dtype=as_dtype("int64"))


def max_of(a, b):
    return a if a > b else b


# -- inverses and determinants -----------------------------------------------------------------------
def linalg_inv(A):
    _square("linalg_inv", A)
    _numbers("linalg_inv", A)
    return _linalg_inv(A, True)[0]


def inverse(input):
    return linalg_inv(input)


def linalg_det(A):
    _numbers("linalg_det", A)
    return _linalg_det(A)


def det(input):
    return linalg_det(input)


def linalg_slogdet(A):
    _numbers("linalg_slogdet", A)
    return results.packed(results.linalg_slogdet, _linalg_slogdet(A))


def slogdet(input):
    return results.packed(results.slogdet, linalg_slogdet(input))


def logdet(input):
    sign, size = linalg_slogdet(input)
    return size + log(sign)


def _epsilon(x):
    return 2.0 ** -23 if x.dtype.name in ("float32", "complex64") else 2.0 ** -52


def _tolerance(op, name, value, like):
    """A number, or a tensor with a number for each matrix, with a dim added for the singular values."""
    if isinstance(value, Tensor):
        if value.dtype.is_complex:
            raise DTypeError(f"{op}: {name} must be real, got {value.dtype.name}")
        return unsqueeze(value, -1)
    return checked.real(op, name, value)


def _limit(op, A, largest, atol, rtol):
    """The limit below which a singular value counts as zero; defaults are those of PyTorch."""
    given = atol is not None
    atol = 0.0 if atol is None else _tolerance(op, "atol", atol, largest)
    if rtol is not None:
        rtol = _tolerance(op, "rtol", rtol, largest)
    elif not given:
        rtol = _epsilon(A) * max_of(A.shape[-2], A.shape[-1])
    else:
        rtol = 0.0
        if isinstance(atol, Tensor):
            rtol = where(atol > 0, 0.0, _epsilon(A) * max_of(A.shape[-2], A.shape[-1]))
        elif not atol > 0:
            rtol = _epsilon(A) * max_of(A.shape[-2], A.shape[-1])
    relative = largest * rtol
    if isinstance(atol, Tensor) or atol > 0:
        return maximum(relative, atol if isinstance(atol, Tensor) else full((), atol, dtype=relative.dtype,
                                                                            device=relative.device))
    return relative


def _values(A, hermitian):
    """Singular values, descending; for Hermitian matrices the moduli of eigenvalues."""
    return abs(linalg_eigvalsh(A, "L")) if hermitian else linalg_svdvals(A, None)


def _pseudoinverse(A, atol, rtol, op="linalg_lstsq", hermitian=False):
    """(pseudoinverse, singular values, mask of the nonzero ones)."""
    with no_grad():
        x = A.detach()
        if hermitian:
            values, u = _linalg_eigh(x, True, True)
            s, right = abs(values), u
        else:
            u, s, vh = _linalg_svd(x, False, True)
            values, right = s, adjoint(vh)
        if s.shape[-1] == 0:
            kept = s > 0
        else:
            kept = s > _limit(op, A, amax(s, -1, True), atol, rtol)
        inverted = where(kept, 1 / masked_fill(values, kept.logical_not(), 1), 0).to(s.dtype)
        P = matmul(right * unsqueeze(inverted, -2), adjoint(u))
    return _linalg_pinv_of(P, A), s, kept


def linalg_pinv(A, rtol, atol, hermitian):
    op = "linalg_pinv"
    _matrices(op, "A", A)
    _numbers(op, A)
    if hermitian:
        _square(op, A)
    return _pseudoinverse(A, atol, rtol, op, hermitian)[0]


def pinverse(input, rcond):
    return linalg_pinv(input, rcond, None, False)


# -- factors -----------------------------------------------------------------------------------------
def linalg_cholesky(A, upper):
    _square("linalg_cholesky", A)
    _numbers("linalg_cholesky", A)
    return _linalg_cholesky(A, upper, True)[0]


def cholesky(input, upper):
    return linalg_cholesky(input, upper)


def linalg_cholesky_ex(A, upper, check_errors):
    _square("linalg_cholesky_ex", A)
    _numbers("linalg_cholesky_ex", A)
    return results.packed(results.linalg_cholesky_ex, _linalg_cholesky(A, upper, check_errors))


def linalg_qr(A, mode):
    """Factors a wide matrix by its first columns; the derivative of the other columns follows from these."""
    op = "linalg_qr"
    _matrices(op, "A", A)
    _numbers(op, A)
    if not isinstance(mode, str):
        raise TypeError(f"{op}: mode must be a str, got {type(mode).__name__}")
    if mode not in ("reduced", "complete", "r"):
        raise ChoiceError(f"{op}: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    m, n = A.shape[-2:]
    if m < n and mode != "r":
        Q, R = _linalg_qr(slice(A, -1, 0, m, 1), "reduced")
        R = cat([R, matmul(adjoint(Q), slice(A, -1, m, n, 1))], -1)
    else:
        Q, R = _linalg_qr(A, mode)
    return results.linalg_qr((Q, R))


def qr(input, some):
    return results.qr(linalg_qr(input, "reduced" if some else "complete"))


def _lower(op, UPLO):
    if not isinstance(UPLO, str) or UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"{op}: UPLO must be 'L' or 'U', got {UPLO!r}")
    return UPLO in ("L", "l")


def linalg_eigh(A, UPLO):
    op = "linalg_eigh"
    _square(op, A)
    _numbers(op, A)
    return results.packed(results.linalg_eigh, _linalg_eigh(A, _lower(op, UPLO), True))


def linalg_eigvalsh(A, UPLO):
    op = "linalg_eigvalsh"
    _square(op, A)
    _numbers(op, A)
    return _linalg_eigh(A, _lower(op, UPLO), differentiated(A))[0]


# -- numbers -----------------------------------------------------------------------------------------
def linalg_matrix_rank(A, tol, hermitian, atol, rtol):
    op = "linalg_matrix_rank"
    _matrices(op, "A", A)
    _numbers(op, A)
    if tol is not None:
        if atol is not None or rtol is not None:
            raise TypeError(f"{op}: tol and atol or rtol cannot both be given")
        atol, rtol = tol, 0.0
    if hermitian:
        _square(op, A)
    s = _values(A.detach(), hermitian)
    if s.shape[-1] == 0:
        return zeros(s.shape[:-1], dtype="int64", device=A.device)
    return sum(s > _limit(op, A, amax(s, -1, True), atol, rtol), -1)


# -- elimination -------------------------------------------------------------------------------------
def _pivoting(op, A, pivot):
    _matrices(op, "A", A)
    _numbers(op, A)
    if not pivot and A.device.type != "cuda":
        raise RuntimeError(f"{op}: LU without pivoting is not implemented on {A.device.type}")


def linalg_lu_factor_ex(A, pivot, check_errors):
    _pivoting("linalg_lu_factor_ex", A, pivot)
    return results.packed(results.linalg_lu_factor_ex, _linalg_lu(A, check_errors, pivot))


def linalg_lu_factor(A, pivot):
    _pivoting("linalg_lu_factor", A, pivot)
    return results.linalg_lu_factor(_linalg_lu(A, True, pivot)[:2])


def linalg_lu(A, pivot):
    _pivoting("linalg_lu", A, pivot)
    factors, pivots, _ = _linalg_lu(A, False, pivot)
    return results.linalg_lu(_unpacked(factors, pivots, True, pivot))


def lu(input, pivot, get_infos):
    _pivoting("lu", input, pivot)
    factors, pivots, info = _linalg_lu(input, not get_infos, pivot)
    return results.linalg_lu_factor_ex((factors, pivots, info)) if get_infos else (factors, pivots)


def _pivots(op, name, x, pivots):
    if pivots.dtype is not INT32:
        raise DTypeError(f"{op}: {name} must be int32, got {pivots.dtype.name}")
    expected = (*x.shape[:-2], min(x.shape[-2:]))
    if tuple(pivots.shape) != expected:
        raise ShapeError(f"{op}: {name} must have shape {list(expected)} beside factors of shape {list(x.shape)}, got "
                         f"{list(pivots.shape)}")


def _unpacked(x, pivots, data, swaps):
    m, n = x.shape[-2:]
    k = m if m < n else n
    P = L = U = empty((0,), dtype=x.dtype, device=x.device)
    if swaps:
        order = _pivot_order(pivots, m)
        P = (unsqueeze(order, -2) == unsqueeze(arange(m, device=x.device), -1)).to(x.dtype)
    if data:
        L = tril(slice(x, -1, 0, k, 1), -1) + eye(m, k, dtype=x.dtype, device=x.device)
        U = triu(slice(x, -2, 0, k, 1), 0)
    return P, L, U


def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    _matrices("lu_unpack", "LU_data", LU_data)
    _numbers("lu_unpack", LU_data)
    _pivots("lu_unpack", "LU_pivots", LU_data, LU_pivots)
    return results.lu_unpack(_unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots))


def _reordered(x, order, back):
    """The rows of ``P^T x``, or of ``P x`` if ``back``."""
    if back:
        order = order.argsort(-1)
    return gather(x, x.ndim - 2, expand(unsqueeze(order, -1), x.shape))


def _lu_solved(op, LU, pivots, B, left, adjoint_of):
    _square(op, LU)
    _pivots(op, "pivots", LU, pivots)
    LU, B = _pair(op, LU, B)
    _fitting(op, LU, B, left)
    pivots = expand(pivots, LU.shape[:-1])
    if not left:
        B = adjoint(B) if adjoint_of else t(B)
    turned = left == adjoint_of             # A^H X = B, or A^T X = B
    if not (written_or_differentiated(LU) or written_or_differentiated(B) or (turned and left and LU.dtype.is_complex)):
        X = _linalg_lu_solve(LU, pivots, B, turned)
        return X if left else adjoint(X) if adjoint_of else t(X)
    order = _pivot_order(clone(pivots), LU.shape[-1])
    if not turned:                          # A X = B, with A = P L U
        X = _linalg_solve_triangular(LU, _reordered(B, order, False), False, True)
        X = _linalg_solve_triangular(LU, X, True, False)
    else:
        flipped = adjoint(LU) if left else t(LU)
        X = _linalg_solve_triangular(flipped, B, False, False)
        X = _reordered(_linalg_solve_triangular(flipped, X, True, True), order, True)
    return X if left else adjoint(X) if adjoint_of else t(X)


def linalg_lu_solve(LU, pivots, B, left, adjoint):
    return _lu_solved("linalg_lu_solve", LU, pivots, B, left, adjoint)


def lu_solve(input, LU_data, LU_pivots):
    return _lu_solved("lu_solve", LU_data, LU_pivots, input, True, False)


def linalg_ldl_factor_ex(A, hermitian, check_errors):
    _square("linalg_ldl_factor_ex", A)
    _numbers("linalg_ldl_factor_ex", A)
    return results.packed(results.linalg_ldl_factor_ex, _linalg_ldl(A, hermitian, check_errors))


def linalg_ldl_factor(A, hermitian):
    _square("linalg_ldl_factor", A)
    _numbers("linalg_ldl_factor", A)
    return results.linalg_ldl_factor(_linalg_ldl(A, hermitian, True)[:2])


def linalg_ldl_solve(LD, pivots, B, hermitian):
    op = "linalg_ldl_solve"
    _square(op, LD)
    if pivots.dtype.kind in "iu":
        pivots = pivots.to(INT32)
    _pivots(op, "pivots", LD, pivots)
    LD, B = _pair(op, LD, B)
    _fitting(op, LD, B, True)
    return _linalg_ldl_solve(LD, expand(pivots, LD.shape[:-1]), B, hermitian)


# -- eigenvalues, reflectors, exponentials -----------------------------------------------------------
def linalg_eig(A):
    _square("linalg_eig", A)
    _numbers("linalg_eig", A)
    return results.packed(results.linalg_eig, _linalg_eig(A, True))


def linalg_eigvals(A):
    _square("linalg_eigvals", A)
    _numbers("linalg_eigvals", A)
    return _linalg_eig(A, differentiated(A))[0]


def geqrf(input):
    _matrices("geqrf", "input", input)
    _numbers("geqrf", input)
    return results.packed(results.geqrf, _geqrf(input))


def linalg_householder_product(A, tau):
    op = "linalg_householder_product"
    _matrices(op, "A", A)
    _numbers(op, A)
    if not (differentiated(A) or differentiated(tau)):
        return _linalg_householder(A, tau)
    return householder_by_ops(A, tau)


def householder_by_ops(A, tau):
    """``_linalg_householder`` as ops that have derivatives."""
    check_sizes(_HOUSEHOLDER, (A, tau))
    m, n = A.shape[-2:]
    Q = eye(m, n, dtype=A.dtype, device=A.device)
    v = tril(A, -1) + Q
    for i in range(tau.shape[-1] - 1, -1, -1):
        column = slice(v, -1, i, i + 1, 1)
        Q = Q - unsqueeze(slice(tau, -1, i, i + 1, 1), -1) * matmul(column, matmul(adjoint(column), Q))
    return where(zeros(A.shape, dtype=as_dtype("bool"), device=A.device), A, Q) if tau.shape[-1] == 0 else Q


def orgqr(input, tau):
    return linalg_householder_product(input, tau)


def ormqr(input, tau, other, left, transpose):
    """Multiplies by the square matrix that the reflectors make."""
    op = "ormqr"
    _matrices(op, "input", input)
    _matrices(op, "other", other)
    _numbers(op, input)
    m, n = input.shape[-2:]
    size = other.shape[-2 if left else -1]
    if m != size or tau.ndim != input.ndim - 1 or tau.shape[-1] > min(m, n) \
            or tuple(other.shape[:-2]) != tuple(input.shape[:-2]) or tau.shape[:-1] != input.shape[:-2]:
        raise ShapeError(f"{op}: input, tau and other do not fit for left={left}, got shapes {list(input.shape)}, "
                         f"{list(tau.shape)} and {list(other.shape)}")
    for name, x in (("tau", tau), ("other", other)):
        if x.dtype is not input.dtype:
            raise DTypeError(f"{op}: {name} must have input's dtype {input.dtype.name}, got {x.dtype.name}")
    square = slice(input, -1, 0, m, 1) if n >= m else cat(
        [input, zeros((*input.shape[:-1], m - n), dtype=input.dtype, device=input.device)], -1)
    Q = linalg_householder_product(square, tau)
    if transpose:
        Q = adjoint(Q)
    return matmul(Q, other) if left else matmul(other, Q)


def linalg_matrix_exp(A):
    _square("linalg_matrix_exp", A)
    if A.dtype.name in ("float16", "bfloat16"):
        return _linalg_matrix_exp(A.to(as_dtype("float32"))).to(A.dtype)
    _numbers("linalg_matrix_exp", A)
    return _linalg_matrix_exp(A)


def matrix_exp(input):
    return linalg_matrix_exp(input)


# -- arrays ------------------------------------------------------------------------------------------
def linalg_tensorinv(A, ind):
    op = "linalg_tensorinv"
    if ind <= 0:
        raise RuntimeError(f"{op}: ind must be positive, got {ind}")
    before, behind = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    n = product_of(before)
    if n != product_of(behind):
        raise ShapeError(f"{op}: the sizes before and behind ind={ind} must have one product, got shape "
                         f"{list(A.shape)}")
    return reshape(linalg_inv(reshape(A, (n, n))), behind + before)


def linalg_tensorsolve(A, B, dims):
    op = "linalg_tensorsolve"
    if dims is not None:
        moved = [wrap_dim(op, d, A.ndim, "dims") for d in checked.integers(op, "dims", dims)]
        if len(moved) > A.ndim:
            raise ShapeError(f"{op}: dims must name at most {A.ndim} dims, got {len(moved)}")
        A = movedim(A, moved, list(range(A.ndim - len(moved), A.ndim)))
    rest = tuple(A.shape[B.ndim:])
    n = product_of(rest)
    if A.numel() != n * n or B.numel() != n:
        raise ShapeError(f"{op}: B must have as many elements as the solution, whose shape is {list(rest)}, got shapes "
                         f"{list(A.shape)} and {list(B.shape)}")
    return reshape(linalg_solve(reshape(A, (n, n)), reshape(B, (n,)), True), rest)


def _powers(x, n):
    """x**0, ..., x**(n - 1) along a new last dim."""
    if x.dtype.kind in "bui":
        x = x.to("int64")
    x = unsqueeze(x, -1)
    one = ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
    if n < 2:
        return slice(one, -1, 0, n, 1)
    return cat([one, cumprod(expand(x, (*x.shape[:-1], n - 1)), -1)], -1)


def linalg_vander(x, N):
    op = "linalg_vander"
    if not x.ndim:
        x = reshape(x, (1,))
    if N is not None and checked.integer(op, "N", N) <= 1:
        raise RuntimeError(f"{op}: N must be greater than 1, got {N}")
    return _powers(x, x.shape[-1] if N is None else N)


def vander(x, N, increasing):
    if x.ndim != 1:
        raise ShapeError(f"vander: x must be a vector, got shape {list(x.shape)}")
    if N is not None and checked.integer("vander", "N", N) < 0:
        raise RuntimeError(f"vander: N must not be negative, got {N}")
    powers = _powers(x, x.shape[0] if N is None else N)
    return powers if increasing else flip(powers, (1,))
