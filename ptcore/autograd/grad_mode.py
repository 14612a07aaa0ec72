"""Whether operations are recorded: the names of PyTorch's module."""
import functools
import threading

from ptcore._state import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class _Setting(threading.local):
    enabled = True


_setting = _Setting()


class set_multithreading_enabled:
    """Asks for a backward on threads of its own or on the caller's, at once or for a block. It runs on the caller's.

    Examples
    --------
    >>> import ptcore
    >>> with ptcore.autograd.set_multithreading_enabled(False):
    ...     ptcore.ones(1, requires_grad=True).sum().backward()
    """

    def __init__(self, mode):
        self.mode, self.prev = bool(mode), _setting.enabled
        _setting.enabled = self.mode

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        _setting.enabled = self.prev

    def __call__(self, function):
        _setting.enabled = self.prev

        @functools.wraps(function)
        def run(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)
        return run

    def clone(self):
        """Another of the same mode."""
        return type(self)(self.mode)
