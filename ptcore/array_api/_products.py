"""Products of arrays of any numeric dtypes."""
import operator

import ptcore
from ptcore._errors import ShapeError
from ptcore.array_api._dtypes import promoted


def matmul(x1, x2, /):
    """The matrix product, of integers too.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2]], dtype=xp.int8), xp.asarray([3, 4]))
    tensor([11])
    """
    return ptcore.matmul(*promoted(x1, x2))


def matrix_transpose(x, /):
    """The transpose of each matrix; a view.

    Raises
    ------
    ValueError
        If ``x`` has less than 2 dims.
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: x must have at least 2 dims, got {x.ndim}")
    return ptcore.transpose(x, -2, -1)


def tensordot(x1, x2, /, *, axes=2):
    """Sums of products over pairs of axes: the last of ``x1`` with the first of ``x2``, or those that are named.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2)), axes=((0, 1), (1, 0)))
    tensor(6.)
    """
    x1, x2 = promoted(x1, x2)
    if not isinstance(axes, int):
        axes = [[operator.index(a) for a in side] for side in axes]
    return ptcore.tensordot(x1, x2, axes)


def vecdot(x1, x2, /, *, axis=-1):
    """Sums of ``conj(x1) * x2`` along an axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.vecdot(xp.asarray([1j, 2.]), xp.asarray([1j, 3.]))
    tensor(7.+0.j)
    """
    x1, x2 = promoted(x1, x2)
    if x1.dtype.kind == "c":
        x1 = ptcore.conj(x1)
    a, b = ptcore.broadcast_tensors(x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < min(x1.ndim, x2.ndim) or x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: axis {axis} must be there with one size in both, got shapes {list(x1.shape)} and "
                         f"{list(x2.shape)}")
    a, b = ptcore.movedim(a, axis, -1), ptcore.movedim(b, axis, -1)
    return ptcore.matmul(a[..., None, :], b[..., None])[..., 0, 0]
