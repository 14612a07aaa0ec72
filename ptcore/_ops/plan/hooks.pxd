# Dispatch reports to the plan that this thread records. There is no module: a cimport of this file imports nothing.
from ptcore._types cimport *

cdef extern from "plan/plan.h":
    ctypedef struct pt_plan:
        pass
    enum:
        PT_BUFFER_TEMPORARY, PT_BUFFER_BOUND, PT_BUFFER_RESULT, PT_PLAN_DONE
    pt_plan *pt_plan_new()
    void pt_plan_delete(pt_plan *)
    void pt_plan_set_dry(pt_plan *, int)
    int pt_plan_is_dry(const pt_plan *)
    int pt_plan_add_buffer(pt_plan *, char *, int64_t)
    int pt_plan_buffer_of(const pt_plan *, const char *)
    int pt_plan_add_kernel(pt_plan *, const char *, pt_kernel, const pt_call *, int)
    int pt_plan_add_loops(pt_plan *, const pt_elementwise *, int, int, const pt_view *, const pt_view *, int,
                          const void *, int64_t)
    int pt_plan_add_copy(pt_plan *, const pt_view *, const pt_view *)
    void pt_plan_add_pause(pt_plan *)
    void pt_plan_pause_reads(pt_plan *, int)
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
    const char *pt_plan_step_name(const pt_plan *, int64_t)
    void pt_plan_set_arena(pt_plan *, char *)
    char *pt_plan_address(const pt_plan *, int)
    int pt_plan_host(const pt_plan *, int)
    void pt_plan_bind(pt_plan *, int, char *)
    int pt_plan_run(pt_plan *, int64_t *, uint64_t, uint64_t, void *, const char **) nogil

# These report a call that has run while pt_tls.mode has PT_MODE_PLANNING.
cdef inline bint planning() noexcept:
    """Whether this thread records a plan."""
    return pt_modes_seen & PT_MODE_PLANNING and pt_tls.mode & PT_MODE_PLANNING

cdef inline bint dry() noexcept:
    """Whether this thread records calls instead of running them."""
    return planning() and pt_plan_is_dry(<pt_plan *>pt_tls.plan)

cdef inline void kernel_run(const char *name, pt_kernel kernel, const pt_call *call, bint random) noexcept:
    pt_plan_add_kernel(<pt_plan *>pt_tls.plan, name, kernel, call, random)

cdef inline void loops_run(const pt_elementwise *op, int compute, int loop_out, const pt_view *out,
                           const pt_view *inputs, int nin, const void *params, int64_t params_bytes) noexcept:
    pt_plan_add_loops(<pt_plan *>pt_tls.plan, op, compute, loop_out, out, inputs, nin, params, params_bytes)

cdef inline void copy_run(const pt_view *dst, const pt_view *src) noexcept:
    pt_plan_add_copy(<pt_plan *>pt_tls.plan, dst, src)

cdef inline void spoil(const char *why) noexcept:
    pt_plan_spoil(<pt_plan *>pt_tls.plan, why)
