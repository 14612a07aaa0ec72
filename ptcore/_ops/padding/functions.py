"""Padding under an older name."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.functions import pad as padded


@overridable
def constant_pad_nd(input, pad, value=0):
    """``nn.functional.pad`` with a constant.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.constant_pad_nd(ptcore.tensor([1]), (1, 0), 5)
    tensor([5, 1])
    """
    return padded(input, pad, "constant", value)
