"""``ShapeProp``: runs a graph and notes on each node the shape, dtype and layout of its value."""
import traceback
from typing import Any, NamedTuple

from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_map
from ptcore.fx.interpreter import Interpreter

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The properties of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _extract_tensor_metadata(result, include_contiguity=True):
    import ptcore
    format = None
    if include_contiguity:
        format = next((f for f in (ptcore.contiguous_format, ptcore.channels_last, ptcore.channels_last_3d)
                       if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), format, False, {})


class ShapeProp(Interpreter):
    """Runs a graph. Then ``node.meta["tensor_meta"]`` describes the tensors of a node's value, and
    ``node.meta["type"]`` is its class.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import symbolic_trace
    >>> from ptcore.fx.passes.shape_prop import ShapeProp
    >>> traced = symbolic_trace(lambda x: x.sum(0))
    >>> _ = ShapeProp(traced).propagate(ptcore.ones(2, 3))
    >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
    [ptcore.Size([2, 3]), ptcore.Size([3]), ptcore.Size([3])]
    """

    def __init__(self, gm):
        super().__init__(gm)

    def run_node(self, n):
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = []

        def described(x):
            if isinstance(x, Tensor):
                found.append(x)
                return _extract_tensor_metadata(x)
            return x
        meta = tree_map(described, result)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Runs the graph and returns its result."""
        return super().run(*args)
