"""Programs as graphs, which can be traced, inspected, changed and run.

:func:`symbolic_trace` runs a module or function on proxies. Operations on proxies become the nodes of a :class:`Graph`,
which a :class:`GraphModule` runs.
"""
from ptcore.fx._symbolic_trace import PH, Tracer, symbolic_trace, wrap
from ptcore.fx.graph import Graph, PythonCode
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.interpreter import Interpreter, Transformer
from ptcore.fx.node import Node, has_side_effect, map_arg
from ptcore.fx.proxy import Proxy, TraceError
from ptcore.fx.subgraph_rewriter import replace_pattern
from ptcore.fx.verify import verify

__all__ = ["PH", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "PythonCode", "TraceError", "Tracer",
           "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace",
           "verify", "wrap"]
