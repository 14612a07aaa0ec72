"""The payloads of a tracer's stand-ins."""
from ptcore._errors import here
from ptcore._interpret import Payload
from ptcore._subclass import stands_for


class Traced(Payload):
    """The payload of a stand-in: its value, on the meta device if only its sizes are known, and the node that gives it.

    ``device`` is the device of the value. ``constant`` is the value if no argument decides it, and None otherwise; it
    counts only while the tensor's version is ``count``. ``moves`` are the nodes of the views that the stand-in has
    become.
    """

    __slots__ = ("constant", "count", "device", "moves", "node", "tensor")
    known = False               # no rule may read values, since they differ for other arguments

    def __init__(self, tensor, node, owner, device):
        super().__init__(owner)
        self.tensor, self.node, self.device, self.constant, self.moves = tensor, node, device, None, ()

    def known_value(self):
        """The value as a plain tensor if it does not depend on arguments; otherwise None."""
        return None if self.constant is None or self.count != self.tensor._version else self.constant

    def __repr__(self):
        return f"Traced({self.node}, {self.tensor.dtype}, {list(self.tensor.shape)})"

    def item(self, stand_in):
        known = self.known_value()
        if known is None:
            known = self.owner.value_read(self)
        if known is not None:
            return known.item()
        raise RuntimeError("It appears that you're trying to get value out of a tracing tensor: the program reads a "
                           "value that depends on what is traced, as a branch does; write where() or keep it a tensor"
                           + here())

    def detached(self):
        payload = self.copied(self.tensor.detach())
        payload.constant, payload.count = self.known_value(), self.tensor._version
        return stands_for(payload.tensor, self.owner.detached(payload, self))

    def copied(self, value):
        return Traced(value, self.node, self.owner, self.device)


class Sized(Traced):
    """The payload of a stand-in with symbolic sizes; ``strides`` and ``offset`` are None if sizes determine them.
    """

    __slots__ = ("offset", "sizes", "strides")

    def __init__(self, tensor, node, owner, device, sizes, layout=None):
        super().__init__(tensor, node, owner, device)
        self.sizes = tuple(sizes)
        self.strides, self.offset = (None, None) if layout is None else layout

    def copied(self, value):
        return Sized(value, self.node, self.owner, self.device, self.sizes, (self.strides, self.offset))

    def __repr__(self):
        return f"Traced({self.node}, {self.tensor.dtype}, {list(self.sizes)})"
