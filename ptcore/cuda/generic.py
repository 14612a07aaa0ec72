"""Streams and events of any kind of device, for programs that do not name theirs."""
from ptcore._device import device as _device
from ptcore.cuda import is_available, streams

__all__ = ["Event", "Stream"]


def _kind(device):
    """The device; None is the accelerator if there is one, else the CPU."""
    if device is None:
        return _device("cuda") if is_available() else _device("cpu")
    return _device(device)


class _Kind(type):
    """A class that counts the devices' own classes among its subclasses."""

    def __subclasscheck__(cls, other):
        return super().__subclasscheck__(other) or issubclass(other, getattr(streams, cls.__name__))

    def __instancecheck__(cls, x):
        return issubclass(type(x), cls)


class Stream(metaclass=_Kind):
    """A sequence of work that a device does in order: a `cuda.Stream` on a GPU, and one that is always done elsewhere.

    Parameters
    ----------
    device : device, str or int, optional
        By default the accelerator if there is one, else the CPU.
    priority : int
        Lower numbers go first.

    Raises
    ------
    RuntimeError
        If there is no such device.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.Stream("cpu").query()
    True
    """

    def __new__(cls, device=None, *, priority=0):
        device = _kind(device)
        if device.type == "cuda":
            return streams.Stream(device, priority)
        self = super().__new__(cls)
        self._device = device
        return self

    @property
    def device(self):
        """The device, without an index."""
        return _device(self._device.type)

    device_index, device_type, stream_id = -1, 0, 0

    def query(self):
        """Whether all work is done: always True."""
        return True

    def synchronize(self):
        """Waits for the work, which is done when an operation returns."""

    def wait_event(self, event):
        """Waits for nothing."""

    def wait_stream(self, stream):
        """Raises RuntimeError: there are no events to wait for."""
        self.record_event()

    def record_event(self, event=None):
        """Raises RuntimeError: there are no events."""
        raise RuntimeError(f"Stream: there are no events on device {self._device.type}")

    def is_capturing(self):
        """Whether a graph of the work is being made: always False."""
        return False

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return self.device == other.device

    def __hash__(self):
        return hash(self.device)

    def __repr__(self):
        return f"<ptcore.Stream device={self._device.type}>"


class Event(metaclass=_Kind):
    """A place in a stream's work: a `cuda.Event` on a GPU, and one that is always reached elsewhere.

    Parameters
    ----------
    device : device, str or int, optional
        By default the accelerator if there is one, else the CPU.
    enable_timing : bool
        Whether it keeps the time.
    blocking : bool
        Whether ``synchronize`` gives the processor to others.
    interprocess : bool
        Whether other processes can wait for it.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.Event("cpu").query()
    True
    """

    def __new__(cls, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        device = _kind(device)
        if device.type == "cuda":
            streams.index_of(device, "Event")           # raises where there is no such device
            return streams.Event(enable_timing, blocking, interprocess)
        self = super().__new__(cls)
        self._device = device
        return self

    @property
    def device(self):
        """The device, without an index."""
        return _device(self._device.type)

    event_id = 0

    def query(self):
        """Whether all work before the event is done: always True."""
        return True

    def synchronize(self):
        """Waits for the work before the event, which is done when an operation returns."""

    def wait(self, stream=None):
        """Waits for nothing."""

    def record(self, stream=None):
        """Raises RuntimeError: there are no streams to record."""
        raise RuntimeError(f"Event: there are no events on device {self._device.type}")

    def elapsed_time(self, end_event):
        """Raises ValueError: no time is kept."""
        raise ValueError(f"Event: no time is kept on device {self._device.type}")

    def __repr__(self):
        return f"<ptcore.Event device={self._device.type}>"
