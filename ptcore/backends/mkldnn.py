"""oneDNN, which is not used: convolutions and recurrent layers have kernels of their own."""
__all__ = ["is_available"]


def is_available():
    """Whether ptcore is built with oneDNN: always False."""
    return False
