"""``torch._C``: names of PyTorch's C extension that programs use; any other raises AttributeError."""
import sys

from ptcore import _errors, _interpret, _overrides, _state
from ptcore._contexts import Together as _Together
from ptcore._device import device
from ptcore._dtype import dtype
from ptcore._memory_format import memory_format
from ptcore._ops import namespaces as _namespaces
from ptcore._ops.table.function_schema import Argument, FunctionSchema, parse_schema
from ptcore._random import Generator
from ptcore._shape import Size
from ptcore._tensor import Tensor
from ptcore.amp import autocast
from ptcore.jit import ScriptFunction, ScriptModule
from ptcore.library.tag import Tag
from ptcore.nn.modules.module import parse_to as _nn_parse_to

__all__ = ["Argument", "DispatchKey", "DispatchKeySet", "FunctionSchema", "Generator", "ScriptFunction", "ScriptModule",
           "Size", "Tag", "Tensor", "device", "dtype", "memory_format", "parse_schema"]

_LinAlgError, _OutOfMemoryError = _errors.LinAlgError, _errors.OutOfMemoryError
DisableTorchFunction = DisableTorchFunctionSubclass = _state.FunctionsOff
_disabled_torch_function_impl = _state._disabled_torch_function_impl
_has_torch_function = _overrides.has_torch_function
_GLIBCXX_USE_CXX11_ABI = True
_TensorBase = TensorBase = TensorType = Tensor
_TensorMeta = type(Tensor)


def _get_tracing_state():
    """A true value while `jit.trace` runs a program in this thread, otherwise None."""
    from ptcore.jit import is_tracing
    return True if is_tracing() else None


def _is_tracing():
    """Whether `jit.trace` runs a program in this thread."""
    return _get_tracing_state() is not None


def _log_api_usage_once(event):
    """Does nothing: ptcore reports no use."""


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of the arguments of ``Module.to``."""
    return _nn_parse_to(args, kwargs)


def _storage_address(tensor):
    """The number of a tensor's storage, which no other storage has."""
    return tensor.untyped_storage()._cdata


def _get_privateuse1_backend_name():
    """The name of a user's own backend."""
    return "privateuseone"


def _cuda_isCurrentStreamCapturing():
    from ptcore.cuda.graphs import is_current_stream_capturing
    return is_current_stream_capturing()


def _has_cuda():
    return False


def _is_torch_function_enabled():
    """Whether this thread's calls look for ``__torch_function__``."""
    return not _state.torch_function_is_off()


_nn = _functorch = sys.modules[__name__]
has_cuda = has_mps = has_xpu = has_mkldnn = has_openmp = has_mkl = False
has_lapack = True


class _Absent:
    """A guard that can be named but not used."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"torch._C.{type(self).__name__}: ptcore has no such part of PyTorch's dispatcher")


_AutoDispatchBelowAutograd = _namespaces.below_autograd
_DisableFuncTorch = _interpret.aside            # ``torch.testing`` keeps the state of random numbers so


class _Keys(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls(name)


class DispatchKey(metaclass=_Keys):
    """A key of PyTorch's dispatcher, by name: ``DispatchKey.CPU``."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, DispatchKey) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"DispatchKey.{self.name}"


class DispatchKeySet:
    """Keys of PyTorch's dispatcher."""

    def __init__(self, *keys):
        self.keys = {key if isinstance(key, str) else key.name for key in keys}

    def __or__(self, other):
        return DispatchKeySet(*self.keys, *other.keys)

    def __and__(self, other):
        return DispatchKeySet(*self.keys & other.keys)

    def __sub__(self, other):
        return DispatchKeySet(*self.keys - other.keys)

    def has(self, key):
        """Whether a key is in the set."""
        return getattr(key, "name", key) in self.keys


class _ExcludeDispatchKeyGuard(_Together):
    """A context without autocast, or in which custom ops skip to their kernels, depending on the keys."""

    def __init__(self, keys):
        names = keys.keys if isinstance(keys, DispatchKeySet) else {keys.name}
        contexts = []
        for name in names:
            if name in ("AutocastCPU", "AutocastCUDA"):
                contexts.append(autocast(name.removeprefix("Autocast").lower(), enabled=False))
            elif name.startswith("Autocast"):
                continue                # this machine has no such device
            elif name.startswith("Autograd"):
                contexts.append(_AutoDispatchBelowAutograd())
            else:
                raise NotImplementedError(f"torch._C._ExcludeDispatchKeyGuard: ptcore has no part {name} of PyTorch's "
                                          "dispatcher")
        super().__init__(contexts)


class _IncludeDispatchKeyGuard(_Absent):
    """A guard of PyTorch's dispatcher."""


def _jit_get_operation(name):
    """Raises: ptcore has no registry of operators like PyTorch's."""
    raise NotImplementedError(f"torch._C._jit_get_operation: ptcore has no registry of PyTorch's operators ({name!r})")


def __getattr__(name):
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}: it is a private part of PyTorch, which ptcore "
                         "has not")


class PyTorchFileReader:
    """Refused: `load` reads only whole archives."""

    def __init__(self, *args):
        raise NotImplementedError("torch._C.PyTorchFileReader: absent; torch.load reads archives")
