"""Calls of modules with other parameters than their own, and stacks of parameters."""
from collections.abc import Sequence

from ptcore import stack
from ptcore.nn.utils import stateless

__all__ = ["functional_call", "stack_module_state"]


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with other parameters and buffers in place of its own.

    Parameters
    ----------
    module : Module
    parameter_and_buffer_dicts : dict of str to Tensor, or sequence of such
        Tensors by the names that :meth:`~ptcore.nn.Module.state_dict` gives them. The module's own tensors are used for
        other names. Assignments of the module to these names change the dictionary. A parametrised tensor given under
        its own name is used as it is, without the parametrisation.
    args : tuple or object, optional
        Arguments of the call; an object other than a tuple is the only argument.
    kwargs : dict, optional
    tie_weights : bool, default: True
        Whether a tensor that the module has under several names is replaced under all of them.
    strict : bool, default: False
        Whether the names must be all that the module has and no others.

    Returns
    -------
    object
        The result of the module.

    Raises
    ------
    ValueError
        If a name is in several dictionaries, or tied names are given different tensors.
    RuntimeError
        If names are missing or unexpected and `strict` is set.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.Linear(2, 1)
    >>> params = {"weight": ptcore.ones(1, 2), "bias": ptcore.zeros(1)}
    >>> ptcore.func.functional_call(layer, params, ptcore.tensor([3., 4.]))
    tensor([7.])
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, Sequence):
            raise ValueError("functional_call: Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
                             f"dicts, but got {type(given)}")
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("functional_call: Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        joined = {name: tensor for d in given for name, tensor in d.items()}
        if len(joined) < sum(map(len, given)):
            twice = [name for name in joined if sum(name in d for d in given) > 1]
            raise ValueError(f"functional_call: {twice} appeared in multiple dictionaries; behavior of functional call "
                             "is ambiguous")
        given = joined
    return stateless.call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """Stacks the parameters and buffers of several modules of one kind, by name.

    Parameters
    ----------
    models : list of Module

    Returns
    -------
    params, buffers : dict of str to Tensor
        The first dim counts the models. Parameters that require grad become leaves that do.

    Raises
    ------
    RuntimeError
        If there is no model, or they differ in class or in mode.

    Examples
    --------
    >>> import ptcore
    >>> params, buffers = ptcore.func.stack_module_state([ptcore.nn.Linear(3, 2) for _ in range(5)])
    >>> params["weight"].shape, buffers
    (ptcore.Size([5, 2, 3]), {})
    """
    from ptcore.nn.utils.parametrize import type_before_parametrizations

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    # Copies of a parametrised module have classes of their own.
    if len({(type_before_parametrizations(model), type(model).__name__) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables):
        result = {}
        for name in tables[0]:
            tensors = [table[name] for table in tables]
            needs = {tensor.requires_grad for tensor in tensors}
            if len(needs) > 1:
                raise RuntimeError(f"stack_module_state: Expected {name} from each model to have the same "
                                   ".requires_grad")
            result[name] = stack([t.detach() for t in tensors]).requires_grad_(needs.pop())
        return result

    return (stacked([dict(model.named_parameters()) for model in models]),
            stacked([dict(model.named_buffers()) for model in models]))
