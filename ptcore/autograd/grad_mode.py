"""PyTorch's names of contexts that switch recording."""
import functools

from ptcore._state import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class set_multithreading_enabled:
    """Has no effect: a backward always runs on the caller's thread.

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
        """A new context manager of the same mode."""
        return type(self)(self.mode)
