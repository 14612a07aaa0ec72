"""Modules of settings that have no effect in ptcore; the values are kept."""
import contextlib
import sys
import types


class Settings(types.ModuleType):
    """A module that keeps its settings. A setting without a value or default raises AttributeError."""

    def patch(self, arg1=None, arg2=None, **kwargs):
        """A context or decorator with other settings, given by a name and a value, a dict, or keywords."""
        changes = dict(arg1 or {}) if not isinstance(arg1, str) else {arg1: arg2}
        return _patched(self, {**changes, **kwargs})


@contextlib.contextmanager
def _patched(module, changes):
    missing = object()
    before = {name: vars(module).get(name, missing) for name in changes}
    for name, value in changes.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(module, name)
            else:
                setattr(module, name, value)


def make(name, **defaults):
    """Makes a loaded module a module of settings."""
    module = sys.modules[name]
    module.__class__ = Settings
    vars(module).update(defaults)
