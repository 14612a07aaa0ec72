"""Functions of tensors for masked tensors: elementwise ones, those that move elements, and reductions."""
import inspect

import ptcore
from ptcore.masked import _normalizations, _reductions, _tensor
from ptcore.masked._tensor import MaskedTensor, is_masked_tensor, wrapped

UNARY = (
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_not "
    "ceil clamp clip conj_physical cos cosh "
    "deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 isnan "
    "lgamma log log10 log1p log2 logit nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sgn "
    "sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc").split()
BINARY = (
    "add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor div divide eq fmax "
    "fmin floor_divide fmod ge greater greater_equal gt le less less_equal logaddexp logaddexp2 lt maximum minimum "
    "mul multiply ne nextafter not_equal remainder sub subtract true_divide").split()
MOVING = (
    "__getitem__ as_strided broadcast_to cat chunk clone contiguous detach diagonal expand expand_as flatten flip "
    "movedim moveaxis narrow permute reshape select slice split split_with_sizes squeeze stack swapaxes "
    "swapdims t tile "
    "repeat transpose unbind unflatten unfold unsqueeze view").split()
REDUCTIONS = "all amax amin argmax argmin mean norm prod std sum var".split()


def call(func, args, kwargs):
    """The result of a function with masked tensors among its arguments."""
    name = func.__name__
    how = TABLE.get(name)
    if how is None and hasattr(func, "__wrapped__"):        # no row, so the ops inside are offered one by one
        return func.__wrapped__(*args, **kwargs)
    if how is None:
        raise TypeError(f"{name}: there is no form of it for a MaskedTensor")
    return how(func, args, kwargs)


def _data(x):
    if isinstance(x, (tuple, list)):
        return type(x)([_data(item) for item in x])
    return x.get_data() if is_masked_tensor(x) else x


def _masks(x):
    if isinstance(x, (tuple, list)):
        return type(x)([_masks(item) for item in x])
    return x.get_mask() if is_masked_tensor(x) else x


def _common_mask(name, args):
    """The mask of all masked arguments, which must be equal."""
    found = [x.get_mask() for x in args if is_masked_tensor(x)]
    for mask in found[1:]:
        if mask is not found[0] and not ptcore.equal(mask, found[0]):
            raise ValueError(f"{name}: the masks of the arguments must match")
    return found[0]


def _elementwise(func, args, kwargs):
    mask = _common_mask(func.__name__, args)
    result = func(*_data(args), **kwargs)
    return wrapped(result, mask.expand(result.shape))


def _unary(func, args, kwargs):
    if any([isinstance(x, ptcore.Tensor) for x in args[1:]]):
        raise TypeError(f"{func.__name__}: a MaskedTensor goes with no other tensor")
    return _elementwise(func, args, kwargs)


def _inplace(func, args, kwargs):
    target = args[0]
    if not isinstance(target, MaskedTensor):
        raise TypeError(f"{func.__name__}: a plain tensor cannot hold what a MaskedTensor makes of it")
    _common_mask(func.__name__, args)
    return ptcore._disabled_torch_function_impl(func, (), (target, *_data(args[1:])), kwargs)


def _moving(func, args, kwargs):
    data = func(*_data(args), **kwargs)
    mask = func(*_masks(_with_masks(args)), **kwargs)
    if isinstance(data, (tuple, list)):
        return type(data)([wrapped(d, m) for d, m in zip(data, mask)])
    return wrapped(data, mask)


def _with_masks(args):
    """The arguments of a join, plain tensors with a mask of True."""
    def counted(x):
        if isinstance(x, ptcore.Tensor) and not is_masked_tensor(x):
            return ptcore.ones(x.shape, dtype=ptcore.bool, device=x.device)
        return x
    return [type(x)([counted(item) for item in x]) if isinstance(x, (tuple, list)) else x for x in args]


def _named(func, args, kwargs):
    """The arguments of a row by name, without those that are None."""
    names = list(inspect.signature(func).parameters)
    return {name: value for name, value in {**dict(zip(names, args)), **kwargs}.items() if value is not None}


def _reduced(func, args, kwargs):
    name, given = func.__name__, _named(func, args, kwargs)
    input = given.pop("input")
    mask, dim, keepdim = input.get_mask(), given.get("dim"), given.get("keepdim", False)
    if name == "norm":
        given["ord"] = {"fro": 2.0}.get(given.get("p", 2.0), given.pop("p", 2.0))
    if name == "all":
        dims = () if dim is None else (dim,)
        result = ptcore.all(input.get_data().masked_fill(~mask, True), *dims, keepdim=keepdim)
    else:
        result = getattr(_reductions, name)(input, **given)
    if dim is None or dim == ():
        return wrapped(result, mask.any() if not keepdim else mask.any().reshape(result.shape))
    return wrapped(result, mask.any(dim, keepdim))


def _where(func, args, kwargs):
    names = ("condition", "input", "other")
    given = {**dict(zip(names, args)), **kwargs}
    if len(given) != 3:
        raise ValueError(f"where: a MaskedTensor needs a condition and two tensors, got {len(given)} arguments")
    condition, x, y = [given[name] for name in names]
    if is_masked_tensor(condition):
        raise TypeError("where: condition must be a plain Tensor, got MaskedTensor")
    data = ptcore.where(condition, _data(x), _data(y))
    every = ptcore.ones((), dtype=ptcore.bool, device=condition.device)
    masks = [v.get_mask() if is_masked_tensor(v) else every for v in (x, y)]
    return wrapped(data, ptcore.where(condition, *masks))


def _softmax(func, args, kwargs):
    """Softmax with zeros where elements are masked out, also in rows without any other element."""
    given = _named(func, args, kwargs)
    x = given.pop("input")
    given.pop("_stacklevel", None)
    result = getattr(_normalizations, func.__name__)(x.get_data(), mask=x.get_mask(), **given)
    return wrapped(result, x.get_mask())


def _like(func, args, kwargs):
    return wrapped(func(args[0].get_data(), *args[1:], **kwargs), args[0].get_mask())


def _moved_to(func, args, kwargs):
    """Casts or moves a tensor; the mask stays one of bools."""
    data = func(*_data(args), **kwargs)
    return wrapped(data, args[0].get_mask().to(data.device))


def _copied(func, args, kwargs):
    target, source = args[:2]
    if is_masked_tensor(target) and is_masked_tensor(source):
        _common_mask("copy_", (target, source))
    return _inplace(func, args, kwargs)


def _of_data(func, args, kwargs):
    return func(*_data(args), **kwargs)


def _itself(func, args, kwargs):
    return ptcore._disabled_torch_function_impl(func, (), args, kwargs)


def _attribute(func, args, kwargs):
    """``data``: the same memory without history."""
    return wrapped(_itself(func, args, kwargs), args[0].get_mask())


TABLE = {
    **{name: _unary for name in UNARY}, **{name: _elementwise for name in BINARY},
    **{f"{name}_": _inplace for name in (*UNARY, *BINARY)}, **{name: _moving for name in MOVING},
    **{name: _reduced for name in REDUCTIONS}, "where": _where, "softmin": _softmax,
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
    **{f"{name}_like": _like for name in ("empty", "full", "ones", "zeros")},
    **dict.fromkeys(("to", "to_dtype", "to_device"), _moved_to), "item": _itself, "size": _itself, "copy_": _copied,
    "assign_": _copied, "fill_": _inplace, "zero_": _inplace, "is_same_size": _of_data, "to_dense": _itself,
    "__get__": _attribute,
}

_tensor.call = call
