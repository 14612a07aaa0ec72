"""opt_einsum, which is not used: ``einsum`` chooses its own order of products."""
__all__ = ["get_opt_einsum", "is_available"]

enabled = False
strategy = None


def is_available():
    """Whether opt_einsum is used: always False."""
    return False


def get_opt_einsum():
    """The package, if it is used: None."""
    return None
