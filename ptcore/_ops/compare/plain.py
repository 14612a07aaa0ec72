"""Methods that say what a tensor is."""
from ptcore._tensor import Tensor


def is_nonzero(self):
    """Whether the one element of the tensor is not zero."""
    if self.numel() != 1:
        raise RuntimeError(f"is_nonzero: the tensor must have one element, got shape {list(self.shape)}")
    return bool(self)


def is_same_size(self, other):
    """Whether both tensors have the same shape."""
    if not isinstance(other, Tensor):
        raise TypeError(f"is_same_size: other must be a Tensor, got {type(other).__name__}")
    return self.shape == other.shape


def get_device(self):
    """The number of the device, -1 on the CPU."""
    index = self.device.index
    return -1 if index is None else index
