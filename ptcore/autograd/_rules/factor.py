"""Rules of equations, factors and determinants.

Factors are functions of matrices that equal their adjoint, or are defined up to the gauge of their vectors: see
linalg.py."""
from ptcore._ops._creation import eye, ones
from ptcore._ops._functions_composite import matmul
from ptcore._ops._functions_copy import cat, tril, triu
from ptcore._ops._functions_factor import _linalg_solve, _linalg_solve_triangular
from ptcore._ops._functions_linalg import _linalg_svd
from ptcore._ops._functions_reduction import sum as sum_of
from ptcore._ops._functions_scan import cumprod
from ptcore._ops._functions_view import diagonal, expand, imag, real, slice, transpose, unsqueeze
from ptcore._ops._record import has_values
from ptcore.autograd._helpers import adjoint, conj_of
from ptcore.autograd._rules import jvp, vjp
from ptcore.autograd._rules.linalg import check_gauge


def identity(x):
    return eye(x.shape[-1], dtype=x.dtype, device=x.device)


def as_matrix(x):
    return unsqueeze(unsqueeze(x, -1), -1)


# -- equations ---------------------------------------------------------------------------------------

@vjp("_linalg_solve")
def solve(g, A, out, needs):
    gb = _linalg_solve(adjoint(A), g)
    return -matmul(gb, adjoint(out)) if needs & 1 else None, gb


@vjp("_linalg_solve_triangular")
def solve_triangular(g, A, out, upper, unitriangular, needs):
    gb = _linalg_solve_triangular(adjoint(A), g, not upper, unitriangular)
    ga = None
    if needs & 1:
        off = 1 if unitriangular else 0
        ga = -matmul(gb, adjoint(out))
        ga = triu(ga, off) if upper else tril(ga, -off)
    return ga, gb


# -- Cholesky ----------------------------------------------------------------------------------------

def right_divided(x, triangle, upper):
    """``x @ inv(triangle)``."""
    a, b = transpose(triangle, -2, -1), transpose(x, -2, -1)
    return transpose(_linalg_solve_triangular(a, b, not upper, False), -2, -1)


@vjp("_linalg_cholesky")
def cholesky(gs, out, upper):
    g = gs[0]
    if g is None:
        return None
    factor, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    m = matmul(adjoint(factor), g)
    m = tril(m, 0) + adjoint(tril(m, -1))
    m = _linalg_solve_triangular(adjoint(factor), m, True, False)
    m = right_divided(m, factor, False) * 0.5
    return (m + adjoint(m)) * 0.5


@jvp("_linalg_cholesky")
def cholesky_forward(t, out, upper):
    factor = adjoint(out) if upper else out
    p = _linalg_solve_triangular(factor, t, False, False)
    p = right_divided(p, adjoint(factor), True)
    p = (p + adjoint(p)) * 0.5
    p = (tril(p, 0) + tril(p, -1)) * 0.5
    d = matmul(factor, p)
    return adjoint(d) if upper else d, None


# -- QR ----------------------------------------------------------------------------------------------

def hermitian_of(x):
    """x + x^H of a triangle, its diagonal's real part counted once."""
    both = x + adjoint(x)
    return both - identity(x) * both * 0.5


def checked(A, mode):
    m, n = A.shape[-2:]
    if mode == "r":
        raise RuntimeError("linalg_qr: the derivative depends on Q, which mode 'r' does not work out")
    if mode == "complete" and m > n:
        raise RuntimeError("linalg_qr: with mode 'complete' there is no derivative for more rows than columns, got "
                           f"shape {list(A.shape)}")
    if m < n:
        raise RuntimeError("linalg_qr: the factors of a wide matrix are differentiated through those of its first "
                           "columns")


@vjp("_linalg_qr")
def qr(gs, A, out, out1, mode):
    gq, gr = gs
    checked(A, mode)
    q, r = out, out1
    if gq is None and gr is None:
        return None
    m = None
    if gr is not None:
        m = matmul(gr, adjoint(r))
    if gq is not None:
        part = matmul(adjoint(q), gq)
        m = -part if m is None else m - part
    ga = matmul(q, hermitian_of(triu(m, 0)))
    if gq is not None:
        ga = ga + gq
    return right_divided(ga, adjoint(r), False)


@jvp("_linalg_qr")
def qr_forward(t, A, out, out1, mode):
    checked(A, mode)
    q, r = out, out1
    x = right_divided(t, r, True)
    c = matmul(adjoint(q), x)
    u = triu(c + adjoint(c), 0)
    u = u - identity(u) * u * 0.5
    return x - matmul(q, u), matmul(u, r)


# -- eigenvalues -------------------------------------------------------------------------------------

def needs_vectors(vectors):
    if not vectors:
        raise RuntimeError("linalg_eigh: the derivative needs the eigenvectors")


@vjp("_linalg_eigh")
def eigh(gs, out, out1, vectors):
    """Q (diag(gL) + skew part of Q^H gQ / E) Q^H with E[i, j] = L[j] - L[i]."""
    gl, gq = gs
    needs_vectors(vectors)
    values, q = out, out1
    if gq is None:
        return None if gl is None else matmul(q * unsqueeze(gl, -2), adjoint(q))
    one = eye(values.shape[-1], dtype=values.dtype, device=values.device)
    m = matmul(adjoint(q), gq)
    if q.dtype.is_complex and q.device.type != "meta":
        check_gauge(m, None)
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1) + one
    core = (m - one * m) / gaps
    if gl is not None:
        core = core + one * unsqueeze(gl, -1)
    return matmul(matmul(q, core), adjoint(q))


@jvp("_linalg_eigh")
def eigh_forward(t, out, out1, vectors):
    needs_vectors(vectors)
    values, q = out, out1
    p = matmul(matmul(adjoint(q), t), q)
    dl = diagonal(p, 0, -2, -1)
    if q.dtype.is_complex:
        dl = real(dl)
    one = eye(values.shape[-1], dtype=values.dtype, device=values.device)
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1) + one
    return dl, matmul(q, (p - one * p) / gaps)


# -- determinants ------------------------------------------------------------------------------------

def cofactors(A, out):
    """What the determinant's derivative is: the inverse's adjoint times the determinant, or, where a matrix
    is singular, the products of all singular values but one."""
    if not has_values(out) or not (out == 0).any():
        return _linalg_solve(adjoint(A), expand(identity(A), A.shape) * as_matrix(conj_of(out)))
    u, s, vh = _linalg_svd(A, False, True)
    first = slice(cumprod(s, -1), -1, 0, s.shape[-1] - 1, 1)
    last = cumprod(s.flip(-1), -1).flip(-1)
    last = slice(last, -1, 1, s.shape[-1], 1)
    one = ones((*s.shape[:-1], 1), dtype=s.dtype, device=s.device)
    others = cat([one, first], -1) * cat([last, one], -1)
    phase = conj_of(u.det() * vh.det())
    return matmul(u * unsqueeze(others, -2), vh) * as_matrix(phase)


@vjp("_linalg_det")
def det(g, A, out):
    return as_matrix(g) * cofactors(A, out)


@jvp("_linalg_det")
def det_forward(t, A, out):
    return sum_of(conj_of(cofactors(A, out)) * t, (-2, -1))


@vjp("_linalg_slogdet")
def slogdet(gs, A, out):
    """The sign of a real determinant has no derivative; the direction of a complex one turns."""
    g_sign, g = gs
    if A.dtype.is_complex and g_sign is not None:
        turned = imag(conj_of(g_sign) * out)
        turned = turned * -1j
        g = turned if g is None else g + turned
    if g is None:
        return None
    factor = expand(identity(A), A.shape) * as_matrix(g)
    return _linalg_solve(adjoint(A), factor)


@jvp("_linalg_slogdet")
def slogdet_forward(t, A, out):
    trace = sum_of(diagonal(_linalg_solve(A, t), 0, -2, -1), -1)
    if not A.dtype.is_complex:
        return None, trace
    return out * imag(trace) * 1j, real(trace)
