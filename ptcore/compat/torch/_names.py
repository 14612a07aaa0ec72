"""Names at the top of ``torch`` that ptcore does not offer as its own: private checks, and namespaces."""
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
    """Raises RuntimeError, with what ``message()`` gives, if a condition is False."""
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


_SCALED = ("addcdiv", "addcmul", "addcdiv_", "addcmul_")
_FOREACH = ("abs", "add", "addcdiv", "addcmul", "ceil", "clamp_max", "clamp_min", "copy", "cos", "div", "exp", "floor",
            "lerp", "log", "maximum", "minimum", "mul", "neg", "norm", "pow", "reciprocal", "rsqrt", "round", "sigmoid",
            "sign", "sin", "sqrt", "sub", "tanh", "zero")
FOREACH = {f"_foreach_{name}{end}" for name in _FOREACH for end in ("", "_")} - {"_foreach_norm_", "_foreach_copy",
                                                                                 "_foreach_zero"}


def foreach(name):
    """The function ``torch._foreach_...``: a method of tensors on each of a list, with the arguments of each."""
    op = name.removeprefix("_foreach_")
    inplace = op.endswith("_")

    def each(self, *args, **kwargs):
        found = []
        for i, x in enumerate(self):
            own = [a[i] if isinstance(a, (list, tuple)) else a for a in args]
            more = {k: v[i] if isinstance(v, (list, tuple)) else v for k, v in kwargs.items()}
            method = op
            if op in _SCALED and len(own) == 3:
                more["value"] = own.pop()
            if op.rstrip("_") in ("maximum", "minimum") and not isinstance(own[0], Tensor):
                method = {"maximum": "clamp_min", "minimum": "clamp_max"}[op.rstrip("_")] + "_" * inplace
            elif op in ("maximum_", "minimum_"):
                x.copy_(getattr(x, op[:-1])(*own))
                continue
            found.append(getattr(x, method)(*own, **more))
        return None if inplace else tuple(found)

    each.__name__ = each.__qualname__ = name
    return each


def __getattr__(name):
    if name in FOREACH:
        return foreach(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _shape_as_tensor(x):
    """The sizes of a tensor as a tensor of int64."""
    from ptcore import int64, tensor
    return tensor(list(x.shape), dtype=int64)
