"""Hooks on tensors and nodes, and their handles."""
import itertools
import weakref

from ptcore._ops.table.ids import op_name
from ptcore._tensor import Tensor

_ids = itertools.count()


class RemovableHandle:
    """``remove()`` takes a hook off; also a context manager."""

    def __init__(self, hooks):
        self.id = next(_ids)
        self._hooks = weakref.ref(hooks)

    def remove(self):
        hooks = self._hooks()
        if hooks is not None and self.id in hooks:
            del hooks[self.id]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class HookDict(dict):
    """A dict that can be referred to weakly. That of a leaf's post hooks also holds the leaf's metadata."""

    __slots__ = ("__weakref__", "metadata")


def replaced(hook, g, result):
    """The gradient after a hook: ``g`` itself if the hook returned None, otherwise its result, checked."""
    if result is None:
        return g
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, Tensor):
        raise TypeError(f"hook {name!r}: must return None or a Tensor, got "
                        f"{type(result).__name__}")
    if g is not None and result.shape != g.shape:
        raise RuntimeError(f"hook {name!r}: has changed the size of the gradient from "
                           f"{list(g.shape)} to {list(result.shape)}")
    if g is not None and result.dtype is not g.dtype:
        raise RuntimeError(f"hook {name!r}: has changed the dtype of the gradient from "
                           f"{g.dtype.name} to {result.dtype.name}")
    return result


def replaced_all(hook, grads, result):
    """The same for the tuple of gradients that a node's hook sees; None in a result means no gradient."""
    if result is None:
        return grads
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, tuple):
        if len(grads) != 1 or not isinstance(result, Tensor):
            raise TypeError(f"hook {name!r}: must return None or a tuple of {len(grads)} gradients, got "
                            f"{type(result).__name__}")
        result = (result,)
    if len(result) != len(grads):
        raise RuntimeError(f"hook {name!r}: must return {len(grads)} gradients, got {len(result)}")
    for g, r in zip(grads, result):
        if r is not None:
            if g is None and isinstance(r, Tensor):
                raise RuntimeError(f"hook {name!r}: can't replace a None gradient with a non-None value")
            replaced(hook, g, r)
    return result


def seen_outputs(node):
    """How many outputs a node has for its hooks, as in PyTorch: not indices, masks and statistics at the end.

    Those of custom Functions count, whatever they are.
    """
    if node.nout == 1 or node.op < 0 or not node.out_meta:
        return node.nout
    name = op_name(node.op)
    if name.endswith("_stats"):     # rows whose further outputs are kept for the gradient alone
        return node.nout if name == "group_norm_stats" else 1
    count = node.nout
    while count > 1 and not (node.out_meta[count - 1][1].is_floating_point or node.out_meta[count - 1][1].is_complex):
        count -= 1
    return count


class NodeHooks:
    """The hooks of one node, before its rule (by output) and after it, and what its users keep with it."""

    def __init__(self):
        self.metadata = {}
        self.tensor = {}                # output number -> HookDict of hooks on that gradient
        self.retain = {}                # output number -> weak reference to the tensor
        self.pre = HookDict()
        self.post = HookDict()

    def of_tensors(self, g):
        """The gradients after the hooks of the node's outputs, before they are captured."""
        if not self.tensor and not self.retain:
            return g
        single = not isinstance(g, (list, tuple))
        grads = [g] if single else list(g)
        for nr, hooks in self.tensor.items():
            for hook in list(hooks.values()):
                if grads[nr] is not None:
                    grads[nr] = replaced(hook, grads[nr], hook(grads[nr]))
        for nr, ref in self.retain.items():
            t = ref()
            if t is not None and grads[nr] is not None:
                # A copy: the gradient that is passed on may be expanded, or serve another tensor as well.
                t.grad = grads[nr].clone() if t.grad is None else t.grad + grads[nr]
        return grads[0] if single else grads

    def of_nothing(self, grads):
        """The gradients that the hooks of the node's outputs give in place of None."""
        for nr, hooks in self.tensor.items():
            for hook in list(hooks.values()):
                grads[nr] = replaced(hook, grads[nr], hook(grads[nr]))
        return grads

    def of_node(self, node, g):
        """The gradients after the hooks of the node itself, before its rule."""
        if not self.pre:
            return g
        if not isinstance(g, (list, tuple)):
            grads, rest = (g,), None
        else:
            count = seen_outputs(node)
            grads, rest = tuple(g[:count]), g[count:]
        for hook in list(self.pre.values()):
            grads = replaced_all(hook, grads, hook(grads))
        return grads[0] if rest is None else [*grads, *rest]

    def after(self, node, grads, g):
        if not self.post:
            return grads
        seen = (g,) if node.nout == 1 else tuple(g[:seen_outputs(node)])
        for hook in list(self.post.values()):
            grads = replaced_all(hook, grads, hook(grads, seen))
        return grads


def node_hooks(node):
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


def register_tensor_hook(t, hook):
    if not t.requires_grad:
        raise RuntimeError("register_hook: cannot register a hook on a tensor that doesn't "
                           "require gradient")
    node = t.grad_fn
    if node is not None:
        hooks = node_hooks(node).tensor.setdefault(t.output_nr, HookDict())
        handle = RemovableHandle(hooks)
    else:
        extras = t._extras
        if extras.hooks is None:
            extras.hooks = HookDict()
        hooks = extras.hooks
        handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_hook(t, hook):
    if t.grad_fn is not None or not t.requires_grad:
        raise RuntimeError("register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on "
                           "non-leaf tensors, nor on those that do not require grad")
    extras = t._extras
    if extras.post_hooks is None:
        extras.post_hooks = HookDict()
    handle = RemovableHandle(extras.post_hooks)
    extras.post_hooks[handle.id] = hook
    return handle


def leaf_metadata(t):
    """What users keep with the end of the graph at a leaf."""
    extras = t._extras
    if extras.post_hooks is None:
        extras.post_hooks = HookDict()
    if not hasattr(extras.post_hooks, "metadata"):
        extras.post_hooks.metadata = {}
    return extras.post_hooks.metadata


def retain_grad(t):
    if not t.requires_grad:
        raise RuntimeError("retain_grad: the tensor does not require grad")
    node = t.grad_fn
    if node is None or t.retains_grad:
        return
    node_hooks(node).retain[t.output_nr] = weakref.ref(t)
    t._set_retain_grad()


def register_node_hook(node, hook):
    """``node.register_hook(hook)``: ``hook(grad_inputs, grad_outputs)`` after the rule."""
    hooks = node_hooks(node).post
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_node_prehook(node, hook):
    """``node.register_prehook(hook)``: ``hook(grad_outputs)`` before the rule."""
    hooks = node_hooks(node).pre
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class EndHook:
    """A hook of the node that accumulates the gradient of a leaf; it stands among the leaf's post hooks."""

    __slots__ = ("before", "function")

    def __init__(self, function, before):
        self.function, self.before = function, before


def register_end_hook(end, hook):
    """``end.register_hook(hook)``: ``hook((), grad_outputs)`` after the gradient was accumulated."""
    return register_post_hook(end.variable, EndHook(hook, False))


def register_end_prehook(end, hook):
    """``end.register_prehook(hook)``: ``hook(grad_outputs)`` before the gradient is accumulated."""
    return register_post_hook(end.variable, EndHook(hook, True))


# -- leaves: run by the engine ----------------------------------------------------------------------

def through_hooks(t, g):
    """The gradient of a leaf after its hooks."""
    hooks = t._extras.hooks
    if hooks:
        for hook in list(hooks.values()):
            g = replaced(hook, g, hook(g))
    return g


def finish_leaf(t, g, create_graph, accumulate):
    """Runs a leaf's hooks on the sum, or on None, and accumulates the result by ``accumulate``."""
    extras = t._extras
    g = through_hooks(t, g)
    if not extras.post_hooks:
        if g is not None:
            accumulate(t, g, create_graph, 0)
        return
    hooks = list(extras.post_hooks.values())
    of_node = [hook for hook in hooks if type(hook) is EndHook]
    for hook in of_node:
        if hook.before:
            g = replaced_all(hook.function, (g,), hook.function((g,)))[0]
    if g is not None:
        accumulate(t, g, create_graph, 0)
    for hook in hooks:
        if type(hook) is not EndHook:
            result = hook(t)
            if result is not None:
                cls = RuntimeError if isinstance(result, Tensor) else TypeError
                raise cls("Tensor post accumulate grad hooks should return None, got " + type(result).__name__)
    for hook in of_node:
        if not hook.before:
            replaced_all(hook.function, (), hook.function((), (g,)))
