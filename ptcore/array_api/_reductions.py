"""Sums, extremes, moments and truth along axes: keywords, dtypes and tuples of axes as in the standard."""
import ptcore
from ptcore.array_api._dtypes import as_dtype, result_type
from ptcore.array_api._manipulation import axes_of


def _sum_dtype(x, dtype, name):
    """The dtype of a sum: small integers are summed in the widest dtype of their kind."""
    if dtype is not None:
        return as_dtype(dtype, name, "dtype")
    kind = x.dtype.kind
    return ptcore.uint64 if kind == "u" else ptcore.int64 if kind in "ib" else x.dtype


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """Sums along axes, of small integers in int64 or uint64.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]], dtype=xp.uint8), axis=0)
    tensor([4, 6], dtype=ptcore.uint64)
    """
    dtype = _sum_dtype(x, dtype, "sum")
    if axis == ():
        return x.to(dtype, copy=True)
    return ptcore.sum(x, axis, keepdims, dtype=dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """Products along axes, of small integers in int64 or uint64.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=(0, 1))
    tensor(24)
    """
    dtype = _sum_dtype(x, dtype, "prod")
    if axis == ():
        return x.to(dtype, copy=True)
    return ptcore.prod(x, axis, keepdims, dtype=dtype)


def max(x, /, *, axis=None, keepdims=False):
    """The largest elements along axes; NaN if there is one.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.max(xp.asarray([[1, 5], [3, 4]]), axis=1)
    tensor([5, 4])
    """
    return ptcore.clone(x) if axis == () else ptcore.amax(x, () if axis is None else axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The smallest elements along axes; NaN if there is one.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.min(xp.asarray([[1, 5], [3, 4]]), axis=1)
    tensor([1, 3])
    """
    return ptcore.clone(x) if axis == () else ptcore.amin(x, () if axis is None else axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """Means along axes; integers give the default floating-point dtype.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.mean(xp.asarray([[1., 2.], [3., 5.]]), axis=0)
    tensor([2.0000, 3.5000])
    """
    if x.dtype.kind in "biu":
        x = x.to(ptcore.get_default_dtype())
    return ptcore.clone(x) if axis == () else ptcore.mean(x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False, ddof=None):
    """Variances along axes, divided by ``n - correction``; the default correction is 0. ``ddof`` is NumPy's name of
    ``correction``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.var(xp.asarray([1., 2., 3.]), correction=1)
    tensor(1.)
    """
    if axis == ():
        x, axis, keepdims = ptcore.unsqueeze(x, 0), 0, False
    return ptcore.var(x, axis, correction=correction if ddof is None else ddof, keepdim=keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False, ddof=None):
    """Standard deviations along axes: square roots of `var`.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.std(xp.asarray([1., 1., 3., 3.]))
    tensor(1.)
    """
    if axis == ():
        x, axis, keepdims = ptcore.unsqueeze(x, 0), 0, False
    return ptcore.std(x, axis, correction=correction if ddof is None else ddof, keepdim=keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """Whether all elements along axes are true (not zero).

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.all(xp.asarray([[1, 0], [2, 3]]), axis=1)
    tensor([False,  True])
    """
    return ptcore.all(x.to(ptcore.bool), axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether any element along axes is true (not zero).

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    tensor([ True, False])
    """
    return ptcore.any(x.to(ptcore.bool), axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements along axes are not zero.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.count_nonzero(xp.asarray([[1, 0], [2, 3]]), axis=0, keepdims=True)
    tensor([[2, 1]])
    """
    return sum(x.to(ptcore.bool), axis=axis, keepdims=keepdims)


def _cumulative(function, x, axis, dtype, include_initial, first, name):
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: axis is needed unless x has 1 dim, got {x.ndim}")
        axis = 0
    axis = axes_of(axis, x.ndim, name)[0]
    out = function(x, axis, dtype=_sum_dtype(x, dtype, name))
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        out = ptcore.concat([out.new_full(shape, first), out], axis)
    return out


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Cumulative sums along an axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6])
    """
    return _cumulative(ptcore.cumsum, x, axis, dtype, include_initial, 0, "cumulative_sum")


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Cumulative products along an axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([1, 1, 2, 6])
    """
    return _cumulative(ptcore.cumprod, x, axis, dtype, include_initial, 1, "cumulative_prod")


def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """The n-th differences of neighbours along an axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.diff(xp.asarray([1, 2, 4]), prepend=xp.asarray([0]))
    tensor([1, 1, 2])
    """
    ends = [p for p in (prepend, append) if p is not None]
    if any_differs(x, ends):
        dtype = result_type(x, *ends)
        x, prepend, append = [None if p is None else p.to(dtype) for p in (x, prepend, append)]
    return ptcore.diff(x, n, axis, prepend, append)


def any_differs(x, others):
    """Whether one of the arrays has another dtype than the first."""
    for other in others:
        if other.dtype is not x.dtype:
            return True
    return False
