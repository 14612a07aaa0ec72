"""The graph as data: saved-tensor hooks, gradient edges, and Node for annotations."""
from ptcore._node import Node
from ptcore._ops._record import saved_hooks
from ptcore._state import set_saved_hooks
from ptcore._tensor import Tensor

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]



class saved_tensors_hooks:
    """Context manager: ``pack`` replaces each tensor saved for backward, ``unpack`` restores it.

    Parameters
    ----------
    pack_hook : callable(Tensor) -> object
    unpack_hook : callable(object) -> Tensor
    """

    def __init__(self, pack_hook, unpack_hook):
        def unpacked(value):
            t = unpack_hook(value)
            if not isinstance(t, Tensor):
                raise TypeError("saved_tensors_hooks: unpack_hook must return a Tensor, got "
                                f"{type(t).__name__}")
            return t
        self.hooks = pack_hook, unpacked

    def __enter__(self):
        saved_hooks.append(self.hooks)
        set_saved_hooks(True)

    def __exit__(self, *exc):
        saved_hooks.pop()
        set_saved_hooks(bool(saved_hooks))


class save_on_cpu(saved_tensors_hooks):
    """Context manager: tensors saved for backward are kept on the CPU until needed."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))
