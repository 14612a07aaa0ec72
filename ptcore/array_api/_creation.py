"""Arrays from shapes, from numbers and from other libraries; all of them promote as the standard says.

Arrays made here are marked (``Tensor._set_standard``), and results of ops inherit the mark. A marked array without dims
promotes like one with dims, unlike PyTorch's 0-d tensors.
"""
import ptcore
from ptcore._dtype import get_default_dtype
from ptcore._exchange.convert import as_array
from ptcore._exchange.dlpack import from_dlpack as _from_dlpack
from ptcore._tensor import Tensor
from ptcore.array_api._dtypes import dtype_of_number


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An array of numbers, sequences, buffers, or another library's array.

    Parameters
    ----------
    obj : array, number, nested sequence of them, or object with a buffer, ``__array__`` or ``__dlpack__``
    dtype : dtype, optional
    device : device, optional
    copy : bool, optional
        True copies always, False never, None where it must.

    Returns
    -------
    array
        Shares memory with ``obj`` where nothing is copied.

    Raises
    ------
    ValueError
        If a copy is needed and ``copy=False``.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore import array_api as xp
    >>> xp.asarray([1, 2], dtype=xp.uint8)
    tensor([1, 2], dtype=ptcore.uint8)

    A tensor is one array more on the same memory, which promotes as the standard says:

    >>> t = ptcore.tensor(1, dtype=ptcore.int64)
    >>> (xp.asarray([1], dtype=xp.int8) + xp.asarray(t)).dtype
    ptcore.int64
    """
    out = as_array(obj, dtype, device, copy)
    if out is not obj:
        return out._set_standard()
    return obj if obj._is_standard else obj.view(obj.shape)._set_standard()


def from_dlpack(x, /, *, device=None, copy=None):
    """An array on the memory of an object with ``__dlpack__``.

    Examples
    --------
    >>> import numpy as np
    >>> from ptcore import array_api as xp
    >>> xp.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    out = _from_dlpack(x, device=device, copy=copy)
    return (out.view(out.shape) if out is x else out)._set_standard()


def empty(shape, *, dtype=None, device=None):
    """An array with uninitialised elements.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.empty((2, 3)).shape
    ptcore.Size([2, 3])
    """
    return ptcore.empty(shape, dtype=dtype, device=device)._set_standard()


def empty_like(x, /, *, dtype=None, device=None):
    """An array of the shape of ``x`` with uninitialised elements."""
    return ptcore.empty_like(x, dtype=dtype, device=device)._set_standard()


def zeros(shape, *, dtype=None, device=None):
    """An array of zeros.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.zeros(2)
    tensor([0., 0.])
    """
    return ptcore.zeros(shape, dtype=dtype, device=device)._set_standard()


def zeros_like(x, /, *, dtype=None, device=None):
    """An array of zeros of the shape of ``x``."""
    return ptcore.zeros_like(x, dtype=dtype, device=device)._set_standard()


def ones(shape, *, dtype=None, device=None):
    """An array of ones.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.ones(2, dtype=xp.int16)
    tensor([1, 1], dtype=ptcore.int16)
    """
    return ptcore.ones(shape, dtype=dtype, device=device)._set_standard()


def ones_like(x, /, *, dtype=None, device=None):
    """An array of ones of the shape of ``x``."""
    return ptcore.ones_like(x, dtype=dtype, device=device)._set_standard()


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of one value: a number, or an array without dims.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, Tensor):
        out = empty(shape, dtype=dtype or fill_value.dtype, device=fill_value.device if device is None else device)
        out[...] = fill_value
        return out
    return ptcore.full(shape, fill_value, dtype=dtype, device=device)._set_standard()


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """An array of one value of the shape of ``x``, and of its dtype if none is given."""
    return full(tuple(x.shape), fill_value, dtype=dtype or x.dtype, device=x.device if device is None else device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Ones on the ``k``-th diagonal, zeros elsewhere.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.eye(2, 3, k=1, dtype=xp.int8)
    tensor([[0, 1, 0],
            [0, 0, 1]], dtype=ptcore.int8)
    """
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return ptcore.eye(n_rows, n_cols, dtype=dtype, device=device)._set_standard()
    out = zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        out.diagonal(k).fill_(1)
    return out


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from ``start`` up to but not including ``stop``; none if ``step`` has the wrong sign.

    Raises
    ------
    ValueError
        If ``step`` is 0.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.arange(5, 0, step=-2)
    tensor([5, 3, 1])
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step must not be 0")
    if (stop - start) * (1 if step > 0 else -1) <= 0:
        number = next((x for x in (start, stop, step) if isinstance(x, float)), 0)
        return empty((0,), dtype=dtype or dtype_of_number(number), device=device)
    return ptcore.arange(start, stop, step, dtype=dtype, device=device)._set_standard()


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which is included unless ``endpoint`` is False.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if isinstance(start, complex) or isinstance(stop, complex):
        dtype = dtype or get_default_dtype().to_complex()
        parts = [linspace(a, b, num, dtype=dtype.to_real(), device=device, endpoint=endpoint)
                 for a, b in ((start.real, stop.real), (start.imag, stop.imag))]
        return ptcore.complex(*parts)
    dtype = dtype or get_default_dtype()
    real = dtype if dtype.kind == "f" else dtype.to_real() if dtype.kind == "c" else ptcore.float64
    count = num if endpoint else num + 1
    out = ptcore.linspace(start, stop, count, dtype=real, device=device)[:num]
    return out.to(dtype)._set_standard()


def meshgrid(*arrays, indexing="xy"):
    """Arrays of all combinations of the elements of 1-d arrays, as a tuple.

    Examples
    --------
    >>> from ptcore import array_api as xp
    >>> xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4, 5]))[0].shape
    ptcore.Size([3, 2])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    return tuple(ptcore.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def tril(x, /, *, k=0):
    """The lower triangle of each matrix up to its ``k``-th diagonal, zeros above it."""
    return ptcore.tril(x, k)


def triu(x, /, *, k=0):
    """The upper triangle of each matrix from its ``k``-th diagonal on, zeros below it."""
    return ptcore.triu(x, k)
