# What dispatch tells the plan that this thread records. See plan.pyx and plan.h.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef extern from "plan/plan.h":
    ctypedef struct pt_plan:
        pass
    enum:
        PT_BUFFER_TEMPORARY, PT_BUFFER_BOUND, PT_PLAN_DONE
    pt_plan *pt_plan_new()
    void pt_plan_delete(pt_plan *)
    int pt_plan_add_buffer(pt_plan *, char *, int64_t)
    int pt_plan_buffer_of(const pt_plan *, const char *)
    int pt_plan_add_kernel(pt_plan *, const char *, pt_kernel, const pt_call *, int)
    int pt_plan_add_loops(pt_plan *, const pt_elementwise *, int, int, const pt_view *, const pt_view *, int,
                          const void *, int64_t)
    int pt_plan_add_copy(pt_plan *, const pt_view *, const pt_view *)
    void pt_plan_add_pause(pt_plan *)
    void pt_plan_spoil(pt_plan *, const char *)
    const char *pt_plan_spoilt(const pt_plan *)
    int64_t pt_plan_length(const pt_plan *)
    void pt_plan_cut(pt_plan *, int64_t)
    void pt_plan_set_kind(pt_plan *, int, int)
    int pt_plan_kind(const pt_plan *, int)
    int pt_plan_writes(const pt_plan *, int)
    void pt_plan_finish(pt_plan *, int)
    int64_t pt_plan_arena_bytes(const pt_plan *)
    int64_t pt_plan_work(const pt_plan *)
    int64_t pt_plan_draws(const pt_plan *, int64_t)
    int64_t pt_plan_groups(const pt_plan *)
    const char *pt_plan_step_name(const pt_plan *, int64_t)
    void pt_plan_set_arena(pt_plan *, char *)
    char *pt_plan_address(const pt_plan *, int)
    void pt_plan_bind(pt_plan *, int, char *)
    int pt_plan_run(pt_plan *, int64_t *, uint64_t, uint64_t, const char **) nogil

cdef struct Place:              # where the elements of a tensor lie
    int buffer, dt, ndim
    int64_t offset              # bytes
    int64_t[64] sizes
    int64_t[64] strides

cdef class Spot:
    cdef Place place
    cdef int of_input           # the input that it is, or -1

cdef struct Input:              # what an input was in the recording, and has to be in each run
    int buffer, dt, ndim
    int same                    # the first input with this memory; itself: memory of its own
    int64_t low                 # bytes from its first element to its lowest one
    int64_t span                # bytes from there to the end of its highest one
    int64_t offset              # of memory that inputs share: bytes from the storage's start
    int64_t *dims               # sizes, then strides
    bint written, needs_grad

cdef class Plan:
    cdef pt_plan *p
    cdef pt_storage **kept              # allocated during the recording
    cdef int64_t n_kept, room
    cdef pt_storage **bound             # of each buffer during a run, with a reference; NULL: in the arena or none
    cdef int64_t *bytes_of              # of each buffer, in the recording
    cdef int n_buffers
    cdef Input *inputs
    cdef int n_inputs
    cdef list results                   # buffers that get new memory at each run
    cdef list outputs                   # Spots, and what is no tensor
    cdef object arena
    cdef bint recording, busy, writes_inputs
    cdef void **seen                    # a table of storages for ``fits``
    cdef size_t seen_mask

    cdef void release(self) noexcept
    cdef void drop_bound(self) noexcept
    cdef int keep(self, pt_storage *s, char *data, int64_t nbytes) noexcept
    cdef int name_input(self, int k, list given) except -1
    cdef bint overlaps(self, list inputs) except -1
    cdef int buffer_of(self, Tensor t) noexcept
    cdef bint may_take(self, list inputs, bint grads) except -1
    cdef list results_of(self, list inputs, object others)
    cdef int execute(self, list inputs, object others) except -1
    cdef Tensor tensor_at(self, Spot spot)
    cdef int bind(self, list inputs) except -1
    cdef void bind_storage(self, int k, pt_storage *s, char *data) noexcept
    cdef int bind_new(self, int k) except -1

# Of a call that has been run while pt_tls.mode has PT_MODE_PLANNING.
cdef int kernel_run(const char *name, pt_kernel kernel, const pt_call *call, bint random) noexcept
cdef int loops_run(const pt_elementwise *op, int compute, int loop_out, const pt_view *out, const pt_view *inputs,
                   int nin, const void *params, int64_t params_bytes) noexcept
cdef int copy_run(const pt_view *dst, const pt_view *src) noexcept
cdef void spoil(const char *why) noexcept

cdef inline bint planning() noexcept:
    """Whether this thread records a plan."""
    return pt_modes_seen & PT_MODE_PLANNING and pt_tls.mode & PT_MODE_PLANNING
