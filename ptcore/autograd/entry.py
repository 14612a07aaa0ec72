"""``backward`` and ``grad``: check the arguments and call the engine."""
from ptcore._errors import DeviceError, warn
from ptcore._ops.checked import flag
from ptcore._ops.creation.creation import ones_like, zeros_like
from ptcore._state import function_modes
from ptcore._tensor import Tensor
from ptcore.autograd.accumulate import plain_seed
from ptcore.autograd.engine import run_backward

_CYCLE = ("Using backward() with create_graph=True will create a reference cycle between the parameter and its "
          "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
          "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
          "after use to break the cycle and avoid the leak.")
plain_classes = {Tensor}                # whose functions nobody overrides; floors above add theirs


def _sequence(value, op, arg, grads=None):
    """A list of tensors from one or several; a tensor that stands for the place in that of a gradient edge."""
    if isinstance(value, Tensor):
        return [value]
    value = [value] if _is_edge(value) else list(value)
    for k, t in enumerate(value):
        if _is_edge(t):
            from ptcore.autograd.edges import tensor_of
            of = [grads] if isinstance(grads, Tensor) else list(grads or ())
            value[k] = tensor_of(t, op, of[k] if k < len(of) else None)
        elif not isinstance(t, Tensor):
            raise TypeError(f"{op}: {arg} must hold Tensors or GradientEdges, got {type(t).__name__}")
    return value


def _read(value):
    """Tensors of a call; an iterable that can be read once as a list."""
    if isinstance(value, (Tensor, list, tuple)) or hasattr(type(value), "__torch_function__"):
        return value
    return list(value)


def _is_edge(value):
    return isinstance(value, tuple) and hasattr(value, "output_nr")


def seeds_of(op, outputs, grads, create_graph):
    """The first gradients of a walk: the given ones, checked, and ones for scalars."""
    if grads is None:
        grads = [None] * len(outputs)
    elif isinstance(grads, Tensor):
        grads = [grads]
    elif isinstance(grads, (tuple, list)):
        grads = list(grads)
    else:
        raise TypeError(f"{op}: gradients must be Tensors or None, got {type(grads).__name__}")
    if len(grads) != len(outputs):
        raise RuntimeError(f"{op}: got {len(outputs)} tensors and {len(grads)} gradients")
    for k, t in enumerate(outputs):
        g = plain_seed(t, grads[k])
        grads[k] = _seed(op, t, grads[k]) if g is None else g
    return grads


def _seed(op, t, g):
    """The first gradient of a walk at t."""
    if not t.requires_grad:
        raise RuntimeError(f"{op}: a tensor does not require grad and does not have a grad_fn")
    if g is None:
        if t.numel() != 1:
            raise RuntimeError(f"{op}: grad can be implicitly created only for scalar "
                               f"outputs, got shape {list(t.shape)}")
        if not t.dtype.is_floating_point:
            raise RuntimeError(f"{op}: grad can be implicitly created only for real scalar "
                               f"outputs, got dtype {t.dtype.name}")
        return ones_like(t)
    elif not isinstance(g, Tensor):
        raise TypeError(f"{op}: gradients must be Tensors or None, got {type(g).__name__}")
    elif g.shape != t.shape:
        raise RuntimeError(f"{op}: Mismatch in shape: the gradient of a tensor of shape {list(t.shape)} must "
                           f"have that shape, got {list(g.shape)}")
    elif g.device != t.device:
        raise DeviceError(f"{op}: the gradient of a tensor on {t.device} must be there, got {g.device}")
    elif g.dtype.is_complex and not t.dtype.is_complex:
        raise RuntimeError(f"{op}: the gradient of a real tensor must be real, got "
                           f"{g.dtype.name}")
    elif g.dtype is not t.dtype:
        g = g.to(t.dtype)
    return g


def _flags(op, create_graph, retain_graph):
    if create_graph is not True and create_graph is not False:
        create_graph = flag(op, "create_graph", create_graph)
    if not (retain_graph is None or retain_graph is True or retain_graph is False):
        retain_graph = flag(op, "retain_graph", retain_graph)
    return create_graph, retain_graph


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Accumulates the gradients of ``tensors`` into the ``.grad`` of the graph's leaves.

    Parameters
    ----------
    tensors : Tensor, GradientEdge, or sequence of them
    grad_tensors : Tensor, None or a sequence of them
        The vector of the vector-Jacobian product; ones for scalars if None.
    retain_graph : bool, optional
        Keep the saved tensors for another backward; defaults to ``create_graph``.
    create_graph : bool
        Record the backward itself, for higher derivatives.
    grad_variables : optional
        The older name of ``grad_tensors``.
    inputs : sequence of Tensor or GradientEdge, optional
        Only these get a gradient; no other ``.grad`` is touched.

    Raises
    ------
    RuntimeError
        If a tensor has no history, a gradient has the wrong shape, or the graph was freed.
    """
    if grad_variables is not None:
        warn("backward: grad_variables is deprecated, use grad_tensors", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError("backward: grad_tensors and grad_variables are two names of one argument; both were "
                               "given")
        grad_tensors = grad_variables
    tensors = _sequence(tensors, "backward", "tensors", grad_tensors)
    if inputs is not None:
        inputs = _sequence(inputs, "backward", "inputs")
        if not inputs:
            raise RuntimeError("backward: inputs argument to backward cannot be empty")
        for t in inputs:
            if not t.requires_grad:
                raise RuntimeError("backward: inputs must require grad, got a tensor that does not require grad")
    create_graph, retain_graph = _flags("backward", create_graph, retain_graph)
    if create_graph:
        warn(_CYCLE, UserWarning)
    grads = seeds_of("backward", tensors, grad_tensors, create_graph)
    run_backward(tensors, grads, create_graph if retain_graph is None else retain_graph,
                 create_graph, inputs, True)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False,
         only_inputs=True, allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of ``outputs`` with respect to ``inputs``, without touching ``.grad``.

    Parameters
    ----------
    outputs : Tensor, GradientEdge, or sequence of them
    inputs : Tensor, GradientEdge, sequence of them, or dict of Tensors
        A dict, such as ``dict(model.named_parameters())``, makes the result one with the same keys.
    grad_outputs : Tensor, None or a sequence of them
        The vector of the vector-Jacobian product; ones for scalars if None.
    retain_graph, create_graph : bool
        As in ``backward``.
    only_inputs : bool
        Deprecated: gradients of other tensors are never accumulated.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on, instead of raising.
    is_grads_batched : bool
        Each of ``grad_outputs`` has a dim more, the first, that counts cotangents, as have the gradients: one backward
        for all, by :func:`ptcore.vmap`.
    materialize_grads : bool
        Zeros in place of None, which require gradients with ``create_graph``.

    Returns
    -------
    tuple or dict of Tensor

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor(3., requires_grad=True)
    >>> ptcore.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if type(inputs) is dict:
        found = grad(outputs, list(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                     allow_unused, is_grads_batched, materialize_grads)
        return dict(zip(inputs, found, strict=True))
    outputs, inputs = _read(outputs), _read(inputs)
    relevant = [t for given in (outputs, inputs) for t in (given if isinstance(given, (list, tuple)) else (given,))]
    if not plain_classes.issuperset(map(type, relevant)) or function_modes():
        from ptcore._overrides import handle_torch_function, has_torch_function
        if has_torch_function(relevant):
            return handle_torch_function(
                grad, relevant, outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
                create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused,
                is_grads_batched=is_grads_batched, materialize_grads=materialize_grads)
    outputs = _sequence(outputs, "grad", "outputs", grad_outputs)
    inputs = _sequence(inputs, "grad", "inputs")
    if only_inputs is not True and not flag("grad", "only_inputs", only_inputs):
        warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradients of "
             "other parts of the graph, use ptcore.autograd.backward.", FutureWarning)
    if not inputs:
        raise RuntimeError("grad: inputs must not be empty")
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: allow_unused must be True or not given with "
                         "materialize_grads=True, got False")
    if allow_unused is not None:
        allow_unused = flag("grad", "allow_unused", allow_unused)
    allow_unused = allow_unused or materialize_grads
    for t in inputs:
        if not t.requires_grad:
            raise RuntimeError("grad: one of the differentiated inputs does not require grad")
    create_graph, retain_graph = _flags("grad", create_graph, retain_graph)
    if flag("grad", "is_grads_batched", is_grads_batched):
        return _grad_of_batch(outputs, inputs, grad_outputs, create_graph if retain_graph is None else retain_graph,
                              create_graph, allow_unused, materialize_grads)
    grads = seeds_of("grad", outputs, grad_outputs, create_graph)
    found = run_backward(outputs, grads, create_graph if retain_graph is None else retain_graph,
                         create_graph, inputs, False)
    for k, g in enumerate(found):
        if g is None:
            if not allow_unused:
                raise _not_used()
            if materialize_grads:
                found[k] = _zeros(inputs[k], create_graph)
    return tuple(found)


def _grad_of_batch(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads):
    """``grad`` for several cotangents at once, counted by the first dim of each of ``grad_outputs``."""
    from ptcore.autograd.batch import vmap
    given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or ())
    if len(given) != len(outputs) or not all(isinstance(g, Tensor) for g in given):
        raise RuntimeError("grad: is_grads_batched=True needs a tensor in grad_outputs for each output")
    for k, (t, g) in enumerate(zip(outputs, given)):
        if g.shape[1:] != t.shape or not g.ndim:
            raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as "
                               "the batch dimension. The sizes of the remaining dimensions are expected to match the "
                               f"shape of corresponding output, but a mismatch was detected: grad_output[{k}] has a "
                               f"shape of {list(g.shape)} and output[{k}] has a shape of {list(t.shape)}.")
    unused = []

    def pulled(*gs):
        found = run_backward(outputs, seeds_of("grad", outputs, gs, create_graph), retain_graph, create_graph, inputs,
                             False)
        unused[:] = [g is None for g in found]
        return tuple([g for g in found if g is not None])
    found = iter(vmap(pulled)(*given))
    result = [None if missing else next(found) for missing in unused]
    if any(unused) and not allow_unused:
        raise _not_used()
    if materialize_grads:
        size = given[0].shape[0]
        result = [_zeros(x, create_graph).expand((size, *x.shape)) if g is None else g
                  for g, x in zip(result, inputs)]
    return tuple(result)


def _zeros(x, create_graph):
    """The gradient by a tensor that is not used, of which there may be derivatives as of others."""
    made = zeros_like(x)
    return made.requires_grad_() if create_graph else made


def _not_used():
    return RuntimeError("grad: one of the differentiated inputs appears to not have been used in the graph. Set "
                        "allow_unused=True if this is the desired behavior.")


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Accumulates the gradient of this tensor into the leaves of its graph.

    See ``ptcore.autograd.backward``.
    """
    if not isinstance(self, Tensor):
        raise TypeError(f"backward: self must be a Tensor, got {type(self).__name__}")
    create_graph, retain_graph = _flags("backward", create_graph, retain_graph)
    seed = plain_seed(self, gradient) if inputs is None else None
    if seed is None:
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)
    else:
        if create_graph:
            warn(_CYCLE, UserWarning)
        run_backward([self], [seed], create_graph if retain_graph is None else retain_graph,
                     create_graph, None, True)


tensor_backward.__name__ = "backward"
tensor_backward.__qualname__ = "Tensor.backward"
