"""The compiled half of the backend, imported at the first use of a device."""
import importlib.util
import sys

_started = None


def compiled():
    """The module ``_runtime``, imported but not started: for what needs no device."""
    if importlib.util.find_spec("ptcore.cuda._backend") is None:
        raise RuntimeError("this ptcore was built without the CUDA backend")
    from ptcore.cuda import _backend
    if "ptcore.cuda._runtime" not in sys.modules:
        _backend.install(_backend.__file__)
    try:
        from ptcore.cuda import _runtime
    except ModuleNotFoundError as e:
        raise RuntimeError(f"the package of {e.name!r} is missing: pip install 'ptcore[cuda13]'") from None
    return _runtime


def runtime():
    """The module ``_runtime``, started; RuntimeError that says what is missing where it cannot run."""
    global _started
    if _started is None:
        from ptcore.cuda import _probe
        if importlib.util.find_spec("ptcore.cuda._backend") is not None and not _probe.device_count():
            raise RuntimeError("no NVIDIA driver with a device was found on this machine")
        module = compiled()
        module.register()
        _started = module
    return _started


def started():
    """The module ``_runtime`` if a device has been used, else None."""
    return _started


def check_device(index):
    """The number of the device that an index (-1: the current one) means, ready for use."""
    return runtime().check_device(index)


def index_of(device, op):
    """The number of the CUDA device that ``device`` means: None, a number, a text or a device."""
    from ptcore._device import device as device_type
    if device is None:
        return runtime().current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return runtime().check_device(device)
    d = device_type(device)
    if d.type != "cuda":
        raise ValueError(f"{op}: device must be a CUDA device, got {str(d)!r}")
    return runtime().check_device(-1 if d.index is None else d.index)
