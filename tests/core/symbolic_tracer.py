"""A tracer of symbolic sizes for tests: it runs ops at hint sizes, writes down what it was handed, and runs that again at
other sizes. What it was handed as an int stays that int, so a symbol that was lost on the way shows."""
import ptcore as pt
import ptcore._ops as ops
from ptcore._interpret import Interpreter, Payload
from ptcore._ops.calling import run
from ptcore._ops.table.evaluate import symbolic_layout, symbolic_sizes
from ptcore._sizes.symbolic import ShapeEnv, SymFloat, SymInt
from ptcore._subclass import payload_of, stands_for

INPLACE = 1


def mapped(function, value):
    if isinstance(value, (tuple, list)):
        items = [mapped(function, v) for v in value]
        return tuple(items)
    return function(value)


def has_layout(x):
    """Whether a tensor's strides can be said."""
    try:
        return x.stride() is not None and x.storage_offset() is not None
    except RuntimeError:
        return False


class Value(Payload):
    """What a stand-in carries."""

    def __init__(self, owner, tensor, sizes, static=(), layout=None):
        super().__init__(owner)
        self.tensor, self.sizes, self.static = tensor, tuple(sizes), static
        self.strides, self.offset = (None, None) if layout is None else layout


class Tracer(Interpreter):
    def __init__(self, **options):
        self.env, self.tape, self.inputs = ShapeEnv(**options), [], []

    def input(self, tensor, static=()):
        """A stand-in whose sizes are symbols, but for those of the dims in ``static``."""
        sizes = [n if d in static else self.env.symbol(n, f"x{len(self.inputs)}.shape[{d}]")
                 for d, n in enumerate(tensor.shape)]
        self.inputs.append(Value(self, tensor, sizes, static))
        return stands_for(tensor, self.inputs[-1])

    def carried(self, x):
        found = payload_of(x) if isinstance(x, pt.Tensor) else None
        return found if isinstance(found, Value) and found.owner is self else x

    def hint(self, x):
        x = self.carried(x)
        return x.tensor if isinstance(x, Value) else x.hint if isinstance(x, (SymInt, SymFloat)) else x

    def call(self, op, args, out, variant):
        op = ops.row(op).name
        if ops.row(op).kind == "composite":
            return NotImplemented
        inplace = variant == INPLACE
        sizes = tuple(args[0].shape) if inplace else symbolic_sizes(op, args)
        result = run(op, mapped(self.hint, args), inplace)
        several = isinstance(result, tuple)
        layout = symbolic_layout(op, args) if ops.row(op).kind == "view" and has_layout(args[0]) else None
        results = []
        for k, r in enumerate(result if several else (result,)):
            v = Value(self, r, sizes[k] if several else sizes, (), layout[k] if several and layout else layout)
            self.check(op, v, r, {leaf: leaf.hint for leaf in self.leaves})
            results.append(v)
        self.tape.append((op, mapped(self.carried, args), inplace, results))
        if inplace:
            self.carried(args[0]).tensor = result
            return args[0]
        made = tuple([stands_for(v.tensor, v) for v in results])
        return made if several else made[0]

    @property
    def leaves(self):
        return {leaf for _, n in self.env.inputs if isinstance(n, SymInt) for leaf in n.expr.atoms()}

    def check(self, op, v, r, values):
        """Sizes, and strides and offset where they are said, are those of the tensor."""
        assert self.env.evaluate(v.sizes, values) == tuple(r.shape), f"{op}: {v.sizes} is not {r.shape}"
        if v.strides is not None and r.numel() and r.device.type != "meta":
            strides = self.env.evaluate(v.strides, values)
            assert [s for s, n in zip(strides, r.shape) if n != 1] == [s for s, n in zip(r.stride(), r.shape) if n != 1], (
                f"{op}: {v.strides} is not {r.stride()}")
            assert self.env.evaluate(v.offset, values) == r.storage_offset(), f"{op}: {v.offset}"

    def trace(self, function, *tensors, static=()):
        """What function gives for stand-ins; ``static`` has the static dims of each tensor."""
        given = [self.input(t, dict(enumerate(static)).get(k, ())) for k, t in enumerate(tensors)]
        with self:
            result = function(*given)
        self.outputs = mapped(self.carried, result)
        return result

    def sizes_of(self, tensors):
        """The sizes that are inputs of the environment."""
        return [n for t, v in zip(tensors, self.inputs) for d, n in enumerate(t.shape) if d not in v.static]

    def replay(self, *tensors):
        """The same ops on other tensors."""
        sizes = self.sizes_of(tensors)
        values = {id(v): t for v, t in zip(self.inputs, tensors)}

        def value(x):
            if isinstance(x, Value):
                return values[id(x)]
            return self.env.evaluate(x, sizes) if isinstance(x, (SymInt, SymFloat)) else x
        for op, args, inplace, results in self.tape:
            made = run(op, mapped(value, args), inplace)
            for v, r in zip(results, made if isinstance(made, tuple) else (made,)):
                values[id(v)] = r
                self.check(op, v, r, sizes)
        return mapped(value, self.outputs)


def specialised(env):
    """How many leaves a guard has fixed to a number."""
    return len({id(n) for _, n in env.inputs if isinstance(n, SymInt) and (n == n.hint) is True})
