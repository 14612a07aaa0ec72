"""What stands for tensors in a case: see _cases.py."""
import numpy as np


class F:
    """Data of the dtype under test, in a domain of its own if the row's does not fit."""

    def __init__(self, *shape, domain=None):
        self.shape, self.domain = shape, domain


class C(F):
    """Data that takes part in the result but has no gradient, as the class weights of losses."""


class I:  # noqa: E742
    """Positions (int64) or a mask that is given: not to be differentiated."""

    def __init__(self, values):
        values = np.array(values)
        self.values = values if values.dtype == bool else values.astype(np.int64)


class Of:
    """A constant worked out from the data drawn before it."""

    def __init__(self, function):
        self.function = function


class B:
    """A mask."""

    def __init__(self, *shape):
        self.shape = shape
