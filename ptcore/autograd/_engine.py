"""The backward walk: a heap on sequence numbers.

An edge always leads to a node with a smaller sequence number, so the largest pending node has
all of its gradient: no dependency count is needed. A node's gradient waits in its ``gbuf``
(a list when the node has several outputs), stamped with the run it belongs to; a node whose
buffer belongs to another live run (a backward inside a backward, another thread) keeps this
run's gradient in the run's own map.

Leaves take their gradient at once. While any leaf hook exists, a first pass counts the edges
that lead to hooked leaves, so that a hook runs once, on the sum.

Compiled with types by default; this file is what runs either way. In the compiled form a step
that hands gradients over (deliver, take, clear) is not divided by another thread, since it gives
the GIL up in no place where a node's stamp and buffer disagree; in the plain form a lock sees to it.
"""
import itertools
import sys

import cython

if not cython.compiled:         # plain Python finds a cimport by its whole name alone
    from ptcore import _device, _node, _state
    from ptcore.autograd import _accumulate
    sys.modules["cython.cimports.ptcore._device"] = _device
    sys.modules["cython.cimports.ptcore._node"] = _node
    sys.modules["cython.cimports.ptcore._state"] = _state
    sys.modules["cython.cimports.ptcore.autograd._accumulate"] = _accumulate

from cython.cimports.ptcore._device import are_streams_used
from cython.cimports.ptcore._node import Node
from cython.cimports.ptcore._state import _set_grad_enabled, is_anomaly_enabled, is_grad_enabled
from cython.cimports.ptcore.autograd._accumulate import (
    accumulate_leaf,
    hooked_leaves,
    producer,
    rule_of,
)

from ptcore.autograd import _anomaly
from ptcore.autograd._accumulate import load_rule
from ptcore.autograd._helpers import reduce_to

_stamps = itertools.count(1)
_live: set = set()


@cython.cclass
class Run:
    """One backward: its heap, its stamp, and what it was asked for."""

    stamp: cython.ulonglong
    heap: list
    foreign: dict           # Node -> buffer, where gbuf belongs to another live run
    needed: object          # set of nodes that lead to the inputs asked for, or None
    captured: object        # dict key -> gradient, or None: accumulate into leaves
    waiting: object         # dict leaf -> [edges left, sum] of hooked leaves, or None
    streams: object         # autograd._streams.Streams, or None where only default streams are used
    current: Node           # whose rule or hooks are running
    create_graph: cython.bint
    retain_graph: cython.bint
    anomaly: cython.bint

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
        """Adds g to what waits at output nr of n; queues n the first time."""
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
                if n in self.foreign:
                    self.foreign[n] = add_to(self.foreign[n], n.nout, nr, g)
                else:
                    self.foreign[n] = add_to(None, n.nout, nr, g)
                    self.push(n)
                return None
            n.run = self.stamp
            n.gbuf = None
        if n.gbuf is None:
            self.push(n)
        if n.nout == 1:
            n.gbuf = g if n.gbuf is None else n.gbuf + g
        else:
            n.gbuf = add_to(n.gbuf, n.nout, nr, g)
        return None

    @cython.cfunc
    def take(self, n: Node) -> object:
        """The gradient that waits at n, taken off."""
        g: object
        if n.run == self.stamp:
            g = n.gbuf
            n.gbuf = None
            n.run = 0
            return g
        return self.foreign.pop(n)

    @cython.cfunc
    def leaf(self, t: object, g: object, owned: cython.int) -> object:
        """A gradient has arrived at a leaf; ``owned`` as in accumulate_leaf."""
        if self.streams is not None:
            self.streams.hand(g, None)
            self.add_to_leaf(t, g, 0)
            self.streams.back()
        else:
            self.add_to_leaf(t, g, owned)
        return None

    @cython.cfunc
    def add_to_leaf(self, t: object, g: object, owned: cython.int) -> object:
        entry: list
        if self.captured is not None:
            if id(t) in self.captured:
                held = self.captured[id(t)]
                self.captured[id(t)] = g if held is None else held + g
            return None
        if self.waiting is not None and id(t) in self.waiting:
            entry = self.waiting[id(t)]
            entry[1] = g if entry[1] is None else entry[1] + g
            return None
        accumulate_leaf(t, g, self.create_graph, owned)
        return None

    @cython.cfunc
    def arrived(self, t: object) -> object:
        """One edge to a hooked leaf is done; at the last one the hooks run on the sum."""
        entry: list = self.waiting[id(t)]
        entry[0] -= 1
        if entry[0] == 0:
            if self.streams is not None and entry[1] is not None:
                self.streams.hand(entry[1], None)
            finish_leaf(t, entry[1], self.create_graph)
            if self.streams is not None and entry[1] is not None:
                self.streams.back()
        return None

    @cython.cfunc
    def step(self, n: Node) -> object:
        """Runs the rule of one node and hands its gradients on."""
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
        if self.streams is not None:
            self.streams.enter(n, g)
        if hooks is not None:
            g = hooks.before(n, g)
            if self.captured is not None:
                self.capture(n, g)
        elif self.captured is not None:
            self.capture(n, g)
        if self.needed is not None and n not in self.needed:
            return None
        for i in range(nin):
            edge = n.edge(i)
            if edge is not None and (self.needed is None or edge in self.needed
                                     or id(edge) in self.captured):
                needs |= 1 << (i if i < 15 else 15)
        if not needs:
            return None
        rule = n.fn if n.op < 0 else rule_of(n.op)
        if rule is None:
            rule = load_rule(n.op)
        grads = rule(n, g, needs)
        if self.anomaly:
            _anomaly.check(n, grads)
        if nin == 1 and type(grads) is not tuple:
            if hooks is not None:
                grads = hooks.after(n, (grads,), g)[0]
            if grads is not None:
                spec = n.spec
                if spec is not None and spec[0] is not None:
                    grads = reduce_to(grads, spec[0])
                edge = n.e0
                if type(edge) is Node:
                    self.deliver(edge, n.n0, grads)
                elif edge is not None:
                    self.leaf(edge, grads, 0 if grads is g else 1)
        else:
            if type(grads) is not tuple:
                grads = (grads,)
            if hooks is not None:
                grads = hooks.after(n, grads, g)
            spec = n.spec
            for i in range(nin):
                edge = n.edge(i)
                if edge is None or i >= len(grads):
                    continue
                x = grads[i]
                if x is None:
                    continue
                if spec is not None and spec[i] is not None:
                    x = reduce_to(x, spec[i])
                if type(edge) is Node:
                    if self.needed is None or edge in self.needed:
                        self.deliver(edge, n.edge_nr(i), x)
                else:
                    self.leaf(edge, x, 0 if x is g else 2)
        if self.waiting is not None:
            for i in range(nin):
                edge = n.edge(i)
                if edge is not None and type(edge) is not Node and id(edge) in self.waiting:
                    self.arrived(edge)
        if not self.retain_graph:
            n.release()
        return None

    @cython.cfunc
    def capture(self, n: Node, g: object) -> object:
        """Keeps the gradient of a non-leaf input that was asked for."""
        i: cython.int
        for i in range(n.nout):
            key = (n, i)
            if key in self.captured:
                x = g if n.nout == 1 else g[i]
                self.captured[key] = x
                if self.streams is not None and x is not None:
                    self.streams.hand(x, None)
                    self.streams.back()
        return None

    @cython.cfunc
    def walk(self) -> object:
        n: Node
        while self.heap:
            n = self.pop()
            self.step(n)
        return None

    @cython.cfunc
    def clear(self) -> object:
        """After an exception: nothing of this run stays on the nodes."""
        n: Node
        for item in self.heap:
            n = item
            if n.run == self.stamp:
                n.gbuf = None
                n.run = 0
        return None


def undivided(lock, function):
    """function, run by one thread at a time."""
    def locked(*args):
        with lock:
            return function(*args)
    return locked


if not cython.compiled:
    import threading
    _lock = threading.RLock()
    for _name in ("deliver", "take", "clear"):
        setattr(Run, _name, undivided(_lock, getattr(Run, _name)))


@cython.cfunc
def add_to(buffer: object, nout: cython.int, nr: cython.int, g: object) -> object:
    if nout == 1:
        return g if buffer is None else buffer + g
    if buffer is None:
        buffer = [None] * nout
    buffer[nr] = g if buffer[nr] is None else buffer[nr] + g
    return buffer


def through_hooks(t, g):
    """What a leaf's hooks make of its gradient."""
    hooks = t._extras.hooks
    if hooks:
        from ptcore.autograd._tensor_hooks import replaced
        for hook in list(hooks.values()):
            g = replaced(hook, g, hook(g))
    return g


def finish_leaf(t, g, create_graph):
    """Runs a leaf's hooks on the sum and accumulates the result."""
    extras = t._extras
    if g is None:
        return
    g = through_hooks(t, g)
    accumulate_leaf(t, g, create_graph, 0)
    if extras.post_hooks:
        for hook in list(extras.post_hooks.values()):
            hook(t)


def reachable(roots):
    """All nodes that can be reached from the roots, largest seq first."""
    n: Node
    i: cython.int
    seen = set(roots)
    pending = list(roots)
    while pending:
        n = pending.pop()
        for i in range(n.nin):
            edge = n.edge(i)
            if type(edge) is Node and edge not in seen:
                seen.add(edge)
                pending.append(edge)
    return sorted(seen, key=lambda n: -n._sequence_nr())


def mark_needed(nodes, targets, leaves):
    """The nodes from which a target node or one of the leaves (by id) can be reached."""
    n: Node
    i: cython.int
    needed = set()
    for item in reversed(nodes):
        n = item
        for i in range(n.nin):
            edge = n.edge(i)
            if edge is None:
                continue
            if edge in needed or edge in targets if type(edge) is Node else id(edge) in leaves:
                needed.add(n)
                break
    return needed


def count_edges(nodes, needed):
    """{id(leaf): [edges, None]} of the hooked leaves."""
    n: Node
    i: cython.int
    waiting = {}
    for item in nodes:
        n = item
        if needed is not None and n not in needed:
            continue
        for i in range(n.nin):
            edge = n.edge(i)
            if edge is not None and type(edge) is not Node:
                extras = edge._extras
                if extras.hooks or extras.post_hooks:
                    waiting.setdefault(id(edge), [0, None])[0] += 1
    return waiting


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
    n: Node
    before: cython.bint = is_grad_enabled()
    stamp = next(_stamps)
    run.stamp = stamp
    run.heap = []
    run.foreign = {}
    run.needed = run.captured = run.waiting = run.current = run.streams = None
    run.create_graph = create_graph
    run.retain_graph = retain_graph
    run.anomaly = is_anomaly_enabled()
    if are_streams_used():
        from ptcore.autograd._streams import Streams
        run.streams = Streams()
    keys = []
    if inputs is not None:
        run.captured = {}
        for t in inputs:
            node = t.grad_fn
            key = id(t) if node is None else (node, t.output_nr)
            keys.append(key)
            run.captured[key] = None
    if inputs is not None or hooked_leaves():
        nodes = reachable([t.grad_fn for t in roots if t.grad_fn is not None])
        if inputs is not None:
            targets = {key[0] for key in keys if type(key) is tuple}
            leaves = {key for key in keys if type(key) is not tuple}
            run.needed = mark_needed(nodes, targets, leaves) | targets
        if inputs is None:
            run.waiting = count_edges(nodes, run.needed) or None
    _live.add(stamp)
    _set_grad_enabled(create_graph)
    try:
        for k, t in enumerate(roots):
            g = grads[k]
            n = producer(t)
            if n is not None:
                run.deliver(n, 0 if n.nout == 1 else t.output_nr, g)
            elif run.waiting is not None and id(t) in run.waiting:
                run.waiting[id(t)][0] += 1
                run.leaf(t, g, 0)
                run.arrived(t)
            elif inputs is None and (t._extras.hooks or t._extras.post_hooks):
                finish_leaf(t, g, create_graph)
            else:
                run.leaf(t, g, 0)
        run.walk()
    except BaseException as error:
        run.clear()
        _anomaly.locate(error, run.current)
        raise
    finally:
        if run.streams is not None:
            run.streams.choose(None)
        _live.discard(stamp)
        _set_grad_enabled(before)
    if inputs is None:
        return None
    found = [run.captured[key] for key in keys]
    if accumulate:
        for t, g in zip(inputs, found):
            if g is not None and not t.retains_grad:    # a retained one is in .grad already
                if (t._extras.hooks and t.grad_fn is None) or t._extras.post_hooks:
                    finish_leaf(t, g, create_graph)
                else:
                    accumulate_leaf(t, g, create_graph, 0)
        return None
    for k, t in enumerate(inputs):
        if t.grad_fn is None and found[k] is not None:
            found[k] = through_hooks(t, found[k])
    return found
