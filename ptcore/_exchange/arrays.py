"""``asarray`` as PyTorch has it, which reads a buffer by its bytes."""
from ptcore._dtype import get_default_dtype
from ptcore._exchange.convert import as_array, frombuffer
from ptcore._overrides import ask, modes
from ptcore._state import torch_function_is_off
from ptcore._tensor import Tensor


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of a tensor, an array of another library, a buffer, or numbers in nested sequences.

    Parameters
    ----------
    obj : object
        A tensor, an array, a capsule of DLPack, numbers in nested sequences.
        A buffer that is no array (``bytes``, ``array.array``, a ``memoryview``) is taken as its bytes, in groups of the
        dtype's size, whatever its own format is.
    dtype : dtype, optional
        By default ``obj``'s, and the default floating-point dtype for a buffer.
    device : device, optional
    copy : bool, optional
        Whether memory must (True) or must not (False) be copied.
    requires_grad : bool

    Returns
    -------
    Tensor
        Shares memory with ``obj`` where nothing is copied.

    Raises
    ------
    ValueError
        If a copy is needed and ``copy=False``, or the bytes are no multiple of the dtype's size.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.asarray(bytes([1, 0, 2, 0]), dtype=ptcore.int16)
    tensor([1, 2], dtype=ptcore.int16)
    """
    if modes() and not torch_function_is_off():
        return ask(asarray, (obj,), {"dtype": dtype, "device": device, "copy": copy, "requires_grad": requires_grad})
    if type(obj).__name__ == "PyCapsule":
        from ptcore._exchange.dlpack import from_dlpack
        obj = from_dlpack(obj)
    if not isinstance(obj, Tensor) and not hasattr(obj, "__array_interface__") and not hasattr(obj, "__dlpack__"):
        try:
            obj = memoryview(obj)
        except TypeError:
            pass                        # no buffer
        else:
            obj = frombuffer(obj, dtype=get_default_dtype() if dtype is None else dtype)
    t = as_array(obj, dtype, device, copy)
    if requires_grad and not t.requires_grad:
        t = t.detach()
        t.requires_grad = True
    return t
