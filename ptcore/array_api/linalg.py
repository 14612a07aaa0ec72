"""The standard's ``linalg`` extension."""
import ptcore
from ptcore import linalg as _linalg
from ptcore.array_api._dtypes import promoted
from ptcore.array_api._manipulation import axes_of
from ptcore.array_api._products import matmul as matmul
from ptcore.array_api._products import matrix_transpose as matrix_transpose
from ptcore.array_api._products import tensordot as tensordot
from ptcore.array_api._products import vecdot as vecdot
from ptcore.array_api._reductions import sum as _sum
from ptcore.linalg import cholesky as cholesky
from ptcore.linalg import det as det
from ptcore.linalg import diagonal as diagonal
from ptcore.linalg import eig as eig
from ptcore.linalg import eigvals as eigvals
from ptcore.linalg import inv as inv
from ptcore.linalg import slogdet as slogdet
from ptcore.linalg import svdvals as svdvals

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
           "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd",
           "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


def cross(x1, x2, /, *, axis=-1):
    """The cross products of vectors of 3 elements along an axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x1, x2 = promoted(x1, x2)
    return _linalg.cross(x1[(None,) * (x2.ndim - x1.ndim)], x2[(None,) * (x1.ndim - x2.ndim)], dim=axis)


def eigh(x, /):
    """The eigenvalues and eigenvectors of Hermitian matrices: ``eigenvalues``, ``eigenvectors``."""
    return _linalg.eigh(x)


def eigvalsh(x, /):
    """The eigenvalues of Hermitian matrices, in ascending order."""
    return _linalg.eigvalsh(x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of each matrix.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3., 0.], [0., 4.]]), ord=2)
    tensor(4.)
    """
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x, n, /):
    """The product of ``n`` equal matrices; of their inverses if ``n`` is negative."""
    out = _linalg.matrix_power(x, n)
    return out._set_standard() if n == 0 and x._is_standard else out


def matrix_rank(x, /, *, rtol=None):
    """The number of singular values of each matrix that exceed ``rtol`` times the largest."""
    return _linalg.matrix_rank(x, rtol=rtol)


def outer(x1, x2, /):
    """All products of an element of ``x1`` and an element of ``x2``, two 1-d arrays."""
    return ptcore.outer(x1, x2)


def pinv(x, /, *, rtol=None):
    """The pseudo-inverse of each matrix; singular values up to ``rtol`` times the largest count as zero."""
    return _linalg.pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced"):
    """The factors ``Q`` and ``R`` of each matrix."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return _linalg.qr(x, mode)


def solve(x1, x2, /):
    """``x`` of ``x1 @ x = x2``: only a 1-d ``x2`` is a vector, all others are stacks of matrices.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2., 0.], [0., 4.]]), xp.asarray([2., 4.]))
    tensor([1., 1.])
    """
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return _linalg.solve(x1, x2[:, None])[..., 0]
    shape = ptcore.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x2 = ptcore.broadcast_to(x2, (*shape, *x2.shape[-2:]))
    return _linalg.solve(ptcore.broadcast_to(x1, (*shape, *x1.shape[-2:])), x2)


def svd(x, /, *, full_matrices=True):
    """The factors ``U``, ``S`` and ``Vh`` of each matrix."""
    return _linalg.svd(x, full_matrices)


def trace(x, /, *, offset=0, dtype=None):
    """The sum of a diagonal of each matrix, with the dtype of `sum`."""
    return _sum(_linalg.diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of the vectors along axes, by default of all elements.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([[3., 4.], [0., 1.]]), axis=1)
    tensor([5., 1.])
    """
    if axis == ():
        x, axis, keepdims = ptcore.unsqueeze(x, 0), 0, False
    elif axis is not None:
        axis = tuple(axes_of(axis, x.ndim, "vector_norm"))
    return _linalg.vector_norm(x, ord, axis, keepdims)
