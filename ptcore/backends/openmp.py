"""OpenMP, which is not used: large operations are split over threads of their own."""
__all__ = ["is_available"]


def is_available():
    """Whether ptcore is built with OpenMP: always False."""
    return False
