"""The tables ``_parameters``, ``_buffers`` and ``_modules`` of a module.

Invariant: for every key the owner's instance ``__dict__`` holds the same
object, so reading ``module.weight`` is an ordinary attribute look-up. All
writing methods of ``dict`` keep it. The owner is referred to weakly: a module
is freed by its reference count.
"""

import weakref

_MISSING = object()


class Registry(dict):
    """Dictionary whose writes are mirrored into its owner's ``__dict__``."""

    __slots__ = ("_owner",)

    def __init__(self, owner, items=()):
        super().__init__(items)
        self._owner = weakref.ref(owner)
        owner.__dict__.update(self)

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is not None:
            owner.__dict__[name] = value

    def __delitem__(self, name):
        super().__delitem__(name)
        self._forget(name)

    def _forget(self, name):
        owner = self._owner()
        if owner is not None:
            owner.__dict__.pop(name, None)

    def pop(self, name, default=_MISSING):
        if name in self:
            self._forget(name)
        return super().pop(name) if default is _MISSING else super().pop(name, default)

    def popitem(self):
        name, value = super().popitem()
        self._forget(name)
        return name, value

    def clear(self):
        for name in self:
            self._forget(name)
        super().clear()

    def setdefault(self, name, default=None):
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *args, **kwargs):
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other):
        self.update(other)
        return self

    def move_to_end(self, name, last=True):
        """As ``OrderedDict.move_to_end``."""
        items = list(self.items())
        value = self[name]
        rest = [item for item in items if item[0] != name]
        super().clear()
        super().update([*rest, (name, value)] if last else [(name, value), *rest])

    def __reduce_ex__(self, proto):
        # Copies and pickles are plain dictionaries; Module.__setstate__ gives
        # them an owner again.
        return dict, (), None, None, iter(self.items())
