"""The tracer of rewritten functions: rows become nodes, values from outside become inputs, and a read of a value ends a
segment."""
import threading
import weakref

import ptcore
import ptcore._ops as ops
from ptcore._interpret import aside
from ptcore._node import next_seq, user_at
from ptcore._ops.table.ids import op_id, op_name
from ptcore._sizes.symbolic import SymFloat
from ptcore._state import enable_grad, is_history_recorded
from ptcore._state import put_grad_enabled as set_mode
from ptcore._subclass import carried_by, counts_apart, stands_for
from ptcore.fx.experimental.proxy_tensor import INPLACE, ProxyTracer, Sized, Traced
from ptcore.fx.experimental.sizes import Sizes
from ptcore.fx.graph import Graph
from ptcore.fx.graph_module import GraphModule
from ptcore.fx.node import Node, has_side_effect
from ptcore.nn.modules.module import Module

DETACH = ops.function("detach")
DETACH_ID, TO_DEVICE = op_id("detach"), op_id("to_device")
# Rows that name places of their argument's storage.
PLACED = {op_id(name) for name in ("as_strided", "as_strided_of", "as_strided_copy", "as_strided_scatter")}


class Latest(threading.local):
    """The last reason for which this thread's capture is to end."""

    stop = None


latest = Latest()


class Stop(BaseException):
    """Ends a capture; the user's handlers do not catch it.

    The interpreter drops one that is raised while it closes a generator that nobody refers to, so ``Capture`` looks at
    ``latest`` as well.
    """


class Unsupported(Stop):
    """Raised where a program cannot be captured; ``reason`` says why, ``where`` is the user's (file, line)."""

    def __init__(self, reason, where=None):
        super().__init__(reason)
        self.reason, self.where = reason, where or user_at()
        latest.stop = self


class Sourceless(Unsupported):
    """Raised where the text of a function is not known; ``code`` is its code."""

    def __init__(self, reason, code):
        super().__init__(reason)
        self.code = code


@has_side_effect
def set_grad_enabled(mode):
    """Whether the rows that follow in a graph are recorded for gradients."""
    set_mode(mode)


@has_side_effect
def requires_grad_(input, mode):
    """Sets whether a tensor is a leaf that requires grad."""
    return input.requires_grad_(mode)


# ``sets_mode``: rows of the graph may be recorded although the call of the graph is not. ``makes_leaves``: results may
# be leaves.
set_grad_enabled.sets_mode = requires_grad_.makes_leaves = True


def meta_of(x):
    """A tensor without data, with the sizes, strides and offset of another tensor."""
    sizes, strides, offset = x.shape, x.stride(), x.storage_offset()
    end = offset + sum([(n - 1) * s for n, s in zip(sizes, strides) if s > 0]) + 1 if x.numel() else offset
    memory = ptcore.empty(end, dtype=x.dtype, device="meta")
    return memory if x.ndim == 1 and strides == (1,) and not offset and end == sizes[0] else memory.as_strided(
        sizes, strides, offset).detach()


def may_raise(target):
    """Whether a function of a graph may raise an error that depends on values."""
    own = getattr(target, "op", None)
    own = None if own is None else ops.row(op_name(own))
    if own is None:
        return target not in (set_grad_enabled, requires_grad_)
    return own.kind not in ("elementwise", "bilinear", "view") or any([word in own.name for word in INTEGER_ERRORS])


INTEGER_ERRORS = "div", "rem", "mod", "pow", "shift"        # in names of rows that refuse some integers


class Feed:
    """An input of segments: a tensor from outside, or result number ``place`` of an earlier segment.

    ``node`` is its placeholder in the segment that is written now.
    """

    __slots__ = ("kind", "label", "made_in", "node_", "place", "tracer")

    def __init__(self, tracer, kind, place, label):
        self.tracer, self.kind, self.place, self.label = tracer, kind, place, label
        self.made_in = self.node_ = None

    @property
    def node(self):
        if self.made_in is not self.tracer.graph:
            self.made_in, self.node_ = self.tracer.graph, self.tracer.take(self)
        return self.node_


class _Detached:
    """The node of a detached stand-in, written at its first use."""

    __slots__ = ("base", "made_in", "node_")

    def __init__(self, base):
        self.base, self.made_in, self.node_ = base, None, None

    @property
    def node(self):
        tracer = self.base.owner
        if self.made_in is not tracer.graph:
            self.made_in = tracer.graph
            self.node_ = tracer.node("call_function", DETACH, (self.base.node,), {}, "detach")
        return self.node_


class _Placed:
    """A payload that holds a node, or a Feed that gives a node in each segment."""

    __slots__ = ()

    @property
    def node(self):
        held = self.held
        return held if type(held) is Node else held.node

    @node.setter
    def node(self, node):
        self.held = node

    def item(self, x):
        known = self.known_value()
        if known is None:
            return self.owner.asks(self, "item")
        with aside():
            return known.item()


class Stand(_Placed, Traced):
    """The payload of a stand-in with known sizes."""

    __slots__ = ("__weakref__", "held")

    def copied(self, value):
        return Stand(value, self.held, self.owner, self.device)


class SizedStand(_Placed, Sized):
    """The payload of a stand-in with symbolic sizes."""

    __slots__ = ("__weakref__", "held")

    def copied(self, value):
        return SizedStand(value, self.held, self.owner, self.device, self.sizes, (self.strides, self.offset))


class CaptureSizes(Sizes):
    """The symbols of one capture. Only the dims named by the caller become symbols."""

    def input_of(self, value, feed, device, dims, places):
        """The stand-in of an input whose ``dims`` are symbols; ``places`` are the places of their values."""
        sizes = []
        for d, n in enumerate(value.shape):
            if d not in dims:
                sizes.append(n)
                continue
            sizes.append(self.leaf_of(n, feed, d, places[d]))
        return self.stand_in(value, feed, device, sizes)

    def leaf_of(self, hint, feed, dim, place):
        n = self.env.symbol(hint, place)
        if hasattr(n, "expr"):
            for leaf in n.expr.atoms():
                self.sources.setdefault(leaf, (feed, dim))
        return n

    def float_of(self, hint, feed, place):
        """A float that varies from call to call."""
        (leaf,) = self.env._leaf("s", hint, None, place).expr.atoms()
        made = SymFloat(leaf, self.env, hint)
        self.env.inputs.append((place, made))
        self.sources[leaf] = feed, None
        return made

    def stand_in(self, value, node, device, sizes, layout=None):
        tracer = self.tracer
        if not any(hasattr(n, "expr") for n in sizes):
            payload = Stand(value, node, tracer, device)
        else:
            payload = SizedStand(value, node, tracer, device, sizes, layout)
        return tracer.keep(stands_for(value, payload), payload)

    def leaf(self, leaf):
        held, dim = self.sources[leaf]
        return self.size(held if type(held) is Node else held.node, dim)


class CaptureTracer(ProxyTracer):
    """Writes the graphs of one capture, a segment at a time.

    Parameters
    ----------
    capture
        Has ``reads(payload, kind)``, which answers what the program asks of a value, and ``unknown(tensor)``, which
        gives the stand-in of a tensor that was not read through the recorder, or raises.
    symbolic : bool
        Whether sizes may be symbols.
    """

    keeps_checks = True
    for_later = False                   # a graph runs only where the same tensors require gradients

    def __init__(self, capture, symbolic=False):
        super().__init__(Module(), "fake")
        self.capture, self.creating = capture, False
        if symbolic:
            self.mode, self.env = "symbolic", CaptureSizes(self)
        self.alive = []
        self.needs_modes = False        # whether a stand-in requires grad
        self.begin()

    def begin(self):
        """Begins a segment."""
        self.graph = Graph(tracer_cls=type(self))
        self._constants, self.feeds, self.last_taken = {}, [], None
        self.count, self.grad_mode = 0, is_history_recorded()
        self.watched = False            # whether the program may handle an error that the graph raises
        self.first_seq = next_seq()     # nodes with smaller numbers belong to earlier segments
        if self.env is not None:
            self.env.nodes = {}

    def detached(self, payload, base):
        payload.held = _Detached(base)
        self.alive.append(weakref.ref(payload))
        return payload

    def keep(self, s, payload):
        self.alive.append(weakref.ref(payload))         # payloads, since several tensors may carry the same
        if s.requires_grad:
            self.needs_modes = True
        return s

    def pair(self, value, node, device=None):
        payload = Stand(value, node, self, value.device if device is None else device)
        return self.keep(stands_for(value, payload), payload)

    def take(self, feed):
        """The placeholder of a value that the segment takes."""
        if feed.place is None:
            raise Unsupported("it needs a value that it did not need when it was captured first")
        made = self.graph._add("placeholder", feed.label, (), {}, feed.label)
        made.meta["place"] = feed.kind, feed.place      # the same whenever this path runs
        if made.prev is not (self.last_taken or self.graph._root):
            first = self.last_taken
            if first is None:
                next(iter(self.graph.nodes)).prepend(made)
            else:
                first.append(made)
        self.last_taken = made
        self.feeds.append(feed)
        return made

    def node(self, kind, target, args, kwargs, name):
        if kind == "call_function" and is_history_recorded() != self.grad_mode:
            self.grad_mode = is_history_recorded()
            super().node("call_function", set_grad_enabled, (self.grad_mode,), {}, "set_grad_enabled")
        made = super().node(kind, target, args, kwargs, name)
        if self.capture.watching and kind == "call_function" and may_raise(target):
            self.watched = True
        self.count += 1
        made.meta["place"] = self.count
        return made

    def call(self, op, args, out, variant):
        if op != DETACH_ID or not self.is_result(args[0]):
            self.capture.settle()
        if op in PLACED and isinstance(args[0], ptcore.Tensor):
            self.capture.offset_of(args[0])
        if op == TO_DEVICE:             # the device is already the stand-in's own
            payload = carried_by(args[0], self)
            if payload is not None and payload.device == args[1]:
                return args[0]
        if variant == INPLACE and counts_apart(args[0]):
            self.capture.data_written = next_seq(), user_at()       # in a graph it counts as a write to the tensor
        return super().call(op, args, out, variant)

    def is_result(self, x):
        """Whether a row of this segment made ``x``: its place in memory is known before the effects at the end."""
        payload = carried_by(x, self)
        return payload is not None and type(payload.held) is Node

    def value_check(self, check, args):
        self.capture.settle()
        super().value_check(check, args)

    def run(self, op, own, values, out, variant, keyword):
        try:
            return super().run(op, own, values, out, variant, keyword)
        except NotImplementedError as error:
            if own.kind == "custom":
                raise Unsupported(str(error)) from None
            if "meta tensor has no data" not in str(error):
                raise
            raise Unsupported(f"the size of what {own.called or own.name} gives depends on values") from None

    def outer_input(self, x, feed, dims=(), places=()):
        """The stand-in of a tensor from outside."""
        with aside():
            return self._outer_input(x, feed, dims, places)

    def _outer_input(self, x, feed, dims, places):
        value = meta_of(x)
        if self.env is not None and dims:
            s = self.env.input_of(value, feed, x.device, dims, places)
        else:
            s = self.pair(value, feed, x.device)
        if x.requires_grad:
            self.needs_modes = True
            s.requires_grad_()
            if not x.is_leaf:
                s = self.with_history(s, x, feed)
        return s

    def with_history(self, s, x, feed):
        """A stand-in that is no leaf, for a tensor that is no leaf."""
        names = "graph", "feeds", "last_taken", "count", "grad_mode"
        before = [getattr(self, name) for name in names]
        self.graph, self.feeds, self.last_taken = Graph(tracer_cls=type(self)), [], None
        try:
            made = self.pair(meta_of(x), feed, x.device)
            with enable_grad(), self:
                try:
                    made.copy_(s)
                except RuntimeError:        # elements of ``s`` share memory
                    made = s.view_as(s)
        finally:
            for name, value in zip(names, before):
                setattr(self, name, value)
        carried_by(made, self).held = feed
        feed.made_in = None
        return made

    def constant(self, x):
        if self.creating:
            known = self._constants.get(id(x))
            if known is None:
                return super().constant(x)
            return known[1:]
        payload = carried_by(self.capture.unknown(x), self)
        return payload.tensor, payload.node

    def created(self, kind, x):
        if kind in ("from_numpy", "frombuffer", "from_dlpack"):
            raise Unsupported(f"{kind} shares memory from outside")
        self.creating = True
        try:
            s = super().created(kind, x.detach())
        finally:
            self.creating = False
        if x.requires_grad:
            s.requires_grad_()
            self.changed("requires_grad", s)
        return s

    def lift(self, x):
        return self.capture.unknown(x)

    def becomes(self, x, view):
        if any(carried_by(x, self) is mine for mine, _ in self.capture.inputs):
            raise Unsupported("the dims of an input are changed in place")

    def changed(self, kind, x):
        payload = carried_by(x, self)
        if kind == "requires_grad":
            if payload is None:
                return
            if not any(payload is mine for mine, _ in self.capture.inputs):
                self.capture.grads.own.append(x)
                payload.node = self.node("call_function", requires_grad_, (payload.node, x.requires_grad), {},
                                         "requires_grad_")
                self.needs_modes = True
                return
        raise Unsupported(f"{kind} of a tensor is set")

    def read(self, kind, x):
        raise Unsupported(f"{kind} reads the values of a tensor that is not traced")

    def asks(self, payload, kind):
        return self.capture.reads(payload, kind)

    def close(self, outputs, name, quiet=False):
        """The segment's module: its results are the nodes ``outputs``. ``quiet``: nothing in it is recorded."""
        graph = self.graph
        graph.output(tuple(outputs))
        if quiet or not self.needs_modes:
            for n in list(graph.nodes):
                if n.op == "call_function" and n.target is requires_grad_ and quiet:
                    n.replace_all_uses_with(n.args[0])
                    graph.erase_node(n)
                elif n.op == "call_function" and n.target is set_grad_enabled:
                    graph.erase_node(n)
        graph.eliminate_dead_code(Node.must_run)
        return GraphModule(self.root, graph, name)
