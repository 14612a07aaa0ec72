# The op tables, by id. See ids.pyx.
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
        RULE_SPEC, RULE_LIKE, RULE_LAID, RULE_CAST, RULE_LAID_CAST, RULE_SUMMED, RULE_LIKE_PAIR, RULE_REDUCED
        RULE_REDUCED_SUM, RULE_REDUCED_NONEMPTY, RULE_REDUCED_BOOL, RULE_REDUCED_PAIR, RULE_KTH_PAIR, RULE_REDUCED_INDEX
        RULE_MM, RULE_BMM, RULE_LINEAR, RULE_CAT, RULE_GATHER, RULE_SCATTER, RULE_INDEX_SELECT
        RULE_SHAPED, RULE_LIKE_EACH, RULE_TAKEN, RULE_PUT, RULE_OF_ROWS, RULE_FILLED, RULE_LIKE_SECOND
        RULE_LIKE_MASK, RULE_LIKE_MATRIX, RULE_COUNTED, RULE_MV, RULE_DOT, RULE_ADDMM, RULE_INDEX_ADD, RULE_INDEX_COPY
        RULE_FFT_C2C, RULE_FFT_R2C, RULE_FFT_C2R
        RULE_LAYER_NORM, RULE_LAYER_NORM_BACKWARD, RULE_BATCH_NORM, RULE_GROUP_NORM, RULE_CHANNELS_BACKWARD
        RULE_CROSS_ENTROPY, RULE_NLL_LOSS
        RULE_CONVOLVED, RULE_CONVOLVED_TRANSPOSED, RULE_CONVOLVED_WEIGHT, RULE_POOLED, RULE_POOLED_PAIR, RULE_PADDED
        RULE_EDGE_PADDED, RULE_EDGE_UNPADDED, RULE_RESAMPLED, RULE_SAMPLED_AT
    ctypedef struct pt_opinfo:
        const char *name
        const char *row
        const char *letters
        const char *argnames
        const char *kernel
        const char *family
        const char *node
        const char *sparse
        const char *hint
        uint8_t kind, promote, out, ntensors, npositional, nout, random, contiguous, prefill, updates, lists
        uint8_t differentiable
        uint8_t nsaved
        uint8_t rule
        uint8_t integers, selects, condition, out_rule
        uint8_t *autocast
        uint32_t slow
        uint32_t types
        uint16_t grad_mask
        int16_t *saved
        uint16_t *need

cdef enum:
    MAX_OPS = 4096                      # ids that are held, those given at run time among them

cdef pt_opinfo *info(int op) noexcept
cdef void set_slow(pt_opinfo *o) noexcept
cdef int register_kernels(const pt_kernel_entry *entries, int column) except -1
cdef pt_kernel kernel_of(int op, int column) noexcept
cdef bint read_kernel(int op) except -1
cdef str arg_name(int op, int k)
cdef int raise_status(int status, const char *name, const char *text) except -1
cdef list FUNCTIONS, INPLACE_FUNCTIONS, SPECS, VJPS
