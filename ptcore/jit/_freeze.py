"""``freeze`` and ``optimize_for_inference``: programs whose tensors are constants."""
from typing import Any

from ptcore.fx.graph_module import GraphModule, assign
from ptcore.fx.node import attribute_at
from ptcore.jit._script.modules import RecursiveScriptModule, unmarked
from ptcore.jit._trace import Traced, TracedMethod
from ptcore.jit.passes import absorb_affine, copy_of, fold, merge_equal, written_to
from ptcore.nn.modules.module import Module

__all__ = ["freeze", "optimize_for_inference", "run_frozen_optimizations"]


def freeze(mod, preserved_attrs=None, optimize_numerics=True) -> Any:
    """A module whose parameters and buffers are constants of its graphs.

    In a traced module, nodes that depend on constants alone are computed once, and equal computations are done once;
    both keep the bits. With ``optimize_numerics``, batch normalization and additions and multiplications by constants
    are multiplied into the weights of the convolution or linear layer before them: results may be rounded differently.
    In a scripted module, submodules and functions are inlined, attributes that no method sets become constants, and
    branches on these constants are decided; results are the same bits.

    Parameters
    ----------
    mod : ScriptModule
        A result of :func:`trace`, :func:`trace_module` or :func:`script`, in ``eval`` mode.
    preserved_attrs : list of str, optional
        Names of tensors that stay parameters and buffers, and of methods that are kept beside ``forward``; of a
        scripted module also of other attributes and of submodules.
    optimize_numerics : bool, default: True

    Returns
    -------
    ScriptModule
        A new module; ``mod`` is unchanged.

    Raises
    ------
    RuntimeError
        If the module is in training mode, a traced one writes to its tensors, or a scripted one has hooks or calls
        methods that Python runs (``@ignore``).

    Examples
    --------
    >>> import ptcore
    >>> from ptcore import nn
    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    >>> frozen = ptcore.jit.freeze(ptcore.jit.trace(net, ptcore.ones(2, 1, 8, 8)))
    >>> [n.target.__name__ for n in frozen.graph.nodes if n.op == "call_function"][-2:]
    ['convolve', 'relu']
    >>> list(frozen.parameters())
    []
    """
    mod = unmarked(mod)
    if not isinstance(mod, (Traced, RecursiveScriptModule)):
        raise RuntimeError(f"freeze: expected a ScriptModule, got {type(mod).__name__}")
    if mod.training:
        raise RuntimeError("freeze: the module is in training mode; call eval() before it is traced or frozen")
    kept = list(preserved_attrs or ())
    for name in kept:
        if not hasattr(mod, name):
            raise RuntimeError(f"freeze: the module has no attribute {name!r} that could be preserved")
    if isinstance(mod, RecursiveScriptModule):
        from ptcore.jit._script.inline import frozen
        return frozen(mod, kept)
    made = Traced(name=mod.original_name)
    made.train(False)
    tensors = dict([*mod.named_parameters(), *mod.named_buffers()])
    for name, x in tensors.items():
        if name in kept:
            assign(x, made, name)
    for name, method in mod._traced.items():
        if name == "forward" or name in kept:
            made.add(name, _frozen(method, kept, optimize_numerics))
    made._non_persistent_buffers_set.update([name for name in made._buffers if name not in kept])
    return made


def _frozen(method, kept, optimize_numerics):
    root = Module()
    for node in method.graph.find_nodes(op="get_attr"):
        x = attribute_at(method.root, node.target)
        assign(x if node.target in kept else x.detach().clone(), root, node.target)
    source = GraphModule(method.root, method.graph)
    module = GraphModule(root, copy_of(source).graph)
    written = _written_tensors(module)
    if written - {*kept}:
        raise RuntimeError(f"freeze: {method.name} writes to {sorted(written)[0]}; name it in preserved_attrs")
    fold(module, lambda name: name not in kept)
    merge_equal(module)
    if optimize_numerics:
        absorb_affine(module, lambda name: name not in kept)
    return TracedMethod(method.name, _renamed(module, kept, method.name), method.names, method.in_spec, method.out_spec)


def _renamed(module, kept, prefix):
    """The graph with its constants renamed: no other method has the names. Unused constants are left out."""
    root, names = Module(), {}
    for node in module.graph.find_nodes(op="get_attr"):
        name = node.target
        if name not in kept:
            name = names.setdefault(node.target, f"_{prefix}_{len(names)}")
        assign(attribute_at(module, node.target), root, name)
        node.target = name
    return GraphModule(root, module.graph)


def _written_tensors(module):
    """The names of tensors that a graph writes to."""
    return {n.target for n in written_to(module.graph) if n.op == "get_attr"}


def tensors_of(module):
    return [name for name, _ in [*module.named_parameters(), *module.named_buffers()]]


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Runs the passes of :func:`freeze` again over a frozen module, in place. A scripted module has none.

    Parameters
    ----------
    mod : ScriptModule
    optimize_numerics : bool, default: True
    preserved_methods : list of str, optional
        More methods than ``forward``; all methods of a frozen module are its own.
    """
    if isinstance(mod, RecursiveScriptModule):
        return
    if not isinstance(mod, Traced):
        raise RuntimeError(f"run_frozen_optimizations: expected a frozen ScriptModule, got {type(mod).__name__}")
    own = mod._non_persistent_buffers_set
    kept = [name for name in tensors_of(mod) if name not in own]
    for name, method in list(mod._traced.items()):
        frozen = _frozen(method, kept, optimize_numerics)
        for node in method.graph.find_nodes(op="get_attr"):
            if node.target in own:
                delattr(mod, node.target)
                own.discard(node.target)
        mod.add(name, frozen)
        own.update([n.target for n in frozen.graph.find_nodes(op="get_attr") if n.target not in kept])


def optimize_for_inference(mod, other_methods=None) -> Any:
    """Freezes a module for inference. In a traced module, batch normalization goes into the layers before it.

    Results may be rounded differently from those of ``mod``.

    Parameters
    ----------
    mod : ScriptModule
        In ``eval`` mode; it may be frozen already.
    other_methods : list of str, optional
        Methods that are kept beside ``forward``.

    Returns
    -------
    ScriptModule

    Examples
    --------
    >>> import ptcore
    >>> net = ptcore.nn.Sequential(ptcore.nn.Linear(2, 3), ptcore.nn.BatchNorm1d(3)).eval()
    >>> fast = ptcore.jit.optimize_for_inference(ptcore.jit.trace(net, ptcore.ones(4, 2)))
    >>> [n.target.__name__ for n in fast.graph.nodes if n.op == "call_function"][-1]
    'linear'
    """
    return freeze(mod, list(other_methods or ()))
