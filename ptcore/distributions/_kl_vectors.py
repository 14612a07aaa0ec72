"""Divergences of multivariate normals, of full and of low rank."""
import ptcore as pt
from ptcore import linalg
from ptcore.distributions.kl import register_kl
from ptcore.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from ptcore.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det


def _squares(matrix):
    """The trace of A A^T."""
    return matrix.pow(2).sum((-2, -1))


def _parts(p):
    """Matrices whose products with their transposes add up to the covariance."""
    if isinstance(p, MultivariateNormal):
        return (p._unbroadcasted_scale_tril,)
    return p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()


def _low_rank(p):
    return p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag


def _log_det(p):
    if isinstance(p, MultivariateNormal):
        return 2 * _half_log_det(p._unbroadcasted_scale_tril)
    return _batch_lowrank_logdet(*_low_rank(p), p._capacitance_tril)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _normals(p, q):
    """Half of log |Q| / |P|, the trace of Q^-1 P, the distance of the means in Q, less the size."""
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
                         f"cannot be computed, got {p.event_shape} and {q.event_shape}")
    away = q.loc - p.loc
    if isinstance(q, MultivariateNormal):
        factor = q._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, away)
        trace = sum(_squares(linalg.solve_triangular(*_alike(factor, part), upper=False)) for part in _parts(p))
    else:
        W, D = _low_rank(q)
        distance = _batch_lowrank_mahalanobis(W, D, away, q._capacitance_tril)
        inner = linalg.solve_triangular(q._capacitance_tril, W.mT / D.unsqueeze(-2), upper=False)
        trace = sum(_squares(part / D.sqrt().unsqueeze(-1)) - _squares(inner @ part) for part in _parts(p))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


def _alike(a, b):
    """Matrices with the same batch dims."""
    batch = pt.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*batch, -1, -1), b.expand(*batch, -1, -1)
