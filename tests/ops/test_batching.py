"""The ``batch`` column of every row: an op on stacked samples equals a loop and a stack.

For each case of each row and each choice of batched arguments, the toy batcher of
tests/interpreters.py runs the op once; ptcore's own loop over the samples is the oracle (the forward
tests compare that with NumPy).
"""
import itertools
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from _cases import CASES, ROWS, B, F, I, Of, Sample, array, case_id, cases, dtypes, function
from _composite_cases import NEED_DATA as COMPOSITES_THAT_NEED_DATA
from _walk import walk
from interpreters import Batcher
from test_gradient import NOT_REAL_RESULTS, differentiable_arguments, is_differentiable, small_cases

import ptcore as pt
from ptcore._ops.calling import run

pytestmark = pytest.mark.core

SIZE = 3
MOST_ELEMENTS = 300
# Values of data decide the call itself, or the result is a Python bool.
NEED_DATA = {"equal", "allclose", *COMPOSITES_THAT_NEED_DATA}
RISING = {"segments", "segments_slope"}        # their positions must rise
UNDER_TEST = [r for r in ROWS.values() if r.name not in NEED_DATA and not r.random
              and not r.batch.startswith(("refused:", "constant")) and (r.kind == "elementwise" or CASES[r.name])]


def elements(spec):
    if isinstance(spec, (list, tuple)):
        return sum(elements(s) for s in spec)
    return int(np.prod(spec.shape)) if isinstance(spec, F) else 0


def samples(row, case, dtype):
    """The arguments of SIZE samples, of which positions are turned so that they differ."""
    def turned(spec, k):
        if isinstance(spec, (list, tuple)):
            return type(spec)([turned(s, k) for s in spec])
        if isinstance(spec, I) and row.name in RISING:
            return I(np.maximum(spec.values - k, 0))
        return I(np.roll(spec.values, k, 0)) if isinstance(spec, I) and spec.values.ndim else spec

    made = []
    for k in range(SIZE):
        sample = Sample(row, [turned(s, k) for s in case], dtype, np.random.default_rng(7 + k))
        positional, keyword = sample.arguments()
        order = iter(positional)
        made.append([keyword[a.name] if a.keyword_only else next(order) for a in sample.args])
    return made


def tensor_places(case, args):
    """Where tensors stand: (argument,) or (argument, item)."""
    for i, (spec, value) in enumerate(zip(case, args)):
        if isinstance(value, tuple) and value and isinstance(value[0], pt.Tensor):
            yield from ((i, k) for k in range(len(value)))
        elif isinstance(spec, (F, I, B, Of)):
            yield (i,)


def at(args, place):
    value = args[place[0]]
    return value if len(place) == 1 else value[place[1]]


def put(args, place, value):
    if len(place) == 1:
        args[place[0]] = value
    else:
        items = list(args[place[0]])
        items[place[1]] = value
        args[place[0]] = tuple(items)


def outputs(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(row, case, dtype, batched, made):
    loop = []
    for one in made:
        args = list(made[0])
        for place in batched:
            put(args, place, at(one, place))
        loop.append(outputs(run(row.name, tuple(args))))
    with Batcher() as batcher:
        args = list(made[0])
        for place in batched:
            stack = pt.from_numpy(np.stack([array(at(one, place)) for one in made]))
            put(args, place, batcher.sample(stack))
        result = outputs(run(row.name, tuple(args)))
    assert len(result) == len(loop[0])
    for k, r in enumerate(result):
        want = np.stack([array(one[k]) for one in loop])
        got = batcher.carried(r)
        if isinstance(got, pt.Tensor):              # it depends on nothing that is batched
            got = np.broadcast_to(array(got), want.shape)
        else:
            assert r.shape == loop[0][k].shape
            assert r.dtype is loop[0][k].dtype
            got = array(got.tensor)
        if row.name in ("cross_entropy_stats", "nll_loss_stats") and "none" in args:
            if k == len(result) - 1:
                continue                            # the total is only worked out where it is needed
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST])
def test_equals_a_loop(row):
    dtype = next((t for t in ("float64", "complex128", "int64", "bool") if t in dtypes(row)), dtypes(row)[-1])
    tried = 0
    for case in cases(row):
        if sum(elements(s) for s in case) > MOST_ELEMENTS:
            continue
        made = samples(row, case, dtype)
        places = list(tensor_places(case, made[0]))
        for n in range(1, len(places) + 1):
            for batched in itertools.combinations(places, n):
                try:
                    check(row, case, dtype, batched, made)
                except Exception as e:
                    raise AssertionError(f"{case_id(row, case)} {batched}: {type(e).__name__}: {e}") from e
                tried += 1
    assert tried


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in ROWS.values()
                                 if r.inplace and r.name in {u.name for u in UNDER_TEST}])
def test_in_place(row):
    """Written to the samples' stack; what is not batched is not written to."""
    dtype = next((t for t in ("float64", "int64") if t in dtypes(row)), dtypes(row)[-1])
    for case in cases(row)[:1]:
        made = samples(row, case, dtype)
        try:
            loop = [run(row.name, (one[0], *made[0][1:]), True) for one in made]
        except RuntimeError:
            return                                  # the result has no dtype or shape of the input
        first = pt.from_numpy(np.stack([array(one[0]) for one in samples(row, case, dtype)]))
        with Batcher() as batcher:
            x = batcher.sample(first)
            assert run(row.name, (x, *made[0][1:]), True) is x
        # A view in place writes to nothing: the sample becomes the view.
        got = array(batcher.carried(x).tensor) if row.family == "view" else first.numpy()
        np.testing.assert_allclose(got, np.stack([array(y) for y in loop]), rtol=1e-12)


GRADIENTS = [r for r in UNDER_TEST if is_differentiable(r) and r.name not in NOT_REAL_RESULTS
             and {"float64", "complex128"} & set(dtypes(r))]


@walk("row", [pytest.param(r, id=r.name) for r in GRADIENTS])
def test_batched_gradients(row):
    """The backward's rules on a stack of cotangents equal a backward for each."""
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row):
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous")
        if not inputs:
            continue
        result = outputs(call(*inputs))[0]
        if not result.requires_grad:
            continue                                # positions
        rng = np.random.default_rng(4)
        stack = pt.from_numpy(rng.normal(size=(SIZE, *result.shape))).to(result.dtype)

        def backward(g, result=result, inputs=inputs):
            return pt.autograd.grad(result, inputs, g, allow_unused=True, retain_graph=True)
        try:
            loop = [backward(stack[k]) for k in range(SIZE)]
            with Batcher() as batcher:
                got = backward(batcher.sample(stack))
            for k, g in enumerate(got):
                if g is None:
                    assert loop[0][k] is None
                    continue
                g = batcher.carried(g)
                want = np.stack([array(one[k]) for one in loop])
                g = array(g) if isinstance(g, pt.Tensor) else array(g.tensor)
                np.testing.assert_allclose(np.broadcast_to(g, want.shape), want, rtol=1e-9, atol=1e-11)
        except Exception as e:
            raise AssertionError(f"{case_id(row, case)}: {type(e).__name__}: {e}") from e


# -- promotion, errors, refusals --------------------------------------------------------------------

def batched(f, *values):
    with Batcher() as batcher:
        result = f(*[batcher.sample(v) for v in values])
        return batcher.stack(result)


@pytest.mark.parametrize(("x", "y"), [
    (pt.ones(3, dtype=pt.float64), pt.ones(3, 2)),
    (pt.ones(3, dtype=pt.int64), pt.ones(3, 2, dtype=pt.int8)),
    (pt.ones(3), pt.ones(3, 2, dtype=pt.int64)),
    (pt.ones(3), pt.ones(3, dtype=pt.float64)),
    (pt.ones(3, dtype=pt.bool), pt.ones(3, 4, dtype=pt.uint8))])
def test_promotion_is_that_of_samples(x, y):
    """A sample of no dims does not widen the others, though its stack has a dim."""
    for f in (pt.add, pt.div, pt.eq, pt.maximum):
        if f is pt.maximum and x.dtype is pt.bool:
            continue
        got, want = batched(f, x, y), f(x[0], y[0])
        assert got.dtype is want.dtype
        np.testing.assert_array_equal(got[0].numpy(), want.numpy())


@pytest.mark.parametrize(("f", "shape"), [
    (lambda x: pt.tril(x), (3, 4)), (lambda x: pt.sum(x, 1), (3, 4)), (lambda x: x.reshape(5), (3, 4)),
    (lambda x: pt.mm(x, x), (3, 4)), (lambda x: pt.select(x, 0, 7), (3, 4)),
    (lambda x: pt.cat([x, x], 1), (3, 4)), (lambda x: pt.transpose(x, 0, 2), (3, 2, 2)),
    (lambda x: pt.topk(x, 9).values, (3, 4)), (lambda x: x.squeeze(3), (3, 1, 2))])
def test_errors_are_those_of_samples(f, shape):
    x = pt.ones(shape)
    with pytest.raises((RuntimeError, IndexError, ValueError)) as one:
        f(x[0])
    with pytest.raises(type(one.value)) as many:
        batched(f, x)
    assert str(many.value) == str(one.value)


REFUSED = [r for r in ROWS.values() if not callable(r.batch) and r.batch.startswith("refused:")]


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in REFUSED])
def test_refusals_give_the_reason(row):
    reason = row.batch.partition(": ")[2]
    assert len(reason.split()) > 3
    args = [None] * len([a for a in row.args if a.name not in (row.select or ())])
    from ptcore._ops import batching
    if row.tensors:
        args[0] = batching.Batched(pt.ones(3, 2))
    with pytest.raises(NotImplementedError, match=f"^{row.name}: .*{reason}"):
        batching.call(row.name, tuple(args))


def test_random_and_data_dependent_calls():
    for f in (lambda x: pt.nn.functional.dropout(x, 0.5), pt.bernoulli, lambda x: pt.rand(2) * x,
              lambda x: x + pt.randn(2),
              lambda x: pt.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.5)):
        with pytest.raises(RuntimeError, match="random"):
            batched(f, pt.ones(3, 2))
    for f in (lambda x: x[x > 0], lambda x: x if x.sum() > 0 else -x, pt.nonzero,
              lambda x: pt.equal(x, x)):
        with pytest.raises((RuntimeError, NotImplementedError), match="sample"):
            batched(f, pt.ones(3, 2))


def test_writes():
    w = pt.zeros(2)
    with pytest.raises(RuntimeError, match="add_: input is not batched"):
        batched(lambda x: w.add_(x), pt.ones(3, 2))
    with pytest.raises(RuntimeError, match="out= cannot be batched"):
        batched(lambda x: pt.add(x, 1, out=w), pt.ones(3, 2))
    assert w.tolist() == [0, 0]

    def through_a_view(x):
        x[1:].mul_(5)
        x[0] = 7
        return x
    assert batched(through_a_view, pt.ones(3, 2)).tolist() == [[7, 5]] * 3


def test_registered_op():
    """A row of another package brings its own rule, or is refused."""
    def spec(input):
        return input.shape, input.dtype

    def kernel(input, out):
        out.copy_(input * 2)
    rule = pt.ops.register("test_batch_double(input)", spec=spec, kernels={"cpu": kernel}, batch="whole")
    bare = pt.ops.register("test_batch_bare(input)", spec=spec, kernels={"cpu": kernel})
    own = pt.ops.register("test_batch_own(input)", spec=spec, kernels={"cpu": kernel},
                          batch=lambda args, size: type(args[0])(args[0].tensor * 2))
    x = pt.ones(3, 2)
    assert batched(rule, x).tolist() == batched(own, x).tolist() == [[2, 2]] * 3
    with pytest.raises(NotImplementedError, match="test_batch_bare: it cannot be batched"):
        batched(bare, x)


def decompositions():
    """{op: function} of every topic."""
    files = Path(pt.__file__).parent.glob("_ops/*/decompositions.py")
    return {op: f for path in files
            for op, f in import_module(f"ptcore._ops.{path.parent.name}.decompositions").FUNCTIONS.items()}


def test_decompositions_equal_the_ops():
    """In other rounding; the batched tests run them, this one on the op's own cases."""
    for name, decomposed in decompositions().items():
        row = ROWS[name]
        dtype = "float64" if "float64" in row.types else row.types[-1]
        for case in cases(row):
            sample = Sample(row, case, dtype, np.random.default_rng(3))
            positional, keyword = sample.arguments()
            want = outputs(function(row)(*positional, **keyword))
            got = outputs(decomposed(*positional, **keyword))
            for a, b in zip(got, want):
                assert a.shape == b.shape
                np.testing.assert_allclose(array(a), array(b), rtol=1e-9, atol=1e-12, err_msg=case_id(row, case))


def test_every_decomposition_is_asked_for():
    asked = {r.name for r in ROWS.values() if r.kind != "composite" and (
        "decompose" in (r.batch, r.jvp) or str(r.batch).startswith("shift "))}
    # Not asked for in batches; a device without the kernel runs them.
    assert asked | {"binned", "counted", "filtered", "filtered_transposed", "max_pool_backward",
                    "pair_distances_slope"} == set(decompositions())
