from ptcore._types cimport *

cdef extern from "ptcore/backend.h" nogil:
    ctypedef struct pt_backend:
        uint32_t abi, size
        void *(*allocate)(int64_t nbytes, int index) noexcept nogil
        void (*release)(void *data, int64_t nbytes, int index) noexcept nogil
        int (*copy)(const pt_view *dst, const pt_view *src) noexcept nogil
        int (*elementwise)(const char *name, int compute, int loop_out, const pt_view *out,
                           const pt_view *inputs, int nin, const void *params) noexcept nogil
        int (*synchronize)(int index) noexcept nogil
        void *(*stream)(int index) noexcept nogil
        const char *(*error)() noexcept nogil

ctypedef const pt_backend *backend_pointer
cdef backend_pointer[8] BACKENDS            # by column; NULL for the CPU, meta and free ones

cdef class device:
    cdef readonly str type
    cdef int column                 # column of the kernel table
    cdef int number                 # -1: none given

cdef device CPU
cdef device META
cdef device device_of(int column, int number)
cdef device as_device(object value, const char *op)
cdef device current_device()
cdef str backend_error(int column)
cdef object device_check            # installed by backends: column -> callable or None
