"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""
import math

import ptcore as pt
from ptcore import linalg
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, _half_log_det
from ptcore.distributions.utils import EMPTY, _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W, D):
    """The Cholesky factor of ``I + W^T D^-1 W``, from which inverse and determinant of ``W W^T + D`` are computed."""
    inner = (W.mT / D.unsqueeze(-2)) @ W
    return linalg.cholesky(inner + pt.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device))


def _batch_lowrank_logdet(W, D, capacitance_tril):
    """The logarithm of the determinant, by the determinant lemma."""
    return 2 * _half_log_det(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):
    """``x^T (W W^T + D)^-1 x``, by Woodbury's formula."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Distribution):
    r"""Multivariate normal distribution with covariance :math:`W W^T + \mathrm{diag}(d)`.

    The cost grows with the rank, and only linearly with the size of the event.

    Parameters
    ----------
    loc : Tensor
        Means, along the last dim.
    cov_factor : Tensor
        :math:`W`, of shape ``(..., n, rank)``.
    cov_diag : Tensor
        :math:`d`, of shape ``(..., n)``.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(ptcore.zeros(2), ptcore.ones(2, 1), ptcore.ones(2)).covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = pt.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as e:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                             f"cov_diag {cov_diag.shape}") from e
        self.loc, self.cov_diag = loc.expand(*batch_shape, -1), cov_diag.expand(*batch_shape, -1)
        self.cov_factor = cov_factor.expand(*batch_shape, -1, -1)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        new.loc, new.cov_diag = self.loc.expand(*batch_shape, -1), self.cov_diag.expand(*batch_shape, -1)
        new.cov_factor = self.cov_factor.expand(*batch_shape, -1, -1)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return self._finish(new, batch_shape, self._event_shape)

    def _for_batch(self, matrix):
        return matrix.expand(*self._batch_shape, -1, -1)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        return (W.pow(2).sum(-1) + D).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """Lower triangular Cholesky factor of the covariance matrix."""
        # D^1/2 chol(I + V V^T) with V = D^-1/2 W is better conditioned than chol(W W^T + D).
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = scaled @ scaled.mT
        inner = inner + pt.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return self._for_batch(root * linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self):
        """Covariance matrix."""
        W = self._unbroadcasted_cov_factor
        return self._for_batch(W @ W.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance matrix."""
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        A = linalg.solve_triangular(self._capacitance_tril, W.mT / D.unsqueeze(-2), upper=False)
        return self._for_batch(D.reciprocal().diag_embed() - A.mT @ A)

    def rsample(self, sample_shape=EMPTY):
        shape, W = self._extended_shape(sample_shape), self._unbroadcasted_cov_factor
        of_factor = _standard_normal(shape[:-1] + W.shape[-1:], self.loc.dtype, self.loc.device)
        of_diag = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(W, of_factor) + self._unbroadcasted_cov_diag.sqrt() * of_diag

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        its = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = _batch_lowrank_mahalanobis(*its, value - self.loc, self._capacitance_tril)
        log_det = _batch_lowrank_logdet(*its, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self):
        log_det = _batch_lowrank_logdet(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag,
                                        self._capacitance_tril)
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)).expand(self._batch_shape)
