"""Transforms of constraints: ``biject_to`` gives bijections, ``transform_to`` any transform that suits optimisers.

``transform_to(constraint)`` maps unconstrained numbers into the region. ``biject_to(constraint)`` does so with a
Jacobian, as samplers need it. Packages register transforms of their own constraints.
"""
import numbers

from ptcore.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make transforms.

    Examples
    --------
    >>> from ptcore.distributions import biject_to, constraints
    >>> biject_to(constraints.unit_interval)
    SigmoidTransform()
    """

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """Registers a factory of transforms for constraints of a class; without ``factory``, returns a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        """The transform from unconstrained tensors to the region of ``constraint``."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*its):
    """Registers one function in both tables."""
    def register(factory):
        for constraint in its:
            biject_to.register(constraint, factory)
            transform_to.register(constraint, factory)
        return factory
    return register


@_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _greater_than(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(),
                                        transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _less_than(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(),
                                        transforms.AffineTransform(constraint.upper_bound, -1)])


def _is(bound, number):
    return isinstance(bound, numbers.Number) and bound == number


@_both(constraints.interval, constraints.half_open_interval)
def _interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if _is(low, 0) and _is(high, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _stick_breaking(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


def _through(registry):
    """Registers transforms of constraints that are made of others, in one table."""
    @registry.register(constraints.independent)
    def independent(constraint):
        return transforms.IndependentTransform(registry(constraint.base_constraint),
                                               constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_through(biject_to)
_through(transform_to)
