"""``utils.swap_tensors``: two tensor objects exchange all that they hold.

A graph refers to the objects themselves, as do a view to its base and a tensor to its gradient; after an exchange they
would refer to something else. So these are looked for by the garbage collector, which knows every owner:

(a) A node that saved one of the two, a view of it, and a tensor whose gradient it is, prevent the exchange.
(b) An edge that leads to one of them as a leaf gets another end in its place, which raises when a gradient comes to it.

PyTorch refuses and raises in the same cases, which it finds by counting.
"""
import copyreg
import gc
import weakref

from ptcore._node import Node
from ptcore._overrides import typename
from ptcore._subclass import swap_contents
from ptcore._tensor import Tensor, TensorExtras

__all__ = ["exchange", "owners_of", "swap_tensors"]


def _poisoned(grad):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: a leaf of this graph was exchanged "
        "between forward and backward. Change the device or dtype of a module before the forward pass or after the "
        "backward pass."
    )


def _saves(node, t):
    saved = [node.s0, node.s1, node.s2, node.s3, *(node.smore or ()), *(node.params or ()), node.gbuf]
    saved += [each for value in saved if isinstance(value, (list, tuple)) for each in value]
    return any(value is t for value in saved)


def owners_of(tensors):
    """Tensors and their parts that refer to one of some tensors, and nodes that do so, themselves or by their lists.

    This walks over all objects, 10 to 15 ms in a program of 60,000. A second walk is seldom needed, since the lists of
    nodes have numbers in them: [saved value, version, ...] and [(edge, output number), ...].
    """
    found = gc.get_referrers(*tensors)
    owners = [owner for owner in found if isinstance(owner, (Node, Tensor, TensorExtras))]
    for _ in range(2):
        lists = [owner for owner in found if type(owner) in (list, tuple) and len(owner) > 1
                 and (type(owner[1]) is int or type(owner[0]) is tuple)]
        if not lists:
            break
        found = gc.get_referrers(*lists)
        owners += [owner for owner in found if isinstance(owner, Node)]
    return owners


def _check(t, name, owners):
    """Raises where the graph keeps a tensor; returns the edges that lead to it as a leaf."""
    edges = []
    for owner in owners:
        if isinstance(owner, Node):
            if _saves(owner, t):
                raise RuntimeError(f"Expected use_count of {name} to be 1: swap_tensors: a graph has saved the tensor "
                                   f"for backward ({owner.name()})")
            edges += [(owner, i) for i in range(owner.nin) if owner.edge(i) is t]
        elif any(part is t for part in gc.get_referents(owner)):
            what = ("has a view" if getattr(owner, "_base", None) is t
                    else "is the gradient or the tangent of another tensor")
            raise RuntimeError(f"Expected use_count of {name} to be 1: swap_tensors: the tensor {what}")
    return edges


def _end_of(t):
    """The end of an edge that led to a tensor; it raises when a gradient comes to it."""
    end = t.detach().as_subclass(Tensor).requires_grad_()
    end.register_hook(_poisoned)
    return end


def swap_tensors(t1, t2):
    """Exchange what two tensor objects hold: class, memory, history, gradient, hooks and attributes.

    Parameters
    ----------
    t1, t2 : Tensor
        They stay the objects that they are, so whoever refers to the one sees what the other was.

    Raises
    ------
    RuntimeError
        If one of them has weak references, is saved by a graph, is the base of a view or the gradient of a tensor, or
        if their classes have different slots.

    Examples
    --------
    >>> import ptcore
    >>> a, b = ptcore.ones(2), ptcore.zeros(3, dtype=ptcore.int64)
    >>> ptcore.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([0, 0, 0]), tensor([1., 1.]))
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: {name} must be a Tensor, got {typename(t)}")
    exchange(t1, t2, owners_of((t1, t2)))


def exchange(t1, t2, owners):
    """The same, with what :func:`owners_of` found for these tensors among others."""
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if t._extras.payload is not None:
            raise RuntimeError(f"swap_tensors: {name} stands for a traced or batched tensor")
    if t1 is t2:
        return
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    edges = [(t, edge) for name, t in (("t1", t1), ("t2", t2)) for edge in _check(t, name, owners)]
    swap_contents(t1, t2, slots, [(node, i, _end_of(t)) for t, (node, i) in edges])
