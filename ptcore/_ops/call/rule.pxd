# The C functions that shape rules call: the counterpart of _sizes/language.py.
from cpython.object cimport PyObject
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._device cimport device
from ptcore._shape cimport strides_like
from ptcore._ops.call.call cimport *


cdef inline const pt_view *tensor(Call *call, int64_t k) noexcept nogil:
    return &call.inputs[k]


cdef inline bint given(const pt_view *x) noexcept nogil:
    return x.dtype != PT_NONE


cdef inline Out *output(Call *call, int64_t k, int64_t ndim, int64_t dtype) noexcept nogil:
    cdef Out *out = &call.outs[k]
    out.ndim, out.dt, out.laid = <int>ndim, <int>dtype, False
    return out


cdef inline Out *like(Call *call, int64_t k, const pt_view *x, int64_t dtype) noexcept nogil:
    cdef Out *out = output(call, k, x.ndim, dtype)
    memcpy(out.sizes, x.sizes, x.ndim * sizeof(int64_t))
    return out


cdef inline void keep_strides(Call *call, const pt_view *x) noexcept nogil:
    if not x.contiguous:
        call.outs[0].laid = True
        strides_like(x.ndim, x.sizes, x.strides, call.outs[0].strides)


cdef inline bint place(Call *call, PyObject *onto) noexcept:
    """Reads a device. False: it is a text or a number that names a device, not a device object."""
    if type(<object>onto) is not device:
        return False
    call.onto = call.column = (<device>onto).column
    call.number = (<device>onto).number
    return True


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef inline bint fits(int64_t n, int bits) noexcept nogil:
    return -((<int64_t>1) << bits) < n < ((<int64_t>1) << bits)
