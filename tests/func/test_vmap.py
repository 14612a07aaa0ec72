"""``vmap``: arguments, outputs, randomness, in-place writes, what is refused; a loop over the samples is the oracle."""
import sys

import numpy as np
import pytest
from interpreters import Tracer

import ptcore as pt
from ptcore._interpret import entered
from ptcore.autograd import dual
from ptcore.func import functional_call, grad, hessian, jacfwd, jacrev, linearize, stack_module_state, vjp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core


def loop(f, *stacks):
    return pt.stack([f(*[s[k] for s in stacks]) for k in range(len(stacks[0]))])


def same(got, want):
    assert got.shape == want.shape and got.dtype is want.dtype
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6, atol=1e-6)


X = pt.arange(24.).reshape(2, 3, 4)
Y = (X * 7 % 5).contiguous()


@pytest.mark.parametrize("d", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out", [0, 1, -1])
def test_dims(d, out):
    want = pt.stack([(x * 2).sum(0) for x in X.unbind(d)], out)
    same(vmap(lambda x: (x * 2).sum(0), in_dims=d, out_dims=out)(X), want)


def test_trees():
    def f(a, *, scale):
        return {"s": (a["x"] * scale).sum(), "p": [a["y"] + 1, a["x"] - a["y"]]}
    got = vmap(f, in_dims=({"x": 0, "y": None},), out_dims={"s": 0, "p": [None, 1]})(
        {"x": X[0], "y": Y[0, 0]}, scale=3)
    same(got["s"], (X[0] * 3).sum(1))
    same(got["p"][0], Y[0, 0] + 1)
    same(got["p"][1], (X[0] - Y[0, 0]).t())


def test_shared_outputs_are_repeated():
    same(vmap(lambda x: Y[0])(X), Y[0].expand(2, 3, 4))
    assert vmap(lambda x: (x, 5), out_dims=(0, None))(X)[1] == 5


def test_nested():
    same(vmap(vmap(pt.dot))(X, Y), (X * Y).sum(2))
    same(vmap(vmap(pt.dot, (0, None)), (None, 0))(X[0], Y[1]), (Y[1] @ X[0].t()))
    same(vmap(vmap(lambda x, y: x + y, (None, 0)), (0, None))(X[0, 0], Y[0, 0]), X[0, 0][:, None] + Y[0, 0])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_chunks(size):
    a = pt.arange(14.).reshape(7, 2)
    seen = []

    def f(x):
        seen.append(0)
        return x.sum(), x * 2
    got = vmap(f, chunk_size=size, out_dims=(0, 1))(a)
    same(got[0], a.sum(1))
    same(got[1], (a * 2).t())
    assert len(seen) == -(-7 // size)


def test_strides_are_those_of_a_sample():
    seen = []

    def f(x):
        seen.append((x.shape, x.stride(), x.storage_offset(), x.is_contiguous(), x.is_leaf, x._base is None,
                     x._version))
        return x
    vmap(f, in_dims=1)(X)
    x = X[:, 0]
    assert seen == [(x.shape, x.stride(), x.storage_offset(), x.is_contiguous(), True, True, X._version)]


def test_in_place_writes():
    def f(x):
        y = x.clone()
        y[1:].mul_(5)
        y[0] = 7
        y.t().add_(x.t())
        return y.sqrt_()
    same(vmap(f)(Y), loop(f, Y))
    z = Y.clone()
    vmap(lambda x: x.add_(1))(z)                    # the caller's tensor is written to
    same(z, Y + 1)
    with pytest.raises(RuntimeError, match="input is not batched"):
        vmap(lambda x: pt.zeros(4).add_(x[0]))(X)


def test_new_tensors_of_a_sample():
    def f(x):
        return (pt.zeros_like(x).add_(x) + pt.ones_like(x) * x + pt.full_like(x, 2) + x.new_zeros(4).add(x[0])
                + x.new_full((3, 4), 3) + pt.empty_like(x).fill_(1) + x.new_ones(x.shape) + pt.eye(3, 4))
    same(vmap(f)(X), loop(f, X))


@pytest.mark.parametrize("f", [
    lambda x: x[:, [0, 2]], lambda x: x[[0, 1], [1, 2]], lambda x: x[..., None, 1:], lambda x: x[1],
    lambda x: x[-1, ::2], lambda x: x[pt.tensor([[0, 2], [1, 1]])],
    lambda x: x.as_strided((2, 2), (4, 1), x.storage_offset()),
    lambda x: x.unfold(1, 2, 1), lambda x: x.diagonal(), lambda x: pt.where(x > 5, x, -x), lambda x: x.flip(0),
    lambda x: pt.einsum("ij,kj->ik", x, x), lambda x: pt.cat([x, x], 1), lambda x: x.sort(1).values,
    lambda x: x.masked_fill(x > 3, 0.0), lambda x: pt.linalg.inv(x[:, :3] + 50 * pt.eye(3)), lambda x: x.cumsum(0),
    lambda x: pt.nn.functional.pad(x, (1, 2)), lambda x: x.softmax(0),
    lambda x: pt.nn.functional.layer_norm(x, (4,)),
    lambda x: x.expand(2, 3, 4), lambda x: x.reshape(-1), lambda x: x.contiguous().view(2, 6),
    lambda x: x.movedim(0, 1)],
    ids=range(24))
def test_functions(f):
    same(vmap(f)(X), loop(f, X))
    same(vmap(f, in_dims=2)(X.movedim(0, 2)), loop(f, X))


def test_index_by_batched_positions():
    rows = pt.tensor([0, 2])
    for f in (lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x.index_select(0, i),
              lambda x, i: x.gather(0, i.expand(1, 4))):
        same(vmap(f)(X, rows), loop(f, X, rows))
    same(vmap(lambda i: X[0][i])(rows), X[0][rows])


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("other", ["int64", "float64", "complex64"])
@pytest.mark.parametrize("f", [lambda x, y: x + y, lambda x, y: pt.where(x.real > 2, x, y), pt.Tensor.mul_],
                         ids=range(3))
def test_samples_of_no_dims_promote_as_such(f, other, dims):
    """A number that all samples share counts as much as a sample that is one, though the stack has a dim."""
    x, y = pt.arange(3.), pt.arange(2, 5).to(getattr(pt, other))
    given = [a if d == 0 else a[1] for a, d in zip((x, y), dims)]
    if f is pt.Tensor.mul_:
        if dims[0] is None or other == "complex64":
            return
        given[0] = given[0].clone()
    want = pt.stack([f(*[a[k].clone() if d == 0 else a for a, d in zip(given, dims)]) for k in range(3)])
    same(vmap(f, in_dims=dims)(*given).real, want.real)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_of_what_all_samples_share(accumulate):
    places, values = pt.tensor([[0, 2], [1, 1]]), pt.tensor([[5., 6.], [7., 7.]])
    for f in (lambda i, v: pt.index_put(X[0, 0], (i,), v, accumulate),
              lambda i, v: X[0].index_put((None, i), v, accumulate),
              lambda i, v: X[0].index_put((i, pt.tensor(1)), pt.tensor(2.), accumulate)):
        same(vmap(f)(places, values), loop(f, places, values))
    same(vmap(grad(lambda v: (X[0, 0].index_put((places[0],), v) ** 2).sum()))(values), 2 * values)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 1)])
@pytest.mark.parametrize("right", [False, True])
def test_searches_among_sorted_samples(dims, right):
    rows = pt.tensor([[1., 2., 4.], [0., 3., 5.], [2., 2., 2.]])
    for values in (pt.tensor([0., 2., 3.]), pt.tensor([[0., 2.], [3., 5.], [4., 1.]])):
        for f in (lambda s, v: pt.searchsorted(s, v, right=right), lambda s, v: pt.bucketize(v, s, right=right)):
            s = rows.t() if dims[0] == 1 else rows if dims[0] == 0 else rows[1]
            v = values.movedim(0, -1) if dims[1] == 1 else values
            samples = [(rows[1] if dims[0] is None else rows[k], values if dims[1] is None else values[k])
                       for k in range(3)]
            in_dims = tuple([-1 if d == 1 else d for d in dims])
            same(vmap(f, in_dims)(s, v), pt.stack([f(*sample) for sample in samples]))
    deep = pt.stack([rows, rows + 1])
    same(vmap(pt.searchsorted)(deep, deep - 1), pt.stack([pt.searchsorted(a, a - 1) for a in deep]))
    assert vmap(pt.searchsorted)(deep[:0, 0], deep[:0, 0]).shape == (0, 3)


@pytest.mark.parametrize("tracked", [False, True])
def test_linearized_directions_as_samples(tracked):
    """What nothing outside has a history of has none, nor have the stacks behind samples."""
    w = pt.ones(3, requires_grad=tracked)
    _, along = linearize(lambda x: x.sin() * x * w, X[0, 0, :3])
    got = vmap(along)(Y[:, 0, :3])
    same(got, pt.stack([along(y) for y in Y[:, 0, :3]]))
    assert got.requires_grad is tracked


@pytest.mark.parametrize("f", [
    pt.nn.functional.mse_loss, pt.nn.functional.l1_loss, pt.nn.functional.huber_loss, pt.nn.functional.soft_margin_loss,
    pt.nn.functional.binary_cross_entropy_with_logits, lambda x, y: (x * y).mean(), lambda x, y: (x - y).mean(1).sum(),
    lambda x, y: pt.nn.functional.cross_entropy(x, y.softmax(1))], ids=range(8))
def test_gradients_of_losses_of_samples(f):
    """Taken outside: each sample's loss is the mean of its own terms, and dims that fit by chance are not mistaken."""
    x, y = pt.arange(27.).reshape(3, 3, 3).sin(), pt.arange(27.).reshape(3, 3, 3).cos()
    weights = pt.tensor([1., 2., -3.])
    want = grad(lambda x: sum([f(x[k], y[k]) * weights[k] for k in range(3)]))(x)
    same(grad(lambda x: (vmap(f)(x, y) * weights).sum())(x), want)
    leaf = x.clone().requires_grad_()
    (vmap(f)(leaf, y) * weights).sum().backward()
    same(leaf.grad, want)


@pytest.mark.parametrize("derived", [
    lambda x: grad(lambda x: (x ** 3).sum())(x), lambda x: jacrev(lambda x: x.sin() * x)(x),
    lambda x: hessian(lambda x: (x ** 3).sum())(x), lambda x: vmap(grad(lambda x: x ** 3))(x),
    lambda x: jacfwd(lambda x: x.exp())(x), lambda x: linearize(lambda x: x * x, x)[1](x),
    lambda x: vjp(lambda x: x.cos(), x)[1](x)[0]], ids=range(7))
def test_derivatives_under_inference_mode(derived):
    """At and along what was made there."""
    want = derived(pt.arange(3.))
    with pt.inference_mode():
        x = pt.arange(3.)
        same(derived(x), want)
        assert x.is_inference() and not x.requires_grad


def write(x, mask, value):
    y = x.clone()
    y[mask] = value
    return y


@pytest.mark.parametrize("f", [
    lambda x: write(x, x > 5, 7), lambda x: write(x, x > 5, x[0, 0]), lambda x: write(x, x[:, 0] > 5, x[1] * 2),
    lambda x: write(x, x.sum(1) > 30, x[0, :1]), lambda x: write(x.long(), x > 3, 2.7),
    lambda x: write(x[1:].t(), x[1:].t() > 5, pt.tensor(3))], ids=range(6))
def test_writes_by_masks(f):
    """What is the same at all places needs no positions."""
    same(vmap(f)(X), loop(f, X))
    if f(X[0]).dtype.kind == "f":
        same(vmap(grad(lambda x: (f(x) ** 2).sum()))(X), loop(grad(lambda x: (f(x) ** 2).sum()), X))
    with pytest.raises(RuntimeError, match="cannot be batched"):
        vmap(lambda x: write(x, x > 5, x[0]))(X)


# -- randomness -------------------------------------------------------------------------------------

DRAWS = {
    "rand": lambda x: pt.rand(3), "randn": lambda x: pt.randn(2, 2), "randint": lambda x: pt.randint(0, 100, (5,)),
    "randperm": lambda x: pt.randperm(20), "rand_like": lambda x: pt.rand_like(x),
    "randn_like": lambda x: pt.randn_like(x), "dropout": lambda x: pt.nn.functional.dropout(x + 1, 0.5),
    "bernoulli": lambda x: pt.bernoulli(x * 0 + 0.5), "bernoulli_p": lambda x: pt.bernoulli(pt.full((40,), 0.5)),
    "multinomial": lambda x: pt.multinomial(x[0] * 0 + 1, 3),
    "normal": lambda x: pt.normal(x, 1.0), "poisson": lambda x: pt.poisson(x * 0 + 9),
    "shared": lambda x: pt.rand(3, 4) * x, "gumbel_softmax": lambda x: pt.nn.functional.gumbel_softmax(x),
    "gumbel_softmax hard": lambda x: pt.nn.functional.gumbel_softmax(x, hard=True),
    "rrelu": lambda x: pt.nn.functional.rrelu(-x, training=True), "exponential": lambda x: x.clone().exponential_(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_randomness(name):
    f = DRAWS[name]
    x = pt.ones(8, 3, 4)
    with pytest.raises(RuntimeError, match="called random operation"):
        vmap(f)(x)
    pt.manual_seed(3)
    one = f(x[0])
    pt.manual_seed(3)
    got = vmap(f, randomness="same")(x)
    for k in range(8):                  # each sample sees what one call gives
        same(got[k], one)
    got = vmap(f, randomness="different")(x)
    assert got.shape == (8, *one.shape) and got.dtype is one.dtype
    assert len({tuple(row.reshape(-1).tolist()) for row in got}) > 1
    assert not entered()


def test_different_draws_are_independent():
    x = vmap(lambda _: pt.randn(5), randomness="different")(pt.zeros(20000)).numpy()
    assert abs(np.corrcoef(x.T) - np.eye(5)).max() < 0.03
    assert abs(np.corrcoef(x[:-1, 0], x[1:, 0])[0, 1]) < 0.03
    masks = vmap(lambda x: pt.nn.functional.dropout(x, 0.3), randomness="different")(pt.ones(20000, 4)).numpy() > 0
    assert abs(masks.mean(0) - 0.7).max() < 0.015
    assert abs(np.corrcoef(masks.T) - np.eye(4)).max() < 0.03


# -- modules ------------------------------------------------------------------------------------------

def test_ensemble():
    models = [pt.nn.Sequential(pt.nn.Linear(3, 5), pt.nn.Tanh(), pt.nn.Linear(5, 2)) for _ in range(4)]
    params, buffers = stack_module_state(models)
    x = pt.randn(6, 3)
    got = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(params, buffers)
    same(got, pt.stack([m(x) for m in models]))


def test_per_sample_gradients():
    model = pt.nn.Sequential(pt.nn.Conv2d(1, 2, 3), pt.nn.ReLU(), pt.nn.Flatten(), pt.nn.Linear(18, 4)).double()
    params = {k: v.detach() for k, v in model.named_parameters()}
    x, y = pt.randn(5, 1, 5, 5, dtype=pt.float64), pt.tensor([0, 1, 2, 3, 1])

    def loss(p, x, y):
        return pt.nn.functional.cross_entropy(functional_call(model, p, (x[None],)), y[None])
    got = vmap(grad(loss), (None, 0, 0))(params, x, y)
    for k in range(5):
        model.zero_grad()
        pt.nn.functional.cross_entropy(model(x[k:k + 1]), y[k:k + 1]).backward()
        for name, p in model.named_parameters():
            same(got[name][k], p.grad)


# -- what is decided by values ---------------------------------------------------------------------------

POSITIONS = pt.tensor([[0, 2, 1, 2], [2, 2, 0, 1], [1, 1, 1, 1]])
LOGITS = pt.arange(36.).reshape(3, 2, 6).cos().log_softmax(-1)


@pytest.mark.parametrize("f", [
    *[lambda i, mode=mode: pt.nn.functional.embedding_bag(i.reshape(2, 2), X[0, :3], mode=mode, padding_idx=2)
      for mode in ("sum", "mean", "max")],
    lambda i: pt.nn.functional.embedding_bag(i, X[0, :3], pt.tensor([0, 3]), mode="sum", padding_idx=1),
    lambda i: pt.repeat_interleave(pt.arange(4), i - i + 1, output_size=4),
    lambda i: pt.nn.functional.ctc_loss(LOGITS, i[:2].reshape(2, 1) + 1, (3, 3), (1, 1), reduction="none"),
    lambda i: pt.isin(pt.arange(5), i), lambda i: pt.nn.functional.one_hot(i, 3),
])
def test_what_a_stack_holds_is_looked_at(f):
    """Values of samples cannot be looked at in Python: nothing is left out for that."""
    same(vmap(f)(POSITIONS), pt.stack([f(i) for i in POSITIONS]))


@pytest.mark.parametrize("f", [
    lambda x: pt.bincount(x[0].long()),
    lambda i: pt.nn.functional.embedding(i.long() % 3, X[0, :3].clone(), max_norm=1.0),
    lambda i: pt.nn.functional.ctc_loss(LOGITS, pt.ones(2, 1, dtype=pt.int64), i[0, :2].long() + 1, (1, 1)),
])
def test_or_it_raises(f):
    with pytest.raises((RuntimeError, NotImplementedError), match="sample"):
        vmap(f)(X)


# -- what is refused ------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: vmap(pt.sin), None, ""),
    (lambda: vmap(pt.sin)(), ValueError, "got no inputs"),
    (lambda: vmap(pt.sin, in_dims=[0])(X), ValueError, "expected `in_dims` to be int or"),
    (lambda: vmap(pt.add, in_dims=(0,))(X, Y), ValueError, "in_dims is not compatible"),
    (lambda: vmap(pt.sin, in_dims=(1.5,))(X), ValueError, "Got in_dim=1.5"),
    (lambda: vmap(pt.add, in_dims=0)(X, 2.0), ValueError, "cannot vmap over non-Tensor"),
    (lambda: vmap(pt.sin, in_dims=3)(X), ValueError, "expected in_dim to satisfy"),
    (lambda: vmap(pt.sin, in_dims=(None,))(X), ValueError, "Expected at least one Tensor"),
    (lambda: vmap(pt.add)(X, X[:1]), ValueError, "to have the same size"),
    (lambda: vmap(pt.sin, out_dims="a")(X), ValueError, "`out_dims` must be an int, None"),
    (lambda: vmap(lambda x: (x, x), out_dims=(0, 0, 0))(X), ValueError, "out_dims is not compatible"),
    (lambda: vmap(lambda x: 3)(X), ValueError, "must only return Tensors, got type <class 'int'>"),
    (lambda: vmap(lambda x: x, out_dims=None)(X), ValueError, "can not return a BatchedTensor"),
    (lambda: vmap(pt.sin, randomness="any")(X), RuntimeError, "Only allowed values for randomness"),
    (lambda: vmap(pt.sin, chunk_size=0)(X), ValueError, "chunk_size should be None or greater"),
    (lambda: vmap(lambda x: x if x.sum() > 0 else -x)(X), RuntimeError, "cannot be batched"),
    (lambda: vmap(lambda x: x[x > 3])(X), (RuntimeError, NotImplementedError), "sample"),
    (lambda: vmap(lambda x: pt.add(x, 1, out=X))(X), RuntimeError, "out= cannot be batched"),
    (lambda: vmap(lambda x: x.numpy())(X), RuntimeError, "not known here"),
    (lambda: vmap(lambda x: x.data_ptr())(X), RuntimeError, "not known here"),
    (lambda: vmap(lambda x: x.as_strided((3, 5), (4, 1)))(X), RuntimeError, "reach out of the memory of one sample"),
])
def test_refused(call, error, words):
    before = X.clone(), len(entered()), pt.is_grad_enabled()
    if error is None:
        call()
        return
    with pytest.raises(error, match=words):
        call()
    assert before[0].equal(X) and (len(entered()), pt.is_grad_enabled()) == before[1:]


def test_a_leaked_sample_raises():
    kept = []
    vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(RuntimeError, match="transformation that has ended"):
        kept[0] + 1
    with pytest.raises(RuntimeError, match="transformation that has ended"):
        vmap(lambda y: y + kept[0])(X)
    with pytest.raises(RuntimeError):
        kept[0].item()


def test_gradients_of_shared_leaves():
    w = pt.ones(4, requires_grad=True)
    vmap(lambda x: (x * w).sum())(X[0]).sum().backward()        # from outside, as of any op
    same(w.grad, X[0].sum(0))
    with pytest.raises(RuntimeError, match=r"inside vmap gradients are taken by func\.grad"):
        vmap(lambda x: (x * w).sum().backward())(X[0])


gelu = pt.nn.functional.gelu


def test_who_asks_for_a_gradient_inside():
    """A backward inside vmap is recorded where a gradient of it can be asked for, and only there."""
    x, w = pt.randn(4, 3, dtype=pt.float64), pt.randn(3, dtype=pt.float64)

    def slopes(w):
        return vmap(grad(lambda x: gelu(x * w).sum()))

    with Tracer() as tracer:
        plain = slopes(w)(x)
    assert "gelu__d0" in [op for op, _, _ in tracer.tape] and not plain.requires_grad
    loop = pt.stack([grad(lambda x: gelu(x * w).sum())(row) for row in x])
    pt.testing.assert_close(plain, loop)
    seen = pt.autograd.functional.jacobian(lambda w: pt.stack([(w * gelu_slope(row * w)) for row in x]), w)

    leaf = w.clone().requires_grad_()               # a leaf of nobody's
    pt.testing.assert_close(pt.autograd.grad(slopes(leaf)(x).sum(), leaf)[0], seen.sum((0, 1)))
    pt.testing.assert_close(grad(lambda w: slopes(w)(x).sum())(w), seen.sum((0, 1)))
    pt.testing.assert_close(jacfwd(lambda w: slopes(w)(x))(w), seen)
    pt.testing.assert_close(vmap(lambda row: jacrev(lambda w: grad(lambda x: gelu(x * w).sum())(row))(w))(x), seen)
    leaf = x.clone().requires_grad_()               # the stack itself has a history
    again, = pt.autograd.grad(slopes(w)(leaf).sum(), leaf)
    pt.testing.assert_close(again, vmap(lambda x: hessian(lambda x: gelu(x * w).sum())(x).sum(0))(x))


def gelu_slope(x):
    return 0.5 * (1 + pt.erf(x / 2 ** 0.5)) + x * (-x * x / 2).exp() / (2 * pt.pi) ** 0.5


def test_grad_is_traced():
    """By an interpreter that stands for nothing."""
    x = pt.randn(3)
    with Tracer() as tracer:
        found = grad(lambda x: x.tanh().sum())(x)
        with pt.no_grad():
            pt.testing.assert_close(grad(lambda x: x.tanh().sum())(x), found)
    assert {"tanh__d0", "tanh__dx"} & {op for op, _, _ in tracer.tape}
    pt.testing.assert_close(found, 1 - x.tanh() ** 2)


def test_detach_is_seen_at_every_level():
    w = pt.ones(4, dtype=pt.float64, requires_grad=True)
    same(grad(lambda w: vmap(lambda x: (x * w * w.detach()).sum())(X[0].double()).sum())(w), X[0].double().sum(0))
    same(grad(lambda w: vmap(lambda v: (v.detach() * v).sum() + (v.data * v).sum())(w[None]).sum())(w), 2 * w)


@pytest.mark.parametrize("f", [
    lambda x: x.untyped_storage(), lambda x: x.resize_(2), lambda x: x.set_(), lambda x: x.share_memory_(),
    lambda x: pt.serialization.save(x, "nowhere"), lambda x: x.__reduce_ex__(2), lambda x: x.tolist(),
    lambda x: float(x[0, 0]), lambda x: x.__dlpack__(), lambda x: x.__arrow_c_array__(), lambda x: memoryview(x)])
def test_memory_is_not_shown(f):
    with pytest.raises((RuntimeError, BufferError, TypeError), match=r"batched|sample|not known"):
        vmap(f)(X)


def test_deep_copies_are_samples():
    import copy
    same(vmap(lambda x: copy.deepcopy(x).add_(1))(X), X + 1)
    same(vmap(lambda x: copy.copy(x) + 1)(X), X + 1)


def test_printing_shows_what_stands_behind():
    seen = []
    vmap(lambda x: seen.append((repr(x), str(x))) or x)(pt.arange(3))
    assert seen == [("BatchedTensor(bdim=0, value=\ntensor([0, 1, 2])\n)",) * 2]
    with pt.autograd.forward_ad.dual_level():
        x = pt.autograd.forward_ad.make_dual(pt.ones(2), pt.zeros(2))
        assert repr(x) == "tensor([1., 1.], tangent=tensor([0., 0.]))"
        assert repr(x.detach()) == "tensor([1., 1.])"


NESTED = {
    "expand": lambda x, s, t: (x + t).expand(2, 4) * s, "reshape": lambda x, s, t: (x * s).reshape(2, 2) + t[0],
    "products": lambda x, s, t: ((x * s) * (t * x)).sum(), "of two": lambda x, s, t: (x * s) * t,
    "of one": lambda x, s, t: -x.sin() * t, "unused": lambda x, s, t: x.unsqueeze(0).expand(3, 4),
    "cat": lambda x, s, t: pt.cat([x, s + t, t]), "stack": lambda x, s, t: pt.stack([x * t, x * s], 1),
    "split": lambda x, s, t: (x + s).split([1, 3])[1] * t[0], "select": lambda x, s, t: x[1] * s + t[:1],
    "where": lambda x, s, t: pt.where(x > 0, s, t), "clone": lambda x, s, t: (x * t).clone(),
    "numbers": lambda x, s, t: (x * 2 + s.sum()) ** 2, "max": lambda x, s, t: (x * s + t).max(0).values,
    "flip": lambda x, s, t: (x + s).flip(0) - t, "in place": lambda x, s, t: (x * t * s).clone().add_(s).mul_(2),
}


@pytest.mark.parametrize("name", NESTED)
def test_three_levels(name):
    """The stack of one level is a sample of the next one further out."""
    f, x = NESTED[name], pt.randn(3, 4, dtype=pt.float64)
    unit = pt.eye(4, dtype=pt.float64)
    found = pt.vmap(lambda x: pt.vmap(lambda s: pt.vmap(lambda t: f(x, s, t))(unit))(unit))(x)
    expected = pt.stack([pt.stack([pt.stack([f(x, s, t) for t in unit]) for s in unit]) for x in x])
    assert found.shape == expected.shape and found.allclose(expected, rtol=1e-12)


@pytest.mark.skipif(dual.__file__.endswith(".py"), reason="plain Python")
def test_calls_of_python():
    """Between the steps of a transformation is compiled code: Python functions entered, the user's among them."""
    x, h = pt.randn(8, 4), pt.randn(16)
    for f, a, most in ((pt.vmap(pt.func.grad(lambda x: x.sin().sum())), x, 60),
                       (lambda x: pt.func.jvp(lambda x: (x * 2).sin(), (x,), (x,)), x, 25),
                       (pt.func.hessian(lambda x: (x ** 3).sum()), h, 200)):
        f(a)
        calls = []

        def note(frame, event, arg, calls=calls):
            if event == "call":
                calls.append(frame.f_code.co_qualname)
        sys.setprofile(note)
        try:
            f(a)
        finally:
            sys.setprofile(None)
        assert len(calls) <= most, calls


@pytest.mark.parametrize("f", [
    lambda x: pt.linalg.eigh(x + x.mH)[1].abs().pow(4).sum(),
    lambda x: sum([part.abs().pow(3).sum() for part in pt.linalg.svd(x, full_matrices=False)]),
])
def test_gradients_of_complex_vectors(f):
    """Whether a loss depends on their phases is not asked where the values are not known."""
    xs = pt.randn(3, 4, 4, dtype=pt.complex128, generator=pt.Generator().manual_seed(0))
    pt.testing.assert_close(pt.vmap(pt.func.grad(f))(xs), pt.stack([pt.func.grad(f)(x) for x in xs]))
    traced = make_fx(pt.func.grad(f))(xs[0])
    pt.testing.assert_close(traced(xs[1]), pt.func.grad(f)(xs[1]))
