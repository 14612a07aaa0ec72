# The fast path of structured ops. See _structured.pyx.
cdef object call(int op, tuple args, object out)
