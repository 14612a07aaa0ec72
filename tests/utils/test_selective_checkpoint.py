"""Selective checkpoints: what is kept is not computed again, and gradients are what they are without."""
import functools
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore._interpret import Interpreter
from ptcore._ops.table.ids import op_name
from ptcore.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)

pytestmark = pytest.mark.core
F = pt.nn.functional


class Counting(Interpreter):
    """Counts the rows that run."""

    traces = True

    def __init__(self):
        self.counts = {}

    def call(self, op, args, out, variant):
        name = op_name(op)
        self.counts[name] = self.counts.get(name, 0) + 1
        return NotImplemented


def leaf(*shape, seed=0):
    return pt.randn(*shape, dtype=pt.float64, generator=pt.Generator().manual_seed(seed)).requires_grad_()


def contexts(policy, **options):
    return functools.partial(create_selective_checkpoint_contexts, policy, **options)


def gradients(f, inputs, **how):
    for x in inputs:
        x.grad = None
    out = checkpoint(f, *inputs, use_reentrant=False, **how) if how else f(*inputs)
    with Counting() as counting:
        out.sum().backward()
    return out.detach(), [x.grad for x in inputs], counting.counts


def products(x, y):
    return ((x @ y).sigmoid() @ y).sin() * y


FUNCTIONS = {
    "products": products,
    "dropout": lambda x, y: F.dropout(x @ y, 0.5) @ F.dropout(y, 0.5),
    "linear": lambda x, y: F.linear(F.linear(x, y, y[0]).relu(), y),
    "normalized": lambda x, y: F.layer_norm(x @ y, (4,)).softmax(-1).max(0)[0] + F.gelu(x)[0],
    "views": lambda x, y: (x @ y).t()[1:].reshape(-1).exp().view(3, 4) @ y.T,
    "lists": lambda x, y: pt.cat([x @ y, y.exp()]).split(2)[1] * pt.stack([x, y])[0, :2],
    "integers": lambda x, y: (x @ y).gather(1, (x @ y).argsort(1)) * x.sort(1)[0],
    "without gradient": lambda x, y: (x @ y) * (x.detach() @ y.detach()),
    "no_grad": lambda x, y: (x @ y).exp() * without(x, y),
    "keywords": lambda x, y: pt.addmm(x, x, y, beta=0.5, alpha=2).logsumexp(1, keepdim=True) * y,
    "loss": lambda x, y: F.cross_entropy(x @ y, pt.tensor([0, 1, 2, 3])),
    "attention": lambda x, y: F.scaled_dot_product_attention(x[None] @ y, y[None], x[None]),
    "convolution": lambda x, y: F.conv1d((x @ y)[None], y[:, :, None]).tanh(),
    "custom": lambda x, y: Square.apply(x @ y) @ y,
}


@pt.no_grad()
def without(x, y):
    return (x @ y).cos()


class Square(pt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


def every_second(ctx, op, *args, **kwargs):
    every_second.count += 1
    return CheckpointPolicy.PREFER_SAVE if every_second.count % 2 else CheckpointPolicy.MUST_RECOMPUTE


POLICIES = {
    "mm": [pt.mm],
    "all": lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE,
    "none": lambda ctx, op, *args, **kwargs: CheckpointPolicy.PREFER_RECOMPUTE,
    "every second": every_second,
    "truth values": lambda ctx, op, *args, **kwargs: op in (pt.mm, pt.exp, F.dropout),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("early_stop", [True, False])
def test_gradients(name, policy, early_stop):
    every_second.count = 0
    inputs = leaf(4, 4), leaf(4, 4, seed=1)
    pt.manual_seed(2)
    plain, expected, _ = gradients(FUNCTIONS[name], inputs)
    after = pt.rand(2).tolist()
    pt.manual_seed(2)
    out, found, _ = gradients(FUNCTIONS[name], inputs, context_fn=contexts(POLICIES[policy]), early_stop=early_stop)
    assert out.equal(plain)
    assert pt.rand(2).tolist() == after
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_products_that_are_kept_are_not_computed_again():
    inputs = leaf(4, 4), leaf(4, 4, seed=1)
    count = {}
    for name in POLICIES:
        every_second.count = 0
        _, _, counts = gradients(products, inputs, context_fn=contexts(POLICIES[name]), early_stop=False)
        count[name] = counts["mm"], counts.get("sigmoid", 0), counts.get("sin", 0)
    mm, sigmoid, sin = count["none"]
    assert count["mm"] == (mm - 2, sigmoid, sin)
    assert count["all"] == (mm - 2, sigmoid - 1, sin - 1)
    assert count["every second"] == (mm - 2, sigmoid, sin)      # mm, sigmoid, mm, sin, mul


@pytest.mark.parametrize("op", [F.linear, pt.addmm, type("Overload", (), {"op": pt.addmm.op})()])
def test_linear_is_seen_as_addmm(op):
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((op, [tuple(a.shape) for a in args], kwargs, ctx.is_recompute, tuple(ctx.op_output.shape)))
        return CheckpointPolicy.MUST_RECOMPUTE

    net = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.ReLU(), pt.nn.Linear(4, 2, bias=False)).double()
    x = leaf(5, 3)
    gradients(net, (x,), context_fn=contexts(policy))
    assert seen == [(pt.addmm, [(4,), (5, 3), (3, 4)], {}, False, (5, 4)), (pt.relu, [(5, 4)], {}, False, (5, 4)),
                    (pt.mm, [(5, 4), (4, 2)], {}, False, (5, 2))]
    _, _, counts = gradients(net, (x,), context_fn=contexts([op]), early_stop=False)
    assert counts.get("linear", 0) == (op is not F.linear)      # the second layer's is an mm


def test_what_is_kept_must_not_be_written_to():
    x, y = leaf(4, 4), leaf(4, 4, seed=1)
    kept = []

    def f(x, y):
        z = x @ y
        kept.append(z.detach())
        return z.sin()

    for mutable in (False, True):
        out = checkpoint(f, x, y, use_reentrant=False,
                         context_fn=contexts([pt.mm], allow_cache_entry_mutation=mutable))
        kept[-1].mul_(2)
        if mutable:
            out.sum().backward()
        else:
            with pytest.raises(RuntimeError, match="has been mutated"):
                out.sum().backward()


def test_writes_in_place_are_done_again():
    inputs = leaf(4, 4), leaf(4, 4, seed=1)

    def f(x, y):
        z = (x @ y).cos().mul_(2).sin()
        z[0] = 1
        return z.add_(y).exp()

    _, expected, _ = gradients(f, inputs)
    _, found, _ = gradients(f, inputs, context_fn=contexts([pt.mm]))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_a_second_backward():
    """One that finds what the first one had made again is as without policies; to make it once more is refused."""
    x, y = leaf(4, 4), leaf(4, 4, seed=1)
    out = checkpoint(products, x, y, use_reentrant=False, context_fn=contexts([pt.mm])).sum()
    out.backward(retain_graph=True)
    once = x.grad.clone()
    out.backward()
    assert x.grad.equal(2 * once)
    first, second = create_selective_checkpoint_contexts([pt.mm])
    with first:
        x @ x
    with second:
        x @ x
    with second, pytest.raises(RuntimeError, match="extra time"):
        x @ x


def test_another_program_in_the_second_run_is_refused():
    x, y = leaf(4, 4), leaf(4, 4, seed=1)
    runs = []

    def f(x, y):
        runs.append(1)
        return (x @ y).sin() if len(runs) == 1 else x.cosh().exp()

    out = checkpoint(f, x, y, use_reentrant=False, context_fn=contexts([pt.mm]))
    with pytest.raises(RuntimeError, match=r"cosh.*not found"):
        out.sum().backward()


def test_nested():
    inputs = leaf(4, 4), leaf(4, 4, seed=1)

    def outer(x, y, how):
        z = checkpoint(products, x, y, use_reentrant=False, **how)
        return checkpoint(products, (z @ y), y, use_reentrant=False, **how).exp()

    _, expected, _ = gradients(lambda x, y: products(products(x, y) @ y, y).exp(), inputs)
    for inside in ({}, {"context_fn": contexts([pt.mm])}, {"context_fn": contexts(POLICIES["all"])}):
        for outside in ({"early_stop": True}, {"context_fn": contexts([pt.mm])}):
            _, found, _ = gradients(lambda x, y, inside=inside: outer(x, y, inside), inputs, **outside)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_only_what_the_policy_says_is_kept():
    x, y = leaf(4, 4), leaf(4, 4, seed=1)
    alive = {}

    def f(x, y):
        product = x @ y
        sine = product.sin()
        alive.update(product=weakref.ref(product), sine=weakref.ref(sine))
        return sine.exp().sum()

    out = checkpoint(f, x, y, use_reentrant=False, context_fn=contexts([pt.mm]))
    assert alive["sine"]() is None
    out.backward()
    np.testing.assert_allclose(y.grad.numpy(), (x.T @ ((x @ y).cos() * (x @ y).sin().exp())).detach().numpy())


def test_arguments():
    with pytest.raises(ValueError, match="expected functions of ops"):
        create_selective_checkpoint_contexts([len])
    with pytest.raises(TypeError, match="must be either a function or a list"):
        create_selective_checkpoint_contexts(3)
    x = leaf(2)
    with pytest.raises(ValueError, match="debug=True is incompatible"):
        checkpoint(lambda x: x, x, use_reentrant=False, debug=True, context_fn=contexts([pt.mm]))

    class Quiet:
        def __enter__(self):
            pass

        def __exit__(self, *exc):
            return True

    def failing(x):
        raise KeyError

    with pytest.raises(RuntimeError, match="suppressed an exception"):
        checkpoint(failing, x, use_reentrant=False, context_fn=lambda: (Quiet(), Quiet()))
    made = SelectiveCheckpointContext(is_recompute=True)
    assert made.is_recompute
    assert made.op_output is None


def test_contexts_without_a_checkpoint():
    first, second = create_selective_checkpoint_contexts([pt.mm])
    x = leaf(4, 4)
    with first:
        a = x @ x
    with second, Counting() as counting:
        b = x @ x
    assert counting.counts == {"mm": 1} or "mm" not in counting.counts
    assert b.equal(a)
    assert b.requires_grad
