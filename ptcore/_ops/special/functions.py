"""Methods of special functions."""
from ptcore._ops.functions import polygamma_function


def polygamma(self, n):
    """The ``n``-th derivative of digamma."""
    return polygamma_function(n, self)


def polygamma_(self, n):
    """:meth:`polygamma` in place."""
    return self.copy_(polygamma(self, n))
