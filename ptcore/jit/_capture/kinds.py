"""Kinds of values, as a capture tells them apart."""
import collections
import types
from collections import OrderedDict, defaultdict, deque

import ptcore
from ptcore._symbolic import SymBool, SymFloat, SymInt
from ptcore._tensor import Tensor
from ptcore.nn.modules._registry import Registry

__all__ = ["FIELD", "MAPPINGS", "NUMBERS", "OBJECTS", "OWN_FUNCTIONS", "SEQUENCES", "SETS", "VALUES", "is_sequence"]

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


def is_sequence(x):
    cls = type(x)
    return cls in SEQUENCES or (issubclass(cls, tuple) and cls.__getitem__ is tuple.__getitem__
                                and cls.__iter__ is tuple.__iter__)
