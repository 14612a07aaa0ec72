"""Lists of numbers that are longer than the 64 dims of a tensor, or stand for more than them inside an op."""
import numpy as np
import pytest

import ptcore as pt
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

SHAPE = (2, *[1] * 38, 3, 1, 2)


def start():
    values = np.arange(12.0).reshape(2, 3, 2)
    return values, pt.tensor(values.reshape(SHAPE), requires_grad=True)


@pytest.mark.parametrize("f", [lambda x, n: x.repeat(n), lambda x, n: pt.tile(x, n)])
@pytest.mark.parametrize("times", [(1, 1, 1), (2, 1, 3), (1, 4, 2), (3, 2, 2), (0, 1, 2)])
@pytest.mark.parametrize("lead", [(), (1, 2), (1,) * 22])
def test_repeats(f, times, lead):
    values, x = start()
    a, b, c = times
    out = f(x, (*lead, a, *[1] * 38, b, 1, c))
    n = int(np.prod(lead))
    expected = np.tile(values, (n, a, b, c))
    np.testing.assert_array_equal(out.detach().numpy().reshape(expected.shape), expected)
    assert tuple(out.shape) == (*lead, 2 * a, *[1] * 38, 3 * b, 1, 2 * c)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(SHAPE, a * b * c * n))


def test_repeats_of_one_dim_that_stay():
    """Dims of size 1 that are repeated, all others kept: strides do not matter."""
    x = pt.arange(6.0).reshape(2, 3).t().reshape(3, *[1] * 40, 2)
    out = x.repeat((1, *[1] * 20, 2, *[1] * 19, 1))
    np.testing.assert_array_equal(out.numpy().reshape(3, 2, 2), np.tile(np.arange(6.0).reshape(2, 1, 3).T, (1, 2, 1)))


def test_pads():
    values, x = start()
    out = F.pad(x, (1, 0, *[0] * 80, 2, 1), value=-1.0)
    expected = np.pad(values, ((2, 1), (0, 0), (1, 0)), constant_values=-1)
    np.testing.assert_array_equal(out.detach().numpy().reshape(expected.shape), expected)
    out.sum().backward()
    assert x.grad.eq(1).all()


def test_parts():
    x = pt.arange(100.0)
    for parts in (x.split([1] * 100), x.split(1), x.chunk(100), x.tensor_split(100),
                  x.tensor_split(list(range(1, 100))), x.unbind(), tuple(x)):
        assert [float(p) for p in parts] == list(range(100))
