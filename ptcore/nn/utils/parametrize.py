"""Parametrisation: a parameter or buffer of a module as a function of other tensors.

``register_parametrization(module, "weight", f)`` makes ``module.weight`` the result of the module f, computed anew at
each read. The argument of f becomes a parameter, ``module.parametrizations.weight.original``, which optimisers and
state dicts use. If f has a method ``right_inverse``, ``module.weight = value`` sets it.
"""
import copy
from collections.abc import Sequence

import ptcore
from ptcore import Tensor
from ptcore._contexts import Counted
from ptcore.nn.modules.container import ModuleDict, ModuleList
from ptcore.nn.parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]

_cached = {"depth": 0, "values": {}}     # for the whole process, as in PyTorch


class cached(Counted):
    """Within this context every parametrised tensor is computed once, at its first read.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils import parametrize
    >>> layer = ptcore.nn.utils.parametrizations.weight_norm(ptcore.nn.Linear(3, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    >>> layer.weight is layer.weight
    False
    """

    def __init__(self):
        super().__init__(_cached, "depth", "values")


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _assign(tensor, value):
    """Give a tensor the memory of another one; the optimiser still knows the tensor as the same object."""
    tensor.data = value.detach()


def _check_tensor(value, what):
    if not isinstance(value, Tensor):
        raise ValueError(f"register_parametrization: {what} must return a tensor. Got {type(value).__name__}.")


def _check_like(value, tensor, what, properties):
    """Refuse a parametrisation that changes dtype or shape, unless it is unsafe."""
    for name in properties:
        expected, got = getattr(tensor, name), getattr(value, name)
        if expected != got:
            raise ValueError(f"register_parametrization: {what} may not change the {name} of the tensor, unless the "
                             f"`unsafe` flag is enabled: expected {expected}, got {got}")


def _inverse(module, value):
    """The right inverse of a parametrisation for a value; the value itself if it has none."""
    if not hasattr(module, "right_inverse"):
        return value
    try:
        return module.right_inverse(value)
    except NotImplementedError:
        return value


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, the first one applied first, and the tensors they start from.

    Attributes
    ----------
    original : Tensor
        The argument of the first parametrisation. If its ``right_inverse`` returns several tensors, they are
        ``original0``, ``original1``, ... in its place.

    Notes
    -----
    :func:`register_parametrization` makes it; ``module.parametrizations.weight`` is one.
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with ptcore.no_grad():
            new = original
            for module in reversed(self):
                new = _inverse(module, new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError("register_parametrization: 'right_inverse' must return a Tensor or a Sequence of tensors "
                             f"(list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for name in ("dtype", "device"):
                if getattr(original, name) != getattr(new, name):
                    raise ValueError(f"register_parametrization: When `right_inverse` outputs one tensor, it may not "
                                     f"change the {name}: expected {getattr(original, name)}, got {getattr(new, name)}")
            if new is not original:
                _assign(original, new)
            _register(self, "original", original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, Tensor):
                    raise ValueError("register_parametrization: 'right_inverse' must return a Tensor or a Sequence of "
                                     f"tensors (list, tuple...). Got element {i} of the sequence with type "
                                     f"{type(tensor).__name__}.")
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", tensor)
        if not self.unsafe:
            result = self()
            _check_tensor(result, "A parametrization")
            _check_like(result, ptcore.empty(shape, dtype=dtype, device="meta"), "a parametrization",
                        ("dtype", "shape"))

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Set the originals so that the parametrised tensor becomes `value`.

        Raises
        ------
        RuntimeError
            If a parametrisation has no method ``right_inverse``.
        """
        with ptcore.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                value = [value]
            elif not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            elif len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a "
                                 f"sequence of length {len(value)}.")
            for i, (old, new) in enumerate(zip(self._originals(), value, strict=True)):
                if not isinstance(new, Tensor):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got element {i} of type "
                                     f"{type(new).__name__}")
                if new.dtype != old.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {new.dtype} while "
                                     f"`original{'' if self.is_tensor else i}` has dtype {old.dtype}")
                _assign(old, new)

    def forward(self):
        """The parametrised tensor."""
        value = self[0](*self._originals())
        # Not all modules: ``parametrizations`` is one where an original is parametrised itself.
        for i in range(1, len(self)):
            if str(i) not in self._modules:
                break
            value = self[i](value)
        return value


def _property(name):
    """The attribute that reads and sets a parametrised tensor."""

    def get(self):
        parametrization = self.parametrizations[name]
        if not _cached["depth"]:
            return parametrization()
        values, key = _cached["values"], (id(self), name)       # the dict is replaced when the outermost context ends
        if key not in values:
            values[key] = parametrization(), self               # the module is kept, so that its id stays its own
        return values[key][0]

    def set_(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(get, set_)


def _getstate(self):
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(): save that, and "
                       "load it into a module with the same parametrizations")


def _deepcopy(self, memo):
    """A copy with a class of its own, so that removing a parametrisation of one copy does not affect the other."""
    if id(self) in memo:
        return memo[id(self)]
    result = memo[id(self)] = object.__new__(_class_of(type(self).__bases__[0], self.parametrizations))
    result.__setstate__(copy.deepcopy(ptcore.nn.Module.__getstate__(self), memo))
    return result


def _class_of(cls, names):
    """A subclass of a module's class in which some tensors are parametrised."""
    members = {"__getstate__": _getstate, **{name: _property(name) for name in names}}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    return type(f"Parametrized{cls.__name__}", (cls,), members)


def _check_added(module, name, parametrization):
    """Check that a further parametrisation and its right inverse keep dtype and shape of the present tensor."""
    present = getattr(module, name)
    value = parametrization(present)
    _check_tensor(value, "A parametrization")
    _check_like(value, present, "a parametrization", ("dtype", "shape"))
    back = _inverse(parametrization, value)
    _check_tensor(back, "parametrization.right_inverse")
    _check_like(back, present, "parametrization.right_inverse", ("dtype", "shape"))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Make a parameter or buffer the result of a module, computed whenever it is read.

    Parameters
    ----------
    module : Module
    tensor_name : str
        The name of a parameter or buffer, or of a parametrised tensor: then the new parametrisation is applied to its
        result.
    parametrization : Module
        Its ``forward`` takes and returns a tensor. With a method ``right_inverse`` the tensor can be assigned to; if
        that returns several tensors, ``forward`` takes as many.
    unsafe : bool, default: False
        Whether the parametrisation may change dtype and shape. It is not tried out then.

    Returns
    -------
    Module
        The module; its class is now a subclass of its former class.

    Raises
    ------
    ValueError
        If there is no such tensor, or the parametrisation changes dtype or shape.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils import parametrize
    >>> class Symmetric(ptcore.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = parametrize.register_parametrization(ptcore.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_added(module, tensor_name, parametrization)
        present = module.parametrizations[tensor_name]
        present.append(parametrization)
        present.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _class_of(type(module), ())
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(f"register_parametrization: Module '{module}' does not have a parameter, a buffer, or a "
                         f"parametrized element with name '{tensor_name}'")
    return module


def is_parametrized(module, tensor_name=None):
    """Whether a tensor of a module, or any of its own if no name is given, is parametrised.

    >>> import ptcore
    >>> layer = ptcore.nn.utils.parametrizations.weight_norm(ptcore.nn.Linear(3, 2))
    >>> is_parametrized(layer), is_parametrized(layer, "bias")
    (True, False)
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make a parametrised tensor a parameter or buffer again.

    Parameters
    ----------
    module : Module
    tensor_name : str
    leave_parametrized : bool, default: True
        Whether the tensor keeps its present value; otherwise it gets the value of ``original``.

    Returns
    -------
    Module
        The module.

    Raises
    ------
    ValueError
        If the tensor is not parametrised, or has several originals and `leave_parametrized` is False.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(ptcore.nn.Linear(3, 2))
    >>> parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=3, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with ptcore.no_grad():
                _assign(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError("remove_parametrizations: Cannot leave unparametrized (`leave_parametrized=False`) a tensor "
                         "that is parametrized in terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class that a module had before anything of it was parametrised.

    >>> import ptcore
    >>> type_before_parametrizations(ptcore.nn.utils.parametrizations.weight_norm(ptcore.nn.Linear(3, 2))).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give a module the parametrisations and originals of another one.

    Parameters
    ----------
    from_module, to_module : Module
    tensor_name : str, optional
        Only that tensor; otherwise all that are parametrised.

    Returns
    -------
    Module
        `to_module`.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not is_parametrized(from_module, name):
            raise ValueError(f"transfer_parametrizations_and_params: from_module has no parametrization on {name}")
        given = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        for key in (*given._parameters, *given._buffers):
            setattr(to_module.parametrizations[name], key, getattr(given, key))
    return to_module
