"""Arrow's C data interface: ``Tensor.__arrow_c_array__``, by which pyarrow, polars and others read a tensor's memory.

https://arrow.apache.org/docs/format/CDataInterface.html

A tensor of one dim is an array of numbers, one of more dims an array of lists of a fixed size. Invariants: an exported
array holds a reference to the storage and marks it exported, so that its address stays; each structure is freed by
its ``release``, children before their parent.
"""
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport strcpy
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New

from ptcore._types cimport *
from ptcore._dtype cimport dtype_of
from ptcore._interpret cimport TOLD_READ, told
from ptcore._tensor cimport *
from ptcore._exchange.convert import from_numpy

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct pt_arrow_schema {
        const char *format, *name, *metadata;
        int64_t flags, n_children;
        struct pt_arrow_schema **children, *dictionary;
        void (*release)(struct pt_arrow_schema *);
        void *private_data;
    } pt_arrow_schema;
    typedef struct pt_arrow_array {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct pt_arrow_array **children, *dictionary;
        void (*release)(struct pt_arrow_array *);
        void *private_data;
    } pt_arrow_array;
    """
    ctypedef struct pt_arrow_schema:
        const char *format
        const char *name
        int64_t n_children
        pt_arrow_schema **children
        void (*release)(pt_arrow_schema *) noexcept nogil
        void *private_data
    ctypedef struct pt_arrow_array:
        int64_t length
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        pt_arrow_array **children
        void (*release)(pt_arrow_array *) noexcept nogil
        void *private_data

cdef dict _letters = {PT_INT8: b"c", PT_UINT8: b"C", PT_INT16: b"s", PT_UINT16: b"S", PT_INT32: b"i", PT_UINT32: b"I",
                      PT_INT64: b"l", PT_UINT64: b"L", PT_FLOAT16: b"e", PT_FLOAT32: b"f", PT_FLOAT64: b"g",
                      PT_BOOL: b"b"}

# What the pointers of a structure refer to. The structure's release frees it, and the child with it, unless the
# consumer has moved the child away.
cdef struct SchemaParts:
    pt_arrow_schema *child
    char[32] format

cdef struct ArrayParts:
    pt_arrow_array *child
    const void *buffers[2]              # validity (NULL: all are valid) and the numbers
    pt_storage *storage                 # of the innermost level; NULL for the others


cdef void release_schema(pt_arrow_schema *s) noexcept nogil:
    cdef SchemaParts *parts = <SchemaParts *>s.private_data
    drop_schema(parts.child)
    free(parts)
    s.release = NULL


cdef void drop_schema(pt_arrow_schema *s) noexcept nogil:
    if s != NULL:
        if s.release != NULL:
            s.release(s)
        free(s)


cdef void release_array(pt_arrow_array *a) noexcept nogil:
    cdef ArrayParts *parts = <ArrayParts *>a.private_data
    drop_array(parts.child)
    if parts.storage != NULL:
        with gil:
            pt_storage_decref(parts.storage)
    free(parts)
    a.release = NULL


cdef void drop_array(pt_arrow_array *a) noexcept nogil:
    if a != NULL:
        if a.release != NULL:
            a.release(a)
        free(a)


cdef void drop_capsule_of_schema(object capsule) noexcept:
    drop_schema(<pt_arrow_schema *>PyCapsule_GetPointer(capsule, b"arrow_schema"))


cdef void drop_capsule_of_array(object capsule) noexcept:
    drop_array(<pt_arrow_array *>PyCapsule_GetPointer(capsule, b"arrow_array"))


cdef pt_arrow_schema *schema_of(Tensor t, int dim, const char *letter) except NULL:
    """The schema of ``t[0, ..., 0]`` with ``dim`` zeros."""
    cdef pt_arrow_schema *s = <pt_arrow_schema *>calloc(1, sizeof(pt_arrow_schema))
    cdef SchemaParts *parts = <SchemaParts *>calloc(1, sizeof(SchemaParts))
    if s == NULL or parts == NULL:
        free(s)
        free(parts)
        raise MemoryError()
    s.format, s.name, s.release, s.private_data = parts.format, b"item" if dim else b"", release_schema, parts
    if dim == t.rank - 1:
        strcpy(parts.format, letter)
        return s
    snprintf(parts.format, sizeof(parts.format), b"+w:%lld", <long long>t.dims[dim + 1])
    try:
        parts.child = schema_of(t, dim + 1, letter)
    except BaseException:
        drop_schema(s)
        raise
    s.n_children, s.children = 1, &parts.child
    return s


cdef pt_arrow_array *array_of(Tensor t, int dim, int64_t length, Tensor numbers) except NULL:
    """The array of all lists of level ``dim``, laid one behind the other; ``length`` is their number of elements."""
    cdef pt_arrow_array *a = <pt_arrow_array *>calloc(1, sizeof(pt_arrow_array))
    cdef ArrayParts *parts = <ArrayParts *>calloc(1, sizeof(ArrayParts))
    if a == NULL or parts == NULL:
        free(a)
        free(parts)
        raise MemoryError()
    a.length, a.buffers, a.release, a.private_data = length, parts.buffers, release_array, parts
    if dim == t.rank - 1:
        a.n_buffers = 2
        parts.buffers[1] = address(numbers) if numbers.count else NULL
        parts.storage = numbers.storage
        pt_storage_incref(numbers.storage)
        numbers.storage.flags |= PT_STORAGE_EXPORTED
        return a
    a.n_buffers = 1
    try:
        parts.child = array_of(t, dim + 1, length * t.dims[dim + 1], numbers)
    except BaseException:
        drop_array(a)
        raise
    a.n_children, a.children = 1, &parts.child
    return a


def __arrow_c_array__(Tensor self not None, requested_schema=None):
    """The schema and the array of Arrow's C data interface, as two capsules; pyarrow and polars call it.

    Parameters
    ----------
    requested_schema : capsule, optional
        Ignored, as the interface allows: the numbers have the type of the tensor.

    Returns
    -------
    tuple of capsules
        An array of numbers for a tensor of one dim, of lists of a fixed size for more. It shares the memory of a
        contiguous tensor; others, and bools, which Arrow packs into bits, are copied.

    Raises
    ------
    BufferError
        If the tensor requires grad, has no dim, is not on the CPU or has a dtype that Arrow lacks (bfloat16, complex).

    Notes
    -----
    Arrow's arrays are immutable; writes to the tensor show in an array that shares its memory.
    https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """
    cdef Tensor t, numbers
    cdef pt_arrow_schema *s
    cdef pt_arrow_array *a
    op = "__arrow_c_array__"
    if needs_grad(self):
        raise BufferError(f"{op}: the tensor requires grad; use detach() first")
    if self.flags & PT_INTERPOSED:
        raise BufferError(f"{op}: the value of a traced or batched tensor is not known here")
    if pt_tls.mode & PT_INTERPOSED:
        told(TOLD_READ, "arrow", self)
    if self.storage.device != DEVICE_CPU:
        raise BufferError(f"{op}: the tensor must be on the CPU, got {self.device}; use cpu() first")
    if self.rank == 0:
        raise BufferError(f"{op}: a tensor without dims is no array; use reshape(1) first")
    letter = _letters.get(self.dt)
    if letter is None:
        raise BufferError(f"{op}: Arrow has no type for {dtype_of(self.dt).name}")
    t = numbers = <Tensor>self.detach().contiguous()
    if t.dt == PT_BOOL:
        import numpy as np
        numbers = <Tensor>from_numpy(np.packbits(t.numpy().ravel(), bitorder="little"))
    s = schema_of(t, 0, letter)
    try:
        schema = PyCapsule_New(s, b"arrow_schema", drop_capsule_of_schema)
    except BaseException:
        drop_schema(s)
        raise
    a = array_of(t, 0, t.dims[0], numbers)
    try:
        return schema, PyCapsule_New(a, b"arrow_array", drop_capsule_of_array)
    except BaseException:
        drop_array(a)
        raise
