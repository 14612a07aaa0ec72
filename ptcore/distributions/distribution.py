"""The base class of distributions: shapes, checks of parameters and values, and the methods to override."""
import warnings

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.utils import EMPTY, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """Base class of the probability distributions.

    Parameters
    ----------
    batch_shape : Size
        Shape of the independent distributions that one object holds.
    event_shape : Size
        Shape of one draw of one of them.
    validate_args : bool, optional
        Whether parameters and values are checked; by default what :meth:`set_default_validate_args` says.

    Raises
    ------
    ValueError
        If a parameter violates its constraint: the parameter, the constraint and the value are named.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Normal
    >>> d = Normal(ptcore.zeros(2), 1.0)
    >>> d.batch_shape, d.sample((3,)).shape
    (ptcore.Size([2]), ptcore.Size([3, 2]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Sets whether distributions check parameters and values by default; initially they do."""
        if value not in [True, False]:
            raise ValueError(f"set_default_validate_args: value must be True or False, got {value}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=EMPTY, event_shape=EMPTY, validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()                  # of a class beside it, such as nn.Module

    def _check_parameters(self):
        """Raises if a given parameter violates its constraint."""
        try:
            its = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                          "initialize the distribution with `validate_args=False` to turn off validation.",
                          stacklevel=4)
            return
        own = self.__dict__
        for name, constraint in its.items():
            if isinstance(constraint, constraints._Dependent):
                continue
            value = own.get(name)
            if value is None:
                if isinstance(getattr(type(self), name), lazy_property):
                    continue                # computed from another parameter, which is checked
                value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                                 f"of distribution {self!r} to satisfy the constraint {constraint!r}, but found "
                                 f"invalid values:\n{value}")

    def expand(self, batch_shape, _instance=None):
        """The distribution with its batch dims expanded, without copies, to ``batch_shape``."""
        raise NotImplementedError(f"{type(self).__name__}: expand is not defined")

    @property
    def batch_shape(self):
        """Shape of the independent distributions that one object holds."""
        return self._batch_shape

    @property
    def event_shape(self):
        """Shape of one draw of a single distribution."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """dict: the constraint of each parameter."""
        raise NotImplementedError(f"{type(self).__name__}: arg_constraints is not defined")

    @property
    def support(self):
        """The constraint that values satisfy."""
        raise NotImplementedError(f"{type(self).__name__}: support is not defined")

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__}: mean is not defined")

    @property
    def mode(self):
        """The mode."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__}: variance is not defined")

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=EMPTY):
        """Draws of shape ``sample_shape + batch_shape + event_shape``, without gradients."""
        with pt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=EMPTY):
        """Draws as differentiable functions of the parameters."""
        raise NotImplementedError(f"{type(self).__name__}: rsample is not defined")

    def sample_n(self, n):
        """``n`` draws; ``sample((n,))`` is preferred."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(pt.Size((n,)))

    def log_prob(self, value):
        """Logarithm of the density, or of the probability, at ``value``."""
        raise NotImplementedError(f"{type(self).__name__}: log_prob is not defined")

    def cdf(self, value):
        """Probability of a draw of at most ``value``."""
        raise NotImplementedError(f"{type(self).__name__}: cdf is not defined")

    def icdf(self, value):
        """The inverse of :meth:`cdf`."""
        raise NotImplementedError(f"{type(self).__name__}: icdf is not defined")

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution, along a new first dim; repeated over the batch if ``expand``."""
        raise NotImplementedError(f"{type(self).__name__}: enumerate_support is not defined")

    def entropy(self):
        """The entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__}: entropy is not defined")

    def perplexity(self):
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=EMPTY):
        """Shape of draws."""
        return pt.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        """Raises if a value lacks the shape of draws or lies outside the support."""
        if not isinstance(value, pt.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, batch, event = value.shape, self._batch_shape, self._event_shape
        if event or shape != batch:
            if shape[len(shape) - len(event):] != event:
                raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {event}.")
            for n, m in zip(reversed(shape), reversed(batch + event)):
                if n != m and n != 1 and m != 1:
                    raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs "
                                     f"{batch + event}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                          "distribution with `validate_args=False` to turn off validation.", stacklevel=3)
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                             f"within the support ({support!r}) of the distribution {self!r}, but found invalid "
                             f"values:\n{value}")

    def _get_checked_instance(self, cls, _instance=None):
        """A new instance for ``expand``; a subclass with another ``__init__`` must override ``expand``."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom "
                                      "__init__ method must also define a custom .expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _finish(self, new, batch_shape, event_shape=EMPTY):
        """Completes the expanded instance with its shapes, without checks."""
        Distribution.__init__(new, pt.Size(batch_shape), event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanded(self, cls, _instance, batch_shape, *names):
        """``expand`` for scalar events and parameters that are tensors with the given names."""
        new = self._get_checked_instance(cls, _instance)
        for name in names:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        return self._finish(new, batch_shape)

    def __repr__(self):
        own = self.__dict__
        found = [(name, own[name]) for name in self.arg_constraints if name in own]
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in found)
        return f"{type(self).__name__}({shown})"
