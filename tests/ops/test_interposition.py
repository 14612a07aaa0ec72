"""The interposition hook, shown by the toy interpreters of tests/interpreters.py."""
import numpy as np
import pytest
from _cases import CONSTANT, ELEMENTWISE, Sample, array, cases
from _walk import walk
from interpreters import Batcher, Forward, Tracer

import ptcore as pt
from ptcore import _ops as ops
from ptcore._interpret import Interpreter, Payload, entered
from ptcore._ops.batching import Batched
from ptcore._ops.calling import run
from ptcore._ops.table import schema
from ptcore._sizes.symbolic import ShapeEnv
from ptcore._subclass import stand_in, stands_for

pytestmark = pytest.mark.core


def program(x, w):
    h = pt.relu(x @ w) * 2.0
    return (h.softmax(1) + h.sum(1, keepdim=True))[:, 1:].t()


def test_tracer_sees_every_op_and_replays():
    x, w = pt.randn(3, 4), pt.randn(4, 5)
    with Tracer() as tracer:
        expected = program(x, w)
    names = [entry[0] for entry in tracer.tape]
    for name in ("mm", "relu", "mul", "softmax", "sum", "add", "slice", "t"):
        assert name in names
    assert "matmul" not in names        # a composite is seen as what it calls
    x2 = pt.randn(3, 4)
    got = tracer.replay({id(x): x2, id(w): w})
    np.testing.assert_array_equal(got.numpy(), program(x2, w).numpy())
    assert expected.shape == (4, 3)


def test_nothing_is_offered_outside():
    with Tracer() as tracer:
        pass
    pt.ones(2) + 1
    assert tracer.tape == []


def test_batcher_equals_a_loop():
    xs, w = pt.randn(6, 3, 4), pt.randn(4)

    def per_sample(x):
        y = x.clone()
        y[1] *= 2
        y[:, 0].add_(w[0])
        h = pt.matmul(y, w.reshape(2, 2).sum(0).expand(4, 2)) if y.ndim == 2 else y
        return pt.cat([(pt.exp(y) * w + 1).sum(-1), h.flatten()])
    with Batcher() as batcher:
        got = batcher.stack(per_sample(batcher.sample(xs)))
    expected = np.stack([per_sample(xs[i]).numpy() for i in range(6)])
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


def test_batchers_nest():
    """One over the other: x[i] and y[j] for all pairs, and what only one of them sees."""
    x, y = pt.randn(3, 4), pt.randn(2, 4)

    def pairs(row):
        with Batcher() as inner:
            return inner.stack((row * inner.sample(y)).sum() + pt.ones(2).sum())
    with Batcher() as outer:
        got = outer.stack(pairs(outer.sample(x)))
    np.testing.assert_allclose(got.numpy(), x.numpy() @ y.numpy().T + 2, rtol=1e-5, atol=1e-6)


def test_forward_over_a_batch_and_backward_through_it():
    """Transformations stack: tangents of a batched program, gradients of its samples' stack."""
    xs = pt.randn(3, 4, dtype=pt.float64).requires_grad_()

    def batched(x):
        with Batcher() as batcher:
            y = batcher.sample(x)
            return batcher.stack((y.exp() * y[0]).sum())
    batched(xs).sum().backward()
    x = xs.detach().numpy()
    want = np.exp(x) * x[:, :1]
    want[:, 0] += np.exp(x).sum(1)
    np.testing.assert_allclose(xs.grad.numpy(), want, rtol=1e-10)
    t = pt.ones(3, 4, dtype=pt.float64)
    with Forward() as forward:
        got = forward.tangent(batched(forward.pair(xs.detach(), t)))
    np.testing.assert_allclose(got.numpy(), want.sum(1), rtol=1e-10)


@pytest.mark.parametrize(("function", "fused"), [
    (lambda x: pt.softmax(x, 1), "softmax_backward"),
    (lambda x: pt.nn.functional.layer_norm(x, (3,)), "layer_norm_backward"),
    (lambda x: pt.nn.functional.cross_entropy(x, pt.tensor([0, 2])), "cross_entropy_backward")])
def test_a_traced_or_batched_backward_keeps_its_fused_kernels(function, fused):
    """Only what differentiates the backward, by recording or in forward mode, has the rules written out in ops."""
    x = pt.randn(2, 3, dtype=pt.float64, requires_grad=True)
    out = function(x)
    g = pt.randn(out.shape, dtype=pt.float64)
    expected, = pt.autograd.grad(out, x, g, retain_graph=True)
    with Tracer() as tracer:
        found, = pt.autograd.grad(out, x, g, retain_graph=True)
    assert fused in [op for op, _, _ in tracer.tape]
    pt.testing.assert_close(found, expected, rtol=0, atol=0)
    samples = pt.stack([g, 2 * g])
    with Batcher() as batcher:
        batched, = pt.autograd.grad(out, x, batcher.sample(samples), retain_graph=True)
    pt.testing.assert_close(batcher.stack(batched), pt.stack([expected, 2 * expected]))
    with Forward() as forward:
        pt.autograd.grad(out, x, forward.pair(g.clone(), pt.ones_like(g)), retain_graph=True)
    with Tracer() as tracer:
        pt.autograd.grad(out, x, g, create_graph=True)
    assert fused not in [op for op, _, _ in tracer.tape]


# -- fused gradients are ops -------------------------------------------------------------------------

FUSED = [pytest.param(row, 0 if i == "x" else i, fused, id=fused.name)
         for row in ELEMENTWISE for i, fused in schema.derived(row).items()]
# those that small operands, which are kept, have no need of
SPARE = {schema.derived(row)[0].name for row in ELEMENTWISE if "x" in schema.derived(row)}


def operands(row, i, fused, dtype="float64", case=0):
    """(result that only input i has a gradient of, input i, gradient, what its rule gives the fused op)."""
    sample = Sample(row, cases(row)[case], dtype, np.random.default_rng(5), away_from_kinks=True)
    positional, keyword = sample.arguments()
    order = iter(positional)
    args = [keyword[a.name] if a.keyword_only else next(order) for a in sample.args]
    tensors = [k for k, a in enumerate(sample.args) if a.is_tensor]
    x = args[tensors[i]] = args[tensors[i]].requires_grad_()
    out = run(row.name, tuple(args))
    g = pt.from_numpy(np.random.default_rng(6).normal(size=out.shape)).to(out.dtype)
    named = {"out": out, **{n: args[k] for n, k in zip("xyz", tensors)},
             **{a.name: v for a, v in zip(sample.args, args) if not a.is_tensor}}
    uses = [*fused.uses[0], *fused.uses[1]]
    return out, x, g, (g, *[named[n].detach() if isinstance(named[n], pt.Tensor) else named[n] for n in uses])


@walk(("row", "i", "fused"), FUSED)
def test_a_fused_gradient_has_a_row_and_a_function(row, i, fused):
    found = ops.row(fused.name)
    assert repr(found) == repr(fused) and found.family == row.family and found is pt.ops[fused.name]
    assert found.batch == "broadcast" and fused.name not in [r.name for r in ops.rows()]
    _, _, _, args = operands(row, i, fused)
    names = [a.name for a in found.args]
    expected = run(fused.name, args)
    np.testing.assert_array_equal(expected.numpy(), ops.function(fused.name)(**dict(zip(names, args))).numpy())
    out = pt.empty_like(expected)
    ops.function(fused.name)(*args, out=out)
    np.testing.assert_array_equal(expected.numpy(), out.numpy())


def test_no_op_no_row():
    for name in ("nothing__d0", "gelu__d7", "mul__d0", "nothing"):
        with pytest.raises(KeyError, match=name):
            ops.row(name)


@walk(("row", "i", "fused", "dtype"), [
    pytest.param(*p.values, dtype, id=f"{p.id}-{dtype}") for p in FUSED for dtype in ("float32", "float64", "bfloat16")
    if dtype in p.values[2].types and p.id not in SPARE])
def test_a_traced_backward_is_one_op_where_the_eager_one_is(row, i, fused, dtype):
    out, x, g, _ = operands(row, i, fused, dtype)
    eager, = pt.autograd.grad(out, x, g, retain_graph=True)
    with Tracer() as tracer:
        found, = pt.autograd.grad(out, x, g, retain_graph=True)
    # where the output of a half type was rounded it is computed again, and the gradient is rounded once
    again = dtype == "bfloat16" and "out" in fused.uses[0] and len(tracer.tape) > 1
    assert [op for op, _, _ in tracer.tape if not again or op != "to_dtype"] == [row.name] * again + [fused.name]
    np.testing.assert_array_equal(array(found), array(eager))
    samples = pt.stack([g, -g, 2 * g])
    with Tracer() as tracer, Batcher() as batcher:
        batched, = pt.autograd.grad(out, x, batcher.sample(samples), retain_graph=True)
    assert [op for op, _, _ in tracer.tape if not again or op != "to_dtype"] == [row.name] * again + [fused.name]
    loop = [array(pt.autograd.grad(out, x, s, retain_graph=True)[0]) for s in samples]
    np.testing.assert_allclose(array(batcher.stack(batched)), np.stack(loop), rtol={"float64": 1e-14}.get(dtype, 1e-6))


@walk(("row", "i", "fused"), FUSED)
@pytest.mark.outer
def test_derivatives_of_a_fused_gradient(row, i, fused):
    """Of both orders and directions, broadcast operands included."""
    constant = {n for n, a in zip("xyz", row.tensors) if (row.name, a.name) in CONSTANT}
    for case in range(len(cases(row))):
        out, _, _, args = operands(row, i, fused, case=case)
        if not 0 < out.numel() <= 30:
            continue
        places = [0, *[k for k, n in enumerate(fused.uses[0], 1) if n not in constant]]
        inputs = [pt.where(args[k] == 0, 1.0, args[k].detach()).requires_grad_() for k in places]      # relu's kink

        def call(*values, args=args, places=places):
            given = list(args)
            for k, v in zip(places, values):
                given[k] = v
            return run(fused.name, tuple(given))
        assert pt.autograd.gradcheck(call, inputs, check_forward_ad=True)
        assert pt.autograd.gradgradcheck(call, inputs)


def test_a_fused_gradient_under_transformations():
    """Inside grad, vmap and jvp it is an op like any other."""
    from ptcore.func import grad, hessian, jvp, vmap
    x, g = pt.randn(5, 3, dtype=pt.float64), pt.randn(5, 3, dtype=pt.float64)

    def written(g, x):
        return g * (1 - pt.tanh(x) ** 2)

    def fused(g, x):
        return run("tanh__d0", (g, pt.tanh(x)))
    for of in (lambda f: vmap(grad(lambda g, x: f(g, x).sum(), (0, 1))),
               lambda f: vmap(hessian(lambda g, x: f(g, x).sum(), (0, 1))),
               lambda f: lambda g, x: jvp(f, (g, x), (x, g)),
               lambda f: lambda g, x: jvp(grad(lambda g, x: f(g, x).sum(), (0, 1)), (g, x), (x, g)),
               lambda f: grad(lambda g, x: (vmap(grad(lambda g, x: f(g, x).sum(), 1))(g, x) ** 2).sum(), (0, 1))):
        pt.testing.assert_close(of(fused)(g, x), of(written)(g, x))


def test_forward_through_views_and_writes():
    def f(x):
        y = x * 2
        y[0] = y[1] * y[2]              # a write through a view
        y.mul_(x)
        return (y * y[0]).sum()
    x = pt.tensor([1.5, -2.0, 0.5], dtype=pt.float64)
    t = pt.tensor([0.3, 1.0, -0.7], dtype=pt.float64)
    with Forward() as forward:
        got = forward.tangent(f(forward.pair(x, t)))
    step = 1e-6
    difference = (f(x + step * t) - f(x - step * t)).item() / (2 * step)
    assert got.item() == pytest.approx(difference, rel=1e-8)


class Symbolic(Payload):
    """A payload that answers with sizes of its own, as a tracer of symbolic ints does."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes


def test_a_payload_answers_for_the_shape():
    env = ShapeEnv()
    n = env.symbol(3)
    for sizes in ((n, 4), lambda x: (n, 4)):
        x = stands_for(pt.ones(3, 4), Symbolic(sizes))
        assert x.shape[0] is x.size()[0] is x.size(0) is x.size(-2) is n and x.shape[1] == 4
        assert type(x.shape) is pt.Size and x.ndim == x.dim() == 2
        assert (x.numel() == x.shape.numel() == 4 * n) is True and (x.nbytes == 16 * n) is True
        assert x.stride() == (4, 1) and (stands_for(pt.ones(4, 3), Symbolic((4, n))).stride()[0] == n) is True
        assert (stands_for(pt.ones(4, 3).t(), Symbolic((n, 4))).stride()[1] == n) is True
        assert stands_for(pt.ones(3).expand(4, 3), Symbolic((4, n))).stride() == (0, 1)
    assert not env.guards
    with pytest.raises(RuntimeError, match="it has gaps"):
        stands_for(pt.ones(4, 6)[:, ::2], Symbolic((4, n))).stride()
    assert len(x) == 3 and [guard.text for guard in env.guards] == ["s0 == 3"]
    with pytest.raises(IndexError, match="size: Dimension out of range"):
        x.size(2)


def test_stand_in():
    """Sizes, dtype and device are there; data is not, and nothing outside may use it."""
    x = stand_in(pt.ones(2, dtype=pt.int16), (3, 0, 4), Batched(pt.ones(5, 3, 0, 4)))
    assert (x.shape, x.dtype, x.device.type) == ((3, 0, 4), pt.int16, "cpu")
    scalar = stand_in(pt.ones(2), (), Batched(pt.ones(5)))
    for read in (scalar.item, lambda: bool(scalar), scalar.tolist, scalar.numpy):
        with pytest.raises(RuntimeError, match=r"not known here|value for each sample"):
            read()
    for same in (x.detach(), x.data, x.as_subclass(type("Sub", (pt.Tensor,), {}))):
        assert same._extras.payload.tensor.untyped_storage()._cdata == x._extras.payload.tensor.untyped_storage()._cdata
        with pytest.raises(RuntimeError):
            same.numpy()
    for use in (lambda: scalar + 1, lambda: pt.sum(scalar), lambda: scalar.reshape(1),
                lambda: pt.stack([scalar])):
        with pytest.raises(RuntimeError, match="transformation that has ended"):
            use()


def test_an_exception_leaves_the_stack_in_order():
    class Failing(Interpreter):
        def call(self, op, args, out, variant):
            raise KeyError(op)
    with Failing():
        with pytest.raises(KeyError):
            pt.ones(1) + 1
        assert len(entered()) == 1
    assert entered() == ()
    assert (pt.ones(1) + 1).item() == 2
