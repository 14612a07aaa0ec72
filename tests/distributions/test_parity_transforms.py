"""Transforms and transformed distributions against PyTorch's: values, Jacobians, shapes, domains, reprs, errors."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

X = [[0.3, -1.2, 2.0], [0.1, 0.7, -0.4]]
MADE = [
    lambda D, t: D.ExpTransform(), lambda D, t: D.PowerTransform(t([2.0, -1.0, 0.5])),
    lambda D, t: D.SigmoidTransform(),
    lambda D, t: D.SoftplusTransform(), lambda D, t: D.TanhTransform(), lambda D, t: D.AbsTransform(),
    lambda D, t: D.AffineTransform(1.0, -2.0),
    lambda D, t: D.AffineTransform(t([1.0, 2.0, 3.0]), t([-1.0, 2.0, 0.5]), 1),
    lambda D, t: D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), lambda D, t: D.CorrCholeskyTransform(),
    lambda D, t: D.StickBreakingTransform(), lambda D, t: D.SoftmaxTransform(),
    lambda D, t: D.ReshapeTransform((3,), (3, 1)), lambda D, t: D.identity_transform,
    lambda D, t: D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.StickBreakingTransform()]),
    lambda D, t: D.ComposeTransform([D.ReshapeTransform((3,), (3, 1)), D.ExpTransform()]),
    lambda D, t: D.IndependentTransform(D.ExpTransform(), 1), lambda D, t: D.ExpTransform().inv.inv,
    lambda D, t: D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], dim=-1, lengths=[1, 2]),
    lambda D, t: D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], dim=0),
    lambda D, t: D.CatTransform([D.IndependentTransform(D.ExpTransform(), 1), D.ExpTransform()], -1, [1, 2]),
    lambda D, t: D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=0),
]
BASES = [
    lambda D, t: (D.Normal(t(X), 1.0), [D.ExpTransform()]), lambda D, t: (D.Normal(t(X), 1.0), []),
    lambda D, t: (D.Normal(t(X), 1.0), D.StickBreakingTransform()),
    lambda D, t: (D.Normal(0.0, 1.0), [D.AffineTransform(t(X), -2.0)]),
    lambda D, t: (D.Normal(0.0, 1.0), [D.StickBreakingTransform()]),
    lambda D, t: (D.Normal(t(X), 1.0), [D.AffineTransform(0.0, 2.0), D.ReshapeTransform((3,), (1, 3))]),
    lambda D, t: (D.Independent(D.Normal(t(X), 1.0), 1), [D.ExpTransform(), D.AffineTransform(0.0, 2.0)]),
    lambda D, t: (D.Dirichlet(t(X).abs()), [D.StickBreakingTransform().inv, D.AffineTransform(1.0, 3.0)]),
    lambda D, t: (D.Uniform(t(X), 3.0), [D.SigmoidTransform(), D.AffineTransform(1.0, -2.0)]),
    lambda D, t: (D.Normal(t(X), 1.0), [D.IndependentTransform(D.ExpTransform(), 2)]),
    lambda D, t: (D.Normal(t(X), 1.0), (D.ExpTransform(),)),
]


def both(case, what):
    """What it is in both libraries, or the class of the error."""
    for lib in (pt, torch):
        def t(x, lib=lib):
            return lib.tensor(x, dtype=lib.float64)
        try:
            yield what(case(lib.distributions, t), t)
        except Exception as e:
            yield next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins")


def same(case, what):
    got, want = both(case, what)
    if isinstance(want, torch.Tensor):
        assert not isinstance(got, str), got
        assert tuple(got.shape) == tuple(want.shape)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-9)
    else:
        assert got == want


def words(x):
    return str(x).replace("ptcore.", "").replace("torch.", "")


@pytest.mark.parametrize("case", MADE, ids=range(len(MADE)))
def test_transforms(case):
    same(case, lambda f, t: words([f, f.inv, f.bijective, f._cache_size]))
    for name in ("domain", "codomain"):
        same(case, lambda f, t: words([getattr(f, name), getattr(f, name).event_dim]))     # noqa: B023
        same(case, lambda f, t: words(getattr(f, name).is_discrete))                       # noqa: B023
    same(case, lambda f, t: f(t(X)))
    same(case, lambda f, t: f(t(X).abs()))
    same(case, lambda f, t: f.inv(f(t(X).abs())))
    same(case, lambda f, t: f.log_abs_det_jacobian(t(X).abs(), f(t(X).abs())))
    same(case, lambda f, t: f.inv.log_abs_det_jacobian(f(t(X).abs()), t(X).abs()))
    same(case, lambda f, t: words(f.sign))
    same(case, lambda f, t: f.event_dim)
    for shape in ((2, 3), (), (3,), (4, 4), (4, 3, 1)):
        same(case, lambda f, t: tuple(f.forward_shape(shape)))          # noqa: B023
        same(case, lambda f, t: tuple(f.inverse_shape(shape)))          # noqa: B023


@pytest.mark.parametrize("case", BASES, ids=range(len(BASES)))
def test_transformed_distributions(case):
    def of(its, t):
        lib = pt if isinstance(t(0.0), pt.Tensor) else torch
        return lib.distributions.TransformedDistribution(*its)
    for name in ("batch_shape", "event_shape", "has_rsample"):
        same(case, lambda its, t: words([of(its, t), getattr(of(its, t), name)]))      # noqa: B023
    same(case, lambda its, t: words([of(its, t).support, of(its, t).base_dist]))

    def value(d, t):
        """A value that both have: the transformed absolute numbers."""
        x = t(X).abs() if len(d.base_dist._extended_shape()) == 2 else t(0.5)
        x = x / x.sum(-1, True) if "Dirichlet" in repr(d.base_dist) else x.expand(d.base_dist._extended_shape())
        for f in d.transforms:
            x = f(x)
        return x
    for method in ("log_prob", "cdf"):
        same(case, lambda its, t: getattr(of(its, t), method)(value(of(its, t), t)))        # noqa: B023
    same(case, lambda its, t: of(its, t).icdf(t(0.3)))
    same(case, lambda its, t: words(of(its, t).expand((4, *of(its, t).batch_shape)).sample((2,)).shape))


@pytest.mark.parametrize("name", ["tril_matrix_to_vec", "vec_to_tril_matrix"])
def test_triangles(name):
    for shape in ((4, 4), (2, 3, 3)) if name == "tril_matrix_to_vec" else ((6,), (2, 10), (3,), (5,)):
        for diag in (-1, 0, 4) if name == "tril_matrix_to_vec" else (-1, 0):
            same(lambda D, t: getattr(D.utils, name),
                 lambda f, t: f(t(np.arange(float(np.prod(shape))).reshape(shape).tolist()), diag))     # noqa: B023
