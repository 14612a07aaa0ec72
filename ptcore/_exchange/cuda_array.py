"""``__cuda_array_interface__``, version 3: how CuPy, Numba and others describe memory of CUDA devices."""
from ptcore._device import current_stream, device, device_of_address, wait_stream
from ptcore._dtype import ALL
from ptcore._exchange.dlpack import over_memory

COLUMN = 1
_LEGACY = 1                             # their number for the default stream
_NAMELESS = [d for d in ALL if d.name.startswith("float8") or d.name == "complex32"]


def _typestr(dtype):
    if dtype in _NAMELESS:
        raise TypeError(f"__cuda_array_interface__: {dtype.name} has no typestr; view it as integers")
    if dtype.name == "bfloat16":
        return "<V2"                    # as ml_dtypes has it
    return ("|" if dtype.itemsize == 1 else "<") + f"{dtype.kind}{dtype.itemsize}"


def _dtype_of(typestr):
    for dtype in ALL:
        if dtype not in _NAMELESS and _typestr(dtype).strip("<|=") == typestr.strip("<|="):
            return dtype
    raise TypeError(f"__cuda_array_interface__: typestr {typestr!r} has no tensor dtype")


def describe(tensor):
    """The dictionary of a tensor on a CUDA device; ``stream`` is the one that the reader must wait for."""
    if tensor.requires_grad:
        raise RuntimeError("__cuda_array_interface__: the tensor requires grad; use detach() first")
    item = tensor.dtype.itemsize
    stream = current_stream(COLUMN, tensor.device.index)[2]
    return {"version": 3, "typestr": _typestr(tensor.dtype), "shape": tuple(tensor.shape),
            "strides": None if tensor.is_contiguous() else tuple([item * s for s in tensor.stride()]),
            "data": (tensor.data_ptr() if tensor.numel() else 0, False), "stream": stream or _LEGACY}


def tensor_over(obj):
    """A tensor over the memory that an object describes; this thread's stream waits for the object's.

    Raises
    ------
    TypeError
        If there is no tensor dtype for its elements.
    ValueError
        If it is masked, has strides that are no whole elements, or names no stream as 0.
    RuntimeError
        If there is no CUDA device, or the address is of none.
    """
    d = obj.__cuda_array_interface__
    dtype, shape, address = _dtype_of(d["typestr"]), tuple(d["shape"]), int(d["data"][0] or 0)
    if d.get("mask") is not None:
        raise ValueError("__cuda_array_interface__: masked arrays have no tensor counterpart")
    strides, item = d.get("strides"), dtype.itemsize
    if strides is None:
        strides, step = [], item
        for n in reversed(shape):
            strides.insert(0, step)
            step *= max(n, 1)
    if any(s % item for s in strides):
        raise ValueError(f"__cuda_array_interface__: strides must be multiples of {item} bytes, got {tuple(strides)}")
    index = device_of_address(device("cuda"), address)
    stream = d.get("stream") if d.get("version", 0) >= 3 else None
    if stream == 0:
        raise ValueError("__cuda_array_interface__: stream must be None or a positive number, got 0")
    if stream is not None:
        wait_stream(COLUMN, index, current_stream(COLUMN, index)[2], index, 0 if stream == _LEGACY else stream)
    return over_memory(address, (2, index), dtype, shape, tuple([s // item for s in strides]), obj, bool(d["data"][1]))
