"""Checkpoints: parts of a model whose intermediate results are computed again in the backward pass.

Checkpoints trade time for memory. The tensors that such a part would save for the backward are dropped. When the
backward reaches the part, it is run again with the random numbers of the first run.
"""
import ptcore
from ptcore import _random
from ptcore._contexts import Changed
from ptcore._interpret import entered
from ptcore._ops.checked import integer
from ptcore._subclass import payload_of, without_node
from ptcore.amp.autocast_mode import same_autocast
from ptcore.autograd.engine import asks_for_inputs
from ptcore.autograd.function import Function, once_differentiable
from ptcore.autograd.graph import saved_tensors_hooks
from ptcore.utils._selective import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType",
           "SelectiveCheckpointContext", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
           "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
           "set_device_states"]

_defaults = {"debug": None, "early_stop": None, "device_type": None}


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


def noop_context_fn():
    """Two contexts that do nothing."""
    from contextlib import nullcontext
    return nullcontext(), nullcontext()


def _warn(message, depth):
    import warnings

    warnings.warn(message, stacklevel=depth + 1)


def _random_state(state):
    """A context with the default generators in kept states, if there are any; at its end they are restored."""
    return noop_context_fn()[0] if state is None else _random.States(state)


class CheckpointFunction(Function):
    """The reentrant form: the second run is a backward inside the first."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Run the function without recording it."""
        if not any(isinstance(a, ptcore.Tensor) and a.requires_grad for a in args):
            _warn("checkpoint: None of the inputs have requires_grad=True. Gradients will be None", 3)
        ctx.run_function = run_function
        ctx.state = _random.get_states() if preserve_rng_state else None
        ctx.autocast = same_autocast()
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, ptcore.Tensor)]
        ctx.others = [None if isinstance(a, ptcore.Tensor) else a for a in args]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with ptcore.no_grad():
            return run_function(*args)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        """Run the function again, recorded, and call its backward."""
        if asks_for_inputs(ctx._node()):
            raise RuntimeError("checkpoint: with use_reentrant=True gradients come from backward() alone, since the "
                               "backward inside gives its gradients to all leaves; grad(), backward(inputs=...) and "
                               "func need use_reentrant=False")
        args = list(ctx.others)
        for i, t in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = t.detach().requires_grad_(t.requires_grad)
        with _random_state(ctx.state), ctx.autocast, ptcore.enable_grad():
            outs = ctx.run_function(*args)
        outs = (outs,) if isinstance(outs, ptcore.Tensor) else outs
        pairs = [(o, g) for o, g in zip(outs, grads, strict=True) if isinstance(o, ptcore.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("checkpoint: none of output has requires_grad=True, this checkpoint() is not necessary")
        ptcore.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[a.grad if isinstance(a, ptcore.Tensor) else None for a in args])


class _Enough(Exception):
    """Ends a second run once it has saved all tensors that the first one saved."""


def _kept_by(number_of):
    """Hooks that number the saved tensors, but those of transformations that begin later: these are kept.

    Such a transformation ends before the function does, and a second run has others.
    """
    outer = entered()

    def pack(x):
        payload = payload_of(x)
        return number_of(x) if payload is None or payload.owner in outer else without_node(x)
    return pack


class _Replay:
    """The tensors that a checkpointed function saved, by number; a second run fills them in.

    A backward inside of the function asks for tensors before the first run has saved all, and gets them from a run that
    goes as far. Later numbers need another run. So does a tensor that the second run has written to after it had saved
    it: another run ends as soon as it has saved it.
    """

    def __init__(self, again, check, early_stop):
        self.again, self.check, self.early_stop = again, check, early_stop
        self.described = []             # (shape, dtype) of the tensors that the first run has saved so far
        self.whole = False              # whether the first run has ended
        self.found = []                 # tensors that the last run saved, with their versions then

    def pack(self, x):
        self.described.append((tuple(x.shape), x.dtype))
        return len(self.described) - 1

    def unpack(self, number):
        if isinstance(number, ptcore.Tensor):
            return number
        if number >= len(self.found):
            self.found = self.run_again(len(self.described), self.early_stop)
        return self.unwritten(self.found, number)

    def unwritten(self, found, number):
        """A tensor of a run, as it was saved."""
        x, version = found[number]
        if x._version != version:
            found[number] = x, _ = self.run_again(number + 1, True)[number]
        return x

    def run_again(self, wanted, early_stop):
        """The tensors that another run saves with their versions, ``wanted`` or more if it does not stop early."""
        found = []

        def keep(x):
            x = without_node(x)         # at the levels of transformations it is what it was
            found.append((x, x._version))
            if early_stop and len(found) == wanted:
                raise enough
            return len(found) - 1

        enough = _Enough()
        try:
            with saved_tensors_hooks(_kept_by(keep), lambda x: x if isinstance(x, ptcore.Tensor)
                                     else self.unwritten(found, x)):
                self.again()
        except _Enough as e:
            if e is not enough:         # raised for an enclosing checkpoint
                raise
        seen = [(tuple(x.shape), x.dtype) for x, _ in found]
        described = self.described[:wanted]
        whole = self.whole and wanted == len(self.described)
        if len(seen) < wanted or (self.check and (seen if whole else seen[:wanted]) != described):
            raise CheckpointError("checkpoint: Recomputed values have different metadata than those of the forward "
                                  "pass. A different number of tensors was saved, or others: "
                                  f"{wanted} and {len(seen)}, {described} and {seen}")
        return found


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default",
               debug=False, early_stop=True, **kwargs):
    """Run a function whose intermediate results are computed again in the backward pass.

    Parameters
    ----------
    function : callable
    *args, **kwargs
        The function's arguments. ``preserve_rng_state=False`` among the keywords: the second run need not draw the
        random numbers of the first.
    use_reentrant : bool
        True: a backward inside the backward, which knows no keyword arguments, no :func:`ptcore.autograd.grad` and no
        inputs that need no gradient. False is recommended; it must be said which.
    context_fn : callable, optional
        Makes two context managers, for the first run and the second; see :func:`create_selective_checkpoint_contexts`.
    determinism_check : {"default", "none"}
        Whether both runs must save tensors of the same shapes and dtypes.
    early_stop : bool, default: True
        Whether the second run ends when it has saved as many tensors as the first; see
        :func:`set_checkpoint_early_stop`.

    Returns
    -------
    object
        The result of the function.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.utils.checkpoint import checkpoint
    >>> x = ptcore.tensor([0.5], requires_grad=True)
    >>> checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([1.4174])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        _warn("checkpoint: the use_reentrant parameter should be passed explicitly; use_reentrant=False is "
              "recommended, the default is True", 2)
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(f"checkpoint: Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("checkpoint: Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check should be 'default' or 'none', got {determinism_check!r}")
    if (debug if _defaults["debug"] is None else _defaults["debug"]) and context_fn is not noop_context_fn:
        raise ValueError("checkpoint: debug=True is incompatible with non-default context_fn")
    if not ptcore.is_grad_enabled():
        return function(*args, **kwargs)
    state = _random.get_states() if preserve else None
    first, second = context_fn()
    autocast = same_autocast()
    given = [(x, x._version) for x in (*args, *kwargs.values()) if isinstance(x, ptcore.Tensor)
             and not x.is_inference()]

    def again():
        for x, version in given:
            if x._version != version:
                raise RuntimeError("one of the variables needed for gradient computation has been modified by an "
                                   f"inplace operation: {x.dtype.name}{list(x.shape)}, an argument of checkpoint(), is "
                                   f"at version {x._version}; expected version {version} instead")
        with _random_state(state), autocast, ptcore.enable_grad(), second:
            function(*args, **kwargs)

    stop = early_stop if _defaults["early_stop"] is None else _defaults["early_stop"]
    replay = _Replay(again, determinism_check == "default", stop)
    with saved_tensors_hooks(_kept_by(replay.pack), replay.unpack), first:
        result = function(*args, **kwargs)
        replay.whole = True
        return result
    raise RuntimeError("checkpoint: the forward context provided by context_fn suppressed an exception raised during "
                       "the checkpointed forward, which then has no value to return")


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Run a sequence of modules in segments; every segment except the last is a checkpoint.

    Parameters
    ----------
    functions : Sequential or list of callable
    segments : int
    input : Tensor
    use_reentrant : bool
        See :func:`checkpoint`.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.utils.checkpoint import checkpoint_sequential
    >>> model = ptcore.nn.Sequential(ptcore.nn.Linear(2, 3), ptcore.nn.ReLU(), ptcore.nn.Linear(3, 1))
    >>> checkpoint_sequential(model, 2, ptcore.ones(4, 2), use_reentrant=False).shape
    ptcore.Size([4, 1])
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        _warn("checkpoint_sequential: the use_reentrant parameter should be passed explicitly; "
              "use_reentrant=False is recommended, the default is True", 2)
        use_reentrant = True
    if kwargs:
        raise ValueError(f"checkpoint_sequential: Unexpected keyword arguments: {','.join(kwargs)}")
    functions = list(functions.children() if isinstance(functions, ptcore.nn.Sequential) else functions)

    def part(start, end):
        def run(x):
            for f in functions[start:end]:
                x = f(x)
            return x
        return run

    segments = integer("checkpoint_sequential", "segments", segments)
    if not 1 <= segments <= max(len(functions), 1):
        raise ValueError("checkpoint_sequential: segments must be from 1 to the number of functions, "
                         f"{len(functions)}, got {segments}")
    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), max(size, 1)):
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end, len(functions))(input)


def set_checkpoint_early_stop(enable):
    """A context for forward passes: whether second runs stop when they have saved all tensors that the backward needs.

    It overrides the argument ``early_stop`` of checkpoints.

    >>> import ptcore
    >>> from ptcore.utils.checkpoint import checkpoint, set_checkpoint_early_stop
    >>> x = ptcore.tensor([2.], requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = checkpoint(lambda x: x * x, x, use_reentrant=False)
    >>> y.backward()
    >>> x.grad
    tensor([4.])
    """
    return Changed((_defaults, {"early_stop": enable}))


def set_checkpoint_debug_enabled(enabled):
    """A context that sets ``debug`` of all checkpoints; None leaves it to their arguments.

    With or without it, errors name the shapes and dtypes that both runs saved.
    """
    return Changed((_defaults, {"debug": enabled}))


class DefaultDeviceType:
    """The kind of device whose random state :func:`set_device_states` sets."""

    @staticmethod
    def set_device_type(device="cuda"):
        """Sets the type of device."""
        _defaults["device_type"] = device

    @staticmethod
    def get_device_type():
        """The type that was set, otherwise the accelerator's, otherwise ``"cpu"``."""
        if not _defaults["device_type"]:
            found = ptcore.accelerator.current_accelerator()
            _defaults["device_type"] = "cpu" if found is None else found.type
        return _defaults["device_type"]


def get_device_states(*args):
    """The numbers and random states of the devices, other than the CPU, of tensors among the arguments."""
    found = []

    def visit(x):
        if isinstance(x, ptcore.Tensor) and x.device.type not in ("cpu", "meta"):
            found.append(x.get_device())
        elif isinstance(x, (list, tuple)):
            for item in x:
                visit(item)
        elif isinstance(x, dict):
            visit(list(x.values()))

    visit(args)
    if not found:
        return [], []
    from ptcore.cuda import random
    return found, [random.get_rng_state(index) for index in found]


def set_device_states(devices, states, *, device_type=None):
    """Sets the random states of devices, as :func:`get_device_states` gave them."""
    device_type = DefaultDeviceType.get_device_type() if device_type is None else device_type
    if device_type in ("cpu", "cuda") and devices:
        from ptcore.cuda import random
        for index, state in zip(devices, states):
            random.set_rng_state(state, index)
