"""What a capture does with a value from outside of the program: the one table of types.

The rule: a value that a program reads is guarded, recomputed in each call, or refused. A function that meets one of the
last kind is not captured; under ``fullgraph`` an error names the object.

* ``VALUES``, ``EXACT``, numbers and words of NumPy: guarded by value. Type, sign of zero and text count. Subclasses of
  these (``VALUE_BASES``) are guarded by class and value, and their attributes one by one.
* ``OBJECTS`` and members of enumerations: guarded by identity. What a program reads of them is guarded.
* Tensors: inputs of the graph. Everything but their values is guarded by ``TensorLook``; the offset in the memory if
  the program asks for it. ``TENSOR_REFUSED`` of ``calls.py`` names what a graph cannot say about a tensor.
* ``SEQUENCES``, ``MAPPINGS``, ``SETS`` and subclasses that read in the same way, slices, views of dictionaries, bound
  methods and partial functions: guarded part by part, as far as the program reads them.
* Objects of classes that Python code defines: guarded by class. Attributes, and what their methods read, are guarded.
  Methods that native code would call unseen (``CALLED_BY_NATIVE``) are called by the recorder, or refused.
* ``ASKED``: objects whose attributes are not those of a dictionary. Each attribute is read anew in each check.
* Any other object: of an unknown class in C. Its class, its identity, and its members may be asked. All that its own
  C code would answer (truth, length, elements, operators, methods) is refused, since that code may read anything.
"""
import collections
import datetime
import decimal
import threading
import types
import weakref
from collections import OrderedDict, defaultdict, deque

import ptcore
from ptcore._libraries import library
from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt
from ptcore._tensor import Tensor
from ptcore.jit._entry import CompiledFunction

np = library("numpy")

OWN_FUNCTIONS = (type(ptcore.relu), type(ptcore.zeros), type(Tensor.item))      # compiled functions of the package
# Immutable values that are fully described by equality.
VALUES = {int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range, ptcore.dtype,
          ptcore.device, ptcore.Size, ptcore.memory_format}
# Classes of which each value is one object.
SINGLE = {bool, type(None), type(Ellipsis), type(NotImplemented), ptcore.dtype, ptcore.memory_format}
# Others of that kind, whose text says all that equality may not.
EXACT = {decimal.Decimal, datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone}
VALUE_BASES = (int, float, complex, str, bytes, *EXACT)
ASKED = (threading.local, weakref.ProxyType, weakref.CallableProxyType)
# Methods of Python code that native code calls on its arguments.
CALLED_BY_NATIVE = tuple([f"__{n}__" for n in (
    "index int float complex abs round trunc floor ceil bool len iter next getitem contains bytes fspath neg pos "
    "invert add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod pow rpow matmul "
    "rmatmul lt le gt ge array array_interface").split()])
# Objects guarded by identity. Their attributes are never read, or are guarded one by one.
OBJECTS = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, types.MethodDescriptorType,
           types.WrapperDescriptorType, types.ClassMethodDescriptorType, property, *OWN_FUNCTIONS, staticmethod,
           classmethod, types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodWrapperType,
           CompiledFunction)
FIELD = type(collections.namedtuple("_", "a").a)
SEQUENCES, MAPPINGS = (list, tuple, deque), (dict, OrderedDict, defaultdict)
SETS = (set, frozenset)
VIEWS = tuple([type(getattr(d, n)()) for d in ({}, OrderedDict()) for n in ("keys", "values", "items")])
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


def is_value(x):
    """Whether ``x`` is guarded by value. Structured numbers of NumPy are not: they can be written to."""
    cls = type(x)
    return cls in VALUES or cls in EXACT or (isinstance(x, np.generic) and not isinstance(x, (np.void, np.object_)))


def is_single(x):
    """Whether all values that equal ``x`` and have its class are one object."""
    cls = type(x)
    return cls in SINGLE or (cls is int and -5 <= x <= 256) or (cls in (str, bytes, tuple) and not x)


def is_nan(x):
    """Whether ``x`` is a value that is not equal to itself. A container finds it by its identity alone."""
    return type(x) is not str and is_value(x) and x != x


def value_base(cls):
    """The class of values that ``cls`` is a proper subclass of, or None."""
    if cls in VALUES or cls in EXACT or not issubclass(cls, VALUE_BASES):
        return None
    return next(c for c in cls.__mro__ if c in VALUE_BASES)


def is_bound(x):
    """Whether ``x`` is a C function with an object of its own, such as ``d.get``."""
    return isinstance(x, (types.BuiltinFunctionType, types.MethodWrapperType)) and not isinstance(
        x.__self__, (type, types.ModuleType, type(None)))


def seen_by_native(cls):
    """The name of a method of Python code that native code would call on an object of this class, or None."""
    for c in cls.__mro__:
        if is_heap_type(c):
            for name in CALLED_BY_NATIVE:
                if isinstance(c.__dict__.get(name), types.FunctionType):
                    return name
    return None
