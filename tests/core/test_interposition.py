"""The interposition hook, shown by the toy tracer and batcher of tests/interpreters.py."""
import numpy as np
import pytest
from interpreters import Batcher, Interposed, Tracer

import ptcore as pt
from ptcore._state import interpreters

pytestmark = pytest.mark.core


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
