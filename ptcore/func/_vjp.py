"""Reverse mode as transformations: ``vjp``, ``grad``, ``grad_and_value``, ``jacrev``.

Each argument that is differentiated is replaced by a new tensor. If the argument has no history, the new tensor is a
leaf of this call; otherwise it is a view that continues the history. So a derivative of a derivative is on one tape.
Inside another transformation the new tensor is a stand-in of that transformation, whose history is separate from that
of its value.
"""
import functools
import itertools

from ptcore._errors import at_users_line, here
from ptcore._interpret import Recording, entered, innermost
from ptcore._ops.creation.creation import ones_like, zeros, zeros_like
from ptcore._ops.functions import cat
from ptcore._state import (
    enable_grad,
    inference_mode,
    is_history_recorded,
    is_inference_mode_enabled,
)
from ptcore._subclass import own_leaf, owner_of, payload_of, savable, without_node
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ptcore.autograd.batch import basis_of, vmap
from ptcore.autograd.engine import run_backward
from ptcore.autograd.levels import has_history
from ptcore.func import _arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_numbers = itertools.count(1)
_running = set()            # numbers of calls that have not returned


def recording():
    """A context in which gradients are recorded; outer transformations keep their mode. Gives the number of the call.
    """
    return Recording(next(_numbers), _running)


@at_users_line
def differentiable(x, number):
    """The tensor that replaces an argument while call ``number`` differentiates by it."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    if x.dtype.kind not in "fc":
        raise RuntimeError(f"only Tensors of floating point dtype can require gradients, got {x.dtype.name}")
    top = innermost()
    if top is not None and top.value(x) is x:
        x = top.lift(x)
    if x.is_inference():
        x = savable(x)
    if x.requires_grad:
        return x.view_as(x)
    return own_leaf(x, number)


def leads_elsewhere(outputs, number):
    """Whether the history of outputs leads to a leaf whose gradient may be requested by others than call ``number``.
    Such a leaf belongs to no call, or to another call that has not returned. Inside another transformation, the
    histories of the values behind stand-ins count as well.
    """
    if any([interpreter.differentiates for interpreter in entered()]):
        return True
    pending, seen = [], set()
    for x in outputs:
        payload = payload_of(x)
        if payload is not None and has_history(payload.tensor):
            return True
        if x.requires_grad:
            if x.grad_fn is not None:
                pending.append(x.grad_fn)
            elif _asked_by_others(x, number):
                return True
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        for i in range(node.nin):
            edge = node.edge(i)
            if isinstance(edge, Tensor):
                if _asked_by_others(edge, number):
                    return True
            elif edge is not None:
                pending.append(edge)
    return False


def _asked_by_others(leaf, number):
    owner = owner_of(leaf)
    return owner == 0 or (owner != number and owner in _running)


def with_history_if(elsewhere, x):
    """A result for the outside of the transformation: without history unless ``elsewhere``."""
    if not isinstance(x, Tensor) or elsewhere or not x.requires_grad:
        return x
    return without_node(x)


class Pulled:
    """One recorded call of a function: its inputs, its outputs, and whether their history leads to leaves of others."""

    def __init__(self, number, inputs, outputs, aux=()):
        self.inputs, self.outputs = inputs, outputs
        self.elsewhere = leads_elsewhere([x for x in (*inputs, *outputs, *aux) if isinstance(x, Tensor)], number)

    def back(self, cotangents, retain_graph=True, create_graph=None):
        """The gradients of the inputs; zeros where an output does not depend on one."""
        outputs, seeds = [], []
        for y, g in zip(self.outputs, cotangents):
            if y.requires_grad:
                outputs.append(y)
                seeds.append(g)
        if not outputs:
            return [zeros_like(without_node(x)) for x in self.inputs]
        if create_graph is None:
            create_graph = is_history_recorded() and (self.elsewhere or any(map(has_history, seeds)))
        found = run_backward(outputs, seeds, retain_graph, create_graph, self.inputs, False)
        return [zeros_like(without_node(x)) if g is None else g for g, x in zip(found, self.inputs)]


@at_users_line
def seeds(api, outputs, cotangents):
    """Cotangents, checked for the shapes and dtypes of the outputs."""
    found = []
    for y, g in zip(outputs, cotangents):
        if not isinstance(g, Tensor):
            raise RuntimeError(f"{api}: cotangents must be Tensors, got {type(g).__name__}")
        if g.shape != y.shape:
            raise RuntimeError(f"{api}: Mismatch in shape: grad_output has a shape of {list(g.shape)} and output has a "
                               f"shape of {list(y.shape)}")
        if g.dtype.is_complex and not y.dtype.is_complex:
            raise RuntimeError(f"{api}: the cotangent of a real output must be real, got {g.dtype.name}")
        found.append(g if g.dtype is y.dtype else g.to(y.dtype))
    return found


def vjp(func, *primals, has_aux=False) -> "Any":
    """The outputs of a function and the function that pulls cotangents back through it.

    Parameters
    ----------
    func : callable
        Takes ``primals`` and returns a tree of tensors; with ``has_aux`` a pair of such a tree and another object.
    *primals : Tensor or tree of Tensors
        Where the derivative is taken, with respect to all of them.
    has_aux : bool, default: False

    Returns
    -------
    output : tree of Tensors
    vjp_fn : callable
        Takes cotangents in the structure of the output and returns a tuple with a gradient for each primal: with
        ``J`` the derivative, ``v`` becomes ``v.conj() @ J``, conjugated.
    aux : object
        With ``has_aux``.

    Raises
    ------
    RuntimeError
        If an output is no tensor of real or complex floating numbers, or cotangents have another structure or shape.

    Examples
    --------
    >>> import ptcore
    >>> y, vjp_fn = ptcore.func.vjp(lambda x: x.sin(), ptcore.zeros(2))
    >>> vjp_fn(ptcore.tensor([1., 2.]))
    (tensor([1., 2.]),)
    """
    return vjp_at(func, primals, None, has_aux)


def vjp_at(func, primals, argnums, has_aux):
    """``vjp`` with respect to the arguments that ``argnums`` names."""
    recorded = is_history_recorded()
    with recording() as number:
        if argnums is None:
            args = given = tree_map(lambda x: differentiable(x, number), primals)
        else:
            given = tree_map(lambda x: differentiable(x, number), _arguments.chosen(primals, argnums, as_tuple=False))
            args = _arguments.replaced(primals, given, argnums)
        output = func(*args)
        aux = None
        if has_aux:
            output, aux = _arguments.pair("vjp(f, *primals)", output)
        flat, out_spec = tree_flatten(output)
        _arguments.check_outputs("vjp(f, *primals)", flat)
        for y in flat:
            _arguments.check_floating(y)
        flat_given, given_spec = tree_flatten(given)
        pulled = Pulled(number, flat_given, flat, tree_leaves(aux))
    keep = pulled.elsewhere and recorded
    results = tree_unflatten([with_history_if(keep, y) for y in flat], out_spec)

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        flat_cotangents, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               f"to the function. cotangents: {spec}, primal output: {out_spec}{here()}")
        if is_inference_mode_enabled():
            with inference_mode(False), enable_grad():
                flat_cotangents = [savable(g) if isinstance(g, Tensor) else g for g in flat_cotangents]
                found = pulled.back(seeds("vjp_fn", flat, flat_cotangents), retain_graph, create_graph)
        else:
            found = pulled.back(seeds("vjp_fn", flat, flat_cotangents), retain_graph, create_graph)
        return tree_unflatten(found, given_spec)

    vjp_fn.pulled = pulled
    if has_aux:
        return results, vjp_fn, tree_map(lambda x: with_history_if(keep, x), aux)
    return results, vjp_fn


def grad(func, argnums: "int | tuple[int, ...]" = 0, has_aux=False):
    """The function that gives the gradient of a scalar function.

    Parameters
    ----------
    func : callable
        Returns a tensor of no dims; with ``has_aux`` a pair of it and another object.
    argnums : int or tuple of int, default: 0
        The arguments to differentiate by; they may be trees of tensors.
    has_aux : bool, default: False

    Returns
    -------
    callable
        Takes what ``func`` takes and returns the gradient, in the structure of the argument, or a tuple of them if
        ``argnums`` is one; with ``has_aux`` a pair of that and the other object.

    Raises
    ------
    RuntimeError
        If the output is no scalar, or ``argnums`` names no argument.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.func import grad
    >>> grad(lambda x: x ** 3)(ptcore.tensor(2.))
    tensor(12.)
    >>> grad(grad(lambda x: x ** 3))(ptcore.tensor(2.))
    tensor(12.)
    """
    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        gradient, value = _grad_and_value(func, argnums, has_aux, args, kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return wrapped


def grad_and_value(func, argnums: "int | tuple[int, ...]" = 0, has_aux=False):
    """The function that gives a scalar function's gradient and its value. See :func:`grad`.

    Returns
    -------
    callable
        Returns ``(gradient, value)``, and ``(gradient, (value, aux))`` with ``has_aux``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.func.grad_and_value(lambda x: x ** 3)(ptcore.tensor(2.))
    (tensor(12.), tensor(8.))
    """
    @functools.wraps(func, updated=())
    def wrapped(*args, **kwargs):
        return _grad_and_value(func, argnums, has_aux, args, kwargs)
    return wrapped


def _grad_and_value(func, argnums, has_aux, args, kwargs):
    recorded = is_history_recorded()
    with recording() as number:
        given = tree_map(lambda x: differentiable(x, number), _arguments.chosen(args, argnums, as_tuple=False))
        output = func(*_arguments.replaced(args, given, argnums), **kwargs)
        aux = None
        if has_aux:
            output, aux = _arguments.pair("grad_and_value(f)(*args)", output)
        _arguments.check_scalar(output)
        flat, spec = tree_flatten(given)
        pulled = Pulled(number, flat, [output], tree_leaves(aux))
        found = _ones_back(pulled, recorded)
    keep = pulled.elsewhere and recorded
    value = with_history_if(keep, output)
    gradient = tree_unflatten([with_history_if(keep, g) for g in found], spec)
    if has_aux:
        return gradient, (value, tree_map(lambda x: with_history_if(keep, x), aux))
    return gradient, value


def _ones_back(pulled, recorded):
    (y,) = pulled.outputs
    if not y.requires_grad:
        return pulled.back([None])
    if y.dtype.is_complex:
        raise RuntimeError("grad_and_value(f)(*args): grad can be implicitly created only for real scalar outputs but "
                           f"got {y.dtype}{here()}")
    create_graph = recorded and pulled.elsewhere        # its recorded backward needs the saved tensors
    return pulled.back([ones_like(without_node(y))], create_graph, create_graph)


# -- Jacobians ---------------------------------------------------------------------------------------

def jacrev(func, argnums: "int | tuple[int, ...]" = 0, *, has_aux=False, chunk_size: "int | None" = None,
           _preallocate_and_copy=False):
    """The function that gives a function's Jacobian, by reverse mode: a backward for each element of the output,
    batched.

    Parameters
    ----------
    func : callable
        Returns a tree of real tensors; with ``has_aux`` a pair of it and another object.
    argnums : int or tuple of int, default: 0
    has_aux : bool, default: False
    chunk_size : int, optional
        The most rows to compute at once; None: all. With 1 nothing is batched.

    Returns
    -------
    callable
        For an output of shape ``S`` and an argument of shape ``T`` it gives a tensor of shape ``(*S, *T)``, in the
        structure of the output, each place with the structure of the argument.

    Raises
    ------
    RuntimeError
        If an argument or output is complex.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.func.jacrev(lambda x: x ** 2)(ptcore.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def wrapped(*args):
        _arguments.refuse_complex("jacrev", args, True)
        output, vjp_fn, *aux = vjp_at(func, args, argnums, has_aux)
        flat, out_spec = tree_flatten(output)
        _arguments.refuse_complex("jacrev", flat, False)
        primals, spec = tree_flatten(_arguments.chosen(args, argnums))
        sizes = [y.numel() for y in flat]
        total = sum(sizes)
        pieces = []
        for start in range(0, total, chunk_size or total or 1):
            count = min(chunk_size or total, total - start)
            rows = tree_unflatten(basis_of(flat, start, count), out_spec)
            if chunk_size == 1:
                found = tree_map(lambda g: g.unsqueeze(0), vjp_fn(tree_map(lambda g: g.squeeze(0), rows)))
            else:
                found = vmap(vjp_fn)(rows)
            pieces.append(tree_leaves(found))
        if not pieces:
            pieces = [[zeros((0, *x.shape), dtype=x.dtype, device=x.device) for x in primals]]
        columns = [parts[0] if len(parts) == 1 else cat(list(parts), 0) for parts in zip(*pieces)]
        found = []
        for y, rows in zip(flat, zip(*[column.split(sizes, 0) for column in columns])):
            blocks = [block.view((*y.shape, *x.shape)) for block, x in zip(rows, primals)]
            blocks = tree_unflatten(blocks, spec)
            found.append(blocks[0] if isinstance(argnums, int) else blocks)
        result = tree_unflatten(found, out_spec)
        return (result, *aux) if has_aux else result
    return wrapped
