"""Half types that are computed in float32: where one result is made by several ops, it is rounded once.

A cast is an op, so that it has a derivative and interpreters see it.
"""
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, dtype_of
from ptcore._dtype cimport dtype as DType
from ptcore._tensor cimport Tensor
from ptcore._ops.call.read cimport cast

cdef enum:
    NONE_YET = -1
    OTHER = -2


cdef inline bint is_half(int dt) noexcept:
    return dt == PT_FLOAT16 or dt == PT_BFLOAT16


cdef int common(object x, int found) noexcept:
    """The half type of all tensors of floating-point numbers in a call's argument and those before it. OTHER: there is
    another type among them, or the argument names a dtype."""
    cdef int d
    if isinstance(x, Tensor):
        d = (<Tensor>x).dt
        if is_half(d):
            return d if found == NONE_YET or found == d else OTHER
        return OTHER if CATEGORY[d] >= 2 else found
    if type(x) is tuple or type(x) is list:
        for item in x:
            found = common(item, found)
        return found
    return OTHER if isinstance(x, DType) else found


cdef object in_float32(object body, PyObject **args, Py_ssize_t n):
    """A function of tensors that all have one half type, called with them in float32; its results have the half type.
    NotImplemented, and no call, where the types differ, or the first argument holds integers: the function may make
    them floats of the default dtype."""
    cdef int found = NONE_YET
    cdef Py_ssize_t k
    if isinstance(<object>args[0], Tensor) and CATEGORY[(<Tensor>args[0]).dt] < 2:
        return NotImplemented
    for k in range(n):
        found = common(<object>args[k], found)
        if found == OTHER:
            return NotImplemented
    if found == NONE_YET:
        return NotImplemented
    return narrowed(body(*[widened(<object>args[k]) for k in range(n)]), dtype_of(found))


cpdef object widened(object x):
    """A tensor of a half type in float32; each of a tuple or a list; anything else unchanged."""
    if isinstance(x, Tensor):
        return cast(<Tensor>x, PT_FLOAT32) if is_half((<Tensor>x).dt) else x
    if type(x) is tuple:
        return tuple([widened(item) for item in x])
    return [widened(item) for item in x] if type(x) is list else x


cpdef object narrowed(object x, DType dtype):
    """A float32 tensor in a dtype; each of a tuple or a list; anything else unchanged."""
    if isinstance(x, Tensor):
        return cast(<Tensor>x, dtype.code) if (<Tensor>x).dt == PT_FLOAT32 else x
    if isinstance(x, (tuple, list)):
        made = [narrowed(item, dtype) for item in x]
        return made if type(x) is list else type(x)(made)
    return x


cpdef object half_type(object x):
    """The dtype of the first tensor of a half type in an argument or a list of them; None if there is none."""
    if isinstance(x, Tensor):
        return dtype_of((<Tensor>x).dt) if is_half((<Tensor>x).dt) else None
    if type(x) is tuple or type(x) is list:
        for item in x:
            found = half_type(item)
            if found is not None:
                return found
    return None
