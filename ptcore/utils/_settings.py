"""Settings of PyTorch that programs make: those of determinism change nothing, those of precision are CUDA's."""
from ptcore import _precision
from ptcore._dtype import set_default_dtype
from ptcore._ops import _arguments

_deterministic = {"mode": False, "warn_only": False}


def use_deterministic_algorithms(mode, *, warn_only=False) -> None:
    """Asks for results that are the same in every run, which ptcore's always are.

    >>> import ptcore
    >>> ptcore.use_deterministic_algorithms(True)
    >>> ptcore.are_deterministic_algorithms_enabled()
    True
    >>> ptcore.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"use_deterministic_algorithms: {name} must be bool, got {type(value).__name__}")
    _deterministic.update(mode=mode, warn_only=warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What was asked for last."""
    return _deterministic["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What was asked for last."""
    return _deterministic["warn_only"]


def set_float32_matmul_precision(precision) -> None:
    """Allows products of float32 on CUDA devices a lower precision inside; the CPU makes no use of it.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        "high" and "medium" allow TF32, as ``backends.cuda.matmul.allow_tf32`` does.
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError("set_float32_matmul_precision: precision must be one of 'highest', 'high' and 'medium', got "
                           f"{precision!r}")
    _precision.set_float32(precision)


def get_float32_matmul_precision() -> str:
    """What was allowed last, "highest" by default."""
    return _precision.words["float32"]


def set_default_tensor_type(t) -> None:
    """Sets the default dtype by the name of a tensor type, as "ptcore.DoubleTensor", or by the type itself.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_default_tensor_type(ptcore.FloatTensor)
    """
    if isinstance(t, str):
        import ptcore
        module, _, name = t.rpartition(".")
        found = getattr(ptcore, name, None) if module in ("torch", "ptcore") else None
        if not hasattr(found, "dtype"):
            raise TypeError(f"set_default_tensor_type: t must be a type such as 'ptcore.FloatTensor', got {t!r}")
        t = found
    if not hasattr(t, "dtype"):
        raise TypeError(f"set_default_tensor_type: t must be a tensor type or its name, got {type(t).__name__}")
    set_default_dtype(t.dtype)


def set_flush_denormal(mode) -> bool:
    """False: denormal numbers are kept on every processor.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_flush_denormal(True)
    False
    """
    return False


def get_num_interop_threads() -> int:
    """1: operations do not run beside each other.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(n) -> None:
    """Takes a positive number and does nothing: operations do not run beside each other.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_num_interop_threads(1)
    """
    if _arguments.integer("set_num_interop_threads", "n", n) < 1:
        raise RuntimeError(f"set_num_interop_threads: n must be positive, got {n}")
