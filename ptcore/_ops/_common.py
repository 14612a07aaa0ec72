"""What the bodies of several topics ask about dims."""
from ptcore._errors import ShapeError
from ptcore._ops import _arguments


def _wrap(op, dim, ndim, name="dim"):
    if type(dim) is not int:
        dim = _arguments.integer(op, name, dim)
    n = ndim if ndim > 0 else 1
    if not -n <= dim < n:
        raise IndexError(f"{op}: {name} must be in [{-n}, {n - 1}], got {dim}")
    return dim % n


def _dims(op, dim, ndim):
    """Non-negative dims for an op of another name to reduce over (None and (): all)."""
    if dim is None:
        return None
    dims = tuple([_wrap(op, d, ndim) for d in _arguments.integers(op, "dim", dim)])
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{op}: a dim appears twice in dim={dim!r}")
    return dims


def _divided(op, dim, input):
    """The wrapped dim of an op that takes a tensor apart, which needs one."""
    if input.ndim == 0:
        raise ShapeError(f"{op}: input must have at least one dimension, got shape []")
    return _wrap(op, dim, input.ndim)
