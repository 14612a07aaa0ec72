"""Transforms: inverses, Jacobians against autograd, composition, caches, registries."""
import copy
import gc
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore import distributions as D
from ptcore.distributions import constraints

pt_double = pt.float64
X = pt.tensor([[0.3, -1.2, 2.0], [0.1, 0.7, -0.4]], dtype=pt_double)
P, S = X.abs(), X.sigmoid()
M = pt.tensor([[0.3, -1.2], [0.5, 0.4]], dtype=pt_double)
# transform, input
CASES = [
    (D.ExpTransform(), X), (D.PowerTransform(pt.tensor([2.0, -1.0, 0.5], dtype=pt_double)), P),
    (D.SigmoidTransform(), X), (D.SoftplusTransform(), X), (D.TanhTransform(), X), (D.AffineTransform(1.0, -2.0), X),
    (D.AffineTransform(pt.tensor([1.0, 2.0, 3.0], dtype=pt_double), 2.0, event_dim=1), X),
    (D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), X), (D.CorrCholeskyTransform(), X),
    (D.StickBreakingTransform(), X), (D.ReshapeTransform((3,), (3, 1)), X),
    (D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()]), X),
    (D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.StickBreakingTransform()]), X),
    (D.IndependentTransform(D.ExpTransform(), 1), X), (D.identity_transform, X),
    (D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], dim=-1, lengths=[1, 2]), X),
    (D.StackTransform([D.ExpTransform(), D.TanhTransform()], dim=0), X),
    (D.ExpTransform().inv, P), (D.StickBreakingTransform().inv, X.softmax(-1)),
]
OTHERS = [(D.SoftmaxTransform(), X.softmax(-1).log()), (D.LowerCholeskyTransform(), M.tril()),
          (D.PositiveDefiniteTransform(), M.tril()), (D.AbsTransform(), P)]


def names(cases):
    return [repr(c[0]).replace("\n", "") for c in cases]


@pytest.mark.parametrize("transform, x", CASES + OTHERS, ids=names(CASES + OTHERS))
def test_inverse(transform, x):
    y = transform(x)
    assert transform.codomain.check(y).all()
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-6, atol=1e-7)
    assert transform.inv.inv is transform
    assert transform.forward_shape(x.shape) == y.shape
    assert transform.inverse_shape(y.shape) == x.shape
    for twin in (copy.deepcopy(transform), pickle.loads(pickle.dumps(transform))):
        np.testing.assert_array_equal(twin(x).numpy(), y.numpy())


@pytest.mark.parametrize("transform, x", CASES, ids=names(CASES))
def test_jacobian(transform, x):
    """Of one event at a time, without what a simplex or a factor determines itself."""
    assert transform.bijective
    y = transform(x)
    got = transform.log_abs_det_jacobian(x, y)
    if isinstance(transform, D.StackTransform) or not transform.domain.event_dim:
        leaf = x.clone().requires_grad_()
        slope, = pt.autograd.grad(transform(leaf).sum(), leaf)
        want = slope.abs().log() if transform is not D.identity_transform else pt.zeros_like(x)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-9)
        return
    for row, expected in zip(x, got):
        def free(v):
            out = transform(v)
            if transform.codomain is constraints.simplex:
                return out[:-1]
            if transform.codomain is constraints.corr_cholesky:
                return out[pt.ones(out.shape, dtype=pt.bool).tril(-1)]
            return out.reshape(-1)
        matrix = pt.autograd.functional.jacobian(free, row)
        if transform.domain is constraints.simplex:         # the last number is what the others leave
            matrix = matrix[:, :-1] - matrix[:, -1:]
        np.testing.assert_allclose(float(pt.linalg.slogdet(matrix)[1]), float(expected), rtol=1e-6)


def test_equality_and_repr():
    assert D.ExpTransform() == D.ExpTransform() != D.SigmoidTransform()
    assert D.AffineTransform(1.0, 2.0) == D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)
    assert D.AffineTransform(pt.ones(2), 2.0) == D.AffineTransform(pt.ones(2), 2.0)
    assert D.PowerTransform(2.0) == D.PowerTransform(2.0)
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])
    assert D.ExpTransform().inv == D.ExpTransform().inv != D.ExpTransform()
    assert repr(D.ExpTransform().inv) == "_InverseTransform(ExpTransform())"
    with pytest.raises(TypeError, match="unhashable"):
        hash(D.ExpTransform())


def test_cache():
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        D.ExpTransform(cache_size=2)
    t = D.TanhTransform(cache_size=1)
    x = pt.tensor([30.0])
    y = t(x)
    assert t.inv(y) is x and t(x) is y
    assert D.TanhTransform().inv(y).isinf().all()
    assert t.with_cache(1) is t and t.with_cache(0)._cache_size == 0
    for made, _ in CASES:
        assert made.with_cache(1)._cache_size == 1
    inverse = D.ExpTransform(cache_size=1).inv
    gc.collect()
    assert inverse(inverse.inv(x / 30)) is not None


def test_signs():
    assert [D.AffineTransform(0.0, scale).sign for scale in (2.0, -0.5, 0.0, 3)] == [1, -1, 0, 1]
    assert D.AffineTransform(0.0, pt.tensor([2.0, -0.5, 0.0])).sign.tolist() == [1, -1, 0]
    assert D.AffineTransform(0, -2).sign == -1 and D.ExpTransform().sign == 1
    assert D.ComposeTransform([D.AffineTransform(0, -2), D.AffineTransform(0, -1)]).sign == 1
    with pytest.raises(NotImplementedError, match="sign"):
        _ = D.AbsTransform().sign


def test_what_is_dependent():
    assert constraints.is_dependent(constraints.dependent) and constraints.is_dependent(D.Uniform.support)
    assert not constraints.is_dependent(constraints.real)
    assert not constraints.is_dependent(D.Uniform(0.0, 1.0).support)


def test_constraints_of_sequences_begin_at_the_first_dim():
    x = pt.tensor([[1.0, 2.0], [-1.0, -2.0]])
    assert constraints.stack([constraints.positive, constraints.real]).check(x).tolist() == [[True] * 2, [True] * 2]
    assert constraints.stack([constraints.real, constraints.positive]).check(x).tolist() == [[True] * 2, [False] * 2]
    assert constraints.cat([constraints.real, constraints.positive]).check(x).tolist() == [[True] * 2, [False] * 2]


@pytest.mark.parametrize("constraint", [
    constraints.real, constraints.positive, constraints.nonnegative, constraints.greater_than(2.0),
    constraints.less_than(-1.0), constraints.unit_interval, constraints.interval(-1.0, 3.0),
    constraints.half_open_interval(0.0, 2.0), constraints.simplex, constraints.corr_cholesky, constraints.real_vector,
    constraints.lower_cholesky, constraints.positive_definite, constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
    constraints.stack([constraints.positive, constraints.real], 0)], ids=repr)
def test_registries(constraint):
    x = M if constraint in (constraints.lower_cholesky, constraints.positive_definite) else X
    t = D.transform_to(constraint)
    assert constraint.check(t(x)).all()
    if x is X:
        b = D.biject_to(constraint)
        assert b.bijective and constraint.check(b(x)).all()
        np.testing.assert_allclose(b.inv(b(x)).numpy(), x.numpy(), rtol=1e-6)


def test_own_constraints():
    registry = D.constraint_registry.ConstraintRegistry()

    class Even(constraints.Constraint):
        pass
    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        registry(Even())
    registry.register(Even())(lambda c: D.ExpTransform())
    assert registry(Even()) == D.ExpTransform()
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        registry.register(3, D.ExpTransform)


@pytest.mark.parametrize("base, transforms", [
    (D.Normal(X[0], 1.0), [D.ExpTransform()]),
    (D.Normal(X, 1.0), [D.StickBreakingTransform()]),
    (D.Normal(pt.zeros(6, dtype=pt_double), 1.0), [D.ReshapeTransform((6,), (2, 3)), D.AffineTransform(1.0, 2.0)]),
    (D.Normal(0.0, 1.0), [D.AffineTransform(X, 2.0)])], ids=range(4))
def test_transformed(base, transforms):
    d = D.TransformedDistribution(base, transforms)
    y = d.sample((4,))
    assert y.shape == (4, *d.batch_shape, *d.event_shape)
    assert d.log_prob(y).shape == (4, *d.batch_shape)
    x, want = y, 0
    for t in reversed(transforms):
        before = t.inv(x)
        jacobian = t.log_abs_det_jacobian(before, x)
        want = want - jacobian.reshape(*d.log_prob(y).shape, -1).sum(-1)
        x = before
    want = want + d.base_dist.log_prob(x).reshape(*d.log_prob(y).shape, -1).sum(-1)
    np.testing.assert_allclose(d.log_prob(y).numpy(), want.numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="transforms must be"):
        D.TransformedDistribution(base, [3])


def test_no_triangle():
    for n in (4, 5, 7):
        with pytest.raises(ValueError, match=f"size of last dimension is {n} which cannot"):
            D.utils.vec_to_tril_matrix(pt.zeros(n))


def test_the_inverse_of_a_composition_knows_it():
    """One pair of objects: a cached value of one is found by the other."""
    both = D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])
    inverse = both.inv
    assert both.inv is inverse and inverse.inv is both
