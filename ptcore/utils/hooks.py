"""Removable handles for hooks, and the autograd side of a module's full
backward hooks.

A handle refers to its table weakly: it keeps neither the table nor its owner
alive, and removing twice (or after the owner died) does nothing.
"""

import weakref
from collections import OrderedDict

import ptcore
from ptcore._state import is_history_recorded
from ptcore._subclass import payload_of
from ptcore.autograd.function import Function

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook"]


class RemovableHandle:
    """Handle that removes a registered hook.

    Parameters
    ----------
    hooks_dict : OrderedDict
        Table that holds the hook under ``handle.id``.
    extra_dict : dict or list of dict, optional
        Further tables that may hold an entry under the same id.

    Notes
    -----
    A handle is also a context manager: the hook is removed on exit.

    Examples
    --------
    >>> from collections import OrderedDict
    >>> table = OrderedDict()
    >>> handle = RemovableHandle(table)
    >>> table[handle.id] = print
    >>> handle.remove()
    >>> len(table)
    0
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = ()
        elif isinstance(extra_dict, dict):
            extra_dict = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self):
        """Remove the hook; does nothing when it is gone already."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self):
        return (
            self.hooks_dict_ref(),
            self.id,
            tuple(ref() for ref in self.extra_dict_ref),
        )

    def __setstate__(self, state):
        table, self.id, extra = state
        dead = OrderedDict()
        self.hooks_dict_ref = weakref.ref(dead if table is None else table)
        self.extra_dict_ref = tuple(
            weakref.ref(dead if d is None else d) for d in extra
        )
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc, tb):
        self.remove()


def unserializable_hook(f):
    """Mark the hook `f` as one that is deliberately not saved with its tensor."""
    f.__torch_unserializable__ = True
    return f


def _is_transformed(t):
    """Whether vmap or forward mode computes with `t`. As in PyTorch, its history
    is not the module's, and the hooks are not called."""
    payload = payload_of(t)
    return payload is not None and not payload.owner.traces


class BackwardHookFunction(Function):
    """Identity of tensors, whose node has the hooks of a module."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """One call of a module with full backward (pre-)hooks.

    The module's tensor inputs and outputs pass through an identity each. A hook
    of the node at the outputs runs the pre-hooks and remembers ``grad_output``;
    one of the node at the inputs runs the hooks on ``(grad_input, grad_output)``.
    Positions without a tensor hold None in both tuples. What the hooks return
    is checked as what any hook of a node returns.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.input_index = self.output_index = None

    def setup_input_hook(self, args):
        """Return `args` with every tensor passed through the input identity."""
        self.n_inputs = len(args)
        args, self.input_index = self._through_identity(
            args, self._at_inputs
        )
        return args

    def setup_output_hook(self, result):
        """Return the module's `result` passed through the output identity."""
        is_tuple = isinstance(result, tuple)
        outputs = result if is_tuple else (result,)
        self.n_outputs = len(outputs)
        outputs, self.output_index = self._through_identity(
            outputs, self._at_outputs
        )
        return outputs if is_tuple else outputs[0]

    @staticmethod
    def _through_identity(args, on_backward):
        index = [i for i, a in enumerate(args) if isinstance(a, ptcore.Tensor)]
        recorded = is_history_recorded() and any(
            args[i].requires_grad for i in index
        )
        if not recorded or any(_is_transformed(args[i]) for i in index):
            return args, None
        passed = BackwardHookFunction.apply(*[args[i] for i in index])
        node = next(t.grad_fn for t in passed if t.grad_fn is not None)
        node.register_hook(on_backward)
        replaced = list(args)
        for i, t in zip(index, passed, strict=True):
            replaced[i] = t
        if type(args) is tuple:
            return tuple(replaced), index
        return type(args)(*replaced), index

    @staticmethod
    def _spread(index, values, size):
        out = [None] * size
        for i, v in zip(index, values, strict=True):
            out[i] = v
        return tuple(out)

    def _at_outputs(self, _, grads):
        grad_outputs = self._spread(self.output_index, grads, self.n_outputs)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(grad_outputs):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(changed)}, but expected {len(grad_outputs)}"
                )
            grad_outputs = changed
        if self.input_index is None:
            self._hooks_without_input_grad(grad_outputs)
        else:
            self.grad_outputs = grad_outputs
        return tuple(grad_outputs[i] for i in self.output_index)

    def _hooks_without_input_grad(self, grad_outputs):
        import warnings

        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect "
            "to module outputs since no inputs require gradients.",
            stacklevel=2,
        )
        for hook in self.user_hooks:
            out = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if out is not None and not (
                isinstance(out, tuple) and all(g is None for g in out)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient "
                    "should always return None or None for all gradients."
                )

    def _at_inputs(self, grads, _):
        if self.grad_outputs is None:
            # The gradient reached the inputs without passing the outputs, as in
            # a double backward through the module.
            return None
        grad_inputs = self._spread(self.input_index, grads, self.n_inputs)
        for hook in self.user_hooks:
            out = hook(self.module, grad_inputs, self.grad_outputs)
            if out is None:
                continue
            if len(out) != len(grad_inputs):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(out)}, but expected {len(grad_inputs)}"
                )
            grad_inputs = out
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.input_index)
