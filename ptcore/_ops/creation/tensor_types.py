"""PyTorch's legacy constructors: ``FloatTensor(2, 3)``, ``LongTensor([1, 2])``.

Each constructor is a class; its instances are the tensors of a dtype on the CPU or, in ``ptcore.cuda``, on a CUDA
device. Sizes make uninitialised memory, a sequence makes data. New programs call ``ptcore.tensor``, ``ptcore.empty``.
"""
from ptcore._dtype import WORDS, as_dtype
from ptcore._exchange.convert import tensor
from ptcore._ops.creation.creation import empty
from ptcore._subclass import all_of
from ptcore._tensor import Tensor
from ptcore._untyped_storage import is_storage


class _TensorType(type):
    """``isinstance`` tests the dtype; calling makes a plain Tensor."""

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.device.type == cls.device_type

    def __call__(cls, *args, device=None):
        if device is not None and str(device).partition(":")[0] != cls.device_type:
            raise RuntimeError(f"{cls.__name__}: device must be {cls.device_type}, got {device}")
        device = device or cls.device_type
        if len(args) == 1 and not isinstance(args[0], int):
            data = args[0]
            if isinstance(data, Tensor):
                if data.dtype is not cls.dtype or data.device.type != cls.device_type:
                    raise TypeError(f"{cls.__name__}: data must be a {cls.dtype.name} tensor on {cls.device_type}, got "
                                    f"{data.dtype.name} on {data.device.type}")
                return all_of(data)
            if is_storage(data):
                return empty(0, dtype=cls.dtype, device=device).set_(data)
            if type(data).__name__ == "Size":
                return empty(data, dtype=cls.dtype, device=device)
            if isinstance(data, (list, tuple, range)) or hasattr(data, "__array__"):
                return tensor(data, dtype=cls.dtype, device=device)
            raise TypeError(f"{cls.__name__}: expected sizes or a sequence, got {type(data).__name__}")
        for size in args:
            if not isinstance(size, int):
                raise TypeError(f"{cls.__name__}: sizes must be int, got {type(size).__name__}")
        return empty(*(args or (0,)), dtype=cls.dtype, device=device)


CONSTRUCTORS = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")


def types_on(device_type, where, module):
    """{name: constructor} for a type of device."""
    return {f"{word}Tensor": _TensorType(f"{word}Tensor", (), {
        "dtype": as_dtype(WORDS[word]), "device_type": device_type, "__module__": module,
        "__doc__": f"Tensors of dtype {WORDS[word]} on {where}; calling it makes one from sizes or data."})
        for word in CONSTRUCTORS}


TYPES = types_on("cpu", "the CPU", "ptcore")
globals().update(TYPES)
