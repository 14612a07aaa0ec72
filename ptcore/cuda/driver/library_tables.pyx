"""CUDA's libraries as tables of typed pointers, filled from what cuda.pathfinder finds; their settings."""
import os

from libc.stdint cimport int64_t, uintptr_t
from libc.stdio cimport snprintf

from ptcore.cuda.driver.libraries import extra_of, library_path

cdef extern from "<dlfcn.h>" nogil:
    void *dlopen(const char *name, int flags)
    void *dlsym(void *library, const char *name)
    enum:
        RTLD_NOW, RTLD_LOCAL

cdef extern from "libraries.hpp" namespace "pt_cuda" nogil:
    enum:
        LIBRARIES
    cppclass Library:
        const char *name
        void **table
        const char *const *functions
        int count
    const Library libraries[]
    int (*load_library)(int library, char *error) noexcept nogil
    int current_handle(int library, int device, void **handle, char *error)

cdef extern from "cublas.hpp" namespace "pt_cuda" nogil:
    cppclass BlasSettings:
        bint tf32, reduced_half, reduced_bfloat16, convolution_tf32
        int64_t workspace
    BlasSettings blas_settings

cdef extern from "cufft.hpp" namespace "pt_cuda" nogil:
    int64_t fft_plans(int device)
    int64_t fft_plan_limit(int device)
    void set_fft_plan_limit(int device, int64_t most)
    void forget_fft_plans(int device)

cdef extern from "cudnn.hpp" namespace "pt_cuda" nogil:
    cppclass DnnSettings:
        bint enabled, attention, deterministic, all_deterministic
    ctypedef struct DnnAttention:
        int64_t device, backward, type, causal, deterministic, n, heads, held, l, s, e, v
    DnnSettings dnn_settings
    int64_t attention_room(const DnnAttention &a, const char *device)


# A library's name -> the names of its functions, in the order of its table.
TABLES = {libraries[k].name.decode(): tuple([libraries[k].functions[i].decode() for i in range(libraries[k].count)])
          for k in range(LIBRARIES)}


def load(str name):
    """Fills the table of a library; RuntimeError that says what to install if it or a function of it is missing."""
    cdef void **table = libraries[list(TABLES).index(name)].table
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
    for i, address in enumerate(found):
        table[<int>i] = <void *><uintptr_t>address


def load_if_found(str name):
    """Loads an optional library: 0, or 1 if it is not installed or, with a warning, if it cannot be used."""
    try:
        library_path(name)
    except RuntimeError:
        return 1
    try:
        load(name)
    except RuntimeError as e:
        import warnings
        warnings.warn(f"{e} (it is not used)", RuntimeWarning, stacklevel=2)
        return 1
    return 0


def has_cudnn():
    """Whether cuDNN is installed and of use."""
    return load_if_found("cudnn") == 0


cdef int load_for_kernels(int library, char *error) noexcept nogil:
    with gil:
        name = list(TABLES)[library]
        try:
            if name == "cudnn":
                return load_if_found(name)
            load(name)
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
    _precision.has_cudnn = has_cudnn


def set_setting(str name, bint value):
    """Sets a setting of ``_precision.matmul`` for the products that follow."""
    if name == "tf32":
        blas_settings.tf32 = value
    elif name == "reduced_half":
        blas_settings.reduced_half = value
    elif name == "convolution_tf32":
        blas_settings.convolution_tf32 = value
    elif name == "cudnn_enabled":
        dnn_settings.enabled = value
    elif name == "cudnn_deterministic":
        dnn_settings.deterministic = value
    elif name == "deterministic":
        dnn_settings.all_deterministic = value
    elif name == "cudnn_attention":
        dnn_settings.attention = value
    else:
        blas_settings.reduced_bfloat16 = value


def handle(str name, int device):
    """The address of this thread's handle of ``"cublas"`` or ``"cusolver"``, set to a device's current stream."""
    cdef void *found = NULL
    cdef char error[256]
    cdef int which = list(TABLES).index(name)
    cdef int status
    with nogil:
        status = current_handle(which, device, &found, error)
    if status:
        raise RuntimeError((<bytes>error).decode())
    return <uintptr_t>found


# -- plans of transforms, of a device that is open ----------------------------------------------------------

def plans(int device):
    """The number of plans that are kept."""
    return fft_plans(device)


def plan_limit(int device):
    """The most plans that may be kept."""
    return fft_plan_limit(device)


def set_plan_limit(int device, int64_t most):
    """Sets the limit, and drops the plans above it that were not used for longest."""
    set_fft_plan_limit(device, most)


def forget_plans(int device):
    """Drops all plans."""
    forget_fft_plans(device)


# -- plans of attention, for a device that is not there ------------------------------------------------------

def room_for_attention(str device, sizes, bint backward=False, bint causal=False, bint deterministic=False):
    """The workspace of cuDNN's plan for bfloat16 on the device that a text describes; below 0 if there is no plan.

    ``sizes``: of batch, heads, heads of keys, queries, keys, a query and a value.
    """
    cdef DnnAttention a
    load("cudnn")
    a.device = 0
    a.n, a.heads, a.held, a.l, a.s, a.e, a.v = sizes
    a.type, a.backward, a.causal, a.deterministic = 9, backward, causal, deterministic
    return attention_room(a, device.encode())
