"""Forward mode as transformations: ``jvp``, ``jacfwd``, ``linearize``; and ``hessian``, which uses both modes."""
import functools

from ptcore._errors import at_users_line, here
from ptcore._ops.creation.creation import zeros_like
from ptcore._state import is_history_recorded, set_grad_enabled
from ptcore._subclass import savable
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_flatten, tree_map, tree_unflatten
from ptcore.autograd.batch import basis_of, vmap
from ptcore.autograd.dual import Forward, check_tangent
from ptcore.autograd.levels import has_history
from ptcore.func import _arguments
from ptcore.func._vjp import jacrev, vjp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CALLED = "jvp(f, primals, tangents)"


def jvp(func, primals, tangents, *, strict=False, has_aux=False) -> "Any":
    """The outputs of a function and their derivatives along given directions.

    Parameters
    ----------
    func : callable
        Takes ``primals`` and returns a tree of tensors; with ``has_aux`` a pair of such a tree and another object.
    primals : tuple
        Tensors, or trees of them.
    tangents : tuple
        A direction for each primal, of its structure, shapes and dtypes.
    strict : bool, default: False
        Refuse an output that does not depend on the primals, whose tangent is zeros otherwise.
    has_aux : bool, default: False

    Returns
    -------
    output, tangent : tree of Tensors
        ``tangent`` is ``J @ v``.
    aux : object
        With ``has_aux``.

    Raises
    ------
    RuntimeError
        If primals and tangents have not one structure, a tangent has another shape or dtype, or an output is no tensor.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.func.jvp(lambda x: x ** 2, (ptcore.tensor(3.),), (ptcore.tensor(1.),))
    (tensor(9.), tensor(6.))
    """
    return jvp_at(func, primals, tangents, None, strict, has_aux)


@at_users_line
def _read(primals, tangents, argnums):
    """The tensors to differentiate by, their directions, and the structure of both."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_CALLED}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    moving = primals if argnums is None else _arguments.chosen(primals, argnums)
    flat, spec = tree_flatten(moving)
    directions, of_directions = tree_flatten(tangents)
    if spec != of_directions:
        raise RuntimeError(f"{_CALLED}: Expected primals and tangents to have the same python structure. For example, "
                           "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                           f"{spec} and tangents with structure {of_directions}")
    for name, tensors in (("primals", flat), ("tangents", directions)):
        if not tensors:
            raise RuntimeError(f"{_CALLED}: Expected {name} to contain at least one Tensor.")
        for x in tensors:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{_CALLED}: Expected {name} to only contain Tensors, got {type(x)}")
    return flat, directions, spec


def jvp_at(func, primals, tangents, argnums, strict=False, has_aux=False):
    flat, directions, spec = _read(primals, tangents, argnums)
    for x, t in zip(flat, directions):
        check_tangent(x, t)
    flat, directions = ([savable(x) if x.is_inference() else x for x in tensors] for tensors in (flat, directions))
    with Forward() as forward:
        duals = tree_unflatten([forward.pair(x, t) for x, t in zip(flat, directions)], spec)
        if argnums is not None:
            duals = _arguments.replaced(primals, duals if isinstance(argnums, tuple) else duals[0], argnums)
        output, aux = func(*duals), None
        if has_aux:
            output, aux = _arguments.pair(_CALLED, output)
        found, out_spec = tree_flatten(output)
        _arguments.check_outputs(_CALLED, found)
        values, slopes = [forward.value(y) for y in found], [forward.tangent(y) for y in found]
        aux = tree_map(lambda x: forward.value(x) if isinstance(x, Tensor) else x, aux)
    if strict and any(t is None for t in slopes):
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This "
                           "is not allowed with strict=True." + here())
    slopes = [zeros_like(y) if t is None else t for y, t in zip(values, slopes)]
    result = tree_unflatten(values, out_spec), tree_unflatten(slopes, out_spec)
    return (*result, aux) if has_aux else result


def jacfwd(func, argnums: "int | tuple[int, ...]" = 0, has_aux=False, *, randomness="error"):
    """The function that gives a function's Jacobian, by forward mode: a derivative along each element of the argument,
    batched.

    Parameters
    ----------
    func : callable
        Returns a tree of real tensors; with ``has_aux`` a pair of it and another object.
    argnums : int or tuple of int, default: 0
    has_aux : bool, default: False
    randomness : {"error", "different", "same"}, default: "error"
        As in :func:`vmap`.

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
    >>> ptcore.func.jacfwd(lambda x: x ** 2)(ptcore.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    @functools.wraps(func, updated=())
    def wrapped(*args):
        _arguments.refuse_complex("jacfwd", args, True)
        moving = args if argnums is None else _arguments.chosen(args, argnums)
        flat, spec = tree_flatten(moving)
        sizes = [x.numel() for x in flat]
        directions = tree_unflatten(basis_of(flat, 0, sum(sizes)), spec)

        def pushed(v):
            output, slope, *aux = jvp_at(func, args, v, argnums, has_aux=has_aux)
            _arguments.refuse_complex("jacfwd", output, False)
            return (slope, *aux) if has_aux else slope

        found = vmap(pushed, randomness=randomness)(directions)
        if has_aux:
            found, aux = found
            aux = tree_map(lambda x: x[0], aux)
        rows, out_spec = tree_flatten(found)
        blocks = []
        for y in rows:
            parts = y.movedim(0, -1).split(sizes, -1)
            parts = tree_unflatten([part.reshape((*y.shape[1:], *x.shape)) for part, x in zip(parts, flat)], spec)
            blocks.append(parts[0] if isinstance(argnums, int) else parts)
        result = tree_unflatten(blocks, out_spec)
        return (result, aux) if has_aux else result
    return wrapped


def hessian(func, argnums: "int | tuple[int, ...]" = 0):
    """The function that gives a function's second derivatives: forward mode over reverse mode.

    Parameters
    ----------
    func : callable
    argnums : int or tuple of int, default: 0

    Returns
    -------
    callable
        As ``jacfwd(jacrev(func, argnums), argnums)``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.func.hessian(lambda x: (x ** 3).sum())(ptcore.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """The outputs of a function, and the function of a direction that gives the derivative along it.

    Parameters
    ----------
    func : callable
    *primals : Tensor or tree of Tensors

    Returns
    -------
    output : tree of Tensors
    jvp_fn : callable
        Takes a tangent for each primal.

    Examples
    --------
    >>> import ptcore
    >>> y, along = ptcore.func.linearize(lambda x: x ** 2, ptcore.tensor(3.))
    >>> along(ptcore.tensor(2.))
    tensor(12.)
    """
    output, vjp_fn = vjp(func, *primals)
    flat, spec = tree_flatten(output)
    _, primals_spec = tree_flatten(primals)

    def jvp_fn(*tangents):
        given, of_tangents = tree_flatten(tangents)
        if of_tangents != primals_spec:
            raise RuntimeError(f"Expected the tangents {of_tangents} to have the same structure as the primals "
                               f"{primals_spec}.{here()}")
        for x, t in zip(tree_flatten(primals)[0], given):
            check_tangent(x, t)
        # The pullback is linear in its cotangents, so the pullback of the pullback is the derivative.
        _, along = vjp(lambda *g: vjp_fn(tree_unflatten(list(g), spec), create_graph=True), *map(zeros_like, flat))
        # Without this condition, the values behind batched stand-ins would keep the history of the primals.
        with set_grad_enabled(is_history_recorded() and (vjp_fn.pulled.elsewhere or any(map(has_history, given)))):
            return tree_unflatten(list(along(tuple(tangents))), spec)
    return output, jvp_fn
