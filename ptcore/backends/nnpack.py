"""NNPACK, which is not used: convolutions have kernels of their own."""
__all__ = ["is_available"]


def is_available():
    """Whether ptcore is built with NNPACK: always False."""
    return False
