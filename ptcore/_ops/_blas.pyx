"""The BLAS that large products use: SciPy's, by function pointers from cython_blas.

Fetched at the first large product. The extension file is loaded by itself, without
scipy.linalg's package import, where that works; else the plain import.
"""
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

cdef extern from *:
    """
    #include "ptcore/blas.h"
    template <class F> static void pt_set(F &slot, void *p) { slot = reinterpret_cast<F>(p); }
    static void pt_set_gemm(void *s, void *d, void *c, void *z) {
        pt_set(pt_blas.sgemm, s);
        pt_set(pt_blas.dgemm, d);
        pt_set(pt_blas.cgemm, c);
        pt_set(pt_blas.zgemm, z);
    }
    """
    void pt_set_gemm(void *s, void *d, void *c, void *z)

_loaded = None


def _module(name):
    """scipy.linalg.<name>, if possible without importing scipy.linalg."""
    import importlib
    import importlib.util
    import sys
    full = f"scipy.linalg.{name}"
    if full in sys.modules:
        return sys.modules[full]
    try:
        scipy = importlib.util.find_spec("scipy")
        import glob
        import os
        folder = os.path.join(scipy.submodule_search_locations[0], "linalg")
        import scipy                    # its __init__ alone sets up the bundled libraries
        for path in glob.glob(os.path.join(folder, name + ".*")):
            if path.endswith((".so", ".pyd")):
                spec = importlib.util.spec_from_file_location(full, path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    except (ImportError, OSError, AttributeError):
        pass
    return importlib.import_module(full)


cdef void *pointer(module, str name) except NULL:
    """The address of a routine, its signature checked against BLAS's."""
    capsule = module.__pyx_capi__[name]
    cdef const char *signature = PyCapsule_GetName(capsule)
    text = signature.decode()
    if not text.startswith("void (char *"):
        raise ImportError(f"{name}: unexpected signature {text!r} in scipy.linalg.cython_blas")
    return PyCapsule_GetPointer(capsule, signature)


def load():
    """Fills the table of BLAS routines; raises ImportError if SciPy's cannot be had."""
    global _loaded
    if _loaded is not None:
        return
    module = _module("cython_blas")
    pt_set_gemm(pointer(module, "sgemm"), pointer(module, "dgemm"), pointer(module, "cgemm"),
                pointer(module, "zgemm"))
    _loaded = module
