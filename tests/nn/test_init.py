"""Initialisers: distributions by their moments and bounds, matrices exactly."""

import math

import numpy as np
import pytest
from scipy import stats

import ptcore as pt
from ptcore.nn import init

pytestmark = pytest.mark.core

N = 40_000  # the smallest p-value accepted below fails by chance once in 10^5 runs


def draw(fill, *args, shape=(200, 200), **kwargs):
    tensor = pt.empty(shape, dtype=pt.float64, requires_grad=True)
    generator = pt.Generator().manual_seed(5)
    assert fill(tensor, *args, generator=generator, **kwargs) is tensor
    assert tensor.is_leaf
    return tensor.detach().numpy().ravel()


def check(values, distribution):
    assert stats.kstest(values, distribution.cdf).pvalue > 1e-5


def test_uniform_and_normal():
    check(draw(init.uniform_, -2, 3), stats.uniform(-2, 5))
    check(draw(init.normal_, 1, 0.5), stats.norm(1, 0.5))


def test_trunc_normal():
    values = draw(init.trunc_normal_, mean=1, std=2, a=0, b=4)
    check(values, stats.truncnorm(-0.5, 1.5, loc=1, scale=2))
    assert values.min() >= 0
    assert values.max() <= 4
    with pytest.warns(UserWarning, match="more than 2 std"):
        init.trunc_normal_(pt.empty(2), mean=10)
    for bounds in ({"a": "x"}, {"b": None}):
        with pytest.raises(TypeError, match=r"trunc_normal_: [ab] must be"):
            init.trunc_normal_(pt.empty(2), **bounds)


@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
@pytest.mark.parametrize("low, high", [(10, 12), (5, math.inf), (-12, -9), (-math.inf, -6), (4.5, 4.6), (3, 5), (9, 9)])
def test_trunc_normal_far_from_the_mean(low, high):
    for side in (1, -1):
        a, b = sorted((side * low, side * high))
        z = (draw(init.trunc_normal_, mean=1, std=2, a=1 + 2 * a, b=1 + 2 * b) - 1) / 2
        assert z.min() >= a - 1e-12 and z.max() <= b + 1e-12
        if a < b:
            check(z, stats.truncnorm(a, b))


def test_fans_and_gains():
    shape = (50, 20, 8, 2)  # fan_in 320, fan_out 800
    k = math.sqrt(6 / 1120)
    check(draw(init.xavier_uniform_, 2.0, shape=shape), stats.uniform(-2 * k, 4 * k))
    check(draw(init.xavier_normal_, shape=shape), stats.norm(0, math.sqrt(2 / 1120)))
    k = math.sqrt(6 / 800)
    values = draw(
        init.kaiming_uniform_, shape=shape, mode="fan_out", nonlinearity="relu"
    )
    check(values, stats.uniform(-k, 2 * k))
    std = math.sqrt(2 / (1 + 0.04) / 320)
    check(draw(init.kaiming_normal_, 0.2, shape=shape), stats.norm(0, std))
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("conv2d") == 1
    assert init.calculate_gain("selu") == 0.75
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match="not a valid number"):
        init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="fewer than 2"):
        init.xavier_uniform_(pt.empty(3))
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_normal_(pt.empty(3, 3), mode="fan")
    with pytest.warns(UserWarning, match="zero-element"):
        init.kaiming_uniform_(pt.empty(0, 3))


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal(shape):
    a = draw(init.orthogonal_, gain=2, shape=shape).reshape(shape[0], -1) / 2
    gram = a @ a.T if a.shape[0] <= a.shape[1] else a.T @ a
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)


def test_constant_and_eye():
    assert init.constant_(pt.empty(2), 3).tolist() == [3, 3]
    assert init.ones_(pt.empty(1)).tolist() == [1]
    assert init.zeros_(pt.empty(1)).tolist() == [0]
    assert np.array_equal(init.eye_(pt.empty(2, 3)).numpy(), np.eye(2, 3))
    with pytest.raises(ValueError, match="eye_: only tensors with 2 dimensions"):
        init.eye_(pt.empty(2))


def test_sparse():
    values = draw(init.sparse_, 0.3, std=1.0, shape=(10, 6)).reshape(10, 6)
    assert ((values == 0).sum(0) == 3).all()
    assert not init.sparse_(pt.empty(4, 2), 1.5).any()
    for share in (-0.5, math.nan):
        with pytest.raises(ValueError, match=r"sparse_: sparsity must not be negative, got"):
            init.sparse_(pt.empty(4, 2), share)


def test_parameters_can_be_filled():
    layer = pt.nn.Linear(3, 3)
    init.zeros_(layer.weight)
    assert layer.weight.requires_grad
    assert layer.weight.abs().sum().item() == 0
