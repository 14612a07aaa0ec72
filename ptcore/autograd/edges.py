"""Edges of the graph as values: a gradient is asked for at a node's output, without the tensor."""
from typing import NamedTuple

from ptcore._node import AccumulateGrad, Node, end_at
from ptcore._ops.creation.creation import empty_strided
from ptcore._ops.history import attach_history
from ptcore._tensor import Tensor


class _Edge(NamedTuple):
    node: object
    output_nr: int
    ownership_token: object = None


class GradientEdge(_Edge):
    """An output of a node, in place of a tensor in ``autograd.grad`` and ``autograd.backward``.

    It keeps the node alive, but no tensor.

    Attributes
    ----------
    node : object
        A node of the graph, or the end at a leaf.
    output_nr : int
        The number of the node's output.
    ownership_token : None
        Has no effect: an edge owns its node.
    """

    meta = None                 # (shape, dtype, device) of the tensor of which it was made


def get_gradient_edge(tensor):
    """The edge at which the gradient of a tensor arrives.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    GradientEdge

    Raises
    ------
    TypeError
        If it is no tensor.
    RuntimeError
        If it does not require grad.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.autograd.graph import get_gradient_edge
    >>> x = ptcore.tensor([1., 2.], requires_grad=True)
    >>> y = x * 2
    >>> edge = get_gradient_edge(y)
    >>> ptcore.autograd.grad((y * y).sum(), edge)
    (tensor([4., 8.]),)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge: tensor must be a Tensor, got {type(tensor).__name__}")
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: It is not possible to get the gradient edge for a Tensor that does not "
                           "require gradients")
    node = tensor.grad_fn
    edge = GradientEdge(end_at(tensor) if node is None else node, tensor.output_nr)
    edge.meta = tensor.shape, tensor.dtype, tensor.device
    return edge


def tensor_of(edge, op, grad=None):
    """The leaf, or a tensor without values of its own whose history is the edge's.

    Where nothing says what shape the tensor has, it is that of ``grad``.
    """
    node, nr = edge[:2]
    if isinstance(node, AccumulateGrad):
        return node.variable
    if not isinstance(node, Node):
        raise TypeError(f"{op}: the node of a GradientEdge must be a Node, got {type(node).__name__}")
    if not 0 <= nr < node.nout:
        raise RuntimeError(f"{op}: {node.name()} has {node.nout} outputs, got a GradientEdge of output {nr}")
    meta = getattr(edge, "meta", None) or (node.out_meta[nr] if node.nout > 1 and node.out_meta else None)
    if meta is None and isinstance(grad, Tensor):
        meta = grad.shape, grad.dtype, grad.device
    if meta is None:
        meta = (), None, "cpu"
    shape, dtype, device = meta
    return attach_history(empty_strided(shape, (0,) * len(shape), dtype=dtype, device=device), node, nr)
