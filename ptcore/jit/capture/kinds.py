"""Kinds of values, as a capture tells them apart."""
import collections
import types
from collections import OrderedDict, defaultdict, deque

import ptcore
from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt
from ptcore._tensor import Tensor
from ptcore.nn.modules.registry import Registry

OWN_FUNCTIONS = (type(ptcore.relu), type(ptcore.zeros), type(Tensor.item))      # compiled functions of the package
# Values that cannot be written to, and that say all there is to say by being equal.
VALUES = {int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, ptcore.dtype,
          ptcore.device, ptcore.Size, ptcore.memory_format}
# What is the same as long as it is the same object: nobody asks what is in it, or what can be in it is asked apart.
OBJECTS = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, types.MethodDescriptorType,
           types.WrapperDescriptorType, types.ClassMethodDescriptorType, property, *OWN_FUNCTIONS, staticmethod,
           classmethod, types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodWrapperType)
FIELD = type(collections.namedtuple("_", "a").a)
SEQUENCES, MAPPINGS = (list, tuple, deque), (dict, OrderedDict, defaultdict, Registry)
SETS = (set, frozenset)
NUMBERS = (SymInt, SymFloat, SymBool)


# What a subclass of a container must have from it, to be read as one.
READS = ("__getitem__", "__iter__", "__len__", "__contains__", "keys", "values", "items", "get", "index", "count")


def _is_plain(cls, base):
    return issubclass(cls, base) and all([getattr(cls, n, None) is getattr(base, n, None) for n in READS])


def is_sequence(x):
    """Whether it is a list, a tuple or a deque, or of a subclass that is read as they are."""
    cls = type(x)
    return cls in SEQUENCES or _is_plain(cls, tuple) or _is_plain(cls, list)


def is_mapping(x):
    """Whether it is a dictionary, or of a subclass that is read as one."""
    cls = type(x)
    return cls in MAPPINGS or _is_plain(cls, dict) or _is_plain(cls, OrderedDict)


def is_container(x):
    return is_sequence(x) or is_mapping(x) or type(x) in SETS
