"""Elementwise functions whose values or domains differ from PyTorch's; the others are ptcore's own."""
import ptcore
from ptcore._exchange.convert import as_array
from ptcore.array_api._dtypes import result_type


def clip(x, /, min=None, max=None):
    """Elements limited to ``[min, max]``, with the dtype of ``x``; without limits a copy.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), 2, max=xp.asarray(6))
    tensor([2, 5, 6])
    """
    if min is None and max is None:
        return x.clone()
    out = ptcore.clip(x, min, max)
    return out if out.dtype is x.dtype else out.to(x.dtype)


def round(x, /):
    """Elements rounded to the nearest integer, halves to the even one; complex ones by component.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.round(xp.asarray([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    """
    if x.dtype.kind == "c":
        return ptcore.view_as_complex(ptcore.round(ptcore.view_as_real(x)))
    return ptcore.round(x)


def nextafter(x1, x2, /):
    """The next number of the dtype from the first towards the second, either of which may be a number.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> bool(xp.nextafter(xp.asarray(1.), 2) > 1)
    True
    """
    if not isinstance(x1, ptcore.Tensor):
        x1 = as_array(x1, x2.dtype, None, None)
    elif not isinstance(x2, ptcore.Tensor):
        x2 = as_array(x2, x1.dtype, None, None)
    return ptcore.nextafter(x1, x2)


def sign(x, /):
    """-1, 0 or 1 by the sign of an element; NaN for NaN, ``x / abs(x)`` for a complex one.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.sign(xp.asarray([-2., 0., xp.nan]))
    tensor([-1.,  0., nan])
    """
    if x.dtype.kind == "c":
        return ptcore.sgn(x)
    return ptcore.where(ptcore.isnan(x), x, ptcore.sign(x)) if x.dtype.kind == "f" else ptcore.sign(x)


def where(condition, x1, x2, /):
    """Elements of ``x1`` where the condition holds, of ``x2`` elsewhere.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2], dtype=xp.int8), 0)
    tensor([1, 0], dtype=ptcore.int8)
    """
    if not hasattr(x1, "dtype") and not hasattr(x2, "dtype"):
        x1 = condition.new_full((), x1, dtype=result_type(x1, x2))
    return ptcore.where(condition, x1, x2)
