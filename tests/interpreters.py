"""A toy tracer and a toy batcher, written outside the core against the interposition hook.

An interpreter is an object with ``call(op, args, out, variant)``; while it is on the stack every
op of the thread is offered to it, and it runs with itself taken off.
"""
import ptcore as pt
import ptcore._ops as ops
from ptcore._state import interpreters


class Tracer:
    """Records (op name, inputs, output) while computing."""

    def __init__(self):
        self.tape = []

    def call(self, op, args, out, variant):
        result = run(op, args, variant)
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
            values[id(result)] = run(op, tuple(value(a) for a in args), 0)
        return values[id(self.tape[-1][2])]


def run(op, args, variant):
    function = ops.function(op, inplace=variant == 1)
    row = ops.row(op)
    names = [a for a in row.args if a.name not in (row.select or {})]
    positional = [v for a, v in zip(names, args) if not a.keyword_only]
    keyword = {a.name: v for a, v in zip(names, args) if a.keyword_only}
    return function(*positional, **keyword)


class Interposed:
    def __init__(self, interpreter):
        self.interpreter = interpreter

    def __enter__(self):
        interpreters.push(self.interpreter)
        return self.interpreter

    def __exit__(self, *exc):
        interpreters.pop()


class Batcher:
    """Runs elementwise ops and sum on tensors whose first dim is a hidden batch, by the row's
    batch column."""

    def __init__(self, batched):
        self.batched = {id(t) for t in batched}
        self.keep = []

    def call(self, op, args, out, variant):
        rule = ops.row(op).batch
        if not any(id(a) in self.batched for a in args):
            return run(op, args, variant)
        if rule == "broadcast":
            ndim = max(a.ndim - (id(a) in self.batched) for a in args if isinstance(a, pt.Tensor))
            aligned = []
            for a in args:
                if isinstance(a, pt.Tensor) and id(a) in self.batched:
                    a = a.reshape((a.shape[0],) + (1,) * (ndim - a.ndim + 1) + tuple(a.shape[1:]))
                aligned.append(a)
            result = run(op, tuple(aligned), variant)
        elif rule == "reduce":
            x, dim, *rest = args
            dims = range(x.ndim - 1) if dim is None else (dim,) if isinstance(dim, int) else dim
            dims = tuple(d % (x.ndim - 1) + 1 for d in dims)
            result = run(op, (x, dims, *rest), variant)
        else:
            raise NotImplementedError(op)
        self.batched.add(id(result))
        self.keep.append(result)
        return result
