"""Creation functions that few programs call, and methods that make tensors like another one."""
import mmap
import os
from builtins import range as builtin_range

from cython.cimports.ptcore._ops.creation.creation import dtype_for

from ptcore._device import device as as_device
from ptcore._dtype import as_dtype, get_default_dtype, promote_types
from ptcore._exchange.convert import frombuffer
from ptcore._ops import checked
from ptcore._ops.call.offer import seen_by_modes
from ptcore._ops.creation.creation import arange, empty_strided, full, linspace
from ptcore._ops.functions import pow
from ptcore._tensor import Tensor

FLOAT64, INT64 = as_dtype("float64"), as_dtype("int64")


def _finished(result, out, requires_grad, pin_memory):
    """``pin_memory`` has been checked by a function that made numbers on the way."""
    if out is not None:
        if out.numel() == result.numel():       # out keeps its shape, as in PyTorch
            return out.copy_(result.view(out.shape))
        return out.resize_(result.shape).copy_(result)
    if pin_memory:
        result = result.pin_memory()
    return result.requires_grad_() if requires_grad else result


@seen_by_modes
def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False):
    """``steps`` numbers from ``base**start`` to ``base**end`` whose logarithms are evenly spaced.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    steps = checked.integer("logspace", "steps", steps)
    if steps < 0:
        raise RuntimeError(f"logspace: steps must be non-negative, got {steps}")
    numbers = (("start", start), ("end", end), ("base", base))
    start, end, base = [0 if isinstance(x, Tensor) and x.is_meta else checked.number("logspace", n, x)
                        for n, x in numbers]
    dtype = dtype_for(dtype, out, b"logspace")
    any_complex = any(isinstance(x, complex) for x in (start, end, base))
    if dtype is None:
        dtype = get_default_dtype().to_complex() if any_complex else get_default_dtype()
    elif any_complex and not dtype.is_complex:
        raise RuntimeError(f"logspace: start, end and base must be real for dtype {dtype.name}, got {start}, {end} and "
                           f"{base}")
    if not (dtype.is_floating_point or dtype.is_complex):       # linspace takes integer ends for them
        start, end = [checked.integer("logspace", n, int(x)) for n, x in (("start", start), ("end", end))]
    wide = promote_types(dtype, FLOAT64)
    result = pow(base, linspace(start, end, steps, dtype=wide, layout=layout, device=device, pin_memory=pin_memory))
    return _finished(result.to(dtype), out, requires_grad, pin_memory)


@seen_by_modes
def range(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False):
    """Numbers from ``start`` on, ``step`` apart, up to ``end``, which is among them; see :func:`ptcore.arange`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        start, end = 0, start
    start, end, step = [checked.number("range", n, x) for n, x in (("start", start), ("end", end), ("step", step))]
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"range: the way from {start} to {end} must have the sign of step, which is not 0, "
                           f"got {step}")
    n = int((end - start) / step) + 1
    dtype = dtype_for(dtype, out, b"range")
    dtype = get_default_dtype() if dtype is None else dtype
    wide = INT64 if isinstance(start, int) and isinstance(step, int) else FLOAT64
    result = arange(n, dtype=wide, layout=layout, device=device, pin_memory=pin_memory) * step + start
    return _finished(result.to(dtype), out, requires_grad, pin_memory)


@seen_by_modes
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor without dimensions of the default dtype.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.scalar_tensor(2)
    tensor(2.)
    """
    dtype = get_default_dtype() if dtype is None else dtype
    return full((), checked.number("scalar_tensor", "s", s), dtype=dtype, layout=layout, device=device,
                pin_memory=pin_memory, requires_grad=requires_grad)


@seen_by_modes
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, pin_memory=False,
                   requires_grad=False):
    """Uninitialised memory without gaps whose dims lie in the order ``physical_layout``, the outermost first.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    size = checked.integers("empty_permuted", "size", size)
    order = checked.integers("empty_permuted", "physical_layout", physical_layout)
    if sorted(order) != list(builtin_range(len(size))):
        raise RuntimeError(f"empty_permuted: physical_layout must have each dim of size once, got {order} for {size}")
    stride, step = [0] * len(size), 1
    for d in reversed(order):
        stride[d] = step
        step *= max(size[d], 1)
    return empty_strided(size, stride, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                         requires_grad=requires_grad)


def new_empty_strided(self, size, stride, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Uninitialised memory of this dtype and device with given strides."""
    checked.need_tensors("new_empty_strided", self=self)
    return empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, layout=layout,
                         device=self.device if device is None else device, requires_grad=requires_grad,
                         pin_memory=pin_memory)


@seen_by_modes
def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False):
    """A vector whose memory is a file's.

    Parameters
    ----------
    filename : str or os.PathLike
    shared : bool, optional
        Whether what is written to the tensor goes to the file, which is made or made longer if need be.
    size : int, default: 0
        The number of elements.

    Examples
    --------
    >>> import os, tempfile, ptcore
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> x = ptcore.from_file(path, shared=True, size=2).fill_(3)
    >>> ptcore.from_file(path, size=2)
    tensor([3., 3.])
    """
    size = checked.integer("from_file", "size", size)
    dtype = get_default_dtype() if dtype is None else dtype
    if size < 0:
        raise RuntimeError(f"from_file: size must be non-negative, got {size}")
    if pin_memory or (device is not None and as_device(device).type != "cpu"):
        raise RuntimeError(f"from_file: device must be the CPU and pin_memory False, got {device} and {pin_memory}")
    nbytes = size * dtype.itemsize
    try:
        with open(filename, "r+b" if shared and os.path.exists(filename) else "w+b" if shared else "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if length < nbytes:
                if not shared:
                    raise RuntimeError(f"from_file: filename must have at least {nbytes} bytes, got {length} in "
                                       f"{filename!r}")
                file.truncate(nbytes)
            memory = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY) \
                if nbytes else b""
    except OSError as e:
        raise RuntimeError(f"from_file: filename cannot be opened, got {filename!r}: {e}") from e
    result = frombuffer(memory, dtype=dtype) if nbytes else empty_strided((0,), (1,), dtype=dtype, device="cpu")
    if shared and not isinstance(filename, int):
        result.untyped_storage()._filename = os.fspath(filename)
    return result.requires_grad_() if requires_grad else result
