"""Views in place: ``x.t_()`` makes the view ``x.t()``, and x becomes it.

Modes and classes see the form in place. Interpreters see the view; the owner of a stand-in then hears what the stand-in
becomes (``Interpreter.becomes``). No other tensor changes: views of x that were made before keep their dims.
"""
from cpython.object cimport PyObject
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._interpret cimport TOLD_CHANGED, told, told_owner
from ptcore._dtype cimport ITEMSIZE
from ptcore._shape cimport sizes_tuple
from ptcore._state cimport interpreter_stack
from ptcore._tensor cimport *
from ptcore._ops.call.offer cimport PT_VARIANT_INPLACE, PT_VARIANT_PLAIN, interpret, is_of_top, offer
from ptcore._ops.history cimport check_inplace
from ptcore._ops.plan.hooks cimport dry, planning, spoil
from ptcore._ops.table.ids cimport info
from ptcore._ops.view.views cimport made_view, run_view, view_taken, window
from ptcore._ops.table.ids import called_as, op_id
from ptcore._subclass import become, set_view_of_all

cdef int OP_AS_STRIDED = op_id("as_strided_of"), OP_VIEW = op_id("view")


cdef object run_view_inplace(int op, PyObject **args, int n):
    """Calls the in-place form of a view row on n arguments in the order of the row."""
    cdef str name = info(op).name.decode() + "_"
    cdef uint32_t key
    if not isinstance(<object>args[0], Tensor):
        raise TypeError(f"{name}: input must be a Tensor, got {type(<object>args[0]).__name__}")
    key = (<Tensor>args[0]).flags | pt_tls.mode
    if key & PT_SLOW & ~PT_MODE_AUTOCAST:
        result = offer(op, args, n, key & ~<uint32_t>PT_INTERPOSED, None, PT_VARIANT_INPLACE)
        if result is not NotImplemented:
            return result
    try:
        return changed(op, <Tensor>args[0], args, n, name)
    except Exception as e:
        called_as(e, name)
        raise


cdef Tensor changed(int op, Tensor x, PyObject **args, int n, str name):
    cdef bint recording = pt_tls.grad_enabled and needs_grad(x)
    cdef Tensor v
    cdef bytes text
    if recording or x.flags & PT_INFERENCE:
        text = name.encode()
        check_inplace(x, text, recording)
    if dry():
        raise RuntimeError(f"{name}: the dims of a tensor are changed in place")
    if planning():
        spoil(b"it changes the dims of a tensor in place")
    if x.flags & PT_INTERPOSED:
        v = view_of_stand_in(op, x, args, n, name)
    else:
        if pt_tls.mode & PT_INTERPOSED:
            told(TOLD_CHANGED, "dims", x)
        v = <Tensor?>made_view(op, args, n)
    take_dims(x, v)
    if recording:
        set_node(x, v.node, v.out_nr)
    return x


cdef Tensor view_of_stand_in(int op, Tensor x, PyObject **args, int n, str name):
    """The view that a stand-in becomes. It is made of an alias, so that nothing that it refers to changes with x."""
    cdef Tensor before = <Tensor?>become(x), v
    cdef (PyObject *)[8] given
    memcpy(given, args, n * sizeof(PyObject *))
    given[0] = <PyObject *>before
    made = interpret(op, given, n, None, PT_VARIANT_PLAIN)
    if made is NotImplemented:
        made = made_view(op, given, n)
    elif is_of_top(before):
        made = view_taken(op, given, n, made)
    v = <Tensor?>made
    if not v.flags & PT_INTERPOSED:
        raise RuntimeError(f"{name}: the interpreter of a stand-in gives no stand-in for its view")
    told_owner((<TensorExtras>v.extras).payload.owner, x, v)
    return v


cdef int take_dims(Tensor x, Tensor v) except -1:
    """Gives x the dims of its view v, and what v stands for. This counts as a write: a backward raises if it saved x
    with the old dims."""
    cdef uint32_t keep = x.flags & ~<uint32_t>PT_NONCONTIGUOUS
    adopt(x, v)
    x.flags = keep | (v.flags & PT_NONCONTIGUOUS)
    if v.flags & PT_INTERPOSED:
        share_extras(x, v)
    count_write(x)
    x.attr_version = version_of(x)
    return 0


def view_of_all(Tensor x not None):
    """The view that shows all of x. No class is asked."""
    cdef (PyObject *)[2] args
    if not (x.flags | pt_tls.mode) & PT_INTERPOSED:
        return window(OP_VIEW, x, x.rank, x.dims, x.dims + x.rank, x.offset, (sizes_tuple(x.rank, x.dims),))
    if not interpreter_stack():
        return x                        # a stand-in outside of its transformation: the same value
    sizes = x.shape
    args[0], args[1] = <PyObject *>x, <PyObject *>sizes
    result = interpret(OP_VIEW, args, 2, None, PT_VARIANT_PLAIN)
    if result is NotImplemented:
        return made_view(OP_VIEW, args, 2)
    return view_taken(OP_VIEW, args, 2, result) if x.flags & PT_INTERPOSED and is_of_top(x) else result


set_view_of_all(view_of_all)


# -- the bodies of as_strided ----------------------------------------------------------------------

def as_strided(Tensor input not None, size, stride, storage_offset):
    """The body of ``as_strided``."""
    return strided(input, size, stride, storage_offset, False)


def as_strided_(Tensor input not None, size, stride, storage_offset):
    """The body of ``as_strided_``."""
    return strided(input, size, stride, storage_offset, True)


cdef object strided(Tensor x, object size, object stride, object offset, bint in_place):
    cdef object steps = (), start = 0
    cdef (PyObject *)[6] args
    if (x.flags | pt_tls.mode) & PT_SLOW:       # an interpreter's rule needs the geometry of x
        steps, start = x.stride(), x.storage_offset()
        offset = start if offset is None else offset
    elif offset is None:
        offset = x.offset // ITEMSIZE[x.dt]
    args[0], args[1], args[2] = <PyObject *>x, <PyObject *>size, <PyObject *>stride
    args[3], args[4], args[5] = <PyObject *>offset, <PyObject *>steps, <PyObject *>start
    return run_view_inplace(OP_AS_STRIDED, args, 6) if in_place else run_view(OP_AS_STRIDED, args, 6)
