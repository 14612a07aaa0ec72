"""Toy interpreters, written outside the core against the interposition hook: a tracer, a batcher,
autocast and forward mode. Each reads nothing of an op but its row.

An interpreter is an object with ``call(op, args, out, variant)``; while it is on the stack every
op of the thread is offered to it, and it runs with itself taken off. Where it returns
NotImplemented the op goes on: a composite is then offered as the ops it calls.
"""
import ptcore as pt
import ptcore._ops as ops
from ptcore._ops import _batching, _decompositions
from ptcore._ops._batching import Batched
from ptcore._state import interpreters
from ptcore._subclass import stand_in
from ptcore.autograd import _forward

INPLACE = 1


class Interposed:
    def __init__(self, interpreter):
        self.interpreter = interpreter

    def __enter__(self):
        interpreters.push(self.interpreter)
        return self.interpreter

    def __exit__(self, *exc):
        interpreters.pop()


def mapped(function, value):
    """function of every leaf of an argument or result."""
    if isinstance(value, (tuple, list)) and not isinstance(value, pt.Size):
        items = [mapped(function, v) for v in value]
        return type(value)(*items) if hasattr(value, "_make") else type(value)(items)
    return function(value)


def is_composite(op):
    return ops.row(op).kind == "composite"


class Tracer:
    """Records (op name, inputs, output) while computing."""

    def __init__(self):
        self.tape = []

    def call(self, op, args, out, variant):
        if is_composite(op):
            return NotImplemented
        result = ops.run(op, args, variant == INPLACE)
        self.tape.append((op, args, result))
        return result

    def replay(self, inputs):
        """Runs the tape again on other tensors for the inputs (id -> tensor)."""
        values = dict(inputs)

        def value(x):
            if isinstance(x, tuple):
                return tuple(value(y) for y in x)
            return values.get(id(x), x)
        for op, args, result in self.tape:
            values[id(result)] = ops.run(op, tuple(value(a) for a in args))
        return values[id(self.tape[-1][2])]


class Batcher:
    """Runs ops on stand-ins of one sample, each of which carries the samples' stack.

    A stand-in says at which level it was made: to a batcher inside, one of a batcher outside is
    a plain tensor."""

    def __init__(self):
        self.level = len(interpreters.stack)

    def sample(self, stack):
        return stand_in(stack, tuple(stack.shape[1:]), Batched(stack), self.level)

    def stack(self, sample):
        """The stacked values of a stand-in."""
        return sample._extras.payload.tensor

    def call(self, op, args, out, variant):
        if out is not None:
            raise RuntimeError(f"{op}: out= cannot be batched")
        result = _batching.call(op, mapped(self.carried, args), variant == INPLACE)
        if result is NotImplemented:
            if is_composite(op):
                return result
            with Interposed(self):
                return _decompositions.function(op)(*args)
        if variant == INPLACE:
            return args[0]
        return mapped(lambda r: self.sample(r.tensor) if isinstance(r, Batched) else r, result)

    def carried(self, x):
        if isinstance(x, pt.Tensor) and isinstance(x._extras.payload, Batched) and (
                x._extras.level == self.level):
            return x._extras.payload
        return x


class Autocast:
    """Casts what float32 or lower the arguments of an op hold, as the row's column says."""

    def __init__(self, low):
        self.low = low

    def call(self, op, args, out, variant):
        rule = ops.row(op).autocast
        if rule is not None and out is None and variant != INPLACE:
            found = []
            mapped(lambda x: found.append(x.dtype) if self.eligible(x) else None, args)
            if rule == "widest":
                rule = "high" if pt.float32 in found else None
            if rule:
                dtype = self.low if rule == "low" else pt.float32
                args = mapped(lambda x: x.to(dtype) if self.eligible(x) else x, args)
                return ops.run(op, args)        # what it calls is in that dtype as well
        return NotImplemented

    @staticmethod
    def eligible(x):
        return isinstance(x, pt.Tensor) and x.dtype.kind == "f" and x.dtype is not pt.float64


class Forward:
    """Keeps a tangent for each tensor that has one."""

    differentiates = True               # rules of a backward use ops that have tangents

    def __init__(self):
        self.tangents = {}              # id -> (tensor, tangent)

    def pair(self, x, tangent):
        if tangent is not None:
            self.tangents[id(x)] = x, tangent
        return x

    def tangent(self, x):
        return self.tangents.get(id(x), (None, None))[1]

    def call(self, op, args, out, variant):
        if is_composite(op):
            return NotImplemented
        primals = args
        if variant == INPLACE:                          # a rule may ask for the old value
            primals = (args[0].clone(), *args[1:])
        tangents = mapped(self.tangent, args)
        result = ops.run(op, primals)
        found = _forward.jvp(op, primals, tangents, result)
        if found is NotImplemented:
            with Interposed(self):
                found = mapped(self.tangent, _decompositions.function(op)(*args))
        if variant == INPLACE:
            return self.write(args[0], result, found)
        if not isinstance(result, tuple):
            return self.pair(result, found)
        for r, t in zip(result, found):
            self.pair(r, t)
        return result

    def write(self, x, value, tangent):
        x.copy_(value)
        if tangent is None:
            tangent = pt.zeros_like(x)
        before = self.tangent(x)
        if before is None:
            return self.pair(x, tangent)
        before.copy_(tangent)           # views of x have views of its tangent
        return x
