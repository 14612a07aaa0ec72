"""Intel MKL, which is not used: products and decompositions call SciPy's BLAS and LAPACK."""
__all__ = ["is_available"]


def is_available():
    """Whether ptcore is built with Intel MKL: always False."""
    return False
