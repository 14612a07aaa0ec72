"""Adaptive softmax, fractional pooling, SyncBatchNorm, CrossMapLRN2d, conv_tbc and nn.grad against torch."""
import copy

import numpy as np
import pytest
from test_parity_parametrize import both, filled, raises_alike, said

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def grads(module):
    return {f"grad of {name}": p.grad for name, p in module.named_parameters() if p.grad is not None}


# -- adaptive softmax -------------------------------------------------------------------------------

@pytest.mark.parametrize("settings", [((4,), {}), ((3, 6), {"div_value": 2.0}), ((2, 5, 9), {"head_bias": True})])
@pytest.mark.parametrize("targets", [[0, 1, 8, 11], [0, 1, 0, 1], [11, 10, 11, 10], 5, 0, [7]])
def test_adaptive_softmax(settings, targets):
    def program(lib):
        layer = filled(lib, lib.nn.AdaptiveLogSoftmaxWithLoss(8, 12, *settings[:1], **settings[1]).double())
        target = lib.tensor(targets)
        x = lib.tensor(array(*target.shape, 8)).requires_grad_()
        output, loss = layer(x, target)
        (loss + output.cos().sum()).backward()
        rows = x if x.ndim == 2 else x.unsqueeze(0)
        return {"output": output, "loss": loss, "x": x.grad, **grads(layer), "all": layer.log_prob(rows),
                "best": layer.predict(rows), "keys": list(layer.state_dict()), "repr": repr(layer),
                "named": type(layer(x, target)).__name__, "fields": layer(x, target)._fields,
                "sizes": [layer.shortlist_size, layer.n_clusters, layer.head_size, layer.cutoffs]}

    both(program)


def test_predictions_of_mixed_batches():
    def program(lib):
        layer = filled(lib, lib.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [2, 6]).double())
        x = lib.tensor(array(40, 8) * 3)
        return {"best": layer.predict(x), "in clusters": layer.predict(x[layer.head(x).argmax(1) >= 2]),
                "in none": layer.predict(x[layer.head(x).argmax(1) < 2])}

    both(program)


SAID_BAD_CUTOFFS = [
    "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length larger than 0, got []",
    "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers",
    "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers",
    "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers",
    "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers",
    "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers"]


@pytest.mark.parametrize(("case", "says"), said(SAID_BAD_CUTOFFS, [
    lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 10, []), lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 5]),
    lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3]), lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [0, 3]),
    lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 10]), lambda nn: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2.5]),
]))  # fmt: skip
def test_bad_cutoffs(case, says):
    raises_alike(lambda lib: case(lib.nn), says)


@pytest.mark.parametrize(("x", "target", "says"), [
    ((2, 4), (3,), "the same size in the batch dimension, got 2 and 3"),
    ((2, 4), (), "0D target tensor expects 1D input tensors, but found inputs with size [2, 4]"),
    ((4,), (1,), "1D target tensor expects 2D input tensors, but found inputs with size [4]"),
    ((2, 4), (2, 1), "0D or 1D target tensor expected, multi-target not supported, got 2D"),
    ((2, 2, 4), (2,), "1D target tensor expects 2D input tensors, but found inputs with size [2, 2, 4]")])
def test_bad_shapes(x, target, says):
    raises_alike(lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(
        lib.zeros(x), lib.zeros(target, dtype=lib.int64)), says)


@pytest.mark.parametrize("target", [-1, 10])
def test_bad_targets(target):
    raises_alike(lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(lib.zeros(2, 4), lib.tensor([0, target])),
                 f"should be in [0, 9], but values in range [{min(0, target)}, {max(0, target)}] were found")


# -- fractional pooling -------------------------------------------------------------------------------

FRACTIONAL = [((2, 3, 7, 9), 2, (3, 4)), ((2, 3, 7, 9), (3, 2), (5, 8)), ((3, 6, 6), 2, 3), ((1, 1, 5, 5), 3, (1, 3)),
              ((2, 2, 6, 5, 7), 2, (3, 2, 4)), ((2, 5, 6, 7), (1, 2, 3), 3)]


@pytest.mark.parametrize(("shape", "kernel", "size"), FRACTIONAL)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_fractional_pooling(shape, kernel, size, dtype):
    n = 3 if len(shape) == 5 or (kernel, size) == ((1, 2, 3), 3) else 2
    lead = shape[:-n] if len(shape) == n + 2 else (1, shape[0])

    def program(lib):
        kind = getattr(lib, dtype)
        samples = lib.tensor(np.random.default_rng(1).random((*lead, n))).to(kind)
        x = lib.tensor(array(*shape)).to(kind).requires_grad_()
        function = getattr(lib.nn.functional, f"fractional_max_pool{n}d")
        y, places = function(x, kernel, size, return_indices=True, _random_samples=samples)
        (y.double().flatten() * (lib.arange(y.numel()) % 5)).sum().backward()      # exact in half types too
        again = function(x, kernel, output_size=size, _random_samples=samples)
        module = getattr(lib.nn, f"FractionalMaxPool{n}d")(kernel, size, _random_samples=samples)
        return {"y": y.double(), "places": places, "grad": x.grad.double(), "again": again.double(),
                "module": module(x).double(), "repr": repr(module), "keys": list(module.state_dict()),
                "sizes": [module.kernel_size, module.output_size, module.output_ratio]}

    both(program)


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_by_ratio(n):
    for lib in (pt, torch):
        x = lib.tensor(array(2, 3, *(9, 8, 7)[:n]))
        function = getattr(lib.nn.functional, f"fractional_max_pool{n}d")
        y, places = function(x, 2, output_ratio=(0.5, 0.6, 0.7)[:n], return_indices=True)
        assert tuple(y.shape) == (2, 3, *(4, 4, 4)[:n])
        flat = x.flatten(2).gather(2, places.flatten(2)).reshape(y.shape)
        assert lib.equal(flat, y)
        y, places = getattr(lib.nn, f"FractionalMaxPool{n}d")(2, output_ratio=0.5, return_indices=True)(x)
        assert tuple(y.shape) == (2, 3, *(4, 4, 3)[:n])
        two = getattr(lib.nn.functional, f"fractional_max_pool{n}d_with_indices")(x, 2, 3)
        assert tuple(two[1].shape) == (2, 3, *[3] * n)


def test_places_cover_the_input():
    pt.manual_seed(0)
    x = pt.arange(1000.0).reshape(1, 1, 1, 1000).expand(1, 1, 2, 1000)
    starts = pt.nn.functional.fractional_max_pool2d(x, (2, 3), (1, 400))[0, 0, 0] - 2
    steps = starts.diff()
    assert starts[-1].item() == 997
    assert set(steps[:-1].tolist()) == {2.0, 3.0}


@pytest.mark.parametrize("case", [
    lambda F, lib, x: F.fractional_max_pool2d(x, 2), lambda F, lib, x: F.fractional_max_pool2d(x, 2, (6, 7)),
    lambda F, lib, x: F.fractional_max_pool2d(x[0, 0], 2, 3),
    lambda F, lib, x: F.fractional_max_pool2d(x[:, :, :0], 2, 3),
    lambda F, lib, x: F.fractional_max_pool2d(x.int(), 2, 3),
    lambda F, lib, x: F.fractional_max_pool2d(x, 2, 3, _random_samples=lib.rand(1, 1, 3)),
    lambda F, lib, x: F.fractional_max_pool2d(x, 2, 3, _random_samples=lib.rand(1, 2)),
    lambda F, lib, x: F.fractional_max_pool2d(x, 2, 3, _random_samples=lib.rand(1, 1, 2).double()),
    lambda F, lib, x: lib.nn.FractionalMaxPool2d(2), lambda F, lib, x: lib.nn.FractionalMaxPool2d(2, 3, 0.5),
    lambda F, lib, x: lib.nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.5, 1.5)),
])  # fmt: skip
def test_errors_of_fractional_pooling(case):
    def program(lib):
        x = lib.rand(1, 1, 6, 7)
        case(lib.nn.functional, lib, x)

    theirs = {}
    try:
        program(torch)
    except Exception as error:
        theirs = type(error)
    # PyTorch's NotImplementedError is a RuntimeError; ours for a dtype is one too
    with pytest.raises(RuntimeError if issubclass(theirs, (RuntimeError, IndexError)) else theirs):
        program(pt)


# -- norms ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 2)])
def test_sync_batch_norm(training, shape):
    def program(lib):
        layer = filled(lib, lib.nn.SyncBatchNorm(3).double()).train(training)
        layer.running_var.abs_()
        x = lib.tensor(array(*shape)).requires_grad_()
        y = layer(x)
        y.cos().sum().backward()
        return {"y": y, "x": x.grad, **grads(layer), **{f"state of {k}": v for k, v in layer.state_dict().items()},
                "repr": repr(layer)}

    both(program)


def test_converting_to_sync_batch_norm():
    def program(lib):
        nn = lib.nn
        net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, eps=1e-3), nn.Sequential(
            nn.BatchNorm2d(4, affine=False), nn.BatchNorm2d(4, track_running_stats=False)), nn.InstanceNorm2d(4))
        net = filled(lib, net.double()).eval()
        weight = net[1].weight
        made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
        assert made is net
        assert net[1].weight is weight
        alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))
        return {"repr": repr(made), "modes": [m.training for m in made.modules()], "alone": repr(alone),
                "keys": list(made.state_dict())}

    both(program)
    raises_alike(lambda lib: lib.nn.SyncBatchNorm(3)(lib.zeros(3)), "expected at least 2D input (got 1D input)")


@pytest.mark.parametrize(("channels", "size"), [(1, 1), (5, 1), (6, 3), (7, 5), (6, 2), (4, 9)])
def test_cross_map_lrn(channels, size):
    settings = {"alpha": 0.3, "beta": 0.6, "k": 1.5}
    x = array(2, channels, 3, 2)
    both(lambda lib: {"y": lib.nn.CrossMapLRN2d(size, **settings)(lib.tensor(x)),
                      "default": lib.nn.CrossMapLRN2d(size)(lib.tensor(x)), "repr": repr(lib.nn.CrossMapLRN2d(size))})
    # PyTorch's gradient is not that of its results
    leaf = pt.tensor(x, requires_grad=True)
    assert pt.autograd.gradcheck(pt.nn.CrossMapLRN2d(size, **settings), (leaf,))


def test_cross_map_lrn_takes_images_alone():
    raises_alike(lambda lib: lib.nn.CrossMapLRN2d(3)(lib.zeros(2, 3, 4)), "Expected input to be 4D, got 3D instead")


# -- the rest -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("pad", [0, 2])
def test_conv_tbc(pad):
    def program(lib):
        x, w, b = (lib.tensor(array(*s, seed=k)).requires_grad_() for k, s in enumerate(((6, 2, 3), (2, 3, 4), (4,))))
        y = lib.conv_tbc(x, w, b, pad)
        y.cos().sum().backward()
        return {"y": y, "x": x.grad, "w": w.grad, "b": b.grad, "F": lib.nn.functional.conv_tbc(x, w, b, pad=pad)}

    both(program)


@pytest.mark.parametrize(("x", "w", "b", "says"), [
    ((6, 2), (2, 3, 4), (4,), "input must have 3 dimensions, got shape [6, 2]"),
    ((6, 2, 3), (2, 3), (4,), "weight must have 3 dimensions, got shape [2, 3]"),
    ((6, 2, 3), (2, 3, 4), (4, 1), "bias must have 1 dimensions, got shape [4, 1]"),
    ((6, 2, 3), (2, 5, 4), (4,), "weight must have shape [filters, 3 / groups, ...]"),
    ((6, 2, 3), (2, 3, 4), (5,), "bias must have shape [4], got [5]")])
def test_errors_of_conv_tbc(x, w, b, says):
    raises_alike(lambda lib: lib.conv_tbc(lib.zeros(x), lib.zeros(w), lib.zeros(b)), f"conv_tbc: {says}")


@pytest.mark.parametrize(("n", "settings"), [(1, {"stride": 2, "padding": 1}), (2, {"groups": 2, "dilation": (1, 2)}),
                                             (2, {"stride": (2, 1), "padding": 1}), (3, {"stride": 2})])
def test_gradients_of_convolutions(n, settings):
    def program(lib):
        x, w = lib.tensor(array(2, 4, *[7] * n)), lib.tensor(array(4, 4 // settings.get("groups", 1), *[2] * n))
        y = getattr(lib.nn.functional, f"conv{n}d")(x, w, **settings)
        g = y.cos()
        return {"input": getattr(lib.nn.grad, f"conv{n}d_input")(x.shape, w, g, **settings),
                "weight": getattr(lib.nn.grad, f"conv{n}d_weight")(x, w.shape, g, **settings)}

    both(program)


def test_older_names():
    def program(lib):
        box = lib.nn.Container(a=lib.nn.ReLU(), b=lib.nn.Linear(2, 1))
        x, target = lib.tensor(array(2, 3, 4, 4)), lib.ones(2, 4, 4, dtype=lib.int64)
        loss = lib.nn.NLLLoss2d(reduction="sum")
        return {"repr": repr(box), "keys": list(box.state_dict()), "loss": loss(x, target), "text": repr(loss),
                "shuffled": lib.nn.functional.native_channel_shuffle(lib.tensor(array(1, 4, 2, 2)), 2)}

    both(program)
    for make in (lambda lib: lib.nn.Container(), lambda lib: lib.nn.NLLLoss2d()):
        for lib in (pt, torch):
            with pytest.warns(FutureWarning):
                make(lib)
    assert copy.deepcopy(pt.nn.ReLU(True)).inplace
