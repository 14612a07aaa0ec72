"""``fork`` and ``wait``: calls whose results are asked for later. Each runs where it is made."""

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
        """The result; raises what the call raised."""
        if self._error is not None:
            raise self._error
        return self._value

    value = wait

    def done(self):
        """True: the call has run."""
        return True


def fork(func, *args, **kwargs):
    """Calls a function; its result, or the error that it raised, is there for :func:`wait`.

    The call runs at once, in this thread: ops use the threads of the pool themselves. PyTorch may run it beside what
    follows, which programs cannot see but by the time that it takes.

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
    """The result of a call by :func:`fork`; raises what the call raised."""
    return future.wait()
