# The class of plans. See plan.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._ops.plan.hooks cimport pt_plan

cdef struct Place:              # where the elements of a tensor lie
    int buffer, dt, ndim
    int64_t offset              # bytes
    int64_t[64] sizes
    int64_t[64] strides

cdef class Spot:
    cdef Place place
    cdef int of_input           # the input that this tensor is, or -1

cdef struct Input:              # the properties of an input in the recording, which each run requires
    int buffer, dt, ndim
    int same                    # the first input that shares this memory; the input itself if none before it does
    int64_t low                 # bytes from its first element to its lowest one
    int64_t span                # bytes from there to the end of its highest one
    int64_t offset              # if inputs share the memory: bytes from the storage's start
    int64_t *dims               # sizes, then strides
    bint written, needs_grad
    bint shown                  # whether a result that is another tensor shows its memory

cdef class Plan:
    cdef pt_plan *p
    cdef pt_storage **kept              # storages allocated during the recording
    cdef int64_t n_kept, room
    cdef pt_storage **bound             # by buffer, during a run: its storage, with a reference; NULL: arena or none
    cdef int64_t *bytes_of              # for each buffer, in the recording
    cdef int n_buffers
    cdef Input *inputs
    cdef int n_inputs
    cdef int *fresh                     # buffers that get new memory at each run
    cdef int n_fresh
    cdef list versions                  # versions of the inputs at the begin of a recording without values
    cdef list outputs                   # Spots, and objects that are not tensors
    cdef int n_outputs
    cdef object arena
    cdef bint recording, busy, writes_inputs
    cdef readonly bint shows_inputs     # whether an input is ``shown``
    cdef int default_dtype              # the floating dtype of the thread that recorded
    cdef void **seen                    # a table of storages for ``fits``
    cdef size_t seen_mask

    cdef void release(self) noexcept
    cdef void drop_bound(self) noexcept
    cdef void done(self) noexcept
    cdef int keep(self, pt_storage *s, char *data, int64_t nbytes) noexcept
    cdef int name_input(self, int k, Tensor t, bint shared) except -1
    cdef bint overlaps(self, PyObject **inputs) except -1
    cdef int buffer_of(self, Tensor t) noexcept
    cdef bint may_take(self, PyObject **inputs, Py_ssize_t n, bint grads) except -1
    cdef bint share_alike(self, PyObject **inputs) noexcept
    cdef tuple results_of(self, PyObject **inputs, object others)
    cdef int fill(self, PyObject **inputs, object others, PyObject **results) except -1
    cdef int execute(self, PyObject **inputs, object others) except -1
    cdef Tensor tensor_at(self, Spot spot)
    cdef int bind(self, PyObject **inputs) except -1
    cdef void bind_storage(self, int k, pt_storage *s, char *data) noexcept
    cdef int bind_new(self, int k) except -1
