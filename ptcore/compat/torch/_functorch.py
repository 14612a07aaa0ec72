"""``functorch``, the predecessor of ``torch.func``: its transformations, and modules as functions."""
import copy

from ptcore.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

__all__ = ["combine_state_for_ensemble", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
           "jacfwd", "jacrev", "jvp", "linearize", "make_functional", "make_functional_with_buffers",
           "stack_module_state", "vjp", "vmap"]


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """A module as ``f(parameters, buffers, *args, **kwargs)``, with its parameters and buffers as tuples."""
    names, parameters = zip(*model.named_parameters()) if any(True for _ in model.parameters()) else ((), ())
    buffer_names, buffers = zip(*model.named_buffers()) if any(True for _ in model.buffers()) else ((), ())
    if disable_autograd_tracking:
        parameters = tuple(p.detach() for p in parameters)
    stateless = copy.deepcopy(model)

    def function(parameters, buffers, *args, **kwargs):
        state = {**dict(zip(names, parameters)), **dict(zip(buffer_names, buffers))}
        return functional_call(stateless, state, args, kwargs)

    return function, tuple(parameters), tuple(buffers)


def make_functional(model, disable_autograd_tracking=False):
    """A module without buffers as ``f(parameters, *args, **kwargs)``, with its parameters as a tuple."""
    if any(True for _ in model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use "
                           "make_functional_with_buffers(model) instead.")
    function, parameters, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return lambda parameters, *args, **kwargs: function(parameters, (), *args, **kwargs), parameters


def combine_state_for_ensemble(models):
    """Modules of one kind as one function of their stacked parameters and buffers."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    function = make_functional_with_buffers(models[0])[0]
    parameters, buffers = stack_module_state(models)
    return function, tuple(parameters.values()), tuple(buffers.values())
