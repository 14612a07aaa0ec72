"""Graphs: work that is recorded once and launched again as a whole, for a fraction of what its launches cost.

A graph reads and writes the memory that its work did when it was captured: new values are copied into the tensors that
it read (``x.copy_(batch)``), and results are read where they were. What it allocates lies in a pool of its own, which
lives as long as a graph or a tensor there.
"""
import gc
import sys
import warnings

from ptcore import _lazy, _random
from ptcore.cuda.allocator import pools
from ptcore.cuda.driver import loading
from ptcore.cuda.driver.loading import runtime
from ptcore.cuda.memory import empty_cache
from ptcore.cuda.streams import Stream, StreamContext, captures_events, current_stream

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing",
           *[name for names in _lazy.TABLE["ptcore.cuda.graphs"].values() for name in names]]
__getattr__, __dir__ = _lazy.names(__name__)

_MODES = ("global", "thread_local", "relaxed")


def _driver():
    runtime()
    from ptcore.cuda.driver import graph
    return graph


def is_current_stream_capturing():
    """Whether the work of the current stream becomes part of a graph."""
    if loading.started() is None:
        return False
    now = current_stream()
    return _driver().is_capturing(now._index, now._handle)


def graph_pool_handle():
    """A pool of memory for graphs that are given it: ``graph(g, pool=handle)``.

    Graphs may share one if they are launched in the order in which they were captured, one after the other.
    """
    return 0, _driver().new_pool()


class CUDAGraph:
    """Work of a stream, captured once and launched by ``replay``.

    Parameters
    ----------
    keep_graph : bool
        Whether it stays a graph beside the program that is launched, which ``instantiate`` then makes.

    Notes
    -----
    Under capture nothing may wait for the device: reading values (``item``, ``print``, masks as indices) raises
    RuntimeError. Random numbers go on from launch to launch as they do from call to call.
    """

    def __init__(self, keep_graph=False):
        runtime()
        self._keep, self._debug = keep_graph, False
        self._clear()

    def _clear(self):
        self._graph = self._program = self._drawn = 0
        self._events = []
        self._index = self._pool = self._state = self._captured_on = self._generator = self._launched_on = None

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Begins the capture on the current stream, which must not be the default one.

        Parameters
        ----------
        pool : tuple, optional
            Of ``graph_pool_handle`` or another graph's ``pool``; a new one if None.
        capture_error_mode : {"global", "thread_local", "relaxed"}
            Whose calls that a capture forbids (such as waiting for an event) end it: of all threads, of this one, or
            nobody's.
        """
        if capture_error_mode not in _MODES:
            raise RuntimeError("CUDAGraph.capture_begin: capture_error_mode must be one of 'global', 'thread_local' "
                               f"and 'relaxed', got {capture_error_mode!r}")
        if pool is not None and (not isinstance(pool, tuple) or len(pool) != 2):
            raise TypeError("CUDAGraph.capture_begin: pool must be what graph_pool_handle() or CUDAGraph.pool() gives, "
                            f"got {pool!r}")
        if self._graph or self._program or self._captured_on is not None:
            raise RuntimeError("CUDAGraph.capture_begin: this graph has captured already; reset() it first")
        now = current_stream()
        if not now._handle:
            raise RuntimeError("CUDAGraph.capture_begin: the default stream cannot be captured: use 'with "
                               "ptcore.cuda.graph(g):' or a ptcore.cuda.Stream")
        pools.refuse_other_backends("CUDAGraph.capture_begin: graphs need")
        from ptcore._exchange.convert import tensor
        index = now._index
        _driver().refuse_another(index)
        generator = _random.default_generator_of(1, index)
        seed, offset = generator.initial_seed(), generator.get_offset()
        state = tensor([seed - (seed >> 63 << 64), offset], device=f"cuda:{index}")
        number = _driver().new_pool() if pool is None else pool[1]
        _driver().begin(index, now._handle, number, _MODES.index(capture_error_mode), state.data_ptr(), offset)
        _random.hold(generator, lambda: _driver().is_capturing(index, runtime().current_stream(index)))
        self._index, self._pool, self._captured_on, self._state = index, number, now, state
        self._generator, self._before = generator, (seed, offset)
        pools.hold(index, number)
        captures_events.append(self._events)

    def _end(self):
        """Ends the capture, and restores what it changed; returns the driver's graph."""
        seed, offset = self._before
        generator, stream_ = self._generator, self._captured_on
        _random.let_go(generator)
        self._drawn = generator.get_offset() - offset
        seeded = generator.initial_seed() != seed or self._drawn < 0
        generator.manual_seed(seed)
        generator.set_offset(offset)
        self._captured_on = None
        captures_events[:] = [events for events in captures_events if events is not self._events]
        found = _driver().end(self._index, stream_._handle)
        if seeded:
            _driver().destroy(found[0], 0)
            raise RuntimeError("CUDAGraph: the generator was seeded within the capture")
        return found

    def capture_end(self):
        """Ends the capture, on the stream where it began."""
        if self._captured_on is None:
            raise RuntimeError("CUDAGraph.capture_end: no capture has begun")
        if current_stream() != self._captured_on:
            raise RuntimeError("CUDAGraph.capture_end: the current stream is not the one where the capture began")
        try:
            self._graph, nodes = self._end()
        except BaseException:
            self.reset()
            raise
        if not nodes:
            warnings.warn("CUDAGraph.capture_end: the graph is empty: was the work given to another stream or device?",
                          stacklevel=2)
        if not self._keep:
            self.instantiate()
            if not self._debug:
                _driver().destroy(self._graph, 0)
                self._graph = 0

    def _abort(self):
        try:
            self._graph, _ = self._end()
        except RuntimeError:            # the capture was invalid
            pass
        self.reset()

    def instantiate(self):
        """Makes of the graph what is launched."""
        if not self._graph:
            raise RuntimeError("CUDAGraph.instantiate: there is no graph: it was not captured, or keep_graph is False")
        if self._program:
            _driver().destroy(0, self._program)
            self._program = 0
        self._program = _driver().instantiate(self._index, self._graph)

    def replay(self):
        """Launches the work on the current stream."""
        if not self._program:
            if not self._graph:
                raise RuntimeError("CUDAGraph.replay: the graph has not been captured")
            self.instantiate()
        now = current_stream(self._index)
        handle = now._handle
        if self._drawn:
            # The state is written for each launch: not before an earlier launch has read it, and its memory is not
            # given back before this one has.
            if self._launched_on is not None and self._launched_on != now:
                now.wait_stream(self._launched_on)
            self._state.record_stream(now)
            self._launched_on = now
            offset = self._generator.get_offset()
            _driver().write_state(self._index, handle, self._state.data_ptr(), self._generator.initial_seed(), offset)
            self._generator.set_offset(offset + self._drawn)
        _driver().launch(self._index, self._program, handle)

    def reset(self):
        """Drops the work; memory of the pool goes back once no graph and no tensor needs it."""
        if self._captured_on is not None:
            self._abort()
            return
        if self._pool is not None:
            _driver().destroy(self._graph, self._program)
            pools.drop(self._index, self._pool)
        self._clear()

    def __del__(self, at_exit=sys.is_finalizing):
        # At the interpreter's exit modules may be gone already, and the driver takes back what the process had.
        if getattr(self, "_pool", None) is not None and not at_exit():
            self.reset()

    def pool(self):
        """The pool of memory, for other graphs."""
        if self._pool is None:
            raise RuntimeError("CUDAGraph.pool: the graph has not been captured")
        return 0, self._pool

    def register_generator_state(self, generator):
        """The device's default generator, which every graph draws from; others are refused.

        Raises
        ------
        NotImplementedError
        """
        if generator is not _random.default_generator_of(1, runtime().current_device()):
            raise NotImplementedError("CUDAGraph.register_generator_state: graphs draw from the device's default "
                                      "generator alone")

    def raw_cuda_graph(self):
        """The CUgraph, as a number."""
        if not self._graph:
            raise RuntimeError("CUDAGraph.raw_cuda_graph: there is none: it was not captured, or keep_graph is False")
        return self._graph

    def raw_cuda_graph_exec(self):
        """The CUgraphExec, as a number."""
        if not self._program:
            raise RuntimeError("CUDAGraph.raw_cuda_graph_exec: the graph was not instantiated")
        return self._program

    def enable_debug_mode(self):
        """Keeps the graph for ``debug_dump``."""
        self._debug = True

    def debug_dump(self, debug_path):
        """Writes the graph for Graphviz to a file, after ``enable_debug_mode``."""
        if not self._graph:
            raise RuntimeError("CUDAGraph.debug_dump: enable_debug_mode() was not called before the capture")
        _driver().draw(self._index, self._graph, str(debug_path))


class graph:
    """``with graph(g):`` the work within becomes that of a graph; nothing of it runs before ``g.replay()``.

    Parameters
    ----------
    cuda_graph : CUDAGraph
    pool : tuple, optional
        Of ``graph_pool_handle`` or ``CUDAGraph.pool``.
    stream : Stream, optional
        That captures; one that all captures on the current device share if None.
    capture_error_mode : {"global", "thread_local", "relaxed"}
        See ``CUDAGraph.capture_begin``.
    """

    default_capture_stream = None

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        if stream is None:
            stream = graph.default_capture_stream
            if stream is None or stream._index != current_stream()._index:
                stream = graph.default_capture_stream = Stream()
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode, self._context = capture_error_mode, StreamContext(stream)

    def __enter__(self):
        runtime().synchronize(self.capture_stream._index)
        gc.collect()
        empty_cache()
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:                       # the error of the block is raised, not that of an unfinished capture
                self.cuda_graph._abort()
        finally:
            self._context.__exit__()
