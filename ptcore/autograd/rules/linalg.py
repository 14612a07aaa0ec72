"""Rules of decompositions, equations, factors and determinants.

A rule is right for functions that do not depend on the gauge: the factor of modulus one by which
a pair of singular vectors may be multiplied. For complex input a loss that does depend on
it is refused; for real input the factor is a sign and has no derivative. Factors are functions of matrices that
equal their adjoint, or are defined up to the gauge of their vectors.
"""
from ptcore._ops.creation.creation import eye, ones, zeros_like
from ptcore._ops.functions import (
    _linalg_inv,
    _linalg_matrix_exp,
    _linalg_solve,
    _linalg_solve_triangular,
    _linalg_svd,
    _pivot_order,
    cat,
    cumprod,
    diagonal,
    expand,
    gather,
    imag,
    index_copy,
    index_select,
    matmul,
    nonzero,
    real,
    slice,
    transpose,
    tril,
    triu,
    unsqueeze,
    vector_norm,
    where,
)
from ptcore._ops.functions import any as any_of
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.history import has_values
from ptcore._ops.linalg.bodies import householder_by_ops
from ptcore.autograd.helpers import adjoint_of as adjoint
from ptcore.autograd.helpers import conj_of, differentiated, known, zeros_among
from ptcore.autograd.rules import SMALLER, jvp, vjp


def skew(x):
    return x - adjoint(x)


@vjp("_linalg_svd")
def svd(gs, out, out1, out2, full_matrices, compute_uv):
    """With E[i, j] = S[j]^2 - S[i]^2, 1 on the diagonal, and per matrix

        gA = U ((skew(U^H gU) / E) S + S (skew(Vh gVh^H) / E) + diag(gS)) Vh

    plus the parts of gU and gVh outside the spaces that U and Vh span."""
    gu, gs_, gvh = gs
    if not compute_uv:
        raise RuntimeError("_linalg_svd: the derivative needs the singular vectors; call it with "
                           "compute_uv=True")
    u, s, vh = out, out1, out2
    k = s.shape[-1]
    if full_matrices:                   # the columns beyond k span a space, but are not functions of A
        u, vh = slice(u, -1, 0, k, 1), slice(vh, -2, 0, k, 1)
        gu = None if gu is None else slice(gu, -1, 0, k, 1)
        gvh = None if gvh is None else slice(gvh, -2, 0, k, 1)
    m, n = u.shape[-2], vh.shape[-1]
    rows, columns = unsqueeze(s, -1), unsqueeze(s, -2)
    if gu is None and gvh is None:
        if gs_ is None:
            return None
        return matmul(u, unsqueeze(gs_, -1) * vh) if m >= n else matmul(u * unsqueeze(gs_, -2), vh)
    one = eye(k, dtype=s.dtype, device=s.device)
    gaps = columns * columns - rows * rows + one
    left = None if gu is None else skew(matmul(adjoint(u), gu))
    right = None if gvh is None else skew(matmul(vh, adjoint(gvh)))
    if u.dtype.is_complex:
        check_gauge(left, right)
    core = None
    if left is not None:
        core = left / gaps * columns
        if u.dtype.is_complex:
            core = core + one * left / (2 * rows)
    if right is not None:
        part = rows * (right / gaps)
        core = part if core is None else core + part
    if gs_ is not None:
        core = core + one * unsqueeze(gs_, -1)
    if gu is not None and m > k:
        outside = gu / apart_from_zero(columns, gu)
        left_part = matmul(u, core) + outside - matmul(u, matmul(adjoint(u), outside))
        return matmul(left_part, vh)
    right_part = matmul(core, vh)
    if gvh is not None and n > k:
        outside = gvh / apart_from_zero(rows, gvh)
        right_part = right_part + outside - matmul(matmul(outside, adjoint(vh)), vh)
    return matmul(u, right_part)


def apart_from_zero(s, g):
    """Singular values as divisors: 1 where both the value and the divided gradient are 0."""
    return where((g == 0) & (s == 0), 1.0, s)


def check_gauge(left, right):
    """Refuses a loss that depends on the gauge: U and Vh must have opposite derivatives along it. Values that are not
    known, as those of a batch, are not checked."""
    if not all([known(x) for x in (left, right) if x is not None]):
        return
    a = 0 if left is None else imag(diagonal(left, 0, -2, -1))
    b = 0 if right is None else imag(diagonal(right, 0, -2, -1))
    if ((a + b).abs() > 1e-2 + 1e-2 * abs(b)).any():
        raise RuntimeError("_linalg_svd: complex singular vectors are defined up to multiplication "
                           "by e^(i phi), and the loss depends on this quantity, so that it has "
                           "no derivative")


@jvp("_linalg_svd")
def svd_forward(t, out, out1, out2, full_matrices, compute_uv):
    """With P = U^H t V and E as above: dS = Re diag(P), and U and Vh turn by the parts of P off the
    diagonal over E, in the gauge in which the diagonal of U^H dU is half of P's imaginary part."""
    if not compute_uv:
        raise RuntimeError("_linalg_svd: the forward derivative needs the singular vectors; call it with "
                           "compute_uv=True")
    u, s, vh = out, out1, out2
    k = s.shape[-1]
    m, n = u.shape[-2], vh.shape[-1]
    if full_matrices:                   # as in reverse mode, the columns beyond k have no derivative
        u, vh = slice(u, -1, 0, k, 1), slice(vh, -2, 0, k, 1)
    v = adjoint(vh)
    p = matmul(matmul(adjoint(u), t), v)
    ds = diagonal(p, 0, -2, -1)
    if u.dtype.is_complex:
        ds = real(ds)
    rows, columns = unsqueeze(s, -1), unsqueeze(s, -2)
    one = eye(k, dtype=s.dtype, device=s.device)
    gaps = columns * columns - rows * rows + one
    off = p - one * p
    left = (off * columns + rows * adjoint(off)) / gaps
    right = (rows * off + adjoint(off) * columns) / gaps
    if u.dtype.is_complex:
        left = left + one * (p - adjoint(p)) / (2 * rows)
    du, dv = matmul(u, left), matmul(v, right)
    if m > k:
        outside = matmul(t, v) / columns
        du = du + outside - matmul(u, matmul(adjoint(u), outside))
    if n > k:
        outside = matmul(adjoint(t), u) / columns
        dv = dv + outside - matmul(v, matmul(vh, outside))
    if full_matrices and m > k:
        du = cat([du, zeros_like(slice(out, -1, k, m, 1))], -1)
    if full_matrices and n > k:
        dv = cat([dv, adjoint(zeros_like(slice(out2, -2, k, n, 1)))], -1)
    return du, ds, adjoint(dv)


def identity(x):
    return eye(x.shape[-1], dtype=x.dtype, device=x.device)


def as_matrix(x):
    return unsqueeze(unsqueeze(x, -1), -1)


# -- equations ---------------------------------------------------------------------------------------

@vjp("_linalg_solve")
def solve(g, A, out, needs):
    gb = _linalg_solve(adjoint(A), g)
    return -matmul(gb, adjoint(out)) if needs & 1 else None, gb


@vjp("_linalg_solve_ex")
def solve_ex(gs, A, out, needs):
    return (None, None) if gs[0] is None else solve(gs[0], A, out, needs)


@vjp("_linalg_inv")
def inv(gs, out):
    g = gs[0]
    return None if g is None else -matmul(adjoint(out), matmul(g, adjoint(out)))


@jvp("_linalg_inv")
def inv_forward(t, out):
    return -matmul(out, matmul(t, out)), None


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
    """x + x^H of a triangle; the real part of the diagonal counts once."""
    both = x + adjoint(x)
    return both - identity(x) * both * 0.5


def checked(shape, mode):
    m, n = shape[-2:]
    if mode == "r":
        raise RuntimeError("linalg_qr: the derivative depends on Q, which mode 'r' does not work out")
    if mode == "complete" and m > n:
        raise RuntimeError("linalg_qr: with mode 'complete' there is no derivative for more rows than columns, got "
                           f"shape {list(shape)}")
    if m < n:
        raise RuntimeError("linalg_qr: the factors of a wide matrix are differentiated through those of its first "
                           "columns")


@vjp("_linalg_qr")
def qr(gs, A, out, out1, mode):
    gq, gr = gs
    checked(A.shape, mode)
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
    checked(A.shape, mode)
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
    """Q (diag(gL) + skew part of Q^H gQ / E) Q^H with E[i, j] = L[j] - L[i]: equal to its adjoint, as the input is."""
    gl, gq = gs
    needs_vectors(vectors)
    values, q = out, out1
    if gq is None:
        return None if gl is None else matmul(q * unsqueeze(gl, -2), adjoint(q))
    one = eye(values.shape[-1], dtype=values.dtype, device=values.device)
    m = skew(matmul(adjoint(q), gq)) * 0.5
    if q.dtype.is_complex:
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


@vjp("_linalg_eig")
def eig(gs, A, out, out1, vectors):
    """V^-H (diag(gL) + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)) V^H with E[i, j] = L[j] - L[i]."""
    gl, gv = gs
    if not vectors:
        raise RuntimeError("linalg_eig: the derivative needs the eigenvectors")
    if gl is None and gv is None:
        return None
    values, v = out, out1
    core = None
    if gv is not None:
        m = matmul(adjoint(v), gv)
        turns = diagonal(m, 0, -2, -1)
        if v.device.type != "meta" and has_values(turns) and (imag(turns).abs() > 1e-2 * (1 + real(turns).abs())).any():
            raise RuntimeError("linalg_eig: eigenvectors are defined up to multiplication by e^(i phi), and the loss "
                               "depends on this quantity, so that it has no derivative")
        one = eye(values.shape[-1], dtype=values.dtype, device=values.device)
        m = m - matmul(adjoint(v), v) * unsqueeze(real(turns), -2)
        core = (m - one * m) / (conj_of(unsqueeze(values, -2) - unsqueeze(values, -1)) + one)
        if gl is not None:
            core = core + one * unsqueeze(gl, -1)
        core = matmul(core, adjoint(v))
    else:
        core = unsqueeze(gl, -1) * adjoint(v)
    ga = _linalg_solve(adjoint(v), core)
    return ga if A.dtype.is_complex else real(ga)


@jvp("_linalg_eig")
def eig_forward(t, out, out1, vectors):
    if not vectors:
        raise RuntimeError("linalg_eig: the derivative needs the eigenvectors")
    values, v = out, out1
    p = _linalg_solve(v, matmul(t.to(v.dtype), v))
    one = eye(values.shape[-1], dtype=values.dtype, device=values.device)
    gaps = unsqueeze(values, -2) - unsqueeze(values, -1) + one
    dv = matmul(v, (p - one * p) / gaps)
    along = real(sum_of(conj_of(v) * dv, -2, True))            # removes the change of a vector's length
    return diagonal(p, 0, -2, -1), dv - v * along


# -- elimination, reflectors -------------------------------------------------------------------------

def with_rows(x, pivots, back):
    """The rows of ``P^T x``, or of ``P x``."""
    order = _pivot_order(pivots, x.shape[-2])
    if back:
        order = order.argsort(-1)
    return gather(x, x.ndim - 2, expand(unsqueeze(order, -1), x.shape))


def parted(x, k):
    """The first k columns, the columns behind them, the rows below the first k."""
    m, n = x.shape[-2:]
    return (slice(slice(x, -2, 0, k, 1), -1, 0, k, 1), slice(x, -1, k, n, 1) if n > k else None,
            slice(x, -2, k, m, 1) if m > k else None)


@vjp("_linalg_lu")
def lu(gs, out, out1):
    """Square case: P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H. The columns of U to the right of the square part, and
    the rows of L below it, are solutions with the square part, so their gradients add to its gradient."""
    g = gs[0]
    if g is None:
        return None
    square, right, below = parted(out, min(out.shape[-2:]))
    g1, g_right, g_below = parted(g, square.shape[-1])
    flipped = adjoint(square)                   # holds L^H above the diagonal, U^H on and below it
    core_l = matmul(triu(flipped, 1) + identity(square), tril(g1, -1))
    core_u = matmul(triu(g1, 0), tril(flipped, 0))
    if g_right is not None:
        core_l = core_l - matmul(g_right, adjoint(right))
    if g_below is not None:
        core_u = core_u - matmul(adjoint(below), g_below)
    ga = _linalg_solve_triangular(flipped, tril(core_l, -1) + triu(core_u, 0), True, True)
    ga = right_divided(ga, flipped, False)
    if g_right is not None:
        ga = cat([ga, _linalg_solve_triangular(flipped, g_right, True, True)], -1)
    if g_below is not None:
        ga = cat([ga, right_divided(g_below, flipped, False)], -2)
    return with_rows(ga, out1, True)


@jvp("_linalg_lu")
def lu_forward(t, out, out1):
    square, right, below = parted(out, min(out.shape[-2:]))
    t1, t_right, t_below = parted(with_rows(t, out1, False), square.shape[-1])
    core = right_divided(_linalg_solve_triangular(square, t1, False, True), square, True)
    dl = matmul(tril(square, -1) + identity(square), tril(core, -1))
    du = matmul(triu(core, 0), triu(square, 0))
    d = dl + du
    if t_right is not None:
        d = cat([d, _linalg_solve_triangular(square, t_right - matmul(dl, right), False, True)], -1)
    if t_below is not None:
        d = cat([d, right_divided(t_below - matmul(below, du), square, True)], -2)
    return d, None, None


def no_derivative(op):
    raise NotImplementedError(f"{op}: its derivative is not implemented")


@vjp("_linalg_ldl")
def ldl(gs):
    no_derivative("linalg_ldl_factor")


@jvp("_linalg_ldl")
def ldl_forward(t):
    no_derivative("linalg_ldl_factor")


@vjp("_linalg_ldl_solve")
def ldl_solve(g):
    no_derivative("linalg_ldl_solve")


@jvp("_linalg_ldl_solve")
def ldl_solve_forward(t):
    no_derivative("linalg_ldl_solve")


@vjp("_geqrf")
def geqrf(gs):
    no_derivative("geqrf")


@jvp("_geqrf")
def geqrf_forward(t):
    no_derivative("geqrf")


# -- exponentials ------------------------------------------------------------------------------------

def exp_derivative(A, direction):
    """The corner of the exponential of [[A, direction], [0, A]]."""
    n = A.shape[-1]
    both = _linalg_matrix_exp(cat([cat([A, direction], -1), cat([A * 0, A], -1)], -2))
    return slice(slice(both, -2, 0, n, 1), -1, n, 2 * n, 1)


@vjp("_linalg_matrix_exp")
def matrix_exp(g, A):
    return exp_derivative(adjoint(A), g)


@jvp("_linalg_matrix_exp")
def matrix_exp_forward(t, A):
    return exp_derivative(A, t)


# -- determinants ------------------------------------------------------------------------------------

def adjugate(A):
    """The adjugate and the determinant of small matrices, by products alone (Faddeev and LeVerrier)."""
    n = A.shape[-1]
    one = expand(eye(n, dtype=A.dtype, device=A.device), A.shape)
    found = one
    for k in range(1, n):
        product = matmul(A, found)
        found = product - one * as_matrix(sum_of(diagonal(product, 0, -2, -1), -1) / k)
    sign = -1.0 if n % 2 == 0 else 1.0
    return found * sign, sum_of(diagonal(matmul(A, found), 0, -2, -1), -1) * (sign / n)


def apart(A, chosen, usual, other):
    """``usual`` of a batch, and ``other`` of its matrices where a mask is true. The usual way gets the identity in
    their place, so that nothing that is not finite enters its derivatives."""
    n = A.shape[-1]
    at = nonzero(chosen.reshape(-1), as_tuple=False).reshape(-1)
    flat = A.reshape(-1, n, n)
    special = other(index_select(flat, 0, at))
    if at.shape[0] == flat.shape[0]:
        return special.reshape(A.shape)
    one = eye(n, dtype=A.dtype, device=A.device)
    found = usual(where(as_matrix(chosen.reshape(-1)), one, flat))
    return index_copy(found, 0, at, special).reshape(A.shape)


def ill_conditioned(A, inverse):
    """A mask of the matrices that smooth_cofactors may find close to singular. The product of the norms of Frobenius is
    not below the quotient of the largest singular value by the least."""
    product = frobenius(A) * frobenius(inverse)
    return ~(product < 1 / close_to_singular(product))


def frobenius(x):
    return vector_norm(x.abs() if x.dtype.is_complex else x, 2.0, [-2, -1], False)


def close_to_singular(s):
    """The ratio of singular values below which nothing is divided by one."""
    return 2.0 ** (-12 if s.dtype.itemsize == 4 else -26)


def smooth_cofactors(A):
    """The derivative of the determinant as a function that has derivatives of every order at singular matrices, too.

    In the bases of singular vectors, which are constants, A is B. Its block of the large singular values has an inverse
    P; the rest C = B22 - B21 P B12 is small, and nothing is divided by it:

        adj B = det B11 [[P det C + P B12 adj(C) B21 P, -P B12 adj(C)], [-adj(C) B21 P, adj(C)]]"""
    n = A.shape[-1]
    u, s, vh = _linalg_svd(A.detach(), False, True)
    largest = slice(s, -1, 0, 1, 1)
    large = s > largest * close_to_singular(s)
    r = int(sum_of(large, -1).min())
    if r == n:
        return inverse_cofactors(A)
    b = matmul(matmul(adjoint(u), A), adjoint(vh))
    upper, lower = slice(b, -2, 0, r, 1), slice(b, -2, r, n, 1)
    rest = slice(lower, -1, r, n, 1)
    if r:
        inner = slice(upper, -1, 0, r, 1)
        inverse = _linalg_inv(inner, True)[0]
        right = matmul(inverse, slice(upper, -1, r, n, 1))
        left = matmul(slice(lower, -1, 0, r, 1), inverse)
        adj, size = adjugate(rest - matmul(left, slice(upper, -1, r, n, 1)))
        last = matmul(adj, left)
        adj = cat([cat([inverse * as_matrix(size) + matmul(right, last), -matmul(right, adj)], -1),
                   cat([-last, adj], -1)], -2) * as_matrix(inner.det())
    else:
        adj = adjugate(rest)[0]
    return matmul(matmul(u, adjoint(adj)), vh) * as_matrix(conj_of(u.det() * vh.det()))


def inverse_cofactors(A):
    return adjoint(_linalg_inv(A, True)[0]) * as_matrix(conj_of(A.det()))


def cofactors(A, out):
    """The derivative of the determinant: the inverse's adjoint times the determinant. For a singular matrix it is
    computed from the products of all singular values but one. If it is differentiated itself, matrices close to
    singular have a way of their own."""
    if not differentiated():
        if zeros_among(out == 0):
            return apart(A, out == 0, inverse_cofactors, singular_cofactors)
    elif A.shape[-1] and known(A):
        inverse = _linalg_inv(A, False)[0]
        close = ill_conditioned(A.detach(), inverse.detach())
        if bool(any_of(close)):
            return apart(A, close, inverse_cofactors, smooth_cofactors)
        return adjoint(inverse) * as_matrix(conj_of(out))
    return adjoint(_linalg_inv(A, True)[0]) * as_matrix(conj_of(out))


def singular_cofactors(A):
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
    return adjoint(_linalg_inv(A, True)[0]) * as_matrix(g)


@jvp("_linalg_slogdet")
def slogdet_forward(t, A, out):
    trace = sum_of(diagonal(_linalg_solve(A, t), 0, -2, -1), -1)
    if not A.dtype.is_complex:
        return None, trace
    return out * imag(trace) * 1j, real(trace)


SMALLER["_linalg_householder"] = householder_by_ops
