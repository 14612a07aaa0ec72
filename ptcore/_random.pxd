# Random calls of the core. See _random.pyx.
from libc.stdint cimport uint64_t

cdef int next_random(object generator, int column, int index, uint64_t *seed, uint64_t *offset,
                     void **twister) except -1
cdef bint is_pytorch(object generator, int column) except -1
