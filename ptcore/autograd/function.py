"""Custom functions: ``Function`` with ``forward``, ``backward`` and their context."""
import functools
import weakref
from copy import copy

from ptcore._interpret import innermost, outside, written_for_later
from ptcore._ops.creation.creation import zeros
from ptcore._ops.history import attach_history, custom_node
from ptcore._ops.writing import check_dirty
from ptcore._state import is_history_recorded, no_grad
from ptcore._subclass import payload_of
from ptcore._tensor import Tensor
from ptcore._watching import when_profiled
from ptcore.autograd.helpers import interposed, reduce_to

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """The state that ``forward`` and ``backward`` of one call share.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        One for each argument of ``apply``.
    saved_tensors : tuple of Tensor
        The arguments of ``save_for_backward``, checked for in-place changes since.
    """

    _saved = ()
    _dirty = ()
    _non_differentiable = ()
    _materialize = True
    _node = None
    _from_output = None
    _after = None                       # the node of the window that was written to, while a rule of a write runs
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keeps tensors (or None) for ``backward``."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward: only Tensors can be saved, got "
                                f"{type(t).__name__}")
        self._saved = tensors

    def save_for_forward(self, *tensors):
        """Keeps tensors for ``jvp``."""
        self._saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """Declares inputs that ``forward`` wrote to in place; they must be returned."""
        for k, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise RuntimeError(f"mark_dirty can only accept variables, but argument {k} is of type "
                                   f"{type(t).__name__}")
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Declares outputs without gradient."""
        for t in tensors:
            if not isinstance(t, Tensor):
                raise RuntimeError(f"mark_non_differentiable only accepts variable arguments, but got "
                                   f"{type(t).__name__}")
        self._non_differentiable = tensors

    def set_materialize_grads(self, value):
        """Whether ``backward`` gets zeros (True) or None for outputs without gradient."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self):
        if self._node is None:
            return tuple(self._saved)
        node = self._node()
        if node is None:
            raise RuntimeError(f"{self._forward_cls.__name__}: saved_tensors are gone with the outputs of this call, "
                               "whose history held them")
        values = []
        for k in range(self._n_saved):
            t = node.saved(k)
            if k in self._from_output and is_history_recorded():
                t = attach_history(t, node, self._from_output[k]) if self._after is None else attach_history(
                    t, self._after, 0)
            values.append(t)
        return tuple(values)


class FunctionRule:
    """The rule of one call, as the engine calls it."""
    takes_nothing = True                # it runs where no gradient comes, too

    def __init__(self, ctx, cls, metas, inputs):
        self.ctx, self.cls, self.metas = ctx, cls, metas
        self.n_inputs = len(inputs)
        self.specs = [(a.shape, a.dtype) if isinstance(a, Tensor) else None for a in inputs]
        self.__name__ = cls.__name__ + "Backward"

    def __call__(self, node, g, needs):
        ctx = self.ctx
        grads = list(g) if len(self.metas) > 1 else [g]
        if ctx._materialize:
            for i, meta in enumerate(self.metas):
                if grads[i] is None and meta is not None:
                    shape, dtype, device = meta
                    grads[i] = zeros(shape, dtype=dtype, device=device)
        backward = self.cls.backward
        if backward is Function.backward:
            backward = self.cls.vjp
        result = backward(ctx, *grads)
        result = result if isinstance(result, tuple) else (result,)
        if len(result) > self.n_inputs and all(r is None for r in result[self.n_inputs:]):
            result = result[:self.n_inputs]
        if len(result) != self.n_inputs:
            raise RuntimeError(f"{self.__name__}: backward returned {len(result)} gradients, "
                               f"expected {self.n_inputs}")
        return tuple([None if r is None else self.checked(i, r) for i, r in enumerate(result)])

    def after_write(self, node, g, needs, after):
        """The gradients of a function that wrote to a view. Its result, where it was saved, is the window of the base
        after the write, whose node is ``after``: see ``written_as``."""
        before, self.ctx._after = self.ctx._after, after
        try:
            return self(node, g, needs)
        finally:
            self.ctx._after = before

    def checked(self, i, r):
        """Gradient i in the shape and dtype of input i."""
        if not isinstance(r, Tensor):
            raise RuntimeError(f"{self.__name__}: gradient {i} must be a Tensor or None, got "
                               f"{type(r).__name__}")
        spec = self.specs[i]
        if spec is None:
            raise RuntimeError(f"{self.__name__}: gradient {i} must be None, as argument {i} was no Tensor")
        if r.shape == spec[0] and r.dtype is spec[1]:
            return r
        shape = spec[0]
        extra = r.ndim - len(shape)
        if extra < 0 or any(n not in (1, m) for n, m in zip(shape, r.shape[extra:])):
            raise RuntimeError(f"{self.__name__}: gradient {i} has the shape {list(r.shape)} but expected shape "
                               f"compatible with {list(shape)}")
        return reduce_to(r, spec)


class _FunctionMeta(type):
    """Gives each Function its own context class, by which ctx finds its function."""

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        cls._ctx_class = type(name + "Backward", (FunctionCtx,), {"_forward_cls": cls})


class Function(metaclass=_FunctionMeta):
    """Base of custom differentiable functions.

    Subclasses define static methods ``forward(ctx, *args)`` (or ``forward(*args)`` with
    ``setup_context(ctx, inputs, output)``) and ``backward(ctx, *grad_outputs)``, and are called
    by ``apply``.

    Examples
    --------
    >>> import ptcore
    >>> class Double(ptcore.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = ptcore.tensor(3., requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    generate_vmap_rule = False

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{type(self).__name__}: a Function is called by its class method "
                           "apply")

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("a custom Function must define setup_context")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("a custom Function must define backward or vjp to be "
                                  "differentiated")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap static "
                                  "method or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args, **kwargs):
        separate = cls.setup_context is not Function.setup_context
        if kwargs or (separate and getattr(cls.forward, "__defaults__", None)):
            args = _positional(cls, separate, args, kwargs)
        if interposed() and (not innermost().traces or _has_rule(args)):
            return _inside(cls, args, separate)
        return cls._called(args)[0]

    @classmethod
    def _called(cls, args, needs=()):
        """The outputs of a call, and its context. ``needs``: the ``needs_input_grad`` of a history that the caller
        records; that of the arguments is then recorded with a context of its own."""
        ctx = cls._ctx_class()
        separate = cls.setup_context is not Function.setup_context
        of_args = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        recording = is_history_recorded() and any(of_args)
        own = tuple([a or b for a, b in zip(of_args, needs)]) if needs else of_args
        of_values = innermost().custom_needs(args) if interposed() and is_history_recorded() else ()
        ctx.needs_input_grad = tuple([a or b for a, b in zip(own, of_values)]) if of_values else own
        top = innermost() if interposed() and not of_values else None      # else the call gives values their history
        if top is not None:
            top.bodies += 1
        try:
            with no_grad():
                if separate:
                    output = cls.forward(*args)
                    cls.setup_context(ctx, args, output)
                else:
                    output = cls.forward(ctx, *args)
        finally:
            if top is not None:
                top.bodies -= 1
        if of_values:
            output = innermost().custom_ran(cls, ctx, args, output)
        if not (needs and recording):
            return cls._recorded(ctx, args, output, recording), ctx
        apart = copy(ctx)
        apart.needs_input_grad = of_args
        return cls._recorded(apart, args, output, True), ctx

    @classmethod
    def _recorded(cls, ctx, args, output, recording):
        """The outputs with the history of the call."""
        single = not isinstance(output, (tuple, list))
        outputs = [output] if single else list(output)
        dirty = {id(t) for t in ctx._dirty}
        inputs = {id(a) for a in args if isinstance(a, Tensor)}
        saved = tuple(ctx._saved)
        without = {id(t) for t in ctx._non_differentiable}
        for i, t in enumerate(outputs):
            if not isinstance(t, Tensor):
                continue
            if id(t) in inputs and id(t) not in dirty:
                # An input that is returned becomes a new tensor. With history it is a view made in no_grad mode, which
                # may not be written to in place.
                if id(t) in without or t.dtype.kind not in "fc" or not (recording or written_for_later()):
                    outputs[i] = t.detach()
                    without.add(id(outputs[i]))
                else:
                    with no_grad():
                        outputs[i] = t.view_as(t)
        for t in ctx._dirty:
            if recording:
                check_dirty(t, len(outputs))
            if not any(t is o for o in outputs):
                raise RuntimeError(f"{cls.__name__}: a tensor marked dirty must be returned")
        if recording:
            tracked = [t if isinstance(t, Tensor) and id(t) not in without
                       and t.dtype.kind in "fc" else None for t in outputs]
            cls._hung(ctx, args, outputs, tracked, saved, dirty)
        if single:
            return outputs[0]
        return tuple(outputs) if isinstance(output, tuple) else outputs

    @classmethod
    def _hung(cls, ctx, args, outputs, tracked, saved, dirty):
        """Gives the ``tracked`` outputs the history of a call."""
        metas = [(t.shape, t.dtype, t.device) if isinstance(t, Tensor) else None for t in outputs]
        rule = FunctionRule(ctx, cls, metas, args)
        # The node owns the rule and through it ctx, so ctx refers to the node only weakly.
        node, ctx._from_output = custom_node(rule, list(args), tracked, saved, dirty)
        ctx._node = weakref.ref(node)
        ctx._n_saved = len(saved)
        ctx._saved = ()


def _has_rule(args):
    """Whether an interpreter that computes runs a call on values of vmap or forward mode, which have a rule for it."""
    if not innermost().computes:
        return False
    for x in args:
        payload = payload_of(x) if isinstance(x, Tensor) else None
        while payload is not None:
            if not payload.owner.traces:
                return True
            payload = payload_of(payload.tensor) if payload.tensor is not None else None
    return False


def _inside(cls, args, separate):
    """A call inside a transformation, which gets the whole call: the function's own methods give its derivatives there
    and in outer transformations. The history of the stand-ins themselves is recorded here."""
    top = innermost()
    if not any(isinstance(a, Tensor) and top.value(a) is not a for a in args):
        with outside():
            return cls.apply(*args)
    recording = is_history_recorded() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
    if not separate and top.needs_setup_context:
        raise without_setup_context(cls)
    needs = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
    found = top.custom_with_context(cls, args, needs) if recording and not separate else None
    if found is not None:
        output, ctx = found
        return cls._recorded(ctx, args, output, True)
    output = top.custom(cls, args)
    if not recording:
        return output
    ctx = cls._ctx_class()
    ctx.needs_input_grad = needs
    with no_grad():
        cls.setup_context(ctx, args, output)
    return cls._recorded(ctx, args, output, True)


def without_setup_context(cls):
    """The error for a function whose context cannot be set up apart from its ``forward``."""
    return RuntimeError("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...)"
                        f", it must override the setup_context staticmethod: {cls.__name__} does not.")


def _positional(cls, separate, args, kwargs):
    """Arguments of ``apply`` in the order of ``forward``, each of which gets a gradient.

    With a separate ``setup_context``, which gets all arguments, missing ones are filled with defaults.
    """
    import inspect
    parameters = list(inspect.signature(cls.forward).parameters.values())[0 if separate else 1:]
    try:
        bound = inspect.Signature(parameters).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{cls.__name__}.apply: {error}") from None
    if separate or bound.kwargs:
        bound.apply_defaults()
    for name in bound.kwargs:
        if name in kwargs:
            raise TypeError(f"{cls.__name__}.apply: forward() got an unexpected keyword argument "
                            f"{name!r}: its arguments must be positional")
    return bound.args


def once_differentiable(fn):
    """Decorator of a ``backward`` that cannot itself be differentiated: doing so raises."""
    @functools.wraps(fn)
    def wrapper(ctx, *args):
        with no_grad():
            result = fn(ctx, *args)
        if not is_history_recorded() or not any(isinstance(a, Tensor) and a.requires_grad
                                            for a in args):
            return result
        single = not isinstance(result, tuple)
        results = [result] if single else list(result)
        why = "trying to differentiate twice a function that was marked with @once_differentiable"
        results = [None if r is None else _Underived.apply(r, why, *args) for r in results]
        return results[0] if single else tuple(results)
    return wrapper


class _Underived(Function):
    """A view of a value whose derivative by ``args`` raises, in forward mode too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, why, *args):
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.why = inputs[1]

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.why)

    jvp = backward


@when_profiled
def _record_applications(begins):
    """Lets calls of custom Functions be recorded as ranges of a profile."""
    from ptcore.autograd.ranges import exchange
    exchange(begins, Function, "apply", lambda cls: cls.__name__)
