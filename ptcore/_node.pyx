"""Node: one recorded operation, as plain data.

Dispatch fills it, the engine (autograd/_engine.py) walks it; nothing here knows an op.

Invariants:
(a) an edge leads to a Node with a smaller seq, to a leaf Tensor, or to None;
(b) a saved tensor never has this Node as its grad_fn (outputs are saved as detached
    aliases), so a graph alone is no reference cycle;
(c) gbuf belongs to the engine run whose stamp is in ``run``; any other stamp is stale;
(d) after a backward without retain_graph the slots are empty and ``freed`` is set.
"""
cimport cython

from ptcore._types cimport *

cdef uint64_t _seq = 0


cpdef uint64_t next_seq():
    global _seq
    _seq += 1
    return _seq


cdef class TensorMeta:
    """Shape, dtype and device of a tensor whose data a rule does not need."""

    def __init__(self, shape, dtype, device):
        self.shape, self.dtype, self.device = shape, dtype, device

    @property
    def ndim(self):
        return len(self.shape)

    def numel(self):
        return self.shape.numel()


@cython.trashcan(True)
cdef class Node:
    """A recorded operation of the autograd graph.

    Attributes
    ----------
    next_functions : tuple of (node, int)
        Where the gradients of the inputs go.
    """

    cpdef object edge(self, int i):
        if i == 0:
            return self.e0
        if i == 1:
            return self.e1
        if i == 2:
            return self.e2
        return (<tuple>self.emore[i - 3])[0]

    cpdef int edge_nr(self, int i):
        if i == 0:
            return self.n0
        if i == 1:
            return self.n1
        if i == 2:
            return self.n2
        return (<tuple>self.emore[i - 3])[1]

    cdef void set_edge(self, int i, object edge, int nr):
        if i == 0:
            self.e0 = edge
            self.n0 = nr
        elif i == 1:
            self.e1 = edge
            self.n1 = nr
        elif i == 2:
            self.e2 = edge
            self.n2 = nr
        else:
            self.emore = (self.emore or ()) + ((edge, nr),)

    cpdef object saved(self, int slot):
        """The value in a slot, checked against the version at which it was saved."""
        if self.freed:
            raise RuntimeError(
                "backward: the graph has been freed by an earlier backward; trying to backward "
                "through it a second time needs retain_graph=True the first time")
        if slot == 0:
            return unpack(self.s0, self.v0, self, 0)
        if slot == 1:
            return unpack(self.s1, self.v1, self, 1)
        if slot == 2:
            return unpack(self.s2, self.v2, self, 2)
        if slot == 3:
            return unpack(self.s3, self.v3, self, 3)
        cdef int k = 2 * (slot - 4)
        return unpack(self.smore[k], self.smore[k + 1], self, slot)

    def release(self):
        """Drops what was saved (the end of a backward without retain_graph)."""
        self.s0 = self.s1 = self.s2 = self.s3 = None
        self.smore = None
        self.freed = True
        if self.op < 0 and hasattr(self.fn, "release"):
            self.fn.release()

    @property
    def next_functions(self):
        return tuple([(self.edge(i), self.edge_nr(i)) for i in range(self.nin)])

    def _sequence_nr(self):
        return self.seq


cdef Node new_node(int op, int nin):
    global _seq
    cdef Node n = Node.__new__(Node)
    _seq += 1
    n.seq = _seq
    n.op = op
    n.nin = nin
    n.nout = 1
    return n


cdef void set_unpack(object (*f)(object, uint64_t, Node, int)):
    global unpack
    unpack = f
