"""Running statistics of batch and instance normalisation, which the kernel that normalises moves: in every layout and
dtype, under transformations, in graphs, with hooks. The formulas are NumPy's."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.autograd import gradcheck, gradgradcheck
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.utils.checkpoint import checkpoint

pytestmark = pytest.mark.core
F = nn.functional
MOMENTUM = 0.3


def data(*shape, seed=0):
    return np.random.default_rng(seed).normal(2, 3, size=shape)


def moved(x, mean, var, samples=False):
    """The statistics after a batch."""
    if samples:
        axes, count = tuple(range(2, x.ndim)), x[0, 0].size
        m, v = x.mean(axis=axes).mean(axis=0), x.var(axis=axes).mean(axis=0)
    else:
        axes, count = (0, *range(2, x.ndim)), x.size // x.shape[1]
        m, v = x.mean(axis=axes), x.var(axis=axes)
    return (1 - MOMENTUM) * mean + MOMENTUM * m, (1 - MOMENTUM) * var + MOMENTUM * v * count / (count - 1)


def statistics(channels, dtype=pt.float64):
    return pt.tensor(data(channels, seed=1), dtype=dtype), pt.tensor(data(channels, seed=2)**2, dtype=dtype)


def train(x, mean, var, instance=False, **given):
    if instance:
        return F.instance_norm(x, mean, var, momentum=MOMENTUM, **given)
    return F.batch_norm(x, mean, var, training=True, momentum=MOMENTUM, **given)


def check(x, mean, var, call, instance=False, rtol=1e-10):
    """Calls, and compares what the statistics are then."""
    expected = moved(x, mean.numpy().astype(np.float64), var.numpy().astype(np.float64), instance)
    result = call(mean, var)
    for got, want in zip((mean, var), expected):
        np.testing.assert_allclose(got.numpy().astype(np.float64), want, rtol=rtol)
    return result


KINDS = pytest.mark.parametrize("instance", [False, True], ids=["batch", "instance"])


@KINDS
@pytest.mark.parametrize("shape", [(5, 3, 2), (2, 3, 17), (3, 2, 5, 4), (40, 30, 3), (3, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_statistics_of_another_dtype(instance, shape, dtype):
    x = pt.tensor(data(*shape)).to(dtype)
    for own in (pt.float64, pt.float32):
        check(x.double().numpy(), *statistics(shape[1], own), lambda m, v: train(x, m, v, instance), instance,
              1e-10 if own is x.dtype is pt.float64 else 2e-3 if x.dtype.itemsize == 2 else 1e-5)


@KINDS
def test_one_of_the_two(instance):
    x = pt.tensor(data(4, 3, 5))
    mean, var = statistics(3)
    want = moved(x.numpy(), mean.numpy(), var.numpy(), instance)
    train(x, mean, None, instance)
    np.testing.assert_allclose(mean.numpy(), want[0])
    train(x, None, var, instance)
    np.testing.assert_allclose(var.numpy(), want[1])


@KINDS
@pytest.mark.parametrize("layout", ["channels_last", "transposed", "every second"])
def test_layouts(instance, layout):
    x = pt.tensor(data(4, 3, 6, 5))
    given = {"channels_last": x.to(memory_format=pt.channels_last),
             "transposed": x.transpose(2, 3).contiguous().transpose(2, 3),
             "every second": pt.stack([x, x], -1)[..., 0]}[layout]
    assert not given.is_contiguous()
    check(x.numpy(), *statistics(3), lambda m, v: train(given, m, v, instance), instance)


@KINDS
def test_statistics_that_are_views(instance):
    x, base = pt.tensor(data(4, 3, 5)), pt.zeros(3, 2, dtype=pt.float64)
    mean, var = base[:, 0], base[:, 1]
    mean.copy_(pt.tensor(data(3, seed=1)))
    var.copy_(pt.tensor(data(3, seed=2)**2))
    before = base._version
    check(x.numpy(), mean, var, lambda m, v: train(x, m, v, instance), instance)
    assert base._version == before + 2
    want = moved(x.numpy(), *base.numpy().T.copy(), instance)
    train(x, mean, var, instance)
    np.testing.assert_allclose(base.numpy().T, want)


@KINDS
def test_what_cannot_be_written(instance):
    x = pt.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match=r"single\s+memory location"):
        train(x, pt.zeros(1).expand(3), None, instance)
    fixed = np.zeros(3, dtype=np.float32)
    fixed.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        train(x, pt.from_numpy(fixed), None, instance)
    with pt.inference_mode():
        inside = pt.zeros(3)
    with pytest.raises(RuntimeError, match="inference tensor"):
        train(x, inside, None, instance)


@KINDS
def test_writes_are_counted_and_have_no_history(instance):
    x = pt.tensor(data(4, 3, 5), requires_grad=True)
    mean, var = statistics(3)
    train(x, mean, var, instance)
    assert mean._version == var._version == 1 and mean.grad_fn is None and not mean.requires_grad
    y = (mean * mean.clone().requires_grad_()).sum()
    train(x, mean, var, instance)
    with pytest.raises(RuntimeError, match=r"modified by an\s+inplace operation"):
        y.backward()
    leaf = pt.zeros(3, dtype=pt.float64, requires_grad=True)
    train(x, leaf, None, instance)
    assert leaf.grad_fn is None and leaf._version == 1 and (leaf != 0).all()


@KINDS
def test_an_empty_batch_says_nothing(instance):
    for shape in ((0, 3, 4), (2, 3, 0)):
        mean, var = statistics(3)
        kept = mean.clone(), var.clone()
        assert train(pt.zeros(shape, dtype=pt.float64), mean, var, instance).shape == shape
        assert pt.equal(mean, kept[0]) and pt.equal(var, kept[1])


@KINDS
def test_meta(instance):
    x = pt.empty(2, 3, 4, device="meta")
    mean = pt.empty(3, device="meta")
    assert train(x, mean, mean, instance).shape == x.shape and mean._version == 2


@KINDS
def test_graphs_show_the_writes(instance):
    x = pt.tensor(data(4, 3, 5))
    made = make_fx(lambda x, m, v: train(x, m, v, instance))(x, *statistics(3))
    assert sum(n.name.startswith("copy_") for n in made.graph.nodes) == 2
    want = train(x, *statistics(3), instance)
    y = check(x.numpy(), *statistics(3), lambda m, v: made(x, m, v), instance)
    np.testing.assert_allclose(y.numpy(), want.numpy())


@pytest.mark.parametrize("dtype", [pt.float64, pt.float32])
@pytest.mark.parametrize("shape", [(7, 3), (4, 3, 50)])
def test_a_graph_gives_the_same_bits(shape, dtype):
    x = pt.tensor(data(*shape)).float()
    made = make_fx(train)(x, *statistics(3, dtype))
    graph, fused = statistics(3, dtype), statistics(3, dtype)
    for k in range(5):
        pt.testing.assert_close(made(x + k, *graph), train(x + k, *fused), rtol=0, atol=0)
        assert pt.equal(graph[0], fused[0]) and pt.equal(graph[1], fused[1])


@KINDS
def test_transformations(instance):
    x = pt.tensor(data(4, 3, 5))
    mean, var = statistics(3)
    expected = moved(x.numpy(), mean.numpy(), var.numpy(), instance)
    (_, m), (tangent, still) = pt.func.jvp(lambda x: (train(x, mean, var, instance), mean.clone()), (x,),
                                           (pt.ones_like(x),))
    np.testing.assert_allclose(m.numpy(), expected[0])
    assert not still.any()
    np.testing.assert_allclose(tangent.numpy(), 0, atol=1e-9)         # a batch that is shifted is normalised alike
    mean, var = statistics(3)
    pt.func.grad(lambda x: train(x, mean, var, instance).square().sum())(x)
    np.testing.assert_allclose(var.numpy(), expected[1])
    mean, var = statistics(3)
    pure = pt.func.functionalize(lambda x, m, v: (train(x, m, v, instance), m, v))
    _, m, _ = pure(x, mean, var)
    np.testing.assert_allclose(m.numpy(), expected[0])
    batch = pt.stack([x, 2 * x])
    means, variances = (pt.stack([s, s]) for s in statistics(3))
    pt.func.vmap(lambda x, m, v: train(x, m, v, instance))(batch, means, variances)
    for k in range(2):
        want = moved(batch[k].numpy(), *[s.numpy() for s in statistics(3)], instance)
        np.testing.assert_allclose(means[k].numpy(), want[0])
        np.testing.assert_allclose(variances[k].numpy(), want[1])


@KINDS
def test_a_hook_may_end_the_call(instance):
    """The statistics are moved before anything is saved: a checkpoint's second run ends where all is there."""
    x = pt.tensor(data(4, 3, 5), requires_grad=True)
    mean, var = statistics(3)

    def run(x):
        return train(x, mean, var, instance).square()
    y = checkpoint(run, x, use_reentrant=False)
    value = x.detach().numpy()
    once = moved(value, *[s.numpy() for s in statistics(3)], instance)
    np.testing.assert_allclose(mean.numpy(), once[0])
    y.sum().backward()
    twice = moved(value, *once, instance)
    np.testing.assert_allclose(mean.numpy(), twice[0])
    np.testing.assert_allclose(var.numpy(), twice[1])


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(3, momentum=MOMENTUM),
                                   nn.InstanceNorm1d(3, momentum=MOMENTUM, track_running_stats=True, affine=True)])
@pytest.mark.parametrize("how", ["compile", "trace"])
def test_compiled_steps_move_them(layer, how):
    layer = layer.double()
    layer.load_state_dict({**layer.state_dict(), "running_mean": statistics(3)[0], "running_var": statistics(3)[1]})
    x = pt.tensor(data(4, 3, 5))
    run = pt.compile(layer) if how == "compile" else pt.jit.trace(layer, x, check_trace=False)
    layer.load_state_dict({**layer.state_dict(), "running_mean": statistics(3)[0], "running_var": statistics(3)[1]})
    mean, var = (s.numpy() for s in statistics(3))
    for _ in range(4):
        mean, var = moved(x.numpy(), mean, var, isinstance(layer, nn.InstanceNorm1d))
        run(x)
        np.testing.assert_allclose(layer.running_mean.numpy(), mean)
        np.testing.assert_allclose(layer.running_var.numpy(), var)


# -- by statistics that are given ------------------------------------------------------------------

def by_hand(x, mean, var, weight=None, bias=None, eps=1e-5):
    def of(v):
        return v.reshape(1, -1, *[1] * (x.ndim - 2))
    y = (x - of(mean)) / np.sqrt(of(var) + eps)
    return (y if weight is None else y * of(weight)) + (0 if bias is None else of(bias))


@pytest.mark.parametrize("shape", [(5, 3), (3, 4, 7), (2, 3, 40), (2, 3, 4, 5), (2, 3, 2, 3, 4), (300, 70),
                                   (2, 3, 9000)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_evaluation(shape, dtype):
    x = pt.tensor(data(*shape)).to(dtype)
    mean, var = statistics(shape[1], pt.float64 if dtype == "float64" else pt.float32)
    weight, bias = (pt.tensor(data(shape[1], seed=k)).to(dtype) for k in (3, 4))
    tolerance = {"float64": 1e-10, "float32": 1e-4, "float16": 2e-2, "bfloat16": 0.2}[dtype]
    layouts = [x, pt.stack([x, x], -1)[..., 1], x.transpose(0, -1).contiguous().transpose(0, -1),
               x.movedim(1, -1).contiguous().movedim(-1, 1)]
    for w, b in ((None, None), (weight, None), (None, bias), (weight, bias)):
        want = by_hand(*[None if t is None else t.double().numpy() for t in (x, mean, var, w, b)])
        for given in layouts:
            got = F.batch_norm(given, mean, var, w, b)
            assert got.dtype is x.dtype and got.shape == x.shape
            np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)
    spread = pt.stack([mean, mean], 1)[:, 0], pt.stack([var, var], 1)[:, 0]
    np.testing.assert_allclose(F.batch_norm(x, *spread).double().numpy(),
                               by_hand(x.double().numpy(), mean.numpy(), var.numpy()), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [pt.float64, pt.float32, pt.float16])
@pytest.mark.parametrize("shape", [(7, 3), (4, 3, 50), (2, 3, 4, 5)])
def test_a_graph_of_evaluation_gives_the_same_bits(shape, dtype):
    x = pt.tensor(data(*shape)).to(dtype)
    mean, var = statistics(3, pt.float64 if dtype is pt.float64 else pt.float32)
    for w, b in ((None, None), (x[0].reshape(3, -1)[:, 0], x[1].reshape(3, -1)[:, 0])):
        made = make_fx(lambda x, w=w, b=b: F.batch_norm(x, mean, var, w, b))(x)
        for layout in (x, x.movedim(1, -1).contiguous().movedim(-1, 1), pt.stack([x, x], -1)[..., 1]):
            assert pt.equal(made(layout), F.batch_norm(layout, mean, var, w, b))


def test_evaluation_keeps_the_memory_format():
    x = pt.tensor(data(2, 3, 4, 5)).to(memory_format=pt.channels_last)
    assert F.batch_norm(x, *statistics(3)).is_contiguous(memory_format=pt.channels_last)
    assert F.batch_norm(x.contiguous(), *statistics(3)).is_contiguous()
    assert F.batch_norm(pt.zeros(0, 3, 4, dtype=pt.float64), *statistics(3)).shape == (0, 3, 4)


@pytest.mark.parametrize("instance", [False, True])
@pytest.mark.parametrize("through", [False, True], ids=["given", "with a history"])
def test_derivatives_of_evaluation(instance, through):
    x, w, b = (pt.tensor(data(*s, seed=k), requires_grad=True) for k, s in enumerate([(3, 2, 4), (2,), (2,)]))
    mean, var = (s.requires_grad_(through) for s in statistics(2))

    def run(x, w, b, mean, var):
        if instance:
            return F.instance_norm(x, mean, var, w, b, use_input_stats=False)
        return F.batch_norm(x, mean, var, w, b)
    assert gradcheck(run, (x, w, b, mean, var), check_forward_ad=True)
    assert gradgradcheck(run, (x, w, b, mean, var))


def test_an_ensemble_is_evaluated_at_once():
    x = pt.tensor(data(4, 3, 5))
    means, variances = pt.tensor(data(2, 3, seed=1)), pt.tensor(data(2, 3, seed=2)**2)
    got = pt.func.vmap(lambda m, v: F.batch_norm(x, m, v))(means, variances)
    for k in range(2):
        np.testing.assert_allclose(got[k].numpy(), by_hand(x.numpy(), means[k].numpy(), variances[k].numpy()))


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_dtypes_that_are_refused(dtype):
    x = pt.ones(2, 3).to(dtype)
    for training in (False, True):
        with pytest.raises(TypeError, match=r"batch_norm: dtype must be one of float16"):
            F.batch_norm(x, pt.zeros(3), pt.ones(3), training=training)
