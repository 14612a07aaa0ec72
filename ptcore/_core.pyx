"""The one shared object: lists the modules linked into it and imports them from it.

``import ptcore._dtype`` finds no file of that name; the finder below answers with a spec whose
file is this shared object, where the module's own PyInit_ function stands.
"""
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

cdef extern from *:
    const char *PT_BUNDLE

MODULES = frozenset(PT_BUNDLE.decode().split(","))


class BundleFinder:
    """Finds the modules that are linked into this shared object."""

    def __init__(self, path):
        self.path = path

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES:
            return None
        spec = ModuleSpec(name, ExtensionFileLoader(name, self.path), origin=self.path)
        spec.has_location = True
        return spec


def install(path):
    """Puts the finder in front of the path finder."""
    sys.meta_path.insert(0, BundleFinder(path))
