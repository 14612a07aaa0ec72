"""Factors of low rank and extreme eigenvalues, by iteration."""
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import checked
from ptcore._ops.creation.draws import randn
from ptcore._ops.functions import (
    cat,
    linalg_cholesky,
    linalg_eigh,
    linalg_qr,
    linalg_solve_triangular,
    linalg_svd,
    matmul,
    stack,
)
from ptcore._ops.linalg.bodies import differentiated
from ptcore._random import draws_as_pytorch
from ptcore._state import no_grad
from ptcore._tensor import Tensor


def lobpcg(A, k, B, X, n, iK, niter, tol, largest, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams):
    op = "lobpcg"
    for name, value in (("tracker", tracker), ("ortho_iparams", ortho_iparams), ("ortho_fparams", ortho_fparams),
                        ("ortho_bparams", ortho_bparams)):
        if value is not None:
            raise NotImplementedError(f"{op}: {name} must be None, got {type(value).__name__}")
    for name, x in (("A", A), ("B", B), ("X", X), ("iK", iK)):
        if not isinstance(x, Tensor) and (x is not None or name == "A"):
            raise TypeError(f"{op}: {name} must be a Tensor, got {type(x).__name__}")
        if x is not None and x.dtype.name not in ("float32", "float64"):
            raise DTypeError(f"{op}: {name} must have dtype float32 or float64, got {x.dtype.name}")
        if x is not None and (x.ndim < 2 or (name != "X" and x.shape[-2:] != A.shape[-1:] * 2)
                              or x.shape[:-1] != A.shape[:-1]):
            raise ShapeError(f"{op}: {name} must be made of {'vectors' if name == 'X' else 'square matrices'} that go "
                             f"with A, got shapes {list(x.shape)} and {list(A.shape)}")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"{op}: method must be 'ortho' or 'basic', got {method!r}")
    k = (1 if X is None else X.shape[-1]) if k is None else checked.integer(op, "k", k)
    n = (k if n is None else checked.integer(op, "n", n)) if X is None else X.shape[-1]
    m = A.shape[-1]
    if not 1 <= k <= n:
        raise ValueError(f"{op}: k must be in [1, {n}], the number of vectors, got {k}")
    if m < 3 * n:
        raise ValueError(f"{op}: A must have at least {3 * n} rows for {n} vectors, got {m}")
    largest = largest is None or bool(largest)
    if differentiated(A) or (B is not None and differentiated(B)):
        return _decomposed(A, B, k, largest)
    niter = 1000 if niter is None else checked.integer(op, "niter", niter)
    tol = {4: 1.2e-7, 8: 2.3e-16}[A.dtype.itemsize] ** 0.5 if tol is None else checked.real(op, "tol", tol)
    batch = A.shape[:-2]
    if X is None:
        X = randn(*batch, m, n, dtype=A.dtype, device=A.device)
    flat = [[None] * max(batch.numel(), 1) if x is None else list(x.reshape(-1, *x.shape[-2:]))
            for x in (A, B, X.detach(), iK)]
    with no_grad():
        found = [_iterated(*one, k, niter, tol, largest) for one in zip(*flat)]
    E, V = [stack(part) for part in zip(*found)] if found else (
        X.new_zeros((0, k)), X.new_zeros((0, m, k)))
    return E.reshape(*batch, k), V.reshape(*batch, m, k)


def _decomposed(A, B, k, largest):
    A = (A + A.mT) / 2
    if B is not None:
        L = linalg_cholesky(B)
        A = linalg_solve_triangular(L, linalg_solve_triangular(L, A, upper=False).mT, upper=False)
    E, V = linalg_eigh(A)
    if B is not None:
        V = linalg_solve_triangular(L.mT, V, upper=True)
    return (E[..., -k:].flip(-1), V[..., -k:].flip(-1)) if largest else (E[..., :k], V[..., :k])


def _orthonormal(S, B):
    """A basis of the span of S's columns, orthonormal under B."""
    for _ in range(2):
        S = S / S.norm(2, 0, keepdim=True).clamp(min=1e-300 if S.dtype.itemsize == 8 else 1e-37)
        gram = S.mT @ (S if B is None else B @ S)
        sizes, turns = linalg_eigh((gram + gram.mT) / 2)
        keep = sizes > sizes[-1] * sizes.numel() * (1e-15 if S.dtype.itemsize == 8 else 1e-6)
        S = matmul(S, turns[:, keep] / sizes[keep].sqrt())
    return S


def _iterated(A, B, X, iK, k, niter, tol, largest):
    n, S, P, step = X.shape[1], X, None, 0
    norms = A.norm(), 1.0 if B is None else B.norm()
    while True:
        S = _orthonormal(S, B)
        small = S.mT @ A @ S
        E, turns = linalg_eigh((small + small.mT) / 2)
        if largest:
            E, turns = E.flip(-1), turns.flip(-1)
        before, X, E = X, S @ turns[:, :n], E[:n]
        BX = X if B is None else B @ X
        R = A @ X - BX * E
        relative = R.norm(2, 0) / (X.norm(2, 0) * (norms[0] + E.abs() * norms[1]))
        if (relative[:k] < tol).all() or step == niter:
            return E[:k], X[:, :k]
        W = R if iK is None else iK @ R
        W = W - X @ (BX.mT @ W)
        if step:
            P = X - before @ (before.mT @ BX)           # the change of the vectors
        S = cat([X, W] if P is None else [X, W, P], 1)
        step += 1


def svd_lowrank(A, q, niter, M):
    checked.need_tensors("svd_lowrank", A=A, **({} if M is None else {"M": M}))
    if A.ndim < 2:
        raise ShapeError(f"svd_lowrank: A must have at least 2 dimensions, got shape {list(A.shape)}")
    q, niter = checked.integer("svd_lowrank", "q", q), checked.integer("svd_lowrank", "niter", niter)
    m, n = A.shape[-2:]
    if q < 0:
        raise ValueError(f"svd_lowrank: q must be non-negative, got {q}")
    if niter < 0:
        raise ValueError(f"svd_lowrank: niter must be non-negative, got {niter}")
    if M is not None:
        A = A - M
    turned = m < n
    if turned:
        A = A.mH
    lead = () if draws_as_pytorch(None, A.device) else A.shape[:-2]     # PyTorch draws once for all matrices
    Q = linalg_qr(A @ randn(*lead, A.shape[-1], q, dtype=A.dtype, device=A.device)).Q
    for _ in range(niter):
        Q = linalg_qr(A.mH @ Q).Q
        Q = linalg_qr(A @ Q).Q
    U, S, Vh = linalg_svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if turned else (U, S, V)


def pca_lowrank(A, q, center, niter):
    checked.need_tensors("pca_lowrank", A=A)
    niter = checked.integer("pca_lowrank", "niter", niter)
    if A.ndim < 2:
        raise ShapeError(f"pca_lowrank: A must have at least 2 dimensions, got shape {list(A.shape)}")
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else checked.integer("pca_lowrank", "q", q)
    if not 0 <= q <= min(m, n):
        raise ValueError(f"pca_lowrank: q must be in [0, {min(m, n)}], got {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: niter must be non-negative, got {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter, None)
