"""Transforms made of others: compositions, transforms of parts along a dim, and transforms over more dims."""
import functools
import operator
import weakref

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._transform import Transform
from ptcore.distributions.utils import _sum_rightmost, lazy_property


class ComposeTransform(Transform):
    """Transforms one after the other.

    Parameters
    ----------
    parts : list of Transform
        The first is applied first. The numbers of event dims may differ.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(ptcore.zeros(1))
    tensor([3.])
    """

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _widened(self, constraint, event_dim):
        """The constraint of one end, with its events widened to ``event_dim`` dims."""
        more = event_dim - constraint.event_dim
        assert more >= 0
        return constraints.independent(constraint, more) if more else constraint

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return self._widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return self._widened(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        return functools.reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self):
        found = None if self._inv is None else self._inv()
        if found is None:
            found = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(found)
            found._inv = weakref.ref(self)
        return found

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return pt.zeros_like(x)
        stations = [x]
        for part in self.parts[:-1]:
            stations.append(part(stations[-1]))
        stations.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, stations, stations[1:]):
            inside = part.domain.event_dim
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - inside))
            event_dim += part.codomain.event_dim - inside
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with some batch dims made part of the event: the logarithms of its Jacobian are summed over them.

    Parameters
    ----------
    base_transform : Transform
        The transform to apply.
    reinterpreted_batch_ndims : int
        How many rightmost dims more make one event.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ExpTransform, IndependentTransform
    >>> t, x = IndependentTransform(ExpTransform(), 1), ptcore.ones(2, 3)
    >>> t.log_abs_det_jacobian(x, t(x))
    tensor([3., 3.])
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        if x.ndim < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.ndim < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class _SideBySide(Transform):
    """Transforms of the parts of a tensor along one dim."""

    def __init__(self, tseq, dim, cache_size):
        tseq = list(tseq)
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq
        self.dim = dim

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    def _check(self, x, length):
        if not -x.ndim <= self.dim < x.ndim:
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.ndim} dimensions")
        if x.shape[self.dim] != length:
            raise AssertionError(f"size of dim {self.dim} must equal {length}, got {x.shape[self.dim]}")


class CatTransform(_SideBySide):
    """Transforms of pieces along one dim, as :func:`ptcore.cat` joins them.

    Parameters
    ----------
    tseq : sequence of Transform
        One a piece.
    dim : int
        The dim.
    lengths : sequence of int, optional
        Lengths of the pieces; 1 each by default.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import AbsTransform, CatTransform, ExpTransform
    >>> CatTransform([AbsTransform(), ExpTransform()], lengths=[2, 1])(ptcore.tensor([-1., 2., 0.]))
    tensor([1., 2., 1.])
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match tseq ({len(self.transforms)})")

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x):
        self._check(x, self.length)
        return x.split(self.lengths, self.dim)

    def _call(self, x):
        return pt.cat([t(piece) for t, piece in zip(self.transforms, self._pieces(x))], self.dim)

    def _inverse(self, y):
        return pt.cat([t.inv(piece) for t, piece in zip(self.transforms, self._pieces(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        found = [_sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
                 for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y))]
        dim = self.dim - x.ndim * (self.dim >= 0) + self.event_dim
        return pt.cat(found, dim) if dim < 0 else sum(found)        # pieces of one event are added

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_SideBySide):
    """Transforms of the slices along one dim, as :func:`ptcore.stack` joins them.

    Parameters
    ----------
    tseq : sequence of Transform
        One a slice.
    dim : int
        The dim.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([identity_transform, ExpTransform()])(ptcore.zeros(2, 1))
    tensor([[0.],
            [1.]])
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, x):
        self._check(x, len(self.transforms))
        return x.unbind(self.dim)

    def _call(self, x):
        return pt.stack([t(part) for t, part in zip(self.transforms, self._slices(x))], self.dim)

    def _inverse(self, y):
        return pt.stack([t.inv(part) for t, part in zip(self.transforms, self._slices(y))], self.dim)

    def log_abs_det_jacobian(self, x, y):
        return pt.stack([t.log_abs_det_jacobian(a, b)
                         for t, a, b in zip(self.transforms, self._slices(x), self._slices(y))], self.dim)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
