"""CUDA devices: how many there are, which one is current, streams, events and memory.

Nothing of CUDA is imported with this module. ``is_available`` asks the driver alone; everything else loads the backend
at its first use, and raises RuntimeError that says what is missing where there is none.
"""
from ptcore import _lazy
from ptcore._contexts import Exchanged as _Exchanged
from ptcore._errors import OutOfMemoryError
from ptcore.cuda.driver import loading, probe

__all__ = ["OutOfMemoryError", "can_device_access_peer", "current_device", "device", "device_count", "device_of",
           "get_arch_list", "get_device_capability", "get_device_name", "get_gencode_flags", "get_sync_debug_mode",
           "init", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported",
           "set_device", "set_sync_debug_mode", "synchronize",
           *[name for names in _lazy.TABLE["ptcore.cuda"].values() for name in names]]


__getattr__, __dir__ = _lazy.names(__name__)


def is_available():
    """Whether tensors can be made on ``device="cuda"``: there is a driver with a device, and the backend is there.

    Examples
    --------
    >>> import ptcore
    >>> device = ptcore.device("cuda" if ptcore.cuda.is_available() else "cpu")
    """
    return device_count() > 0


def _complete():
    """Whether the backend was built and what it imports is installed."""
    import importlib.util
    find = importlib.util.find_spec
    return find("ptcore.cuda._backend") is not None and find("cuda") is not None and find("cuda.bindings") is not None


def device_count():
    """The number of CUDA devices that can be used."""
    count = probe.device_count()
    return count if count and (loading.started() is not None or _complete()) else 0


def is_initialized():
    """Whether the driver has been started by a use of a device."""
    return loading.started() is not None and loading.started().is_initialised()


def init():
    """Starts the driver; any use of a device does so."""
    loading.runtime().initialise()


def current_device():
    """The number of the device that ``"cuda"`` means on this thread."""
    runtime = loading.runtime()
    return runtime.check_device(runtime.current_device())


def set_device(device):
    """Makes a device the one that ``"cuda"`` means on this thread; a negative number does nothing.

    Parameters
    ----------
    device : device, str or int
    """
    if not isinstance(device, int) or device >= 0:
        loading.runtime().set_device(loading.index_of(device, "set_device"))


class device(_Exchanged):
    """``with device(d):`` makes a device this thread's current one.

    Parameters
    ----------
    device : device, str, int or None
        A negative number and None change nothing.
    """

    def __init__(self, device):
        none = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if none else loading.index_of(device, "device")
        super().__init__(*_of_device(self.idx))

    @property
    def prev_idx(self):
        """The device that was current where this was entered last; -1 before."""
        return -1 if self.last is None else self.last


def _of_device(index):
    """The changes by which a context makes a device the current one; none for a negative number."""
    if index < 0:
        return ()
    found = loading.runtime()
    return ((found.current_device, found.set_device, (), index),)


class device_of(device):
    """``with device_of(obj):`` makes the device of a tensor the current one, if it is a CUDA device."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device=None):
    """Waits until a device (the current one if None) has done all its work; raises what failed meanwhile."""
    loading.runtime().synchronize(loading.index_of(device, "synchronize"))


_SYNC_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode):
    """What happens where a copy between the host and a device makes the program wait for the device.

    Parameters
    ----------
    debug_mode : {"default", "warn", "error"} or {0, 1, 2}
        Nothing, a UserWarning, or RuntimeError in the place of the copy. What waits because it is asked to, as
        `synchronize` does, is not meant.
    """
    mode = _SYNC_MODES.index(debug_mode) if debug_mode in _SYNC_MODES else debug_mode
    if isinstance(mode, bool) or not isinstance(mode, int) or not 0 <= mode <= 2:
        raise RuntimeError(f"set_sync_debug_mode: debug_mode must be one of 'default', 'warn' and 'error', got "
                           f"{debug_mode!r}")
    loading.runtime().set_sync_debug_mode(mode)


def get_sync_debug_mode():
    """The mode of `set_sync_debug_mode` as a number: 0, 1 or 2."""
    return loading.runtime().sync_debug_mode()


def get_device_name(device=None):
    """The name of a device."""
    return loading.runtime().device_name(loading.index_of(device, "get_device_name"))


def get_device_capability(device=None):
    """(major, minor) compute capability of a device."""
    index = loading.index_of(device, "get_device_capability")
    return loading.runtime().attribute(index, 75), loading.runtime().attribute(index, 76)


def can_device_access_peer(device, peer_device):
    """Whether a device can read the memory of another one."""
    return loading.runtime().can_access_peer(loading.index_of(device, "can_device_access_peer"),
                                      loading.index_of(peer_device, "can_device_access_peer"))


def get_arch_list():
    """The architectures that kernels are compiled for: those of the devices, when they are first used."""
    return [f"sm_{10 * a + b}" for a, b in sorted({get_device_capability(i) for i in range(device_count())})]


def get_gencode_flags():
    """The same as options of nvcc."""
    return " ".join([f"-gencode compute=compute_{a[3:]},code={a}" for a in get_arch_list()])


def is_tf32_supported():
    """Whether the current device multiplies float32 rounded to TF32: from sm_80 on."""
    return is_available() and get_device_capability() >= (8, 0)


def is_bf16_supported(including_emulation=True):
    """Whether the current device computes in bfloat16: in its tensor cores from sm_80 on, elsewhere through float32."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def ipc_collect():
    """Lets go of memory that was sent to other processes which do not need it any more; so does each further message,
    and an allocation that would fail."""
    if loading.started() is not None:
        from ptcore.cuda.allocator import allocators
        for f in allocators.reclaim:
            f()
