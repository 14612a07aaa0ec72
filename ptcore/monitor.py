"""Events and statistics of a program, passed to registered handlers."""
import datetime
import enum
import threading
import time

__all__ = ["Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
           "register_event_handler", "unregister_event_handler"]

data_value_t = str | int | float | bool
_handlers = []
_lock = threading.Lock()


class Aggregation(enum.Enum):
    """How a `Stat` combines the added numbers to one."""

    VALUE = 0
    MEAN = 1
    COUNT = 2
    SUM = 3
    MAX = 4
    MIN = 5


class Event:
    """An event of a program.

    Parameters
    ----------
    name : str
    timestamp : datetime.datetime
    data : dict
        From str to str, int, float or bool.
    """

    def __init__(self, name, timestamp, data):
        self.name, self.timestamp, self.data = name, timestamp, dict(data)

    def __repr__(self):
        return f"Event(name={self.name!r}, timestamp={self.timestamp!r}, data={self.data!r})"


class EventHandlerHandle:
    """The result of `register_event_handler`, for `unregister_event_handler`."""

    def __init__(self, callback):
        self._callback = callback


def register_event_handler(callback):
    """Calls ``callback(event)`` at each `log_event` from now on; returns a handle.

    Parameters
    ----------
    callback : callable
    """
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler):
    """Removes a handler of `register_event_handler`.

    Parameters
    ----------
    handler : EventHandlerHandle
    """
    with _lock:
        if handler in _handlers:
            _handlers.remove(handler)


def log_event(event):
    """Passes an event to the handlers.

    Parameters
    ----------
    event : Event
    """
    with _lock:
        handlers = list(_handlers)
    for handle in handlers:
        handle._callback(event)


class Stat:
    """Numbers of a window of time, which become one event when the window ends or has enough samples.

    Parameters
    ----------
    name : str
    aggregations : list of Aggregation
    window_size : datetime.timedelta
    max_samples : int, optional
    """

    def __init__(self, name, aggregations, window_size, max_samples=2**63 - 1):
        self.name, self._aggregations, self._max = name, list(aggregations), max_samples
        self._window = window_size.total_seconds()
        self._values, self._start = [], time.monotonic()

    @property
    def count(self):
        """The number of numbers in the window."""
        self._maybe_log()
        return len(self._values)

    def add(self, v):
        """Adds a number."""
        self._maybe_log()
        self._values.append(v)
        if len(self._values) >= self._max:
            self._log()

    def get(self):
        """A dict of the aggregations so far."""
        self._maybe_log()
        return self._aggregate()

    def _aggregate(self):
        values = self._values
        made = {Aggregation.COUNT: len, Aggregation.SUM: sum,
                Aggregation.VALUE: lambda v: v[-1] if v else 0, Aggregation.MEAN: lambda v: sum(v) / len(v) if v else 0,
                Aggregation.MAX: lambda v: max(v, default=0), Aggregation.MIN: lambda v: min(v, default=0)}
        return {kind: made[kind](values) for kind in self._aggregations}

    def _maybe_log(self):
        if time.monotonic() - self._start >= self._window:
            if self._values:
                self._log()
            self._start = time.monotonic()

    def _log(self):
        data = {f"{self.name}.{kind.name.lower()}": value for kind, value in self._aggregate().items()}
        self._values, self._start = [], time.monotonic()
        log_event(Event("torch.monitor.Stat", datetime.datetime.now(), data))


class TensorboardEventHandler:
    """A handler that writes the numbers of events by ``writer.add_scalar``.

    Parameters
    ----------
    writer : SummaryWriter
    """

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == "torch.monitor.Stat":
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
