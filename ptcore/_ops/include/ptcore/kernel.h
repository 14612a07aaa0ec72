/* The kernel interface: what every kernel, built in or registered at run time,
 * on every device, is given and must return. Plain C, so that a C, C++, Cython
 * or LowLevelCallable kernel can be written against this one file.
 *
 * Invariants that dispatch guarantees to a kernel:
 *  (a) sizes are final: outputs have the shape that the op's shape rule gave;
 *  (b) outputs are C-contiguous (CPU rows of keeps="channels_last": or so), and overlap no input;
 *  (c) inputs may have any strides (zero, negative), counted in elements, unless
 *      the op asks for contiguous ones; data points at element [0, ..., 0];
 *  (d) tensor inputs that take part in promotion have the compute dtype already;
 *  (e) an absent optional tensor has dtype PT_NONE and data NULL;
 *  (f) the GIL may or may not be held: a kernel touches no Python object without taking it.
 *
 * A kernel that is handed over as a capsule named PT_KERNEL_SIGNATURE, or through
 * ptcore.cython_ops, is refused when it was compiled against another version of this file.
 */
#ifndef PTCORE_KERNEL_H
#define PTCORE_KERNEL_H
#include <stdint.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of all layouts here and in backend.h. It rises, and with it the number in the name of
 * pt_call, when a field of pt_view, pt_param, pt_call or pt_backend moves or changes its meaning.
 * Changes that compiled packages survive do not raise it: fields at the end of pt_call (which
 * dispatch allocates) and of pt_backend (which has its size), dtype codes after the last. No layout
 * here has a number of entries that depends on PT_NDTYPES. */
#define PT_ABI 3
#define PT_KERNEL_SIGNATURE "int (pt_call_3 *)"

/* dtype codes. The numbers are part of the ABI, their order has no meaning: a later release may add
 * dtypes of any kind after the last. */
enum pt_dtype {
    PT_BOOL = 0, PT_UINT8, PT_INT8, PT_UINT16, PT_INT16, PT_UINT32, PT_INT32,
    PT_UINT64, PT_INT64, PT_FLOAT16, PT_BFLOAT16, PT_FLOAT32, PT_FLOAT64,
    PT_COMPLEX64, PT_COMPLEX128,
    PT_FLOAT8_E4M3FN, PT_FLOAT8_E5M2, PT_FLOAT8_E4M3FNUZ, PT_FLOAT8_E5M2FNUZ, PT_FLOAT8_E8M0FNU,
    PT_COMPLEX32,
    PT_NDTYPES = 21,            /* the number of codes in this header */
    PT_NONE = 255
};

/* What the elements of a dtype are: sets of codes, with a bit for each code. */
#define PT_BIT(code) (UINT32_C(1) << (code))
#define PT_KIND_BOOL PT_BIT(PT_BOOL)
#define PT_KIND_UNSIGNED \
    (PT_BIT(PT_UINT8) | PT_BIT(PT_UINT16) | PT_BIT(PT_UINT32) | PT_BIT(PT_UINT64))
#define PT_KIND_SIGNED (PT_BIT(PT_INT8) | PT_BIT(PT_INT16) | PT_BIT(PT_INT32) | PT_BIT(PT_INT64))
#define PT_KIND_INTEGRAL (PT_KIND_UNSIGNED | PT_KIND_SIGNED)
#define PT_KIND_FLOAT8                                                           \
    (PT_BIT(PT_FLOAT8_E4M3FN) | PT_BIT(PT_FLOAT8_E5M2) | PT_BIT(PT_FLOAT8_E4M3FNUZ) | \
     PT_BIT(PT_FLOAT8_E5M2FNUZ) | PT_BIT(PT_FLOAT8_E8M0FNU))
#define PT_KIND_FLOATING                                                                    \
    (PT_BIT(PT_FLOAT16) | PT_BIT(PT_BFLOAT16) | PT_BIT(PT_FLOAT32) | PT_BIT(PT_FLOAT64) | \
     PT_KIND_FLOAT8)
#define PT_KIND_COMPLEX (PT_BIT(PT_COMPLEX32) | PT_BIT(PT_COMPLEX64) | PT_BIT(PT_COMPLEX128))
/* Types of storage: few ops take them, and no loop computes in them. */
#define PT_KIND_STORED (PT_KIND_FLOAT8 | PT_BIT(PT_COMPLEX32))

/* Whether a dtype is in a set of kinds; PT_NONE is in none. */
static inline int pt_is(int dtype, uint32_t kinds) {
    return (unsigned)dtype < 32 && (kinds >> dtype & 1);
}

/* NumPy's letter of a dtype's kind: b, u, i, f or c; 0 for any other code. */
static inline char pt_kind(int dtype) {
    return pt_is(dtype, PT_KIND_BOOL)       ? 'b'
           : pt_is(dtype, PT_KIND_UNSIGNED) ? 'u'
           : pt_is(dtype, PT_KIND_SIGNED)   ? 'i'
           : pt_is(dtype, PT_KIND_FLOATING) ? 'f'
           : pt_is(dtype, PT_KIND_COMPLEX)  ? 'c'
                                            : 0;
}

/* How the elements of a tensor are held. The order is part of the ABI. */
enum pt_layout { PT_STRIDED = 0, PT_N_LAYOUTS };

enum { PT_MAX_DIM = 64, PT_MAX_ELEMENTWISE_INPUTS = 5, PT_TILE = 256 };

/* The result of a kernel. Anything but PT_OK comes with a text in call->error (without the op's
 * name, which dispatch puts in front). */
enum pt_status {
    PT_OK = 0,
    PT_RUNTIME_ERROR, PT_VALUE_ERROR, PT_INDEX_ERROR, PT_TYPE_ERROR,
    PT_MEMORY_ERROR, PT_LINALG_ERROR,
    PT_NEED_BLAS = 100      /* nothing written yet: load the BLAS and call again */
};

typedef struct pt_view {
    char *data;
    const int64_t *sizes;       /* ndim entries */
    const int64_t *strides;     /* ndim entries, in elements */
    int64_t numel;
    int32_t ndim;
    uint8_t dtype;
    uint8_t contiguous;         /* C-contiguous (sizes of 1 and 0 disregarded) */
    uint8_t device;             /* index into the device column of the table */
    int8_t device_index;        /* index of the device of its type; -1: the only one (CPU, meta) */
    uint8_t layout; /* pt_layout; not strided only if the op's row has kernels of that layout */
    uint8_t reserved[7];
} pt_view;

enum pt_param_kind {
    PT_PARAM_NONE = 0,
    PT_PARAM_INT,
    PT_PARAM_FLOAT,
    PT_PARAM_COMPLEX,
    PT_PARAM_INTS
};

/* One non-tensor argument. bool and dtype arrive as PT_PARAM_INT, and so does a choice of words
 * (reduction="mean"), as the index in the row's list. An int fills both i and d. */
typedef struct pt_param {
    int32_t kind;
    int32_t count;              /* number of entries of list */
    int64_t i;
    double d, im;
    const int64_t *list;
} pt_param;

typedef struct pt_call_3 {
    int32_t op;
    int32_t nin, nout, nparams;
    const pt_view *in;          /* tensor arguments in signature order */
    pt_view *out;
    const pt_param *params;     /* the other arguments in signature order */
    uint64_t seed, offset;      /* random ops: Philox key, call offset */
    void *stream;               /* the backend's `stream`; CPU: a random op's twister, or NULL */
    char error[256];
} pt_call_3;

typedef pt_call_3 pt_call;

typedef int (*pt_kernel)(pt_call *call);

typedef struct pt_kernel_entry {
    const char *name;
    pt_kernel kernel;
} pt_kernel_entry;              /* tables end with {NULL, NULL} */

#ifdef __cplusplus
}
#endif
#endif
