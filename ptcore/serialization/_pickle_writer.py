"""Writes pickles of protocol 2 in PyTorch's form, for tensors nested in plain data.

A tensor becomes a call of PyTorch's own function by name, so that ``torch.load(..., weights_only=True)`` accepts the
file. It refers to its storage by a key. Each storage has one key, so tensors that share memory share it again when they
are loaded.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from struct import pack
from types import MethodType

import ptcore
from ptcore import Tensor
from ptcore._libraries import library
from ptcore._subclass import check_plain
from ptcore._untyped_storage import UntypedStorage
from ptcore.nn import Module, Parameter
from ptcore.nn.parameter import Buffer, is_lazy
from ptcore.serialization._constructors import STORAGES, added, pickle_is_allowed
from ptcore.serialization._options import tag
from ptcore.serialization.files import MAX_DEPTH
from ptcore.storage import TypedStorage

_STORAGE_NAMES = {dtype: name for name, dtype in STORAGES.items()}
_BATCH = 1000  # items on the stack at once


class Global:
    """A name of a module in a pickle."""

    def __init__(self, module, name):
        self.module, self.name = module, name


_TENSOR_2, _TENSOR_3, _PARAMETER, _PARAMETER_WITH_STATE, _META = (
    Global("torch._utils", f"_rebuild_{name}")
    for name in ("tensor_v2", "tensor_v3", "parameter", "parameter_with_state", "meta_tensor_no_storage"))
_FROM_TYPE = Global("torch._tensor", "_rebuild_from_type_v2")
_ORDERED_DICT, _COUNTER, _DEFAULT_DICT = (
    Global("collections", name) for name in ("OrderedDict", "Counter", "defaultdict"))
_UNTYPED = Global("torch.storage", "UntypedStorage")
_CLASSES = {Tensor: Global("torch", "Tensor"), Parameter: Global("torch.nn.parameter", "Parameter"),
            OrderedDict: _ORDERED_DICT, Counter: _COUNTER,
            **{t: Global("__builtin__", t.__name__) for t in (list, dict, set, int, float, str, tuple, bool)}}


def _builtin(name):
    return Global("__builtin__", name)


class Storage:
    """A storage to write: its key in the file, and the dtype of its first tensor."""

    def __init__(self, storage, key, dtype):
        self.storage, self.key, self.dtype = storage, key, dtype

    @property
    def itemsize(self):
        return 1 if self.dtype is None else self.dtype.itemsize


def _written_class(cls):
    """A class of tensors, or Tensor for one that no reader makes again: of a function, or with a way of its own."""
    if cls is Tensor or issubclass(cls, Buffer):
        return Tensor
    from ptcore.serialization import _object_writer as objects

    try:
        objects.name_of(cls)
    except objects.Unwritten:
        return Tensor
    return cls


class _Reference:
    """A storage within a pickle, as bytes or as elements of a dtype."""

    def __init__(self, entry, dtype):
        self.entry, self.dtype = entry, dtype


class Writer:
    """Writes one object; afterwards ``storages`` lists the storages that it refers to.

    Parameters
    ----------
    legacy : bool
        Whether for the layout without a zip archive, whose storages need a dtype.
    protocol : int
        That the pickle claims to have.
    """

    def __init__(self, legacy=False, protocol=2):
        # Opcodes of protocol 2, which later protocols have as well.
        self._out = bytearray(b"\x80" + bytes([protocol]))
        self._memo, self._kept = {}, []
        self._legacy = legacy
        self._added = added()
        self._entries = {}
        self._in_object = 0     # how many objects that are being written may have tensors as keys
        self.storages = []

    def dump(self, obj):
        """The pickle of `obj`."""
        self._save(obj, "", 0)
        self._out += b"."
        return bytes(self._out)

    # -- memo

    def _remember(self, key, thing):
        """Gives the object on the stack a number. `thing` is kept alive, so that no other object gets its ``id``."""
        n = self._memo[key] = len(self._memo)
        self._kept.append(thing)
        self._out += pack("<cB", b"q", n) if n < 256 else pack("<cI", b"r", n)

    def _known(self, key):
        n = self._memo.get(key)
        if n is None:
            return False
        self._out += pack("<cB", b"h", n) if n < 256 else pack("<cI", b"j", n)
        return True

    # -- values

    def _save(self, value, path, depth):
        cls = type(value)
        write = _PLAIN.get(cls)
        if write is not None:
            write(self, value)
            return
        key = id(value) if cls is not Global else (value.module, value.name)
        if self._known(key):
            return
        if depth > MAX_DEPTH:
            raise ValueError(f"save: data may be nested {MAX_DEPTH} levels deep at most")
        if cls is Global:
            self._out += f"c{value.module}\n{value.name}\n".encode()
            self._remember(key, value)
        elif cls is list:
            self._out += b"]"
            self._remember(key, value)
            self._items(((f"{path}.{i}" if path else str(i), (v,)) for i, v in enumerate(value)), b"ae", depth)
        elif cls is dict:
            self._out += b"}"
            self._remember(key, value)
            self._pairs(value, path, depth)
        elif cls is tuple:
            self._tuple(value, key, path, depth)
        elif isinstance(value, Tensor) and not (self._in_object and is_lazy(value)):
            self._call(*self._tensor(value, path), path, depth, key, value)
        elif cls is OrderedDict:
            self._call(_ORDERED_DICT, (), path, depth, key, value)
            self._pairs(value, path, depth)
            if vars(value):
                self._save(dict(vars(value)), path, depth + 1)
                self._out += b"b"
        elif cls is defaultdict and value.default_factory in (None, *_CLASSES):
            self._call(_DEFAULT_DICT, (value.default_factory,), path, depth, key, value)
            self._pairs(value, path, depth)
        elif isinstance(value, type) and value in _CLASSES:
            self._save(_CLASSES[value], path, depth)
        elif cls is ptcore.dtype:
            self._save(Global("torch", value.name), path, depth)
        elif cls is _Reference:
            self._reference(value.entry, value.dtype, path, depth)
        elif isinstance(value, UntypedStorage):
            entry = self._entry(value, None)
            self._save(_Reference(entry, entry.dtype if self._legacy else None), path, depth)
        elif isinstance(value, TypedStorage):
            entry = self._entry(value._untyped_storage, value.dtype)
            self._save(_Reference(entry, value.dtype if value.dtype.name in _STORAGE_NAMES else None), path, depth)
        else:
            self._other(value, cls, key, path, depth)

    def _other(self, value, cls, key, path, depth):
        """Values that are written as a call of a named function."""
        call = _BY_CALL.get(cls)
        if call is not None:
            self._call(*call(value), path, depth, key, value)
            return
        if _is_of_numpy(cls):
            dtype = getattr(value, "dtype", value)
            if getattr(dtype, "kind", "O") in "biufcSU":
                if cls.__name__ == "ndarray" and not dtype.isnative:
                    self._call(*_swapped(value), path, depth, key, value)
                else:
                    self._reduced(value, key, path, depth)
                return
        is_named = isinstance(value, type) or (
            callable(value) and hasattr(value, "__qualname__") and cls is not MethodType)
        named = value if is_named else cls
        reason = self._object(value, is_named, key, path, depth)
        if reason is None:
            return
        if _is_one_of(named, self._added.values()) or pickle_is_allowed():
            if named is value:
                self._save(Global(value.__module__, value.__qualname__), path, depth)
            else:
                self._reduced(value, key, path, depth)
            return
        where = f" at {path!r}" if path else ""
        hint = (f"ptcore.serialization.add_safe_globals([{named.__name__}]) allows it, in the program that loads the "
                "file as well")
        if isinstance(value, Module):
            hint += "; or save its state_dict() and load that with load_state_dict()"
        elif isinstance(value, Iterator):
            hint = "save a list of what it gives"
        elif cls is defaultdict:
            hint = "its default_factory is not one of Python's own containers and numbers: save a dict of it"
        raise TypeError(
            f"save: tensors, arrays, numbers, strings, None, containers and objects of plain classes can be saved, got "
            f"{cls.__name__}{where}: {reason}; {hint}")

    def _object(self, value, is_named, key, path, depth):
        """Writes a class, a listed function, or an object of a kind that is made again; else returns the reason."""
        from ptcore.serialization import _object_writer as objects

        try:
            name, args, state = objects.described(value, is_named)
            if args is None and is_named:
                self._save(Global(*name), path, depth)
                return None
        except objects.Unwritten as reason:
            return str(reason)
        cls = Global(*name)
        self._in_object += 1
        try:
            self._made(cls, args, state, value, key, path, depth)
        finally:
            self._in_object -= 1
        return None

    def _made(self, cls, args, state, value, key, path, depth):
        if args is None:
            self._reduced(value, key, path, depth, cls)
            return
        self._save(cls, path, depth)
        self._save(args, path, depth + 1)
        self._out += b"R" if args else b"\x81"
        self._remember(key, value)
        if state is not None:
            self._save(state, path, depth + 1)
            self._out += b"b"

    def _call(self, function, args, path, depth, key, value):
        self._save(function, path, depth)
        self._save(tuple(args), path, depth + 1)
        self._out += b"R"
        self._remember(key, value)

    def _reduced(self, value, key, path, depth, named=None):
        """The value by its class's ``__reduce_ex__``; `named` is how the file names the class."""
        parts = value.__reduce_ex__(2)
        if isinstance(parts, str):
            self._save(Global(type(value).__module__, parts), path, depth)
            return
        function, args, state, items, pairs = (*parts, None, None, None)[:5]
        if function.__name__ == "__newobj__":
            cls, *args = args
            self._save(named or Global(cls.__module__, cls.__qualname__), path, depth)
            self._save(tuple(args), path, depth + 1)
            self._out += b"\x81"
        else:
            called = named if function is type(value) and named else Global(function.__module__, function.__qualname__)
            self._save(called, path, depth)
            args = tuple(Global("numpy", "ndarray") if isinstance(a, type) and a.__name__ == "ndarray" else a
                         for a in args)
            self._save(args, path, depth + 1)
            self._out += b"R"
        self._remember(key, value)
        if items is not None:
            self._items((("", (v,)) for v in items), b"ae", depth)
        if pairs is not None:
            self._items((("", pair) for pair in pairs), b"su", depth)
        if state is not None:
            self._save(state, path, depth + 1)
            self._out += b"b"

    def _tuple(self, value, key, path, depth):
        if len(value) > 3:
            self._out += b"("
        for i, v in enumerate(value):
            self._save(v, f"{path}.{i}" if path else str(i), depth + 1)
        if key in self._memo:           # a list in it contains the tuple, which was written there
            self._out += b"1" if len(value) > 3 else b"0" * len(value)
            self._known(key)
            return
        self._out += (b")", b"\x85", b"\x86", b"\x87", b"t")[min(len(value), 4)]
        if value:
            self._remember(key, value)

    def _pairs(self, value, path, depth):
        def below():
            for k, v in value.items():
                if isinstance(k, Tensor) and not self._in_object:
                    raise TypeError(f"save: a key of the {type(value).__name__} at {path!r} is a tensor")
                yield f"{path}.{k}" if path else str(k), (k, v)

        self._items(below(), b"su", depth)

    def _items(self, groups, codes, depth):
        """Adds (path, group of values) pairs to the container on the stack by one of two opcodes."""
        groups = list(groups)
        for start in range(0, len(groups), _BATCH):
            batch = groups[start:start + _BATCH]
            if len(batch) > 1:
                self._out += b"("
            for path, group in batch:
                for v in group:
                    self._save(v, path, depth + 1)
            self._out += codes[1:] if len(batch) > 1 else codes[:1]

    # -- tensors

    def _tensor(self, tensor, path):
        """The call that makes a tensor when the file is read."""
        if is_lazy(tensor):
            raise ValueError(f"save: the parameter at {path!r} is not initialised")
        cls, state = type(tensor), dict(getattr(tensor, "__dict__", None) or {})
        check_plain(tensor, "save")
        if not _is_one_of(cls, self._added.values()):
            cls = Parameter if isinstance(tensor, Parameter) else _written_class(cls)
            state = tensor.__getstate__() if cls not in (Parameter, Tensor) else state
        if cls is Parameter:
            data = tensor.detach()
            args = (data, tensor.requires_grad, OrderedDict())
            return (_PARAMETER_WITH_STATE, (*args, state)) if state else (_PARAMETER, args)
        function, args = self._plain_tensor(tensor)
        if cls is Tensor and not state:
            return function, args
        name = _CLASSES.get(cls) or Global(cls.__module__, cls.__qualname__)
        return _FROM_TYPE, (function, name, args, state)

    def _plain_tensor(self, tensor):
        requires_grad = tensor.requires_grad
        tensor = tensor.detach()
        if tensor.is_meta:
            return _META, (tensor.dtype, tuple(tensor.shape), tensor.stride(), requires_grad)
        if any(step < 0 for step in tensor.stride()):
            tensor = tensor.contiguous()  # PyTorch has no negative strides
        entry = self._entry(tensor.untyped_storage(), tensor.dtype)
        args = (_Reference(entry, entry.dtype), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
                requires_grad, OrderedDict())
        return (_TENSOR_2, args) if entry.dtype is tensor.dtype else (_TENSOR_3, (*args, tensor.dtype))

    def _entry(self, storage, dtype):
        """The record of a storage, with the dtype of its first tensor, or None if that has no name in PyTorch."""
        entry = self._entries.get(id(storage))
        if entry is None:
            name = None if dtype is None else _STORAGE_NAMES.get(dtype.name)
            if name is None or storage.nbytes() % dtype.itemsize:
                dtype = None
            entry = self._entries[id(storage)] = Storage(storage, str(len(self.storages)), dtype)
            self.storages.append(entry)
        if self._legacy and (entry.dtype is None or dtype not in (None, entry.dtype)):
            raise NotImplementedError(
                "save: the layout of _use_new_zipfile_serialization=False holds storages of one dtype, and none of "
                "uint16, uint32 or uint64")
        return entry

    def _reference(self, entry, dtype, path, depth):
        storage = entry.storage
        kind = _UNTYPED if dtype is None else Global("torch", _STORAGE_NAMES[dtype.name])
        number = storage.nbytes() // (1 if dtype is None else dtype.itemsize)
        view = (None,) if self._legacy else ()
        self._save(("storage", kind, entry.key, tag(storage), number, *view), path, depth)
        self._out += b"Q"


def _is_of_numpy(cls):
    """Whether it is NumPy's class of arrays, of dtypes or of scalars."""
    module = cls.__module__         # that of functions of ops is a descriptor
    if type(module) is not str or module.partition(".")[0] != "numpy":
        return False
    np = library("numpy")

    return cls is np.ndarray or issubclass(cls, (np.generic, np.dtype))


def _swapped(array):
    """The call that makes an array in the other byte order, which its own pickle of protocol 2 loses."""
    function, (buffer, *rest) = (array if array.flags.forc else array.copy()).__reduce_ex__(5)
    return Global(function.__module__, function.__qualname__), (bytearray(buffer), *rest)


def _is_one_of(thing, things):
    return any(thing is each for each in things)


# -- values that are one opcode or a call -----------------------------------------------------------------------

def _save_int(writer, value):
    out = writer._out
    if 0 <= value < 256:
        out += pack("<cB", b"K", value)
    elif 0 <= value < 65536:
        out += pack("<cH", b"M", value)
    elif -(1 << 31) <= value < 1 << 31:
        out += pack("<ci", b"J", value)
    else:
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        out += pack("<cB", b"\x8a", len(data)) if len(data) < 256 else pack("<cI", b"\x8b", len(data))
        out += data


def _save_text(writer, value):
    if writer._known(value):
        return
    data = value.encode("utf-8", "surrogatepass")
    writer._out += pack("<cI", b"X", len(data)) + data
    writer._remember(value, value)


_PLAIN = {
    type(None): lambda w, v: w._out.extend(b"N"),
    bool: lambda w, v: w._out.extend(b"\x88" if v else b"\x89"),
    int: _save_int,
    float: lambda w, v: w._out.extend(pack(">cd", b"G", v)),
    str: _save_text,
}
_ENCODE = Global("_codecs", "encode")
_BY_CALL = {
    complex: lambda v: (_builtin("complex"), (v.real, v.imag)),
    bytes: lambda v: (_ENCODE, (v.decode("latin1"), "latin1")),
    bytearray: lambda v: (_builtin("bytearray"), (v.decode("latin1"), "latin1")),
    set: lambda v: (_builtin("set"), (list(v),)),
    frozenset: lambda v: (_builtin("frozenset"), (list(v),)),
    Counter: lambda v: (_COUNTER, (dict(v),)),
    ptcore.Size: lambda v: (Global("torch", "Size"), (tuple(v),)),
    ptcore.device: lambda v: (Global("torch", "device"), (v.type,) if v.index is None else (v.type, v.index)),
}
