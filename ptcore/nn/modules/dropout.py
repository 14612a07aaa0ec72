"""Dropout."""

from ptcore.nn import functional as F
from ptcore.nn.modules.module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """Zero each element with probability `p` while training.

    The others are multiplied by ``1 / (1 - p)``; in evaluation mode the input
    is returned.

    Parameters
    ----------
    p : float, default: 0.5
        Probability of a zero.
    inplace : bool, default: False
        Whether to write into the input.

    Raises
    ------
    ValueError
        If `p` is outside [0, 1].

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Dropout(0.2).eval()(ptcore.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not hasattr(p, "__float__"):
            raise TypeError(f"Dropout: p must be a number, got {type(p).__name__}")
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        """Drop elements of `input`."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"
