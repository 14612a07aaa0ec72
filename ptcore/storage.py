"""Storages: ``UntypedStorage``, the bytes behind tensors. Storages with a dtype, which PyTorch has deprecated, are
classes without instances, for ``isinstance`` in programs."""
from ptcore._ops.creation.functions import from_file as _tensor_from_file
from ptcore._state import _disabled_torch_function_impl
from ptcore._tensor import Tensor
from ptcore._untyped_storage import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


class _Bytes(Tensor):
    """Some bytes of a storage. Its ``view`` accepts a dtype's name as well, as readers of files use it."""

    __torch_function__ = _disabled_torch_function_impl

    def view(self, *shape, dtype=None):
        plain = self.as_subclass(Tensor)
        return plain.view(*shape) if dtype is None else plain.view(dtype)


def _from_file(filename, shared=False, nbytes=0):
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

    from ptcore import uint8
    filename = fspath(filename)             # a path and no descriptor, which would be closed
    return _tensor_from_file(filename, shared, nbytes, dtype=uint8).untyped_storage()


def _item(self, index, one=UntypedStorage.__getitem__):
    """A byte as a number; a slice as a tensor of bytes, which shares the memory."""
    if not isinstance(index, slice):
        return one(self, index)
    from ptcore import empty, uint8
    return empty(0, dtype=uint8, device=self.device).set_(self)[index].as_subclass(_Bytes)


def _untyped(self):
    """Returns the storage itself, which has no dtype."""
    if not isinstance(self, UntypedStorage):
        raise TypeError(f"untyped: expected an UntypedStorage, got {type(self).__name__}")
    return self


# The methods are set here, since the class is compiled below the ops that they use.
UntypedStorage.from_file = staticmethod(_from_file)
UntypedStorage.untyped = _untyped
UntypedStorage.__getitem__ = _item


class _Typed(type):
    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__}: storages have no dtype here; use Tensor.untyped_storage()")


class TypedStorage(metaclass=_Typed):
    """A storage with a dtype; there are no instances."""


class _LegacyStorage(TypedStorage):
    """The base of classes such as ``FloatStorage``; there are no instances."""

    @classmethod
    def _from_buffer(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__}: storages have no dtype here; use frombuffer")

    from_buffer = _from_buffer


_KINDS = ("BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half", "Int", "Long",
          "Short")
globals().update({f"{kind}Storage": _Typed(f"{kind}Storage", (_LegacyStorage,), {
    "__module__": __name__, "__doc__": "A storage with a dtype; there are none."}) for kind in _KINDS})
