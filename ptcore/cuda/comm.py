"""Tensors from one CUDA device to several and back, within one process. Copies go from device to device by the driver.

All functions are made of copies and ops, so that gradients pass through them.
"""
from ptcore._device import device as _device_type
from ptcore.cuda.driver import loading

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _devices(op, devices):
    found = [_device_type("cuda", loading.index_of(d, op)) for d in devices]
    if not found:
        raise ValueError(f"{op}: devices must not be empty")
    return found


def _either(op, devices, out):
    if (devices is None) == (out is None):
        raise RuntimeError(f"{op}: expected either devices or out, got {'neither' if out is None else 'both'}")


def _on_devices(op, out):
    out = tuple(out)
    for k, tensor in enumerate(out):
        if tensor.device.type != "cuda":
            raise ValueError(f"{op}: out[{k}] must be on a CUDA device, got one on {tensor.device}")
    if not out:
        raise ValueError(f"{op}: out must not be empty")
    return out


def broadcast(tensor, devices=None, *, out=None):
    """A tensor on each of some devices.

    Parameters
    ----------
    tensor : Tensor
        On the CPU, or on the first of ``devices``.
    devices : list of int, str or device, optional
    out : list of Tensor, optional
        In place of ``devices``: tensors on CUDA devices, of the shape of ``tensor``.

    Returns
    -------
    tuple of Tensor
        ``tensor`` itself where it is on a device already, and copies; or ``out``.

    Raises
    ------
    RuntimeError
        If not exactly one of ``devices`` and ``out`` is given.
    ValueError
        If ``tensor`` is on another CUDA device than the first, if ``out`` has another shape or is on the CPU.
    """
    _either("broadcast", devices, out)
    if out is None:
        devices = _devices("broadcast", devices)
        if tensor.device.type == "cuda" and tensor.device != devices[0]:
            raise ValueError(f"broadcast: devices must begin with the tensor's, {tensor.device}, got {devices[0]}")
        return tuple([tensor.to(d, non_blocking=True) for d in devices])
    out = _on_devices("broadcast", out)
    for k, to in enumerate(out):
        if to.shape != tensor.shape:
            raise ValueError(f"broadcast: out[{k}] must be of shape {tuple(tensor.shape)}, got {tuple(to.shape)}")
    for to in out:
        if to is not tensor:
            to.copy_(tensor, non_blocking=True)
    return out


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """Each of some tensors on each of some devices.

    Parameters
    ----------
    tensors : list of Tensor
    devices : list of int, str or device
        They begin with the one that the tensors are on.
    buffer_size : int
        Has no effect: copies of small tensors are enqueued one after the other, and none is waited for.

    Returns
    -------
    list of list of Tensor
        For each device the tensors.
    """
    devices = list(devices)
    copies = [broadcast(tensor, devices) for tensor in tensors]
    return [[copy[k] for copy in copies] for k in range(len(devices))]


def reduce_add(inputs, destination=None):
    """The sum of tensors of several devices.

    Parameters
    ----------
    inputs : list of Tensor
        Of one shape, on CUDA devices.
    destination : int, str or device, optional
        The device of the result, on which one of the inputs is. By default the current one.

    Raises
    ------
    ValueError
        If shapes differ or an input is on the CPU.
    RuntimeError
        If none is on ``destination``.
    """
    inputs = list(inputs)
    if not inputs:
        raise ValueError("reduce_add: inputs must not be empty")
    there = _device_type("cuda", loading.index_of(destination, "reduce_add"))
    for k, x in enumerate(inputs):
        if x.device.type != "cuda":
            raise ValueError(f"reduce_add: input {k} must be on a CUDA device, got one on {x.device}")
        if x.shape != inputs[0].shape:
            raise ValueError(f"reduce_add: input {k} must be of shape {tuple(inputs[0].shape)}, got {tuple(x.shape)}")
    first = next((k for k, x in enumerate(inputs) if x.device == there), None)
    if first is None:
        raise RuntimeError(f"reduce_add: none of the inputs is on the destination, {there}")
    total = inputs.pop(first)
    for k, x in enumerate(inputs):
        moved = x.to(there, non_blocking=True)
        total = total.add_(moved) if k and not total.requires_grad else total + moved
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """The sums of each device's first tensors, of their second ones, and so on.

    Parameters
    ----------
    inputs : list of list of Tensor
        For each device its tensors.
    destination : int, str or device, optional
    buffer_size : int
        Has no effect, as in :func:`broadcast_coalesced`.

    Returns
    -------
    tuple of Tensor
    """
    return tuple([reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True)])


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """The parts of a tensor along a dim, each on a device.

    Parameters
    ----------
    tensor : Tensor
    devices : list of int, str or device, optional
    chunk_sizes : list of int, optional
        How much each device gets; equal parts unless given.
    dim : int
    streams : list of Stream, optional
        On which the copies are made, None for a device's current one.
    out : list of Tensor, optional
        In place of ``devices``: tensors on CUDA devices, whose sizes along ``dim`` say how much each gets.

    Returns
    -------
    tuple of Tensor

    Raises
    ------
    RuntimeError
        If ``out`` is given with ``devices`` or ``chunk_sizes``, or neither is given.
    ValueError
        If sizes do not add up, or there is not one stream, or chunk size, for each device.
    """
    from ptcore.cuda.streams import stream as on_stream
    _either("scatter", devices, out)
    if out is None:
        devices = _devices("scatter", devices)
    else:
        if chunk_sizes is not None:
            raise RuntimeError("scatter: chunk_sizes cannot be given with out, whose sizes they are")
        out = _on_devices("scatter", out)
        devices, chunk_sizes = [to.device for to in out], [to.shape[dim] for to in out]
    for name, given in (("chunk_sizes", chunk_sizes), ("streams", streams)):
        if given is not None and len(given) != len(devices):
            raise ValueError(f"scatter: {name} must have an entry for each of {len(devices)} devices, got {len(given)}")
    if chunk_sizes is None:
        parts = tensor.chunk(len(devices), dim)
    else:
        if sum(chunk_sizes) != tensor.shape[dim]:
            raise ValueError(f"scatter: sizes must add up to {tensor.shape[dim]}, got {list(chunk_sizes)}")
        parts = tensor.split(list(chunk_sizes), dim)
    made = []
    for k, (part, device) in enumerate(zip(parts, devices)):
        with on_stream(streams[k] if streams else None):
            made.append(part.to(device, non_blocking=True) if out is None else out[k].copy_(part, non_blocking=True))
    return tuple(made)


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors of several devices, one behind the other along a dim.

    Parameters
    ----------
    tensors : list of Tensor
        On CUDA devices; of one shape but for ``dim``.
    dim : int
    destination : int, str or device, optional
        Where the result is: the current CUDA device unless given; ``"cpu"`` is allowed.
    out : Tensor, optional
        In place of ``destination``.

    Raises
    ------
    RuntimeError
        If both ``destination`` and ``out`` are given, or shapes do not fit.
    ValueError
        If a tensor is on the CPU, or there is none.
    """
    from ptcore._ops.functions import cat
    if out is not None and destination is not None:
        raise RuntimeError(f"gather: destination cannot be given with out, got {destination}")
    tensors = list(tensors)
    if not tensors:
        raise ValueError("gather: tensors must not be empty")
    for k, x in enumerate(tensors):
        if x.device.type != "cuda":
            raise ValueError(f"gather: tensor {k} must be on a CUDA device, got one on {x.device}")
    if out is not None:
        there = out.device
    elif destination is not None and not isinstance(destination, int) and _device_type(destination).type == "cpu":
        there = _device_type("cpu")
    else:
        there = _device_type("cuda", loading.index_of(destination, "gather"))
    moved = [x.to(there, non_blocking=there.type == "cuda") for x in tensors]
    return cat(moved, dim) if out is None else cat(moved, dim, out=out)
