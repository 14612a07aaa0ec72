"""Checks of dims that several topics share. Compiled bodies call these without a Python call."""
from ptcore._tensor cimport Tensor

from ptcore._errors import OutOfRangeError, ShapeError
from ptcore._ops import checked


cpdef long wrap_dim(str op, object dim, long ndim, str name="dim") except -1:
    """The dim counted from 0."""
    cdef long n = ndim if ndim > 0 else 1, d
    if type(dim) is not int:
        dim = checked.integer(op, name, dim)
    if not -n <= dim < n:
        checked.integer(op, name, dim)       # integers of more than 64 bits raise OverflowError
        raise OutOfRangeError(f"{op}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got "
                              f"{dim}) for {name}")
    d = dim
    return d + n if d < 0 else d


cpdef tuple wrap_dims(str op, object dim, long ndim):
    """Non-negative dims of a reduction that another op calls (None and (): all)."""
    cdef tuple dims
    if dim is None:
        return None
    if type(dim) is int:
        return (wrap_dim(op, dim, ndim),)
    dims = tuple([wrap_dim(op, d, ndim) for d in checked.integers(op, "dim", dim)])
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{op}: a dim appears twice in dim={dim!r}")
    return dims


cpdef long divided_dim(str op, object dim, Tensor input) except -1:
    """The wrapped dim of an op that splits a tensor along a dim. A 0-d tensor raises ShapeError."""
    if input.rank == 0:
        raise ShapeError(f"{op}: input must have at least one dimension, got shape []")
    return wrap_dim(op, dim, input.rank)
