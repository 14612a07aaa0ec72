"""NumPy functions outside of the standard that xarray uses, with NumPy's parameters.

They are attributes of the namespace, but not in its lists of names.
"""
import ptcore
from ptcore._ops.creation.functions import logspace as _logspace
from ptcore.array_api._dtypes import promoted
from ptcore.array_api._manipulation import axes_of, permute_dims
from ptcore.array_api._reductions import cumulative_prod, cumulative_sum


def einsum(subscripts, *operands):
    """Sums of products by the names of dims, as `ptcore.einsum`, with operands in their common dtype.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.einsum("ij,j->i", xp.asarray([[1, 2], [3, 4]]), xp.asarray([0.5, 1.]))
    tensor([2.5000, 5.5000])
    """
    return ptcore.einsum(subscripts, *promoted(*operands))


def transpose(a, axes=None):
    """The axes in another order, reversed unless told otherwise.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.transpose(xp.ones((2, 3, 4))).shape
    ptcore.Size([4, 3, 2])
    """
    return permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


def cumsum(a, axis=None, dtype=None):
    """Running sums, of all elements in order where there is no axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.cumsum(xp.asarray([[1, 2], [3, 4]]))
    tensor([ 1,  3,  6, 10])
    """
    if axis is None:
        a, axis = ptcore.reshape(a, (-1,)), 0
    return cumulative_sum(a, axis=axis, dtype=dtype)


def cumprod(a, axis=None, dtype=None):
    """Running products, of all elements in order where there is no axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.cumprod(xp.asarray([[1, 2], [3, 4]]), axis=0)
    tensor([[1, 2],
            [3, 8]])
    """
    if axis is None:
        a, axis = ptcore.reshape(a, (-1,)), 0
    return cumulative_prod(a, axis=axis, dtype=dtype)


def median(a, axis=None, keepdims=False):
    """The medians along axes; the mean of the two middle elements for an even number, NaN if there is one.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.median(xp.asarray([4., 1., 3., 2.]))
    tensor(2.5000)
    """
    axes = tuple(range(a.ndim)) if axis is None else axes_of(axis, a.ndim, "median")
    kept = [k for k in range(a.ndim) if k not in axes]
    flat = ptcore.reshape(ptcore.permute(a, (*kept, *axes)), (*[a.shape[k] for k in kept], -1))
    if flat.dtype.kind in "biu":
        flat = flat.to(ptcore.get_default_dtype())
    out = ptcore.quantile(flat, 0.5, -1)
    return ptcore.reshape(out, tuple([1 if k in axes else a.shape[k] for k in range(a.ndim)])) if keepdims else out


def gradient(f, *varargs, axis=None, edge_order=1):
    """Differences of neighbours divided by their distance, along each axis; see `ptcore.gradient`.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.gradient(xp.asarray([1., 4., 9.]), 0.5)
    tensor([ 6.,  8., 10.])
    """
    axes = tuple(range(f.ndim)) if axis is None else axes_of(axis, f.ndim, "gradient")
    spacing = list(varargs) if len(varargs) > 1 else list(varargs or (1,)) * len(axes)
    # A coordinate array has a value for each position; a number or 0-d array is the distance.
    spacing = [s.item() if getattr(s, "ndim", None) == 0 else s for s in spacing]
    spacing = [ptcore.as_tensor(s, device=f.device) if hasattr(s, "ndim") else s for s in spacing]
    if len({isinstance(s, ptcore.Tensor) for s in spacing}) > 1:
        raise TypeError("gradient: distances must be all numbers or all arrays of coordinates")
    out = ptcore.gradient(f, spacing=spacing, dim=axes, edge_order=edge_order)
    return out[0] if len(out) == 1 else list(out)


def logspace(start, stop, num=50, *, base=10.0, dtype=None):
    """``num`` numbers from ``base**start`` to ``base**stop``, evenly spaced on the logarithmic scale.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    return _logspace(start, stop, num, base=base, dtype=dtype)._set_standard()
