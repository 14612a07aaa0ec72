"""Results that come later: ``Future``, ``collect_all`` and ``wait_all``.

Examples
--------
>>> import ptcore
>>> future = ptcore.futures.Future()
>>> doubled = future.then(lambda f: 2 * f.value())
>>> future.set_result(21)
>>> doubled.wait()
42
"""
import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value, or an error, that one thread sets once and others wait for.

    Parameters
    ----------
    devices : list of device, optional
        Devices whose streams the value is used on; values here are complete when they are set.
    """

    def __init__(self, *, devices=None):
        self._condition = threading.Condition()
        self._done, self._value, self._error = False, None, None
        self._callbacks = []
        self._devices = list(devices or ())

    def __class_getitem__(cls, item):
        import types
        return types.GenericAlias(cls, (item,))

    def done(self):
        """Whether the value or the error is set."""
        return self._done

    def wait(self):
        """Waits for the value and returns it, or raises the error."""
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self.value()

    def value(self):
        """The value of a completed future; raises its error."""
        if not self._done:
            raise RuntimeError("Future.value: the future is not done; use wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback):
        """A future of the result of ``callback(self)``, which is called when this future is done, or at once."""
        _check_callback("then", callback)
        follower = Future(devices=self._devices)

        def call(future):
            try:
                result = callback(future)
            except BaseException as error:
                # Who waits for the follower would wait for ever if an interrupt left it open.
                follower._finish(None, error)
                if not isinstance(error, Exception):
                    raise
            else:
                follower.set_result(result)

        self.add_done_callback(call)
        return follower

    def add_done_callback(self, callback):
        """Calls ``callback(self)`` when this future is done, or at once if it is.

        An error of the callback is logged, and reaches neither who sets the future nor other callbacks.
        """
        _check_callback("add_done_callback", callback)
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def _call(self, callback):
        try:
            callback(self)
        except Exception:
            import logging
            logging.getLogger("ptcore.futures").exception("the callback %r of a Future raised", callback)

    def _finish(self, value, error):
        with self._condition:
            if self._done:
                raise RuntimeError("Future: it is done already, and is set once")
            self._done, self._value, self._error = True, value, error
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        interrupt = None
        for callback in callbacks:
            try:
                self._call(callback)
            except BaseException as raised:  # such as Ctrl-C: the other callbacks run nevertheless
                interrupt = raised if interrupt is None else interrupt
        if interrupt is not None:
            raise interrupt

    def set_result(self, result):
        """Sets the value, and runs the callbacks."""
        self._finish(result, None)

    def set_exception(self, result):
        """Sets the error that `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)


def _check_callback(method, callback):
    if not callable(callback):
        raise TypeError(f"Future.{method}: callback must be callable, got {type(callback).__name__}")


def collect_all(futures):
    """A future of the list of futures, done when all of them are; it has the error of the first one that failed.

    Parameters
    ----------
    futures : list of Future
    """
    futures = list(futures)
    for future in futures:
        if not isinstance(future, Future):
            raise TypeError(f"collect_all: futures must be a list of Future, found {type(future).__name__}")
    whole, left, lock = Future(), [len(futures)], threading.Lock()

    def count(_):
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            error = next((future._error for future in futures if future._error is not None), None)
            whole._finish(None if error is not None else futures, error)

    if not futures:
        whole.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return whole


def wait_all(futures):
    """The values of futures, once all are done; raises the error of the first failed one.

    Parameters
    ----------
    futures : list of Future
    """
    return [future.wait() for future in collect_all(futures).wait()]
