"""The Wishart distribution."""
import math
import numbers
import warnings

import ptcore as pt
from ptcore import linalg
from ptcore.distributions import constraints
from ptcore.distributions.chi2 import Chi2
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.multivariate_normal import _ByCovariance, _half_log_det
from ptcore.distributions.utils import EMPTY, vec_to_tril_matrix

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of the logarithm of the multivariate gamma function."""
    steps = pt.arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - steps).digamma().sum(-1)


class Wishart(_ByCovariance, ExponentialFamily):
    r"""Wishart distribution: that of :math:`X^T X` for :math:`\nu` rows of normals with covariance :math:`\Sigma`.

    Parameters
    ----------
    df : Tensor or float
        Degrees of freedom :math:`\nu`, above the size of the matrix less 1.
    covariance_matrix, precision_matrix, scale_tril : Tensor
        :math:`\Sigma`, its inverse, or its lower Cholesky factor, along the last two dims: one of the three.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Notes
    -----
    Draws are Bartlett's, with gradients. A draw that rounding has made singular is drawn again, with a warning.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Wishart
    >>> Wishart(3.0, covariance_matrix=ptcore.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        forms = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = [(name, value) for name, value in forms.items() if value is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape, event_shape = matrix.shape[:-2], matrix.shape[-2:]
        if isinstance(df, numbers.Real):
            self.df = pt.tensor(df, dtype=matrix.dtype, device=matrix.device).expand(batch_shape)
        else:
            batch_shape = pt.broadcast_shapes(batch_shape, df.shape)
            self.df = df.expand(batch_shape)
        p = event_shape[-1]
        if (self.df <= p - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        if (self.df < p).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < "
                          "ndim.", stacklevel=2)
        self.__dict__[name] = matrix.expand(*batch_shape, -1, -1)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._keep(batch_shape, **forms)
        self._set_chi2()

    def _set_chi2(self):
        steps = pt.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        new.df = self.df.expand(batch_shape)
        self._expand_forms(new, batch_shape)
        self._finish(new, batch_shape, self._event_shape)
        new._set_chi2()
        return new

    def _df_for(self, matrix):
        return self.df.unsqueeze(-1).unsqueeze(-1) * matrix

    @property
    def mean(self):
        return self._df_for(self.covariance_matrix)

    @property
    def mode(self):
        factor = self.df - self._event_shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, float("nan"))
        return factor.unsqueeze(-1).unsqueeze(-1) * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._df_for(V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=EMPTY):
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=pt.finfo(roots.dtype).eps)
        p = self._event_shape[-1]
        noise = roots.diag_embed()
        if p > 1:
            below = pt.randn(*sample_shape, *self._batch_shape, p * (p - 1) // 2, dtype=roots.dtype,
                             device=roots.device)
            noise = noise + vec_to_tril_matrix(below, -1)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=EMPTY, max_try_correction=None):
        """Draws with gradients; singular ones are drawn again at most ``max_try_correction`` (10) times."""
        sample = self._bartlett_sampling(sample_shape)
        with pt.no_grad():
            singular = ~self.support.check(sample)
        if not singular.any():
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            sample = pt.where(singular.unsqueeze(-1).unsqueeze(-1), self._bartlett_sampling(sample_shape), sample)
            with pt.no_grad():
                singular = ~self.support.check(sample)
            if not singular.any():
                break
        return sample

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = pt.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (-nu * (p * math.log(2) / 2 + _half_log_det(factor)) - pt.mvlgamma(nu / 2, p)
                + (nu - p - 1) / 2 * linalg.slogdet(value)[1] - trace / 2)

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        return ((p + 1) * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
                + pt.mvlgamma(nu / 2, p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p) + nu * p / 2)

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - linalg.slogdet(-2 * x)[1]) + pt.mvlgamma(half, p)
