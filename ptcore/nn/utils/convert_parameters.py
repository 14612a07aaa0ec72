"""Conversion between parameters and one vector."""

import ptcore
from ptcore import Tensor
from ptcore._errors import DeviceError, ShapeError
from ptcore._ops.checked import need_tensors

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters):
    """Return all elements of the parameters as one vector.

    Examples
    --------
    >>> import ptcore
    >>> parameters_to_vector([ptcore.ones(2), ptcore.zeros(1, 1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    parameters = list(parameters)
    for p in parameters:
        need_tensors("parameters_to_vector", parameters=p)
    return ptcore.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Make consecutive slices of `vec` the data of the parameters.

    Raises
    ------
    TypeError
        If `vec` is not a tensor.
    ValueError
        If `vec` is not a vector with as many elements as the parameters.

    Examples
    --------
    >>> import ptcore
    >>> p = ptcore.zeros(2)
    >>> vector_to_parameters(ptcore.ones(2), [p])
    >>> p.tolist()
    [1.0, 1.0]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: vec must be a Tensor, got {type(vec).__name__}")
    parameters = list(parameters)
    for p in parameters:
        need_tensors("vector_to_parameters", parameters=p)
        if p.is_meta != vec.is_meta:
            raise DeviceError(f"vector_to_parameters: vec must be on the device of the parameters, {p.device}, got "
                              f"{vec.device}")
    total = sum(p.numel() for p in parameters)
    if tuple(vec.shape) != (total,):
        raise ShapeError(
            f"vector_to_parameters: vec must have shape ({total},), got "
            f"{tuple(vec.shape)}"
        )
    start = 0
    for param in parameters:
        stop = start + param.numel()
        param.data = vec[start:stop].view(param.shape).data
        start = stop
