"""Kernels of Fourier transforms: SciPy's pocketfft. The first transform imports this module and SciPy's extension.

The extension module behind scipy.fft takes strides of any kind, dims, a normalisation and an ``out``, as the ops here
need them. The public functions check arguments that are correct already, which takes several times as long as a small
transform. They are called only if the extension module is not found.

The library is called through Python: a kernel takes the GIL, and the library gives it up while it computes. Arrays
are made for one call, over the memory of the views. No address is exported, and memory that another thread frees
meanwhile is kept, as for any kernel.
"""
from cpython.buffer cimport Py_buffer
from libc.stdio cimport snprintf
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._dtype cimport ITEMSIZE
from ptcore._ops.table.ids cimport register_kernels
from ptcore._ops.levels import get_num_threads
from ptcore._libraries import extension, library

cdef extern from "Python.h":
    object PyMemoryView_FromBuffer(Py_buffer *)

cdef object _c2c, _c2r, _r2c        # set at the end: functions of the extension module, or those below
cdef enum:
    SEVERAL = 16384             # with fewer elements, starting several threads is not worthwhile


cdef object array(const pt_view *x):
    """An ndarray over the elements of a view that has elements; sizes and strides are copies."""
    cdef Py_buffer b
    cdef Py_ssize_t[64] strides
    cdef int i
    memset(&b, 0, sizeof(b))
    for i in range(x.ndim):
        strides[i] = x.strides[i] * ITEMSIZE[x.dtype]
    b.buf = x.data
    b.itemsize = ITEMSIZE[x.dtype]
    b.len = x.numel * b.itemsize
    b.ndim = x.ndim
    b.format = (<char *>b"f" if x.dtype == PT_FLOAT32 else <char *>b"d" if x.dtype == PT_FLOAT64 else
                <char *>b"Zf" if x.dtype == PT_COMPLEX64 else <char *>b"Zd")
    b.shape = <Py_ssize_t *>x.sizes
    b.strides = strides
    return library("numpy").asarray(PyMemoryView_FromBuffer(&b))


cdef int transform(pt_call *call, object function, bint sized) noexcept:
    """Calls the library with the dims, the normalisation, the direction and, if ``sized``, the size of the last dim."""
    cdef const pt_param *p = call.params
    cdef const pt_view *x = &call.inputs[0]
    cdef int j
    if call.out.numel == 0:
        return PT_OK
    pt_kernels_enter()
    try:
        dims = (p.list[0],) if p.count == 1 else tuple([p.list[j] for j in range(p.count)])
        threads = get_num_threads() if x.numel + call.out.numel > SEVERAL else 1
        forward = p[call.nparams - 1].i != 0
        if sized:
            function(array(x), dims, p[2].i, forward, p[1].i, array(call.out), threads)
        else:
            function(array(x), dims, forward, p[1].i, array(call.out), threads)
    except MemoryError:
        snprintf(call.error, sizeof(call.error), "not enough memory for the transform")
        return PT_MEMORY_ERROR
    except Exception as e:
        text = str(e).encode()
        snprintf(call.error, sizeof(call.error), "%s", <char *>text)
        return PT_RUNTIME_ERROR
    finally:
        pt_kernels_leave()
    return PT_OK


cdef int c2c(pt_call *call) noexcept with gil:
    return transform(call, _c2c, False)


cdef int r2c(pt_call *call) noexcept with gil:
    """A real transform; the library fills in the second half of the spectrum if requested."""
    return transform(call, _r2c if call.params[2].i else _c2c, False)


cdef int c2r(pt_call *call) noexcept with gil:
    return transform(call, _c2r, True)


# -- by scipy.fft's public functions ---------------------------------------------------------------

cdef str word(int normalization, bint forward):
    return ("backward" if forward else "forward", "ortho", "forward" if forward else "backward")[normalization]


def public_c2c(a, axes, forward, normalization, out, workers):
    fft = library("scipy.fft")
    function = fft.fftn if forward else fft.ifftn
    out[...] = function(a, axes=axes, norm=word(normalization, forward), workers=workers)


def public_r2c(a, axes, forward, normalization, out, workers):
    fft = library("scipy.fft")
    function = fft.rfftn if forward else fft.ihfftn
    out[...] = function(a, axes=axes, norm=word(normalization, forward), workers=workers)


def public_c2r(a, axes, size, forward, normalization, out, workers):
    fft = library("scipy.fft")
    function = fft.hfftn if forward else fft.irfftn
    sizes = [*[a.shape[d] for d in axes[:-1]], size]
    out[...] = function(a, s=sizes, axes=axes, norm=word(normalization, forward), workers=workers)


cdef tuple functions():
    """c2c, r2c and c2r of SciPy's extension module, which has another name since SciPy 1.18; else public functions."""
    try:
        module = extension("scipy.fft._duccfft.pyduccfft", "scipy.fft._pocketfft.pypocketfft")
        return module.c2c, module.r2c, module.c2r
    except (ImportError, AttributeError):
        return public_c2c, public_r2c, public_c2r


_c2c, _r2c, _c2r = functions()

cdef pt_kernel_entry[4] _entries
_entries[0].name, _entries[0].kernel = b"pocketfft:c2c", c2c
_entries[1].name, _entries[1].kernel = b"pocketfft:r2c", r2c
_entries[2].name, _entries[2].kernel = b"pocketfft:c2r", c2r
_entries[3].name = NULL
register_kernels(_entries, DEVICE_CPU)


def by_extension():
    """Whether the extension module was found."""
    return _c2c is not public_c2c
