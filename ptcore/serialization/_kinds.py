"""Objects of classes that a program has: which of them ``load(..., weights_only=False)`` makes again, and how.

An object is made by its kind. It gets its dict and its slots; neither ``__init__`` nor a method of its class runs. So a
file chooses what is made, but calls nothing. Its classes are looked up in the dicts of modules that are imported
already, never by ``getattr``, which may import or run more.
"""

import dataclasses
import enum
import functools
import sys
import types
from abc import ABCMeta
from collections import OrderedDict, defaultdict
from pickle import UnpicklingError
from typing import Generic, Protocol

import ptcore
from ptcore import nn
from ptcore.nn.modules.module_hooks import TABLES
from ptcore.serialization._torch_names import is_public, public

_DICT_OF_MODULE = types.ModuleType.__dict__["__dict__"].__get__
_DICT_OF_CLASS = type.__dict__["__dict__"].__get__
_MRO = type.__dict__["__mro__"].__get__
_HEAP = 1 << 9                  # CPython's flag of classes that are no static structures
_POINTER = tuple.__itemsize__
# What a class may not have of its own, since its objects would be made or kept otherwise than by dict and slots.
_OWN_WAY = ("__new__", "__del__", "__reduce__", "__reduce_ex__", "__setstate__", "__getattribute__")
# What a metaclass may define, as reading its classes runs none of it.
_OF_METACLASS = {"__new__", "__init__", "__call__", "__prepare__", "__module__", "__qualname__", "__doc__", "__dict__",
                 "__weakref__", "__annotations__", "__firstlineno__", "__static_attributes__", "__slots__"}
_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_SLOTS_STATE = getattr(dataclasses, "_dataclass_setstate", None)     # of frozen dataclasses with slots

_PLAIN_VALUES = {int, float, bool, str, bytes, complex, type(None), ptcore.Tensor, nn.Parameter, ptcore.dtype,
                 ptcore.device, ptcore.Size}

# Kinds of classes.
PLAIN, MODULE, OPTIMIZER, CONTAINER, NAMED_TUPLE, ENUM = "plain", "module", "optimizer", "container", "tuple", "enum"
TENSOR = "tensor"


class Refused(UnpicklingError):
    """A class whose objects are not made, with the reason."""


def own(cls):
    """A class's own dict, whatever its metaclass answers."""
    return _DICT_OF_CLASS(cls)


def mro(cls):
    """A class's bases in their order, whatever its metaclass answers."""
    return _MRO(cls)


def is_class(value):
    """Whether it is a class, whatever it says itself."""
    return type in _MRO(type(value))


def name_of(cls):
    """A class's name, whatever its metaclass answers."""
    return type.__dict__["__name__"].__get__(cls)


def root_of(cls):
    """The package of a class, by the name of its module."""
    module = own(cls).get("__module__")
    return module.partition(".")[0] if type(module) is str else "builtins"


def of_library(cls):
    """Whether a class belongs to Python or to ptcore."""
    root = root_of(cls)
    return root == "ptcore" or root in sys.stdlib_module_names


def imported(module, name):
    """What a name means in a module that is imported; raises Refused if it is not there."""
    found = sys.modules.get(module)
    if not isinstance(found, types.ModuleType):
        raise Refused(f"the module {module} has not been imported")
    parts = name.split(".")
    table = _DICT_OF_MODULE(found)
    for part in parts[:-1]:
        cls = table.get(part)
        if not is_class(cls):
            raise Refused(f"{module} has no class {name}")
        table = own(cls)
    if parts[-1] not in table:
        raise Refused(f"{module} has no class {name}")
    return table[parts[-1]]


def _is_of_python(cls):
    """Whether a class statement made it, so that C has no part in the memory of its objects."""
    if cls is Generic:          # C makes it from Python 3.12 on; it adds nothing to an object
        return True
    if not type.__dict__["__flags__"].__get__(cls) & _HEAP:
        return False
    pointers = 0
    for name, value in own(cls).items():
        kind = type(value)
        if kind in _C_METHODS and value.__objclass__ is cls:
            return False
        if kind is types.GetSetDescriptorType and value.__objclass__ is cls:
            if name not in ("__dict__", "__weakref__"):
                return False
            pointers += 1
        pointers += kind is types.MemberDescriptorType and value.__objclass__ is cls
    size = type.__dict__["__basicsize__"].__get__
    base = type.__dict__["__base__"].__get__(cls)
    return size(cls) - size(base) <= pointers * _POINTER


def _is_quiet(metaclass):
    """Whether a metaclass has no say when its classes are compared, hashed or read."""
    for base in _MRO(metaclass):
        if base in (type, object, ABCMeta, enum.EnumMeta, type(Protocol)):
            continue
        if not type.__dict__["__flags__"].__get__(base) & _HEAP or type(base) is not type:
            return False
        if any(name[:2] == "__" and name not in _OF_METACLASS for name in own(base)):
            return False
    return True


def _own_way(cls, without=()):
    """The method of a class's own by which its objects are made or kept, or None, but for ptcore's ``__setstate__``."""
    for base in mro(cls):
        if base in without:
            continue
        for name in _OWN_WAY:
            value = own(base).get(name)
            if value is None or value is _SLOTS_STATE or (name == "__setstate__" and root_of(base) == "ptcore"):
                continue
            return name
    return None


@functools.lru_cache(maxsize=1)
def _bases():
    return frozenset(base for cls in public() for base in mro(cls) if root_of(base) == "ptcore")


def _is_base(cls):
    """Whether a class is one of ptcore's from which public ones inherit."""
    return root_of(cls) == "ptcore" and cls in _bases()


def _of_argparse():
    argparse = sys.modules.get("argparse")
    return argparse.Namespace if argparse is not None else None


def container_of(cls):
    """The container of Python that a class inherits from, or None."""
    return next((each for each in (OrderedDict, dict, list) if each in mro(cls)), None)


def is_hashed_plainly(cls):
    """Whether the members of an enum are hashed and compared by Python's own methods."""
    return not any("__hash__" in own(base) or "__eq__" in own(base) for base in mro(cls) if not of_library(base))


def kind_of(cls):
    """The kind of a class; raises Refused if its objects are not made."""
    bases = mro(cls)
    for base in bases:
        if type(base) is not type and not _is_quiet(type(base)):
            raise Refused("a class whose metaclass has a say in how it is read")
    if cls is _of_argparse():
        return PLAIN
    if of_library(cls) and not is_public(cls):
        raise Refused("a class of Python's library" if root_of(cls) != "ptcore" else "a class of ptcore's own")
    if enum.Enum in bases:
        if any("__getattribute__" in own(base) for base in bases if not of_library(base)):
            raise Refused("an enum that answers reads itself")
        return ENUM
    if tuple in bases:
        return _named_tuple(cls, bases)
    if ptcore.Tensor in bases:
        return _tensor(bases)
    container = container_of(cls)
    inherited = (object,) if container is None else (object, dict, container)
    for base in bases:
        if base not in inherited and not _is_of_python(base) and not _is_base(base):
            raise Refused(f"a class that inherits from {name_of(base)}, whose objects are C's")
    method = _own_way(cls, inherited)
    if method is not None:
        raise Refused(f"a class with a {method} of its own")
    if nn.Module in bases:
        return MODULE
    if "ptcore.optim" in sys.modules and sys.modules["ptcore.optim"].Optimizer in bases:
        return OPTIMIZER
    return CONTAINER if container is not None else PLAIN


def _tensor(bases):
    # A tensor becomes one of the class without ``__new__``, as in PyTorch.
    for base in bases:
        if base not in (object, ptcore.Tensor) and (root_of(base) == "ptcore" or not _is_of_python(base)):
            raise Refused(f"a class that inherits from {name_of(base)}, whose objects are C's")
        if base not in (object, ptcore.Tensor) and any(name in own(base) for name in _OWN_WAY[1:]):
            raise Refused("a class of tensors with a way of its own to be kept")
    return TENSOR


def _named_tuple(cls, bases):
    fields = next((own(base)["_fields"] for base in bases if "_fields" in own(base)), None)
    made = next((base for base in bases if "_fields" in own(base)), None)
    below = bases[:bases.index(tuple)]
    if made is None or type(fields) is not tuple or any("__new__" in own(base) for base in below if base is not made):
        raise Refused("a subclass of tuple that is no named tuple")
    for base in below:
        if not _is_of_python(base):
            raise Refused(f"a class that inherits from {name_of(base)}, whose objects are C's")
        if any(name in own(base) for name in _OWN_WAY[1:]):
            raise Refused("a named tuple with a way of its own to be kept")
    return NAMED_TUPLE


# -- making ------------------------------------------------------------------------------------------------

def make(cls, kind, args):
    """An object without its state; `args` are those of the pickle's ``NEWOBJ``."""
    if kind is NAMED_TUPLE:
        fields = next(own(base)["_fields"] for base in mro(cls) if "_fields" in own(base))
        if len(args) != len(fields):
            raise ValueError(f"a {name_of(cls)} has {len(fields)} fields, got {len(args)}")
        return tuple.__new__(cls, args)
    if kind is ENUM:
        return member(cls, args)
    if kind is TENSOR:
        raise ValueError(f"a {name_of(cls)} is made of no tensor")
    if args:
        raise ValueError(f"a {name_of(cls)} is made with arguments")
    if kind is CONTAINER:
        return container_of(cls).__new__(cls)
    return object.__new__(cls)


def member(cls, args):
    """The member of an enum with a value, or of several flags. Values are compared only if they are plain."""
    if len(args) != 1:
        raise ValueError(f"a member of {name_of(cls)} has one value, got {len(args)}")
    value = args[0]
    for each in own(cls)["_member_map_"].values():
        if _same((dict_of(each) or {}).get("_value_"), value):
            return each
    if enum.Flag in mro(cls) and type(value) is int and own(cls)["_member_type_"] in (object, int):
        theirs = [own(base).get(name) for base in mro(cls) for name in ("_missing_", "_iter_member_")]
        if all(f is None or getattr(f, "__func__", f).__module__ == "enum" for f in theirs):
            return own(enum.Flag)["_missing_"].__func__(cls, value)
    raise ValueError(f"{name_of(cls)} has no member with that value")


def _same(a, b):
    """Whether plain values are equal, without a method of theirs."""
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) in (int, str, float, bool, bytes, type(None)) and a == b


def named(cls, name):
    """The member of an enum with a name."""
    found = own(cls)["_member_map_"].get(name)
    if found is None:
        raise ValueError(f"{name_of(cls)} has no member {name[:100]!r}")
    return found


def _descriptor(cls, name, kind):
    """The descriptor of a slot or of ``__dict__`` that a class or a base has; None if there is none."""
    for base in mro(cls):
        value = own(base).get(name)
        if type(value) is kind:
            return value
    return None


def dict_of(target):
    """The dict of an object, whatever its class answers."""
    if type(target) in (dict, list):
        return None
    found = _descriptor(type(target), "__dict__", types.GetSetDescriptorType)
    return None if found is None else found.__get__(target)


def give(target, kind, state):
    """Gives an object the state of its pickle."""
    cls = type(target)
    restore = next((own(base)["__setstate__"] for base in mro(cls) if "__setstate__" in own(base)), None)
    if restore is not None and restore is not _SLOTS_STATE:     # of ptcore's own: a class with another is refused
        if type(state) is not dict:
            raise ValueError(f"the state of a {name_of(cls)} is no dictionary")
        _names(state)
        _check_read(mro(cls), state)
        restore(target, state)
        return
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    if type(state) is list and _descriptor(cls, "__setstate__", types.FunctionType) is _SLOTS_STATE is not None:
        fields = [name for name, field in next(
            own(base)["__dataclass_fields__"] for base in mro(cls) if "__dataclass_fields__" in own(base)).items()
            if field._field_type is dataclasses._FIELD]
        if len(fields) != len(state):
            raise ValueError(f"a {name_of(cls)} has {len(fields)} fields, got {len(state)}")
        state, slots = None, dict(zip(fields, state))
    for part in (state, slots):
        if part is not None and type(part) is not dict:
            raise ValueError(f"the state of a {name_of(cls)} is no dictionary")
    if state:
        _names(state)
        table = dict_of(target)
        if table is None:
            raise ValueError(f"a {name_of(cls)} has no dict for its state")
        table.update((sys.intern(name), value) for name, value in state.items())
    for name, value in (slots or {}).items():
        slot = _descriptor(cls, name, types.MemberDescriptorType) if type(name) is str else None
        if slot is None:
            raise ValueError(f"a {name_of(cls)} has no such slot")
        slot.__set__(target, value)


def _check_read(bases, state):
    """Raises where ``__setstate__`` of ptcore's own would ask something of an object that the file made."""
    of_modules = (*TABLES, "_parameters", "_buffers", "_modules") if nn.Module in bases else ()
    wrong = [name for name in of_modules if name in state and type(state[name]) not in (dict, OrderedDict)]
    if nn.Module in bases:
        wrong += [name for name in ("_is_full_backward_hook",) if type(state.get(name)) not in (bool, type(None))]
        wrong += [name for name in ("_non_persistent_buffers_set",) if type(state.get(name, set())) is not set]
    if nn.RNNBase in bases:
        wrong += [name for name in ("bias", "bidirectional") if type(state.get(name)) is not bool]
        wrong += [name for name in ("num_layers", "proj_size") if type(state.get(name, 0)) is not int]
        if not wrong and not 0 < state.get("num_layers", 0) <= len(state.get("_parameters", ())):
            wrong.append("num_layers")
    if "ptcore.optim" in sys.modules and sys.modules["ptcore.optim"].Optimizer in bases:
        wrong += [name for name in ("defaults", "param_groups", "state") if not _is_plain(state.get(name))]
    if wrong:
        raise ValueError(f"{wrong[0]} in the state of a {name_of(bases[0])} is damaged")


def _is_number_of_numpy(cls):
    """Whether it is one of NumPy's own scalars, which a learning rate may be."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and numpy.generic in mro(cls) and not type.__dict__["__flags__"].__get__(cls) & _HEAP


def _is_plain(value):
    """Whether containers hold nothing but numbers, words and tensors."""
    stack, seen = [value], set()
    while stack:
        part = stack.pop()
        cls = type(part)
        if cls in (dict, OrderedDict, defaultdict, list, tuple):
            if id(part) not in seen:
                seen.add(id(part))
                stack.extend(part)
                stack.extend(part.values() if cls not in (list, tuple) else ())
        elif cls not in _PLAIN_VALUES and not _is_number_of_numpy(cls):
            return False
    return True


def _names(state):
    for name in state:
        if type(name) is not str:
            raise ValueError("a state has a name that is no text")
