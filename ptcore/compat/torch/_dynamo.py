"""``torch._dynamo``: names of PyTorch's capture that programs use; ptcore captures by `ptcore.compile`."""
from ptcore.compiler import (
    allow_in_graph,
    assume_constant_result,
    is_compiling,
    list_backends,
    register_backend,
    set_stance,
    substitute_in_graph,
)
from ptcore.compiler import reset as reset
from ptcore.jit.compiled import OptimizedModule, disable

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "register_backend",
    "reset",
    "set_stance",
    "substitute_in_graph",
]
__path__ = []


def graph_break(msg=""):
    """Marks a place where a capture ends; outside of one it does nothing."""


def disallow_in_graph(fn):
    """Marks a function that a capture leaves out."""
    return disable(fn)


forbid_in_graph = disallow_in_graph


def mark_dynamic(t, index, **bounds):
    """A hint about a size, which is ignored: ptcore chooses compiled programs by the sizes of each call."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_unbacked = mark_dynamic


def __getattr__(name):
    if name in ("export", "explain", "optimize", "optimize_assert", "run", "replay"):
        def absent(*args, **kwargs):
            raise NotImplementedError(f"torch._dynamo.{name}: ptcore captures programs without Dynamo, by "
                                      "torch.compile")
        return absent
    if name in ("config", "utils", "exc", "backends", "external_utils", "testing"):
        from importlib import import_module
        return import_module(f"torch._dynamo.{name}")
    raise AttributeError(f"module 'torch._dynamo' has no attribute {name!r}: ptcore captures programs without Dynamo")
