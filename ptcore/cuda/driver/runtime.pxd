# Declarations of the runtime for other compiled modules of the backend. See runtime.pyx.
from cuda.bindings cimport cydriver as cu
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from ptcore._types cimport pt_view

cdef extern from "fault.h" nogil:
    ctypedef struct Fault:
        int32_t found

cdef extern from "state.hpp" namespace "pt_cuda" nogil:
    enum:
        MAX_DEVICES

    cppclass Grid:
        unsigned x, y, z

    cppclass Kernel:
        const char *program
        const char *name

    cppclass Device:
        int multiprocessors, shared_limit, capability
        Fault *fault
        uint64_t capture_pool
        const uint64_t *random_state
        uint64_t random_base

    cppclass Driver:
        Device *devices
        int (*set_device)(int device) noexcept nogil
        int (*launch)(void *function, Grid grid, unsigned threads, unsigned shared, void *stream,
                      const void *args) noexcept nogil
        int (*copy)(void *dst, const void *src, size_t nbytes, void *stream) noexcept nogil
        int (*copy_peer)(void *dst, int to, const void *src, int origin, size_t nbytes, void *stream) noexcept nogil
        int (*clear)(void *dst, size_t nbytes, void *stream) noexcept nogil
        int (*synchronize)(void *stream) noexcept nogil
        int (*synchronize_device)(int device) noexcept nogil
        int (*wait)(void *waiting, int waiting_device, void *stream, int device) noexcept nogil
        int (*capturing)(void *stream) noexcept nogil
        int (*exchange)(int mode) noexcept nogil
        int (*find)(const Kernel *kernel, uint64_t types, int device, void **function, char *error) noexcept nogil
        int (*host_copy)(const pt_view *dst, const pt_view *src) noexcept nogil
        void *(*stream)(int device) noexcept nogil
        void *(*allocate)(int64_t nbytes, int device) noexcept nogil
        void (*release)(void *data, int64_t nbytes, int device) noexcept nogil
        int (*keep_host)(void *data, int device, void *stream) noexcept nogil
        const char *(*text)(int result) noexcept nogil
        const char *(*op_name)(int op) noexcept nogil
        int (*found_wait)(char *error) noexcept nogil
        int blocking, sync_mode, forked

    cppclass ThreadState:
        int device
        void **streams
        uint64_t *pools

    Driver driver
    ThreadState &thread_state()
    char *last_error
    int take_fault(int device, char *error)
    const char *hint_of(int result)

cdef int check(int result, str what) except -1
cdef bint captures_any() noexcept nogil
cdef int exchange(int mode) noexcept nogil
cdef int use_device(int device) except -1
cdef cu.CUstream handle_of(void *stream) noexcept nogil
