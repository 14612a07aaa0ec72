"""Constraints: regions of tensors in which parameters and values of distributions lie.

A constraint says whether each event of a tensor lies in its region (``check``), whether the region is discrete and how
many rightmost dims make one event. A constraint with parameters is a function of them, like ``interval(0, 1)``; one
without is an object, like ``positive``.
"""
import ptcore as pt
from ptcore import linalg

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of tensors.

    Attributes
    ----------
    is_discrete : bool
        Whether the region holds isolated points alone.
    event_dim : int
        How many rightmost dims are judged together; ``check`` returns a tensor without them.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import constraints
    >>> constraints.positive.check(ptcore.tensor([1., -1.]))
    tensor([ True, False])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Whether each event of ``value`` lies in the region, as a bool tensor."""
        raise NotImplementedError(f"{type(self).__name__}: check is not defined")

    def _bounds(self):
        """The text between the brackets of the repr."""
        found = ((name, getattr(self, name, None)) for name in ("lower_bound", "upper_bound"))
        return ", ".join(f"{name}={value}" for name, value in found if value is not None)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self._bounds()})"


class _Dependent(Constraint):
    """A region that depends on other values, so it cannot be checked without them."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name):
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    @property
    def is_discrete(self):
        return self._known("is_discrete")

    @property
    def event_dim(self):
        return self._known("event_dim")

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """A copy with known properties set."""
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether the constraint's region depends on values that it does not hold.

    Examples
    --------
    >>> from ptcore.distributions import Uniform, constraints
    >>> constraints.is_dependent(constraints.dependent)
    True
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; read on the class it is a dependent constraint itself."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _all_rightmost(result, dims):
    """Whether all elements over the last ``dims`` dims are True."""
    return result.flatten(-dims).all(-1) if dims else result


def _base(constraint):
    if not isinstance(constraint, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(constraint).__name__}")
    return constraint


class _IndependentConstraint(Constraint):
    """The base constraint with some of its batch dims made part of the event, in which all elements must satisfy it."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint = _base(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError("reinterpreted_batch_ndims must be an int, got "
                                 f"{type(reinterpreted_batch_ndims).__name__}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return _all_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: values in the support of every component.

    Parameters
    ----------
    base_constraint : Constraint
        The support of the components.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(ptcore.tensor([1., -1.]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint):
        self.base_constraint = _base(base_constraint)

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        dims = self.event_dim
        if value.ndim < dims:
            raise ValueError(f"Expected value.dim() >= {dims} but got {value.ndim}")
        result = self.base_constraint.check(value.unsqueeze(-1 - dims))
        return _all_rightmost(result, result.ndim - (value.ndim - dims))

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Base of constraints with a lower bound, an upper bound or both."""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _AboveOnly(Constraint):
    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _BelowOnly(Constraint):
    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _IntegerInterval(_Bounded):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerLessThan(_BelowOnly):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_AboveOnly):
    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value           # False only for NaN


class _GreaterThan(_AboveOnly):
    def check(self, value):
        return value > self.lower_bound


class _GreaterThanEq(_AboveOnly):
    def check(self, value):
        return value >= self.lower_bound


class _LessThan(_BelowOnly):
    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    def check(self, value):
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    def check(self, value):
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)

    def _bounds(self):
        return ""


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return _all_rightmost(value.tril() == value, 2)


class _LowerCholesky(_LowerTriangular):
    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value):
        tolerance = pt.finfo(value.dtype).eps * value.shape[-1] * 10        # tolerance for the length of one row
        lengths = linalg.vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        square = value.shape[-2] == value.shape[-1]
        return pt.full(value.shape[:-2], square, dtype=pt.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        if not square.all():
            return square
        return _all_rightmost(pt.isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return (linalg.eigvalsh(value) >= 0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return linalg.cholesky_ex(value)[1] == 0 if symmetric.all() else symmetric


class _Sequence(Constraint):
    """Constraints of the parts of a tensor along one dim."""

    def __init__(self, cseq, dim):
        self.cseq, self.dim = list(cseq), dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value):
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(f"dim {self.dim} out of range for value with {value.ndim} dimensions")


class _Cat(_Sequence):
    """Constraints of pieces of given lengths along ``dim``."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value):
        self._check_dim(value)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return pt.cat(checks, self.dim)


class _Stack(_Sequence):
    """Constraints of the slices along ``dim``."""

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        dims = max(c.event_dim for c in self.cseq)
        return dims + (self.dim + dims < 0)

    def check(self, value):
        self._check_dim(value)
        return pt.stack([c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
