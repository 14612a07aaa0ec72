"""The methods that autograd adds to Tensor and Node."""
from ptcore import _subclass, _untyped_storage  # noqa: F401  (their methods of Tensor)
from ptcore._node import AccumulateGrad, Node
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import need_tensors
from ptcore._ops.history import node_name, set_rebase_view
from ptcore._tensor import Tensor
from ptcore.autograd.entry import tensor_backward


def requires_grad_(self, requires_grad=True):
    """Sets ``requires_grad`` in place and returns the tensor."""
    need_tensors("requires_grad_", self=self)
    if not isinstance(requires_grad, bool):
        raise TypeError(f"requires_grad_: requires_grad must be bool, got "
                        f"{type(requires_grad).__name__}")
    self.requires_grad = requires_grad
    return self


def register_hook(self, hook):
    """Calls ``hook(grad)`` when this tensor's gradient is computed. A result other than None replaces the gradient.

    Returns
    -------
    handle
        Its ``remove()`` takes the hook off.
    """
    need_tensors("register_hook", self=self)
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.register_tensor_hook(self, hook)


def register_post_accumulate_grad_hook(self, hook):
    """Calls ``hook(tensor)`` after a gradient was added to this leaf's ``.grad``."""
    need_tensors("register_post_accumulate_grad_hook", self=self)
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.register_post_hook(self, hook)


def retain_grad(self):
    """Keeps ``.grad`` of this non-leaf tensor in backward."""
    need_tensors("retain_grad", self=self)
    from ptcore.autograd import _tensor_hooks
    _tensor_hooks.retain_grad(self)


for _f in (tensor_backward, requires_grad_, register_hook, register_post_accumulate_grad_hook,
           retain_grad):
    setattr(Tensor, _f.__name__, _f)
# Methods of lower layers, which cannot offer calls to ``__torch_function__``, and the methods above.
for _n in ("backward", "bernoulli_", "cauchy_", "copy_", "data_ptr", "exponential_", "fill_", "geometric_",
           "is_shared", "log_normal_", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros",
           "normal_", "numpy", "random_", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_",
           "resize_", "resize_as_", "retain_grad", "share_memory_", "tolist", "uniform_", "untyped_storage",
           "zero_"):
    _f = overridable(vars(Tensor)[_n])
    _f.__name__, _f.__qualname__, _f.__module__ = _n, f"Tensor.{_n}", "ptcore"      # the name by which pickle finds it
    setattr(Tensor, _n, _f)
Tensor._grad = Tensor.grad              # PyTorch's name beside it; a plain attribute would be no gradient


def register_node_hook(self, hook):
    """Calls ``hook(grad_inputs, grad_outputs)`` after this node's rule. A result other than None replaces
    ``grad_inputs``."""
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.register_node_hook(self, hook)


def register_node_prehook(self, hook):
    """Calls ``hook(grad_outputs)`` before this node's rule. A result other than None replaces ``grad_outputs``."""
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.register_node_prehook(self, hook)


def register_end_hook(self, hook):
    """Calls ``hook((), grad_outputs)`` after this leaf's gradient was accumulated."""
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.register_end_hook(self, hook)


def register_end_prehook(self, hook):
    """Calls ``hook(grad_outputs)`` before this leaf's gradient is accumulated. A result other than None replaces
    ``grad_outputs``."""
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.register_end_prehook(self, hook)


def node_attribute(self, name):
    """What this node saves, by PyTorch's names: see ``ptcore.autograd.saved``."""
    from ptcore.autograd import saved
    if name.startswith(("_saved_", "_raw_saved_")):
        return saved.value_of(self, name)
    context = None if name.startswith("__") else saved.context_of(self)
    if context is None:
        raise AttributeError(f"'{self.name()}' object has no attribute {name!r}")
    return getattr(context, name)


def node_dir(self):
    from ptcore.autograd import saved
    return [*object.__dir__(self), *saved.names_of(self)]


def end_metadata(self):
    """A dict for whoever walks the graph; it lives as long as the leaf."""
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.leaf_metadata(self.variable)


def node_metadata(self):
    """A dict for whoever walks the graph; it lives as long as the node."""
    from ptcore.autograd import _tensor_hooks
    return _tensor_hooks.node_hooks(self).metadata


Node.name = node_name
Node.__getattr__ = node_attribute
Node.__dir__ = node_dir
Node.metadata = property(node_metadata)
Node.register_hook = register_node_hook
Node.register_prehook = register_node_prehook
AccumulateGrad.metadata = property(end_metadata)
AccumulateGrad.register_hook = register_end_hook
AccumulateGrad.register_prehook = register_end_prehook


def _rebase_view(base, view, node):
    from ptcore.autograd import _copy_slices
    _copy_slices.rebase(base, view, node)


set_rebase_view(_rebase_view)
