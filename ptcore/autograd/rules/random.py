"""Rules of random ops. Dropout passes the gradient of kept elements."""
from ptcore.autograd.rules import jvp, vjp


@vjp("dropout_masked")
def dropout_masked(gs, out1, p):
    return None if gs[0] is None else gs[0] * out1 * (1.0 / (1.0 - p) if p < 1 else 0.0)


@jvp("dropout_masked")
def dropout_forward(t, out1, p):
    return t * out1 * (1.0 / (1.0 - p) if p < 1 else 0.0), None
