"""The types of results with several named items: ``ptcore.max(x, 0)`` is a ``return_types.max``.

Examples
--------
>>> import ptcore
>>> ptcore.max(ptcore.tensor([[1, 5], [7, 2]]), 1)
ptcore.return_types.max(
values=tensor([5, 7]),
indices=tensor([1, 0]))
"""
from ptcore._ops.results import TYPES

globals().update({t.__name__: t for t in TYPES})
all_return_types = list(TYPES)
__all__ = [t.__name__ for t in TYPES]
