"""References of recurrent layers, equations and factors, in NumPy and SciPy alone; see _references.py."""
import numpy as np
import scipy.linalg
from scipy.special import expit


def _steps(batch_sizes, reverse):
    starts = np.concatenate([[0], np.cumsum(batch_sizes)])[:-1].astype(int)
    steps = list(zip(starts, batch_sizes))
    return steps[::-1] if reverse else steps


def _recurrent_layer(x, hx, cx, weight, bias, projection, batch_sizes, mode, reverse):
    """One sequence and one step at a time."""
    n = hx.shape[1] if projection is None else projection.shape[1]
    out, cells, kept = np.zeros((len(x), hx.shape[1])), np.zeros((len(x), n)), np.zeros((len(x), 4 * n))
    for b in range(len(hx)):
        h, c = hx[b], None if cx is None else cx[b]
        for start, size in _steps(batch_sizes, reverse):
            if b >= size:
                continue
            row = start + b
            p = weight @ h + (0 if bias is None else bias)
            if mode == "lstm":
                z = x[row] + p
                i, f, o = expit(z[:n]), expit(z[n:2 * n]), expit(z[3 * n:])
                g = np.tanh(z[2 * n:3 * n])
                c = f * c + i * g
                h = o * np.tanh(c) if projection is None else projection @ (o * np.tanh(c))
                cells[row], kept[row] = c, np.concatenate([i, f, g, o])
            elif mode == "gru":
                r, u = expit(x[row][:n] + p[:n]), expit(x[row][n:2 * n] + p[n:2 * n])
                q = np.tanh(x[row][2 * n:] + r * p[2 * n:])
                h = (1 - u) * q + u * h
                kept[row] = np.concatenate([r, u, q, p[2 * n:]])
            else:
                h = np.tanh(x[row] + p) if mode == "tanh" else np.maximum(x[row] + p, 0)
            out[row] = h
    return out, cells if mode == "lstm" else np.zeros(0), kept if mode in ("lstm", "gru") else np.zeros(0)


def _recurrent_layer_backward(g, g_cells, states, cells, kept, hx, cx, weight, projection, batch_sizes, mode,
                              reverse):
    size, batch, rows = hx.shape[1], len(hx), len(g)
    n = size if projection is None else projection.shape[1]
    gates, previous, projected = np.zeros((rows, len(weight))), np.zeros((rows, size)), np.zeros((rows, size))
    hidden, d_hx, d_cx = np.zeros((rows, len(weight))), np.zeros((batch, size)), np.zeros((batch, n))
    for b in range(batch):
        walk = [start + b for start, size in _steps(batch_sizes, reverse) if b < size]
        d, dc = np.zeros(size), np.zeros(n)
        for k in range(len(walk) - 1, -1, -1):
            row = walk[k]
            previous[row] = states[walk[k - 1]] if k else hx[b]
            d = d + g[row]
            if projection is not None:
                projected[row], d = d, projection.T @ d
            if mode == "lstm":
                i, f, q, o = kept[row].reshape(4, n)
                before = cells[walk[k - 1]] if k else cx[b]
                dc = dc + (0 if g_cells is None else g_cells[row]) + d * o / np.cosh(cells[row])**2
                by = [dc * q * (i - i * i), dc * before * (f - f * f), dc * i * (1 - q**2),
                      d * np.tanh(cells[row]) * (o - o * o)]
                gates[row] = np.concatenate(by)
                dc = dc * f
                d = weight.T @ gates[row]
            elif mode == "gru":
                r, u, q, s = kept[row].reshape(4, n)
                dq = d * (1 - u) * (1 - q**2)
                gates[row] = np.concatenate([dq * s * (r - r * r), d * (previous[row] - q) * (u - u * u), dq])
                hidden[row] = np.concatenate([gates[row][:2 * n], dq * r])
                d = d * u + weight.T @ hidden[row]
            else:
                gates[row] = d * (1 - states[row]**2) if mode == "tanh" else np.where(states[row] > 0, d, 0)
                d = weight.T @ gates[row]
        d_hx[b], d_cx[b] = d, dc
    return (gates, hidden if mode == "gru" else np.zeros(0), previous, d_hx, d_cx if mode == "lstm" else np.zeros(0),
            np.zeros(0) if projection is None else projected)


# -- equations and factors ---------------------------------------------------------------------------

def _each(function, *stacks):
    """A function of matrices over broadcast batch dims."""
    batch = np.broadcast_shapes(*(s.shape[:-2] for s in stacks))
    stacks = [np.broadcast_to(s, batch + s.shape[-2:]) for s in stacks]
    results = [function(*(s[k] for s in stacks)) for k in np.ndindex(*batch)]
    return np.stack(results).reshape(batch + results[0].shape)


def _linalg_solve(A, B, left):
    if not left:
        return _each(lambda a, b: np.linalg.solve(a.T, b.T).T, A, B)
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return _each(np.linalg.solve, A, B[..., None])[..., 0]
    return _each(np.linalg.solve, A, B)


def _solve_triangular(A, B, upper, unitriangular):
    return _each(lambda a, b: scipy.linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unitriangular), A, B)


def _linalg_solve_triangular(A, B, upper, left, unitriangular):
    triangle = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        triangle = triangle - np.diag(np.diag(triangle)) + np.eye(A.shape[-1])
    return np.linalg.inv(triangle) @ B if left else B @ np.linalg.inv(triangle)


def _cholesky_solve(input, L, upper):
    factor = np.triu(L).conj().T if upper else np.tril(L)
    return np.linalg.solve(factor @ factor.conj().T, input)


def _cholesky_inverse(input, upper):
    return _cholesky_solve(np.eye(input.shape[-1]), input, upper)


def _linalg_inv(A):
    return np.linalg.inv(A)


_inverse = _linalg_inv


def _linalg_det(A):
    return np.linalg.det(A)


_det = _linalg_det


def _linalg_slogdet(A):
    return tuple(np.linalg.slogdet(A))


_slogdet = _linalg_slogdet


def _logdet(input):
    return np.log(np.linalg.det(input))


def _linalg_pinv(A, rtol, atol, hermitian):
    return np.linalg.pinv(A)


def _pinverse(input, rcond):
    return np.linalg.pinv(input)


def _qr(A, mode):
    """mode is a word, or of the older function whether to reduce."""
    mode = {True: "reduced", False: "complete"}.get(mode, mode)
    return tuple(np.linalg.qr(A, mode))


_linalg_qr = _qr


def _linalg_cond(A, p):
    return np.linalg.cond(A, p)


def _cholesky(input, upper):
    factor = np.linalg.cholesky(input)
    return np.conj(np.swapaxes(factor, -1, -2)) if upper else factor


_linalg_cholesky = _cholesky


def _linalg_cholesky_ex(A, upper, check_errors):
    return _cholesky(A, upper), np.zeros(A.shape[:-2], np.int32)


def _eigh(A, lower):
    return tuple(np.linalg.eigh(A, "L" if lower else "U"))


def _linalg_eigh(A, UPLO):
    return tuple(np.linalg.eigh(A, UPLO))


def _linalg_eigvalsh(A, UPLO):
    return np.linalg.eigvalsh(A, UPLO)


def _linalg_lstsq(A, B, rcond, driver):
    return np.linalg.lstsq(A, B, rcond)


def _linalg_matrix_rank(A, tol, hermitian, atol, rtol):
    return np.linalg.matrix_rank(A, tol, hermitian)


# -- elimination, reflectors, exponentials, arrays -----------------------------------------------------

def _several(function, x):
    """The results of a function of one matrix over batch dims, each stacked."""
    found = [function(x[k]) for k in np.ndindex(*x.shape[:-2])]
    return tuple(np.stack([np.asarray(f[i]) for f in found]).reshape(x.shape[:-2] + np.shape(found[0][i]))
                 for i in range(len(found[0])))


def _lu(x):
    """LU, pivots from 1, and no zero on the diagonal."""
    def one(a):
        factors, pivots = scipy.linalg.lu_factor(a)
        return factors, (pivots + 1).astype(np.int32), np.int32(0)

    return _several(one, x)


def _linalg_lu_factor(A, pivot):
    return _lu(A)[:2]


def _linalg_lu_factor_ex(A, pivot, check_errors):
    return _lu(A)


def _lu_of(A, pivot, get_infos):
    return _lu(A)[:3 if get_infos else 2]


def _linalg_lu(A, pivot):
    return _several(scipy.linalg.lu, A)


def _solve_ex(A, B):
    return _linalg_solve(A, B, True), np.zeros(A.shape[:-2], np.int32)


def _linalg_solve_ex(A, B, left, check_errors):
    return _linalg_solve(A, B, left), np.zeros(A.shape[:-2], np.int32)


def _inv_ex(x):
    return np.linalg.inv(x), np.zeros(x.shape[:-2], np.int32)


def _linalg_inv_ex(A, check_errors):
    return np.linalg.inv(A), np.zeros(A.shape[:-2], np.int32)


def _triangular_solve(input, A, upper, transpose, unitriangular):
    return scipy.linalg.solve_triangular(A, input, int(transpose), not upper, unitriangular), A


def _householder(A, tau):
    """The product of the reflectors, one matrix at a time."""
    def one(a, t):
        m, n = a.shape
        q = np.eye(m, dtype=a.dtype)
        for i in range(t.shape[-1]):
            v = np.concatenate([np.zeros(i), [1], a[i + 1:, i]]).astype(a.dtype)
            q = q @ (np.eye(m) - t[0, i] * np.outer(v, v.conj()))
        return q[:, :n]

    return _each(one, A, tau[..., None, :])


def _linalg_householder_product(A, tau):
    return _householder(A, tau)


def _orgqr(input, tau):
    return _householder(input, tau)


def _ormqr(input, tau, other, left, transpose):
    m = len(input)
    q = _householder(np.concatenate([input, np.zeros((m, m))], 1)[:, :m], tau)
    q = q.conj().T if transpose else q
    return q @ other if left else other @ q


def _matrix_exp(x):
    return _each(scipy.linalg.expm, x) if x.size else x


def _linalg_matrix_exp(A):
    return _matrix_exp(A)


def _linalg_tensorinv(A, ind):
    return np.linalg.tensorinv(A, ind)


def _linalg_tensorsolve(A, B, dims):
    return np.linalg.tensorsolve(A, B, dims)


def _linalg_vander(x, N):
    n = x.shape[-1] if N is None else N
    return np.stack([x**k for k in range(n)], -1)


def _vander(x, N, increasing):
    return np.vander(x, N, increasing)


# -- what tests/ops/linalg/test_decompositions.py tests by what it must satisfy --------------------------------

def _eig(x):
    return tuple(np.linalg.eig(x))


def _linalg_eig(A):
    return _eig(A)


def _linalg_eigvals(A):
    return np.linalg.eigvals(A)


def _pivot_order(pivots, rows):
    order = np.arange(rows)
    for i, p in enumerate(pivots):
        order[[i, p - 1]] = order[[p - 1, i]]
    return order


def _lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    m, n = LU_data.shape
    k = min(m, n)
    P = np.eye(m)[:, np.argsort(_pivot_order(LU_pivots, m))]
    return P, np.tril(LU_data[:, :k], -1) + np.eye(m, k), np.triu(LU_data[:k])


def _linalg_lu_solve(LU, pivots, B, left, adjoint):
    return scipy.linalg.lu_solve((LU, pivots - 1), B, 2 if adjoint else 0)


def _lu_solved(LU, pivots, B, transposed):
    return scipy.linalg.lu_solve((LU, pivots - 1), B, int(transposed))


def _lu_solve(input, LU_data, LU_pivots):
    return scipy.linalg.lu_solve((LU_data, LU_pivots - 1), input)


def _ldl(x):
    return scipy.linalg.lapack.dsytrf(x, lower=1)


def _linalg_ldl_factor(A, hermitian):
    return _ldl(A)


def _linalg_ldl_factor_ex(A, hermitian, check_errors):
    return _ldl(A)


def _ldl_solve(LD, pivots, B):
    return scipy.linalg.lapack.dsytrs(LD, pivots, B, lower=1)


def _linalg_ldl_solve(LD, pivots, B, hermitian):
    return _ldl_solve(LD, pivots, B)


def _geqrf(x):
    return scipy.linalg.lapack.dgeqrf(x)[:2]
