"""How objects of a program's own classes stand in a file: in PyTorch's form, by the kinds of ``_kinds.py``."""

import sys
import types
from collections import OrderedDict

from ptcore.nn.modules.lazy import LazyModuleMixin
from ptcore.nn.modules.module_hooks import TABLES
from ptcore.nn.parameter import UninitializedBuffer, UninitializedParameter
from ptcore.serialization import _kinds, _torch_names
from ptcore.serialization._object_reader import LAZY_HOOKS, SCALES, is_listed
from ptcore.utils.hooks import RemovableHandle


class Unwritten(Exception):
    """Why an object is not written."""


def name_of(thing):
    """The (module, name) by which a file names a class or a function; raises Unwritten if it has none."""
    name = _torch_names.name_of(thing)
    if name is not None:
        return name
    if not _kinds.is_class(thing):
        raise Unwritten("functions of a program are not written")
    module, name = thing.__module__, thing.__qualname__
    if is_listed(module, name):
        return ("pathlib" if module == "pathlib._local" else module), name
    try:
        if _kinds.imported(module, name) is not thing:
            raise _kinds.Refused(f"{module} has another class of that name")
        _kinds.kind_of(thing)
    except _kinds.Refused as error:
        raise Unwritten(str(error)) from None
    return module, name


def described(value, is_named=False):
    """(name, arguments of its making or None, state or None) of an object of a kind that is written so.

    Arguments are None where the object is written by its class's ``__reduce_ex__``, or is a class or a function.
    """
    cls = type(value)
    if cls is types.MethodType and value.__name__ in LAZY_HOOKS and isinstance(value.__self__, LazyModuleMixin):
        return ("builtins", "getattr"), (value.__self__, value.__name__), None
    if cls is types.FunctionType and value.__name__ in SCALES and value.__module__ == "ptcore.optim._cyclic":
        return ("builtins", "getattr"), (sys.modules[value.__module__].CyclicLR, value.__name__), None
    if is_named:
        return name_of(value), None, None
    if cls is RemovableHandle:
        return _torch_names.name_of(cls), (), value.__getstate__()
    if cls in (UninitializedParameter, UninitializedBuffer):
        return _torch_names.name_of(cls), (value.requires_grad,), None
    if value is ...:
        return ("builtins", "Ellipsis"), None, None
    name = name_of(cls)
    if is_listed(*name):
        return name, None, None
    kind = _kinds.kind_of(cls)
    if kind is _kinds.MODULE:
        return name, (), module_state(value)
    if kind is _kinds.ENUM:
        return name, (value._value_,), None
    if kind is _kinds.OPTIMIZER:
        return name, (), dict(value.__getstate__())
    return name, None, None


def module_state(module):
    """The dict of a module as PyTorch keeps it, with a table for each kind of hook."""
    state = dict(module.__getstate__())
    state.pop("_hooks", None)
    for table in TABLES:
        if table not in state:
            state[table] = OrderedDict()
    state.setdefault("_is_full_backward_hook", None)
    for name in type(module)._torch_computed:
        state[name] = getattr(module, name)
    return state
