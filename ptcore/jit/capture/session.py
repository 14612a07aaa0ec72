"""One capture: a call of the user's function under the tracer, cut into segments where it reads values of tensors."""
import enum
import types
from collections import OrderedDict, defaultdict, deque
from functools import partial

import ptcore
import ptcore._ops as ops
from ptcore._interpret import aside
from ptcore._node import user_at
from ptcore._ops.call.autocast import is_any_enabled, without
from ptcore._ops.table.ids import op_name
from ptcore._shape import Size
from ptcore._state import SavedBy, hooks_of_saved, is_grad_enabled, is_history_recorded
from ptcore._state import put_grad_enabled as set_mode
from ptcore._subclass import carried_by, payload_of
from ptcore._tensor import Tensor
from ptcore.fx.node import Node
from ptcore.jit._entry import Modes, Part, Results, memory_of
from ptcore.jit.capture.deferred import Deferred, defer
from ptcore.jit.capture.effects import Grads, history_of
from ptcore.jit.capture.guards import Program, Source, TensorLook, tuple_of
from ptcore.jit.capture.kinds import NUMBERS, is_heap_type, is_sequence, is_value
from ptcore.jit.capture.recorder import Recorder
from ptcore.jit.capture.tracer import (
    CaptureTracer,
    Feed,
    Unsupported,
    _Detached,
    latest,
    requires_grad_,
    set_grad_enabled,
)
from ptcore.nn.parameter import Parameter


class Segment(Part):
    """A part of a captured call up to a read of a value, or to its end.

    Attributes
    ----------
    program : Program
        The conditions under which this segment follows, and the tensors from outside that it takes.
    module : GraphModule
        The rows.
    run : callable
        The backend's result for the module.
    feeds : list of int
        Where its arguments come from: place k among the program's inputs, or ~k among the results of the segment
        before.
    asks : str or None
        How the first result is read: "item", "truth" or "tolist"; "nothing" if only effects end the segment; None at
        the end of the call.
    effects : list
        Effects that follow the rows.
    quiet : bool
        Whether the rows have their gradients among them, so that nothing is to be recorded.
    children : dict
        The value read, as written by ``key_of`` -> segments that follow.
    template
        Makes the user's result, at the end.
    watched : bool
        Whether the program may handle an error that the rows or the effects raise.
    """

    __slots__ = ("children", "count", "feeds", "impure", "live", "module", "quiet", "varying", "where", "written")

    def __init__(self, program, module, feeds, asks, live, entry_grad, effects=(), quiet=False):
        self.program, self.module, self.feeds, self.asks, self.live = program, module, feeds, asks, live
        self.effects, self.quiet = list(effects), quiet
        self.start_grad, self.entry_grad, self.exit_grad = entry_grad, entry_grad and not quiet, entry_grad
        self.children, self.where = {}, None
        if feeds != list(range(len(program.inputs))) and min(feeds, default=0) >= 0:
            self.places = tuple(feeds)
        self.impure, self.written = _written(module.graph, feeds)

    def arguments(self, inputs, before):
        return [inputs[k] if k >= 0 else before[~k] for k in self.feeds]

    def has_rows(self):
        """Whether the segment has rows to run."""
        return any([n.op == "call_function" for n in self.module.graph.nodes]) or bool(self.module.graph.output_node(
            ).args[0])


def _written(graph, feeds):
    """Whether a graph has effects, and the places of arguments that it may write to."""
    impure, written, count = False, 0, 0
    seen = {}                           # node -> a bit for each place of an argument of which it may be a view
    for node in graph.nodes:
        if node.op == "placeholder":
            seen[node] = 1 << count
            count += 1
            continue
        behind = 0
        for n in node.all_input_nodes:
            behind |= seen[n]
        effect = node.op == "call_function" and node.is_impure()
        seen[node] = behind if effect or _may_alias(node) else 0
        if effect and node.target not in (set_grad_enabled, requires_grad_) and not hasattr(node.target, "only_checks"):
            impure = True
            written |= behind
    return impure, [k for k in range(count) if written >> k & 1]


def _may_alias(node):
    row = getattr(node.target, "op", None)
    if row is None:
        return True
    kind = ops.row(op_name(row)).kind
    return kind not in ("elementwise", "bilinear")


def nothing(*args):
    """The run of a segment without rows."""
    return ()


def restored(x):
    """A function that restores the present values of a tensor without counting a write."""
    copy = x.detach().clone()
    return lambda: x.data.copy_(copy)


def key_of(value):
    """A read value as the key of the next segment; type and sign of zero count."""
    return type(value).__name__, repr(value)


def asked(value, asks):
    """The Python value for a read of a tensor."""
    with aside():
        return _asked(value.detach(), asks)


def _asked(value, asks):
    if asks == "truth":
        return bool(value)
    return value.item() if asks == "item" else value.tolist()


class Capture:
    """One call of ``function``, captured while it runs.

    Parameters
    ----------
    function : callable
    names : list of str
        The names of the arguments in texts.
    flat : tuple
        The arguments, those by keyword behind.
    words : tuple of str
        The keywords.
    settings
        Has ``make(module, example_inputs)``, the backend; ``dynamic``; ``varying``, the sizes and numbers known to
        vary; ``fullgraph``.
    path : list of (Segment, value, results)
        Segments of this call that have run already, with the value read at the end of each.
    symbols : bool
        Whether sizes and numbers may be symbols.
    """

    def __init__(self, function, names, flat, words, settings, path=(), symbols=True):
        self.function, self.names, self.flat, self.words = function, names, flat, words
        self.settings, self.path = settings, list(path)
        # A capture behind a known path uses the symbols of that path's first segment, whatever has been found to vary
        # since.
        if path:
            self.varying, symbols = path[0][0].varying or {}, path[0][0].varying is not None
        else:
            self.varying = {k: set(v) for k, v in settings.varying.items()}
        self.located = False            # whether guards note the user's lines
        self.symbolic = bool(symbols and settings.dynamic is not False and (self.varying or settings.dynamic))
        if not self.symbolic:
            self.varying = {}
        self.segments, self.results, self.ran = [], (), []
        self.is_running = False         # whether a segment runs, or has raised an error
        self.values = []                # the value read at the end of each segment but the last
        self.program = Program()
        self.places, self.numbers = [], {}
        self.entry, self.autocast = is_history_recorded(), is_any_enabled()
        self.inputs = []                # (payload, feed)
        self.breaks = []
        self.grads = Grads(self)
        self.effects, self.ended = [], False        # effects of the present segment; whether one of them ends it
        self.data_written = None        # when and where the program has written to ``data`` of a tensor
        self.watching = 0               # number of blocks around the present place that may handle an error

    # -- the run -------------------------------------------------------------------------------------------------

    def run(self):
        """Runs the user's function and returns its result. ``segments`` then holds the captured segments."""
        self.tracer = CaptureTracer(self, self.symbolic)
        self.recorder = r = Recorder(self)
        self.program.add("modes", Source("object", None, None, "modes"), Modes())
        n = len(self.flat) - len(self.words)
        r.known[id(self.function)] = self.function, r.object_source(self.function)
        inside = [r.track(x, Source("argument", None, k, name))
                  for k, (x, name) in enumerate(zip(self.flat, self.names))]
        self.hooks = hooks_of_saved()
        before, latest.stop = latest.stop, None
        with self.tracer, SavedBy(()):
            try:
                result = r.call(self.function, *inside[:n], **dict(zip(self.words, inside[n:])))
                if latest.stop is not None:
                    raise latest.stop
            finally:
                latest.stop = before
            builder = Builder(self)
            template = builder.form(result)
            nodes = [self.tracer.argument(x)[1] for x in builder.outputs]
            used_up = self.without_history(builder.outputs)
            self.place_results(nodes)
        segment = self.close(nodes, None, {})
        segment.template, segment.exit_grad = Template(template, used_up), is_history_recorded()
        self.check_symbols()
        self.add_overlaps()
        if len(self.segments) <= len(self.path):
            raise Unsupported("a captured program went another way than before")
        outs = self.execute(segment)
        return segment.template.build(outs, self.flat)

    def without_history(self, outputs):
        """The places of results whose history was freed by a backward of the program.

        A segment with a backward gives no history to other results. Results that keep history from earlier segments are
        refused.
        """
        found, grads = [], self.grads
        if not (grads.walked or grads.walked_before or grads.functions or grads.has_hooks or self.data_written):
            return found
        known = {id(s.grad_fn) for s, _ in self.recorder.stands.values() if s.grad_fn is not None}
        for k, s in enumerate(outputs):
            if not isinstance(s, Tensor) or not s.requires_grad or id(s) in self.recorder.originals:
                continue
            is_used_up, is_older = history_of(s, known, self.tracer.first_seq, grads.functions.values())
            if is_used_up:
                found.append(k)
            elif self.data_written and history_of(s, known, self.data_written[0])[1]:
                raise Unsupported("it writes to .data of a tensor, and a result has an older history",
                                  self.data_written[1])
            elif grads.has_hooks:
                raise Unsupported("it registers a hook, and a backward is asked for outside of it", grads.hooked_at)
            elif grads.walked or (grads.walked_before and is_older):
                raise Unsupported("it calls backward, and a result has a history beside that")
        return found

    def place_results(self, nodes):
        """Adds the values that effects take to a segment's results."""
        places = {}

        def output_of(s):
            if id(s) not in places:
                places[id(s)] = len(nodes)
                nodes.append(self.tracer.argument(s)[1])
            return places[id(s)]
        for effect in self.effects:
            effect.place_results(output_of)

    def close(self, nodes, asks, live):
        tracer, inputs, effects = self.tracer, self.program.inputs, self.effects

        def input_of(x):
            source = x if isinstance(x, Source) else self.recorder.source_of(x)
            for k, known in enumerate(inputs):
                if known is source:
                    return k
            inputs.append(source)
            return len(inputs) - 1
        feeds = list(tracer.feeds)
        module = tracer.close(nodes, getattr(self.function, "__name__", None) or type(self.function).__name__,
                              self.grads.walked)
        places = []
        for feed in feeds:
            if feed.kind == "input":
                places.append(len(inputs))
                inputs.append(feed.place)
            else:
                places.append(~feed.place)
        for effect in effects:
            effect.place_inputs(input_of)
        segment = Segment(self.program, module, places, asks, live, self.entry, effects, self.grads.walked)
        self.effects, self.ended = [], False
        segment.count, segment.varying = tracer.count, self.varying if self.symbolic else None
        segment.watched = tracer.watched
        module.meta = {"inputs": [feed.label if feed.kind == "live" else feed.place.text for feed in feeds],
                       "written": segment.written, "impure": segment.impure, "grad": self.entry, "asks": asks,
                       "placed": True, "shape_env": None if tracer.env is None else tracer.env.env}
        self.segments.append(segment)
        return segment

    def execute(self, segment):
        """Runs a segment that has just been written; returns its results."""
        depth = len(self.segments) - 1
        if depth < len(self.path):
            return self.path[depth][2]
        inputs = tuple([s.fetch(self.flat) for s in segment.program.inputs])
        arguments = segment.arguments(inputs, self.results)
        now, self.is_running = is_grad_enabled(), True
        set_mode(segment.entry_grad)
        try:
            with aside(), SavedBy(self.hooks):
                self.keep(segment, arguments, inputs)
                if segment.has_rows():
                    run = self.settings.make(segment.module, list(arguments))
                    # The graph contains the casts of autocast as rows, so autocast is off for its run.
                    segment.run = partial(without, run) if self.autocast or is_any_enabled() else run
                else:
                    segment.run = nothing
                results = segment.run(*arguments)
                for effect in segment.effects:
                    if effect.perform(inputs, results) is not None:
                        raise Unsupported(f"{effect.name}() of {type(inputs[effect.owner]).__name__} returns something")
                self.is_running = False
                return results
        finally:
            set_mode(now)

    def keep(self, segment, arguments, inputs):
        """Copies tensors that a segment is about to write to, in case it raises or the rest cannot be captured."""
        for k in segment.written:
            if isinstance(arguments[k], Tensor):
                self.ran.append(restored(arguments[k]))
        self.ran += [effect.kept(inputs) for effect in segment.effects]

    def write_out(self):
        """Makes the writes and effects of a program that has raised an error, for captures that cannot be undone."""
        if self.is_running or len(self.segments) < len(self.path):
            return                          # a segment raised the error, or nothing is new
        nodes = []
        with self.tracer, SavedBy(()):
            self.place_results(nodes)
        self.execute(self.close(nodes, None, {}))

    def undo(self):
        """Takes back the writes of this capture's segments."""
        for restore in reversed(self.ran):
            restore()

    # -- segments ------------------------------------------------------------------------------------------------

    def reads(self, payload, asks):
        """The value of a traced tensor that the program reads."""
        where = user_at()
        if self.settings.fullgraph:
            raise Unsupported("it reads the value of a tensor, as a branch on data does", where)
        self.breaks.append(where)
        return self.cut([payload.node], asks, where)

    def defer(self, x):
        """A placeholder for the result of ``x.item()``."""
        return defer(self.recorder, x)

    def add_effect(self, effect):
        """Notes an effect that follows the rows so far."""
        self.effects.append(effect)
        self.tracer.watched |= self.watching > 0
        self.ended |= effect.ends

    def settle(self):
        """Ends the segment if the following code may read what an effect has changed."""
        if self.ended:
            self.cut([], "nothing", None)

    def cut(self, nodes, asks, where):
        """Ends a segment, begins the next one, and returns the requested value of the first of ``nodes``."""
        depth = len(self.segments)
        live, feeds = {}, {}
        self.place_results(nodes)
        self.leave(nodes, live, feeds)
        segment = self.close(nodes, asks, live)
        segment.where = where
        if depth < len(self.path):
            known, value = self.path[depth][0], self.path[depth][1]
            if segment.count != known.count or asks != known.asks or len(segment.effects) != len(known.effects):
                raise Unsupported("a captured program went another way than before")
            for feed, place in feeds.values():
                feed.place = known.live.get(place, feed.place if place in known.live else None)
            self.results = self.path[depth][2]
        else:
            self.results = self.execute(segment)
            value = None if asks == "nothing" else asked(self.results[0], asks)
        self.values.append(value)
        self.entry = is_history_recorded()
        self.program = Program()
        self.grads.walked, self.grads.walked_before = False, self.grads.walked or self.grads.walked_before
        self.recorder.copies = {}       # the next segment reads and guards elements of containers anew
        self.tracer.begin()
        return value

    def leave(self, nodes, live, feeds):
        """Collects the values that later segments may use, and the feeds by which they get them."""
        tracer = self.tracer
        for payload, feed in self.inputs:
            payload.held = feed

        def later(held):
            if type(held) is Feed:
                if held.place is None or (held.kind == "input" and not held.place.may_change()):
                    return held
                held = held.node
            place = held.meta["place"]
            if place not in feeds:
                live[place] = len(nodes)
                feeds[place] = Feed(tracer, "live", len(nodes), held.name), place
                nodes.append(held)
            return feeds[place][0]

        tracer.alive = [ref for ref in tracer.alive if ref() is not None]
        for ref in tracer.alive:
            payload = ref()
            if payload is not None and type(payload.held) is not _Detached:     # a detached stand-in follows its base
                payload.held = later(payload.held)
        if tracer.env is not None:
            for leaf, (held, dim) in tracer.env.sources.items():
                if type(held) is Node:
                    tracer.env.sources[leaf] = later(held), dim
                elif held.kind != "input":
                    tracer.env.sources[leaf] = later(held), dim

    # -- values from outside --------------------------------------------------------------------------------------

    def input(self, x, source):
        """The stand-in of a tensor that is read from outside."""
        if type(x) is not Tensor and not isinstance(x, Parameter):
            function = type(x).__torch_function__
            if type(x) is not ptcore.nn.Buffer and getattr(function, "__func__", None) is not None:
                raise Unsupported(f"{source} is of class {type(x).__name__}, a subclass of Tensor")
        dims = self.dims_of(x, source)
        feed = Feed(self.tracer, "input", source, _identifier(source.text))
        self.recorder.guard("tensor", source, TensorLook(x, dims))
        if dims:
            for d in dims:
                self.places.append((source, d))
        s = self.tracer.outer_input(x, feed, dims, {d: f"{source}.shape[{d}]" for d in dims})
        self.inputs.append((carried_by(s, self.tracer), feed))
        return s

    def dims_of(self, x, source):
        """The symbolic dims of an input."""
        if not self.symbolic or not self.tracer.env:
            return ()
        if self.settings.dynamic:
            if isinstance(x, Parameter):
                return ()
            return tuple([d for d, n in enumerate(x.shape) if n > 1])
        return tuple(d for d in self.varying.get(source.text, ()) if isinstance(d, int) and x.shape[d] > 1)

    def number(self, x, source):
        """The symbol of a number from outside, if it is known to vary; otherwise None."""
        if not self.symbolic or type(x) not in (int, float):
            return None
        if (type(x) is int and x < 2) or is_special(x):
            return None
        if "number" not in self.varying.get(source.text, ()):
            return None
        known = self.numbers.get(id(source))
        if known is None:
            env = self.tracer.env
            feed = Feed(self.tracer, "input", source, _identifier(source.text))
            self.recorder.guard("type", source, type(x))
            self.places.append((source, None))
            made = env.leaf_of(x, feed, None, source.text) if type(x) is int else env.float_of(x, feed, source.text)
            known = self.numbers[id(source)] = made
        return known

    def offset_of(self, s):
        """The offset of a stand-in. Those of the tensors from outside that show the same memory are guarded."""
        payload = carried_by(s, self.tracer)
        if payload is None:
            return s.storage_offset()
        storage = payload.tensor.untyped_storage()
        for mine, feed in self.inputs:
            if mine.tensor.untyped_storage() is storage and feed.kind == "input":
                found = feed.place.fetch(self.flat)
                self.recorder.guard("offset", feed.place, found.storage_offset())
        return s.storage_offset()

    def unknown(self, x):
        """The known stand-in of a tensor that native code passes on; refuses unknown tensors."""
        found = self.recorder.stands.get(id(x))
        if found is not None:
            return found[0]
        if payload_of(x) is not None:
            return x
        raise Unsupported("it uses a tensor that was made outside of it and that nothing it has read leads to")

    # -- guards on several values --------------------------------------------------------------------------------

    def check_symbols(self):
        if self.tracer.env is None:
            return
        env = self.tracer.env.env
        for guard in env.guards:
            if not all(leaf.is_input for leaf in guard.expr.atoms()):
                raise Unsupported(f"it branches on a size that depends on values: {guard!r}")
        if self.places:
            first = self.segments[min(len(self.path), len(self.segments) - 1)].program
            first.add("sizes", Source("object", None, None, "sizes"), SizesHold(env, list(self.places)))

    def add_overlaps(self):
        """Guards which inputs share memory, if an input is written to, and which keys are the same object."""
        keyed = self.recorder.keyed
        if keyed:
            sources = [s for _, s in self.recorder.stands.values()] if Tensor in keyed else []
            # Objects of other classes stay distinct in any call. A constant may be the object at another source in
            # another call.
            sources += [s for x, s in self.recorder.known.values() if type(x) in keyed]
            if len(sources) > 1 and not all([s.kind == "object" for s in sources]):
                look = Distinct(sources)
                look.expected = look.pattern(self.flat)
                self.segments[-1].program.add("distinct", sources[0], look)
        if not any(segment.impure for segment in self.segments):
            return
        program = self.segments[-1].program
        found = [(real, s[1]) for real, s in ((self.recorder.originals[id(s[0])], s)
                                              for s in self.recorder.stands.values()) if not s[1].may_change()]
        if len(found) > 1:
            look = Overlap([source for _, source in found])
            look.expected = look.pattern(self.flat)
            program.add("apart", found[0][1], look)


class SizesHold:
    """Whether the sizes and numbers of a call satisfy the conditions on the symbols."""

    def __init__(self, env, places):
        self.env, self.places = env, places

    def __call__(self, args):
        values, leaves = [], {}
        for source, dim in self.places:
            x = source.fetch(args)
            values.append(x if dim is None else x.shape[dim])
            if dim is None and is_special(x):
                return False
        for (_, value), given in zip(self.env.inputs, values):
            atoms = value.expr.atoms() if isinstance(value, NUMBERS) else None
            if atoms is None:
                if value != given:
                    return False
            elif leaves.setdefault(atoms[0], given) != given:
                return False
        if any(leaf.low is not None and value < leaf.low for leaf, value in leaves.items()):
            return False
        return all(self.env.evaluate(guard.expr, leaves) for guard in self.env.guards)

    def __repr__(self):
        return " and ".join([repr(g) for g in self.env.guards]) or "sizes of at least 2"


def is_special(x):
    """Whether a number is a zero, whose sign a comparison does not tell, or NaN. Such floats are no symbols."""
    return type(x) is float and (x == 0 or x != x)


class Overlap:
    """Which of several tensors share memory."""

    def __init__(self, sources):
        self.sources, self.expected = sources, None

    def pattern(self, args):
        places = {}
        return tuple([places.setdefault(memory_of(s.fetch(args)), k)
                      for k, s in enumerate(self.sources)])

    def __call__(self, value, args):
        return self.pattern(args) == self.expected


class Distinct(Overlap):
    """Which of several objects are identical."""

    def pattern(self, args):
        places = {}
        return tuple([places.setdefault(id(s.fetch(args)), k) for k, s in enumerate(self.sources)])


def _identifier(text):
    made = "".join([c if c.isalnum() else "_" for c in text]).strip("_")
    return f"x_{made}" if not made or made[0].isdigit() else made


# -- results ----------------------------------------------------------------------------------------------------------

class Builder:
    """Takes the user's result apart: the nodes that it needs, and a template that rebuilds it."""

    def __init__(self, capture):
        self.capture, self.outputs, self.places, self.memo = capture, [], {}, {}

    def out(self, x):
        place = self.places.get(id(x))
        if place is None:
            place = self.places[id(x)] = len(self.outputs)
            self.outputs.append(x)
        return "out", place

    def form(self, x):
        r, cls = self.capture.recorder, type(x)
        if isinstance(x, Tensor):
            if payload_of(x) is None or carried_by(x, self.capture.tracer) is None:
                x = self.capture.unknown(x)
            return self.out(x)
        if cls in NUMBERS:
            return self.out(x)
        if cls is Deferred:
            return ("constant", x.value) if x.is_read else ("item", self.out(x.stand)[1])
        if is_value(x) and not (cls is Size and any([type(n) in NUMBERS for n in x])):
            return "constant", x
        source = r.source_of(x)
        if source is not None:
            return ("constant", x) if source.kind == "object" else ("source", source)
        if isinstance(x, (type, types.ModuleType, types.BuiltinFunctionType)) or isinstance(x, enum.Enum):
            return "constant", x
        known = self.memo.get(id(x))
        if known is not None:
            return "again", known
        number = self.memo[id(x)] = len(self.memo)
        if is_sequence(x) or cls in (set, frozenset, Size):
            return "sequence", number, cls, [self.form(v) for v in x], getattr(x, "maxlen", None)
        if cls in (dict, OrderedDict, defaultdict):
            return ("mapping", number, cls, [self.form(k) for k in x], [self.form(v) for v in x.values()],
                    getattr(x, "default_factory", None))
        if is_heap_type(cls) and cls.__new__ is object.__new__ and not any("__slots__" in c.__dict__
                                                                              for c in cls.__mro__[:-1]):
            return "instance", number, cls, list(x.__dict__), [self.form(v) for v in x.__dict__.values()]
        if isinstance(x, (types.FunctionType, types.MethodType)):
            raise Unsupported("it returns a function that it has made")
        raise Unsupported(f"it returns an object of class {cls.__name__}")


class Template(Results):
    """Builds the user's result of a segment's results."""

    __slots__ = ()

    def __init__(self, form, used_up=()):
        places = None
        if form[0] == "out":
            places = form[1]
        elif form[0] == "sequence" and form[2] is tuple and all(f[0] == "out" for f in form[3]):
            places = tuple([f[1] for f in form[3]])
        super().__init__(places, form, tuple(used_up))

    def make(self, form, outs, args, made):
        kind = form[0]
        if kind == "out":
            return outs[form[1]]
        if kind == "constant":
            return form[1]
        if kind == "item":
            return outs[form[1]].item()
        if kind == "source":
            return form[1].fetch(args)
        if kind == "again":
            return made[form[1]]
        number, cls = form[1], form[2]
        if kind == "instance":
            x = made[number] = object.__new__(cls)
            for name, part in zip(form[3], form[4]):
                x.__dict__[name] = self.make(part, outs, args, made)
            return x
        if kind == "mapping":
            x = made[number] = defaultdict(form[5]) if cls is defaultdict else cls()
            for key, part in zip(form[3], form[4]):
                x[self.make(key, outs, args, made)] = self.make(part, outs, args, made)
            return x
        if cls is list or cls is deque:
            x = made[number] = [] if cls is list else deque(maxlen=form[4])
            x.extend([self.make(part, outs, args, made) for part in form[3]])
            return x
        parts = [self.make(part, outs, args, made) for part in form[3]]
        x = made[number] = tuple_of(cls, parts) if issubclass(cls, tuple) else cls(parts)
        return x
