"""The kinds of values that a capture distinguishes."""
import collections
import types
from collections import OrderedDict, defaultdict, deque

import ptcore
from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt
from ptcore._tensor import Tensor
from ptcore.jit._entry import CompiledFunction

OWN_FUNCTIONS = (type(ptcore.relu), type(ptcore.zeros), type(Tensor.item))      # compiled functions of the package
# Immutable values that are fully described by equality.
VALUES = {int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, ptcore.dtype,
          ptcore.device, ptcore.Size, ptcore.memory_format}
# Objects guarded by identity. Their attributes are never read, or are guarded one by one.
OBJECTS = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, types.MethodDescriptorType,
           types.WrapperDescriptorType, types.ClassMethodDescriptorType, property, *OWN_FUNCTIONS, staticmethod,
           classmethod, types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodWrapperType,
           CompiledFunction)
FIELD = type(collections.namedtuple("_", "a").a)
SEQUENCES, MAPPINGS = (list, tuple, deque), (dict, OrderedDict, defaultdict)
SETS = (set, frozenset)
NUMBERS = (SymInt, SymFloat, SymBool)


# Methods that a subclass of a container must inherit to be read as the container.
READS = ("__getitem__", "__iter__", "__len__", "__contains__", "keys", "values", "items", "get", "index", "count")


def is_heap_type(cls):
    """Whether a class was made by Python code or may be changed by it (Py_TPFLAGS_HEAPTYPE)."""
    return bool(cls.__flags__ & 1 << 9)


def is_generated(f):
    """Whether ``dataclass`` or ``namedtuple`` made a function, which then has no source.

    The name of its file does not tell: code that is typed into a shell has one such as <ipython-input-1>.
    """
    code = f.__code__
    return code.co_qualname.startswith("__create_fn__.") or (f.__name__ == "__new__" and code.co_name == "<lambda>")


def _is_plain(cls, base):
    return issubclass(cls, base) and all([getattr(cls, n, None) is getattr(base, n, None) for n in READS])


def is_sequence(x):
    """Whether ``x`` is a list, a tuple or a deque, or of a subclass that reads in the same way."""
    cls = type(x)
    return cls in SEQUENCES or _is_plain(cls, tuple) or _is_plain(cls, list)


def is_mapping(x):
    """Whether ``x`` is a dictionary, or of a subclass that reads in the same way."""
    cls = type(x)
    return cls in MAPPINGS or _is_plain(cls, dict) or _is_plain(cls, OrderedDict)


def is_container(x):
    return is_sequence(x) or is_mapping(x) or type(x) in SETS
