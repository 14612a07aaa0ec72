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
        follower = Future(devices=self._devices)

        def call(future):
            try:
                follower.set_result(callback(future))
            except BaseException as error:
                follower._finish(None, error)       # whoever waits for the follower must not wait forever
                if not isinstance(error, Exception):
                    raise

        self.add_done_callback(call)
        return follower

    def add_done_callback(self, callback):
        """Calls ``callback(self)`` when this future is done, or at once if it is.

        An error of the callback is logged, and reaches neither who sets the future nor other callbacks.
        """
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
        for callback in callbacks:
            self._call(callback)

    def set_result(self, result):
        """Sets the value, and runs the callbacks."""
        self._finish(result, None)

    def set_exception(self, result):
        """Sets the error that `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)


def collect_all(futures):
    """A future of the list of futures, done when all of them are.

    Parameters
    ----------
    futures : list of Future
    """
    futures = list(futures)
    whole, left, lock = Future(), [len(futures)], threading.Lock()

    def count(_):
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            whole.set_result(futures)

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
