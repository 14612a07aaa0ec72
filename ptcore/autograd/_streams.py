"""The backward pass on the streams of the forward pass.

The engine uses this once any thread has chosen a stream other than the default one. A node then runs on the stream of
its op (``Node.stream``), and its gradients are summed there. Leaves and requested gradients are written on the stream
that was current where the backward was called. A stream that takes over a tensor from another stream waits for it, and
the allocator is informed. So after the pass all work lies behind the caller's streams.
"""
from ptcore._device import current_stream, set_stream, wait_stream
from ptcore._memory.host import keep_for, place_of

DEFAULT = 0


class Streams:
    """The streams of one run of the engine, which stays on the thread that called ``backward``."""

    def __init__(self):
        self.callers = {}               # (column, index) -> the key of the caller's stream on that device
        self.now = None                 # the key of the current stream if it is not the caller's
        self.before_sum = None

    def of_caller(self, place):
        if place not in self.callers:   # no stream is chosen on a device before this
            self.callers[place] = current_stream(*place)
        return self.callers[place]

    def choose(self, key):
        """Makes a stream current, and restores the caller's on the device left; None: the caller's everywhere."""
        if self.now is not None and (key is None or key[:2] != self.now[:2]):
            set_stream(*self.callers[self.now[:2]])
        self.now = None
        if key is not None:
            set_stream(*key)
            if key != self.of_caller(key[:2]):
                self.now = key

    def enter(self, node, g):
        """Chooses the stream for the rule of ``node`` with the gradient ``g``."""
        key = node.stream
        if key is None:
            place = next((place_of(x) for x in (g if type(g) is list else (g,)) if x is not None), None)
            key = None if place is None else (*place, DEFAULT)
        if key is not None:
            self.of_caller(key[:2])
        self.choose(key)

    def hand(self, g, node):
        """Hands ``g`` from the current stream to the taker's stream, which is current until ``back``.

        The taker is a node, or None for a leaf or a gradient that is returned.
        """
        self.before_sum = self.now
        place = place_of(g)
        if place is None:
            return
        caller = self.of_caller(place)
        producer = current_stream(*place)
        taker = caller
        if node is not None:
            taker = (*place, DEFAULT) if node.stream is None else node.stream
            if taker[:2] != place:
                taker = caller
        if taker != producer:
            column, index, stream = taker
            wait_stream(column, index, stream, index, producer[2])
            keep_for(g, stream)
            self.choose(taker)

    def back(self):
        self.choose(self.before_sum)
