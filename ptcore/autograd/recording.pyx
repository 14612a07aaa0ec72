"""The recording of a profile: entries are replaced by recording ones, arguments and frames described, events read.

See ``_events.h`` for the recorded data; ``ptcore.autograd.profiler`` turns them into events for users.
"""
import os
import sys

cimport cython
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._events cimport *
from ptcore._device cimport as_device, device
from ptcore._dtype cimport dtype_of
from ptcore._node cimport next_seq
from ptcore._tensor cimport Tensor, table
from ptcore._ops.table.ids cimport FUNCTIONS, INPLACE_FUNCTIONS
from ptcore._ops.table.ids import op_id, op_name
from ptcore import _watching

cdef extern from "Python.h":
    bint PyLong_CheckExact(object)
    int64_t PyLong_AsLongLongAndOverflow(object, int *)
    PyObject **PySequence_Fast_ITEMS(object)
    Py_ssize_t PySequence_Fast_GET_SIZE(object)

cdef extern from "call/op_function.h":
    void pt_functions_record(int on)
    void pt_overridables_record(int on)

cdef extern from "_memory/watch.h":
    void pt_memory_watch(void (*told)(int64_t) noexcept)

cdef enum:                      # the kinds of the words of an argument
    NOTHING, TENSOR, TENSORS, INTEGER, REAL, TRUTH, INTEGERS, OTHER
    MOST = 256                  # limit of a list's recorded items

_keywords = {}                  # each set of names of arguments once: words point to them


# -- arguments and frames ------------------------------------------------------------------------------

cdef bint put(pt_recorder *r, int64_t word) noexcept:
    cdef int64_t at = pt_recorder_words(r, 1)
    if at >= 0:
        r.words[at] = word
    return at >= 0


cdef void put_tensor(pt_recorder *r, Tensor t) noexcept:
    cdef int64_t at = pt_recorder_words(r, 1 + 2 * t.rank)
    if at < 0:
        return
    r.words[at] = TENSOR | <int64_t>t.dt << 8 | <int64_t>t.rank << 16
    memcpy(&r.words[at + 1], t.dims, 2 * t.rank * sizeof(int64_t))


cdef void put_value(pt_recorder *r, object x) noexcept:
    cdef int64_t word
    cdef double number
    cdef int overflow = 0
    if isinstance(x, Tensor):
        put_tensor(r, <Tensor>x)
    elif x is None:
        put(r, NOTHING)
    elif type(x) is bool:
        put(r, TRUTH | (<int64_t>(x is True)) << 8)
    elif PyLong_CheckExact(x):
        word = PyLong_AsLongLongAndOverflow(x, &overflow)
        put(r, OTHER if overflow else INTEGER)
        if not overflow:
            put(r, word)
    elif PyFloat_CheckExact(x):
        number = PyFloat_AS_DOUBLE(x)
        memcpy(&word, &number, sizeof(word))
        put(r, REAL)
        put(r, word)
    elif isinstance(x, (list, tuple)):
        put_items(r, PySequence_Fast_ITEMS(x), PySequence_Fast_GET_SIZE(x))
    else:
        put(r, OTHER)


cdef void put_items(pt_recorder *r, PyObject **items, Py_ssize_t n) noexcept:
    """Records the items of a list or tuple; an override of iteration in a subclass is not called."""
    cdef Py_ssize_t k, tensors = 0, integers = 0
    cdef int overflow = 0
    for k in range(n):
        tensors += isinstance(<object>items[k], Tensor)
        if PyLong_CheckExact(<object>items[k]):
            PyLong_AsLongLongAndOverflow(<object>items[k], &overflow)
            integers += not overflow            # a list with a larger number has no words
    if n == 0 or n > MOST or tensors != n and integers != n:
        put(r, OTHER)
        return
    put(r, (TENSORS if tensors else INTEGERS) | <int64_t>n << 8)
    for k in range(n):
        if tensors:
            put_tensor(r, <Tensor>items[k])
        else:
            put(r, PyLong_AsLongLongAndOverflow(<object>items[k], &overflow))


cdef void describe(pt_recorder *r, pt_event *e, PyObject **args, Py_ssize_t n, PyObject *keywords) noexcept:
    cdef Py_ssize_t k, more = 0
    cdef int64_t at = pt_recorder_words(r, 2)
    if at < 0:
        return
    if keywords != NULL:
        names = _keywords.setdefault(<object>keywords, <object>keywords)
        more = len(<tuple>names)
        keywords = <PyObject *>names
    r.words[at] = n + more
    r.words[at + 1] = <int64_t><size_t>keywords
    for k in range(n + more):
        put_value(r, <object>args[k])
    if not r.lost:
        e.inputs = at


cdef tuple tensor_at(int64_t *words, int64_t *at):
    """A tensor's ("tensor", dtype, sizes, strides)."""
    cdef int64_t word = words[at[0]]
    cdef int rank = word >> 16 & 0xff, k
    sizes = [words[at[0] + 1 + k] for k in range(rank)]
    strides = [words[at[0] + 1 + rank + k] for k in range(rank)]
    at[0] += 1 + 2 * rank
    return "tensor", dtype_of(word >> 8 & 0xff), sizes, strides


cdef tuple value_at(int64_t *words, int64_t *at):
    cdef int64_t word = words[at[0]], k
    cdef int tag = word & 0xff
    cdef double number
    if tag == TENSOR:
        return tensor_at(words, at)
    at[0] += 1
    if tag == TENSORS:
        return "tensors", [tensor_at(words, at) for _ in range(word >> 8)]
    if tag == TRUTH:
        return "value", word >> 8 != 0
    if tag == INTEGER:
        at[0] += 1
        return "value", words[at[0] - 1]
    if tag == REAL:
        memcpy(&number, &words[at[0]], sizeof(number))
        at[0] += 1
        return "value", number
    if tag == INTEGERS:
        values = [words[at[0] + k] for k in range(word >> 8)]
        at[0] += word >> 8
        return "value", values
    return ("value", None) if tag == NOTHING else ("other", None)


cdef PyObject *frames() noexcept:
    """A tuple of (code, line) of the frames of this thread, the innermost first; a new reference."""
    cdef list found = []
    try:
        frame = sys._getframe(0)
        while frame is not None:
            found.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        made = tuple(found)
        Py_INCREF(made)
        return <PyObject *>made
    except Exception:
        return NULL


cdef uint64_t number_of_nodes() noexcept:
    return next_seq()


# -- devices --------------------------------------------------------------------------------------------

_device = None                      # the module of the recorded device


cdef int device_index(object x, int depth=0) except -2:
    """The number of the device that an argument is on or names; -1 if there is none."""
    cdef int found
    if isinstance(x, Tensor):
        return (<Tensor>x).storage.device_index if (<Tensor>x).storage.device == DEVICE_CUDA else -1
    if isinstance(x, (list, tuple)) and depth < 2:
        for item in x:
            found = device_index(item, depth + 1)
            if found >= 0:
                return found
    elif isinstance(x, device) and (<device>x).column == DEVICE_CUDA or isinstance(x, str) and x.startswith("cuda"):
        number = as_device(x, b"profile").number
        return number if number >= 0 else _device.current_device()
    return -1


cdef PyObject *device_begin(PyObject **args, Py_ssize_t n, PyObject *keywords) noexcept:
    """Notes [number, event, memory] before a call that uses a device; ``device_end`` appends event and memory."""
    cdef Py_ssize_t k
    cdef int index = -1
    cdef list made
    if keywords != NULL:
        n += len(<tuple><object>keywords)
    try:
        for k in range(n):
            index = device_index(<object>args[k])
            if index >= 0:
                break
        else:
            return NULL
        made = [index, _device.Event(enable_timing=True), _device.memory_allocated(index)]
        made[1].record(_device.current_stream(index))
        Py_INCREF(made)
        return <PyObject *>made
    except Exception:                   # a stream under capture cannot be timed
        return NULL


cdef void device_end(PyObject *noted) noexcept:
    cdef list made = <list>noted
    try:
        event = _device.Event(enable_timing=True)
        event.record(_device.current_stream(made[0]))
        made.append(event)
        made.append(_device.memory_allocated(made[0]))
    except Exception:
        pass


cdef object device_of_event(object noted):
    """(number, microseconds, bytes) of a noted call, after the device has finished it; None for an incomplete note."""
    if noted is None or len(noted) != 5:
        return None
    index, begin, before, end, after = noted
    return index, begin.elapsed_time(end) * 1e3, after - before


# -- operators: the entries of the ground's table -------------------------------------------------------

cdef object (*plain_unary)(int, object)
cdef object (*plain_binary)(int, object, object)
cdef object (*plain_inplace)(int, object, object)
cdef object (*plain_matmul)(object, object)
cdef object (*plain_getitem)(Tensor, object)
cdef int (*plain_setitem)(Tensor, object, object) except -1
cdef int OP_MATMUL = op_id("matmul"), OP_MM = op_id("mm")


cdef inline object function_of(int op, list functions=FUNCTIONS):
    cdef object found = functions[op]
    return op_name(op) if found is None else found


cdef object recorded_unary(int op, object x):
    cdef pt_frame frame
    cdef (PyObject *)[1] args
    args[0] = <PyObject *>x
    pt_call_begin(&frame, function_of(op), args, 1, NULL)
    try:
        return plain_unary(op, x)
    finally:
        pt_event_end(&frame)


cdef object recorded_binary(int op, object x, object y):
    cdef pt_frame frame
    cdef (PyObject *)[2] args
    args[0], args[1] = <PyObject *>x, <PyObject *>y
    pt_call_begin(&frame, function_of(op), args, 2, NULL)
    try:
        return plain_binary(op, x, y)
    finally:
        pt_event_end(&frame)


cdef object recorded_inplace(int op, object x, object y):
    cdef pt_frame frame
    cdef (PyObject *)[2] args
    args[0], args[1] = <PyObject *>x, <PyObject *>y
    pt_call_begin(&frame, function_of(op, INPLACE_FUNCTIONS), args, 2, NULL)
    try:
        return plain_inplace(op, x, y)
    finally:
        pt_event_end(&frame)


cdef object recorded_matmul(object x, object y):
    cdef pt_frame frame, inner
    cdef (PyObject *)[2] args
    args[0], args[1] = <PyObject *>x, <PyObject *>y
    inner.run = inner.rule = 0
    pt_call_begin(&frame, function_of(OP_MATMUL), args, 2, NULL)
    if isinstance(x, Tensor) and isinstance(y, Tensor) and (<Tensor>x).rank == 2 and (<Tensor>y).rank == 2:
        pt_call_begin(&inner, function_of(OP_MM), args, 2, NULL)        # for matrices the operator is mm
    try:
        return plain_matmul(x, y)
    finally:
        pt_event_end(&inner)
        pt_event_end(&frame)


cdef str kind_of_key(object key):
    """The op that PyTorch runs for an index."""
    if isinstance(key, tuple):
        kinds = {kind_of_key(k) for k in key}
        for kind in ("index", "select", "slice"):
            if kind in kinds:
                return kind
        return "unsqueeze" if "unsqueeze" in kinds else "alias"
    if isinstance(key, slice):
        return "slice"
    if key is None:
        return "unsqueeze"
    if key is Ellipsis:
        return "alias"
    return "select" if hasattr(type(key), "__index__") and not isinstance(key, (bool, Tensor)) else "index"


cdef object recorded_getitem(Tensor x, object key):
    cdef pt_frame frame
    cdef (PyObject *)[2] args
    args[0], args[1] = <PyObject *>x, <PyObject *>key
    pt_call_begin(&frame, kind_of_key(key), args, 2, NULL)
    try:
        return plain_getitem(x, key)
    finally:
        pt_event_end(&frame)


cdef int recorded_setitem(Tensor x, object key, object value) except -1:
    cdef pt_frame frame
    cdef (PyObject *)[3] args
    args[0], args[1], args[2] = <PyObject *>x, <PyObject *>key, <PyObject *>value
    pt_call_begin(&frame, "index_put_" if kind_of_key(key) == "index" else "copy_", args, 3, NULL)
    try:
        return plain_setitem(x, key, value)
    finally:
        pt_event_end(&frame)


cdef void record_operators() noexcept:
    global plain_unary, plain_binary, plain_inplace, plain_matmul, plain_getitem, plain_setitem
    plain_unary, table.unary = table.unary, recorded_unary
    plain_binary, table.binary = table.binary, recorded_binary
    plain_inplace, table.inplace = table.inplace, recorded_inplace
    plain_matmul, table.matmul = table.matmul, recorded_matmul
    plain_getitem, table.getitem = table.getitem, recorded_getitem
    plain_setitem, table.setitem = table.setitem, recorded_setitem


cdef void leave_operators() noexcept:
    table.unary, table.binary, table.inplace = plain_unary, plain_binary, plain_inplace
    table.matmul, table.getitem, table.setitem = plain_matmul, plain_getitem, plain_setitem


def recorded_method(function, what):
    """A method that is not the function of an op, as a method that records itself."""
    def method(*args, **kwargs):
        cdef pt_frame frame
        cdef tuple given = args
        cdef PyObject *first = <PyObject *>given[0] if given else NULL
        pt_call_begin(&frame, what, &first, 1 if given else 0, NULL)
        try:
            return function(*args, **kwargs)
        finally:
            pt_event_end(&frame)
    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = function.__doc__
    method.__wrapped__ = function
    return method


cdef dict _methods = {}             # name -> the original method of Tensor


def _record_methods(on):
    if on:
        for name in ("to", "contiguous"):
            _methods[name] = Tensor.__dict__[name]
            setattr(Tensor, name, recorded_method(_methods[name], name))
    else:
        while _methods:
            setattr(Tensor, *_methods.popitem())


# -- begin and end --------------------------------------------------------------------------------------

@cython.binding(False)                  # so that methods check their self
cdef class Range:
    """An event that Python code begins and ends; for a node, with the gradient that it gets and its number."""
    cdef pt_frame frame

    def __cinit__(self, int kind, str what not None, gradient=None, number=None):
        cdef PyObject *args = <PyObject *>gradient
        if gradient is None:
            pt_event_begin(&self.frame, kind, what)
        else:
            pt_call_begin(&self.frame, what, &args, 1, NULL)
        if self.frame.run:
            self.frame.event.kind = kind
            if kind == PT_EVENT_NODE or kind == PT_EVENT_ENGINE:
                self.frame.event.sequence = 0 if number is None else number

    cpdef end(self):
        pt_event_end(&self.frame)


NODE, ENGINE, USER, MODULE = PT_EVENT_NODE, PT_EVENT_ENGINE, PT_EVENT_USER, PT_EVENT_MODULE
OP, MEMORY = PT_EVENT_OP, PT_EVENT_MEMORY


modules = False                     # whether calls of modules are recorded


def start(bint all_threads=False, bint shapes=False, bint stacks=False, bint memory=False, bint modules=False,
          device_type=None):
    """Begins to record the calls of this thread, or of all threads."""
    if pt_profile.run:
        raise RuntimeError("profile: another profile is on; a process has one at a time")
    pt_profile.all_threads, pt_profile.shapes, pt_profile.stacks = all_threads, shapes, stacks
    pt_profile.device_begin = NULL
    pt_profile.device_end = NULL
    if device_type is not None:
        from ptcore import cuda
        globals()["_device"] = cuda
        pt_profile.device_begin = device_begin
        pt_profile.device_end = device_end
    pt_profile.inputs, pt_profile.stack, pt_profile.sequence = describe, frames, number_of_nodes
    if not pt_profile_start():
        raise MemoryError()
    record_operators()
    pt_functions_record(1)
    pt_overridables_record(1)
    globals()["modules"] = modules
    try:
        _record_methods(True)
        _watching.tell(True)
    except BaseException:
        stop()
        raise
    if memory:
        pt_memory_watch(pt_memory_event)


def stop():
    """Ends the recording; returns the Recording. None if nothing is being recorded."""
    cdef Recording r
    if not pt_profile.run:
        return None
    r = Recording.__new__(Recording)
    r.ended = pt_event_clock()
    pt_memory_watch(NULL)
    r.first = pt_profile_stop()
    pt_functions_record(0)
    pt_overridables_record(0)
    leave_operators()
    _record_methods(False)
    _watching.tell(False)
    return r


def is_recording():
    """Whether a profile is on."""
    return pt_profile.run != 0


def clock():
    """The clock of events, in nanoseconds."""
    return pt_event_clock()


def pause(bint on):
    """Pauses the recording of this thread until the function is called with False."""
    cdef pt_recorder *r = pt_recorder_here()
    if r != NULL:
        r.paused = on


def _forked():
    """Stops recording in a process that was forked inside of a profile: the parent has the events."""
    if pt_profile.run:
        stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@cython.binding(False)
cdef class Recording:
    """The recorded events, read by thread."""
    cdef pt_recorder *first
    cdef readonly int64_t ended

    def __dealloc__(self):
        cdef pt_recorder *r = self.first
        cdef pt_recorder *next_one
        while r != NULL:
            next_one = r.next
            pt_recorder_free(r)
            r = next_one

    def __len__(self):
        cdef pt_recorder *r = self.first
        cdef Py_ssize_t n = 0
        while r != NULL:
            n += r.n
            r = r.next
        return n

    def threads(self):
        """For each thread (identity, native identity, events), in the order of their start. An event is (kind, what,
        start, end, parent, sequence, bytes, inputs, stack, device), its times in nanoseconds; inputs are (names of the
        keywords, values) or None, device is (number, microseconds, bytes) or None."""
        cdef pt_recorder *r = self.first
        cdef pt_event *e
        cdef int32_t k
        cdef int64_t at, n
        cdef list found = [], events
        cdef PyObject *names
        while r != NULL:
            events = []
            for k in range(r.n):
                e = pt_recorder_event(r, k)
                inputs = None
                if e.inputs >= 0:
                    at = e.inputs + 2
                    n = r.words[e.inputs]
                    values = [value_at(r.words, &at) for _ in range(n)]
                    names = <PyObject *><size_t>r.words[e.inputs + 1]
                    inputs = (<object>names if names != NULL else (), values)
                events.append((e.kind, <object>e.what if e.what != NULL else None, e.start,
                               e.end if e.end else self.ended, e.parent, e.sequence, e.bytes, inputs,
                               <object>e.stack if e.stack != NULL else None,
                               device_of_event(<object>e.device if e.device != NULL else None)))
            found.append((r.thread, r.native, events))
            r = r.next
        found.reverse()
        return found
