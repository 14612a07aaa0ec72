"""The backward pass on the streams of the forward pass.

The engine asks for this once any thread has chosen a stream other than the default one. A node then runs on the stream
that its op ran on (``Node.stream``), and sums of its gradients are made there; leaves and gradients that are asked for
get theirs on the stream that is current where the backward pass was called. Whoever takes a tensor over from another
stream waits for it, and the allocator is told, so that after the pass the caller's streams have everything behind them.
"""
from ptcore._device import current_stream, set_stream, wait_stream
from ptcore._memory.host import keep_for, place_of

DEFAULT = 0


class Streams:
    """Those of one run of the engine; all of it on the thread that called ``backward``."""

    def __init__(self):
        self.callers = {}               # (column, index) -> the key of the caller's stream there
        self.now = None                 # the key of the stream that was chosen last, where it is not the caller's
        self.before_sum = None

    def of_caller(self, place):
        if place not in self.callers:   # nothing is chosen on a device before it has been asked here
            self.callers[place] = current_stream(*place)
        return self.callers[place]

    def choose(self, key):
        """Makes a stream current, and the caller's where another one was; None: the caller's everywhere."""
        if self.now is not None and (key is None or key[:2] != self.now[:2]):
            set_stream(*self.callers[self.now[:2]])
        self.now = None
        if key is not None:
            set_stream(*key)
            if key != self.of_caller(key[:2]):
                self.now = key

    def enter(self, node, g):
        """The next rule to run is that of ``node``, for the gradient ``g``."""
        key = node.stream
        if key is None:
            place = next((place_of(x) for x in (g if type(g) is list else (g,)) if x is not None), None)
            key = None if place is None else (*place, DEFAULT)
        if key is not None:
            self.of_caller(key[:2])
        self.choose(key)

    def hand(self, g, node):
        """Gives ``g`` from the current stream to that of its taker, which becomes current until ``back``.

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
