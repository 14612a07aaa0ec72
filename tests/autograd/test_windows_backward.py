"""Gradients of windows of memory: those whose places meet are added, others written. The oracle adds place by place."""
import itertools

import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core

WINDOWS = [((2, 2), (1, 2), 0), ((3, 4), (4, 1), 1), ((4, 3), (1, 4), 0), ((5,), (2,), 3), ((3, 3), (1, 1), 0),
           ((2, 3), (0, 1), 2), ((2, 2, 2), (8, 3, 1), 1), ((), (), 5), ((0, 2), (1, 1), 0), ((2, 3), (2, 3), 0)]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
def test_first_and_second_order(window, dtype):
    size, stride, offset = window
    x = ptcore.arange(24.0).reshape(4, 6).to(getattr(ptcore, dtype)).requires_grad_()
    y = x.as_strided(size, stride, offset)
    g = ptcore.arange(1.0, y.numel() + 1).reshape(size).to(x.dtype).requires_grad_()
    want, times = np.zeros(24, "complex128"), np.zeros(24)
    for at in itertools.product(*map(range, size)):
        place = offset + sum(k * s for k, s in zip(at, stride))
        want[place] += np.ravel_multi_index(at, size) + 1 if size else 1
        times[place] += 1
    found = ptcore.autograd.grad(y, x, g, create_graph=True)[0]
    np.testing.assert_array_equal(found.detach().to(ptcore.complex128).numpy(), want.reshape(4, 6))
    if y.numel():
        weight = ptcore.arange(24.0).reshape(4, 6).to(x.dtype)
        back = ptcore.autograd.grad(found, g, weight)[0]
        np.testing.assert_array_equal(back.numpy(), weight.as_strided(size, stride, offset).numpy())
    rows = ptcore.stack([x.detach(), x.detach() * 2])
    each = ptcore.func.vmap(ptcore.func.grad(lambda t: (t.as_strided(size, stride, offset) ** 2).sum().real))(rows)
    np.testing.assert_allclose(each.to(ptcore.complex128).numpy(),
                               [2 * k * (times * np.arange(24)).reshape(4, 6) for k in (1, 2)])
