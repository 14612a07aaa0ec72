"""cuSPARSELt, which is not used: there are no sparse tensors."""
__all__ = ["is_available"]


def is_available():
    """Whether ptcore is built with cuSPARSELt: always False."""
    return False
