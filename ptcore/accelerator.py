"""The accelerator of this machine: none, as far as this build knows."""
from ptcore._errors import DeviceError

__all__ = ["current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index",
           "synchronize"]


def is_available():
    """Whether there is an accelerator.

    >>> import ptcore
    >>> ptcore.accelerator.is_available()
    False
    """
    return False


def device_count():
    """How many devices the accelerator has."""
    return 0


def current_accelerator(check_available=False):
    """The device of the accelerator, None if there is none."""
    return None


def _none(op):
    raise DeviceError(f"{op}: no accelerator is available")


def current_device_index():
    """The number of the device that is current."""
    _none("current_device_index")


def set_device_index(device):
    """Makes a device current."""
    _none("set_device_index")


def synchronize(device=None):
    """Waits for the work of a device."""
    _none("synchronize")
