"""The BLAS and LAPACK that kernels use: SciPy's, by function pointers from cython_blas and
cython_lapack.

They are fetched at the first call that needs them.
"""
import _thread
import os

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from ptcore._libraries import extension

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
    static size_t pt_blas_address() { return reinterpret_cast<size_t>(&pt_blas); }
    static void pt_set_routine(int which, int type, void *p) { pt_blas.routine[which][type] = p; }
    static void pt_set_threads(size_t get, size_t set) {
        pt_blas_set_threads(reinterpret_cast<int (*)(void)>(get), reinterpret_cast<void (*)(int)>(set));
    }
    """
    void pt_set_routine(int which, int type, void *p)
    void pt_set_threads(size_t get, size_t set)
    void pt_set_gemm(void *s, void *d, void *c, void *z)
    void pt_blas_forked()
    size_t pt_blas_address()

_loaded = None
_lock = _thread.allocate_lock()


cdef void *pointer(module, str name, int parameters) except NULL:
    """The address of a routine. Its signature is checked against Fortran's."""
    capsule = module.__pyx_capi__[name]
    cdef const char *signature = PyCapsule_GetName(capsule)
    text = signature.decode()
    if not text.startswith(("void (char *", "void (int *")) or text.count("*") != parameters:
        raise ImportError(f"{name}: unexpected signature {text!r} in {module.__name__}")
    return PyCapsule_GetPointer(capsule, signature)


# (get, set) functions of the number of threads, under the names that BLAS libraries use.
_THREAD_FUNCTIONS = (
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)


def thread_functions(path):
    """Addresses of a BLAS library's thread functions; (0, 0) if it has none of the known names.

    A name is looked up in the extension file and in the libraries that it was linked to.
    """
    import ctypes
    try:
        found = ctypes.CDLL(path)
    except OSError:
        return 0, 0
    for names in _THREAD_FUNCTIONS:
        try:
            return tuple([ctypes.cast(getattr(found, n), ctypes.c_void_p).value for n in names])
        except AttributeError:
            continue
    return 0, 0


# (names of the four types, numbers of their parameters), in the order of pt_routine
_ROUTINES = (
    (("sgesv", "dgesv", "cgesv", "zgesv"), (8, 8, 8, 8)),
    (("sgetrf", "dgetrf", "cgetrf", "zgetrf"), (6, 6, 6, 6)),
    (("spotrf", "dpotrf", "cpotrf", "zpotrf"), (5, 5, 5, 5)),
    (("strsm", "dtrsm", "ctrsm", "ztrsm"), (11, 11, 11, 11)),
    (("sgeqrf", "dgeqrf", "cgeqrf", "zgeqrf"), (8, 8, 8, 8)),
    (("sorgqr", "dorgqr", "cungqr", "zungqr"), (9, 9, 9, 9)),
    (("ssyevd", "dsyevd", "cheevd", "zheevd"), (11, 11, 13, 13)),
    (("sgetrs", "dgetrs", "cgetrs", "zgetrs"), (9, 9, 9, 9)),
    (("sgeev", "dgeev", "cgeev", "zgeev"), (14, 14, 14, 14)),
    (("ssytrf", "dsytrf", "csytrf", "zsytrf"), (8, 8, 8, 8)),
    (("ssytrf", "dsytrf", "chetrf", "zhetrf"), (8, 8, 8, 8)),
    (("ssytrs", "dsytrs", "csytrs", "zsytrs"), (9, 9, 9, 9)),
    (("ssytrs", "dsytrs", "chetrs", "zhetrs"), (9, 9, 9, 9)),
    (("sgesdd", "dgesdd", "cgesdd", "zgesdd"), (14, 14, 15, 15)),
    (("sgetri", "dgetri", "cgetri", "zgetri"), (7, 7, 7, 7)),
)


def table_address():
    """The address of the table of routines, for tests of kernels."""
    return pt_blas_address()


def load():
    """Fills the table of routines; raises ImportError if SciPy's routines are not available."""
    if _loaded is None:
        with _lock:             # an extension module must be executed only once
            if _loaded is None:
                _load()


def _load():
    global _loaded
    module = extension("scipy.linalg.cython_blas")
    lapack = extension("scipy.linalg.cython_lapack")
    pt_set_gemm(pointer(module, "sgemm", 13), pointer(module, "dgemm", 13),
                pointer(module, "cgemm", 13), pointer(module, "zgemm", 13))
    for which, (names, counts) in enumerate(_ROUTINES):
        for i in range(4):
            pt_set_routine(which, i, pointer(module if "trsm" in names[i] else lapack, names[i], counts[i]))
    get, set_ = thread_functions(module.__file__)
    pt_set_threads(get, set_)
    _loaded = module, lapack


def _forked():
    """Resets the lock in a forked child: threads that were loading do not go on there."""
    global _lock
    _lock = _thread.allocate_lock()
    pt_blas_forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
