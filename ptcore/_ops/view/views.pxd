# Views: one function for each view row. See views.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef object run_view(int op, PyObject **args, int n)
cdef object made_view(int op, PyObject **args, int n)
cdef object view_taken(int op, PyObject **args, int n, object result)
cdef object view(int op, object x, object shape)
cdef object reshape(int op, object x, object shape)
cdef object expand(int op, object x, object size)
cdef object transpose(int op, object x, object dim0, object dim1)
cdef object t(int op, object input)
cdef object permute(int op, object x, object dims)
cdef object squeeze(int op, object x, object dim)
cdef object unsqueeze(int op, object x, object dim)
cdef object select(int op, object x, object dim, object index)
cdef object unbind(int op, object input, object dim)
cdef object split_evenly(int op, object input, object sizes, object dim)
cdef object split_by_sizes(int op, object input, object sizes, object dim)
cdef object split_by_slices(int op, object input, object sizes, object dim)
cdef object slice(int op, object x, object dim, object start, object end, object step)
cdef object as_strided_of(int op, object x, object size, object stride, object offset,
                          object input_stride, object input_offset)
cdef object diagonal(int op, object x, object offset, object dim1, object dim2)
cdef object unfold(int op, object input, object dimension, object size, object step)
cdef object real(int op, object x)
cdef object imag(int op, object x)
cdef object view_as_real(int op, object x)
cdef object view_as_complex(int op, object x)

cdef Tensor window(int op, Tensor x, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                   object params)
cdef Tensor select_at(Tensor x, int dim, int64_t index, int gone)
cdef Tensor slice_at(Tensor x, int dim, int64_t start, int64_t length, int64_t step,
                     object params)
cdef Tensor unsqueeze_at(Tensor x, int dim)
