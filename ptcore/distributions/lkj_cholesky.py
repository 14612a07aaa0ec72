"""The LKJ distribution of Cholesky factors of correlation matrices."""
import math

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.beta import Beta
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    r"""Distribution of the Cholesky factors of correlation matrices with density proportional to
    :math:`\det(C)^{\eta - 1}`.

    Parameters
    ----------
    dim : int
        Size of the matrices, at least 2.
    concentration : Tensor or float
        :math:`\eta`; 1 is uniform over correlation matrices.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Notes
    -----
    Draws are made by the onion method of Lewandowski, Kurowicka and Joe (2009) and have no gradients.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import LKJCholesky
    >>> LKJCholesky(2, 1.0).log_prob(ptcore.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        eta = self.concentration
        # The squared length of row k before the diagonal is a beta variable with first parameter k / 2.
        offset = pt.arange(-1, dim - 1, dtype=eta.dtype, device=eta.device).clamp(min=0)
        self._beta = Beta(0.5 * offset + 0.5, (eta + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * offset, validate_args=False)
        super().__init__(eta.shape, pt.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return self._finish(new, batch_shape, self._event_shape)

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            ways = pt.randn(self._extended_shape(sample_shape), dtype=length.dtype, device=length.device).tril(-1)
            ways[..., 0, 0] = 1                         # avoids 0 / 0 in row 0, which has no direction
            ways = ways / ways.norm(dim=-1, keepdim=True)
            ways[..., 0, 0] = 0
            rows = length.sqrt() * ways
            rest = (1 - (rows ** 2).sum(-1)).clamp(min=pt.finfo(rows.dtype).tiny).sqrt()
            return rows + rest.diag_embed()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        eta, before = self.concentration, self.dim - 1
        orders = pt.arange(2, self.dim + 1, device=eta.device)
        powers = 2 * (eta - 1).unsqueeze(-1) + self.dim - orders
        free = (powers * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = eta + 0.5 * before
        whole = 0.5 * before * math.log(math.pi) + pt.mvlgamma(alpha - 0.5, before) - alpha.lgamma() * before
        return free - whole
