"""Storages: ``UntypedStorage``, the bytes behind tensors, and ``TypedStorage``, bytes as elements of a dtype, which
PyTorch has deprecated. ``FloatStorage`` and its sisters make typed storages of their dtype."""
import sys
import warnings
from collections.abc import Sequence

from ptcore._device import device as _Device
from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._exchange.convert import frombuffer, tensor
from ptcore._ops.creation.creation import empty
from ptcore._ops.creation.functions import from_file as _tensor_from_file
from ptcore._untyped_storage import CASTS, UntypedStorage, shown_values

__all__ = ["TypedStorage", "UntypedStorage"]

# Word in the name of a class -> dtype.
_KINDS = {"Double": "float64", "Float": "float32", "Half": "float16", "Long": "int64", "Int": "int32",
          "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "BFloat16": "bfloat16",
          "ComplexDouble": "complex128", "ComplexFloat": "complex64"}


def _dtype_to_storage_type_map():
    """The name of the class of typed storages for each dtype that has one."""
    return {as_dtype(name): f"{kind}Storage" for kind, name in _KINDS.items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type):
    """The dtype of a class of typed storages by its name."""
    kind = pickle_storage_type.removesuffix("Storage")
    if kind not in _KINDS or kind == pickle_storage_type:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized')
    return as_dtype(_KINDS[kind])


# -- the warning ---------------------------------------------------------------------------------------------

def _warn_typed_storage_removal(stacklevel=2):
    """Warns, once for the process or always, at the caller of the function that calls this."""
    state = _warn_typed_storage_removal
    if not (state.always or not state.has_warned):
        return
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
        "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
        "directly, use tensor.untyped_storage() instead of tensor.storage()", UserWarning, stacklevel=stacklevel + 1)
    state.has_warned = True


_warn_typed_storage_removal.has_warned = _warn_typed_storage_removal.always = False


def _get_always_warn_typed_storage_removal():
    return _warn_typed_storage_removal.always


def _set_always_warn_typed_storage_removal(always_warn):
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _warn_typed_storage_removal.always = always_warn


def _reset_warn_typed_storage_removal():
    _warn_typed_storage_removal.has_warned = False


# -- methods of UntypedStorage that need ops -------------------------------------------------------------------

def _over(storage, its):
    """A vector of a dtype over a storage."""
    return empty(0, dtype=its, device=storage.device).set_(storage)


def _to(self, its):
    """The values of a storage, as elements of another dtype, in a typed storage of its own."""
    its = as_dtype(its)
    values = _over(self, as_dtype("uint8")) if isinstance(self, UntypedStorage) else self._tensor()
    return _typed(values.to(its, copy=True).untyped_storage(), its)


def _as_type(self, name, non_blocking=False):
    """A copy of the bytes as another class of storages, given itself or by its name."""
    if isinstance(name, str):
        module, _, name_of_class = name.rpartition(".")
        kind = globals().get(name_of_class) if module in ("torch", "torch.storage", "ptcore", __name__) else None
        if not (isinstance(kind, type) and issubclass(kind, (UntypedStorage, TypedStorage))):
            raise RuntimeError(f"type: no class of storages is called {name!r}")
    else:
        kind = name
    return self if kind is type(self) else kind(self.size()).copy_(self, non_blocking)


def _byteswap(self, size):
    """Reverses the bytes of each element, in place."""
    if size not in (1, 2, 4, 8):
        raise RuntimeError(f"byteswap: the size of elements must be 1, 2, 4 or 8, got {size}")
    if self.nbytes() % size:
        raise RuntimeError(f"the length of data is not a multiple of {size}")
    if size > 1:
        whole = _over(self, as_dtype("uint8")).view(-1, size)
        whole.copy_(whole.flip(1))


def byteswap(self, dtype):
    """Reverses the bytes of each element of a dtype, in place; those of real and imaginary parts apart."""
    dtype = as_dtype(dtype)
    self._byteswap(dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize)


def from_file(filename, shared=False, nbytes=0):
    """A storage over a mapped file.

    Parameters
    ----------
    filename : str or os.PathLike
    shared : bool, default: False
        Whether writes change the file, which is created or extended if needed.
    nbytes : int, default: 0
        The number of bytes.
    """
    from os import fspath

    filename = fspath(filename)             # a path and no descriptor, which would be closed
    return _tensor_from_file(filename, shared, nbytes, dtype=as_dtype("uint8")).untyped_storage()


def from_buffer(buffer, byte_order=None, count=-1, offset=0, dtype=None):
    """A storage of a copy of a buffer's elements.

    Parameters
    ----------
    buffer : object
        One with the buffer protocol.
    byte_order : "big", "little" or "native"
        The order of the bytes of an element; not needed for a dtype of one byte.
    count : int
        The number of elements; -1 for all from the offset on.
    offset : int
        In bytes.
    dtype : dtype

    Raises
    ------
    ValueError
        If the order is none of these, or the elements do not lie within the buffer.
    """
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if not isinstance(dtype, type(as_dtype("uint8"))):
        raise RuntimeError("argument 'dtype' must be of type torch.dtype")
    item = dtype.itemsize
    if byte_order is None and item > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in (None, "big", "little", "native"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    data = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(data):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)}) , but got "
                         f"{offset}")
    if count < 0:
        if (len(data) - offset) % item:
            raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({item})")
        count = (len(data) - offset) // item
    elif count * item > len(data) - offset:
        raise ValueError(f"buffer has only {len(data) - offset} elements after offset {offset}, but specified a size "
                         f"of {count}")
    if not count:
        return UntypedStorage()
    elements = frombuffer(data[offset:offset + count * item], dtype=as_dtype("uint8"))
    if dtype.name == "bool":
        elements = elements != 0
    storage = elements.clone().untyped_storage()
    if byte_order not in (None, "native", sys.byteorder):
        storage.byteswap(dtype)
    return storage


def __deepcopy__(self, memo):
    # The key and the kind of the value are those of tensors, which share the copy of a storage.
    key = "storage", self._cdata
    found = memo.get(key)
    if found is None or found.untyped_storage().nbytes() != self.nbytes():
        found = memo[key] = _over(self.clone(), as_dtype("uint8"))
        memo.setdefault(id(memo), []).append(self)      # as copy does: keys are addresses, so objects stay alive
    return found.untyped_storage()


def __reduce__(self):
    if self.device.type == "meta":
        return _from_bytes, (self.nbytes(), "meta")
    return _from_bytes, (_over(self.cpu(), as_dtype("uint8")).tobytes(), str(self.device))


def _from_bytes(data, device):
    """The storage that a pickle describes."""
    if isinstance(data, int):
        return UntypedStorage(data, device=device)
    made = frombuffer(data, dtype=as_dtype("uint8")).clone().untyped_storage() if data else UntypedStorage()
    return made.to(device)


# -- methods of Tensor -------------------------------------------------------------------------------------------

def _typed_storage(self):
    """The tensor's memory as a storage with its dtype, without the warning."""
    return _typed(self.untyped_storage(), self.dtype)


def storage(self):
    """The tensor's memory as a storage with its dtype; deprecated, as all typed storages are."""
    found = _typed_storage(self)
    _warn_typed_storage_removal(stacklevel=2)
    return found


def storage_type(self):
    """The class of typed storages of the tensor's dtype."""
    return _typed_storage(self)._get_legacy_storage_class()


# -- typed storages ----------------------------------------------------------------------------------------------

def _typed(untyped, its):
    return TypedStorage(wrap_storage=untyped, dtype=its, _internal=True)


_FORMS_TYPED = """TypedStorage.__init__ received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)"""
_FORMS_LEGACY = """{cls}.__new__ received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)"""


def _check_wrapped(forms, args, wrap_storage):
    """Checks what is given beside a storage that is to be wrapped."""
    if args:
        raise RuntimeError(f"{forms}\nNo positional arguments should be given when using 'wrap_storage'")
    if not isinstance(wrap_storage, UntypedStorage):
        raise TypeError(f"{forms}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")


def _check_data(forms, args):
    if len(args) > 1:
        raise RuntimeError(f"{forms}\nToo many positional arguments")
    if args and not _is_number(args[0]) and not isinstance(args[0], Sequence):
        raise TypeError(f"{forms}\nArgument type not recognized: {type(args[0])}")


def _is_number(value):
    return hasattr(value, "__index__") and not hasattr(value, "__len__")


class TypedStorage:
    """Bytes as elements of a dtype. PyTorch has deprecated it: use :class:`ptcore.UntypedStorage`.

    Parameters
    ----------
    *args : int or sequence, optional
        The number of elements, which are not initialised; or their values.
    wrap_storage : UntypedStorage, optional
        The bytes.
    dtype : dtype, optional
        By default the default dtype.
    device : device, optional

    Warns
    -----
    UserWarning
        Once, that it is deprecated.

    Examples
    --------
    >>> import warnings, ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> with warnings.catch_warnings(action="ignore"):
    ...     ptcore.TypedStorage(wrap_storage=x.untyped_storage(), dtype=ptcore.float32).tolist()
    [1.0, 2.0]
    """

    is_sparse = False
    _fake_device = None

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if not _internal:
            _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        if not issubclass(cls, _LegacyStorage):
            return super().__new__(cls)
        forms = _FORMS_LEGACY.format(cls=cls)
        if device is not None:
            raise RuntimeError(f"{forms}\nKeyword argument 'device' cannot be specified")
        if dtype is not None:
            raise RuntimeError(f"{forms}\nKeyword argument 'dtype' cannot be specified")
        if wrap_storage is None:
            _check_data(forms, args)
            return TypedStorage(*args, dtype=cls._dtype, device="cpu", _internal=True)
        _check_wrapped(forms, args, wrap_storage)
        if wrap_storage.device.type != "cpu":
            raise RuntimeError(f"{forms}\nDevice of 'wrap_storage' must be cpu, but got {wrap_storage.device.type}")
        return _typed(wrap_storage, cls._dtype)

    def __init__(self, *args, device=None, dtype=None, wrap_storage=None, _internal=False):
        if not _internal:
            _warn_typed_storage_removal()
        forms = _FORMS_TYPED
        if wrap_storage is None:
            _check_data(forms, args)
            self.dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
            self._untyped_storage = self._made(args, _Device("cpu" if device is None else device))
            return
        if args:
            _check_wrapped(forms, args, wrap_storage)
        if dtype is None:
            raise RuntimeError(f"{forms}\nArgument 'dtype' must be specified")
        if type(dtype) is not type(as_dtype("uint8")):
            raise TypeError(f"{forms}\nArgument 'dtype' must be torch.dtype, not {type(dtype)}")
        if device is not None:
            raise RuntimeError(f"{forms}\nArgument 'device' should not be specified when 'wrap_storage' is given")
        _check_wrapped(forms, args, wrap_storage)
        self.dtype, self._untyped_storage = dtype, wrap_storage

    def _made(self, args, device):
        if args and not _is_number(args[0]):
            if isinstance(args[0], (str, bytes)):
                raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
            return tensor(args[0], dtype=self.dtype, device=device).untyped_storage()
        size = args[0].__index__() if args else 0
        return UntypedStorage(size * self.dtype.itemsize, device=device)

    # -- without a warning, for the library itself

    @property
    def _dtype(self):
        return self.dtype

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    @property
    def filename(self):
        """The path of the file that is mapped for all processes; else None."""
        return self._untyped_storage.filename

    def _tensor(self):
        """A vector over all elements."""
        return _over(self._untyped_storage, self.dtype)

    def _size(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def _nbytes(self):
        return self._untyped_storage.nbytes()

    def _element_size(self):
        return self.dtype.itemsize

    def _data_ptr(self):
        return self._untyped_storage.data_ptr()

    def _is_shared(self):
        return self._untyped_storage.is_shared()

    def _share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def _resize_(self, size):
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _deepcopy(self, memo):
        from copy import deepcopy
        return _typed(deepcopy(self._untyped_storage, memo), self.dtype)

    def _new_shared(self, size, *, device=None):
        """A storage of this dtype in memory that other processes can map."""
        made = UntypedStorage._new_shared(size * self.dtype.itemsize, device="cpu" if device is None else device)
        return _typed(made, self.dtype)

    def _pickle_storage_type(self):
        try:
            return _dtype_to_storage_type_map()[self.dtype]
        except KeyError:
            raise KeyError(f"dtype {self.dtype} is not recognized") from None

    def _get_legacy_storage_class(self):
        name = _dtype_to_storage_type_map().get(self.dtype)
        return globals()[name] if name is not None and self._untyped_storage.device.type == "cpu" else None

    def _position(self, index):
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -self._size() <= index < self._size():
            raise IndexError(f"index {index} out of range for storage of size {self._size()}")
        return index

    def _getitem(self, index):
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()[self._position(index)].item()

    def _setitem(self, index, value):
        if isinstance(value, (UntypedStorage, TypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._tensor()[index if isinstance(index, slice) else self._position(index)] = value

    def _text(self):
        its = self._untyped_storage.device
        last = f"[{__name__}.{type(self).__name__}(dtype={self.dtype}, device={its}) of size {self._size()}]"
        return f"...\n{last}" if its.type == "meta" else f" {shown_values(self._tensor())}\n{last}"

    _to = _to

    # -- with the warning

    @property
    def device(self):
        _warn_typed_storage_removal()
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        _warn_typed_storage_removal()
        return self._untyped_storage.is_cuda

    @property
    def is_hpu(self):
        _warn_typed_storage_removal()
        return False

    def untyped(self):
        """The bytes."""
        _warn_typed_storage_removal()
        return self._untyped_storage

    def __len__(self):
        _warn_typed_storage_removal()
        return self._size()

    def size(self):
        """The number of elements."""
        _warn_typed_storage_removal()
        return self._size()

    def nbytes(self):
        """The number of bytes."""
        _warn_typed_storage_removal()
        return self._nbytes()

    def element_size(self):
        """The number of bytes of an element."""
        _warn_typed_storage_removal()
        return self.dtype.itemsize

    def get_device(self):
        """The index of the device; None for one without an index."""
        _warn_typed_storage_removal()
        return self._untyped_storage.get_device()

    def data_ptr(self):
        """The address of the first byte."""
        _warn_typed_storage_removal()
        return self._data_ptr()

    def pickle_storage_type(self):
        """The name of the class of storages of this dtype."""
        _warn_typed_storage_removal()
        return self._pickle_storage_type()

    def resizable(self):
        """Whether ``resize_`` may move the memory."""
        _warn_typed_storage_removal()
        return self._untyped_storage.resizable()

    def resize_(self, size):
        """Sets the number of elements."""
        _warn_typed_storage_removal()
        self._resize_(size)

    def __getitem__(self, index):
        _warn_typed_storage_removal()
        return self._getitem(index)

    def __setitem__(self, index, value):
        _warn_typed_storage_removal()
        self._setitem(index, value)

    def fill_(self, value):
        """Sets all elements to a number."""
        _warn_typed_storage_removal()
        self._setitem(slice(0, self._size()), value)
        return self

    def copy_(self, source, non_blocking=None):
        """Copies the bytes of another storage, of the same number of bytes, into this one."""
        _warn_typed_storage_removal()
        self._untyped_storage.copy_(source, non_blocking)
        return self

    def tolist(self):
        """The elements as numbers."""
        _warn_typed_storage_removal()
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._tensor().tolist()

    def __iter__(self):
        _warn_typed_storage_removal()
        return iter(self._tensor().tolist())

    def __str__(self):
        _warn_typed_storage_removal()
        return self._text()

    def __repr__(self):
        _warn_typed_storage_removal()
        return self._text()

    def __copy__(self):
        _warn_typed_storage_removal()
        return _typed(self._untyped_storage.clone(), self.dtype)

    def __deepcopy__(self, memo):
        _warn_typed_storage_removal()
        return self._deepcopy(memo)

    def __reduce__(self):
        return _typed, (self._untyped_storage, self.dtype)

    def __sizeof__(self):
        _warn_typed_storage_removal()
        return super().__sizeof__() + self._nbytes()

    def clone(self):
        """A copy in memory of its own."""
        _warn_typed_storage_removal()
        return _typed(self._untyped_storage.clone(), self.dtype)

    def type(self, dtype=None, non_blocking=False):
        """The name of the class of storages of this dtype; or a copy of the bytes as another class."""
        _warn_typed_storage_removal()
        if dtype is not None:
            return _as_type(self._untyped_storage, dtype, non_blocking)
        cls = self._get_legacy_storage_class()
        return f"torch.storage.{type(self).__name__}" if cls is None else f"torch.{cls.__name__}"

    def to(self, *, device, non_blocking=False):
        """The storage on a device: over the same memory if it is there, else over a copy."""
        _warn_typed_storage_removal()
        return _typed(self._untyped_storage.to(device, non_blocking), self.dtype)

    def cpu(self):
        """The storage on the CPU: over the same memory if it is there, else over a copy."""
        _warn_typed_storage_removal()
        return _typed(self._untyped_storage.cpu(), self.dtype)

    def cuda(self, device=None, non_blocking=False):
        """The storage on a CUDA device: over the same memory if it is there, else over a copy."""
        _warn_typed_storage_removal()
        return _typed(self._untyped_storage.cuda(device, non_blocking), self.dtype)

    def is_pinned(self, device=None):
        """Whether the memory is page-locked."""
        _warn_typed_storage_removal()
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device=None):
        """The storage in page-locked memory."""
        _warn_typed_storage_removal()
        return _typed(self._untyped_storage.pin_memory(device), self.dtype)

    def is_shared(self):
        """Whether other processes can map this memory."""
        _warn_typed_storage_removal()
        return self._is_shared()

    def share_memory_(self):
        """Moves the bytes to memory that other processes can map."""
        _warn_typed_storage_removal()
        return self._share_memory_()

    @classmethod
    def from_buffer(cls, *args, **kwargs):
        """A storage of a copy of a buffer's elements; see ``UntypedStorage.from_buffer``."""
        _warn_typed_storage_removal()
        return cls._from_buffer(*args, **kwargs)

    @classmethod
    def _from_buffer(cls, *args, dtype=None, device=None, **kwargs):
        if issubclass(cls, _LegacyStorage):
            for name, given in ("dtype", dtype is not None or len(args) == 5), ("device", device is not None):
                if given:
                    raise RuntimeError(f"from_buffer: '{name}' can only be specified in UntypedStorage.from_buffer and "
                                       "TypedStorage.from_buffer")
            dtype = cls._dtype
        elif dtype is None:
            dtype = get_default_dtype()
        if device is not None and _Device(device).type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {_Device(device).type}")
        return _typed(UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs), dtype)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """A storage of ``size`` elements over a mapped file; see ``UntypedStorage.from_file``."""
        _warn_typed_storage_removal()
        if not issubclass(cls, _LegacyStorage):
            raise RuntimeError("from_file can only be called on derived classes")
        return _typed(UntypedStorage.from_file(filename, shared, size * cls._dtype.itemsize), cls._dtype)


def _cast(name, its):
    def cast(self):
        _warn_typed_storage_removal()
        return self._to(its)

    cast.__name__, cast.__qualname__ = name, f"TypedStorage.{name}"
    cast.__doc__ = f"A copy of the elements, converted to {its}."
    return cast


for _name, _its in CASTS.items():
    setattr(TypedStorage, _name, _cast(_name, _its))


class _LegacyStorageMeta(type):
    """``isinstance`` tests the dtype: instances are typed storages."""

    @property
    def dtype(cls):
        _warn_typed_storage_removal(stacklevel=2)
        return cls._dtype

    def __instancecheck__(cls, instance):
        return type(instance) is TypedStorage and instance._untyped_storage.device.type == "cpu" and (
            instance.dtype is getattr(cls, "_dtype", None))


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base of classes such as ``FloatStorage``, which make a :class:`TypedStorage` of their dtype."""

    @classmethod
    def _new_shared(cls, size):
        """A storage in memory that other processes can map."""
        return _typed(UntypedStorage._new_shared(size * cls._dtype.itemsize), cls._dtype)


globals().update({f"{_kind}Storage": _LegacyStorageMeta(f"{_kind}Storage", (_LegacyStorage,), {
    "__module__": __name__, "_dtype": as_dtype(_its),
    "__doc__": f"Typed storages of dtype {_its} on the CPU, deprecated as all typed storages are."})
    for _kind, _its in _KINDS.items()})
Storage = FloatStorage  # noqa: F821
