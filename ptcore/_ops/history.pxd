# Recording of ops. See history.pyx.
from ptcore._types cimport *
from ptcore._node cimport Node, TensorMeta
from ptcore._tensor cimport Tensor

cdef TensorMeta meta_of(Tensor t)
cdef int save(Node n, int slot, object x) except -1
cdef int save_at(Node n, int slot, object x, uint64_t version) except -1
cdef int link(Node n, int i, Tensor t) except -1
cdef int check_inplace(Tensor x, const char *op, bint recording) except -1
cdef int check_saved(Tensor x, const char *op) except -1
cdef int check_writable(Tensor x, const char *op) except -1
cdef bint is_counted_below(Tensor x) noexcept
cdef int finish_inplace(Tensor x, Node n) except -1
cdef Tensor written_base(Tensor t)
