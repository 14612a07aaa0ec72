from ptcore._types cimport *

cdef extern from "ptcore/backend.h" nogil:
    enum:
        PT_DECOMPOSE

    ctypedef struct pt_backend:
        uint32_t abi, size
        void *(*allocate)(int64_t nbytes, int index) noexcept nogil
        void (*release)(void *data, int64_t nbytes, int index) noexcept nogil
        int (*copy)(const pt_view *dst, const pt_view *src) noexcept nogil
        int (*elementwise)(int op, const char *name, int compute, int loop_out, const pt_view *out,
                           const pt_view *inputs, int nin, const void *params) noexcept nogil
        int (*synchronize)(int index) noexcept nogil
        void *(*stream)(int index) noexcept nogil
        const char *(*error)() noexcept nogil
        int (*copy_async)(const pt_view *dst, const pt_view *src) noexcept nogil
        void *(*allocate_host)(int64_t nbytes) noexcept nogil
        void (*release_host)(void *data) noexcept nogil
        int (*owns_host)(const void *data) noexcept nogil
        int (*set_stream)(int index, void *stream) noexcept nogil
        int (*wait)(int index, void *waiting, int other, void *stream) noexcept nogil
        int (*record_stream)(void *data, int index, void *stream) noexcept nogil
        int (*device_of)(const void *data) noexcept nogil
        pt_kernel (*kernel)(const char *name) noexcept nogil

ctypedef const pt_backend *backend_pointer
cdef backend_pointer[8] BACKENDS            # by column; NULL for the CPU, for meta and for columns without a backend

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
cdef object stream_key(int column, int index)
cpdef bint are_streams_used() noexcept
cdef bint streams_used              # whether any thread has chosen a stream other than the default one
cdef int memory_failure(int column, int number) noexcept
cdef object device_check            # installed by backends: column -> callable or None
