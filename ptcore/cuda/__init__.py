"""CUDA devices. This version has no CUDA backend: no device is available, and a tensor cannot be
made on one. The functions are those by which a program finds that out and goes on with the CPU.
"""
__all__ = ["device_count", "empty_cache", "is_available", "is_initialized", "manual_seed", "manual_seed_all"]


def is_available():
    """Whether tensors can be made on ``device="cuda"``: False, as there is no backend yet.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.device("cuda" if ptcore.cuda.is_available() else "cpu")
    device(type='cpu')
    """
    return False


def device_count():
    """The number of CUDA devices that can be used: 0."""
    return 0


def is_initialized():
    """Whether a CUDA context exists: False."""
    return False


def empty_cache():
    """Frees cached device memory, of which there is none."""


def manual_seed(seed):
    """Seeds the current device's generator; nothing happens where no device is available, as in PyTorch."""


def manual_seed_all(seed):
    """Seeds the generators of all devices; nothing happens where none is available, as in PyTorch."""
