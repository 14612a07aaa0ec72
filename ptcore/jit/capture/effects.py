"""Effects of a captured call: gradients of leaves, steps of optimizers and schedulers.

Effects run after the rows of a segment, in the way of eager calls: a leaf's hooks run, and a learning rate or a step
count is read at that time. So nothing of an optimizer's state is guarded. Reads after a step belong to the next
segment.
"""
import ptcore
from ptcore._node import user_at
from ptcore._ops.optimizers import optimizers
from ptcore._subclass import carried_by
from ptcore._tensor import Tensor
from ptcore.autograd import entry
from ptcore.autograd.engine import run_backward
from ptcore.autograd.function import Function
from ptcore.jit._entry import AddGradients, CallMethod, PutGradient, has_gradient_hooks
from ptcore.jit.capture import calls
from ptcore.jit.capture.tracer import Unsupported
from ptcore.nn.modules.module import Module
from ptcore.optim.optimizer import Optimizer
from ptcore.optim.scheduler import LRScheduler

PAIRS = 64                              # more tensors than make so many are guarded to be distinct all at once
# Objects whose methods change them, and the methods that are called as they are.
OUTSIDE = ((Optimizer, ("step", "zero_grad")), (LRScheduler, ("step",)))


class Outside:
    """A method of an object from outside, called between segments."""

    __slots__ = ("name", "owner")
    is_outside = True

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def call(self, r, args, kwargs):
        """Notes the call, which runs after the rows so far."""
        if self.name == "zero_grad":
            none = kwargs.get("set_to_none", (*args, True)[0])
            r.capture.add_effect(Call(self, args, kwargs, not none))
            return
        if isinstance(self.owner, Optimizer) and any([callable(x) for x in (*args, *kwargs.values())]):
            r.unsupported("it calls an optimizer's step with a closure")
        r.capture.add_effect(Call(self, args, kwargs, True))


def outside_method(x, name):
    """The method of an optimizer or a scheduler that is called as it is; None for other objects."""
    for cls, names in OUTSIDE:
        if name in names and isinstance(x, cls):
            return Outside(x, name)
    return None


# -- effects ----------------------------------------------------------------------------------------------------------
# An effect first holds sources, objects and stand-ins, then their places among the inputs and results of a segment.
# ``ends`` says that any later row or guard may read what the effect writes. ``kept`` returns a function that takes the
# effect back.

class Gradients(AddGradients):
    """Gradients that are added to those of leaves, as in a backward."""

    __slots__ = ("ends",)

    def __init__(self):
        self.leaves, self.results, self.ends = [], [], False

    def place_results(self, output_of):
        self.results = tuple([output_of(x) for x in self.results])

    def place_inputs(self, input_of):
        self.leaves = tuple([input_of(x) for x in self.leaves])

    def kept(self, inputs):
        return restored_grads([inputs[k] for k in self.leaves])


class SetGrad(PutGradient):
    """A leaf whose gradient is set, to None or to a tensor."""

    __slots__ = ()
    ends = False

    def __init__(self, leaf, value):
        self.leaf, self.value = leaf, value

    def place_results(self, output_of):
        self.value = None if self.value is None else output_of(self.value)

    def place_inputs(self, input_of):
        self.leaf = input_of(self.leaf)

    def kept(self, inputs):
        return restored_grads([inputs[self.leaf]])


class Call(CallMethod):
    """A call of an object's method."""

    __slots__ = ("args", "ends", "kwargs")

    def __init__(self, method, args, kwargs, ends):
        self.owner, self.name, self.args, self.kwargs, self.ends = method.owner, method.name, args, kwargs, ends
        self.plain = False

    def place_inputs(self, input_of):
        self.owner = input_of(self.owner)

    def place_results(self, output_of):
        def placed(x):
            return Result(output_of(x)) if isinstance(x, Tensor) else x
        self.args, self.kwargs = [placed(x) for x in self.args], {k: placed(x) for k, x in self.kwargs.items()}
        self.plain = not self.args and not self.kwargs

    def given(self, results):
        """The arguments, of which some are results of the segment."""
        def value(x):
            return results[x.place] if type(x) is Result else x
        return [value(x) for x in self.args], {k: value(x) for k, x in self.kwargs.items()}

    def kept(self, inputs):
        owner = inputs[self.owner]
        if isinstance(owner, Optimizer):
            return restored_optimizer(owner)
        return restored_grads(owner.parameters()) if isinstance(owner, Module) else restored_scheduler(owner)


class Result:
    """The place of an argument among the results of a segment."""

    __slots__ = ("place",)

    def __init__(self, place):
        self.place = place


# -- taking back ------------------------------------------------------------------------------------------------------

def restored_grads(leaves):
    """A function that restores the present gradients of some leaves."""
    before = [(p, p.grad, None if p.grad is None else p.grad.detach().clone()) for p in leaves]

    def restore():
        for p, grad, values in before:
            p.grad = grad
            if grad is not None:
                grad.data.copy_(values)
    return restore


def restored_optimizer(optimizer):
    """A function that undoes changes of an optimizer, its parameters and their gradients."""
    groups = [(group, dict(group)) for group in optimizer.param_groups]
    leaves = [p for group in optimizer.param_groups for p in group["params"]]
    values = [p.detach().clone() for p in leaves]
    grads = restored_grads(leaves)
    own, state = dict(optimizer.__dict__), {}
    for key, entries in optimizer.state.items():
        state[key] = {k: (v, v.detach().clone() if isinstance(v, Tensor) else v) for k, v in entries.items()} \
            if isinstance(entries, dict) else entries

    def restore():
        grads()
        optimizer.__dict__.update(own)
        for group, entries in groups:
            group.clear()
            group.update(entries)
        for p, x in zip(leaves, values):
            p.data.copy_(x)
        optimizer.state.clear()
        for key, entries in state.items():
            optimizer.state[key] = entries
            if isinstance(entries, dict):
                optimizer.state[key] = {k: v for k, (v, _) in entries.items()}
                for v, x in entries.values():
                    if isinstance(v, Tensor):
                        v.data.copy_(x)
    return restore


def restored_scheduler(scheduler):
    """A function that undoes changes of a scheduler and of the groups of its optimizer."""
    own = dict(scheduler.__dict__)
    groups = [(group, dict(group)) for group in scheduler.optimizer.param_groups]
    inner = [restored_scheduler(s) for s in getattr(scheduler, "_schedulers", ())]

    def restore():
        scheduler.__dict__.clear()
        scheduler.__dict__.update(own)
        for group, entries in groups:
            group.clear()
            group.update(entries)
        for one in inner:
            one()
    return restore


# -- backward ---------------------------------------------------------------------------------------------------------

class Grads:
    """The gradients that leaves have in a capture: leaves from outside, and leaves that the program makes."""

    def __init__(self, capture):
        self.capture = capture
        self.walked = self.walked_before = False        # whether this segment, or an earlier one, has a backward
        self.made = {}                  # id of a leaf made by the program -> (leaf, gradient)
        self.own = []                   # leaves made by the program
        self.has_hooks, self.hooked_at = False, None        # whether the program registers hooks, and where
        self.functions = {}             # custom Function -> a copy of it with recorded methods

    def apply(self, cls, args, kwargs):
        """Calls a custom Function. Its methods pass the recorder, also when the engine calls them."""
        r = self.capture.recorder
        made = self.functions.get(cls)
        if made is None:
            methods = {}
            for name in ("forward", "backward", "setup_context", "vjp"):
                if r.in_class(cls, name) is not vars(Function).get(name):
                    methods[name] = staticmethod(calls.as_function(r, r.attribute(cls, name)))
            made = self.functions[cls] = type(cls)(cls.__name__, (cls,), methods)
            made._called_at = user_at()
        return made.apply(*[calls.native(r, a) for a in args], **{k: calls.native(r, a) for k, a in kwargs.items()})

    def backward(self, tensors, grad_tensors, retain_graph, inputs):
        """Walks the engine on stand-ins, and notes the gradients of leaves."""
        c = self.capture
        originals = c.recorder.originals
        seeds = entry.seeds_of("backward", tensors, grad_tensors, False)
        stands = [s for s, _ in c.recorder.stands.values() if s.requires_grad]
        leaves = [*stands, *[s for s in self.own if s.requires_grad]]
        if inputs is not None:
            leaves = list({id(s): s for s in inputs}.values())
            self.alone(tensors, leaves)
        found = run_backward(tensors, seeds, retain_graph, False, leaves, False) if leaves else []
        effect = Gradients()
        for s, g in zip(leaves, found):
            if g is None:
                continue
            real = originals.get(id(s))
            if real is None:
                if s.grad_fn is not None:
                    raise Unsupported("it asks for the gradient of a tensor that is no leaf")
                known = self.made.get(id(s))
                self.made[id(s)] = s, g.clone() if known is None else known[1] + g
                continue
            if not real.is_leaf:
                raise Unsupported("the gradient leads to what was computed outside of it")
            effect.leaves.append(c.recorder.stands[id(real)][1])
            effect.results.append(g)
            effect.ends |= bool(real._extras.hooks or real._extras.post_hooks)      # hooks may write to anything
        self.walked = True
        if effect.leaves:
            c.add_effect(effect)

    def alone(self, tensors, inputs):
        """Guards that the gradients by some tensors, of which a walk from ``tensors`` asks, are those of a capture.

        They are not where another input of the program is the same tensor, or was computed of it.
        """
        r = self.capture.recorder
        asked = [s for s in inputs if id(s) in r.originals]
        met, todo = set(), [t.grad_fn for t in tensors]
        while todo:
            n = todo.pop()
            if n is not None and id(n) not in met:
                met.add(id(n))
                todo += [edge for edge, _ in n.next_functions]
        stands = [(s, source) for s, source in r.stands.values() if s.requires_grad]
        for s, _ in stands:
            if not r.original(s).is_leaf and id(s.grad_fn) in met and any([other is not s for other in asked]):
                raise Unsupported("the gradient leads to what was computed outside of it")
        pairs = [(r.source_of_any(s), source) for s in asked for other, source in stands if other is not s
                 and other.dtype is s.dtype and other.ndim == s.ndim]
        if len(pairs) > PAIRS:
            r.keyed.add(Tensor)
            return
        for first, second in pairs:
            r.guard("not same", first, second)

    def of(self, s):
        """The gradient of a leaf that the program made, or None."""
        return self.made.get(id(s), (s, None))[1]


def history_of(s, ends, first, functions=()):
    """Two bools: whether a node of the stand-in's history was freed, and whether a node is older than ``first``.
    ``ends``: ids of nodes of tensors from outside; ``functions``: custom Functions that may have no node left."""
    todo, met, is_older = [s.grad_fn], set(), False
    while todo:
        n = todo.pop()
        if n is None or id(n) in met or id(n) in ends or not hasattr(n, "freed"):
            continue
        if n.freed:
            return True, is_older
        rule = n.fn if n.op < 0 else None
        if getattr(rule, "inner", None) is not None:    # a write through a view, by an op or by a custom Function
            rule = rule.inner.fn
        own = getattr(rule, "cls", None)
        if own in functions:
            raise Unsupported(f"it calls the autograd function {own.__name__}, whose backward is asked for outside of "
                              "it", own._called_at)
        is_older |= n.seq < first
        met.add(id(n))
        todo += [edge for edge, _ in n.next_functions]
    return False, is_older


def _grad_of(r, outputs, inputs, *args, **kwargs):
    made = calls.as_it_is(r, entry.grad, (outputs, inputs, *args), kwargs)
    outputs, inputs = [[calls.native(r, v) for v in ([x] if isinstance(x, Tensor) else r.elements(
        x.values() if isinstance(x, dict) else x))] for x in (outputs, inputs)]
    outputs, inputs = [[s for s in x if isinstance(s, Tensor)] for x in (outputs, inputs)]
    if any([has_gradient_hooks(r.original(s)) for s in inputs if id(s) in r.originals]):
        r.unsupported("it asks for a gradient that hooks from outside see")
    r.capture.grads.alone(outputs, inputs)
    return made


def _backward_of(r, tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None,
                 inputs=None):
    if grad_variables is not None:
        r.unsupported("it calls backward(grad_variables=...)")
    if r.truth(create_graph):
        r.unsupported("it calls backward(create_graph=True)")

    def several(x):
        if isinstance(x, Tensor):
            return [r.known_tensor(x)]
        return [v if v is None else r.known_tensor(v) for v in r.elements(x)]
    tensors = several(tensors)
    grads = None if grad_tensors is None else several(grad_tensors)
    inputs = None if inputs is None else several(inputs)
    for s in tensors:
        if carried_by(s, r.capture.tracer) is None or id(s) in r.originals:
            r.unsupported("it calls backward of a tensor that was made outside of it")
    r.capture.grads.backward(tensors, grads, bool(retain_graph), inputs)


def _backward_method(r, x, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    if gradient is None or isinstance(gradient, Tensor):
        return _backward_of(r, x, None if gradient is None else [gradient], retain_graph, create_graph, None, inputs)
    return r.unsupported("it calls backward with a gradient that is no tensor")


def _register_hook(r, x, hook):
    s = r.known_tensor(x)
    if id(s) in r.originals:
        r.unsupported("it registers a hook on a tensor from outside")
    r.capture.grads.hooked_at = user_at()
    r.capture.grads.has_hooks = True
    return s.register_hook(calls.as_function(r, hook))


def _zero_grad_of(r, module, set_to_none=True):
    if r.source_of(module) is None:
        r.unsupported("it calls zero_grad() of a module that it has made")
    Outside(module, "zero_grad").call(r, (set_to_none,), {})


def _drop_grads(r, params):
    """``zero_grad()`` of an optimizer that the program makes."""
    for p in r.elements(params):
        r.set_attribute(None, p, "grad")


def _with_grad(r, params):
    """What a step of such an optimizer reads first."""
    found = [(p, r.attribute(p, "grad")) for p in r.elements(params)]
    return [p for p, g in found if g is not None], [g for _, g in found if g is not None]


calls.PYTHON |= {optimizers.drop_grads: _drop_grads, optimizers.with_grad: _with_grad}
calls.PYTHON |= {ptcore.autograd.backward: _backward_of, Tensor.backward: _backward_method,
                 ptcore.autograd.grad: _grad_of, Tensor.register_hook: _register_hook, Module.zero_grad: _zero_grad_of}
