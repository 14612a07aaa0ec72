"""Streams and events: in which order a device does its work."""
import threading

from ptcore._contexts import Exchanged
from ptcore._device import device as _device
from ptcore.cuda.driver.loading import index_of, runtime

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
           "get_stream_from_external", "set_stream", "stream"]


_POOL = 32
_pools = {}                             # (device, priority) -> [the streams made so far, the number of the next]
_priorities = {}                        # stream -> its priority, where it is not 0
_lock = threading.Lock()

# For each capture under way, a list of the external events that it records or waits for; its graph keeps them.
captures_events = []


def _kept_by_graphs(event):
    for events in captures_events:
        events.append(event)


def _pooled(index, priority):
    """One of the 32 streams of a device and priority in turn. Streams are never destroyed: memory and records refer to
    a stream by its address, which the driver would give to another stream."""
    least, greatest = runtime().stream_priority_range(index)
    priority = max(min(priority, least), greatest)
    with _lock:
        streams, next_one = _pools.setdefault((index, priority), ([], 0))
        if len(streams) < _POOL:
            streams.append(runtime().stream_create(index, priority))
            if priority:
                _priorities[streams[-1]] = priority
        _pools[index, priority] = streams, next_one + 1
        return streams[next_one % _POOL], priority


class Stream:
    """A sequence of work that a device does in order, beside that of other streams.

    There are 32 a device and priority, which are given out in turn, as PyTorch's: two objects may be one stream.

    Parameters
    ----------
    device : device, str or int, optional
        The current device if None.
    priority : int
        Lower numbers go first; see ``priority_range``.

    Raises
    ------
    RuntimeError
        If there is no such device.
    """

    def __init__(self, device=None, priority=0):
        self._index = index_of(device, "Stream")
        self._handle, self.priority = _pooled(self._index, priority)

    @classmethod
    def _of(cls, index, handle):
        self = Stream.__new__(cls)
        self._index, self._handle, self.priority = index, handle, _priorities.get(handle, 0)
        return self

    @property
    def device(self):
        return _device("cuda", self._index)

    @property
    def device_index(self):
        return self._index

    @property
    def cuda_stream(self):
        """The CUstream, as a number."""
        return self._handle

    stream_id = cuda_stream

    def query(self):
        """Whether all work is done."""
        return runtime().stream_query(self._index, self._handle)

    def synchronize(self):
        """Waits until all work is done."""
        runtime().stream_synchronize(self._index, self._handle)

    def wait_event(self, event):
        """Makes work that comes next wait for an event."""
        if captures_events and event._external and event._handle is None:   # it may be recorded before a launch
            event._create(self._index)
        if event._handle and runtime().stream_wait_event(self._index, self._handle, event._handle, event._external):
            _kept_by_graphs(event)

    def wait_stream(self, stream):
        """Makes work that comes next wait for what another stream has been given so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """Records an event (a new one if None) behind the work so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    @staticmethod
    def priority_range(device=None):
        """(least, greatest) priority of a device's streams."""
        return runtime().stream_priority_range(index_of(device, "priority_range"))

    def __cuda_stream__(self):
        return 0, self._handle

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return (self._index, self._handle) == (other._index, other._handle)

    def __hash__(self):
        return hash((self._index, self._handle))

    def __repr__(self):
        return f"<ptcore.cuda.Stream device=cuda:{self._index} cuda_stream={self._handle:#x}>"


class ExternalStream(Stream):
    """A stream of another library, which keeps it alive.

    Parameters
    ----------
    stream_ptr : int
        The CUstream.
    device : device, str or int, optional
    """

    def __init__(self, stream_ptr, device=None):
        self._index, self._handle, self.priority = index_of(device, "ExternalStream"), stream_ptr, 0


def get_stream_from_external(data_ptr, device=None):
    """A stream of another library by its CUstream, as a number: `ExternalStream`."""
    return ExternalStream(data_ptr, device)


class Event:
    """A place in a stream's work: can be waited for, and timed against another.

    Parameters
    ----------
    enable_timing : bool
        Whether it keeps the time.
    blocking : bool
        Whether ``synchronize`` gives the processor to others.
    interprocess : bool
        Whether other processes can be given it: `multiprocessing` sends it, and ``ipc_handle``.
    external : bool
        What a capture makes of it: records and waits of the graph, which each launch repeats, so that the time of a
        part of a graph can be taken and work outside of it can wait for a part. Otherwise an event orders the work
        within a capture.

    Raises
    ------
    RuntimeError
        If it is to keep the time between processes.
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess and enable_timing:
            raise RuntimeError("Event: an interprocess event keeps no time: enable_timing must be False")
        self._flags = (0 if enable_timing else 2) | (1 if blocking else 0) | (4 if interprocess else 0)
        self._external = bool(external)
        self._handle = self._index = self._destroy = None

    def __del__(self):
        if getattr(self, "_destroy", None) is not None:
            self._destroy(self._handle)

    def _keep(self, index, handle):
        self._index, self._handle, self._destroy = index, handle, runtime().event_destroy

    def _create(self, index):
        self._keep(index, runtime().event_create(index, self._flags))

    def ipc_handle(self):
        """What ``from_ipc_handle`` makes the same event of in another process: 64 bytes. An event that was not recorded
        becomes one of the current device.

        Raises
        ------
        RuntimeError
            If it was not made with ``interprocess=True``.
        """
        if not self._flags & 4:
            raise RuntimeError("Event.ipc_handle: the event must be made with interprocess=True")
        if self._handle is None:
            self._create(runtime().check_device(-1))
        from ptcore.cuda import ipc
        return ipc.event_handle(self._index, self._handle)

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """The event of another process, which must keep its own.

        Parameters
        ----------
        device : device, str or int
        handle : bytes
            Of ``ipc_handle``.
        """
        if not isinstance(handle, bytes) or len(handle) != 64:
            raise TypeError("Event.from_ipc_handle: handle must be the 64 bytes that Event.ipc_handle gives, got "
                            f"{type(handle).__name__}")
        index = index_of(device, "Event.from_ipc_handle")
        runtime().check_device(index)
        from ptcore.cuda import ipc
        self = cls(interprocess=True)
        self._keep(index, ipc.open_event(index, handle))
        return self

    @property
    def device(self):
        return None if self._index is None else _device("cuda", self._index)

    @property
    def cuda_event(self):
        """The CUevent, as a number; 0 before it was recorded."""
        return self._handle or 0

    def record(self, stream=None):
        """Records the event behind the work so far of a stream (the current one if None).

        Raises
        ------
        RuntimeError
            If it was recorded on another device before.
        """
        stream = current_stream() if stream is None else stream
        if self._handle is None:
            self._create(stream._index)
        elif self._index != stream._index:
            raise RuntimeError(f"Event.record: the event belongs to cuda:{self._index}, the stream to "
                               f"cuda:{stream._index}")
        if runtime().event_record(self._index, self._handle, stream._handle, self._external):
            _kept_by_graphs(self)

    def wait(self, stream=None):
        """Makes the next work of a stream (the current one if None) wait for the event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self):
        """Whether all work before the event is done; True before it was recorded."""
        return self._handle is None or runtime().event_query(self._index, self._handle)

    def synchronize(self):
        """Waits until all work before the event is done."""
        if self._handle is not None:
            runtime().event_synchronize(self._index, self._handle)

    def elapsed_time(self, end_event):
        """Milliseconds between this event and another, both recorded and done.

        Raises
        ------
        ValueError
            If one of them was never recorded or keeps no time.
        """
        for event in (self, end_event):
            if event._handle is None:
                raise ValueError("elapsed_time: both events must be recorded first")
            if event._flags & 2:
                raise ValueError("elapsed_time: both events must be made with enable_timing=True")
        return runtime().event_elapsed(self._index, self._handle, end_event._handle)

    def __repr__(self):
        return "<ptcore.cuda.Event uninitialized>" if self._handle is None else \
            f"<ptcore.cuda.Event {self._handle:#x}>"


def current_stream(device=None):
    """The stream that this thread's work on a device goes to."""
    index = index_of(device, "current_stream")
    return Stream._of(index, runtime().current_stream(index))


def default_stream(device=None):
    """The stream that a device's work goes to unless another one is chosen."""
    return Stream._of(index_of(device, "default_stream"), 0)


def set_stream(stream):
    """Makes a stream this thread's current one on its device, and that device the current one; None does nothing."""
    if stream is not None:
        runtime().set_device(stream._index)
        runtime().set_stream(stream._index, stream._handle)


class StreamContext(Exchanged):
    """``with stream(s):`` this thread's work goes to ``s``; see ``stream``."""

    def __init__(self, stream):
        self.stream, changes = stream, ()
        if stream is not None:
            device, own = runtime(), stream._index
            changes = ((device.current_device, device.set_device, (), own),
                       (device.current_stream, device.set_stream, (own,), stream._handle))
        super().__init__(*changes)


def stream(stream):
    """A context in which this thread's work on the stream's device goes to it. None changes nothing.

    Parameters
    ----------
    stream : Stream or None
    """
    return StreamContext(stream)
