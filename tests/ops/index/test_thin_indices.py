"""gather and scatter_add by an index whose last dims have one element, or whose lines are long, against NumPy."""
import numpy as np
import pytest

import ptcore as pt

SHAPES = [((4000, 8), (4000, 1)), ((7, 5, 1), (7, 3, 1)), ((3, 1), (2, 1)), ((1, 9, 1, 1), (1, 4, 1, 1)),
          ((5, 1, 4), (5, 1, 2)), ((6,), (3,)), ((1, 1), (1, 1)), ((900, 3, 1), (900, 2, 1)), ((2, 40000), (2, 20000))]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(("shape", "index_shape"), SHAPES)
def test_every_dim(shape, index_shape, order):
    rng = np.random.default_rng(0)
    for dim in range(len(shape)):
        x, src = rng.standard_normal(shape), rng.standard_normal(index_shape)
        index = rng.integers(0, shape[dim], index_shape)
        within = tuple([slice(None) if d == dim else slice(n) for d, n in enumerate(index_shape)])
        given = [pt.from_numpy(np.array(v, order=order)) for v in (x, index, src)]
        np.testing.assert_array_equal(pt.gather(given[0], dim, given[1]).numpy(),
                                      np.take_along_axis(x[within], index, dim))
        places = list(np.indices(index_shape))
        places[dim] = index
        want = x.copy()
        np.add.at(want, tuple(places), src)
        np.testing.assert_allclose(pt.scatter_add(given[0], dim, *given[1:]).numpy(), want, rtol=1e-12, atol=1e-12)
