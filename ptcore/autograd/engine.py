"""The backward walk: a heap on sequence numbers.

An edge always leads to a node with a smaller sequence number, so the largest pending node has received all of its
gradient: no count of dependencies is needed. A node's gradient waits in its ``gbuf`` (a list if the node has several
outputs), stamped with the number of the run. If the buffer of a node belongs to another live run (a backward inside a
backward, another thread), this run keeps the gradient in its own map.

Where a rule gives None for an edge, the walk follows the edge (``visit``), since hooks, custom Functions and leaves
behind it see None or zeros.

Leaves take their gradient at once, but for those that have hooks. When the first gradient arrives at such a leaf,
``expect`` counts the edges that are still to come to hooked leaves, so that a hook runs once, on the sum, as soon as
it is complete. A walk that meets no hooked leaf counts nothing. Where inputs are named, a first pass (``survey``)
marks the nodes that lead to one. Marks are kept like buffers: on the nodes with a run's stamp, or in the run's own map
if a node has the mark of another live run.

The file is compiled with types by default, and runs as plain Python too. In the compiled form, a step that hands over
gradients (deliver, take, clear) is atomic: it releases the GIL at no point where a node's stamp and buffer disagree.
The plain form uses a lock.
"""
import itertools
import sys
import weakref
from threading import get_ident

import cython

if not cython.compiled:         # plain Python finds a cimport by its full name only
    from ptcore import _device, _node, _state
    from ptcore.autograd import accumulate as _accumulate
    sys.modules["cython.cimports.ptcore._device"] = _device
    sys.modules["cython.cimports.ptcore._node"] = _node
    sys.modules["cython.cimports.ptcore._state"] = _state
    sys.modules["cython.cimports.ptcore.autograd.accumulate"] = _accumulate

from cython.cimports.ptcore._device import are_streams_used
from cython.cimports.ptcore._node import Node
from cython.cimports.ptcore._state import is_anomaly_enabled, is_grad_enabled, put_grad_enabled
from cython.cimports.ptcore.autograd.accumulate import (
    accumulate_leaf,
    has_hooks,
    is_recorded,
    of_shape,
    producer,
    record_rule,
    rule_of,
)

from ptcore.autograd import _anomaly
from ptcore.autograd.accumulate import accumulate_leaf as accumulate_into
from ptcore.autograd.accumulate import load_rule
from ptcore.autograd.helpers import reduce_to

FEW = 16                        # with more inputs than this, leaves are found by id
NOTHING: object = object()      # in a buffer: the node is to be visited, but no gradient has come to it
VISITED, LEADS = 1, 2           # bits of a node's mark: its edges are done; it leads to an input

_stamps = itertools.count(1)
_live: dict = {}                # stamp -> its run
_watched: set = set()           # weak references to hooks on several tensors, which need ``ahead``
_running: dict = {}             # thread -> its run, while such hooks exist


@cython.cclass
class Run:
    """One backward: its heap, its stamp, and the requested gradients."""

    stamp: cython.ulonglong
    heap: list
    foreign: dict           # Node -> buffer, if gbuf belongs to another live run
    marks: dict             # Node -> mark, if the node has the mark of another live run
    inputs: list            # tensors whose gradients are requested, or None: accumulate into all leaves
    found: list             # their gradients, at the first place of each
    by_id: dict             # id -> first place, if there are more than FEW leaves; or None
    targets: dict           # Node -> [(output, place)] of inputs that are no leaves; or None
    waiting: dict           # id -> [edges left, sum, leaf] of hooked leaves that have been met, or None
    streams: object         # autograd._streams.Streams, or None where only default streams are used
    current: Node           # the node whose rule or hooks are running
    create_graph: cython.bint
    retain_graph: cython.bint
    anomaly: cython.bint
    recorded: cython.bint   # whether a profile is on
    watched: cython.bint    # anomaly or recorded
    careful: cython.bint    # whether a leaf's gradient has a stream or is recorded

    @cython.cfunc
    def push(self, n: Node) -> object:
        heap: list = self.heap
        i: cython.Py_ssize_t = len(heap)
        parent: cython.Py_ssize_t
        other: Node
        heap.append(n)
        while i > 0:
            parent = (i - 1) >> 1
            other = heap[parent]
            if other.seq >= n.seq:
                break
            heap[i] = other
            i = parent
        heap[i] = n
        return None

    @cython.cfunc
    def pop(self) -> Node:
        heap: list = self.heap
        last: Node = heap.pop()
        n: cython.Py_ssize_t = len(heap)
        i: cython.Py_ssize_t = 0
        child: cython.Py_ssize_t
        top: Node
        a: Node
        b: Node
        if n == 0:
            return last
        top = heap[0]
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            a = heap[child]
            if child + 1 < n:
                b = heap[child + 1]
                if b.seq > a.seq:
                    a = b
                    child += 1
            if a.seq <= last.seq:
                break
            heap[i] = a
            i = child
        heap[i] = last
        return top

    @cython.cfunc
    def deliver(self, n: Node, nr: cython.int, g: object) -> object:
        """Adds g to the gradient of output nr of n; queues n the first time."""
        if self.streams is not None:
            self.streams.hand(g, n)
            self.add(n, nr, g)
            self.streams.back()
        else:
            self.add(n, nr, g)
        return None

    @cython.cfunc
    def add(self, n: Node, nr: cython.int, g: object) -> object:
        if n.run != self.stamp:
            if (n.run != 0 and n.run in _live) or (self.foreign and n in self.foreign):
                held = self.foreign.get(n)
                if held is None:
                    self.push(n)
                self.foreign[n] = add_to(None if held is NOTHING else held, n.nout, nr, g)
                return None
            n.run = self.stamp
            n.gbuf = None
        if n.gbuf is None:
            self.push(n)
        elif n.gbuf is NOTHING:
            n.gbuf = None
        if n.nout == 1:
            n.gbuf = g if n.gbuf is None else n.gbuf + g
        else:
            n.gbuf = add_to(n.gbuf, n.nout, nr, g)
        return None

    @cython.cfunc
    def visit(self, edge: object) -> object:
        """A rule gave None for an edge, which the walk follows all the same: hooks and custom Functions see None."""
        n: Node
        entry: list
        if type(edge) is not Node:
            if self.inputs is None and has_hooks(edge):
                entry = self.expected(edge)
                if entry[1] is None:
                    entry[1] = NOTHING
            return None
        n = edge
        if self.inputs is not None and not self.leads(n):
            return None
        if n.run == self.stamp:
            if n.gbuf is not None:
                return None
        elif (n.run != 0 and n.run in _live) or (self.foreign and n in self.foreign):
            if n not in self.foreign:
                self.foreign[n] = NOTHING
                self.push(n)
            return None
        n.run, n.gbuf = self.stamp, NOTHING
        self.push(n)
        return None

    @cython.cfunc
    def take(self, n: Node) -> object:
        """Takes the gradient from n's buffer."""
        g: object
        if n.run == self.stamp:
            g = n.gbuf
            n.gbuf = None
            n.run = 0
            return g
        return self.foreign.pop(n)

    @cython.cfunc
    def leaf(self, t: object, g: object, owned: cython.int) -> object:
        """Accumulates a gradient that has arrived at a leaf; ``owned`` as in accumulate_leaf."""
        if self.careful:
            self.leaf_watched(t, g, owned)
        else:
            self.add_to_leaf(t, g, owned)
        return None

    @cython.cfunc
    def leaf_watched(self, t: object, g: object, owned: cython.int) -> object:
        event = self.event("torch::autograd::AccumulateGrad", g, None) if self.recorded else None
        try:
            if self.streams is not None:
                self.streams.hand(g, None)
                self.add_to_leaf(t, g, 0)
                self.streams.back()
            else:
                self.add_to_leaf(t, g, owned)
        finally:
            if event is not None:
                event.end()
        return None

    @cython.cfunc
    def event(self, name: object, g: object, number: object) -> object:
        from ptcore.autograd.recording import NODE, Range
        return Range(NODE, name, g if type(g) is not list else None, number)

    @cython.cfunc
    def add_to_leaf(self, t: object, g: object, owned: cython.int) -> object:
        entry: list
        place: cython.int
        if self.inputs is not None:
            place = self.place(t)
            if place >= 0:
                fitting = of_shape(t, g)        # `g` itself would have a reference more, and be copied into a leaf
                held = self.found[place]
                self.found[place] = fitting if held is None else held + fitting
            return None
        if has_hooks(t) or (self.waiting is not None and id(t) in self.waiting):
            entry = self.expected(t)
            entry[1] = g if entry[1] is None or entry[1] is NOTHING else entry[1] + g
            return None
        accumulate_leaf(t, g, self.create_graph, owned)
        return None

    @cython.cfunc
    def expected(self, t: object) -> list:
        """What is known of a hooked leaf that a gradient has come to."""
        if self.waiting is None:
            self.waiting = {}
        if id(t) not in self.waiting:
            self.expect()
        return self.waiting.setdefault(id(t), [0, None, t])

    @cython.cfunc
    def expect(self) -> object:
        """Counts the edges to hooked leaves of the running node, and of what it and the waiting nodes lead to."""
        pending: list = list(self.heap)
        seen: set
        known: set = set(self.waiting)
        n: Node
        i: cython.int
        if self.current is not None:
            pending.append(self.current)
        seen = set(pending)
        while pending:
            n = pending.pop()
            for i in range(n.nin):
                edge = n.edge(i)
                if edge is None:
                    continue
                if type(edge) is Node:
                    if edge not in seen:
                        seen.add(edge)
                        pending.append(edge)
                elif has_hooks(edge) and id(edge) not in known:
                    self.waiting.setdefault(id(edge), [0, None, edge])[0] += 1
        return None

    @cython.cfunc
    def arrived(self, t: object) -> object:
        """Counts an edge to a hooked leaf as done; at the last edge the hooks run on the sum."""
        entry: list = self.waiting[id(t)]
        entry[0] -= 1
        if entry[0] <= 0:
            self.complete(t)
        return None

    @cython.cfunc
    def complete(self, t: object) -> object:
        """Runs a leaf's hooks on the sum of its gradients, and accumulates the result."""
        g: object = self.waiting.pop(id(t))[1]
        if g is None:
            return None
        from ptcore.autograd._tensor_hooks import finish_leaf
        if g is NOTHING:
            finish_leaf(t, None, self.create_graph, accumulate_into)
            return None
        if self.streams is not None:
            self.streams.hand(g, None)
        finish_leaf(t, g, self.create_graph, accumulate_into)
        if self.streams is not None:
            self.streams.back()
        return None

    @cython.cfunc
    def step(self, n: Node) -> object:
        """Runs the rule of one node and passes its gradients on."""
        self.current = n
        g: object = self.take(n)
        hooks: object = n.hooks
        edge: object
        grads: object
        x: object
        spec: object
        i: cython.int
        nin: cython.int = n.nin
        needs: cython.int = 0
        if g is NOTHING:
            g = self.nothing_of(n)
            if g is NOTHING:
                return self.pass_nothing(n)
        elif hooks is not None:
            if self.streams is not None:
                self.streams.enter(n, g)
            g = hooks.of_tensors(g)
        elif self.streams is not None:
            self.streams.enter(n, g)
        if self.targets is not None and n in self.targets and g is not None:
            self.capture(n, g)
        for i in range(nin):
            edge = n.edge(i)
            if edge is not None and (self.inputs is None or self.leads(edge)):
                needs |= 1 << (i if i < 15 else 15)
        if not needs:
            return None
        if hooks is not None:
            g = hooks.of_node(n, g)
            if self.is_nothing(n, g):
                return self.pass_nothing(n)
        rule = n.fn if n.op < 0 else rule_of(n.op)
        if rule is None:
            rule = load_rule(n.op)
        grads = self.rule_watched(rule, n, g, needs) if self.watched else rule(n, g, needs)
        if nin == 1 and type(grads) is not tuple:
            if grads is not None:
                spec = n.spec
                if spec is not None and spec[0] is not None:
                    grads = reduce_to(grads, spec[0])
            if hooks is not None:
                grads = hooks.after(n, (grads,), g)[0]
            if grads is not None:
                edge = n.e0
                if type(edge) is Node:
                    self.deliver(edge, n.n0, grads)
                elif edge is not None:
                    self.leaf(edge, grads, 0 if grads is g else 1)
            elif n.e0 is not None:
                self.visit(n.e0)
        else:
            if type(grads) is not tuple:
                grads = (grads,)
            spec = n.spec
            if hooks is not None:
                if spec is not None:
                    grads = tuple([x if x is None or s is None else reduce_to(x, s) for x, s in zip(grads, spec)])
                    spec = None
                grads = hooks.after(n, grads, g)
            for i in range(nin):
                edge = n.edge(i)
                if edge is None or i >= len(grads):
                    continue
                x = grads[i]
                if x is None:
                    self.visit(edge)
                    continue
                if spec is not None and spec[i] is not None:
                    x = reduce_to(x, spec[i])
                if type(edge) is Node:
                    if self.inputs is None or self.leads(edge):
                        self.deliver(edge, n.edge_nr(i), x)
                else:
                    self.leaf(edge, x, 0 if x is g else 2)
        self.end_step(n)
        return None

    @cython.cfunc
    def end_step(self, n: Node) -> object:
        i: cython.int
        if self.waiting is not None:
            for i in range(n.nin):
                edge = n.edge(i)
                if edge is not None and type(edge) is not Node and id(edge) in self.waiting:
                    self.arrived(edge)
        if not self.retain_graph:
            n.release()
        return None

    @cython.cfunc
    def nothing_of(self, n: Node) -> object:
        """What the rule of a node gets to which no gradient has come: None for each output of a custom Function, or the
        gradients that hooks gave; NOTHING if the rule need not run."""
        hooks: object = n.hooks
        grads: list = [None] * n.nout
        if hooks is not None:
            grads = hooks.of_nothing(grads)
        g: object = grads[0] if n.nout == 1 else grads
        return NOTHING if self.is_nothing(n, g) else g

    @cython.cfunc
    def is_nothing(self, n: Node, g: object) -> cython.bint:
        """Whether a node has no gradient, so that its rule need not run."""
        if g is not None and (n.nout == 1 or any([each is not None for each in g])):
            return False
        return n.op >= 0 or not getattr(n.fn, "takes_nothing", False)

    @cython.cfunc
    def pass_nothing(self, n: Node) -> object:
        """Follows the edges of a node whose rule need not run."""
        i: cython.int
        for i in range(n.nin):
            edge = n.edge(i)
            if edge is not None:
                self.visit(edge)
        return self.end_step(n)

    @cython.cfunc
    def rule_watched(self, rule: object, n: Node, g: object, needs: cython.int) -> object:
        if self.recorded:
            event = self.event(n.name(), g, n.seq)
            record_rule(n.op >= 0)
            try:
                grads = rule(n, g, needs)
            finally:
                record_rule(False)
                event.end()
        else:
            grads = rule(n, g, needs)
        if self.anomaly:
            _anomaly.check(n, grads)
        return grads

    @cython.cfunc
    def mark_of(self, n: Node) -> cython.int:
        """The mark of n in this run; -1 if it was not visited."""
        if n.mark_run == self.stamp:
            return n.mark
        return self.marks.get(n, -1) if self.marks else -1

    @cython.cfunc
    def set_mark(self, n: Node, mark: cython.int) -> object:
        if n.mark_run != self.stamp:
            if (n.mark_run != 0 and n.mark_run in _live) or (self.marks and n in self.marks):
                self.marks[n] = mark
                return None
            n.mark_run = self.stamp
        n.mark = mark
        return None

    @cython.cfunc
    def leads(self, edge: object) -> cython.bint:
        """Whether an edge leads to an input."""
        if type(edge) is Node:
            return self.mark_of(edge) & LEADS != 0
        return self.place(edge) >= 0

    @cython.cfunc
    def place(self, t: object) -> cython.int:
        """The first place of a leaf among the inputs; -1 if it is no input."""
        i: cython.int
        if self.by_id is not None:
            return self.by_id.get(id(t), -1)
        for i in range(len(self.inputs)):
            if self.inputs[i] is t:
                return i
        return -1

    @cython.cfunc
    def ask(self, inputs: list) -> dict:
        """Requests the gradients of some tensors; returns {place: first place} of repeated ones, or None."""
        again: dict = None
        k: cython.int
        at: cython.int
        n: Node
        self.inputs = inputs
        self.found = [None] * len(inputs)
        if len(inputs) > FEW:
            self.by_id = {}
        for k in range(len(inputs)):
            t = inputs[k]
            n = producer(t)
            if n is not None:
                if self.targets is None:
                    self.targets = {}
                self.targets.setdefault(n, []).append((t.output_nr, k))
                at = k
            elif self.by_id is None:
                at = self.place(t)
            else:
                at = self.by_id.setdefault(id(t), k)
            if at != k:
                if again is None:
                    again = {}
                again[k] = at
        return again

    @cython.cfunc
    def survey(self, roots: list) -> object:
        """Visits each node once, after the nodes that it leads to, and marks those that lead to inputs."""
        pending: list = []
        n: Node
        i: cython.int
        mark: cython.int
        for t in roots:
            n = producer(t)
            if n is not None:
                pending.append(n)
        while pending:
            n = pending[len(pending) - 1]
            mark = self.mark_of(n)
            if mark < 0:
                self.set_mark(n, 0)
                for i in range(n.nin):
                    edge = n.edge(i)
                    if type(edge) is Node and self.mark_of(edge) < 0:
                        pending.append(edge)
                continue
            pending.pop()
            if mark & VISITED:
                continue
            mark = VISITED
            for i in range(n.nin):
                edge = n.edge(i)
                if edge is not None and self.leads(edge):
                    mark |= LEADS
            if self.targets is not None and n in self.targets:
                mark |= LEADS
            self.set_mark(n, mark)
        return None

    @cython.cfunc
    def capture(self, n: Node, g: object) -> object:
        """Keeps the gradients of inputs that are outputs of n."""
        for nr, place in self.targets[n]:
            x = g if n.nout == 1 else g[nr]
            self.found[place] = x
            if self.streams is not None and x is not None:
                self.streams.hand(x, None)
                self.streams.back()
        return None

    @cython.cfunc
    def ahead(self, ends: object) -> list:
        """For each end of an edge, a node or a leaf, whether its gradient is still to come in this run, seen from the
        running node. None stands for one that is gone."""
        pending: list = list(self.heap)
        seen: set = set(pending)
        leaves: set = set()
        n: Node
        i: cython.int
        if self.current is not None and self.current not in seen:
            pending.append(self.current)
            seen.add(self.current)
        while pending:
            n = pending.pop()
            for i in range(n.nin):
                edge = n.edge(i)
                if edge is None or (self.inputs is not None and not self.leads(edge)):
                    continue
                if type(edge) is not Node:
                    leaves.add(id(edge))
                elif edge not in seen:
                    seen.add(edge)
                    pending.append(edge)
        result: list = []
        for t in ends:
            if t is None or type(t) is Node:
                result.append(t in seen)
            else:
                i = -1 if self.inputs is None else self.place(t)
                result.append(id(t) in leaves or (i >= 0 and self.found[i] is not None))
        return result

    @cython.cfunc
    def begin_at_leaves(self, roots: object, grads: object) -> object:
        """Gives roots that are leaves their gradients, after all others: then it is known what else comes to them."""
        for k, t in enumerate(roots):
            if producer(t) is None:
                self.leaf(t, grads[k], 0)
        if self.waiting:
            for entry in list(self.waiting.values()):
                if entry[0] == 0:
                    self.complete(entry[2])
        return None

    @cython.cfunc
    def walk(self) -> object:
        n: Node
        if self.recorded:
            return self.walk_recorded()
        while self.heap:
            n = self.pop()
            self.step(n)
        return None

    @cython.cfunc
    def walk_recorded(self) -> object:
        n: Node
        from ptcore.autograd.recording import ENGINE, Range
        while self.heap:
            n = self.pop()
            event = Range(ENGINE, f"autograd::engine::evaluate_function: {n.name()}", None, n.seq)
            try:
                self.step(n)
            finally:
                event.end()
        return None

    @cython.cfunc
    def clear(self) -> object:
        """Removes buffers and marks of this run from the nodes, after an exception."""
        n: Node
        for item in self.heap:
            n = item
            if n.run == self.stamp:
                n.gbuf = None
                n.run = 0
        return None


def undivided(lock, function):
    """Wraps a function so that one thread at a time runs it."""
    def locked(*args):
        with lock:
            return function(*args)
    return locked


if not cython.compiled:
    import threading
    _lock = threading.RLock()
    for _name in ("deliver", "visit", "take", "clear", "set_mark"):
        setattr(Run, _name, undivided(_lock, getattr(Run, _name)))


@cython.cfunc
def add_to(buffer: object, nout: cython.int, nr: cython.int, g: object) -> object:
    if nout == 1:
        return g if buffer is None else buffer + g
    if buffer is None:
        buffer = [None] * nout
    buffer[nr] = g if buffer[nr] is None else buffer[nr] + g
    return buffer


def watch(hook, on):
    """Registers or removes a hook that needs ``ahead``; it is not kept alive."""
    if on:
        _watched.add(weakref.ref(hook, _watched.discard))
    else:
        _watched.discard(weakref.ref(hook))


def asks_for_inputs(node):
    """Whether the backward that runs the rule of a node gives gradients to its ``inputs`` alone: only such a backward
    marks nodes."""
    run: Run
    if node.mark_run in _live:
        return True
    for run in list(_live.values()):
        if run.marks and node in run.marks:
            return True
    return False


@cython.cfunc
def running() -> Run:
    run: object = _running.get(get_ident())
    if run is None:
        raise RuntimeError("register_multi_grad_hook: the hook is called outside of the backwards that it saw begin")
    return run


def run_number():
    """The number of this thread's backward."""
    return running().stamp


def ahead(ends):
    """For each node or leaf, whether its gradient is still to come in this thread's backward."""
    return running().ahead(ends)


def run_backward(roots, grads, retain_graph, create_graph, inputs, accumulate):
    """Walks back from the roots.

    Parameters
    ----------
    roots, grads : lists of tensors
    retain_graph, create_graph : bool
    inputs : list of tensors or None
        With ``accumulate`` False their gradients are returned; with True only they get one.
    """
    run: Run = Run()
    before: cython.bint = is_grad_enabled()
    stamp = next(_stamps)
    run.stamp = stamp
    run.heap = []
    run.foreign = {}
    run.marks = {}
    run.inputs = run.found = run.by_id = run.targets = run.waiting = run.current = run.streams = None
    run.create_graph = create_graph
    run.retain_graph = retain_graph
    run.anomaly = is_anomaly_enabled()
    if are_streams_used():
        from ptcore.autograd._streams import Streams
        run.streams = Streams()
    run.recorded = is_recorded()
    run.watched = run.anomaly or run.recorded
    run.careful = run.streams is not None or run.recorded
    again: dict = None if inputs is None else run.ask(inputs)
    if _watched:
        thread = get_ident()
        outer, _running[thread] = _running.get(thread), run
        try:
            return walked(run, roots, grads, again, before, accumulate)
        finally:
            _running[thread] = outer
    return walked(run, roots, grads, again, before, accumulate)


@cython.cfunc
def walked(run: Run, roots: object, grads: object, again: object, before: cython.bint, accumulate: object) -> object:
    """Runs the backward of a prepared run; returns the requested gradients."""
    n: Node
    stamp = run.stamp
    inputs: object = run.inputs
    create_graph: cython.bint = run.create_graph
    leaves: cython.bint = False
    _live[stamp] = run
    put_grad_enabled(create_graph)
    try:
        if inputs is not None:
            run.survey(roots)
        for k, t in enumerate(roots):
            n = producer(t)
            if n is not None:
                run.deliver(n, 0 if n.nout == 1 else t.output_nr, grads[k])
            else:
                leaves = True
        if leaves:
            run.begin_at_leaves(roots, grads)
        run.walk()
        if run.waiting:                     # some of what was expected did not come
            for entry in list(run.waiting.values()):
                run.complete(entry[2])
    except BaseException as error:
        run.clear()
        if run.anomaly and run.current is not None and isinstance(error, Exception):
            _anomaly.report(run.current)
        _anomaly.locate(error, run.current)
        raise
    finally:
        if run.streams is not None:
            run.streams.choose(None)
        del _live[stamp]
        put_grad_enabled(before)
    if inputs is None:
        return None
    found: list = run.found
    if accumulate:
        done: set = set()                       # an input that is given twice gets its gradient once
        for t, g in zip(inputs, found):
            if g is not None and not t.retains_grad and id(t) not in done:      # with retain_grad .grad has it already
                done.add(id(t))
                if has_hooks(t) and t.grad_fn is None:
                    from ptcore.autograd._tensor_hooks import finish_leaf
                    finish_leaf(t, g, create_graph, accumulate_into)
                else:
                    accumulate_leaf(t, g, create_graph, 0)
        return None
    for k, t in enumerate(inputs):
        if has_hooks(t) and t.grad_fn is None and found[k] is not None:
            from ptcore.autograd._tensor_hooks import through_hooks
            found[k] = through_hooks(t, found[k])
    if again is not None:
        for k, at in again.items():
            found[k] = found[at]
    return found
