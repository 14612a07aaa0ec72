"""Calls of modules with other parameters and buffers than their own."""
from ptcore import Tensor
from ptcore._contexts import Replaced
from ptcore.nn.modules.module import Module

__all__ = ["functional_call"]


def _with_tied(module, values):
    """The given tensors, each also under the other names that its parameter or buffer has in the module."""
    names = {}
    for named in (module.named_parameters, module.named_buffers):
        for name, tensor in named(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    result = dict(values)
    for tied in names.values():
        given = [name for name in tied if name in values]
        if len(tied) > 1 and given:
            if len({id(values[name]) for name in given}) > 1:
                raise ValueError(f"functional_call got multiple values for keys {sorted(tied)}, which are tied. "
                                 "Consider using tie_weights=False")
            result.update(dict.fromkeys(tied, values[given[0]]))
    return result


def _check_keys(module, values):
    own = {name for named in (module.named_parameters, module.named_buffers)
           for name, _ in named(remove_duplicate=False)}
    errors = [f"{title} key(s): {', '.join(map(repr, keys))}."
              for title, keys in (("Unexpected", [k for k in values if k not in own]),
                                  ("Missing", sorted(own - values.keys()))) if keys]
    if errors:
        raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(errors)))


def _place(module, name, cls):
    """The dict of a module that holds a tensor of this name; the module itself where its class sets the attribute."""
    for table in (module._parameters, module._buffers):
        if name in table:
            return table
    # a value that hides a parametrised tensor, or is no parameter, is an attribute of the instance
    if cls is type(module):
        present = getattr(module, name, None)
        if present is not None and not isinstance(present, Tensor):
            raise TypeError(f"functional_call: attribute {name!r} of {module._get_name()} is not an instance of "
                            f"Tensor, but of {type(present).__name__}")
    return module if hasattr(type(getattr(cls, name, None)), "__set__") else module.__dict__


def _unparametrized(module, name, cls):
    """A class like ``cls``, the module's, in which a parametrised tensor is an ordinary attribute."""
    from ptcore.nn.utils.parametrize import _class_of, is_parametrized

    if not is_parametrized(module, name) or name not in vars(cls):
        return cls
    return _class_of(cls.__bases__[0], [key for key in module.parametrizations if key in vars(cls) and key != name])


def call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """:func:`ptcore.func.functional_call` of one dictionary."""
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: module must be a Module, got {type(module).__name__}")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    values = parameters_and_buffers
    wanted = _with_tied(module, values) if tie_weights else values
    if strict:
        _check_keys(module, wanted)
    changes, classes, places = [], {}, {}
    for path, value in wanted.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"functional_call: {path} must be a Tensor, got {type(value).__name__}")
        prefix, _, name = path.rpartition(".")
        if not name:
            raise KeyError('functional_call: tensor name can\'t be empty string ""')
        holder = module.get_submodule(prefix)
        present = classes.get(id(holder), type(holder))
        cls = classes[id(holder)] = _unparametrized(holder, name, present)
        if cls is not present:
            changes.append((holder, "__class__", cls))
        place = _place(holder, name, cls)
        changes.append((place, name, value))
        if place is not holder:
            places[path] = place, name
    with Replaced(changes):
        try:
            return module(*args, **(kwargs or {}))
        finally:                        # what the module assigned
            values.update({path: table[name] for path, (table, name) in places.items()
                           if path in values and name in table})


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The older name of :func:`ptcore.func.functional_call`, for one dictionary."""
    import warnings

    warnings.warn("`nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0; use "
                  "`func.functional_call`, which takes its place.", FutureWarning, stacklevel=2)
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
