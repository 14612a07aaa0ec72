"""Apple's Metal, for which there is no backend."""
__all__ = ["is_available", "is_built"]


def is_built():
    """Whether ptcore is built with a backend for Metal: always False."""
    return False


def is_available():
    """Whether there is a Metal device that can be used: always False."""
    return False
