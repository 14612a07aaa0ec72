"""Norms, distances and deviations of numbers whose powers leave the dtype's range, and their derivatives. The oracle is
the same in float64 by NumPy, or of numbers near 1 where float64 itself ends: all are homogeneous."""
import numpy as np
import pytest
from _walk import every_case

import ptcore
from ptcore.func import vmap
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

INF = float("inf")
SCALES = {"float32": (1e20, 1e-25), "float64": (1e200, 1e-200, 1e-300)}
X = np.array([[3.0, -4.0, 1.0], [0.5, 2.0, -1.0]])

# name: (function of a matrix, degree of the result, and of the gradient is one less)
CALLS = {
    **{f"vector_norm {p}": (lambda x, p=p: ptcore.linalg.vector_norm(x, p, 1), 1)
       for p in (1, 1.5, 2, 3, 10, INF, -INF, -1, -2)},
    "norm": (lambda x: x.norm(), 1),
    "norm of columns": (lambda x: ptcore.linalg.vector_norm(x, 3, 0), 1),
    "matrix_norm": (lambda x: ptcore.linalg.matrix_norm(x), 1),
    "dist": (lambda x: ptcore.dist(x[0], x[1]), 1),
    **{f"cdist {p}": (lambda x, p=p: ptcore.cdist(x, x.flip(1), p), 1) for p in (1.0, 1.5, 2.0, 3.0, 10.0, INF)},
    "cdist of many": (lambda x: ptcore.cdist(x.repeat(14, 1), x.flip(1).repeat(14, 1)), 1),
    **{f"pdist {p}": (lambda x, p=p: F.pdist(x, p), 1) for p in (1.0, 1.5, 2.0, 3.0, INF)},
    **{f"pairwise_distance {p}": (lambda x, p=p: F.pairwise_distance(x, x.flip(1), p, eps=0.0), 1) for p in (2.0, 3.0)},
    "normalize": (lambda x: F.normalize(x, dim=1, eps=0.0), 0),
    "cosine_similarity": (lambda x: F.cosine_similarity(x, x.flip(1), eps=0.0), 0),
    "hypot": (lambda x: ptcore.hypot(x[0], x[1]), 1),
    "atan2": (lambda x: ptcore.atan2(x[0], x[1]), 0),
    "angle": (lambda x: ptcore.angle(ptcore.complex(x[0], x[1])), 0),
    "abs of complex": (lambda x: ptcore.complex(x[0], x[1]).abs(), 1),
}
FLOAT32 = {"std": (lambda x: x.std(1), 1), "std of columns": (lambda x: x.repeat(1, 8).std(0), 1),
           "std of all": (lambda x: x.std(), 1),
           "std of complex": (lambda x: ptcore.complex(x, x.flip(1) + 2 * x).std(1), 1)}


def both(call, x):
    x = x.requires_grad_()
    out = call(x)
    weights = ptcore.arange(1, out.numel() + 1, dtype=out.dtype).reshape(out.shape)
    return out.detach().double().numpy(), ptcore.autograd.grad(out, x, weights)[0].double().numpy()


@pytest.mark.parametrize("dtype", SCALES)
def test_far_from_one(dtype):
    with every_case() as case:
        for name, (call, degree) in {**CALLS, **(FLOAT32 if dtype == "float32" else {})}.items():
            for scale in SCALES[dtype]:
                if scale == 1e-300 and degree == 0:
                    continue                    # the gradient is beyond the largest number
                with case(f"{name}, {scale}"):
                    value, slope = both(call, ptcore.tensor(X))
                    far, far_slope = both(call, ptcore.tensor(X * scale, dtype=dtype))
                    limit = 1e-6 if dtype == "float32" else 1e-13
                    np.testing.assert_allclose(far / scale**degree, value, rtol=limit, atol=limit)
                    np.testing.assert_allclose(far_slope * scale ** (1 - degree), slope, rtol=4 * limit, atol=4 * limit)


@pytest.mark.parametrize("dtype", SCALES)
def test_where_eps_is_small_beside_the_norm(dtype):
    """Functions of degree 0 but for an eps. The slopes are those at numbers near 1e12, where eps has no digit left."""
    scale = SCALES[dtype][0]
    for p in (2, 3):
        want = 2 * X / np.linalg.norm(X, p, axis=1, keepdims=True)

        def call(x, p=p):
            return ptcore.renorm(x, p, 0, 2.0)
        value, slope = both(call, ptcore.tensor(X * 2.0**40))
        np.testing.assert_allclose(value, want, rtol=1e-12)
        for power in (scale, scale * 1e10, scale * 1e-12):
            far, far_slope = both(call, ptcore.tensor(X * power, dtype=dtype))
            limit = 2e-6 if dtype == "float32" else 1e-13
            np.testing.assert_allclose(far, want, rtol=limit)
            np.testing.assert_allclose(far_slope * power / 2.0**40, slope, rtol=0, atol=limit * np.abs(slope).max())


def test_zeros_infinities_and_nan():
    for dtype in SCALES:
        for p in (1.5, 2, 3, -1, INF):
            for data, want in (([0.0, 0.0], 0.0), ([INF, 1.0], 1.0 if p == -1 else INF), ([float("nan"), 1e200], np.nan),
                               ([], 0.0)):
                if not data and p in (-1, INF):
                    continue
                got = ptcore.linalg.vector_norm(ptcore.tensor(data, dtype=dtype), p).item()
                np.testing.assert_equal(got, want)
    assert ptcore.cdist(ptcore.zeros(1, 2), ptcore.zeros(1, 2)).item() == 0
    assert ptcore.cdist(ptcore.tensor([[INF, 0.0]]), ptcore.zeros(1, 2), 3.0).item() == INF
    assert np.isnan(ptcore.cdist(ptcore.tensor([[float("nan"), 0.0]]), ptcore.zeros(1, 2)).item())


def test_second_order():
    for p in (2.0, 3.0):
        x = ptcore.tensor([3.0, -4.0], dtype=ptcore.float64)
        want = ptcore.func.hessian(lambda v, p=p: ptcore.linalg.vector_norm(v, p))(x).numpy()
        for scale in (1e150, 1e-150):
            got = ptcore.func.hessian(lambda v, p=p: ptcore.linalg.vector_norm(v, p))(x * scale).numpy()
            np.testing.assert_allclose(got * scale, want, rtol=1e-12)


@pytest.mark.parametrize("p", [0.5, 1.5, 2.0, 3.0, -1.0, -3.0])
@pytest.mark.parametrize("dim", [0, 1])
def test_lines_of_zeros_beside_tiny_and_huge_ones(p, dim):
    """Powers that become 0 are not those of zeros: only lines whose sum has lost digits are computed again."""
    lines = np.random.default_rng(0).random((40, 30)) + 0.5
    lines *= np.repeat([0.0, 1e-200, 1.0, 1e200], 10)[:, None]
    lines[7], lines[12, 3] = 0.0, 0.0
    x = ptcore.from_numpy(lines if dim == 1 else np.ascontiguousarray(lines.T))
    scale = np.repeat([1.0, 1e-200, 1.0, 1e200], 10)[:, None]
    with np.errstate(divide="ignore"):
        want = np.linalg.norm(lines / scale, p, 1) * scale[:, 0]
    np.testing.assert_allclose(ptcore.linalg.vector_norm(x, p, dim).numpy(), want, rtol=1e-13)


def test_norms_beside_zeros_take_one_pass():
    """A line of zeros does not make the others be computed a second time, by powers: their bits stay."""
    x = ptcore.rand(400, 1000, dtype=ptcore.float64, generator=ptcore.Generator().manual_seed(5))
    plain = x.norm(dim=1)
    x[5] = 0
    plain[5] = 0
    assert ptcore.equal(x.norm(dim=1), plain)


def test_numbers_of_differences_do_not_count_nan():
    """PyTorch's distances of order 0 are NaN where a difference is; its norm counts NaN as a number that is not 0."""
    nan = float("nan")
    for dtype in SCALES:
        for width in (1, 3, 9):
            x, y = np.ones((2, width)), np.zeros((2, width))
            x[0, 0], y[1, 0] = nan, 1.0
            a, b = ptcore.tensor(x, dtype=dtype), ptcore.tensor(y, dtype=dtype)
            with np.errstate(invalid="ignore"):
                gap = x[:, None] - y[None]
            want = np.where(np.isnan(gap).any(-1), nan, (gap != 0).sum(-1))
            np.testing.assert_array_equal(ptcore.cdist(a, b, 0.0).numpy(), want)
            np.testing.assert_array_equal(vmap(lambda u, b=b: ptcore.cdist(u[None], b, 0.0)[0])(a).numpy(), want)
            np.testing.assert_array_equal(F.pdist(a, 0.0).numpy(), [nan])
            np.testing.assert_array_equal(ptcore.linalg.vector_norm(a, 0, 1).numpy(), [width, width])
    assert np.isnan(ptcore.cdist(ptcore.tensor([[INF]]), ptcore.tensor([[INF]]), 0.0).item())
