"""The class of all transforms, and of their inverses."""
import weakref

import ptcore as pt
from ptcore.distributions import constraints


class Transform:
    """A differentiable function with a known change of volume.

    A subclass gives ``domain``, ``codomain``, ``_call``, ``_inverse`` and, if ``bijective``, ``log_abs_det_jacobian``.

    Parameters
    ----------
    cache_size : {0, 1}
        With 1 the last pair of input and output is kept, so that ``inv`` of an output is the input itself: exact, and
        for transforms whose inverse is costly or unstable.

    Attributes
    ----------
    domain, codomain : Constraint
        Where inputs and outputs lie.
    bijective : bool
        Whether each output has one input.
    sign : int or Tensor
        Of the derivative, if the transform is monotone.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ExpTransform
    >>> t = ExpTransform()
    >>> t.inv(t(ptcore.tensor([0., 2.])))
    tensor([0., 2.])
    """

    bijective = False

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv = None                    # weak reference to the inverse
        if cache_size:
            self._cached_x_y = None, None
        super().__init__()                  # of a class beside it, such as nn.Module

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self):
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self):
        """The inverse, whose own inverse is this transform."""
        found = None if self._inv is None else self._inv()
        if found is None:
            found = _InverseTransform(self)
            self._inv = weakref.ref(found)
        return found

    @property
    def sign(self):
        raise NotImplementedError(f"{type(self).__name__}: sign is not defined")

    def with_cache(self, cache_size=1):
        """The transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    def __call__(self, x):
        if not self._cache_size:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if not self._cache_size:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__}: _call is not defined")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__}: the inverse is not defined")

    def log_abs_det_jacobian(self, x, y):
        """``log |dy/dx|`` for an input and its output, without the event's dims."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian is not defined")

    def forward_shape(self, shape):
        """Shape of the output for an input of that shape."""
        return shape

    def inverse_shape(self, shape):
        """Shape of the input for an output of that shape."""
        return shape

    def __repr__(self):
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, which does the work."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._of = transform

    def __getstate__(self):
        return self.__dict__

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._of.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._of.domain

    @property
    def bijective(self):
        return self._of.bijective

    @property
    def sign(self):
        return self._of.sign

    @property
    def inv(self):
        return self._of

    def with_cache(self, cache_size=1):
        return self._of.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._of == other._of

    def __repr__(self):
        return f"{type(self).__name__}({self._of!r})"

    def __call__(self, x):
        return self._of._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._of.forward_shape(shape)


class Increasing(Transform):
    """An increasing function of each element without parameters, so instances of one class are equal."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other):
        return type(self) is type(other)


def clipped_sigmoid(x):
    """The sigmoid, clipped to values with a finite inverse."""
    info = pt.finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1.0 - info.eps)
