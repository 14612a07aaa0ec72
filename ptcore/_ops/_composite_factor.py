"""Functions behind the rows of factor.py."""
from ptcore._errors import ChoiceError, DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._ops import _arguments, _results
from ptcore._ops._composite import differentiated, linalg_svdvals, matmul
from ptcore._ops._composite_products import _matrix_norm, _square
from ptcore._ops._creation import empty, eye, full, zeros
from ptcore._ops._functions_arithmetic import abs, masked_fill, maximum, where
from ptcore._ops._functions_copy import cat
from ptcore._ops._functions_factor import (
    _linalg_cholesky,
    _linalg_det,
    _linalg_eigh,
    _linalg_pinv_of,
    _linalg_qr,
    _linalg_slogdet,
    _linalg_solve,
    _linalg_solve_triangular,
)
from ptcore._ops._functions_linalg import _linalg_svd
from ptcore._ops._functions_math import log
from ptcore._ops._functions_reduction import amax, sum
from ptcore._ops._functions_view import expand, select, slice, squeeze, transpose, unsqueeze
from ptcore._ops._shapes import broadcast_shapes
from ptcore._state import no_grad
from ptcore._tensor import Tensor

_INFINITY = float("inf")


def _numbers(op, x):
    if x.dtype.kind not in "fc" or x.dtype.itemsize == 2:
        raise UnsupportedDTypeError(f"{op}: input must be float32, float64, complex64 or complex128, got "
                                    f"{x.dtype.name}")


def _matrices(op, name, x):
    if x.ndim < 2:
        raise ShapeError(f"{op}: {name} must have at least 2 dimensions, got shape {list(x.shape)}")


def _identity(x):
    """Identity matrices beside square matrices."""
    return expand(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)


def _pair(op, A, B):
    """Two stacks of matrices with the batch dims broadcast."""
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

def linalg_solve(A, B, left):
    op = "linalg_solve"
    _square(op, A)
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1]))
    if vector:
        if not left:
            raise RuntimeError(f"{op}: left=False needs a matrix B, got shape {list(B.shape)}")
        B = unsqueeze(B, -1)
    A, B = _pair(op, A, B)
    _fitting(op, A, B, left)
    if not left:
        return t(_linalg_solve(t(A), t(B)))
    X = _linalg_solve(A, B)
    return squeeze(X, -1) if vector else X


def linalg_solve_triangular(A, B, upper, left, unitriangular):
    op = "linalg_solve_triangular"
    A, B = _pair(op, A, B)
    _fitting(op, A, B, left)
    if not left:
        return t(_linalg_solve_triangular(t(A), t(B), not upper, unitriangular))
    return _linalg_solve_triangular(A, B, upper, unitriangular)


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
    rtol = _epsilon(A) * max_of(m, n) if rcond is None else _arguments.real(op, "rcond", rcond)
    P, s, kept = _pseudoinverse(A, None, 0.0 if driver == "gels" else rtol)
    X = matmul(P, B)
    rank = sum(kept, -1)
    residuals = empty((0,), dtype=s.dtype, device=A.device)
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all())):
        error = matmul(A, X) - B
        residuals = sum(abs(error) ** 2, -2)
    if driver == "gels":
        rank = empty((0,), dtype=rank.dtype, device=A.device)
    if driver not in ("gelsd", "gelss"):
        s = empty((0,), dtype=s.dtype, device=A.device)
    return _results.linalg_lstsq((squeeze(X, -1) if vector else X, residuals, rank, s))


def max_of(a, b):
    return a if a > b else b


# -- inverses and determinants -----------------------------------------------------------------------

def linalg_inv(A):
    _square("linalg_inv", A)
    _numbers("linalg_inv", A)
    return _linalg_solve(A, _identity(A))


def inverse(input):
    return linalg_inv(input)


def linalg_det(A):
    _numbers("linalg_det", A)
    return _linalg_det(A)


def det(input):
    return linalg_det(input)


def linalg_slogdet(A):
    _numbers("linalg_slogdet", A)
    return _results.packed(_results.linalg_slogdet, _linalg_slogdet(A))


def slogdet(input):
    return _results.packed(_results.slogdet, linalg_slogdet(input))


def logdet(input):
    sign, size = linalg_slogdet(input)
    return size + log(sign)


def _epsilon(x):
    return 2.0 ** -23 if x.dtype.name in ("float32", "complex64") else 2.0 ** -52


def _tolerance(op, name, value, like):
    """A number, or a tensor of numbers for the batch, with a dim for the values."""
    if isinstance(value, Tensor):
        if value.dtype.is_complex:
            raise DTypeError(f"{op}: {name} must be real, got {value.dtype.name}")
        return unsqueeze(value, -1)
    return _arguments.real(op, name, value)


def _limit(op, A, largest, atol, rtol):
    """Up to which a singular value counts as zero, the defaults being those of PyTorch."""
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
    """Singular values, descending, or the moduli of eigenvalues."""
    return abs(linalg_eigvalsh(A, "L")) if hermitian else linalg_svdvals(A, None)


def _pseudoinverse(A, atol, rtol, op="linalg_lstsq", hermitian=False):
    """(pseudoinverse, singular values, which of them are not zero)."""
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
    return _results.packed(_results.linalg_cholesky_ex, _linalg_cholesky(A, upper, check_errors))


def linalg_qr(A, mode):
    """A wide matrix is factored by its first columns, from which the derivative of the others follows."""
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
    return _results.linalg_qr((Q, R))


def qr(input, some):
    return _results.qr(linalg_qr(input, "reduced" if some else "complete"))


def _lower(op, UPLO):
    if not isinstance(UPLO, str) or UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"{op}: UPLO must be 'L' or 'U', got {UPLO!r}")
    return UPLO in ("L", "l")


def linalg_eigh(A, UPLO):
    op = "linalg_eigh"
    _square(op, A)
    _numbers(op, A)
    return _results.packed(_results.linalg_eigh, _linalg_eigh(A, _lower(op, UPLO), True))


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


def linalg_cond(A, p):
    op = "linalg_cond"
    _matrices(op, "A", A)
    _numbers(op, A)
    if p is not None and not isinstance(p, str):
        p = _arguments.real(op, "p", p)
    if p is None or p in (2, -2):
        s = linalg_svdvals(A, None)
        if s.shape[-1] == 0:
            return zeros(s.shape[:-1], dtype=s.dtype, device=s.device)
        largest, smallest = select(s, -1, 0), select(s, -1, s.shape[-1] - 1)
        return smallest / largest if p == -2 else largest / smallest
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"{op}: p must be None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {p!r}")
    _square(op, A)
    if A.numel() == 0:
        return zeros(A.shape[:-2], dtype=abs(A).dtype, device=A.device)
    singular = linalg_det(A.detach()) == 0
    safe = where(unsqueeze(unsqueeze(singular, -1), -1), _identity(A), A)
    size = _matrix_norm(op, A, p, (-2, -1), False, None)
    return masked_fill(size * _matrix_norm(op, linalg_inv(safe), p, (-2, -1), False, None), singular, _INFINITY)
