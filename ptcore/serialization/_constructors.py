"""The names that a pickle may use and the functions that they call: a fixed table, and the user's additions.

Arguments come from untrusted files. Each function below accepts exactly the arguments that PyTorch and NumPy write, and
raises for others. It asks ``reader.charge`` before it copies data whose size is not that of the bytes just read.
"""

import os
import re
import sys
from collections import Counter, OrderedDict, defaultdict
from pickle import UnpicklingError

import ptcore
from ptcore import Tensor
from ptcore._contexts import Changed
from ptcore._lazy import MOVED
from ptcore._libraries import library
from ptcore._untyped_storage import UntypedStorage
from ptcore.nn import Parameter
from ptcore.storage import TypedStorage

_BLOCKED = ("sys", "os", "posix", "nt")  # refused even if the user has added them
_MODULES = {"__builtin__": "builtins", "torch.tensor": "torch._tensor",
            "numpy.core.multiarray": "numpy._core.multiarray", "numpy.core.numeric": "numpy._core.numeric"}
STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}  # fmt: skip
DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
          "float16 bfloat16 float32 float64 complex64 complex128 "
          "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu complex32").split()
_NUMPY_DTYPE = re.compile(r"[<>|=]?(\?|b1|[iu][1248]|f(?:[248]|16)|c(?:8|16|32)|[SU]\d{1,6})")
_MAX_DIMS = 64


class StoredView(TypedStorage):
    """Some elements of a storage, as PyTorch saved them before 0.4."""

    def __init__(self, storage, dtype, start, nbytes):
        super().__init__(wrap_storage=storage[start:start + nbytes], dtype=dtype, _internal=True)
        self.whole, self.start, self.stop = storage, start, start + nbytes

    def __new__(cls, *args):
        return super().__new__(cls, _internal=True)


def typed(storage, dtype):
    """The storage as elements of a dtype, without PyTorch's warning about such storages."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


class StorageType:
    """The class of storages that a name such as ``torch.FloatStorage`` means."""

    def __init__(self, dtype):
        self.dtype = dtype  # None: bytes of no dtype


# -- the user's additions ------------------------------------------------------------------------------

_safe = {}
_allow_pickle = None


def add_safe_globals(safe_globals) -> None:
    """Let files name functions and classes that :func:`ptcore.load` then calls.

    Parameters
    ----------
    safe_globals : list
        Of classes and functions, or of pairs of one and the full name that files call it by.

    See Also
    --------
    safe_globals : The same for a ``with`` block.

    Examples
    --------
    >>> import argparse, ptcore
    >>> ptcore.serialization.add_safe_globals([argparse.Namespace])
    >>> ptcore.serialization.get_safe_globals()
    [<class 'argparse.Namespace'>]
    >>> ptcore.serialization.clear_safe_globals()
    """
    _safe.update(_named(safe_globals))


def _named(items):
    found = {}
    for item in items:
        thing, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        if type(name) is not str or not callable(thing):
            raise TypeError(f"add_safe_globals: it needs classes, functions or pairs of one and a name, got {item!r}")
        found[name] = item
    return found


def get_safe_globals() -> list:
    """The functions and classes added by :func:`add_safe_globals`."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Forget the functions and classes added by :func:`add_safe_globals`."""
    _safe.clear()


class safe_globals(Changed):
    """A ``with`` block within which files may name more: see :func:`add_safe_globals`.

    Parameters
    ----------
    safe_globals : list
        As for :func:`add_safe_globals`.

    Examples
    --------
    >>> import argparse, ptcore
    >>> with ptcore.serialization.safe_globals([argparse.Namespace]):
    ...     print(len(ptcore.serialization.get_safe_globals()))
    1
    """

    def __init__(self, safe_globals):
        super().__init__((_safe, _named(safe_globals)))


def allow_pickle(allowed) -> None:
    """Whether ``load(..., weights_only=False)`` is Python's unpickler, which runs whatever code a file names.

    The environment variable ``PTCORE_ALLOW_PICKLE=1`` allows it too; a call takes precedence over the variable.

    Parameters
    ----------
    allowed : bool
    """
    global _allow_pickle
    if not isinstance(allowed, bool):
        raise TypeError(f"allow_pickle: allowed must be a bool, got {allowed!r}")
    _allow_pickle = allowed


def pickle_is_allowed():
    """The setting of :func:`allow_pickle`, or that of the environment."""
    return os.environ.get("PTCORE_ALLOW_PICKLE") == "1" if _allow_pickle is None else _allow_pickle


def added():
    """The user's additions, by full name."""
    return {name: item[0] if isinstance(item, tuple) else item for name, item in _safe.items()}


# -- checks ------------------------------------------------------------------------------------------------

def _shown(value):
    """A value for a message. Only text is shown, since other values may contain one part a billion times."""
    return repr(value[:200]) if type(value) is str else f"a {type(value).__name__}"


def _int64(value):
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("a number of a tensor's shape is none, negative or too large")
    return value


def _sizes(value):
    if not isinstance(value, (tuple, list)) or len(value) > _MAX_DIMS:
        raise ValueError("a shape is no tuple of numbers")
    return tuple(_int64(v) for v in value)


def _bool(value):
    if type(value) is not bool:
        raise ValueError("requires_grad is no bool")
    return value


def _dtype(value):
    if not isinstance(value, ptcore.dtype):
        raise ValueError("a dtype is none")
    return value


def set_attributes(target, state):
    """Sets attributes that the class does not define."""
    if not isinstance(state, dict):
        raise ValueError("a state is no dictionary")
    for name, value in state.items():
        if type(name) is not str or hasattr(type(target), name) or name.startswith("__"):
            raise ValueError(f"an attribute of a {type(target).__name__} is called {_shown(name)}")
        setattr(target, name, value)


# -- tensors -----------------------------------------------------------------------------------------------

def _window(storage, dtype, offset, size, stride):
    """A tensor over a part of a storage. It checks the bounds, since ``set_`` would let the storage grow."""
    if isinstance(storage, StoredView):
        start, nbytes, storage = storage.start, storage.stop - storage.start, storage.whole
    elif isinstance(storage, TypedStorage):
        start, nbytes, storage = 0, storage._nbytes(), storage._untyped_storage
    elif isinstance(storage, UntypedStorage):
        start, nbytes = 0, storage.nbytes()
    else:
        raise ValueError("a tensor has no storage")
    item = dtype.itemsize
    offset, size, stride = _int64(offset), _sizes(size), _sizes(stride)
    if len(size) != len(stride):
        raise ValueError(f"a tensor has {len(size)} sizes and {len(stride)} strides")
    last = offset
    count = 1
    for n, step in zip(size, stride):
        last += (n - 1) * step
        count *= n
    if start % item or count >= 1 << 63 or (last + 1 if count else offset) * item > nbytes:
        raise ValueError(f"a tensor of shape {size} and strides {stride} from element {offset} on leaves its storage "
                         f"of {nbytes} bytes")
    if not count:
        offset = 0
    return ptcore.empty(0, dtype=dtype, device=storage.device).set_(storage, start // item + offset, size, stride)


def _finish(reader, tensor, requires_grad, metadata=None):
    if metadata:
        reader.charge(tensor.numel() * tensor.element_size())
        if not isinstance(metadata, dict) or not metadata.keys() <= {"conj", "neg"}:
            raise ValueError("the metadata of a tensor are unknown")
        if metadata.get("conj"):
            tensor = _computed(reader, Tensor.conj, tensor)
        if metadata.get("neg"):
            tensor = _computed(reader, Tensor.neg, tensor)
    return tensor.requires_grad_() if _bool(requires_grad) else tensor


def _computed(reader, function, tensor):
    """``function(tensor)``, computed again later if the file has the tensor's bytes behind the pickle."""
    result = function(tensor)
    if reader.then is not None:
        def compute():
            with ptcore.no_grad():
                result.copy_(function(tensor))
        reader.then.append(compute)
    return result


def _tensor_1(reader, storage, offset, size, stride):
    return _tensor_2(reader, storage, offset, size, stride, False, None)


def _tensor_2(reader, storage, offset, size, stride, requires_grad, hooks, metadata=None):
    if not isinstance(storage, TypedStorage):
        raise ValueError("a tensor has no storage")
    return _finish(reader, _window(storage, storage.dtype, offset, size, stride), requires_grad, metadata)


def _tensor_3(reader, storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    return _finish(reader, _window(storage, _dtype(dtype), offset, size, stride), requires_grad, metadata)


def _plain(data):
    if type(data) is not Tensor:
        raise ValueError("a parameter has no data")
    return data


def _parameter(reader, data, requires_grad=True, hooks=None):
    return Parameter(_plain(data), _bool(requires_grad))


def _parameter_with_state(reader, data, requires_grad, hooks, state):
    return _with_state(_parameter(reader, data, requires_grad), state)


def _with_state(tensor, state):
    if isinstance(state, tuple) and len(state) == 2 and not state[1]:
        state = state[0]  # (attributes, slots)
    if state:
        set_attributes(tensor, state)
    return tensor


def _from_type(reader, function, cls, args, state):
    call = CALLS.get(id(function))
    if call not in (_tensor_1, _tensor_2, _tensor_3, _meta) or type(args) is not tuple:
        raise ValueError("a tensor is made by an unknown function")
    tensor = call(reader, *args)
    if cls is Parameter:
        tensor = Parameter(tensor.detach(), tensor.requires_grad)
    elif cls is not Tensor:
        return reader.subclass(tensor, cls, state)
    return _with_state(tensor, state)


def subclass(tensor, cls, state):
    """The tensor as one of a class that the user has added."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor) and any(cls is each for each in added().values())):
        raise UnpicklingError("a tensor in the file is of a class that was not added, which is not allowed")
    return _with_state(tensor.as_subclass(cls), state)


def _meta(reader, dtype, size, stride, requires_grad):
    size, stride = _sizes(size), _sizes(stride)
    return _finish(reader, ptcore.empty_strided(size, stride, dtype=_dtype(dtype), device="meta"), requires_grad)


def _on_device(reader, data, dtype, device, requires_grad):
    if type(data) is not Tensor:
        np = library("numpy")

        if not isinstance(data, np.ndarray):
            raise ValueError("a tensor has no data")
        reader.charge(data.nbytes)
        data = ptcore.from_numpy(data.copy())
    reader.charge(data.numel() * _dtype(dtype).itemsize)
    if type(device) not in (str, ptcore.device):
        raise ValueError("a device is none")
    return _finish(reader, _computed(reader, lambda t: reader.place(t.to(dtype), str(device)), data), requires_grad)


# -- values ------------------------------------------------------------------------------------------------

def _ordered_dict(reader, pairs=()):
    return _mapping(reader, OrderedDict(), pairs)


def _counter(reader, pairs=()):
    return _mapping(reader, Counter(), pairs)


def _default_dict(reader, factory=None, pairs=()):
    if factory not in (None, list, dict, set, int, float, str, tuple, bool, OrderedDict, Counter):
        raise UnpicklingError("a defaultdict in the file has a factory that is not allowed")
    return _mapping(reader, defaultdict(factory), pairs)


def _mapping(reader, target, pairs):
    reader.charge(64 * len(pairs))
    for key, value in pairs.items() if isinstance(pairs, dict) else pairs:
        dict.__setitem__(target, reader.key(key, id(target)), value) if type(target) is not OrderedDict else (
            target.__setitem__(reader.key(key, id(target)), value))
    return target


def _set(reader, items=()):
    reader.charge(32 * len(items))
    number = reader.collisions.fresh()
    return {reader.key(k, number) for k in items}


def _frozenset(reader, items=()):
    return frozenset(_set(reader, items))


def _encode(reader, text, encoding="utf-8"):
    if type(text) is not str or encoding not in ("latin1", "utf-8"):
        raise ValueError("bytes in the pickle are no text")
    reader.charge(len(text))
    return text.encode(encoding)


def _bytearray(reader, data=b"", encoding=None):
    if encoding is not None:
        data = _encode(reader, data, encoding)
    if type(data) is not bytes:
        raise ValueError("bytes in the pickle are none")
    reader.charge(len(data))
    return bytearray(data)


def _bytes(reader):
    return b""


def _complex(reader, real, imag):
    if type(real) is not float or type(imag) is not float:
        raise ValueError("a complex number is none")
    return complex(real, imag)


def _size(reader, sizes=()):
    return ptcore.Size(_sizes(sizes))


def _device(reader, kind, index=None):
    if type(kind) is not str or (index is not None and type(index) is not int):
        raise ValueError("a device is none")
    try:
        return ptcore.device(kind) if index is None else ptcore.device(kind, index)
    except RuntimeError:
        raise NotImplementedError(f"the file names the device {_shown(kind)}, which there is not here") from None


def _layout(reader, name):
    if name != "torch.strided":
        raise NotImplementedError(f"tensors of the layout {_shown(name)} cannot be loaded")
    return ptcore.strided


# -- NumPy -------------------------------------------------------------------------------------------------

def _numpy_dtype(reader, name, align=False, copy=True):
    np = library("numpy")

    if type(name) is not str or not _NUMPY_DTYPE.fullmatch(name):
        raise NotImplementedError(f"NumPy's dtype {_shown(name)} cannot be loaded")
    try:
        return np.dtype(name, False, True)  # a copy, since its state is set next
    except TypeError:  # long doubles differ from machine to machine
        raise NotImplementedError(f"NumPy's dtype {_shown(name)} does not exist on this machine") from None


def _numpy_scalar(reader, dtype, data):
    np = library("numpy")

    data = _raw(data)
    if not isinstance(dtype, np.dtype) or len(data) != dtype.itemsize or dtype.hasobject:
        raise ValueError("a NumPy scalar is damaged")
    reader.charge(len(data))  # the text may be long and repeated
    return np.frombuffer(data, dtype)[0] if dtype.itemsize else dtype.type()


def _numpy_empty(reader, cls, shape, kind):
    np = library("numpy")

    if cls is not np.ndarray:
        raise ValueError("a NumPy array is damaged")
    return np.empty(0, "u1")


def _numpy_from(reader, data, dtype, shape, order):
    np = library("numpy")

    shape = _sizes(shape)
    if not isinstance(dtype, np.dtype) or type(data) not in (bytes, bytearray) or order not in ("C", "F"):
        raise ValueError("a NumPy array is damaged")
    reader.charge(len(data))
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order=order)


def _raw(data):
    """Bytes, which a pickle of Python 2 holds as text."""
    data = data.encode("latin1") if type(data) is str else data
    if type(data) is not bytes:
        raise ValueError("the bytes of a NumPy array are none")
    return data


def set_numpy_state(reader, target, state):
    """Sets the pickled state of a NumPy dtype or array; False if `target` is neither."""
    if "numpy" not in sys.modules:
        return False
    np = library("numpy")

    if isinstance(target, np.dtype):
        plain = len(state) == 8 and state[0] == 3 and state[1] in ("<", ">", "|", "=") and state[2:5] == (None,) * 3
        if plain and state[1] == "|" and target.itemsize > 1 and target.kind != "S":
            raise ValueError("the byte order of a NumPy dtype is missing")
        if not plain or state[5] not in (-1, target.itemsize) or state[6] not in (-1, target.alignment):
            raise NotImplementedError("a structured NumPy dtype cannot be loaded")
        target.__setstate__((3, state[1], None, None, None, state[5], state[6], target.flags))
        return True
    if type(target) is not np.ndarray:
        return False
    _, shape, dtype, fortran, data = state
    shape, data = _sizes(shape), _raw(data)
    count = 1
    for n in shape:
        count *= n
    if target.size or not isinstance(dtype, np.dtype) or dtype.hasobject or count * dtype.itemsize != len(data):
        raise ValueError("a NumPy array is damaged")
    reader.charge(max(len(data), count))  # elements may have no bytes, so they are counted as well
    target.__setstate__((1, shape, dtype, _bool(fortran), data))
    return True


# -- the table ---------------------------------------------------------------------------------------------

class _Function:
    """Replaces a function of PyTorch or NumPy that has no counterpart here."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"<{self.name} of a file>"


_FUNCTIONS = {
    "torch._utils._rebuild_tensor": _tensor_1,
    "torch._utils._rebuild_tensor_v2": _tensor_2,
    "torch._utils._rebuild_tensor_v3": _tensor_3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_device_tensor_from_numpy": _on_device,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _on_device,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch.serialization._get_layout": _layout,
    "_codecs.encode": _encode,
    "numpy._core.multiarray._reconstruct": _numpy_empty,
    "numpy._core.multiarray.scalar": _numpy_scalar,
    "numpy._core.numeric._frombuffer": _numpy_from,
    "numpy.dtype": _numpy_dtype,
}
_TABLE = {name: _Function(name) for name in _FUNCTIONS}
CALLS = {id(_TABLE[name]): function for name, function in _FUNCTIONS.items()}
for _name, _thing, _call in (
    ("collections.OrderedDict", OrderedDict, _ordered_dict), ("collections.Counter", Counter, _counter),
    ("collections.defaultdict", defaultdict, _default_dict), ("builtins.set", set, _set),
    ("builtins.frozenset", frozenset, _frozenset), ("builtins.bytearray", bytearray, _bytearray),
    ("builtins.bytes", bytes, _bytes), ("builtins.complex", complex, _complex), ("torch.Size", ptcore.Size, _size),
    ("torch.device", ptcore.device, _device), ("torch.nn.parameter.Parameter", Parameter, _parameter),
    ("torch.Tensor", Tensor, None), ("torch._tensor.Tensor", Tensor, None),
    *((f"builtins.{t.__name__}", t, None) for t in (list, dict, int, float, str, tuple, bool)),
):  # fmt: skip
    _TABLE[_name] = _thing
    if _call is not None:
        CALLS[id(_thing)] = _call
for _name in DTYPES:
    _TABLE[f"torch.{_name}"] = getattr(ptcore, _name)
for _name, _d in STORAGES.items():
    _TABLE[f"torch.{_name}"] = _TABLE[f"torch.cuda.{_name}"] = StorageType(getattr(ptcore, _d))
_TABLE["torch.storage.UntypedStorage"] = _TABLE["torch.UntypedStorage"] = StorageType(None)
_ABSENT = re.compile(
    r"torch\._utils\._rebuild_(qtensor|sparse\w*|nested\w*|wrapper\w*|mkldnn\w*|xla\w*)|torch\.nested\..*"
    r"|torch\.(cuda\.)?(Q\w+|ComplexHalf\w*)Storage|torch\.(q(u?)int\w+|per_\w+|float4_\w+|bits\d\w*|u?int[1-7])"
    r"|torch\.distributed\..*")


def find(module, name, more):
    """The object of a name in a file: from the table, or from `more`, the user's additions."""
    module = _MODULES.get(module, module)
    module = MOVED.get(module, module)
    full = f"{module}.{name}"
    if full == "numpy.ndarray":
        np = library("numpy")

        return np.ndarray
    if full in _TABLE:
        return _TABLE[full]
    if full in more and module not in _BLOCKED:
        return more[full]
    if _ABSENT.fullmatch(full):
        raise NotImplementedError(f"the file holds what ptcore does not have: {full}")
    shown = full[:400]
    way = (f"if you trust it, put it on the list with ptcore.serialization.add_safe_globals([{shown}]), or within a "
           "block by ptcore.serialization.safe_globals; get_unsafe_globals_in_checkpoint lists all such names; "
           "weights_only=False makes objects of classes that the program has imported, and runs nothing")
    if module.partition(".")[0] == "torch":
        way = ("weights_only=False makes modules, optimizers and datasets of PyTorch that ptcore has as well; of "
               "others save the state_dict() with PyTorch")
    raise UnpicklingError(f"the file names {shown}, which is not allowed by default; {way}")
