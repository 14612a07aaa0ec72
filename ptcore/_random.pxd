# Random calls of the core. See _random.pyx.
from libc.stdint cimport uint64_t

cdef int next_random(object generator, int column, int index, uint64_t *seed, uint64_t *offset) except -1
