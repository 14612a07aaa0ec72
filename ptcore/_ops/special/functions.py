"""Methods of special functions."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.functions import polygamma_function


@overridable
def polygamma(self, n):
    """The ``n``-th derivative of digamma."""
    return polygamma_function(n, self)


@overridable
def polygamma_(self, n):
    """:meth:`polygamma` in place."""
    if self.dtype.kind != "f":
        raise RuntimeError(f"polygamma_: the result is floating-point and can't be written to a tensor of "
                           f"{self.dtype.name}")
    return self.copy_(polygamma(self, n))
