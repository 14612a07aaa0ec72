"""A distribution whose batch dims become part of the event."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, _sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution with some of its batch dims made part of the event, over which ``log_prob`` is then summed.

    Parameters
    ----------
    base_distribution : Distribution
        Whose dims they are.
    reinterpreted_batch_ndims : int
        How many rightmost batch dims.
    validate_args : bool, optional
        Whether values are checked; the base's own setting decides about its values.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Independent, Normal
    >>> Independent(Normal(ptcore.zeros(2, 3), 1.0), 1).event_shape
    ptcore.Size([3])
    """

    arg_constraints = {}

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                             f"{reinterpreted_batch_ndims} vs {len(batch)}")
        cut = len(batch) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Independent, _instance)
        new.base_dist = self.base_dist.expand(
            pt.Size(batch_shape) + self._event_shape[:self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return self._finish(new, batch_shape, self._event_shape)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        its = self.base_dist.support
        return constraints.independent(its, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else its

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=EMPTY):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=EMPTY):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
