"""NumPy's arrays on their way from a worker to its loader.

In a worker the memory of new arrays is lent as that of new tensors is (``lend_memory`` of _untyped_storage.pyx), by a
handler as NEP 49 describes it. Such an array is sent without a copy where nobody else holds it; whoever holds one may
write to it, which the receiver must not see.
"""
import sys

from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport SIZE_MAX, uint8_t
from libc.string cimport memcpy, memset, strcpy

from ptcore._types cimport *
from ptcore._allocate cimport allocate
from ptcore._convert cimport exporter_of, from_buffer, is_plain_ndarray
from ptcore._dtype cimport ITEMSIZE
from ptcore._shape cimport fill_strides, max_offset, min_offset
from ptcore._tensor cimport *
from ptcore._untyped_storage cimport Segment, end_of_loan, lend, loans

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *) nogil
    PyObject *PyList_GET_ITEM(PyObject *, Py_ssize_t) nogil
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t) nogil
    Py_ssize_t Py_SIZE(PyObject *) nogil
    bint PyList_CheckExact(PyObject *) nogil
    bint PyTuple_CheckExact(PyObject *) nogil
    bint PyDict_CheckExact(PyObject *) nogil
    bint PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **)

# Of numpy/ndarraytypes.h; the places of functions in NumPy's table never change.
ctypedef struct PyDataMemAllocator:
    void *ctx
    void *(*malloc)(void *, size_t) noexcept nogil
    void *(*calloc)(void *, size_t, size_t) noexcept nogil
    void *(*realloc)(void *, void *, size_t) noexcept nogil
    void (*free)(void *, void *, size_t) noexcept nogil

ctypedef struct PyDataMem_Handler:
    char[127] name
    uint8_t version
    PyDataMemAllocator allocator

ctypedef object (*SetHandler)(object)
ctypedef object (*GetHandler)()

cdef enum:
    SET_HANDLER = 304
    GET_HANDLER = 305
    PAGE = 4096             # at least: what is lent begins where a page does
    DEPTH = 4               # of lists, tuples and dictionaries in a batch

cdef PyDataMem_Handler handler
cdef PyDataMemAllocator other           # that of the handler before: where all other memory comes from
cdef object before = None               # the capsule of that handler
cdef size_t least = SIZE_MAX
cdef dict arrays = {}                   # address of an array's memory that is lent -> that of its pt_storage


def lend_arrays(size_t nbytes):
    """New arrays of at least so many bytes lie in memory that is lent, while there is some; in this thread, as all of
    NumPy's handlers. Whether NumPy is imported: before, nothing happens."""
    global before, least, other
    core = sys.modules.get("numpy._core._multiarray_umath")
    if core is None:
        return False
    cdef void **api = <void **>PyCapsule_GetPointer(core._ARRAY_API, NULL)
    least = nbytes
    if before is None:
        before = (<GetHandler>api[GET_HANDLER])()
        other = (<PyDataMem_Handler *>PyCapsule_GetPointer(before, "mem_handler")).allocator
        strcpy(handler.name, "ptcore_lent")
        handler.version = 1
        handler.allocator.malloc = take
        handler.allocator.calloc = take_zeros
        handler.allocator.realloc = resize
        handler.allocator.free = give_back
    (<SetHandler>api[SET_HANDLER])(PyCapsule_New(&handler, "mem_handler", NULL))
    return True


cdef pt_storage *find(void *p) noexcept:
    """The storage of an array's memory that is lent; NULL of others."""
    if <size_t>p % PAGE or not arrays:
        return NULL
    return <pt_storage *><size_t>arrays.get(<size_t>p, 0)


# NumPy calls what follows with the GIL or without, and while an exception is on its way.

cdef pt_storage *borrow(size_t size) noexcept nogil:
    """Memory that is lent, or NULL. Arrays that are kept leave half of it to tensors and to what is copied."""
    if size < least or 2 * loans.now >= loans.most:
        return NULL
    with gil:
        return begin_loan(size)


cdef pt_storage *begin_loan(size_t size) noexcept:
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *where
    cdef pt_storage *s = NULL
    PyErr_Fetch(&kind, &value, &where)
    try:
        s = lend(size)
        if s != NULL:
            arrays[<size_t>s.data] = <size_t>s
    except MemoryError:
        if s != NULL:
            pt_storage_decref(s)
            s = NULL
    PyErr_Restore(kind, value, where)
    return s


cdef bint end_array(void *p, void *copy, size_t size) noexcept:
    """Whether the memory of an array was lent, which it gives back now; so many bytes go to ``copy`` before."""
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *where
    PyErr_Fetch(&kind, &value, &where)
    cdef pt_storage *s = find(p)
    if s != NULL:
        memcpy(copy, p, min(size, <size_t>s.nbytes))
        del arrays[<size_t>p]
        pt_storage_decref(s)
    PyErr_Restore(kind, value, where)
    return s != NULL


cdef bint is_lent(void *p) noexcept:
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *where
    PyErr_Fetch(&kind, &value, &where)
    cdef bint found = find(p) != NULL
    PyErr_Restore(kind, value, where)
    return found


cdef void *take(void *ctx, size_t size) noexcept nogil:
    cdef pt_storage *s = borrow(size)
    return s.data if s != NULL else other.malloc(other.ctx, size)


cdef void *take_zeros(void *ctx, size_t count, size_t size) noexcept nogil:
    cdef pt_storage *s = borrow(count * size) if size and count <= SIZE_MAX // size else NULL
    return memset(s.data, 0, count * size) if s != NULL else other.calloc(other.ctx, count, size)


cdef void *resize(void *ctx, void *p, size_t size) noexcept nogil:
    cdef void *moved
    if <size_t>p % PAGE == 0:
        with gil:
            if is_lent(p):
                moved = other.malloc(other.ctx, size)
                if moved != NULL:
                    end_array(p, moved, size)
                return moved
    return other.realloc(other.ctx, p, size)


cdef void give_back(void *ctx, void *p, size_t size) noexcept nogil:
    if <size_t>p % PAGE == 0:
        with gil:
            if end_array(p, p, 0):
                return
    other.free(other.ctx, p, size)


# -- what is sent ---------------------------------------------------------------------------------

cdef bint is_alone(object array) except -1:
    """Whether nothing else shows the memory of an array that nobody else holds."""
    base = array.base
    return base is None or (is_plain_ndarray(base) and Py_REFCNT(<PyObject *>base) == 2 and base.base is None)


cdef bint give_away(pt_storage *s) noexcept:
    """Shares an array's memory that is lent; not where a child has a copy of it."""
    cdef Segment segment = <Segment>s.owner
    if not segment.shared:
        return False
    end_of_loan(segment)
    s.flags |= PT_STORAGE_SHARED
    return True


cdef pt_storage *memory_to_give(object array, char *data, int64_t nbytes) except? NULL:
    """The storage in which so many bytes of an array lie that is alone, shared from now on; NULL where it was not lent,
    or has much else in it."""
    cdef pt_storage *s = find(data)
    if s == NULL and arrays and array.base is not None:
        try:
            s = find(from_buffer(array.base, "send").storage.data)
        except (ValueError, TypeError, BufferError):        # what it is a part of has no tensor's dtype
            return NULL
    return s if s != NULL and s.nbytes <= 2 * nbytes and give_away(s) else NULL


cdef Segment segment_of_array(pt_storage *s):
    """Where the memory of an array lies that a storage shows, if one tensor alone has the storage, and this alone the
    array; None elsewhere."""
    cdef pt_storage *memory
    array = exporter_of(s) if arrays and s.refs == 1 else None
    if not is_plain_ndarray(array) or Py_REFCNT(<PyObject *>array) != 2 or not is_alone(array):
        return None
    memory = memory_to_give(array, s.data, s.nbytes)
    return <Segment>memory.owner if memory != NULL else None


cdef int64_t room_for(object array, int64_t nbytes) except -1:
    """Bytes of a segment for a copy of so many bytes of an array: where the next such array finds room as well, if it
    shows a part of that."""
    base = array.base if is_plain_ndarray(array) else None
    if is_plain_ndarray(base) and Py_REFCNT(<PyObject *>base) == 2 and nbytes < base.nbytes <= 2 * nbytes:
        return base.nbytes
    return nbytes


cdef Tensor copied(Tensor t, pt_storage *s):
    """A copy of the elements at the beginning of a storage, which it takes over: in their order if they are dense."""
    cdef int64_t[64] strides
    cdef int64_t nbytes = t.count * ITEMSIZE[t.dt]
    cdef const int64_t *steps = t.dims + t.rank
    cdef Tensor copy
    if min_offset(t.rank, t.dims, steps) == 0 and (max_offset(t.rank, t.dims, steps) + 1) * ITEMSIZE[t.dt] == nbytes:
        copy = wrap_storage(s, 0, t.dt, t.rank, t.dims, steps)
        memcpy(s.data, address(t), nbytes)
        return copy
    fill_strides(t.rank, t.dims, strides)
    return wrap_storage(s, 0, t.dt, t.rank, t.dims, strides).copy_(t)


cdef Tensor copy_to_send(Tensor t):
    """A copy of elements whose address is known outside."""
    return copied(t, allocate(room_for(exporter_of(t.storage), t.count * ITEMSIZE[t.dt]), DEVICE_CPU, -1))


cdef bint is_sendable(object a, int64_t limit) except -1:
    """Whether ``as_sent`` has a tensor for an array."""
    kind = a.dtype
    cdef int number = kind.num              # bool, integers, float32, float64; complex64, complex128, float16
    if not (0 <= number <= 12 or number == 14 or number == 15 or number == 23) or not kind.isnative or kind.metadata:
        return False
    cdef int64_t nbytes = a.nbytes
    if nbytes > limit:
        return True
    order = a.flags
    return nbytes > 0 and (order.c_contiguous or not order.f_contiguous)


cdef Tensor as_sent(object a, bint alone, int64_t limit):
    """The elements of an array as a tensor: up to ``limit`` bytes contiguous, of more in memory that is shared, or can
    be; ``alone`` as ``sole_arrays`` tells. None of an array that no tensor is like."""
    cdef Tensor t
    cdef pt_storage *s = NULL
    if not is_sendable(a, limit):
        return None
    try:
        t = from_buffer(a, "send")
    except (ValueError, TypeError, BufferError):
        return None
    cdef int64_t nbytes = t.count * ITEMSIZE[t.dt]
    if nbytes <= limit:
        return new_like(t, t.dt).copy_(t) if t.flags & PT_NONCONTIGUOUS else t
    if alone:
        s = memory_to_give(a, t.storage.data, nbytes)
    if s == NULL:
        return copy_to_send(t)
    pt_storage_incref(s)
    return wrap_storage(s, address(t) - s.data, t.dt, t.rank, t.dims, t.dims + t.rank)


def sole_arrays(list objects not None):
    """The addresses of the arrays that nothing holds but this list, and what it alone holds; None if there are none."""
    cdef set found = set()
    if arrays:
        for i in range(len(objects)):
            look(PyList_GET_ITEM(<PyObject *>objects, i), DEPTH, found)
    return found or None


cdef int look(PyObject *obj, int depth, set found) except -1:
    cdef Py_ssize_t i, at = 0
    cdef PyObject *value
    if Py_REFCNT(obj) != 1:
        return 0
    if PyList_CheckExact(obj) and depth:
        for i in range(Py_SIZE(obj)):
            look(PyList_GET_ITEM(obj, i), depth - 1, found)
    elif PyTuple_CheckExact(obj) and depth:
        for i in range(Py_SIZE(obj)):
            look(PyTuple_GET_ITEM(obj, i), depth - 1, found)
    elif PyDict_CheckExact(obj) and depth:
        while PyDict_Next(obj, &at, NULL, &value):
            look(value, depth - 1, found)
    elif is_plain_ndarray(<object>obj) and is_alone(<object>obj):
        found.add(<size_t>obj)
    return 0
