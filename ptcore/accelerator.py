"""The accelerator of this machine: its CUDA devices, if it has any, under names that do not say so."""
from ptcore import cuda
from ptcore._device import device as _device
from ptcore._errors import DeviceError

__all__ = ["current_accelerator", "current_device_index", "current_stream", "device_count", "is_available",
           "set_device_index", "set_stream", "synchronize"]


def is_available():
    """Whether there is an accelerator.

    >>> import ptcore
    >>> ptcore.accelerator.is_available() == ptcore.cuda.is_available()
    True
    """
    return cuda.is_available()


def device_count():
    """How many devices the accelerator has."""
    return cuda.device_count()


def current_accelerator(check_available=False):
    """The device of the accelerator without an index, None if there is none."""
    return _device("cuda") if cuda.is_available() else None


def _check(op):
    if not cuda.is_available():
        raise DeviceError(f"{op}: no accelerator is available")


def current_device_index():
    """The number of the device that is current."""
    _check("current_device_index")
    return cuda.current_device()


def set_device_index(device):
    """Makes a device current."""
    _check("set_device_index")
    cuda.set_device(device)


def current_stream(device=None):
    """The stream that this thread's work on a device (the current one if None) goes to."""
    _check("current_stream")
    from ptcore.cuda import streams
    return streams.current_stream(device)


def set_stream(stream):
    """Makes a stream this thread's current one, and its device the current one."""
    _check("set_stream")
    from ptcore.cuda import streams
    streams.set_stream(stream)


def synchronize(device=None):
    """Waits for the work of a device (the current one if None)."""
    _check("synchronize")
    cuda.synchronize(device)
