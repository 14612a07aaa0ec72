# Node: one recorded operation, as plain data. See _node.pyx.
from ptcore._types cimport int64_t, uint64_t, uint16_t, int32_t

cdef class TensorMeta:
    cdef int rank
    cdef int dt
    cdef int column
    cdef int number
    cdef int layout
    cdef int64_t[5] sizes               # up to five dims
    cdef object size                    # the shape of more dims, or a shape with symbolic sizes

cdef TensorMeta new_meta(int rank, const int64_t *sizes, int dt, int column, int number)

cdef class Node:
    cdef public uint64_t seq
    cdef public int op
    cdef public int nin
    cdef public int nout
    cdef public bint freed
    # edges: a Node, a leaf Tensor, or None; n0.. the output number of that Node
    cdef public object e0, e1, e2
    cdef public list emore                  # (edge, output number) from the fourth edge on
    cdef public int n0, n1, n2
    # saved: slots 0-2 inputs in plan order, 3 the output, 4... the rest
    cdef public object s0, s1, s2, s3
    cdef public uint64_t v0, v1, v2, v3
    cdef public list smore                  # [object, version, object, version, ...]
    # the non-tensor arguments in signature order, then the lengths of lists of tensors
    cdef public tuple params
    cdef public object spec                 # per input (shape, dtype code) to return to, or None
    cdef public object fn                   # the rule of a custom Function or of a runtime op; a Node: ``written_as``
    cdef public uint64_t run                # stamp of the engine run that gbuf belongs to
    cdef public uint64_t mark_run           # stamp of the engine run that set ``mark``
    cdef public int mark                    # the result of that run's survey for this node
    cdef int instruction                    # the position in ``code``, in bytes
    cdef public object gbuf                 # the gradient of the output, a list when nout > 1
    cdef public object hooks                # NodeHooks or None
    cdef public object out_meta             # per-output (shape, dtype, device) where nout > 1
    cdef public object trace                # the user's forward frames (anomaly mode)
    cdef object code                        # the code object of the user's frame that made the node
    cdef public object stream               # the stream of the op, where backward runs it; None: the CPU
    cdef object __weakref__

    cpdef object edge(self, int i)
    cpdef int edge_nr(self, int i)
    cdef int set_edge(self, int i, object edge, int nr) except -1
    cpdef object saved(self, int slot)
    cdef object kept(self, object value)

cdef Node new_node(int op, int nin)
cdef void take_place(Node n, Node of) noexcept
cdef Node twin(Node n)
# Installed by the tensor module: (object, version) -> the tensor, or raises if it was written to since.
cdef object (*unpack)(object, uint64_t, Node, int)
cdef void set_unpack(object (*f)(object, uint64_t, Node, int)) noexcept
cpdef uint64_t next_seq()
