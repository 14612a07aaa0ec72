# Events of a profile, as C sees them. See _events.h.
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef extern from "_events.h":
    enum:
        PT_SEEN_PROFILE, PT_MODE_RULE
        PT_EVENT_OP, PT_EVENT_NODE, PT_EVENT_ENGINE, PT_EVENT_USER, PT_EVENT_MODULE, PT_EVENT_MEMORY
    ctypedef struct pt_event:
        int64_t start, end
        PyObject *what
        PyObject *stack
        PyObject *device
        int64_t inputs
        uint64_t sequence
        int64_t bytes
        int32_t parent, number, kind
    ctypedef struct pt_recorder:
        pt_recorder *next
        unsigned long thread, native
        int32_t n, open
        int64_t *words
        int64_t nwords
        int paused, busy, lost
    ctypedef struct pt_profile_state:
        uint64_t run
        int all_threads, shapes, stacks
        void (*inputs)(pt_recorder *, pt_event *, PyObject **, Py_ssize_t, PyObject *) noexcept
        PyObject *(*stack)() noexcept
        PyObject *(*device_begin)(PyObject **, Py_ssize_t, PyObject *) noexcept
        void (*device_end)(PyObject *) noexcept
        uint64_t (*sequence)() noexcept
    ctypedef struct pt_frame:
        uint64_t run
        pt_event *event
        pt_recorder *recorder
        uint32_t rule
    pt_profile_state pt_profile
    int pt_event_begin(pt_frame *, int kind, object what) noexcept
    void pt_event_end(pt_frame *) noexcept
    int pt_call_begin(pt_frame *, object what, PyObject **args, Py_ssize_t n, PyObject *keywords) noexcept
    int64_t pt_event_clock() noexcept
    void pt_memory_event(int64_t) noexcept
    int64_t pt_recorder_words(pt_recorder *, int64_t) noexcept
    pt_recorder *pt_recorder_here() noexcept
    int pt_profile_start() noexcept
    pt_recorder *pt_profile_stop() noexcept
    void pt_recorder_free(pt_recorder *) noexcept
    pt_event *pt_recorder_event(pt_recorder *, int32_t) noexcept


cdef inline object as_event(object what, object x, object (*run)(object)):
    """The result of a method without arguments, recorded as an event of a profile."""
    cdef PyObject *args = <PyObject *>x
    cdef pt_frame frame
    pt_call_begin(&frame, what, &args, 1, NULL)
    try:
        return run(x)
    finally:
        pt_event_end(&frame)
