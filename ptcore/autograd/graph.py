"""The graph as data: saved-tensor hooks, gradient edges, and Node for annotations."""
import weakref
from functools import partial, wraps

from ptcore._node import Node
from ptcore._state import HooksRefused, SavedHooks
from ptcore._subclass import without_node
from ptcore._tensor import Tensor
from ptcore.autograd.edges import GradientEdge, get_gradient_edge, tensor_of
from ptcore.autograd.engine import ahead, run_number, watch

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks(SavedHooks):
    """Context manager: ``pack`` replaces each tensor that this thread saves for backward, ``unpack`` restores it.

    A backward calls ``unpack`` on the thread that it runs on. No other thread's tensors are packed.

    Parameters
    ----------
    pack_hook : callable(Tensor) -> object
    unpack_hook : callable(object) -> Tensor
    """

    def __init__(self, pack_hook, unpack_hook):
        def unpacked(value):
            t = unpack_hook(value)
            if not isinstance(t, Tensor):
                raise TypeError("saved_tensors_hooks: unpack_hook must return a Tensor, got "
                                f"{type(t).__name__}")
            return t
        super().__init__(pack_hook, unpacked)


class save_on_cpu(saved_tensors_hooks):
    """Context manager: tensors saved for backward are kept on the CPU until needed.

    Parameters
    ----------
    pin_memory : bool, default: False
        Whether a device's tensors are kept in page-locked memory, from which the copy back need not wait.
    device_type : str, default: "cuda"
        Has no effect: a tensor returns to its device.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(t):
            kept = t.cpu()
            return t.device, kept.pin_memory() if pin_memory and t.device.type not in ("cpu", "meta") else kept
        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=bool(pin_memory)))


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context manager: tensors saved for backward may be written to in place; the backward uses their old values.

    Tensors saved inside are copied at once, so each saved tensor takes its memory again. PyTorch copies only at a
    write.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(2, requires_grad=True)
    >>> with ptcore.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 3
    ...     z = y * y
    ...     _ = y.zero_()
    ...     z.sum().backward()
    >>> x.grad
    tensor([18., 18.])
    """

    _gives_itself = True

    def __init__(self):
        super().__init__(lambda t: without_node(t).clone(), lambda t: t)

    def clear(self):
        """Does nothing: the copies belong to the graph and are freed with it."""


class disable_saved_tensors_hooks(HooksRefused):
    """Context manager and decorator: entering `saved_tensors_hooks` inside, on this thread, raises RuntimeError with a
    message.

    Parameters
    ----------
    error_message : str

    Raises
    ------
    RuntimeError
        With that message, if such hooks are active already.
    """

    def __init__(self, error_message):
        super().__init__(error_message)

    def __call__(self, function):
        @wraps(function)
        def refusing(*args, **kwargs):
            with disable_saved_tensors_hooks(self.message):
                return function(*args, **kwargs)
        return refusing


def increment_version(tensor):
    """Marks tensors as written to, as an in-place op does: a backward that needs their old values raises.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensors
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version: tensor must be a Tensor or hold Tensors, got {type(t).__name__}")
        t.detach().as_strided((0,), (1,)).zero_()


_MANY = 64                      # backwards that are remembered as seen


class _Hooks:
    """Hooks on several tensors that call one function. They keep neither the tensors nor the graph alive."""

    def __init__(self, tensors, function, mode):
        self.ends = [weakref.ref(t if t.grad_fn is None else t.grad_fn) for t in tensors]
        self.function, self.mode = function, mode
        self.runs = {}                  # number of a backward -> [number of missing gradients, gradients so far]
        self.handles = [t.register_hook(partial(self.arrived, i)) for i, t in enumerate(tensors)
                        if mode == "all" or t.requires_grad]
        watch(self, True)

    def arrived(self, i, grad):
        run = run_number()
        if self.mode == "any":
            if run not in self.runs:
                self.runs[run] = None
                if len(self.runs) > _MANY:
                    del self.runs[next(iter(self.runs))]
                self.function(grad)
            return
        if run not in self.runs:
            self.runs[run] = [sum(ahead([end() for end in self.ends])), [None] * len(self.ends)]
        state = self.runs[run]
        state[0] -= 1
        state[1][i] = grad
        if state[0] == 0:
            del self.runs[run]
            self.function(state[1])

    def remove(self):
        for handle in self.handles:
            handle.remove()
        watch(self, False)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls a function when a backward has computed the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensor or GradientEdge
    fn : callable
        With ``"all"`` it gets the list of gradients when this backward has computed them, with None for the tensors
        that it does not reach; with ``"any"`` it gets the first gradient.
    mode : {"all", "any"}

    Returns
    -------
    handle
        ``handle.remove()`` takes the hooks off; also a context manager.

    Raises
    ------
    ValueError
        If ``mode`` is another word.

    Examples
    --------
    >>> import ptcore
    >>> a, b = ptcore.ones(2, requires_grad=True), ptcore.ones(2, requires_grad=True)
    >>> hook = ptcore.autograd.graph.register_multi_grad_hook((a, b), lambda grads: print(len(grads)))
    >>> (a * b).sum().backward()
    2
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: Expects mode to be one of ('all', 'any') but got {mode}")
    return _Hooks([t if isinstance(t, Tensor) else tensor_of(t, "register_multi_grad_hook") for t in tensors], fn, mode)
