"""``explain``: the graphs of a call, where it is cut, and the reasons for parts without a graph."""
import time
from typing import Any

from ptcore.jit import compiled as _compile
from ptcore.jit.capture.tracer import Unsupported, set_grad_enabled


class BreakReason:
    """The reason why a graph ends or a function is not captured.

    Attributes
    ----------
    reason : str
    where : tuple or None
        The user's file and line.
    function : str
        The function that was captured.
    """

    __slots__ = ("function", "reason", "where")

    def __init__(self, reason, where, function):
        self.reason, self.where, self.function = reason, where, function

    def __repr__(self):
        place = "" if self.where is None else f" at {self.where[0]}:{self.where[1]}"
        return f"{self.function}: {self.reason}{place}"


class ExplainOutput:
    """The report of :func:`ptcore.compiler.explain`.

    Attributes
    ----------
    graphs : list of GraphModule
    graph_count, graph_break_count, op_count : int
    ops_per_graph : list of list
        The functions that each graph calls.
    break_reasons : list of BreakReason
        Empty if the call is one graph.
    out_guards : list of Guard
        The conditions under which a later call uses the graphs.
    compile_times : str
    """

    def __init__(self):
        self.graphs, self.ops_per_graph, self.break_reasons, self.out_guards = [], [], [], []
        self.compile_times = ""

    @property
    def graph_count(self):
        return len(self.graphs)

    @property
    def graph_break_count(self):
        return len(self.break_reasons)

    @property
    def op_count(self):
        return sum(map(len, self.ops_per_graph))

    def add(self, segments):
        for segment in segments:
            self.graphs.append(segment.module)
            self.ops_per_graph.append([n.target for n in segment.module.graph.nodes
                                       if n.op == "call_function" and n.target is not set_grad_enabled])
            self.out_guards += segment.program.guards

    def __str__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
                 f"Op Count: {self.op_count}", "Break Reasons:"]
        lines += [f"  {k}: {reason!r}" for k, reason in enumerate(self.break_reasons, 1)] or ["  none"]
        lines.append("Guards:")
        for g in self.out_guards:
            place = "" if g.where is None else f"  ({g.where[0]}:{g.where[1]})"
            lines.append(f"  {g!r}{place}")
        lines.append(self.compile_times)
        return "\n".join(lines)

    __repr__ = __str__


def explain(f, *extra_args, **extra_kwargs) -> "Any":
    """Reports how a call of ``f`` is captured: graphs, guards, and why it is not one graph.

    The returned function takes the arguments of ``f``, runs it once and returns the report.

    Parameters
    ----------
    f : callable or Module
        A compiled function is asked as the function that it was made of.

    Returns
    -------
    callable
        Returns an :class:`~ptcore.compiler.ExplainOutput`.

    Examples
    --------
    >>> import ptcore
    >>> def f(x):
    ...     print("here")
    ...     return x + 1
    >>> ptcore.compiler.explain(f)(ptcore.ones(2)).graph_break_count
    here
    1
    """
    def inner(*args, **kwargs):
        found = ExplainOutput()
        began = time.perf_counter()
        _explain(f, args, kwargs, found)
        found.compile_times = f"Capture: {(time.perf_counter() - began) * 1e3:.1f} ms"
        return found
    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


def _explain(f, args, kwargs, found):
    if isinstance(f, _compile.OptimizedModule):
        f = f._orig_mod
    compiled = _Watched((getattr(f, "_compiled", None) and f._compiled.function) or f, found)
    compiled(*args, **kwargs)


class _Watched(_compile.Compiled):
    """A compiled function that keeps its captures for the report."""

    def __init__(self, function, found):
        super().__init__(function, _compile.Settings(False, None, "eager", None))
        self.found, self.is_quiet = found, True

    def run_capture(self, capture):
        name = self.name
        capture.located = True
        try:
            result = super().run_capture(capture)
        except Unsupported as stop:
            self.found.break_reasons.append(BreakReason(stop.reason, stop.where, name))
            self.found.out_guards += capture.program.guards
            raise
        for where in capture.breaks:
            self.found.break_reasons.append(BreakReason("it reads the value of a tensor", where, name))
        self.found.add(capture.segments)
        return result

    def inner(self, f, name):
        made = _Watched(f, self.found)
        made.settings.name = name
        return made
