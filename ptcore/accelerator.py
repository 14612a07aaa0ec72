"""The accelerator of this machine, its CUDA devices if it has any, under neutral names."""
import sys

from ptcore import cuda
from ptcore._device import device as _device
from ptcore._errors import DeviceError

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
           "device_index", "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info",
           "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
           "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
           "set_device_index", "set_stream", "synchronize"]


def is_available():
    """Whether there is an accelerator.

    >>> import ptcore
    >>> ptcore.accelerator.is_available() == ptcore.cuda.is_available()
    True
    """
    return cuda.is_available()


def device_count():
    """The number of devices of the accelerator."""
    return cuda.device_count()


def current_accelerator(check_available=False):
    """The device of the accelerator without an index, None if there is none."""
    return _device("cuda") if cuda.is_available() else None


def _check(op):
    if not cuda.is_available():
        raise DeviceError(f"{op}: no accelerator is available")


def current_device_index():
    """The number of the current device."""
    _check("current_device_index")
    return cuda.current_device()


def set_device_index(device):
    """Makes a device current."""
    if device is None or isinstance(device, float):
        raise ValueError(f"set_device_index: device must be a device, str or int, got {type(device).__name__}")
    _check("set_device_index")
    cuda.set_device(device)


def current_stream(device=None):
    """The stream of this thread's work on a device (the current one if None)."""
    _check("current_stream")
    from ptcore.cuda import streams
    return streams.current_stream(device)


def set_stream(stream):
    """Makes a stream this thread's current one, and its device the current one."""
    from ptcore.cuda import streams
    if not isinstance(stream, streams.Stream):
        raise TypeError(f"set_stream: stream must be a cuda.Stream, got {type(stream).__name__}")
    _check("set_stream")
    streams.set_stream(stream)


def synchronize(device=None):
    """Waits for the work of a device (the current one if None)."""
    _check("synchronize")
    cuda.synchronize(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index(cuda.device):
    """``with device_index(n):`` makes a device the current one; None changes nothing."""

    def __init__(self, device, /):
        super().__init__(None)
        self.idx = device

    def _prepare(self):
        if self.idx is not None:
            _check("device_index")
            given = self.idx
            super().__init__(given)
            self.idx = given


def get_device_capability(device=None, /):
    """The capability of a device: ``supported_dtypes`` is the set of the dtypes of tensors there."""
    _check("get_device_capability")
    from ptcore._dtype import dtype
    return {"supported_dtypes": {d for d in vars(sys.modules["ptcore"]).values() if isinstance(d, dtype)}}


# -- memory ------------------------------------------------------------------------------------------------------

def _memory(op):
    _check(op)
    from ptcore.cuda import memory
    return memory


def empty_cache():
    """Returns memory kept for reuse to the device; see `cuda.empty_cache`."""
    _memory("empty_cache").empty_cache()


def empty_host_cache():
    """Returns pinned memory kept for reuse to the system."""
    _memory("empty_host_cache").empty_host_cache()


def memory_stats(device_index=None, /):
    """The counters of a device's allocator (that of the current device if None); see `cuda.memory_stats`."""
    return _memory("memory_stats").memory_stats(device_index)


def memory_allocated(device_index=None, /):
    """Bytes in use by tensors."""
    return _memory("memory_allocated").memory_allocated(device_index)


def max_memory_allocated(device_index=None, /):
    """The largest number of bytes in use since `reset_peak_memory_stats`."""
    return _memory("max_memory_allocated").max_memory_allocated(device_index)


def memory_reserved(device_index=None, /):
    """Bytes that the allocator holds of the device."""
    return _memory("memory_reserved").memory_reserved(device_index)


def max_memory_reserved(device_index=None, /):
    """The largest number of bytes that the allocator held since `reset_peak_memory_stats`."""
    return _memory("max_memory_reserved").max_memory_reserved(device_index)


def reset_accumulated_memory_stats(device_index=None, /):
    """Resets accumulated counters to 0."""
    _memory("reset_accumulated_memory_stats").reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index=None, /):
    """Resets the peaks to the present values."""
    _memory("reset_peak_memory_stats").reset_peak_memory_stats(device_index)


def get_memory_info(device_index=None, /):
    """The free and the total memory of a device, in bytes."""
    return _memory("get_memory_info").mem_get_info(device_index)
