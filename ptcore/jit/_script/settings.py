"""Settings of PyTorch's fusers and executor. Those without a meaning here say so when they are used."""
import contextlib

from ptcore._contexts import Changed
from ptcore._ops.checked import flag
from ptcore.fx.node import OpFunction
from ptcore.jit._script.functions import ScriptFunction

__all__ = ["enable_onednn_fusion", "export_opnames", "fuser", "last_executed_optimized_graph", "onednn_fusion_enabled",
           "optimized_execution", "set_fusion_strategy", "strict_fusion"]

_strategy = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy):
    """Sets how often PyTorch's fuser compiles for other sizes. The setting is stored and has no effect on graphs.

    Parameters
    ----------
    strategy : list of tuple
        Pairs of "STATIC" or "DYNAMIC" and a number.

    Returns
    -------
    list of tuple
        The previous setting.

    Examples
    --------
    >>> import ptcore
    >>> before = ptcore.jit.set_fusion_strategy([("DYNAMIC", 3)])
    >>> ptcore.jit.set_fusion_strategy(before)
    [('DYNAMIC', 3)]
    """
    global _strategy
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC") or not isinstance(depth, int):
            raise ValueError(f"set_fusion_strategy: pairs of 'STATIC' or 'DYNAMIC' and a number, got {(kind, depth)}")
    before, _strategy = _strategy, [tuple(pair) for pair in strategy]
    return before


class optimized_execution(Changed, contextlib.ContextDecorator):
    """A context in which scripted graphs without branches and loops run as plans, which is the default, or op by op.

    The setting holds for the thread. Results are the same bits.

    Parameters
    ----------
    should_optimize : bool

    Examples
    --------
    >>> import ptcore
    >>> @ptcore.jit.script
    ... def f(x):
    ...     return x * 2 + 1
    >>> with ptcore.jit.optimized_execution(False):
    ...     f(ptcore.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, should_optimize):
        super().__init__((None, {"optimized_execution": flag("optimized_execution", "should_optimize",
                                                             should_optimize)}))


class strict_fusion:
    """Absent: plans decide which ops of a scripted graph run together, so no rule of fusion can be broken.

    Raises
    ------
    NotImplementedError
    """

    def __init__(self):
        raise NotImplementedError("strict_fusion: absent; what of a scripted graph is fused is settled by its plan")


def fuser(name):
    """Absent: script has no fusers to choose from.

    Raises
    ------
    NotImplementedError
    """
    raise NotImplementedError(f"fuser: absent; there is no fuser {name!r} here")


def last_executed_optimized_graph():
    """Absent: the graph that runs is the attribute ``graph`` of the function or module.

    Raises
    ------
    NotImplementedError
    """
    raise NotImplementedError("last_executed_optimized_graph: absent; the graph that runs is the function's .graph")


def enable_onednn_fusion(enabled):
    """oneDNN is no part of ptcore: it can be disabled, but not enabled.

    Raises
    ------
    NotImplementedError
        If it is to be enabled.
    """
    if enabled:
        raise NotImplementedError("enable_onednn_fusion: oneDNN is no part of ptcore")


def onednn_fusion_enabled():
    """False."""
    return False


def export_opnames(m):
    """The names of all ops that a scripted module or function calls, in alphabetical order.

    Parameters
    ----------
    m : ScriptModule or ScriptFunction

    Returns
    -------
    list of str

    Examples
    --------
    >>> import ptcore
    >>> ptcore.jit.export_opnames(ptcore.jit.script(ptcore.nn.Linear(2, 2)))
    ['linear']
    """
    found, seen = set(), set()

    def look(graph):
        if id(graph) in seen:
            return
        seen.add(id(graph))
        for node in graph.nodes:
            if isinstance(node.target, OpFunction):
                found.add(node.target.__name__)
            elif isinstance(node.target, ScriptFunction):
                look(node.target.graph)
            for block in node.blocks:
                look(block)
    functions = [m] if isinstance(m, ScriptFunction) else [
        f for part in m.modules() for f in getattr(part, "_jit_methods", {}).values()]
    if not functions and not isinstance(m, ScriptFunction):
        raise TypeError(f"export_opnames: expected a ScriptModule or ScriptFunction, got {type(m).__name__}")
    for f in functions:
        look(f.graph)
    return sorted(found)
