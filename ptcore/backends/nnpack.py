"""NNPACK, which is not used: convolutions have kernels of their own."""
import contextlib

__all__ = ["flags", "is_available"]


def is_available():
    """Whether ptcore is built with NNPACK: always False."""
    return False


@contextlib.contextmanager
def flags(enabled=False):
    """A context with other settings, which change nothing: NNPACK is not used."""
    yield
