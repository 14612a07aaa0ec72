"""The choice among ways of computing attention; ``flex_attention`` is a module, imported separately."""
import contextlib
import enum

from ptcore import _precision
from ptcore._contexts import Changed

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's ways of computing ``scaled_dot_product_attention``; ptcore has one for each device, and cuDNN's."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __str__ = enum.Enum.__str__


_NAMES = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
          "mem_efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH,
          "overrideable": SDPBackend.OVERRIDEABLE}


class _Allowed(Changed, contextlib.ContextDecorator):
    """The context returned by ``sdpa_kernel``."""


def sdpa_kernel(backends, set_priority=False):
    """A context that restricts the ways in which attention is computed, on all threads as in PyTorch.

    Parameters
    ----------
    backends : SDPBackend or list of SDPBackend
        ``MATH`` and ``FLASH_ATTENTION`` can run on every device, ``EFFICIENT_ATTENTION`` on CUDA devices, all by the
        same kernel; ``CUDNN_ATTENTION`` on CUDA devices where cuDNN is installed, by the same kernel where cuDNN has
        none. Where none of those allowed can, attention raises RuntimeError.
    set_priority : bool
        Whether ``backends`` are in order of preference. Otherwise cuDNN is used only if it is the only one allowed.

    Notes
    -----
    cuDNN (9.21 or later) serves float16 and bfloat16 without a mask or dropout on sm_90 and sm_100. For sizes that are
    new it compiles a kernel, which takes about a second.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.attention import SDPBackend, sdpa_kernel
    >>> q = ptcore.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     ptcore.nn.functional.scaled_dot_product_attention(q, q, q).shape
    ptcore.Size([1, 1, 2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("sdpa_kernel: backends must be an SDPBackend or a list of them, got "
                             f"{type(backends).__name__}")
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    first = bool(set_priority and chosen) and chosen[0] == SDPBackend.CUDNN_ATTENTION
    return _Allowed(*_precision.allowing(cudnn_first=first, **{name: backend in chosen
                                                               for name, backend in _NAMES.items()}),
                    told=(_precision, _precision.matmul, ("cudnn_attention",)), gives={})
