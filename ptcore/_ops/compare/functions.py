"""Methods that test properties of a tensor."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import need_tensors


@overridable
def is_nonzero(self):
    """Whether the one element of the tensor is not zero."""
    need_tensors("is_nonzero", self=self)
    if self.numel() != 1:
        raise RuntimeError(f"is_nonzero: the tensor must have one element, got shape {list(self.shape)}")
    return bool(self)
