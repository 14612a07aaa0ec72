"""kron of matrices of many short rows, whose operands are made as long as the result's rows, against NumPy."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import func

SHAPES = [((32, 32), (32, 32)), ((20, 40), (30, 2)), ((3, 20, 6), (20, 5)), ((40, 2, 3), (1, 30, 63)), ((17, 2), (17, 64)),
          ((0, 5), (40, 3)), ((40, 5), (40, 1))]


@pytest.mark.parametrize("dtype", ["float64", "int32", "complex64", "bool"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_values(a, b, dtype):
    rng = np.random.default_rng(0)
    x, y = [(rng.standard_normal(s) * 5).astype(dtype) for s in (a, b)]
    for first, second in ((x, y), (np.asfortranarray(x), y[..., ::-1])):
        got = pt.kron(*[pt.tensor(v.copy()) if v is first else pt.from_numpy(v.copy()) for v in (first, second)])
        np.testing.assert_array_equal(got.numpy(), np.kron(first, second))


def test_derivatives():
    x, y = [pt.from_numpy(np.random.default_rng(k).standard_normal(s)) for k, s in enumerate([(17, 2), (17, 3)])]
    g = pt.from_numpy(np.random.default_rng(2).standard_normal((289, 6)))
    dx, dy = func.vjp(pt.kron, x, y)[1](g)
    parts = g.view(17, 17, 2, 3)
    np.testing.assert_allclose(dx.numpy(), np.einsum("ikjl,kl->ij", parts.numpy(), y.numpy()), rtol=1e-12)
    np.testing.assert_allclose(dy.numpy(), np.einsum("ikjl,ij->kl", parts.numpy(), x.numpy()), rtol=1e-12)
    tangent = func.jvp(pt.kron, (x, y), (y[:, :2], y))[1]
    np.testing.assert_allclose(tangent.numpy(), np.kron(y[:, :2], y) + np.kron(x, y), rtol=1e-12)
    batched = func.vmap(pt.kron)(pt.stack([x, 2 * x]), pt.stack([y, y]))
    np.testing.assert_array_equal(batched[1].numpy(), np.kron(2 * x, y))
