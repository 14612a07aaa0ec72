"""Indexing, searching, sorting and sets."""
from collections import namedtuple

import ptcore
from ptcore.array_api._dtypes import promoted
from ptcore.array_api._manipulation import axis_of, positions

UniqueAll = namedtuple("UniqueAll", ("values", "indices", "inverse_indices", "counts"))
UniqueCounts = namedtuple("UniqueCounts", ("values", "counts"))
UniqueInverse = namedtuple("UniqueInverse", ("values", "inverse_indices"))


def _counted_from_start(indices, size, op):
    """Indices as int64, with negative ones converted to count from the start."""
    indices = positions(indices, op, "indices")
    return ptcore.where(indices < 0, indices + size, indices)


def take(x, indices, /, *, axis=None):
    """The slices of ``x`` at 1-d indices along an axis, which is optional for a 1-d ``x``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0, -1]))
    tensor([30, 10, 30])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis is needed unless x has 1 dim, got {x.ndim}")
        axis = 0
    axis = axis_of(axis, x.ndim, "take")
    flat = _counted_from_start(ptcore.reshape(indices, (-1,)), x.shape[axis], "take")
    out = ptcore.index_select(x, axis, flat)
    if indices.ndim == 1:
        return out
    return ptcore.reshape(out, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]))


def take_along_axis(x, indices, /, *, axis=-1):
    """For each element of ``indices``, the element of ``x`` at this coordinate along the axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.take_along_axis(xp.asarray([[3, 1, 2]]), xp.asarray([[1, -1]]))
    tensor([[1, 2]])
    """
    axis = axis_of(axis, x.ndim, "take_along_axis")
    return ptcore.take_along_dim(x, _counted_from_start(indices, x.shape[axis], "take_along_axis"), axis)


def nonzero(x, /):
    """The coordinates of the elements that are not zero, a 1-d array for each axis.

    Raises
    ------
    ValueError
        If ``x`` has no dims.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.nonzero(xp.asarray([[0, 1], [2, 0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    if x.ndim == 0:
        raise ValueError("nonzero: x must have dims")
    return ptcore.nonzero(x, as_tuple=True)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """The positions at which elements of ``x2`` would be inserted in the sorted ``x1``, or in ``x1[sorter]``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.searchsorted(xp.asarray([1., 2., 2., 3.]), xp.asarray([2, 5]), side="right")
    tensor([3, 4])
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x1, x2 = promoted(x1, x2)
    if sorter is not None:
        sorter = positions(sorter, "searchsorted", "sorter")
    return ptcore.searchsorted(x1, x2, side=side, sorter=sorter)


def isin(x1, x2, /, *, invert=False):
    """Whether each element of ``x1`` is one of ``x2``'s (with ``invert``: is none).

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([3, 1]))
    tensor([ True, False,  True])
    """
    like = next((x for x in (x1, x2) if isinstance(x, ptcore.Tensor)), None)
    device = None if like is None else like.device
    x1, x2 = [ptcore.as_tensor(x, device=device) if isinstance(x, (list, tuple)) else x for x in (x1, x2)]
    x1, x2 = promoted(x1, x2)
    if x1.dtype.kind in "bc":           # PyTorch's function does not support these dtypes
        found = ptcore.any(x1[..., None] == ptcore.reshape(x2, (-1,)), -1)
        return ~found if invert else found
    return ptcore.isin(x1, x2, invert=invert)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements in order along an axis, NaN last.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return ptcore.sort(x, axis, descending, stable=stable).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that put the elements in order along an axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return ptcore.argsort(x, axis, descending, stable=stable)


def _sorted(x):
    """Sorts x flattened. Returns the sorted elements, their original positions, and whether each differs from the one
    before. Equal elements keep their order. Complex numbers are ordered by real, then by imaginary part."""
    flat = ptcore.reshape(x, (-1,))
    if x.dtype.kind == "c":
        order = ptcore.argsort(flat.imag, stable=True)
        order = order[ptcore.argsort(flat.real[order], stable=True)]
        flat = flat[order]
    else:
        flat, order = ptcore.sort(flat, stable=True)
    first = ptcore.concat([flat.new_ones((min(1, flat.shape[0]),), dtype=ptcore.bool), flat[1:] != flat[:-1]])
    return flat, order, first


def _counts(first):
    """The number of elements from each first one to the next."""
    places = ptcore.nonzero(first)[:, 0]
    return ptcore.diff(places, append=places.new_full((1,), first.shape[0]))


def _inverse(order, first, shape):
    """For each element, the index of its distinct value."""
    out = ptcore.empty_like(order)
    out[order] = ptcore.cumsum(first, 0) - 1
    return ptcore.reshape(out, tuple(shape))


def unique_all(x, /):
    """The distinct elements in order, the first position of each, the index of each element's value, and counts.

    NaNs are distinct from each other.

    Returns
    -------
    namedtuple of arrays
        ``values``, ``indices``, ``inverse_indices`` (of the shape of ``x``), ``counts``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.unique_all(xp.asarray([2, 1, 2])).inverse_indices
    tensor([1, 0, 1])
    """
    flat, order, first = _sorted(x)
    return UniqueAll(flat[first], order[first], _inverse(order, first, x.shape), _counts(first))


def unique_counts(x, /):
    """The distinct elements in order, and their counts: ``values``, ``counts``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.unique_counts(xp.asarray([2, 1, 2])).counts
    tensor([1, 2])
    """
    flat, _, first = _sorted(x)
    return UniqueCounts(flat[first], _counts(first))


def unique_inverse(x, /):
    """The distinct elements in order, and the index of each element's value: ``values``, ``inverse_indices``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.unique_inverse(xp.asarray([2, 1, 2])).inverse_indices
    tensor([1, 0, 1])
    """
    flat, order, first = _sorted(x)
    return UniqueInverse(flat[first], _inverse(order, first, x.shape))


def unique_values(x, /):
    """The distinct elements in order.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.unique_values(xp.asarray([2, 1, 2]))
    tensor([1, 2])
    """
    flat, _, first = _sorted(x)
    return flat[first]
