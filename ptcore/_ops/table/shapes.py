"""Shape computations in Python for bodies, derivatives and creation. The shape rules of rows are in _sizes/rules."""
from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError

_INFINITY = float("inf")

BOOL = as_dtype("bool")
INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
FLOAT32 = as_dtype("float32")
COMPLEX_OF = {FLOAT32: as_dtype("complex64"), as_dtype("float64"): as_dtype("complex128")}


def reduced_shape(shape, dim, keepdim):
    if type(dim) is int:
        dim = (dim,)
    if len(dim) == len(shape):
        return (1,) * len(shape) if keepdim else ()
    if keepdim:
        return tuple([1 if i in dim else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in dim])


def stat_dtype(x):
    """The dtype of statistics of x: float32 for half-precision data, else the dtype of x."""
    return FLOAT32 if x.dtype.itemsize == 2 else x.dtype


def broadcast_shapes(op, *shapes):
    if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]) and shapes[0] == shapes[1]:
        return tuple(shapes[0])
    ndim = max([len(s) for s in shapes])
    result = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if type(result[i]) is int and result[i] == 1:
                result[i] = n           # n may be a symbol: it is not compared
            elif n != result[i] and n != 1:
                if result[i] != 1:
                    raise ShapeError(f"{op}: shapes must broadcast, got "
                                     f"{' and '.join([str(list(s)) for s in shapes])}")
                result[i] = n
    return tuple(result)


def index_dtype(op, index, name="index"):
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{op}: {name} must be an integer tensor, got {index.dtype.name}")


def arange_length(start, end, step):
    if step == 0:
        raise RuntimeError("arange: step must not be zero")
    if not all(-_INFINITY < x < _INFINITY for x in (start, end, step)):
        raise RuntimeError(f"arange: start, end and step must be finite, got {start}, {end} and {step}")
    if (end - start) * step < 0:
        raise RuntimeError(f"arange: the range from {start} to {end} does not agree with the "
                           f"sign of step {step}")
    whole = all([hasattr(x, "__index__") for x in (start, end, step)])      # ints, some of them perhaps symbolic
    n = -((start - end) // step) if whole else -int(-((end - start) / step) // 1)
    return n if n > 0 else 0
