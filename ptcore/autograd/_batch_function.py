"""Custom functions inside ``vmap``: by their own ``vmap``, or a function of stacks made from their own methods."""
import functools
from typing import NamedTuple

from ptcore._interpret import outside
from ptcore._ops.batching import Batched
from ptcore._tensor import Tensor
from ptcore._trees.tree import broadcast_leaves, tree_flatten, tree_unflatten
from ptcore.autograd.function import Function
from ptcore.autograd.helpers import reduce_to


class VmapInfo(NamedTuple):
    """What a custom function's ``vmap`` is told first."""

    batch_size: int
    randomness: str


def run(batcher, cls, args):
    """What a custom function gives for stand-ins of a batcher."""
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
                           "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden "
                           "vmap staticmethod to avoid ambiguity.")
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override "
                           "and implement the vmap staticmethod or set generate_vmap_rule=True.")
    values = batcher.values(args)
    batched = tuple([isinstance(x, Batched) for x in values])
    plain = [x.tensor if isinstance(x, Batched) else x for x in values]
    with outside():
        if own:
            in_dims = tuple([0 if b else None for b in batched])
            result = cls.vmap(VmapInfo(batcher.size, batcher.randomness), in_dims, *plain)
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{cls.__name__}: vmap must return a tuple (output, out_dims), got {type(result)}")
            output, dims = result
            flat, spec = tree_flatten(output)
            dims = broadcast_leaves(dims, spec)
            if dims is None:
                raise ValueError(f"{cls.__name__}: the out_dims that vmap returned do not fit its output {spec}")
            flat = [x if d is None else Batched(x.movedim(d, 0), batcher) for x, d in zip(flat, dims)]
        else:
            output = of_stacks(type(batcher), cls, batched, batcher.size, batcher.randomness).apply(*plain)
            flat, spec = tree_flatten(output)
            flat = [Batched(x, batcher) if isinstance(x, Tensor) else x for x in flat]
    return tree_unflatten([batcher.samples(x, args) for x in flat], spec)


@functools.lru_cache(maxsize=256)
def of_stacks(Batcher, cls, batched, size, randomness):
    """The Function of stacks that runs a Function's methods on their samples."""
    def stack_of(batcher, x):
        value = batcher.value(x)
        return value.tensor if isinstance(value, Batched) else value.unsqueeze(0).expand((size, *value.shape))

    def stacks(batcher, output):
        """All tensors of an output as stacks."""
        flat, spec = tree_flatten(output)
        return [stack_of(batcher, x) if isinstance(x, Tensor) else x for x in flat], spec

    def samples(batcher, args):
        return [batcher.sample(x) if b else x for x, b in zip(args, batched)]

    def inner_of(ctx):
        """The context that the methods see, with what was saved as samples again."""
        inner = ctx._inner
        inner.needs_input_grad = ctx.needs_input_grad
        kept = ctx.saved_tensors
        inner._saved = tuple([ctx._batcher.sample(x) if b else x for x, b in zip(kept, ctx._kept_batched)])
        return inner

    def keep(batcher, tensors):
        values = batcher.values(tensors)
        return ([x.tensor if isinstance(x, Batched) else x for x in values],
                tuple([isinstance(x, Batched) for x in values]))

    def forward(*args):
        with Batcher(size, randomness) as batcher:
            found, spec = stacks(batcher, cls.forward(*samples(batcher, args)))
        return tree_unflatten(found, spec)

    def setup_context(ctx, inputs, output):
        batcher, inner = Batcher(size, randomness), cls._ctx_class()
        inner.needs_input_grad = ctx.needs_input_grad
        flat, spec = tree_flatten(output)
        with batcher:
            outputs = [batcher.sample(x) if isinstance(x, Tensor) else x for x in flat]
            cls.setup_context(inner, tuple(samples(batcher, inputs)), tree_unflatten(outputs, spec))
        kept, ctx._kept_batched = keep(batcher, inner._saved)
        ahead, ctx._ahead_batched = keep(batcher, getattr(inner, "_saved_for_forward", ()))
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*ahead)
        without = {id(x) for x in inner._non_differentiable}
        ctx.mark_non_differentiable(*[x for x, y in zip(flat, outputs) if id(y) in without])
        ctx.set_materialize_grads(inner._materialize)
        inner._non_differentiable = ()
        ctx._batcher, ctx._inner = batcher, inner

    def backward(ctx, *grads):
        batcher = ctx._batcher
        with batcher:
            found = cls.backward(inner_of(ctx), *[None if g is None else batcher.sample(g) for g in grads])
        found = found if isinstance(found, tuple) else (found,)
        shapes = ctx._input_shapes
        return tuple([None if g is None else gradient(batcher, g, k, shapes[k]) for k, g in enumerate(found)])

    def gradient(batcher, g, k, spec):
        """Gradient k as that of a stack, or summed over the samples that share the argument."""
        if spec is not None:
            shape, dtype = spec
            with batcher:
                g = reduce_to(g, (tuple(shape[1:]) if batched[k] else tuple(shape), dtype))
        value = batcher.value(g)
        if batched[k]:
            return stack_of(batcher, g)
        return value.tensor.sum(0) if isinstance(value, Batched) else value * size

    def jvp(ctx, *tangents):
        batcher, inner = ctx._batcher, ctx._inner
        inner._saved_for_forward = tuple([batcher.sample(x) if b else x
                                          for x, b in zip(ctx._saved_for_forward, ctx._ahead_batched)])
        inner._saved = inner._saved_for_forward
        with batcher:
            found = cls.jvp(inner, *[batcher.sample(t) if b and t is not None else t
                                     for t, b in zip(tangents, batched)])
            found, spec = stacks(batcher, found)
        return tree_unflatten(found, spec)

    def with_shapes(ctx, inputs, output):
        ctx._input_shapes = [(x.shape, x.dtype) if isinstance(x, Tensor) else None for x in inputs]
        setup_context(ctx, inputs, output)

    return type("Vmapped" + cls.__name__, (Function,), {
        "forward": staticmethod(forward), "setup_context": staticmethod(with_shapes),
        "backward": staticmethod(backward), "jvp": staticmethod(jvp),
        "generate_vmap_rule": True, "__module__": cls.__module__})
