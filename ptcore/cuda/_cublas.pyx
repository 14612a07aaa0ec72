"""cuBLAS as a table of typed pointers, filled from the library that cuda.pathfinder finds; and its settings."""
from libc.stdint cimport uintptr_t
from libc.stdio cimport snprintf

from ptcore.cuda._libraries import library_path

cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *name, int flags)
    void *dlsym(void *library, const char *name)
    enum:
        RTLD_NOW, RTLD_LOCAL

cdef extern from "cublas.hpp" namespace "pt_cuda" nogil:
    cppclass Blas:
        pass
    cppclass BlasSettings:
        bint tf32, reduced_half, reduced_bfloat16
    Blas blas
    BlasSettings blas_settings
    int (*load_blas)(char *error) noexcept nogil

# In the order of struct Blas.
NAMES = ("cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode",
         "cublasGetVersion_v2", "cublasGemmEx", "cublasGemmStridedBatchedEx")


def load():
    """Fills the table; RuntimeError if a function is missing."""
    cdef void **slot = <void **>&blas
    cdef void *library
    cdef void *function
    path = library_path("cublas")
    library = dlopen(path.encode(), RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        raise RuntimeError(f"cuBLAS: {path} cannot be loaded")
    found = []
    for name in NAMES:
        function = dlsym(library, name.encode())
        if function == NULL:
            raise RuntimeError(f"cuBLAS: {path} has no {name}; an older version?")
        found.append(<uintptr_t>function)
    for i, address in enumerate(found):
        slot[<int>i] = <void *><uintptr_t>address


cdef int load_for_kernels(char *error) noexcept nogil:
    with gil:
        try:
            load()
            return 0
        except BaseException as e:
            text = str(e).encode()
            snprintf(error, 256, "%s", <const char *>text)
            return 1


def start():
    """Lets the first product load the library."""
    global load_blas
    load_blas = load_for_kernels


def settings():
    return {"tf32": blas_settings.tf32, "reduced_half": blas_settings.reduced_half,
            "reduced_bfloat16": blas_settings.reduced_bfloat16}


def set_setting(str name, bint value):
    if name == "tf32":
        blas_settings.tf32 = value
    elif name == "reduced_half":
        blas_settings.reduced_half = value
    elif name == "reduced_bfloat16":
        blas_settings.reduced_bfloat16 = value
    else:
        raise KeyError(name)
