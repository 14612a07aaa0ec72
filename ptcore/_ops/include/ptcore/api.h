/* Tensors and ops for C11 and C++17: one table of functions that ptcore hands out in a capsule.
 *
 *     #define PY_SSIZE_T_CLEAN
 *     #include <ptcore/api.h>
 *
 *     PyMODINIT_FUNC PyInit_mine(void) {
 *         if (pt_import() < 0) return NULL;
 *         ...
 *     }
 *
 * Every file that calls these functions calls `pt_import` once. The functions need the GIL. On
 * failure they return NULL, or -1, with a Python exception set. `t` is a Tensor that the caller has
 * checked with `pt_is_tensor`. Only `pt_call_op` records its calls for autograd.
 *
 * Sizes and strides are counted in elements. While PT_ABI stays the same, the table only grows at
 * its end: a package runs with every later release of that ABI.
 */
#ifndef PTCORE_API_H
#define PTCORE_API_H
#include <Python.h>

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum pt_device { PT_CPU = 0, PT_CUDA = 1, PT_META = 2 };

#define PT_API_CAPSULE "ptcore.c_api.table"

typedef struct pt_api {
    uint32_t abi;                                       /* PT_ABI */
    uint32_t bytes; /* size of the table; a later release may have more entries */
    PyTypeObject *tensor_type;

    int (*ndim)(PyObject *t);
    int64_t (*numel)(PyObject *t);
    const int64_t *(*sizes)(PyObject *t); /* ndim entries, valid while t stays unchanged */
    const int64_t *(*strides)(PyObject *t);
    int (*dtype)(PyObject *t);                          /* enum pt_dtype */
    int64_t (*itemsize)(PyObject *t);
    int (*device)(PyObject *t);                         /* enum pt_device, or a later column */
    int (*is_contiguous)(PyObject *t);
    int (*requires_grad)(PyObject *t);

    void *(*data_ptr)(PyObject *t);
    void *(*mutable_data_ptr)(PyObject *t);

    PyObject *(*new_empty)(int ndim, const int64_t *sizes, int dtype);
    PyObject *(*wrap)(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                      PyObject *owner, int readonly);

    int (*op_id)(const char *name);
    PyObject *(*call)(int op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
    int (*set_kernel)(int op, int device, pt_kernel kernel, const char *signature);
    PyObject *(*dtype_object)(int dtype);
    void *(*raw_data_ptr)(PyObject *t);
} pt_api;

#ifdef __cplusplus
inline const pt_api *pt_table = NULL;
#else
static const pt_api *pt_table = NULL;
#endif

/* Fetches the table. ImportError if the ptcore at run time has another ABI, or is older than the
 * ptcore that this was compiled against. */
static inline int pt_import(void) {
    PyObject *module = PyImport_ImportModule("ptcore.c_api");
    PyObject *capsule = module ? PyObject_GetAttrString(module, "table") : NULL;
    const pt_api *found =
        capsule ? (const pt_api *)PyCapsule_GetPointer(capsule, PT_API_CAPSULE) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(capsule);                /* the module keeps the capsule alive */
    if (!found) return -1;
    if (found->abi != PT_ABI) {
        PyErr_Format(
            PyExc_ImportError,
            "this package was compiled against ABI %d of ptcore, and the ptcore that runs has "
            "ABI %u: build it again",
            PT_ABI, (unsigned)found->abi);
        return -1;
    }
    if (found->bytes < sizeof(pt_api)) {
        PyErr_Format(
            PyExc_ImportError,
            "this package was compiled against a later ptcore, whose C interface has %u bytes; "
            "that of the ptcore that runs has %u",
            (unsigned)sizeof(pt_api), (unsigned)found->bytes);
        return -1;
    }
    pt_table = found;
    return 0;
}

static inline int pt_is_tensor(PyObject *x) { return PyObject_TypeCheck(x, pt_table->tensor_type); }

static inline int pt_ndim(PyObject *t) { return pt_table->ndim(t); }
static inline int64_t pt_numel(PyObject *t) { return pt_table->numel(t); }
static inline const int64_t *pt_sizes(PyObject *t) { return pt_table->sizes(t); }
static inline const int64_t *pt_strides(PyObject *t) { return pt_table->strides(t); }
static inline int pt_dtype_of(PyObject *t) { return pt_table->dtype(t); }
static inline int64_t pt_itemsize_of(PyObject *t) { return pt_table->itemsize(t); }
static inline int pt_device_of(PyObject *t) { return pt_table->device(t); }
static inline int pt_is_contiguous(PyObject *t) { return pt_table->is_contiguous(t); }
static inline int pt_requires_grad(PyObject *t) { return pt_table->requires_grad(t); }

/* The address of element [0, ..., 0], for reading, valid until the storage is resized;
 * ValueError for a tensor without memory (meta, traced). NULL may also mean a tensor without
 * elements: ask PyErr_Occurred. */
static inline const void *pt_data_ptr(PyObject *t) { return pt_table->data_ptr(t); }
/* The address for writing, which counts as a write in place. RuntimeError for memory that is
 * read-only, and where autograd refuses the write. */
static inline void *pt_mutable_data_ptr(PyObject *t) { return pt_table->mutable_data_ptr(t); }

/* For writing as well, but not counted as a write: for memory that no autograd graph uses.
 * RuntimeError for memory that is read-only. */
static inline void *pt_raw_data_ptr(PyObject *t) { return pt_table->raw_data_ptr(t); }

/* A contiguous CPU tensor with uninitialised memory. */
static inline PyObject *pt_new_empty(int ndim, const int64_t *sizes, int dtype) {
    return pt_table->new_empty(ndim, sizes, dtype);
}
/* A CPU tensor over memory that lives as long as `owner`; strides NULL: contiguous. */
static inline PyObject *pt_wrap(void *data, int ndim, const int64_t *sizes, const int64_t *strides,
                                int dtype, PyObject *owner, int readonly) {
    return pt_table->wrap(data, ndim, sizes, strides, dtype, owner, readonly);
}

/* The id of an op by its name; ask once and keep it. KeyError for an unknown name. */
static inline int pt_op_id(const char *name) { return pt_table->op_id(name); }
/* Calls any op with nargs positional arguments, then the keyword arguments that the tuple kwnames
 * names (NULL: none). The call is recorded for autograd as in Python. */
static inline PyObject *pt_call_op(int op, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *kwnames) {
    return pt_table->call(op, args, nargs, kwnames);
}
/* Sets the kernel of a registered op for a device. */
static inline int pt_set_kernel(int op, int device, pt_kernel kernel) {
    return pt_table->set_kernel(op, device, kernel, PT_KERNEL_SIGNATURE);
}
/* The dtype object of a code (ptcore.float32 for PT_FLOAT32), as a new reference. */
static inline PyObject *pt_dtype_object(int dtype) { return pt_table->dtype_object(dtype); }

#ifdef __cplusplus
}
#endif
#endif
