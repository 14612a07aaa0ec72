"""``torch.nn._reduction``: numbers of reductions, and the two flags that preceded their names."""
import warnings

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """The number of a reduction."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """The name of the reduction for two older flags; None counts as True."""
    found = "none" if reduce is not None and not reduce else "sum" if size_average is not None and not size_average \
        else "mean"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
                      stacklevel=2)
    return found


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """The number of the reduction for two older flags."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
