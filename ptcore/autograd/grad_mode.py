"""Whether operations are recorded: the names of PyTorch's module."""
import functools

from ptcore._state import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class set_multithreading_enabled:
    """Changes nothing: a backward runs on the caller's thread, whether other threads are allowed or not.

    Examples
    --------
    >>> import ptcore
    >>> with ptcore.autograd.set_multithreading_enabled(False):
    ...     ptcore.ones(1, requires_grad=True).sum().backward()
    """

    def __init__(self, mode):
        self.mode = bool(mode)

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        pass

    def __call__(self, function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)
        return run

    def clone(self):
        """Another of the same mode."""
        return type(self)(self.mode)
