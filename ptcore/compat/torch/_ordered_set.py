"""``torch.utils._ordered_set``: a set in order of insertion."""
from collections.abc import MutableSet

__all__ = ["OrderedSet"]


class OrderedSet(MutableSet):
    """A set in order of insertion."""

    __slots__ = ("_dict",)

    def __init__(self, iterable=None):
        self._dict = dict.fromkeys(iterable or ())

    @classmethod
    def __class_getitem__(cls, item):
        return cls

    def __contains__(self, element):
        return element in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __reversed__(self):
        return reversed(self._dict)

    def __repr__(self):
        return f"{type(self).__name__}({list(self)})"

    def __getstate__(self):
        return list(self)

    def __setstate__(self, state):
        self._dict = dict.fromkeys(state)

    def add(self, element):
        self._dict[element] = None

    def discard(self, element):
        self._dict.pop(element, None)

    def clear(self):
        self._dict.clear()

    def pop(self):
        """Takes out the last element."""
        if not self:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self):
        return type(self)(self)

    def update(self, *others):
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others):
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others):
        return type(self)(x for x in self if all(x in set(other) for other in others))

    def difference(self, *others):
        gone = {x for other in others for x in other}
        return type(self)(x for x in self if x not in gone)

    def difference_update(self, *others):
        for other in others:
            for x in other:
                self.discard(x)

    def symmetric_difference(self, other):
        return self ^ OrderedSet(other)

    def issubset(self, other):
        return all(x in set(other) for x in self)

    def issuperset(self, other):
        return all(x in self for x in other)
