"""The multivariate normal distribution."""
import math

import ptcore as pt
from ptcore import linalg
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrices, vectors):
    """Matrices times vectors."""
    return (matrices @ vectors.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, x):
    """``x^T (L L^T)^-1 x`` for Cholesky factors L and vectors x, which broadcast."""
    if factor.ndim == 2 and x.ndim > 1:         # with one factor, one solve with many columns
        solved = linalg.solve_triangular(factor, x.reshape(-1, x.shape[-1]).mT, upper=False)
        return solved.pow(2).sum(0).reshape(x.shape[:-1])
    return linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse of a matrix, computed from the matrix with rows and columns reversed."""
    turned = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = pt.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(turned, identity, upper=False)


def _half_log_det(factor):
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _ByCovariance:
    """The three forms of a covariance matrix; the two missing ones are computed at their first read."""

    def _keep(self, batch_shape, **forms):
        """Keeps the given form, expanded, and its Cholesky factor unexpanded."""
        (name, value), = [(n, v) for n, v in forms.items() if v is not None]
        self.__dict__[name] = value.expand(*batch_shape, -1, -1)
        self._unbroadcasted_scale_tril = (value if name == "scale_tril" else linalg.cholesky(value)
                                          if name == "covariance_matrix" else _precision_to_scale_tril(value))

    def _expand_forms(self, new, batch_shape):
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(*batch_shape, -1, -1)

    def _for_batch(self, matrix):
        return matrix.expand(*self._batch_shape, -1, -1)

    @lazy_property
    def scale_tril(self):
        """Lower triangular Cholesky factor of the covariance matrix."""
        return self._for_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """Covariance matrix."""
        return self._for_batch(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance matrix."""
        return self._for_batch(pt.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(_ByCovariance, Distribution):
    r"""Multivariate normal distribution, with density
    :math:`\exp(-\frac12 (x - m)^T \Sigma^{-1} (x - m)) / \sqrt{|2\pi\Sigma|}`.

    Parameters
    ----------
    loc : Tensor
        Means, along the last dim.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        :math:`\Sigma`, its inverse, or its lower Cholesky factor, along the last two dims: one of the three. The last
        is the fastest.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import MultivariateNormal
    >>> MultivariateNormal(ptcore.zeros(2), ptcore.eye(2)).log_prob(ptcore.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        forms = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = [(name, value) for name, value in forms.items() if value is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = pt.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch_shape, -1)
        self.__dict__[name] = matrix.expand(*batch_shape, -1, -1)
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._keep(batch_shape, **forms)  # after the check, since a matrix that is not positive definite has no factor

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        new.loc = self.loc.expand(*batch_shape, -1)
        self._expand_forms(new, batch_shape)
        return self._finish(new, batch_shape, self._event_shape)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=EMPTY):
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - _half_log_det(factor)

    def entropy(self):
        half = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (half + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
