"""KleidiAI, which is not used: products call SciPy's BLAS."""
__all__ = ["is_available"]


def is_available():
    """Whether ptcore is built with KleidiAI: always False."""
    return False
