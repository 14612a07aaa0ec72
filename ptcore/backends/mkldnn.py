"""oneDNN, which is not used: convolutions and recurrent layers have kernels of their own."""
import contextlib

__all__ = ["flags", "is_available"]


def is_available():
    """Whether ptcore is built with oneDNN: always False."""
    return False


@contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """A context with other settings, which change nothing: oneDNN is not used."""
    yield
