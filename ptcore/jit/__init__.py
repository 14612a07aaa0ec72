"""Programs as graphs: traced, or scripted from their source; saved, loaded and run without Python.

:func:`script` reads the source of functions, modules and classes and makes a graph with static types, which can be
inspected and saved. The graph gives the same results without running the Python code.
"""
from ptcore.jit._freeze import freeze, optimize_for_inference, run_frozen_optimizations
from ptcore.jit._program import load, save
from ptcore.jit._script.annotations import Attribute, annotate, is_scripting
from ptcore.jit._script.annotations import jit_isinstance as isinstance
from ptcore.jit._script.api import CompilationUnit, Final, interface, script, script_if_tracing, script_method
from ptcore.jit._script.api import script_if_tracing as _script_if_tracing
from ptcore.jit._script.asynchronous import Future, fork, wait
from ptcore.jit._script.decorators import _overload as _overload
from ptcore.jit._script.decorators import _overload as _overload_method
from ptcore.jit._script.decorators import export, ignore, unused
from ptcore.jit._script.errors import Error
from ptcore.jit._script.functions import ScriptFunction
from ptcore.jit._script.modules import RecursiveScriptModule, ScriptModule
from ptcore.jit._script.settings import (
    enable_onednn_fusion,
    export_opnames,
    fuser,
    last_executed_optimized_graph,
    onednn_fusion_enabled,
    optimized_execution,
    set_fusion_strategy,
    strict_fusion,
)
from ptcore.jit._script.source import NotSupportedError, ScriptError
from ptcore.jit._trace import TracerWarning, TracingCheckError, is_tracing, trace, trace_module

__all__ = ["Attribute", "CompilationUnit", "Error", "Final", "Future", "NotSupportedError", "RecursiveScriptModule",
           "ScriptError", "ScriptFunction", "ScriptModule", "TracerWarning", "TracingCheckError", "annotate",
           "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "fuser", "ignore", "interface",
           "is_scripting", "is_tracing", "isinstance", "last_executed_optimized_graph", "load",
           "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "run_frozen_optimizations",
           "save", "script", "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace",
           "trace_module", "unused", "wait"]
