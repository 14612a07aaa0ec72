"""Infinities, NaN and ties: batched, pushed forward and recorded calls give what the kernels of ordinary calls give.

The kernels are compared with PyTorch in the parity tests, and PyTorch has no other way than its kernels for most of these.
"""
import numpy as np
import pytest

import ptcore as pt

F = pt.nn.functional
INF, NAN = float("inf"), float("nan")


def weighted(f, x):
    """A number that depends on each element of a result."""
    y = f(x)
    return (y * pt.arange(1.0, y.numel() + 1).reshape(y.shape)).sum()


def check(f, x, batched=True):
    """``f`` of one tensor, and its gradient, in each way of running it."""
    value, size = f(x).numpy(), dict(rtol=2e-4, atol=1e-5)
    leaf = x.clone().requires_grad_()
    plain = pt.autograd.grad(weighted(f, leaf), leaf)[0].numpy()
    leaf = x.clone().requires_grad_()
    recorded = pt.autograd.grad(weighted(f, leaf), leaf, create_graph=True)[0]
    np.testing.assert_allclose(recorded.detach().numpy(), plain, **size)
    pushed, tangent = pt.func.jvp(f, (x,), (pt.ones_like(x),))
    np.testing.assert_allclose(pushed.numpy(), value, **size)
    if np.isfinite(plain).all():
        steps = (tangent.numpy().ravel() * np.arange(1, tangent.numel() + 1)).sum()
        np.testing.assert_allclose(steps, plain.sum(), rtol=1e-3, atol=1e-3 * (1 + abs(plain).sum()))
    if batched:
        both = pt.stack([x * 0 + 0.5, x])
        np.testing.assert_allclose(pt.func.vmap(f)(both)[1].numpy(), value, **size)
        of_both = pt.func.vmap(pt.func.grad(lambda one: weighted(f, one)))(both)
        np.testing.assert_allclose(of_both[1].numpy(), plain, **size)


def scores(kind):
    x = np.random.RandomState(0).permutation(np.linspace(-2, 3, 15)).astype("f4").reshape(3, 5)
    if kind == "tie":
        x = np.round(x)
    elif kind == "-inf":
        x[:2] = -INF
    elif kind != "plain":
        x[0, 0], x[1, 1] = float(kind), -float(kind)
    return pt.tensor(x)


KINDS = ["plain", "tie", "inf", "-inf", "nan"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [None, [1.0, 0, 2, 0.5, 1]])
@pytest.mark.parametrize("target", [[1, -100, 2], [0, 2, 4], [-100, -100, 0]])
def test_losses_of_classes(kind, reduction, weight, target):
    x, target = scores(kind), pt.tensor(target)
    options = {"weight": None if weight is None else pt.tensor(weight), "reduction": reduction}
    for smoothing in (0.0, 0.2):
        check(lambda x, s=smoothing: F.cross_entropy(x, target, label_smoothing=s, **options), x)
    check(lambda x: F.nll_loss(x, target, **options), x)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_margins(kind):
    x = scores(kind)
    labels = pt.tensor([[1, 0, -1, 2, 2], [3, -1, 0, 0, 0], [-1, 0, 0, 0, 0]])
    for reduction in ("none", "mean"):
        # what is NaN has no sign, by which the kernels choose
        if kind in ("plain", "tie"):
            check(lambda x, r=reduction: F.multi_margin_loss(x, pt.tensor([0, 2, 4]), reduction=r), x)
            check(lambda x, r=reduction: F.multilabel_margin_loss(x, labels, reduction=r), x)


@pytest.mark.parametrize("kind", ["plain", "zero", "tie", "inf", "nan", "big"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_samples_of_a_grid(kind, mode, padding_mode, align_corners):
    grid = np.random.RandomState(0).permutation(np.linspace(-2.1, 3, 18))
    if kind == "zero":
        grid[:] = 0
    elif kind == "tie":
        grid = np.round(grid)                   # -1 and 1 are the ends of the image, or of its outer half pixels
    elif kind == "big":
        grid *= 1e30
    elif kind != "plain":
        grid[0], grid[7] = float(kind), -float(kind)
    grid, image = pt.tensor(grid.reshape(1, 3, 3, 2)), pt.arange(32.0, dtype=pt.float64).reshape(1, 2, 4, 4)
    check(lambda grid: F.grid_sample(image, grid, mode, padding_mode, align_corners), grid)
    check(lambda image: F.grid_sample(image, grid, mode, padding_mode, align_corners), image)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_with_several_largest_gaps(kind):
    x = scores(kind)
    for f in (lambda x: pt.cdist(x, x.flip(0) + 1, INF), lambda x: pt.pdist(x, INF)):
        leaf = x.clone().requires_grad_()
        plain = pt.autograd.grad(weighted(f, leaf), leaf)[0].numpy()
        recorded = pt.autograd.grad(weighted(f, leaf), leaf, create_graph=True)[0]
        np.testing.assert_allclose(recorded.detach().numpy(), plain)
        of_both = pt.func.vmap(pt.func.grad(lambda one, f=f: weighted(f, one)))(pt.stack([x * 0 + 0.5, x]))
        np.testing.assert_allclose(of_both[1].numpy(), plain)
    y = x.flip(0) + 1                           # only one operand is batched, or both with dims in front
    for left, right, dims in ((pt.stack([x, x]), y, (0, None)), (x, pt.stack([y, y]), (None, 0)),
                              (pt.stack([x, x], 1), pt.stack([y, y]), (1, 0))):
        slopes = pt.func.vmap(pt.func.grad(lambda a, b: weighted(lambda a: pt.cdist(a, b, INF), a), (0, 1)), dims)
        want = pt.func.grad(lambda a, b: weighted(lambda a: pt.cdist(a, b, INF), a), (0, 1))(x, y)
        for found, one in zip(slopes(left, right), want, strict=True):
            np.testing.assert_allclose(found[1].numpy(), one.numpy())


def test_windows_of_zeros_have_no_slope():
    x = pt.tensor([[[0.0, 0.0, 1.0, 2.0, 0.0, 3.0, -0.0, 0.0]]])
    for norm_type in (1.0, 2.0, 3.0):
        check(lambda x, p=norm_type: F.lp_pool1d(x, p, 2), x)
    check(lambda x: F.lp_pool2d(x.reshape((1, 1, 2, 4)), 2.0, 2), x * 0)


@pytest.mark.parametrize("kind", ["plain", "tie", "inf"])
@pytest.mark.parametrize("reduce", ["max", "min", "sum", "mean", "prod"])
def test_segments_whose_elements_equal_the_initial_value(kind, reduce):
    x = scores(kind).t()
    for lengths in ([2, 0, 3], [2, 3]):
        check(lambda x, n=lengths: pt.segment_reduce(x, reduce, lengths=pt.tensor(n), initial=1.0), x)
    check(lambda x: pt.segment_reduce(x, reduce, lengths=pt.tensor([2, 3])), x)
