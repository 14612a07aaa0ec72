"""Ranges for Intel's VTune, which ptcore is built without: the functions exist, and refuse."""

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available():
    """False."""
    return False


def _refused(*args):
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg):
    """Refused.

    Parameters
    ----------
    msg : str
    """
    return _refused(msg)


def range_pop():
    """Refused."""
    return _refused()


def mark(msg):
    """Refused.

    Parameters
    ----------
    msg : str
    """
    return _refused(msg)


class range:
    """A context manager that is refused when entered.

    Parameters
    ----------
    msg : str
        A text in which ``format`` fills in the other arguments.
    """

    def __init__(self, msg, *args, **kwargs):
        self._text = msg.format(*args, **kwargs)

    def __enter__(self):
        range_push(self._text)

    def __exit__(self, kind, value, trace):
        range_pop()
