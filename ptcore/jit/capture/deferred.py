"""Results of ``item()`` that a program may only return. As long as it does nothing else with one, no graph ends there.

Such a result is a ``Deferred``. Where the recorder gets one as an argument, it reads the value, which ends the graph.
"""
from ptcore._subclass import carried_by
from ptcore.jit.capture.recorder import Recorder


class Deferred:
    """The future result of ``item()`` of a stand-in. ``stand`` is a copy of the tensor at the time of the call."""

    __slots__ = ("is_read", "stand", "value")

    def __init__(self, stand):
        self.stand, self.is_read, self.value = stand, False, None

    def read(self, capture):
        if not self.is_read:
            self.value = capture.reads(carried_by(self.stand, capture.tracer), "item")
            self.is_read = True
        return self.value


class Reading(Recorder):
    """A recorder that reads each ``Deferred`` among the arguments of its methods."""


def _reading(name):
    method = getattr(Recorder, name)

    def asked(self, *args, **kwargs):
        capture = self.capture
        args = [a.read(capture) if type(a) is Deferred else a for a in args]
        if kwargs:
            kwargs = {k: a.read(capture) if type(a) is Deferred else a for k, a in kwargs.items()}
        return method(self, *args, **kwargs)
    return asked


for _name in ("attribute", "augmented", "binary", "call", "compare", "contains", "delete_item", "formatted", "item",
              "iterate", "iterator", "key", "keywords", "length", "method", "native", "set_attribute", "set_item",
              "sliced", "text", "truth", "unary", "unpack"):
    if hasattr(Recorder, _name):
        setattr(Reading, _name, _reading(_name))


def defer(r, x):
    """``x.item()`` of a stand-in of one element."""
    r.__class__ = Reading
    return Deferred(x.detach().clone())
