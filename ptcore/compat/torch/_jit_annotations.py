"""``torch.jit.annotations``: names of ``torch.jit``, and types of lists that also accept a number."""
from typing import Any, Callable, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from ptcore.jit import *  # noqa: F403


class _BroadcastingList:
    """A type that is subscripted by the type of the items."""

    def __getitem__(self, item):
        return list[item]


(BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4, BroadcastingList5, BroadcastingList6) = [
    _BroadcastingList() for _ in range(6)]
