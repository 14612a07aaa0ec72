"""Node: one recorded operation, as plain data.

Dispatch fills a node, the engine (autograd/engine.py) walks it; nothing here depends on a particular op.

Invariants:
(a) an edge leads to a Node with a smaller seq, to a leaf Tensor, or to None;
(b) a saved tensor never has this Node as its grad_fn (outputs are saved as detached
    aliases), so a graph alone is no reference cycle;
(c) gbuf belongs to the engine run whose stamp is in ``run``; any other stamp is stale;
(d) after a backward without retain_graph no slot holds a tensor, and ``freed`` is set if a slot
        held one; metadata stays, so that a rule that needs only metadata runs again, as in PyTorch;
(e) ``code`` is a code object, never a frame: it refers to nothing that can refer to a Node.
"""
from math import prod

cimport cython
from cpython.object cimport PyObject

from ptcore import _errors
from ptcore._types cimport *
from ptcore._device cimport device, device_of
from ptcore._dtype cimport dtype, dtype_of
from ptcore._shape cimport make_size

cdef extern from "_source_line.h":
    enum:
        PT_HAS_FRAMES
    PyObject *pt_user_code(int *instruction) noexcept
    int pt_line_of(object code, int instruction) noexcept
    void pt_set_package(object prefix) noexcept
    bint pt_is_package(object name) noexcept

cdef uint64_t _seq = 0


# -- where the user's program is -------------------------------------------------------------------------------

pt_set_package(_errors.PACKAGE)


cdef object frame_of_user():
    """The innermost frame outside of this package, or None."""
    from sys import _getframe
    cdef int depth = 0
    while True:
        try:
            frame = _getframe(depth)
        except ValueError:
            return None
        if not pt_is_package(frame.f_code.co_filename):
            return frame
        depth += 1


cdef tuple resolved(object code, int instruction):
    return code.co_filename, pt_line_of(code, instruction), code.co_name


def user_place():
    """(file, line, function) of the innermost frame outside of this package, or None."""
    cdef int instruction
    cdef PyObject *code
    if not PT_HAS_FRAMES:
        frame = frame_of_user()
        return None if frame is None else resolved(frame.f_code, frame.f_lasti)
    code = pt_user_code(&instruction)
    return None if code == NULL else resolved(<object>code, instruction)


def user_at():
    """(file, line) of the innermost frame outside of this package, or None."""
    place = user_place()
    return None if place is None else place[:2]


def is_package(name):
    """Whether ``name``, a str or an instance of a subclass, is the name of a file of this package."""
    return isinstance(name, str) and pt_is_package(name)


_errors.user_place, _errors.is_package = user_place, is_package


HAS_FRAMES = bool(PT_HAS_FRAMES)        # whether nodes record the user's line outside anomaly mode


cdef int put_place(Node n) except -1:
    """Records the user's place in n, where a thread has ever switched anomaly mode on or source lines off."""
    cdef PyObject *code
    if not pt_tls.mode & PT_MODE_NO_LINES:
        code = pt_user_code(&n.instruction)
        if code != NULL:
            n.code = <object>code
    if pt_modes_seen & PT_SEEN_ANOMALY:
        import traceback
        n.trace = traceback.format_stack()
        if n.code is None:
            frame = frame_of_user()
            if frame is not None:
                n.code, n.instruction = frame.f_code, frame.f_lasti
    return 0


cdef void take_place(Node n, Node of) noexcept:
    """Gives n, a node that is made later on behalf of ``of``, the same place in the user's program."""
    n.code, n.instruction, n.trace = of.code, of.instruction, of.trace


cpdef uint64_t next_seq():
    global _seq
    _seq += 1
    return _seq


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.no_gc
@cython.freelist(64)
@cython.final
cdef class TensorMeta:
    """Shape, dtype and device of a tensor whose data a rule does not need.

    Its only reference is to a Size, so it is in no cycle."""

    @property
    def shape(self):
        return make_size(self.rank, self.sizes) if self.size is None else self.size

    @property
    def dtype(self):
        return dtype_of(self.dt)

    @property
    def device(self):
        return device_of(self.column, self.number)

    @property
    def ndim(self):
        return self.rank

    def numel(self):
        return self.shape.numel() if self.size is None else prod(self.size)


def meta_of_sizes(size, dtype dt, device where):
    """Metadata with sizes of any type, such as those of a traced tensor: rules get them unchanged."""
    cdef TensorMeta m = TensorMeta.__new__(TensorMeta)
    m.rank, m.dt, m.column, m.number, m.size = <int>len(size), dt.code, where.column, where.number, size
    return m


cdef TensorMeta new_meta(int rank, const int64_t *sizes, int dt, int column, int number):
    cdef TensorMeta m = TensorMeta.__new__(TensorMeta)
    cdef int i
    m.rank, m.dt, m.column, m.number = rank, dt, column, number
    if rank <= 5:
        for i in range(rank):
            m.sizes[i] = sizes[i]
    else:
        m.size = make_size(rank, sizes)
    return m


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.freelist(256)
cdef class AccumulateGrad:
    """The end of an edge at a leaf, for programs that walk ``next_functions``.

    The graph itself has the leaf there. Two of these objects are equal if their leaf is the same.
    """
    cdef readonly object variable

    def __eq__(self, other):
        return isinstance(other, AccumulateGrad) and (<AccumulateGrad>other).variable is self.variable

    def __hash__(self):
        return hash(self.variable)

    def __repr__(self):
        return f"<AccumulateGrad object at {<size_t><void *>self.variable:#x}>"

    def name(self):
        return "AccumulateGrad"

    @property
    def next_functions(self):
        return ()


cdef object seen_from_outside(object edge):
    cdef AccumulateGrad end
    if edge is None or type(edge) is Node:
        return edge
    end = AccumulateGrad.__new__(AccumulateGrad)
    end.variable = edge
    return end


def end_at(leaf):
    """The end of the edges that lead to a leaf."""
    return seen_from_outside(leaf)


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.final
@cython.freelist(256)
@cython.trashcan(True)
cdef class Node:
    """A recorded operation of the autograd graph.

    Attributes
    ----------
    next_functions : tuple of (node, int)
        Where the gradients of the inputs go.
    source_line : (str, int, str) or None
        The file, line and function of the program that made it: of the innermost frame outside ptcore. None under
        ``autograd.set_source_lines(False)``, and outside anomaly mode where Python has no cheap way to its frames.
    """

    cpdef object edge(self, int i):
        if i == 0:
            return self.e0
        if i == 1:
            return self.e1
        if i == 2:
            return self.e2
        if self.emore is None or i - 3 >= len(self.emore):
            return None
        return (<tuple>self.emore[i - 3])[0]

    cpdef int edge_nr(self, int i):
        if i == 0:
            return self.n0
        if i == 1:
            return self.n1
        if i == 2:
            return self.n2
        if self.emore is None or i - 3 >= len(self.emore):
            return 0
        return (<tuple>self.emore[i - 3])[1]

    cdef int set_edge(self, int i, object edge, int nr) except -1:
        assert type(edge) is not Node or (<Node>edge).seq < self.seq, "an edge leads to a later node"
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
            if self.emore is None:
                self.emore = []
            while len(self.emore) <= i - 3:
                self.emore.append((None, 0))
            self.emore[i - 3] = (edge, nr)

    cpdef object saved(self, int slot):
        """The value in a slot, checked against the version at which it was saved."""
        cdef object value
        cdef uint64_t version
        cdef int k
        if slot == 0:
            value, version = self.s0, self.v0
        elif slot == 1:
            value, version = self.s1, self.v1
        elif slot == 2:
            value, version = self.s2, self.v2
        elif slot == 3:
            value, version = self.s3, self.v3
        else:
            k = 2 * (slot - 4)
            if self.smore is None or k >= len(self.smore):
                return None             # a slot that this call did not need
            value, version = self.smore[k], self.smore[k + 1]
        if value is None and self.freed:
            raise RuntimeError(
                "backward: Trying to backward through the graph a second time (or directly access saved tensors after "
                "they have already been freed). Specify retain_graph=True in the first backward, which frees them")
        return unpack(value, version, self, slot)

    cdef object kept(self, object value):
        """The part of a saved value that survives release: metadata, but no data."""
        if value is None or type(value) is TensorMeta or type(value) is tuple:
            return value
        self.freed = True
        return None

    def release(self):
        """Drops the tensors that were saved (the end of a backward without retain_graph)."""
        cdef Py_ssize_t k
        self.s0, self.s1 = self.kept(self.s0), self.kept(self.s1)
        self.s2, self.s3 = self.kept(self.s2), self.kept(self.s3)
        if self.smore is not None:
            for k in range(0, len(self.smore), 2):
                self.smore[k] = self.kept(self.smore[k])
        if self.op < 0 and hasattr(self.fn, "release"):
            self.fn.release()

    def __repr__(self):
        return f"<{self.name()} object at {<size_t><void *>self:#x}>"

    @property
    def next_functions(self):
        return tuple([(seen_from_outside(self.edge(i)), self.edge_nr(i)) for i in range(self.nin)])

    @property
    def source_line(self):
        return None if self.code is None else resolved(self.code, self.instruction)

    def _sequence_nr(self):
        return self.seq


cdef Node new_node(int op, int nin):
    global _seq
    cdef PyObject *code
    cdef Node n = Node.__new__(Node)
    _seq += 1
    n.seq = _seq
    n.op = op
    n.nin = nin
    n.nout = 1
    if pt_modes_seen & (PT_MODE_NO_LINES | PT_SEEN_ANOMALY):
        put_place(n)
    else:
        code = pt_user_code(&n.instruction)
        if code != NULL:
            n.code = <object>code
    return n


cdef Node twin(Node n):
    """A node that runs as n does: the same edges, saved values and parameters."""
    cdef Node r = Node.__new__(Node)
    r.seq, r.op, r.nin, r.nout, r.freed = n.seq, n.op, n.nin, n.nout, n.freed
    r.e0, r.e1, r.e2, r.emore = n.e0, n.e1, n.e2, n.emore
    r.n0, r.n1, r.n2 = n.n0, n.n1, n.n2
    r.s0, r.s1, r.s2, r.s3, r.smore = n.s0, n.s1, n.s2, n.s3, n.smore
    r.v0, r.v1, r.v2, r.v3 = n.v0, n.v1, n.v2, n.v3
    r.params, r.spec, r.fn, r.out_meta, r.stream = n.params, n.spec, n.fn, n.out_meta, n.stream
    take_place(r, n)
    return r


cdef void set_unpack(object (*f)(object, uint64_t, Node, int)) noexcept:
    global unpack
    unpack = f
