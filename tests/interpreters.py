"""Interpreters for tests: a toy tracer and a toy autocast, written outside the core against the interposition hook,
and the batcher and the dual numbers of ``func``. Each reads nothing of an op but its row.

``with interpreter:`` makes one the innermost: every op of the thread is offered to it, and it runs with itself taken
off. Where it returns NotImplemented the op goes on: a composite is then offered as the ops it calls.
"""
import ptcore as pt
import ptcore._ops as ops
from ptcore._interpret import Interpreter
from ptcore._ops.calling import run
from ptcore._ops.table.ids import op_name
from ptcore.autograd import batch
from ptcore.autograd.dual import Forward as Forward

INPLACE = 1


def mapped(function, value):
    """function of every leaf of an argument or result."""
    if isinstance(value, (tuple, list)) and not isinstance(value, pt.Size):
        items = [mapped(function, v) for v in value]
        return type(value)(*items) if hasattr(value, "_make") else type(value)(items)
    return function(value)


def is_composite(op):
    return ops.row(op).kind == "composite"


class Tracer(Interpreter):
    """Records (op name, inputs, output) while computing."""

    def __init__(self):
        self.tape = []

    def call(self, op, args, out, variant):
        if is_composite(op):
            return NotImplemented
        result = run(op, args, variant == INPLACE)
        self.tape.append((op_name(op), args, result))
        return result

    def replay(self, inputs):
        """Runs the tape again on other tensors for the inputs (id -> tensor)."""
        values = dict(inputs)

        def value(x):
            if isinstance(x, tuple):
                return tuple(value(y) for y in x)
            return values.get(id(x), x)
        for op, args, result in self.tape:
            values[id(result)] = run(op, tuple(value(a) for a in args))
        return values[id(self.tape[-1][2])]


class Batcher(batch.Batcher):
    """The batcher of vmap, of whichever size is met first."""

    def __init__(self, randomness="error"):
        super().__init__(None, randomness)

    def sample(self, stack):
        self.size = stack.shape[0]
        return super().sample(stack)

    def stack(self, sample):
        """The stacked values of a stand-in."""
        return self.value(sample).tensor

    def carried(self, x):
        return self.value(x) if isinstance(x, pt.Tensor) else x


class Autocast(Interpreter):
    """Casts what float32 or lower the arguments of an op hold, as the row's column says."""

    def __init__(self, low):
        self.low = low

    def call(self, op, args, out, variant):
        rule = ops.row(op).autocast_on("cuda")
        if rule is not None and out is None and variant != INPLACE:
            found = []
            mapped(lambda x: found.append(x.dtype) if self.eligible(x) else None, args)
            if rule == "widest":
                rule = "high" if pt.float32 in found else None
            if rule:
                dtype = self.low if rule == "low" else pt.float32
                args = mapped(lambda x: x.to(dtype) if self.eligible(x) else x, args)
                return run(op, args)        # what it calls is in that dtype as well
        return NotImplemented

    @staticmethod
    def eligible(x):
        return isinstance(x, pt.Tensor) and x.dtype.kind == "f" and x.dtype is not pt.float64
