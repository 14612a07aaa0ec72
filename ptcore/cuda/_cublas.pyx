"""cuBLAS and cuBLASLt as tables of typed pointers, filled from what cuda.pathfinder finds; and their settings."""
import os

from libc.stdint cimport int64_t, uintptr_t
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
        bint tf32, reduced_half, reduced_bfloat16, convolution_tf32
        int64_t workspace
    cppclass BlasLt:
        pass
    Blas blas
    BlasLt blas_lt
    BlasSettings blas_settings
    int (*load_blas)(int library, char *error) noexcept nogil

# In the order of the fields of Blas and BlasLt.
TABLES = {
    "cublas": ("cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode", "cublasGemmEx",
               "cublasGemmStridedBatchedEx"),
    "cublasLt": ("cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", "cublasLtMatmulDescSetAttribute",
                 "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy", "cublasLtMatmulPreferenceCreate",
                 "cublasLtMatmulPreferenceDestroy", "cublasLtMatmulPreferenceSetAttribute",
                 "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"),
}


def load(str name):
    """Fills the table of a library; RuntimeError that says what to install if it or a function of it is missing."""
    cdef bint first = name == "cublas"
    cdef void **slot = <void **>&blas if first else <void **>&blas_lt
    cdef void *library
    cdef void *function
    path = library_path(name)
    library = dlopen(path.encode(), RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        raise RuntimeError(f"{name}: {path} cannot be loaded: pip install 'ptcore[cuda13]'")
    found = []
    for symbol in TABLES[name]:
        function = dlsym(library, symbol.encode())
        if function == NULL:
            raise RuntimeError(f"{name}: {path} has no {symbol}; an older version? pip install --upgrade "
                               "'ptcore[cuda13]'")
        found.append(<uintptr_t>function)
    if len(found) * sizeof(void *) != (sizeof(Blas) if first else sizeof(BlasLt)):
        raise SystemError(f"{name}: the table and its names differ")
    for i, address in enumerate(found):
        slot[<int>i] = <void *><uintptr_t>address


cdef int load_for_kernels(int library, char *error) noexcept nogil:
    with gil:
        try:
            load(("cublas", "cublasLt")[library])
            return 0
        except BaseException as e:
            text = str(e).encode()
            snprintf(error, 256, "%s", <const char *>text)
            return 1


def start():
    """Lets the first product load the library, with the settings made so far and those to come."""
    global load_blas
    from ptcore import _precision
    load_blas = load_for_kernels
    kib = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "").strip()
    if kib:
        if not kib.isascii() or not kib.isdigit():
            raise RuntimeError(f"CUBLASLT_WORKSPACE_SIZE: must be a number of KiB, got {kib!r}")
        blas_settings.workspace = 1024 * int(kib)
    for name, value in _precision.matmul.items():
        set_setting(name, value)
    _precision.told = set_setting


def set_setting(str name, bint value):
    """One of ``_precision.matmul``, for the products that come."""
    if name == "tf32":
        blas_settings.tf32 = value
    elif name == "reduced_half":
        blas_settings.reduced_half = value
    elif name == "convolution_tf32":
        blas_settings.convolution_tf32 = value
    else:
        blas_settings.reduced_bfloat16 = value
