"""The compiled half of the backend, started at the first use of a device.

The runtime gets the modules above it that it calls, memory and the compiler of programs, from here.
"""
import importlib.util
import threading

from ptcore.cuda.driver.compiled import compiled

allocator = None                        # set by change_current_allocator
_started = None
_lock = threading.RLock()               # of the start: a second thread waits until the kernels are registered


def _start_memory(devices, backend):
    from ptcore.cuda.allocator import allocators
    from ptcore.cuda.driver import library_tables
    allocators.start(devices, backend, allocator)
    library_tables.start()


def _cubin(*program):
    from ptcore.cuda import _compile
    return _compile.cubin(*program)


def runtime():
    """The module ``runtime``, started; RuntimeError that says what is missing where it cannot run."""
    global _started
    if _started is None:
        with _lock:
            if _started is None:
                from ptcore.cuda.driver import probe
                if importlib.util.find_spec("ptcore.cuda._backend") is not None and not probe.device_count():
                    raise RuntimeError("no NVIDIA driver with a device was found on this machine")
                module = compiled()
                module.register(_start_memory, _cubin)
                _started = module
    return _started


def started():
    """The module ``runtime`` if a device has been used, else None."""
    return _started


def memory():
    """The module ``allocators``, of a backend that is started."""
    runtime()
    from ptcore.cuda.allocator import allocators
    return allocators


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
