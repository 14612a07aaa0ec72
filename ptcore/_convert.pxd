# NumPy's arrays and other buffers as tensors. See _convert.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef bint is_plain_ndarray(object value)
cdef object exporter_of(pt_storage *s)
cdef Tensor from_buffer(object value, str op)
