"""Jacobians, Hessians and their products with vectors, by backward passes.

A forward product (``jvp``, ``hvp``) is the derivative of a backward product with respect to
its vector: backward is linear in the vector, so two backward passes give it (the "double
backward trick").

Every function takes ``func`` and its ``inputs`` (a tensor or a tuple) and returns results in
the same structure: a tensor where a tensor was given, else a tuple.
"""
from ptcore._errors import DTypeError
from ptcore._ops.checked import flag
from ptcore._ops.creation.creation import eye, ones_like, zeros, zeros_like
from ptcore._ops.functions import stack
from ptcore._state import enable_grad
from ptcore._subclass import without_node
from ptcore._tensor import Tensor
from ptcore.autograd import grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(value, op, what):
    """(tensors, whether a tuple was given)."""
    given = isinstance(value, (tuple, list))
    tensors = tuple(value) if given else (value,)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}: The {what} given to {op} must be either a Tensor or a tuple of Tensors, got "
                            f"{type(t).__name__}" + (f" at {i}" if given else ""))
    return tensors, given


def _shaped(tensors, given):
    return tensors if given else tensors[0]


def _leaves(inputs, create_graph):
    """The inputs as tensors to differentiate by: views if their own history counts, otherwise new leaves. If results
    are to be differentiated further, a leaf has the history and the tangents that an input has in transformations."""
    if create_graph:
        return tuple([x.view_as(x) if x.requires_grad else without_node(x).requires_grad_() for x in inputs])
    return tuple([x.detach().requires_grad_() for x in inputs])


def _vector(v, like, op, what):
    """v, checked against the tensors that it multiplies; ones for a single scalar."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{op}: v must be given unless {what} is a single element")
        return (ones_like(like[0]),)
    if isinstance(v, list):
        raise TypeError(f"{op}: v must be a Tensor or a tuple of Tensors, got list")
    v, _ = _tuple(v, op, "v")
    if len(v) != len(like):
        raise RuntimeError(f"{op}: v must hold {len(like)} tensors, as {what}, got {len(v)}")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.shape != b.shape:
            raise RuntimeError(f"{op}: entry {i} of v must have shape {list(b.shape)}, got "
                               f"{list(a.shape)}")
    return v


def _gradients(op, outputs, inputs, vectors, create_graph, strict):
    """The product of the vectors with the Jacobian; zeros for inputs on which nothing depends."""
    wanted = [(y, v) for y, v in zip(outputs, vectors) if y.requires_grad]
    if strict and len(wanted) != len(outputs):
        k = [y.requires_grad for y in outputs].index(False)
        raise RuntimeError(f"{op}: Output {k} of the user-provided function does not require gradients. It is "
                           "independent of the inputs, which is not allowed with strict=True")
    if not wanted:
        return tuple([zeros_like(x) for x in inputs])
    found = grad([y for y, _ in wanted], inputs, [v for _, v in wanted], allow_unused=True,
                 create_graph=create_graph, retain_graph=True)
    if strict and any(g is None for g in found):
        raise RuntimeError(f"{op}: the function does not depend on input "
                           f"{[g is None for g in found].index(True)}; this is not allowed "
                           "with strict=True")
    return tuple([zeros_like(x) if g is None else g for x, g in zip(inputs, found)])


def _finished(tensors, create_graph):
    return tensors if create_graph else tuple([t.detach() for t in tensors])


def _evaluate(op, func, inputs, create_graph):
    inputs, given = _tuple(inputs, op, "inputs")
    leaves = _leaves(inputs, create_graph)
    outputs, tupled = _tuple(func(*leaves), op, "outputs of the user-provided function")
    return leaves, given, outputs, tupled


def _real(op, output):
    if output.dtype.is_complex:
        raise DTypeError(f"{op}: func must return real tensors, got {output.dtype.name}")


def _scalar(op, outputs, tupled):
    if tupled or outputs[0].numel() != 1:
        raise RuntimeError(f"{op}: func must return a single element, got "
                           + (f"{len(outputs)} tensors" if tupled
                              else f"shape {list(outputs[0].shape)}"))
    _real(op, outputs[0])


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of a vector with the Jacobian of ``func``: ``v^T J``.

    Parameters
    ----------
    func : callable
        Takes the inputs, returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
    v : Tensor or tuple of Tensor, optional
        Shaped as the outputs; may be omitted for a single element.
    create_graph : bool
        Whether the results can be differentiated.
    strict : bool
        Raise where an output does not depend on an input, instead of giving zeros.

    Returns
    -------
    (outputs, product)
        ``product`` is shaped as the inputs.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> ptcore.autograd.functional.vjp(lambda x: x * x, x, ptcore.ones(2))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        leaves, given, outputs, tupled = _evaluate("vjp", func, inputs, create_graph)
        v = _vector(v, outputs, "vjp", "the output")
        product = _gradients("vjp", outputs, leaves, v, create_graph, strict)
    return (_shaped(_finished(outputs, create_graph), tupled),
            _shaped(_finished(product, create_graph), given))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of the Jacobian of ``func`` with a vector: ``J v``.

    Parameters as in ``vjp``; ``v`` is shaped as the inputs, ``product`` as the outputs.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> ptcore.autograd.functional.jvp(lambda x: (x * x).sum(), x, ptcore.ones(2))[1]
    tensor(6.)
    """
    with enable_grad():
        leaves, _, outputs, tupled = _evaluate("jvp", func, inputs, create_graph)
        v = _vector(v, leaves, "jvp", "the input")
        seeds = tuple([zeros_like(y).requires_grad_() for y in outputs])
        back = _gradients("jvp", outputs, leaves, seeds, True, strict)
        product = _gradients("jvp", back, seeds, v, create_graph, False)
    return (_shaped(_finished(outputs, create_graph), tupled),
            _shaped(_finished(product, create_graph), tupled))


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of a vector with the Hessian of a scalar function: ``v^T H``.

    Returns
    -------
    (output, product)

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> ptcore.autograd.functional.vhp(lambda x: (x**3).sum(), x, ptcore.ones(2))[1]
    tensor([ 6., 12.])
    """
    with enable_grad():
        leaves, given, outputs, tupled = _evaluate("vhp", func, inputs, create_graph)
        _scalar("vhp", outputs, tupled)
        v = _vector(v, leaves, "vhp", "the input")
        first = _gradients("vhp", outputs, leaves, (ones_like(outputs[0]),), True, strict)
        product = _gradients("vhp", first, leaves, v, create_graph, strict)
    return (_finished(outputs, create_graph)[0], _shaped(_finished(product, create_graph), given))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The product of the Hessian of a scalar function with a vector: ``H v``.

    Where the Hessian is symmetric, the result equals that of ``vhp``, which is cheaper.

    Returns
    -------
    (output, product)

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> ptcore.autograd.functional.hvp(lambda x: (x**3).sum(), x, ptcore.ones(2))[1]
    tensor([ 6., 12.])
    """
    with enable_grad():
        leaves, given, outputs, tupled = _evaluate("hvp", func, inputs, create_graph)
        _scalar("hvp", outputs, tupled)
        v = _vector(v, leaves, "hvp", "the input")
        first = _gradients("hvp", outputs, leaves, (ones_like(outputs[0]),), True, strict)
        seeds = tuple([zeros_like(g).requires_grad_() for g in first])
        back = _gradients("hvp", first, leaves, seeds, True, strict)
        product = _gradients("hvp", back, seeds, v, create_graph, False)
    return (_finished(outputs, create_graph)[0], _shaped(_finished(product, create_graph), given))


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False,
             strategy="reverse-mode"):
    """The Jacobian of ``func``, by a backward for each element of the outputs or a tangent for each of the inputs.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As in ``vjp``.
    vectorize : bool
        Whether all of them run at once, by :func:`ptcore.vmap`.
    strategy : {"reverse-mode", "forward-mode"}
        The latter with ``vectorize`` alone.

    Returns
    -------
    Tensor, or nested tuples of them
        ``J[i][j]`` has the shape of output i followed by the shape of input j. If a tensor and no tuple is given or
        returned, that level of nesting is left out.

    Raises
    ------
    NotImplementedError
        For ``strategy="forward-mode"`` without ``vectorize``, or with ``create_graph``.
    RuntimeError
        If both ``strict`` and ``vectorize`` are set.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> ptcore.autograd.functional.jacobian(lambda x: x * x, x)
    tensor([[2., 0.],
            [0., 4.]])
    """
    vectorize = flag("jacobian", "vectorize", vectorize)
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(f"jacobian: strategy must be 'reverse-mode' or 'forward-mode', got "
                         f"{strategy!r}")
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError("jacobian: create_graph=True and strategy='forward-mode' are not supported "
                                      "together; use ptcore.func.jacfwd")
        if not vectorize:
            raise NotImplementedError("jacobian: strategy='forward-mode' needs vectorize=True")
    if strict and vectorize:
        raise RuntimeError("jacobian: strict=True and vectorize=True are not supported together")
    if strategy == "forward-mode":
        return _ahead(func, inputs)
    with enable_grad():
        leaves, given, outputs, tupled = _evaluate("jacobian", func, inputs, create_graph)
        rows = [(_rows_at_once if vectorize else _rows)(y, leaves, create_graph, strict) for y in outputs]
    return _shaped(tuple([_shaped(_finished(r, create_graph), given) for r in rows]), tupled)


def _ahead(func, inputs):
    """The Jacobian by forward mode: all directions at once."""
    from ptcore.autograd.batch import basis_of, vmap
    from ptcore.autograd.dual import Forward
    inputs, given = _tuple(inputs, "jacobian", "inputs")
    inputs = [x.detach() for x in inputs]
    sizes = [x.numel() for x in inputs]
    tupled = []

    def pushed(*directions):
        with Forward() as forward:
            outputs, is_tuple = _tuple(func(*map(forward.pair, inputs, directions)), "jacobian",
                                       "outputs of the user-provided function")
            slopes = [(forward.value(y), forward.tangent(y)) for y in outputs]
        tupled[:] = [is_tuple]
        for y, _ in slopes:
            _real("jacobian", y)
        return tuple([zeros_like(y) if t is None else t for y, t in slopes])
    rows = vmap(pushed)(*basis_of(inputs, 0, sum(sizes)))
    blocks = [y.detach().movedim(0, -1).split(sizes, -1) for y in rows]
    return _shaped(tuple([_shaped(tuple([part.reshape(tuple(y.shape[1:]) + tuple(x.shape))
                                         for part, x in zip(parts, inputs)]), given)
                          for y, parts in zip(rows, blocks)]), tupled[0])


def _rows_at_once(y, leaves, create_graph, strict):
    """The Jacobian of one output by each leaf, in one batched backward."""
    _real("jacobian", y)
    n = y.numel()
    if n == 0 or not y.requires_grad:
        return tuple([zeros(y.shape + x.shape, dtype=x.dtype, device=x.device) for x in leaves])
    seeds = eye(n, dtype=y.dtype, device=y.device).reshape((n, *y.shape))
    found = grad(y, leaves, seeds, True, create_graph, allow_unused=True, is_grads_batched=True, materialize_grads=True)
    return tuple([g.reshape(tuple(y.shape) + tuple(x.shape)) for g, x in zip(found, leaves)])


def _rows(y, leaves, create_graph, strict):
    """The Jacobian of one output by each leaf."""
    _real("jacobian", y)
    n = y.numel()
    if n == 0:
        return tuple([zeros(y.shape + x.shape, dtype=x.dtype, device=x.device) for x in leaves])
    flat = y.reshape(-1)
    rows = [_gradients("jacobian", (flat[k],), leaves, (ones_like(flat[k]),), create_graph, strict)
            for k in range(n)]
    return tuple([stack([r[j] for r in rows]).reshape(tuple(y.shape) + tuple(x.shape))
                  for j, x in enumerate(leaves)])


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False,
            outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a scalar function: the Jacobian of its gradient.

    Parameters as in ``jacobian``.

    Returns
    -------
    Tensor, or a tuple of tuples of them
        ``H[i][j]`` has the shape of input i followed by the shape of input j.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([1., 2.])
    >>> ptcore.autograd.functional.hessian(lambda x: (x**3).sum(), x)
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    inputs, given = _tuple(inputs, "hessian", "inputs")

    def gradient(*xs):
        if outer_jacobian_strategy == "forward-mode":       # duals begin a new history
            xs = tuple([x.requires_grad_() for x in xs])
        with enable_grad():
            return first(*xs)

    def first(*xs):
        outputs, tupled = _tuple(func(*xs), "hessian", "outputs of the user-provided function")
        _scalar("hessian", outputs, tupled)
        return _gradients("hessian", outputs, xs, (ones_like(outputs[0]),), True, strict)

    found = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if given else found[0][0]
