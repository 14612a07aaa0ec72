"""Bodies: special functions."""
from ptcore._dtype import get_default_dtype
from ptcore._errors import DTypeError
from ptcore._ops import checked
from ptcore._ops.call.operands import result_type
from ptcore._ops.creation.creation import arange, full
from ptcore._ops.functions import clamp_max, clamp_min, isfinite, isnan, log1p, masked_fill, sum, unsqueeze, where
from ptcore._tensor import Tensor


def logit(input, eps):
    from ptcore._ops.functions import logit_of
    if input.dtype.kind in "iub":
        input = input.to(get_default_dtype())
    if eps is not None:
        eps = checked.real("logit", "eps", eps)
        if 0 <= eps <= 0.5:
            input = clamp_max(clamp_min(input, eps), 1 - eps)
        else:                               # the bounds are in the wrong order, or NaN: the lower one counts first
            below = input < eps
            input = masked_fill(masked_fill(input, input > 1 - eps, 1 - eps), below, eps)
    return logit_of(input)


def polygamma_function(n, input):
    from ptcore._ops.functions import polygamma_of
    if n < 0:
        raise RuntimeError(f"polygamma: n must not be negative, got {n}")
    return polygamma_of(input, float(n))


# -- special functions --------------------------------------------------------------------------------
def _floats(op, input):
    if input.dtype.is_complex:
        raise DTypeError(f"{op}: input must be real, got {input.dtype.name}")
    return input if input.dtype.kind == "f" else input.to(get_default_dtype())


def mvlgamma(input, p):
    from ptcore._ops.functions import lgamma
    if p < 1:
        raise RuntimeError(f"mvlgamma: p must be positive, got {p}")
    input = _floats("mvlgamma", input)
    steps = arange(p, dtype=input.dtype, device=input.device) * -0.5
    total = sum(lgamma(unsqueeze(input, -1) + steps), -1) + p * (p - 1) * 0.28618247146235004
    return total.to(input.dtype)


def special_ndtr(input):
    from ptcore._ops.functions import erfc
    return erfc(_floats("special.ndtr", input) * -0.7071067811865476) * 0.5


def special_xlog1py(input, other):
    op = "special.xlog1py"
    if not isinstance(input, Tensor):
        input = (checked.number if isinstance(other, Tensor) else checked.tensor)(op, "input", input)
    elif not isinstance(other, Tensor):
        other = checked.number(op, "other", other)
    dtype = result_type(input, other)
    if dtype.kind not in "fc":
        dtype = get_default_dtype()
    device = (input if isinstance(input, Tensor) else other).device
    input, other = [x.to(dtype) if isinstance(x, Tensor) else full((), x, dtype=dtype, device=device)
                    for x in (input, other)]
    # 0 of any other, though the logarithm is none; elsewhere 0 is a product, which has a derivative.
    zero = (input == 0) & isfinite(log1p(other)).logical_not() & isnan(other).logical_not()
    return where(zero, 0, input * log1p(where(zero, 0, other))).to(dtype)       # autocast may compute in another dtype
