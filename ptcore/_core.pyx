"""The one shared object: lists the modules linked into it and imports them from it.

``import ptcore._dtype`` finds no file of that name; the finder below answers with a spec whose
file is this shared object, and the loader calls the module's own PyInit_ function. PT_BUNDLE, a
macro of the build, gives each module a PyInit_ name of its own: many modules are called ``bodies``.
"""
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec

from cpython.ref cimport PyObject

cdef extern from "Python.h":
    ctypedef struct PyModuleDef:
        pass
    object PyModule_FromDefAndSpec(PyModuleDef *, object)

cdef extern from *:
    """
    #define PT_MODULE(name, init) extern "C" PyObject *PyInit_##init(void);
    PT_BUNDLE
    #undef PT_MODULE
    #define PT_MODULE(name, init) {#name, PyInit_##init},
    struct pt_module { const char *name; PyObject *(*init)(void); };
    static const pt_module pt_modules[] = {PT_BUNDLE {NULL, NULL}};
    """
    struct Module "pt_module":
        const char *name
        PyObject *(*init)() noexcept
    const Module *pt_modules

cdef dict _places = {}
cdef int _n = 0
while pt_modules[_n].name != NULL:
    _places[pt_modules[_n].name.decode()] = _n
    _n += 1
MODULES = frozenset(_places)


class BundleLoader(ExtensionFileLoader):
    """Creates a module of this shared object; execution is that of any extension module."""

    def create_module(self, spec):
        cdef int place = _places[spec.name]
        cdef PyObject *definition = pt_modules[place].init()
        if definition == NULL:
            raise ImportError(f"{spec.name}: its module definition could not be made", name=spec.name)
        return PyModule_FromDefAndSpec(<PyModuleDef *>definition, spec)


class BundleFinder:
    """Finds the modules that are linked into this shared object."""

    def __init__(self, path):
        self.path = path

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES:
            return None
        spec = ModuleSpec(name, BundleLoader(name, self.path), origin=self.path)
        spec.has_location = True
        return spec


def install(path):
    """Puts the finder in front of the path finder."""
    sys.meta_path.insert(0, BundleFinder(path))
