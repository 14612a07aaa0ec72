"""Settings of PyTorch that programs make: those of determinism change nothing, those of precision are CUDA's."""
from ptcore import _precision

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
