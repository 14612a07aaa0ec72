"""Rules of decompositions.

A rule is right for functions that do not depend on the gauge: the factor of modulus one by which
a pair of singular vectors may be multiplied. For complex input a loss that does depend on
it is refused; for real input the factor is a sign and has no derivative.
"""
from ptcore._ops._creation import eye
from ptcore._ops.functions import diagonal, imag, matmul, real, slice, unsqueeze
from ptcore.autograd._helpers import adjoint
from ptcore.autograd.rules import jvp, vjp


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
    if u.dtype.is_complex and u.device.type != "meta":
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
        outside = gu / columns
        left_part = matmul(u, core) + outside - matmul(u, matmul(adjoint(u), outside))
        return matmul(left_part, vh)
    right_part = matmul(core, vh)
    if gvh is not None and n > k:
        outside = gvh / rows
        right_part = right_part + outside - matmul(matmul(outside, adjoint(vh)), vh)
    return matmul(u, right_part)


def check_gauge(left, right):
    """A loss that does not see the gauge moves U and Vh alike along it."""
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
    if not compute_uv or full_matrices:
        raise RuntimeError("_linalg_svd: the forward derivative needs the singular vectors of the "
                           "reduced form; call it with compute_uv=True, full_matrices=False")
    u, s, vh = out, out1, out2
    k = s.shape[-1]
    m, n = u.shape[-2], vh.shape[-1]
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
    return du, ds, adjoint(dv)
