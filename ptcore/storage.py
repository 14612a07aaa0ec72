"""Storages: ``UntypedStorage``, the bytes behind tensors. Storages with a dtype, which PyTorch has deprecated, are
classes without instances: programs ask whether something is one."""
from ptcore._untyped_storage import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


class _Typed(type):
    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__}: storages have no dtype here; use Tensor.untyped_storage()")


class TypedStorage(metaclass=_Typed):
    """A storage with a dtype; there are none."""


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
