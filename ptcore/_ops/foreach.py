"""Functions of lists of tensors, such as ``_foreach_add``: one op for each tensor, in order.

They have PyTorch's names, for optimizers written with them. Lists in one call have the same length; a number, or a
single tensor, is used for each tensor. Functions with a final ``_`` write to the tensors and return the list.
"""
from ptcore._ops.functions import linalg_vector_norm
from ptcore._tensor import Tensor

__all__ = []

_UNARY = ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
          "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin",
          "sinh", "sqrt", "tan", "tanh", "trunc")
# name -> whether the method takes alpha
_BINARY = {"add": True, "sub": True, "mul": False, "div": False, "pow": False, "maximum": False, "minimum": False,
           "clamp_min": False, "clamp_max": False}


def _tensors(name, given):
    """The list of tensors unchanged; raises if it is not one."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{name}: expected a list or tuple of Tensors, got {type(given).__name__}")
    if not given:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    for x in given:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a list or tuple of Tensors, got {type(x).__name__} in it")
    return given


def _beside(name, tensors, other):
    """The operand of each tensor: the items of a list in turn, or the same value for each."""
    if not isinstance(other, (list, tuple)):
        if isinstance(other, Tensor) and other.ndim:
            if other.ndim == 1 and other.numel() == len(tensors):
                return other.unbind()
            raise RuntimeError(f"{name}: expected a number or a 0-d Tensor for all tensors, got one of shape "
                               f"{list(other.shape)}")
        return [other] * len(tensors)
    if len(other) != len(tensors):
        if other and isinstance(other[0], Tensor):
            raise RuntimeError(f"{name}: Tensor lists must have the same number of tensors, got {len(tensors)} and "
                               f"{len(other)}")
        raise RuntimeError(f"{name}: Tensor list must have same number of elements as scalar list, got {len(tensors)} "
                           f"and {len(other)}")
    return other


def _define(name, call, doc, inplace=True):
    """Defines ``_foreach_name`` and, by the in-place method, ``_foreach_name_``.

    ``call(name, suffix)`` makes the function of lists.
    """
    for suffix in ("", "_") if inplace else ("",):
        public = f"_foreach_{name}{suffix}"
        function = call(public, suffix)
        function.__name__ = function.__qualname__ = public
        function.__doc__ = f"{doc}{'; the tensors are written to' if suffix else ''}."
        globals()[public] = function
        __all__.append(public)


def _result(given, made, suffix):
    return given if suffix else tuple(made)


def _unary(method):
    def call(name, suffix):
        apply = getattr(Tensor, method + suffix)

        def function(self):
            return _result(_tensors(name, self), [apply(x) for x in self], suffix)
        return function
    return call


def _method(method, suffix):
    """A method; if it does not exist, a function that copies the plain method's result into the tensor."""
    found = getattr(Tensor, method + suffix, None)
    if found is not None:
        return found
    plain = getattr(Tensor, method)
    return lambda x, *args, **kwargs: x.copy_(plain(x, *args, **kwargs))


def _binary(method, has_alpha):
    names = {"maximum": "clamp_min", "minimum": "clamp_max"}

    def call(name, suffix):
        apply = _method(method, suffix)
        of_number = _method(names.get(method, method), suffix)

        def each(x, y, alpha):
            if alpha != 1:
                return apply(x, y, alpha=alpha)
            return apply(x, y) if isinstance(y, Tensor) else of_number(x, y)

        def with_alpha(self, other, *, alpha=1):
            pairs = zip(_tensors(name, self), _beside(name, self, other), strict=True)
            return _result(self, [each(x, y, alpha) for x, y in pairs], suffix)

        def without(self, other):
            if name == "_foreach_pow" and not isinstance(self, (list, tuple)):
                return tuple([self ** y for y in _tensors(name, other)])
            return with_alpha(self, other)
        return with_alpha if has_alpha else without
    return call


def _ternary(method):
    def call(name, suffix):
        apply = _method(method, suffix)

        def function(self, tensor1, tensor2, value=1):
            _tensors(name, self)
            rows = zip(self, _beside(name, self, _tensors(name, tensor1)), _beside(name, self, _tensors(name, tensor2)),
                       _beside(name, self, value), strict=True)
            return _result(self, [apply(x, a, b, value=_number(v)) for x, a, b, v in rows], suffix)
        return function
    return call


def _number(x):
    return x.item() if isinstance(x, Tensor) else x


def _lerp(name, suffix):
    apply = getattr(Tensor, "lerp" + suffix)

    def function(self, tensors1, weight):
        rows = zip(_tensors(name, self), _beside(name, self, _tensors(name, tensors1)), _beside(name, self, weight),
                   strict=True)
        return _result(self, [apply(x, y, w) for x, y, w in rows], suffix)
    return function


def _norm(name, _):
    def function(self, ord=2, dtype=None):
        return tuple([linalg_vector_norm(x, ord, dtype=dtype) for x in _tensors(name, self)])
    return function


def _powsum(name, _):
    def function(self, ord=2, dtype=None):
        if ord == 0:                    # each element counts 1, that of 0 too
            return tuple([(abs(x) ** 0).sum(dtype=dtype) for x in _tensors(name, self)])
        if ord in (float("inf"), -float("inf")) or any([not x.dtype.is_floating_point for x in _tensors(name, self)]):
            return tuple([linalg_vector_norm(x, ord, dtype=dtype) ** ord for x in _tensors(name, self)])
        of = [x if dtype is None else x.to(dtype) for x in _tensors(name, self)]
        return tuple([(abs(x.float() if x.dtype.itemsize == 2 else x) ** ord).sum().to(x.dtype) for x in of])
    return function


def _copy(name, _):
    def function(self, src, non_blocking=False):
        for x, y in zip(_tensors(name, self), _beside(name, self, _tensors(name, src)), strict=True):
            x.copy_(y, non_blocking)
        return self
    return function


def _zero(name, _):
    def function(self):
        for x in _tensors(name, self):
            x.zero_()
        return self
    return function


def _clone(name, _):
    def function(self, *, memory_format=None):
        kwargs = {} if memory_format is None else {"memory_format": memory_format}
        return tuple([x.clone(**kwargs) for x in _tensors(name, self)])
    return function


def _max(name, _):
    def function(self):
        return tuple([x.max() for x in _tensors(name, self)])
    return function


def _mm(name, _):
    def function(self, mat2):
        pairs = zip(_tensors(name, self), _beside(name, self, _tensors(name, mat2)), strict=True)
        return tuple([x.mm(y) for x, y in pairs])
    return function


for _name in _UNARY:
    _define(_name, _unary(_name), f"``{_name}`` of each tensor")
for _name, _has_alpha in _BINARY.items():
    _define(_name, _binary(_name, _has_alpha), f"``{_name}`` of each tensor and a number, or what stands beside it")
for _name in ("addcmul", "addcdiv"):
    _define(_name, _ternary(_name), f"``{_name}`` of the tensors of three lists")
_define("lerp", _lerp, "``lerp`` of the tensors of two lists, by one weight or a list of them")
for _name, _call, _doc in (("norm", _norm, "The vector norm of each tensor"),
                           ("powsum", _powsum, "The sum of the powers of each tensor's magnitudes"),
                           ("clone", _clone, "A copy of each tensor"),
                           ("max", _max, "The largest element of each tensor"),
                           ("mm", _mm, "Products of the matrices of two lists")):
    _define(_name, _call, _doc, inplace=False)
_define("copy_", _copy, "Copies the tensors of a list into those of another", inplace=False)
_define("zero_", _zero, "Fills each tensor with zeros", inplace=False)
