"""The interposition hook: a toy tracer and a toy batcher, written outside the core.

An interpreter is an object with ``call(op, args, out, variant)``; while it is on the stack every
op of the thread is offered to it, and it runs with itself taken off.
"""
import numpy as np
import pytest

import ptcore as pt
import ptcore._ops as ops
from ptcore._state import interpreters

pytestmark = pytest.mark.core


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


def program(x, w):
    h = pt.relu(x @ w) * 2.0
    return (h.softmax(1) + h.sum(1, keepdim=True))[:, 1:].t()


def test_tracer_sees_every_op_and_replays():
    x, w = pt.randn(3, 4), pt.randn(4, 5)
    with Interposed(Tracer()) as tracer:
        expected = program(x, w)
    names = [entry[0] for entry in tracer.tape]
    for name in ("mm", "relu", "mul", "softmax", "sum", "add", "slice", "transpose"):
        assert name in names
    x2 = pt.randn(3, 4)
    got = tracer.replay({id(x): x2, id(w): w})
    np.testing.assert_array_equal(got.numpy(), program(x2, w).numpy())
    assert expected.shape == (4, 3)


def test_nothing_is_offered_outside():
    with Interposed(Tracer()) as tracer:
        pass
    pt.ones(2) + 1
    assert tracer.tape == []


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


def test_batcher_equals_a_loop():
    xs, w = pt.randn(6, 3, 4), pt.randn(4)

    def per_sample(x):
        return (pt.exp(x) * w + 1).sum(-1)
    with Interposed(Batcher([xs])):
        got = per_sample(xs)
    expected = np.stack([per_sample(xs[i]).numpy() for i in range(6)])
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


def test_an_exception_leaves_the_stack_in_order():
    class Failing:
        def call(self, op, args, out, variant):
            raise KeyError(op)
    with Interposed(Failing()):
        with pytest.raises(KeyError):
            pt.ones(1) + 1
        assert len(interpreters.stack) == 1
    assert interpreters.stack == []
    assert (pt.ones(1) + 1).item() == 2
