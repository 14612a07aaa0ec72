"""Shapes: functions whose names, keywords or errors differ from PyTorch's."""
import ptcore
from ptcore._errors import ShapeError
from ptcore.array_api._dtypes import result_type


def axes_of(axis, ndim, name):
    """An axis, a tuple of axes or None (all) as a list of distinct axes in ``[0, ndim)``."""
    if axis is None:
        return list(range(ndim))
    axes = [axis_of(a, ndim, name) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len({*axes}) < len(axes):
        raise ShapeError(f"{name}: axis must not repeat, got {axis}")
    return axes


def axis_of(axis, ndim, name):
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name}: axis must be in [{-ndim}, {ndim - 1}], got {axis}" if ndim else
                         f"{name}: an array without dims has no axis {axis}")
    return axis % ndim


def broadcast_arrays(*arrays):
    """The arrays broadcast against each other, as a tuple."""
    return tuple(ptcore.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_to(x, /, shape):
    """``x`` repeated along new axes and those of size 1 until it has the shape; a view."""
    return ptcore.broadcast_to(x, shape)


def concat(arrays, /, *, axis=0):
    """Arrays joined along an axis; along None they are flattened first.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.concat([xp.asarray([1]), xp.asarray([2, 3], dtype=xp.int8)])
    tensor([1, 2, 3])
    """
    if axis is None:
        arrays, axis = [ptcore.reshape(x, (-1,)) for x in arrays], 0
    return ptcore.concat(tuple(arrays), axis)


def expand_dims(x, /, axis):
    """``x`` with axes of size 1 at the given places of the result.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.expand_dims(xp.zeros((2, 3)), (0, -1)).shape
    ptcore.Size([1, 2, 3, 1])
    """
    if isinstance(axis, int):
        return ptcore.unsqueeze(x, axis)
    for a in sorted(axes_of(axis, x.ndim + len(axis), "expand_dims")):
        x = ptcore.unsqueeze(x, a)
    return x


def flip(x, /, *, axis=None):
    """Elements in reverse order along the axes, by default along all.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.flip(xp.asarray([[1, 2], [3, 4]]), axis=1)
    tensor([[2, 1],
            [4, 3]])
    """
    axes = axes_of(axis, x.ndim, "flip")
    return ptcore.flip(x, axes) if axes else ptcore.clone(x)


def moveaxis(x, source, destination, /):
    """Moves axes to other places; the other axes keep their order."""
    return ptcore.moveaxis(x, source, destination)


def permute_dims(x, /, axes):
    """The axes of ``x`` in another order; a view.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.permute_dims(xp.zeros((2, 3, 4)), (2, 0, 1)).shape
    ptcore.Size([4, 2, 3])
    """
    return ptcore.permute(x, axes)


def positions(x, op, name):
    """An array of integers as int64."""
    if not isinstance(x, ptcore.Tensor) or x.dtype.kind not in "iu":
        found = x.dtype.name if isinstance(x, ptcore.Tensor) else type(x).__name__
        raise TypeError(f"{op}: {name} must be an array of integers, got {found}")
    return x.to(ptcore.int64)


def repeat(x, repeats, /, *, axis=None):
    """Repeats each element, along an axis or of the flattened array.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 1]))
    tensor([1, 1, 2])
    """
    if axis is None:
        x, axis = ptcore.reshape(x, (-1,)), 0
    if not isinstance(repeats, int):
        repeats = positions(repeats, "repeat", "repeats")
        if repeats.ndim == 0 or repeats.shape == (1,):
            repeats = int(repeats)
    return ptcore.repeat_interleave(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """``x`` in another shape: a view where that is possible.

    Raises
    ------
    ValueError
        If a copy is needed and ``copy=False``.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    if copy:
        x = ptcore.clone(x)
    elif copy is False:
        try:
            return x.view(shape)
        except RuntimeError as e:
            raise ValueError(f"reshape: a copy is needed, but copy=False was given ({e})") from None
    return ptcore.reshape(x, shape)


def roll(x, /, shift, *, axis=None):
    """Shifts elements along the axes, from the end to the start; without axes, those of the flattened array.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.roll(xp.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    if axis is None:
        shift = sum(shift) if isinstance(shift, tuple) else shift
        return ptcore.reshape(ptcore.roll(ptcore.reshape(x, (-1,)), shift, 0), tuple(x.shape))
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: shift and axis must have one length, got {shift} and {axis}")
    return ptcore.roll(x, shifts, axes)


def squeeze(x, /, axis):
    """``x`` without axes of size 1.

    Raises
    ------
    ValueError
        If an axis has another size.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.squeeze(xp.zeros((1, 2, 1)), (0, 2)).shape
    ptcore.Size([2])
    """
    axes = axes_of(axis, x.ndim, "squeeze")
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} must have size 1, got {x.shape[a]}")
    return ptcore.squeeze(x, tuple(axes)) if axes else x


def stack(arrays, /, *, axis=0):
    """Arrays of one shape joined along a new axis."""
    arrays = tuple(arrays)
    if len({x.dtype for x in arrays}) > 1:
        dtype = result_type(*arrays)
        arrays = [x.to(dtype) for x in arrays]
    return ptcore.stack(arrays, axis)


def tile(x, repetitions, /):
    """``x`` repeated as a whole along each axis.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return ptcore.tile(x, repetitions)


def unstack(x, /, *, axis=0):
    """The slices of ``x`` along an axis, as a tuple of views.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]), axis=1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    return tuple(ptcore.unbind(x, axis))
