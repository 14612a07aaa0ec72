# C functions of this shared object that backends call from their own. See levels.pyx.
from ptcore._types cimport pt_view

cdef int copy_views(const pt_view *dst, const pt_view *src) noexcept nogil
