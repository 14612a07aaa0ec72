"""Dropout."""

from ptcore.nn import functional as F
from ptcore.nn.modules._described import Described

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Described):
    """The options of all dropout layers, and the call of their function."""

    _shown = ("p", "inplace")

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not hasattr(p, "__float__"):
            raise TypeError(f"{type(self).__name__}: p must be a number, got {type(p).__name__}")
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        """Drop parts of `input`."""
        return type(self)._function(input, self.p, self.training, self.inplace)


class Dropout(_Dropout):
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

    _function = F.dropout


class Dropout1d(_Dropout):
    """Zero whole channels of ``(N, C, L)`` or ``(C, L)`` while training.

    Parameters
    ----------
    p, inplace
        As for :class:`Dropout`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Dropout1d(0.2).eval()(ptcore.ones(2, 3, 4)).sum().item()
    24.0
    """

    _function = F.dropout1d


class Dropout2d(_Dropout):
    """Zero whole channels of ``(N, C, H, W)`` while training.

    Parameters
    ----------
    p, inplace
        As for :class:`Dropout`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Dropout2d(0.2).eval()(ptcore.ones(2, 3, 2, 2)).sum().item()
    24.0
    """

    _function = F.dropout2d


class Dropout3d(_Dropout):
    """Zero whole channels of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` while training.

    Parameters
    ----------
    p, inplace
        As for :class:`Dropout`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Dropout3d(0.2).eval()(ptcore.ones(1, 2, 2, 2, 2)).sum().item()
    16.0
    """

    _function = F.dropout3d


class AlphaDropout(_Dropout):
    """Set elements to SELU's lower limit while training, keeping mean 0 and variance 1.

    Parameters
    ----------
    p, inplace
        As for :class:`Dropout`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.AlphaDropout(0.2).eval()(ptcore.ones(2, 3)).sum().item()
    6.0
    """

    _function = F.alpha_dropout


class FeatureAlphaDropout(_Dropout):
    """Set whole channels to SELU's lower limit while training, keeping mean and variance.

    Parameters
    ----------
    p, inplace
        As for :class:`Dropout`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.FeatureAlphaDropout(0.2).eval()(ptcore.ones(2, 3, 2)).sum().item()
    12.0
    """

    _function = F.feature_alpha_dropout
