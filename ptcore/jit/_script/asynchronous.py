"""``fork`` and ``wait``: calls whose results are fetched later. Each call runs where ``fork`` is called."""

__all__ = ["Future", "fork", "wait"]


class Future:
    """The result of a call by :func:`fork`; ``Future[T]`` is its type in annotations.

    Examples
    --------
    >>> import ptcore
    >>> future = ptcore.jit.fork(ptcore.add, ptcore.ones(1), 1)
    >>> ptcore.jit.wait(future)
    tensor([2.])
    """

    def __init__(self, value=None, error=None):
        self._value, self._error = value, error

    def __class_getitem__(cls, item):
        import types
        return types.GenericAlias(cls, (item,))

    def wait(self):
        """The result, or the error that the call raised."""
        if self._error is not None:
            raise self._error
        return self._value

    value = wait

    def done(self):
        """True: the call has run."""
        return True


def fork(func, *args, **kwargs):
    """Calls a function. :func:`wait` gives its result, or raises the error that it raised.

    The call runs at once, in this thread, since ops use the threads of the pool themselves. PyTorch may run the call
    beside the code that follows; programs see no difference but in time.

    Parameters
    ----------
    func : callable
    *args, **kwargs
        Its arguments.

    Returns
    -------
    Future
    """
    try:
        return Future(func(*args, **kwargs))
    except Exception as error:
        return Future(error=error)


def wait(future):
    """The result of a call by :func:`fork`, or the error that the call raised."""
    return future.wait()
