"""Forward and backward of callables as graphs: ``make_graphed_callables``."""
from ptcore import Tensor, autograd, empty_like
from ptcore._trees.tree import tree_flatten, tree_unflatten
from ptcore.amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled
from ptcore.autograd.function import Function, once_differentiable
from ptcore.cuda import synchronize
from ptcore.cuda.graphs import CUDAGraph, graph, graph_pool_handle
from ptcore.cuda.streams import Stream, current_stream, stream
from ptcore.nn.modules.module import Module


def _needing(tensors):
    return tuple([t for t in tensors if t.requires_grad])


def _leaves(name, args):
    leaves, _ = tree_flatten(args)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise TypeError(f"make_graphed_callables: {name} must hold tensors alone, got {type(x).__name__}")
    return tuple(leaves)


def _check(c):
    if c._backward_hooks or c._forward_hooks or c._forward_pre_hooks:
        raise RuntimeError("make_graphed_callables: a module must not have hooks yet; add them to what it is made of")
    if any(b.requires_grad for b in c.buffers()):
        raise RuntimeError("make_graphed_callables: buffers must not require gradients")


class _Captured:
    """One callable's graphs and the tensors that they read and write."""

    def __init__(self, function, args, warmups, unused):
        self.function, self.unused = function, unused
        self.args, self.inputs = args, _leaves("sample_args", args)
        self.shape = tree_flatten(args)[1]
        self.names = [n for n, _ in function.named_parameters()] if isinstance(function, Module) else []
        self.surface = self.inputs + (tuple(function.parameters()) if isinstance(function, Module) else ())
        for _ in range(warmups):
            outputs = _leaves("what a callable returns", function(*args))
            if _needing(outputs):
                grads = [empty_like(o) for o in _needing(outputs)]
                autograd.grad(_needing(outputs), _needing(self.surface), grads, allow_unused=unused)

    def capture_forward(self, pool):
        self.forward = CUDAGraph()
        with graph(self.forward, pool=pool):
            result = self.function(*self.args)
        self.addresses = [t.data_ptr() for t in self.surface]
        self.outputs, self.result_shape = _leaves("what a callable returns", result), tree_flatten(result)[1]

    def capture_backward(self, pool):
        needing = _needing(self.outputs)
        self.of_outputs = tuple([empty_like(o) if o.requires_grad else None for o in self.outputs])
        self.of_surface = (None,) * len(self.surface)
        self.backward = None
        if needing:
            self.backward = CUDAGraph()
            with graph(self.backward, pool=pool):
                given = [g for g in self.of_outputs if g is not None]
                found = iter(autograd.grad(needing, _needing(self.surface), given, allow_unused=self.unused))
            self.of_surface = tuple([next(found) if t.requires_grad else None for t in self.surface])

    def graphed(self):
        class Graphed(Function):
            @staticmethod
            def forward(ctx, *given):
                for number, (static, x) in enumerate(zip(self.surface, given, strict=True)):
                    if self.addresses[number] == x.data_ptr() and static.shape == x.shape:
                        continue
                    if number >= len(self.inputs):
                        raise RuntimeError(f"make_graphed_callables: the memory of the parameter "
                                           f"{self.names[number - len(self.inputs)]!r} is not the captured one: change "
                                           "parameters in place, or capture again")
                    if static.shape != x.shape:
                        raise RuntimeError(f"make_graphed_callables: argument {number} must have shape "
                                           f"{list(static.shape)}, as when it was captured, got {list(x.shape)}")
                    static.copy_(x, non_blocking=True)
                self.forward.replay()
                results = tuple([o.detach() for o in self.outputs])
                pairs = zip(results, self.outputs, strict=True)
                ctx.mark_non_differentiable(*[r for r, o in pairs if not o.requires_grad])
                return results

            @staticmethod
            @once_differentiable
            def backward(ctx, *grads):
                for static, g in zip(self.of_outputs, grads, strict=True):
                    if static is not None and g is None:
                        static.zero_()
                    elif static is not None and static.data_ptr() != g.data_ptr():
                        static.copy_(g)
                self.backward.replay()
                return tuple([g if g is None else g.detach() for g in self.of_surface])

        def call(*args):
            given = _leaves("arguments", args)
            if len(given) != len(self.inputs):
                raise TypeError(f"make_graphed_callables: expected {len(self.inputs)} tensors, as when it was "
                                f"captured, got {len(given)}")
            module = tuple(self.function.parameters()) if isinstance(self.function, Module) else ()
            return tree_unflatten(list(Graphed.apply(*given, *module)), self.result_shape)
        return call


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Callables whose forward and backward are graphs.

    Parameters
    ----------
    callables : callable or Module, or tuple of them
        Several are captured in the order in which they are going to run. A module is changed in place; it runs as
        before in the mode (``train`` or ``eval``) that it did not have here.
    sample_args : tuple of tensors, or tuple of such tuples
        Arguments of the shapes, dtypes and need for gradients that all later ones have. They become the graphs' inputs.
    num_warmup_iters : int
        How often each runs before.
    allow_unused_input : bool
        Whether an input may have no part in the outputs.
    pool : tuple, optional

    Returns
    -------
    callable or Module, or tuple of them

    Raises
    ------
    RuntimeError
        If a module has hooks or buffers that need gradients, or, when it is called, if the memory of a parameter is
        another one than before or an argument has another shape.
    """
    if is_autocast_enabled("cuda") and is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables: casts must not be cached: autocast(cache_enabled=False)")
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    if len(callables) != len(sample_args):
        raise ValueError(f"make_graphed_callables: sample_args must have a tuple for each of {len(callables)} "
                         f"callables, got {len(sample_args)}")
    for c in callables:
        if isinstance(c, Module):
            _check(c)
    pool = graph_pool_handle() if pool is None else pool
    synchronize()
    aside = Stream()
    aside.wait_stream(current_stream())
    with stream(aside):
        captured = [_Captured(c, args, num_warmup_iters, allow_unused_input)
                    for c, args in zip(callables, sample_args, strict=True)]
    synchronize()
    for c in captured:
        c.capture_forward(pool)
    for c in reversed(captured):
        c.capture_backward(pool)
    made = []
    for c in captured:
        call = c.graphed()
        if isinstance(c.function, Module):
            made.append(_instead(c.function, call))
        else:
            made.append(call)
    return made[0] if single else tuple(made)


def _instead(module, call):
    mode, forward = module.training, module.forward

    def chosen(*args):
        return call(*args) if module.training == mode else forward(*args)

    module.forward = chosen
    return module
