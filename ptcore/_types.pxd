# C declarations that all layers share: dtype codes, kernel views, storage blocks, state bits.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "ptcore/kernel.h" nogil:
    enum:
        PT_BOOL, PT_UINT8, PT_INT8, PT_UINT16, PT_INT16, PT_UINT32, PT_INT32, PT_UINT64
        PT_INT64, PT_FLOAT16, PT_BFLOAT16, PT_FLOAT32, PT_FLOAT64, PT_COMPLEX64, PT_COMPLEX128
        PT_FLOAT8_E4M3FN, PT_FLOAT8_E5M2, PT_FLOAT8_E4M3FNUZ, PT_FLOAT8_E5M2FNUZ, PT_FLOAT8_E8M0FNU, PT_COMPLEX32
        PT_NDTYPES, PT_NONE, PT_MAX_DIM, PT_MAX_ELEMENTWISE_INPUTS
        PT_ABI, PT_OK, PT_RUNTIME_ERROR, PT_VALUE_ERROR, PT_INDEX_ERROR, PT_TYPE_ERROR
        PT_MEMORY_ERROR, PT_LINALG_ERROR, PT_NEED_BLAS, PT_STRIDED
        PT_PARAM_NONE, PT_PARAM_INT, PT_PARAM_FLOAT, PT_PARAM_COMPLEX, PT_PARAM_INTS
        PT_KIND_FLOATING, PT_KIND_COMPLEX, PT_KIND_FLOAT8, PT_KIND_STORED
    bint pt_is(int dtype, uint32_t kinds)
    char pt_kind(int dtype)

    ctypedef struct pt_view:
        char *data
        const int64_t *sizes
        const int64_t *strides
        int64_t numel
        int32_t ndim
        uint8_t dtype
        uint8_t contiguous
        uint8_t device
        int8_t device_index
        uint8_t layout

    ctypedef struct pt_param:
        int32_t kind
        int32_t count
        int64_t i
        double d
        double im
        const int64_t *list

    ctypedef struct pt_call:
        int32_t op
        int32_t nin
        int32_t nout
        int32_t nparams
        const pt_view *inputs "in"
        pt_view *out
        const pt_param *params
        uint64_t seed
        uint64_t offset
        void *stream
        char error[256]

    ctypedef int (*pt_kernel)(pt_call *) noexcept nogil

    ctypedef struct pt_kernel_entry:
        const char *name
        pt_kernel kernel

cdef extern from "loops.h" nogil:
    ctypedef void (*pt_loop)(char *const *, int64_t, const void *) noexcept nogil

    ctypedef struct pt_elementwise:
        const char *name
        pt_loop *loop
        pt_loop *vs
        pt_loop *sv
        int32_t nin
        int32_t cost
    pt_loop pt_cast_loop(int from_, int to)
    int pt_loop_dtype(int dtype)

cdef extern from "casts.h" nogil:
    const void *pt_cast_params(int from_, int to)

cdef extern from "_storage.h":
    enum:
        PT_STORAGE_READONLY, PT_STORAGE_EXPORTED, PT_STORAGE_SHARED, PT_STORAGE_META, PT_STORAGE_OWNS_HANDLE

    ctypedef struct pt_storage:
        int64_t refs
        int64_t nbytes
        char *data
        uint64_t version
        void *owner
        void (*deleter)(pt_storage *) noexcept
        uint8_t device
        int8_t device_index
        uint16_t flags
        void *handle

    ctypedef struct pt_memory_stats:
        int64_t allocated, peak_allocated, cached, hits, misses, live_blocks, cap

    pt_storage *pt_storage_new(int64_t)
    pt_storage *pt_storage_new_meta(int64_t)
    pt_storage *pt_storage_wrap(void *, int64_t, void *, void (*)(pt_storage *) noexcept, int)
    int pt_storage_move(pt_storage *, int64_t)
    int pt_storage_share(pt_storage *, char *, int, int64_t, void *, void (*)(pt_storage *) noexcept)
    char *pt_shared_map(int, int64_t)
    void pt_shared_unmap(char *, int64_t)
    void pt_shared_close(int)
    void pt_storage_retire(pt_storage *)
    void pt_storage_set_release(void (*)(pt_storage *) noexcept)
    void pt_kernels_enter()
    void pt_kernels_leave()
    void pt_kernels_forked()
    void pt_storage_incref(pt_storage *)
    void pt_storage_decref(pt_storage *)
    void pt_memory_empty_cache()
    void pt_memory_get_stats(pt_memory_stats *)
    void pt_memory_reset_peak()
    void pt_memory_set_cap(int64_t)

cdef extern from "_state.h" nogil:
    enum:
        PT_REQUIRES_GRAD, PT_NONCONTIGUOUS, PT_SUBCLASS, PT_NON_CPU, PT_INTERPOSED, PT_VIEW
        PT_DATA, PT_INFERENCE, PT_TANGENT, PT_NOT_EXACT, PT_NO_GRAD_VIEW, PT_MULTI_VIEW
        PT_RETAIN_GRAD, PT_LAYOUT, PT_STANDARD, PT_VALUELESS
        PT_MODE_AUTOCAST, PT_MODE_FUNCTION, PT_MODE_SAVED_HOOKS, PT_SEEN_ANOMALY, PT_MODE_PLANNING, PT_MODE_NO_LINES
        PT_FOREIGN
        PT_SLOW, PT_RECORD_SLOW

    ctypedef struct pt_state:
        uint32_t mode
        uint8_t grad_enabled
        uint8_t inference
        uint8_t torch_function_off
        uint8_t device_set
        uint8_t autocast
        uint8_t *autocast_dtype
        uint8_t autocast_uncached
        int autocast_depth
        uint8_t value_read
        void *plan
        void *planner
        void *stacks
    pt_state pt_tls
    uint32_t pt_modes_seen

# Devices: columns of the kernel table. Columns from DEVICE_FREE on are given to
# backends registered at run time.
cdef enum:
    DEVICE_CPU = 0
    DEVICE_CUDA = 1
    DEVICE_META = 2
    DEVICE_FREE = 3
    N_DEVICES = 8
