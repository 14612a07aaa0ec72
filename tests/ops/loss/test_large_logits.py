"""Scores so large that the log-sum-exp rounds the sum of the terms away: weights are shares all the same."""
import numpy as np
import pytest

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

LARGE = (1e4, -1e9, 1e9, 1e30, "lowest")


def scores(value, dtype, shape):
    number = ptcore.finfo(dtype).min if value == "lowest" else value
    return ptcore.full(shape, number, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64])
def test_weights_are_shares(value, dtype):
    x = scores(value, dtype, (2, 4))
    F.cross_entropy(x, ptcore.tensor([0, 2]), reduction="sum").backward()
    np.testing.assert_allclose(x.grad.numpy(), [[-0.75, 0.25, 0.25, 0.25], [0.25, 0.25, -0.75, 0.25]])
    x = scores(value, dtype, (2, 4, 3))
    F.cross_entropy(x, ptcore.zeros(2, 3, dtype=ptcore.int64), reduction="sum", label_smoothing=0.5).backward()
    np.testing.assert_allclose(x.grad.numpy()[:, 0], -0.375, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy()[:, 1:], 0.125, rtol=1e-6)
    for dim in (0, 1, (0, 1)):
        x = scores(value, dtype, (2, 4))
        ptcore.logsumexp(x, dim).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 1 / {0: 2, 1: 4}.get(dim, 8))
    got = ptcore.func.grad(lambda v: F.cross_entropy(v, ptcore.tensor([1, 1])))(scores(value, dtype, (2, 4)).detach())
    np.testing.assert_allclose(got.numpy(), [[0.125, -0.375, 0.125, 0.125]] * 2)


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("value", ["lowest", -1e30, -1e9])
@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64])
def test_attention_of_a_row_near_the_lowest_number(dtype, value, queries):
    """A row of which all keys have such a score looks at all of them equally, as without a mask where scores agree."""
    def gradients(mask, n=200):
        key = ptcore.zeros(1, 1, n, 2, dtype=dtype).requires_grad_()
        query = ptcore.ones(1, 1, queries, 2, dtype=dtype).requires_grad_()
        values = (ptcore.arange(2.0 * n, dtype=dtype).reshape(1, 1, n, 2) / n).requires_grad_()
        out = F.scaled_dot_product_attention(query, key, values, attn_mask=mask)
        out.backward(ptcore.ones_like(out))
        return [t.numpy() for t in (out.detach(), query.grad, key.grad, values.grad)]
    number = ptcore.finfo(dtype).min if value == "lowest" else value
    mask = ptcore.zeros(queries, 200, dtype=dtype)
    mask[0] = number
    for got, want in zip(gradients(mask), gradients(None)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
