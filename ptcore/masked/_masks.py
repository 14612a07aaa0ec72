"""Helpers of the masked functions: masks of an input's shape, fill values for masked-out elements, docstrings."""
from math import inf, nan

import ptcore
from ptcore._errors import ShapeError, UnsupportedDTypeError
from ptcore._ops.checked import integer
from ptcore.masked._tensor import MaskedTensor


def read(op, input, mask=None):
    """The plain tensor and its mask, or None; a masked tensor brings its own."""
    if isinstance(input, MaskedTensor):
        return input.get_data(), input.get_mask()
    if not isinstance(input, ptcore.Tensor):
        raise TypeError(f"{op}: input must be a Tensor, got {type(input).__name__}")
    if input.layout is not ptcore.strided:
        raise ValueError(f"{op}: input must be strided, got {input.layout}")
    if mask is not None and not isinstance(mask, ptcore.Tensor):
        raise TypeError(f"{op}: mask must be a Tensor or None, got {type(mask).__name__}")
    return input, None if mask is None else whole(op, input, mask)


def whole(op, input, mask):
    """A mask as bools of the input's shape."""
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(f"{op}: mask must have at most the {input.ndim} dimensions of input, got shape "
                             f"{list(mask.shape)}")
        if any([m not in (1, n) for m, n in zip(mask.shape[::-1], input.shape[::-1])]):
            raise ShapeError(f"{op}: mask must broadcast to {list(input.shape)}, got shape {list(mask.shape)}")
        mask = mask.broadcast_to(input.shape)
    return mask.to(ptcore.bool)


def identity(op, dtype, ord=2.0):
    """The identity of a reduction: a value that does not change its result."""
    if op in ("sum", "prod"):
        return int(op == "prod")
    if op in ("amax", "argmax", "logaddexp", "amin", "argmin", "logsumexp"):
        low = not op.endswith("min")
        if dtype.is_floating_point or (dtype.is_complex and op == "logsumexp"):
            return -inf if low else inf
        if dtype.kind in "iu":
            return ptcore.iinfo(dtype).min if low else ptcore.iinfo(dtype).max
        raise UnsupportedDTypeError(f"{op}: masked-out elements of dtype {dtype.name} have no stand-in")
    if op == "median":
        return nan
    if ord == -inf:                     # the norm of this order
        if not dtype.is_floating_point:
            raise NotImplementedError(f"{op}: ord=-inf needs a floating-point input, got {dtype.name}")
        return inf
    return 0


def filled(op, input, mask, stand_in):
    """The input with masked-out elements replaced by the identity of ``stand_in``, or by a number."""
    if mask is None:
        return input
    value = identity(stand_in, input.dtype) if isinstance(stand_in, str) else stand_in
    return ptcore.where(mask, input, ptcore.full((), value, dtype=input.dtype, device=input.device))


def dims_of(op, dim, ndim):
    """A tuple of sorted dims: all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found = []
    for d in dim if isinstance(dim, (tuple, list)) else (dim,):
        if not -ndim <= (d := integer(op, "dim", d)) < ndim:
            raise IndexError(f"{op}: Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
                             f"{d})")
        if d % ndim in found:
            raise RuntimeError(f"{op}: dim={d} appears multiple times in the list of dims")
        found.append(d % ndim)
    return tuple(sorted(found))


_DIMS = """dim : int or tuple of ints, optional
    All dims if None."""
_DIM = """dim : int"""
_UNBIASED = """dim : int or tuple of ints, optional
    All dims if None.
unbiased : bool, optional
    False: the divisor is the number of elements that count, else one less.
correction : float, optional
    What is taken off that number, in place of `unbiased`."""
_ORD = """ord : float
    The order of the norm, see :func:`ptcore.linalg.vector_norm`."""
_KEEPDIM = """
keepdim : bool
    Whether reduced dims stay, with size 1."""
_DOC = """{text}

Elements that the mask does not mark are left out. {undefined}

Parameters
----------
input : Tensor or MaskedTensor
    Of a masked tensor its own mask counts.
{parameters}
dtype : dtype, optional
    {dtype}
mask : Tensor, optional
    Bools that broadcast to the input's shape, True where an element counts: everywhere unless given.

Returns
-------
Tensor

Examples
--------
>>> import ptcore
>>> x = ptcore.tensor([[-3., -2., -1.], [0., 1., 2.]])
>>> mask = ptcore.tensor([[True, False, True], [True, True, False]])
>>> ptcore.masked.{name}(x{arguments}, mask=mask)
{result}
"""


def described(text, result, arguments=", 1", dim="dims", dtype="Of the result.", reduces=True):
    """Gives a masked function its docstring."""
    parameters = {"dims": _DIMS, "dim": _DIM, "unbiased": _UNBIASED, "ord": f"{_ORD}\n{_DIMS}",
                  "ord, dim": f"{_ORD}\n{_DIM}\neps : float\n    The least number that is divided by."}[dim]
    undefined = ("Where none counts the result is undefined." if reduces else
                 "What the result has at their places is undefined.")

    def give(function):
        function.__doc__ = _DOC.format(text=text, undefined=undefined, dtype=dtype, name=function.__name__,
                                       parameters=parameters + (_KEEPDIM if reduces else ""), arguments=arguments,
                                       result=result)
        return function
    return give
