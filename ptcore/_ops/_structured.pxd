# The fast path of structured ops. See _structured.pyx.
cdef object call(int op, tuple args, object out)
cdef object join(int op, object tensors, object dim, object out)
