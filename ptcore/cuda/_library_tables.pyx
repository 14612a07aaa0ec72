"""cuBLAS, cuBLASLt and cuFFT as tables of typed pointers, filled from what cuda.pathfinder finds; their settings."""
import os

from libc.stdint cimport int64_t, uintptr_t
from libc.stdio cimport snprintf

from ptcore.cuda._libraries import extra_of, library_path

cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *name, int flags)
    void *dlsym(void *library, const char *name)
    enum:
        RTLD_NOW, RTLD_LOCAL

cdef extern from "libraries.hpp" namespace "pt_cuda" nogil:
    int (*load_library)(int library, char *error) noexcept nogil

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

cdef extern from "cufft.hpp" namespace "pt_cuda" nogil:
    cppclass Fft:
        pass
    Fft fft
    int64_t fft_plans(int device)
    int64_t fft_plan_limit(int device)
    void set_fft_plan_limit(int device, int64_t most)
    void forget_fft_plans(int device)

# In the order of the fields of Blas, BlasLt and Fft; libraries in that of LIBRARY_BLAS and the others.
TABLES = {
    "cublas": ("cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode", "cublasGemmEx",
               "cublasGemmStridedBatchedEx"),
    "cublasLt": ("cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", "cublasLtMatmulDescSetAttribute",
                 "cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy", "cublasLtMatmulPreferenceCreate",
                 "cublasLtMatmulPreferenceDestroy", "cublasLtMatmulPreferenceSetAttribute",
                 "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"),
    "cufft": ("cufftCreate", "cufftSetAutoAllocation", "cufftXtMakePlanMany", "cufftSetStream", "cufftSetWorkArea",
              "cufftXtExec", "cufftDestroy"),
}
cdef void *_slots[3]
cdef size_t _sizes[3]
_slots[0], _slots[1], _slots[2] = &blas, &blas_lt, &fft
_sizes[0], _sizes[1], _sizes[2] = sizeof(Blas), sizeof(BlasLt), sizeof(Fft)


def load(str name):
    """Fills the table of a library; RuntimeError that says what to install if it or a function of it is missing."""
    cdef int which = list(TABLES).index(name)
    cdef void **slot = <void **>_slots[which]
    cdef void *library
    cdef void *function
    path = library_path(name)
    library = dlopen(path.encode(), RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        raise RuntimeError(f"{name}: {path} cannot be loaded: pip install {extra_of(name)}")
    found = []
    for symbol in TABLES[name]:
        function = dlsym(library, symbol.encode())
        if function == NULL:
            raise RuntimeError(f"{name}: {path} has no {symbol}; an older version? pip install --upgrade "
                               f"{extra_of(name)}")
        found.append(<uintptr_t>function)
    if len(found) * sizeof(void *) != _sizes[which]:
        raise SystemError(f"{name}: the table and its names differ")
    for i, address in enumerate(found):
        slot[<int>i] = <void *><uintptr_t>address


cdef int load_for_kernels(int library, char *error) noexcept nogil:
    with gil:
        try:
            load(list(TABLES)[library])
            return 0
        except BaseException as e:
            text = str(e).encode()
            snprintf(error, 256, "%s", <const char *>text)
            return 1


def start():
    """Lets the first product load the library, with the settings made so far and those to come."""
    global load_library
    from ptcore import _precision
    load_library = load_for_kernels
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


# -- plans of transforms, of a device that is open ----------------------------------------------------------

def plans(int device):
    """How many are kept."""
    return fft_plans(device)


def plan_limit(int device):
    """How many may be kept."""
    return fft_plan_limit(device)


def set_plan_limit(int device, int64_t most):
    """Gives those up that were not used for longest."""
    set_fft_plan_limit(device, most)


def forget_plans(int device):
    """Gives all up."""
    forget_fft_plans(device)
