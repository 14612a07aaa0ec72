"""Custom functions inside ``vmap``: run by their own ``vmap``, or by a function of stacks made from their methods."""
import functools
from typing import NamedTuple

from ptcore._interpret import outside
from ptcore._ops.batching import Batched
from ptcore._tensor import Tensor
from ptcore._trees.tree import broadcast_leaves, tree_flatten, tree_unflatten
from ptcore.autograd.function import Function
from ptcore.autograd.helpers import reduce_to


class VmapInfo(NamedTuple):
    """The first argument of a custom function's ``vmap``."""

    batch_size: int
    randomness: str


def run(batcher, cls, args):
    """Runs a custom function on stand-ins of a batcher."""
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
            flat = [x if d is None or not isinstance(x, Tensor) else Batched(x.movedim(d, 0), batcher)
                    for x, d in zip(flat, dims)]
        else:
            output = of_stacks(type(batcher), cls, batched, batcher.size, batcher.randomness).apply(*plain)
            flat, spec = tree_flatten(output)
            flat = [Batched(x, batcher) if isinstance(x, Tensor) else x for x in flat]
    return tree_unflatten([batcher.samples(x, args) for x in flat], spec)


@functools.lru_cache(maxsize=256)
def of_stacks(Batcher, cls, batched, size, randomness):
    """A Function of stacks, which runs another Function's methods on the samples."""
    methods = _OfStacks(lambda: Batcher(size, randomness), cls, batched, size)
    names = "forward", "setup_context", "backward", "jvp"
    return type("Vmapped" + cls.__name__, (Function,), {
        **{name: staticmethod(getattr(methods, name)) for name in names},
        "generate_vmap_rule": True, "__module__": cls.__module__})


class _OfStacks:
    """The methods of a Function of stacks.

    ``ctx._samples`` of a call is a tuple: the batcher; the context for the methods of ``cls``; for each tensor saved
    for ``backward`` whether it is a stack; the same for ``jvp``; the shapes and dtypes of the arguments.

    Parameters
    ----------
    batcher : callable
        Makes a batcher.
    cls : type
        The Function of samples.
    batched : tuple of bool
        Which arguments are stacks.
    size : int
        The number of samples.
    """

    def __init__(self, batcher, cls, batched, size):
        self.batcher, self.cls, self.batched, self.size = batcher, cls, batched, size

    def stack_of(self, batcher, x):
        value = batcher.value(x)
        return value.tensor if isinstance(value, Batched) else value.unsqueeze(0).expand((self.size, *value.shape))

    def stacks(self, batcher, output):
        """An output with all of its tensors as stacks."""
        flat, spec = tree_flatten(output)
        return [self.stack_of(batcher, x) if isinstance(x, Tensor) else x for x in flat], spec

    def samples(self, batcher, args):
        return [batcher.sample(x) if b else x for x, b in zip(args, self.batched)]

    def forward(self, *args):
        with self.batcher() as batcher:
            found, spec = self.stacks(batcher, self.cls.forward(*self.samples(batcher, args)))
        return tree_unflatten(found, spec)

    def setup_context(self, ctx, inputs, output):
        batcher, inner = self.batcher(), self.cls._ctx_class()
        inner.needs_input_grad = ctx.needs_input_grad
        flat, spec = tree_flatten(output)
        with batcher:
            arguments = self.samples(batcher, inputs)
            for x, b, needed in zip(arguments, self.batched, ctx.needs_input_grad):
                if b and needed:        # a function may mark outputs by what its arguments require
                    x.requires_grad_()
            # An argument that forward wrote to and returned is one object, as mark_dirty expects.
            of_argument = {id(x): y for x, y in zip(inputs, arguments) if isinstance(x, Tensor)}
            outputs = [of_argument.get(id(x), batcher.sample(x)) if isinstance(x, Tensor) else x for x in flat]
            self.cls.setup_context(inner, tuple(arguments), tree_unflatten(outputs, spec))
        kept, are_stacks = _values(batcher, inner._saved)
        ahead, ahead_are_stacks = _values(batcher, getattr(inner, "_saved_for_forward", ()))
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*ahead)
        without = {id(x) for x in inner._non_differentiable}
        ctx.mark_non_differentiable(*[x for x, y in zip(flat, outputs) if id(y) in without])
        written = {id(x) for x in inner._dirty}
        ctx.mark_dirty(*[x for x, y in zip(inputs, arguments) if id(y) in written])
        ctx.set_materialize_grads(inner._materialize)
        inner._non_differentiable = inner._dirty = ()
        shapes = [(x.shape, x.dtype) if isinstance(x, Tensor) else None for x in inputs]
        ctx._samples = batcher, inner, are_stacks, ahead_are_stacks, shapes

    def backward(self, ctx, *grads):
        batcher, inner, are_stacks, _, shapes = ctx._samples
        inner.needs_input_grad = ctx.needs_input_grad
        inner._saved = _samples(batcher, ctx.saved_tensors, are_stacks)
        with batcher:
            found = self.cls.backward(inner, *[None if g is None else batcher.sample(g) for g in grads])
        found = found if isinstance(found, tuple) else (found,)
        return tuple([None if g is None else self.gradient(batcher, g, k, shapes[k]) for k, g in enumerate(found)])

    def gradient(self, batcher, g, k, shape):
        """Gradient k: a stack if argument k is one, otherwise summed over the samples that share the argument."""
        if shape is not None:
            sizes, dtype = shape
            with batcher:
                g = reduce_to(g, (tuple(sizes[1:]) if self.batched[k] else tuple(sizes), dtype))
        if self.batched[k]:
            return self.stack_of(batcher, g)
        value = batcher.value(g)
        return value.tensor.sum(0) if isinstance(value, Batched) else value * self.size

    def jvp(self, ctx, *tangents):
        batcher, inner, _, are_stacks, _ = ctx._samples
        inner._saved = inner._saved_for_forward = _samples(batcher, ctx._saved_for_forward, are_stacks)
        with batcher:
            found = self.cls.jvp(inner, *[batcher.sample(t) if b and t is not None else t
                                          for t, b in zip(tangents, self.batched)])
            found, spec = self.stacks(batcher, found)
        return tree_unflatten(found, spec)


def _values(batcher, tensors):
    """The values of stand-ins, and for each whether it is a stack."""
    values = batcher.values(tensors)
    return ([x.tensor if isinstance(x, Batched) else x for x in values],
            tuple([isinstance(x, Batched) for x in values]))


def _samples(batcher, tensors, are_stacks):
    """The samples of stacks; other tensors are returned unchanged."""
    return tuple([batcher.sample(x) if b else x for x, b in zip(tensors, are_stacks)])
