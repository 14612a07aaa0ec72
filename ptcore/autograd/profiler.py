"""Names for parts of a program, as profilers show them; nothing is measured here."""
import functools

__all__ = ["record_function"]


class record_function:
    """Context manager and decorator that names a part of a program.

    Parameters
    ----------
    name : str
    args : str, optional

    Examples
    --------
    >>> import ptcore
    >>> with ptcore.autograd.profiler.record_function("sum"):
    ...     ptcore.ones(2).sum()
    tensor(2.)
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return None

    def __call__(self, function):
        @functools.wraps(function)
        def named(*args, **kwargs):
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)
        return named
