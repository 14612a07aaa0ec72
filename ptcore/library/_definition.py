"""The parts of a custom op, and the order in which a call uses them.

``Definition`` is the body of one op. A call goes through autocast, then the history for backward and transformations,
then a kernel for the device; on meta tensors the fake. Interpreters of whole calls (``__torch_function__``, tracers)
come before. The order is that of PyTorch's dispatcher.
"""
import ptcore
from ptcore._interpret import innermost
from ptcore._ops import namespaces
from ptcore._ops.namespaces import below_autograd, is_below_autograd, thread
from ptcore._ops.table import register
from ptcore._ops.table.function_schema import FunctionSchema
from ptcore._state import is_history_recorded, no_grad
from ptcore._tensor import Tensor
from ptcore.amp.autocast_mode import autocast, is_autocast_enabled
from ptcore.autograd.function import Function
from ptcore.autograd.graph import increment_version
from ptcore.autograd.helpers import interposed

__all__ = ["Definition", "NoFakeError", "below_autograd", "define", "definition_of", "find", "remove"]

EXPLICIT, IMPLICIT = "explicit", "implicit"  # kernels for all devices; an implicit one gets the history of its ops
META = "meta"


class NoFakeError(NotImplementedError, RuntimeError):
    """Raised where a custom op is called on tensors without values, and it has no fake."""


def tensors_in(values):
    """The tensors among values, also inside lists."""
    for x in values:
        if isinstance(x, Tensor):
            yield x
        elif type(x) is list or type(x) is tuple:
            for y in x:
                if isinstance(y, Tensor):
                    yield y


def memory_of(x):
    """The address of a tensor's memory; 0 if it has none."""
    return x.untyped_storage().data_ptr() if x.device.type != META and x.numel() else 0


class Definition:
    """One overload of a custom op.

    Attributes
    ----------
    qualname : str
        ``"namespace::name"``, with ``".overload"`` if it is not the default one.
    schema : FunctionSchema
    function : OpFunction
        The function that users call and that graphs hold.
    kernels : dict
        Device type, or "explicit" or "implicit" for all devices, to a function.
    fake, vmap, backward, setup_context, autograd : callable or None
        ``autograd`` is a function that sees to gradients itself; it takes the place of the other two.
    autocast : dict
        Device type to the dtype that tensors are cast to, or to a function that is called in the op's place.
    demands_formula : bool
        Whether a gradient without a formula raises (ops of ``custom_op``), or warns and is none (``Library``).
    """

    def __init__(self, schema, tags=(), demands_formula=False):
        self.schema, self.tags, self.demands_formula = schema, tuple(tags), demands_formula
        name, overload = schema.name, schema.overload_name
        self.qualname = f"{name}.{overload}" if overload else name
        self.positional = len([a for a in schema.arguments if not a.kwarg_only])
        self.names = [a.name for a in schema.arguments[self.positional:]]
        self.mutates = schema.mutates
        self.kernels, self.with_keyset, self.autocast = {}, set(), {}
        self.fake = self.vmap = self.backward = self.setup_context = self.autograd = None
        self.disabled = set()
        self.checks = None              # for custom_op: checks the results of a kernel
        self.promised = {}              # results of fakes in graphs: description of arguments -> of results
        self._class = None
        self.function = register.register_custom(self.qualname, schema, self)

    def __repr__(self):
        return f"<definition of {self.schema}>"

    def __call__(self, *args):
        args = self.converted(args)
        if self.autocast:
            cast = self.cast(args)
            if cast is not None:
                return cast()
        if thread.skips is self:
            thread.skips = None
        elif not is_below_autograd():
            if self.autograd is not None:
                return self.call_kernel(self.autograd, args)
            if self.records(args):
                return self.recorded(args)
        if self.is_implicit(args):
            return self.call_kernel(self.kernels[IMPLICIT], args)
        return self.run(args)

    def converted(self, args):
        return [a.convert(self.qualname, x) for a, x in zip(self.schema.arguments, args)]

    def comes_first(self, args):
        """Whether casts or a history are to be handled before a tracer writes the call, or the op is only the calls in
        its function."""
        if self.autocast and self.cast(args) is not None:
            return True
        if thread.skips is not self and not is_below_autograd() and (
                self.autograd is not None or self.has_history(args)):
            return True
        return self.is_implicit(args)

    # -- autocast --------------------------------------------------------------------------------------------------

    def cast(self, args):
        """The function to call in place of this op if autocast casts its arguments, or None."""
        device = self.device_of(args)
        rule = self.autocast.get(device)
        if rule is None or not is_autocast_enabled(device):
            return None

        def cast(x):
            if type(x) is list:
                return [cast(y) for y in x]
            of_rule = isinstance(x, Tensor) and x.is_floating_point() and x.device.type == device
            return x.to(rule) if of_rule and x.dtype is not ptcore.float64 else x

        def call():
            if not isinstance(rule, ptcore.dtype):
                return self.call_kernel(rule, args)
            with autocast(device, enabled=False):
                return self.again([cast(x) for x in args])
        return call

    def again(self, args):
        return self.function(*args[:self.positional], **dict(zip(self.names, args[self.positional:])))

    # -- histories and transformations -----------------------------------------------------------------------------

    def has_history(self, args):
        return is_history_recorded() and any(x.requires_grad for x in tensors_in(args))

    def records(self, args):
        """Whether gradients or a transformation are to be handled before the kernel runs."""
        if interposed() and not innermost().traces:
            return True
        return self.has_history(args)

    def recorded(self, args):
        if self.backward is None and self.vmap is None and self.is_implicit(args):
            return self.call_kernel(self.kernels[IMPLICIT], args)
        if self.demands_formula and is_history_recorded():
            self.refuse_writes(args)
        if self._class is None:
            self._class = _function_of(self)
        call = _Call(args, is_history_recorded())
        results = self._class.apply(call, *call.leaves)
        return call.results(results)

    def refuse_writes(self, args):
        """Refuses to write to a leaf that requires grad; an op that writes has no formula."""
        for k in self.mutates:
            for x in tensors_in([args[k]]):
                if x.requires_grad and x.is_leaf:
                    raise RuntimeError(f"{self.qualname}: a leaf Variable that requires grad is being used in an "
                                       f"in-place operation (argument {self.schema.arguments[k].name!r})")

    # -- kernels ---------------------------------------------------------------------------------------------------

    def device_of(self, args):
        """The type of the device that runs a call: meta before accelerators before the CPU."""
        found = None
        for x in tensors_in(args):
            kind = x.device.type
            if kind == META:
                return META
            if found is None or found == "cpu":
                found = kind
        if found is None:
            found = next((x.type for x, a in zip(args, self.schema.arguments)
                          if isinstance(x, ptcore.device) and "Device" in str(a.type)), "cpu")
        return found

    def kernel_for(self, args):
        """The kernel of a call, or None."""
        device, kernels = self.device_of(args), self.kernels
        if device == META and self.fake is not None:
            return self.fake
        found = kernels.get(device)
        if found is None or device in self.disabled:
            found = None if device == META and self.demands_formula else kernels.get(EXPLICIT)
        return kernels.get(IMPLICIT) if found is None else found

    def is_implicit(self, args):
        """Whether the kernel of a call is implicit, so that the call consists of the ops it calls."""
        found = self.kernels.get(IMPLICIT)
        return found is not None and self.kernel_for(args) is found

    def call_unrecorded(self, kernel, args):
        if is_history_recorded():
            with no_grad():
                return self.call_kernel(kernel, args)
        return self.call_kernel(kernel, args)

    def run(self, args):
        """Runs the kernel on values."""
        kernel = self.kernel_for(args)
        if kernel is None:
            raise self.no_kernel(args)
        for k in self.mutates:
            for x in tensors_in([args[k]]):
                increment_version(x)
        if is_below_autograd():
            with below_autograd(False):
                result = self.call_unrecorded(kernel, args)
        else:
            result = self.call_unrecorded(kernel, args)
        if self.checks is not None and kernel is not self.fake:
            self.checks(kernel, args, result)
        if self.promised and kernel is not self.fake:
            self.keep_promise(args, result)
        return result

    def call_kernel(self, kernel, args):
        if self.names:
            named = dict(zip(self.names, args[self.positional:]))
            args = args[:self.positional]
            if kernel in self.with_keyset:
                return kernel(None, *args, **named)
            return kernel(*args, **named)
        return kernel(None, *args) if kernel in self.with_keyset else kernel(*args)

    def no_kernel(self, args):
        device = self.device_of(args)
        if device == META:
            return NoFakeError(f"There was no fake impl registered for {self.qualname}: library.register_fake says "
                               "what its results look like, which meta tensors, traces and compile need")
        known = ", ".join(sorted(self.kernels)) or "none"
        return NotImplementedError(f"Could not run '{self.qualname}' with arguments from the '{device}' backend: no "
                                   f"kernel is registered for it, there is: {known}")

    # -- promises of fakes -----------------------------------------------------------------------------------------

    def promise(self, args, result):
        """Notes a fake's description of results, which a graph relies on."""
        self.promised[_described(args)] = _described([result])

    def keep_promise(self, args, result):
        expected = self.promised.get(_described(args))
        if expected is not None and expected != _described([result]):
            raise RuntimeError(f"{self.qualname}: the fake implementation says that the result is "
                               f"{_spelled(expected)}, but the kernel gave {_spelled(_described([result]))}")

    # -- registration ----------------------------------------------------------------------------------------------

    def set_autograd_formula(self, backward, setup_context):
        self.backward, self.setup_context, self._class = backward, setup_context, None

    def set_vmap(self, vmap):
        self.vmap, self._class = vmap, None


def _described(values):
    """Shapes and dtypes of the tensors among values."""
    found = []
    for x in values:
        if isinstance(x, Tensor):
            found.append((tuple(x.shape), x.dtype))
        elif isinstance(x, (list, tuple)):
            found.append(_described(x))
        else:
            try:
                hash(x)
            except TypeError:
                x = repr(x)
            found.append(x)
    return tuple(found)


def _spelled(described):
    texts = [f"{x[1]}{list(x[0])}" if isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], ptcore.dtype)
             else f"({_spelled(x)})" if isinstance(x, tuple) else repr(x) for x in described]
    return ", ".join(texts)


# -- the history of a call --------------------------------------------------------------------------------------------

class _Call:
    """The structure of a call's arguments and results, which a Function takes and gives as single values."""

    def __init__(self, args, grad_enabled):
        self.grad_enabled = grad_enabled            # the mode at the call of the op
        self.leaves, self.lengths = [], []          # of each argument: the number of tensors of a list, otherwise None
        for x in args:
            if type(x) is list and x and all(y is None or isinstance(y, Tensor) for y in x):
                self.lengths.append(len(x))
                self.leaves += x
            else:
                self.lengths.append(None)
                self.leaves.append(x)
        self.shape = None

    def nested(self, leaves):
        order = iter(leaves)
        return [next(order) if n is None else [next(order) for _ in range(n)] for n in self.lengths]

    def flat(self, result):
        """The results as single values; their structure is noted."""
        self.shape = type(result) if isinstance(result, (tuple, list)) else None
        if self.shape is None:
            self.counts = [None]
            return (result,)
        self.counts = [len(r) if isinstance(r, (list, tuple)) else None for r in result]
        return tuple([y for r in result for y in (r if isinstance(r, (list, tuple)) else (r,))])

    def grouped(self, values):
        order = iter(values)
        return [next(order) if n is None else [next(order) for _ in range(n)] for n in self.counts]

    def results(self, values):
        found = self.grouped(values)
        return found[0] if self.shape is None else self.shape(found)

    def gradients(self, name, grads, positional):
        """A gradient for each leaf, from a formula's gradients for the positional arguments."""
        grads = grads if isinstance(grads, tuple) else (grads,)
        if len(grads) != positional:
            raise RuntimeError(f"{name}: the backward formula must return {positional} gradients, one for each "
                               f"argument, got {len(grads)}")
        found = []
        for k, (g, n) in enumerate(zip((*grads, *[None] * (len(self.lengths) - positional)), self.lengths)):
            if n is None:
                found.append(g)
            elif g is None:
                found += [None] * n
            elif not isinstance(g, (list, tuple)) or len(g) != n:
                raise RuntimeError(f"{name}: Expected the return from backward to be of the same structure as the "
                                   f"inputs: argument {k} is a list of {n} tensors, got {type(g).__name__}")
            else:
                found += g
        return tuple(found)


def _function_of(own):
    """The Function of an op, whose methods call the registered functions."""
    name = own.qualname

    def forward(call, *leaves):
        before = thread.skips, thread.grad_enabled
        thread.skips, thread.grad_enabled = own, call.grad_enabled
        try:
            return call.flat(own.again(call.nested(leaves)))
        finally:
            thread.skips, thread.grad_enabled = before

    def setup_context(ctx, inputs, output):
        call = inputs[0]
        ctx._call = call
        if own.setup_context is None:
            return
        needs = ctx.needs_input_grad                # empty if tangents are computed
        ctx.needs_input_grad = tuple(call.nested(needs[1:] or [False] * len(call.leaves))[:own.positional])
        values = call.nested(inputs[1:])
        found = {"inputs": tuple(values[:own.positional]), "output": call.results(output)}
        if own.names:
            found["keyword_only_inputs"] = dict(zip(own.names, values[own.positional:]))
        try:
            own.setup_context(ctx, **found)
        finally:
            ctx.needs_input_grad = needs

    def backward(ctx, *grads):
        call = ctx._call
        if own.backward is None:
            if own.demands_formula:
                raise RuntimeError(f"Trying to backward through {name} but no autograd formula was registered. Please "
                                   "use register_autograd to add one.")
            from ptcore._errors import warn
            warn(f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop "
                 "through it. This may lead to silently incorrect behavior.")
            return (None,) * (1 + len(call.leaves))
        needs = ctx.needs_input_grad
        ctx.needs_input_grad = tuple(call.nested(needs[1:])[:own.positional])
        try:
            found = own.backward(ctx, *call.grouped(grads))
        finally:
            ctx.needs_input_grad = needs
        return (None, *call.gradients(name, found, own.positional))

    def vmap(info, in_dims, call, *leaves):
        dims = call.nested(in_dims[1:])
        values = call.nested(leaves)
        if own.vmap is None:
            result, out_dims = _one_by_one(own, info, dims, values)
        else:
            named = dict(zip(own.names, values[own.positional:]))
            found = own.vmap(info, tuple(dims[:own.positional]), *values[:own.positional], **named)
            if not isinstance(found, tuple) or len(found) != 2:
                raise RuntimeError(f"{name}: the function of register_vmap must return (output, out_dims), got "
                                   f"{type(found).__name__}")
            result, out_dims = found
        flat = call.flat(result)
        if call.shape is None:
            return flat, (out_dims,)
        spread = []
        listed = isinstance(out_dims, (tuple, list))
        for k, n in enumerate(call.counts):
            d = out_dims[k] if listed else out_dims
            spread += [d] if n is None else list(d) if isinstance(d, (tuple, list)) else [d] * n
        return flat, tuple(spread)

    kind = "GeneratedBackwardFor_" + name.replace("::", "_").replace(".", "_")
    return type(kind, (Function,), {
        "forward": staticmethod(forward), "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward), "vmap": staticmethod(vmap), "__module__": __name__})


def _one_by_one(own, info, dims, values):
    """Runs the op on one sample after another, for ops without a batch rule."""
    def sample(x, d, k):
        if type(x) is list:
            return [sample(y, e, k) for y, e in zip(x, d)] if isinstance(d, list) else x
        return x if d is None else x.select(d, k)

    for k in own.mutates:
        if any(x is not None and d is None for x, d in _pairs(values[k], dims[k])):
            raise RuntimeError(f"vmap: {own.qualname} writes to {own.schema.arguments[k].name!r}, which is not batched")
    if not info.batch_size:
        raise RuntimeError(f"vmap: {own.qualname} has no rule for batches (register_vmap), and the batch is empty")
    found = [own.again([sample(x, d, k) for x, d in zip(values, dims)]) for k in range(info.batch_size)]

    def stacked(parts):
        if isinstance(parts[0], Tensor):
            return ptcore.stack(parts)
        if isinstance(parts[0], (tuple, list)):
            return type(parts[0])([stacked(p) for p in zip(*parts, strict=True)])
        if any(p != parts[0] and (p == p or parts[0] == parts[0]) for p in parts):     # all may be NaN
            raise RuntimeError(f"vmap: {own.qualname} gives a number for each sample, and they differ: {parts[0]!r} "
                               "and others; return a tensor, or register a rule for batches (register_vmap)")
        return parts[0]
    result = stacked(found)

    def out_dims(x):
        if isinstance(x, (tuple, list)):
            return type(x)([out_dims(y) for y in x])
        return 0 if isinstance(x, Tensor) else None
    return result, out_dims(result)


def _pairs(x, d):
    return zip(x, d) if type(x) is list and isinstance(d, list) else [(x, d)]


# -- the table of definitions -----------------------------------------------------------------------------------------

def define(schema, tags=(), demands_formula=False):
    """Makes an op of a schema whose name has a namespace.

    Raises
    ------
    RuntimeError
        If there is one of that name.
    """
    overload = schema.overload_name or "default"
    known = namespaces.custom.get(schema.name, {})
    if overload in known:
        raise RuntimeError(f"Tried to register an operator ({schema}) with the same name and overload name multiple "
                           "times: it is defined already")
    if namespaces.packet(schema.name) is not None and not known:
        raise RuntimeError(f"{schema.name} is an op of ptcore itself, which cannot be defined again")
    made = Definition(schema, tags, demands_formula)
    namespaces.custom.setdefault(schema.name, {})[overload] = made.function
    return made


def remove(definition):
    """Removes an op from the table."""
    schema = definition.schema
    own = namespaces.custom.get(schema.name, {})
    if own.get(schema.overload_name or "default") is definition.function:
        del own[schema.overload_name or "default"]
        if not own:
            del namespaces.custom[schema.name]
        register.forget(definition.qualname)


def definition_of(function):
    """The definition of an op's function; None for a row of the table."""
    return namespaces.definition_of(function)


def find(name):
    """The definition of ``"namespace::name"`` or ``"namespace::name.overload"``; None if there is none."""
    space, _, rest = name.rpartition("::")
    rest, _, overload = rest.partition(".")
    function = namespaces.custom.get(f"{space}::{rest}", {}).get(overload or "default")
    return None if function is None else definition_of(function)


def with_namespace(schema, space):
    """A schema with the namespace in its name."""
    return FunctionSchema(f"{space}::{schema.name}", schema.overload_name, schema.arguments, schema.returns)
