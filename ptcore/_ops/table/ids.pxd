# The op tables, by id. See ids.pyx.
from ptcore._gil cimport PyThreadState, release_gil, restore_gil
from ptcore._types cimport *

cdef extern from "_opinfo.h":
    enum:
        PT_ELEMENTWISE, PT_STRUCTURED, PT_VIEWOP, PT_COMPOSITE
        PT_OUT_CAST, PT_OUT_EXACT, PT_OUT_CAST_ONE, PT_OUT_OWN, PT_OUT_ANY
        PT_PROMOTE_DEFAULT, PT_PROMOTE_FLOAT, PT_PROMOTE_NONE, PT_PROMOTE_WHERE, PT_PROMOTE_FIRST, PT_PROMOTE_WHOLE
        PT_PROMOTE_DTYPE
        PT_INT_ANY, PT_INT_NONZERO, PT_INT_NONNEGATIVE
        PT_SELECTS_NONE, PT_SELECTS_ONE, PT_SELECTS_SECOND
        PT_OUT_SAME, PT_OUT_BOOL, PT_OUT_REAL
        PT_AUTOCAST_NONE, PT_AUTOCAST_LOW, PT_AUTOCAST_HIGH, PT_AUTOCAST_WIDEST, PT_AUTOCAST_OFF
        PT_AUTOCAST_REFUSED
        PT_SAVE_META, PT_SAVE_OUT, PT_MAX_SAVED
    ctypedef struct pt_opinfo:
        const char *name
        const char *row
        const char *letters
        const char *argnames
        const char *words
        const char *kernel
        const char *family
        const char *node
        const char *sparse
        const char *hint
        uint8_t kind, promote, out, ntensors, npositional, nout, random, contiguous, prefill, updates, lists
        uint8_t differentiable
        uint8_t nsaved
        uint8_t positions
        uint8_t integers, selects, condition, out_rule, wide
        uint8_t *autocast
        uint32_t slow
        uint32_t types
        uint16_t grad_mask, mutates
        int16_t *saved
        uint16_t *need
        int (*shape)(void *) noexcept

cdef extern from "_letters.h":
    enum:                               # the kind of an argument, by its letter in ``letters``: see schema.py
        PT_ARG_TENSOR, PT_ARG_OPT_TENSOR, PT_ARG_INDEX, PT_ARG_OPT_INDEX, PT_ARG_TENSORS
        PT_ARG_INT, PT_ARG_FLOAT, PT_ARG_BOOL, PT_ARG_SCALAR, PT_ARG_OPT_INT, PT_ARG_OPT_FLOAT
        PT_ARG_DIM, PT_ARG_OPT_DIM, PT_ARG_NEW_DIM, PT_ARG_DIMS, PT_ARG_DIM_LIST
        PT_ARG_SIZES, PT_ARG_INTS, PT_ARG_DTYPE, PT_ARG_WORD, PT_ARG_OBJ

cdef enum:
    MAX_OPS = 4096                      # the limit of ids, ops registered at run time included
    BY_TYPE = 32                        # a bit of pt_opinfo.saved: see saved_code in call.pxd
    KEPT = 16                           # another one, of an operand: see is_kept in call.pxd

cdef pt_opinfo *info(int op) noexcept
cdef void set_slow(pt_opinfo *o) noexcept
cdef int register_kernels(const pt_kernel_entry *entries, int column) except -1
cdef pt_kernel kernel_of(int op, int column) noexcept
cdef bint read_kernel(int op) except -1
cdef str arg_name(int op, int k)
cdef int raise_status(int status, const char *name, const char *text) except -1


cdef inline int run_kernel(pt_kernel kernel, pt_call *call, const char *name, bint released) except -1:
    """Runs a kernel, without the GIL if ``released``, and raises the error that it reports."""
    cdef PyThreadState *held = release_gil(released)
    cdef int status = kernel(call)
    restore_gil(held)
    return raise_status(status, name, call.error) if status != PT_OK else 0


cdef inline bint is_of_tensors(char letter) noexcept:
    return letter in (PT_ARG_TENSOR, PT_ARG_OPT_TENSOR, PT_ARG_INDEX, PT_ARG_OPT_INDEX, PT_ARG_TENSORS)


cdef inline bint is_number(char letter) noexcept:
    return letter in (PT_ARG_INT, PT_ARG_FLOAT, PT_ARG_BOOL, PT_ARG_SCALAR, PT_ARG_OPT_INT, PT_ARG_OPT_FLOAT)


cdef list FUNCTIONS, INPLACE_FUNCTIONS, SPECS, VJPS


cdef inline bint is_of_dims(char letter) noexcept:
    return letter in (PT_ARG_DIM, PT_ARG_OPT_DIM, PT_ARG_NEW_DIM, PT_ARG_DIMS)
