"""Helpers for forward pre-hooks that keep a parameter in another form."""
from ptcore._tensor import Tensor
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import is_lazy

__all__ = []


def hooks_of(module, cls, name, attribute="name"):
    """The keys of a module's hooks of a class for a parameter, which `attribute` of a hook names.
    """
    need_module(cls.__name__, module)
    return [key for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, cls) and getattr(hook, attribute) == name]


def take_hook(module, cls, name, attribute="name"):
    """Let the hook for a parameter undo its work, and remove it; return whether there was one."""
    keys = hooks_of(module, cls, name, attribute)
    if not keys:
        return False
    module._forward_pre_hooks[keys[0]].remove(module)
    del module._forward_pre_hooks[keys[0]]
    return True


def need_module(op, module):
    """Refuse objects that are no modules."""
    if not isinstance(module, Module):
        raise TypeError(f"{op}: module must be a Module, got {type(module).__name__}")


def need_parameter(op, module, name, error=AttributeError, may_be_none=False):
    """The tensor of a module with this name. `error`: the class of the exception if there is none, as in PyTorch."""
    need_module(op, module)
    if not isinstance(name, str):
        raise TypeError(f"{op}: name must be str, got {type(name).__name__}")
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        if name in module._parameters and may_be_none:
            return None
        if name in module._parameters:
            raise TypeError(f"{op}: parameter {name!r} of {type(module).__name__} must be a tensor, got None")
        raise error(f"{op}: name must be that of a parameter of {type(module).__name__}, got {name!r}")
    return tensor


def refuse_second(op, module, cls, name):
    """Raise if there is a hook of a class for a parameter."""
    if hooks_of(module, cls, name):
        raise RuntimeError(f"{op}: Cannot register two {op} hooks on the same parameter {name}")


def refuse_lazy(op, cls, weight):
    """Raise if a parameter has no shape yet."""
    if is_lazy(weight):
        raise ValueError(f"{op}: The module passed to `{cls.__name__}` can't have uninitialized parameters. Make sure "
                         f"to run the dummy forward before applying {op.replace('_norm', ' normalization')}")
