"""Distances and similarities of pairs of vectors."""

from ptcore.nn import functional as F
from ptcore.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The norm of ``x1 - x2 + eps`` over the last dim.

    Parameters
    ----------
    p : float, default: 2
        The order of the norm.
    eps : float, default: 1e-6
        Keeps the gradient finite at equal vectors.
    keepdim : bool, default: False
        Whether the last dim stays, with one element.

    Examples
    --------
    >>> import ptcore
    >>> a, b = ptcore.tensor([[3.0, 0.0]]), ptcore.tensor([[0.0, 4.0]])
    >>> ptcore.nn.PairwiseDistance(eps=0.0)(a, b).tolist()
    [5.0]
    """

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        """Distances of `x1` and `x2`."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """``x1 . x2 / (|x1| |x2|)`` along a dim.

    Parameters
    ----------
    dim : int, default: 1
        The dim of the vectors.
    eps : float, default: 1e-8
        The smallest length that counts.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.CosineSimilarity(dim=0)(ptcore.tensor([1.0, 0.0]), ptcore.tensor([2.0, 0.0])).item()
    1.0
    """

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        """Similarity of `x1` and `x2`."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
