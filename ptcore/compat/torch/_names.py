"""Names at the top of ``torch`` that are not public in ptcore: private checks, and namespaces."""
from types import SimpleNamespace

from ptcore._shape import is_symbolic_number
from ptcore._tensor import Tensor
from ptcore.jit import fork, wait

__all__ = ["classes", "fork", "wait"]


class _Classes(SimpleNamespace):
    """Custom classes of C++ libraries: there are none."""

    loaded_libraries = frozenset()

    def load_library(self, path):
        """Raises: PyTorch's C++ extensions do not fit ptcore."""
        raise NotImplementedError(f"torch.classes.load_library: PyTorch's C++ extensions do not fit ptcore ({path})")


classes = _Classes()


def _assert(condition, message):
    """Raises AssertionError with a message if a condition is false."""
    if type(condition) is not bool and isinstance(condition, Tensor):
        condition = bool(condition)
    assert condition, message


def _check_with(error, cond, message):
    if isinstance(cond, Tensor):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not isinstance(cond, bool) and not is_symbolic_number(cond):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        text = "Expected cond to be True, but got False."
    elif not callable(message):
        raise TypeError("message must be a callable")
    else:
        text = str(message())
    raise error(text)


def _check(cond, message=None):
    """Raises RuntimeError with the text of ``message()`` if a condition is False."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """`_check` with IndexError."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """`_check` with ValueError."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """`_check` with TypeError."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """`_check` with NotImplementedError."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """`_check` that a number may be a size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond, message=None):
    """`_check` that a tensor of bools holds no False."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    _check_with(RuntimeError, bool(cond.all()), message)


def _shape_as_tensor(x):
    """The sizes of a tensor as a tensor of int64."""
    from ptcore import int64, tensor
    return tensor(list(x.shape), dtype=int64)


def has(name):
    """The value of ``torch.has_mps`` and similar flags, with PyTorch's deprecation warning."""
    import warnings

    from ptcore import backends
    part = name.removeprefix("has_")
    question = "is_built" if part in ("mps", "cuda") else "is_available"
    warnings.warn(f"'{name}' is deprecated, please use 'torch.backends.{part}.{question}()'", stacklevel=3)
    return getattr(getattr(backends, part), question)()


def _segment_reduce(*args, **kwargs):
    """``segment_reduce`` by the name that it had before PyTorch made it public."""
    from ptcore import segment_reduce
    return segment_reduce(*args, **kwargs)


def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of softmax by its result."""
    if output.dtype.itemsize == 2:
        output, grad_output = output.float(), grad_output.float()
    slope = output * (grad_output - (output * grad_output).sum(dim, keepdim=True))
    return slope.to(input_dtype)


class _Absent:
    """A layout or dtype that no tensor has. It can be compared, and no function accepts it."""

    itemsize = 1
    is_floating_point, is_complex, is_signed = True, False, True

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"


layout = str                        # the type of ``strided``

sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged = map(
    _Absent, ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"))
qint8, quint8, qint32, quint4x2, quint2x4 = map(_Absent, ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"))
per_tensor_affine, per_channel_affine = map(_Absent, ("per_tensor_affine", "per_channel_affine"))
float4_e2m1fn_x2 = _Absent("float4_e2m1fn_x2")
