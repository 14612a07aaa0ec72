"""Attention by tiles with scores that programs modify: the CPU kernel of ``flex_attention``, see tiles.h."""
cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._tensor cimport *
from ptcore._ops.plan.hooks cimport loops_run, planning, pt_plan
from ptcore._ops.plan.plan cimport Plan, Spot
from ptcore._ops.table.ids cimport kernel_of, run_kernel
from ptcore._ops.table.ids import op_id

cdef extern from "attention/tiles.h":
    ctypedef struct pt_score_operand:
        const char *data
        int64_t[4] step
        int32_t buffer
    ctypedef struct pt_score_program:
        const pt_plan *plan
        void (*run)(const pt_plan *, char *const *, int64_t) noexcept nogil
        const pt_score_operand *operands
        int32_t count, score, grad, result
    ctypedef struct pt_attention_tiles:
        int64_t height, width, rows, by_batch, by_head
        const int64_t *first
        const int64_t *spans
        pt_score_program[2] score
        pt_score_program slope
    enum:
        PT_TILE_QUERIES, PT_TILE_KEYS, PT_TILE_BUFFERS
    enum:
        PT_TAKE_DIMS
    ctypedef struct pt_taken:
        const char *data
        int64_t[4] sizes, strides
        int64_t ndim
        int *wrong
    const pt_elementwise *pt_take_loops(int itemsize)
cdef extern from "plan/plan.h":
    int pt_plan_make_tile(pt_plan *)
    void pt_plan_run_tile(const pt_plan *, char *const *, int64_t) noexcept nogil

QUERIES, KEYS = PT_TILE_QUERIES, PT_TILE_KEYS


@cython.binding(False)                  # so that methods check their self
cdef class Taken:
    """A tensor that a program gathers elements from, and whether an index was out of range."""
    cdef pt_taken t
    cdef int wrong
    cdef Tensor source

    def __cinit__(self, Tensor source not None):
        cdef int d
        if not 1 <= source.rank <= PT_TAKE_DIMS or not source.count or pt_take_loops(source.itemsize) == NULL:
            raise ValueError("Taken: the tensor has too many dims, no elements, or elements of 16 bytes")
        self.source, self.t.data, self.t.ndim, self.t.wrong = source, address(source), source.rank, &self.wrong
        for d in range(source.rank):
            self.t.sizes[d], self.t.strides[d] = source.dims[d], source.dims[source.rank + d]

    def at(self, list indices not None):
        """A tensor of the tile that the plan being recorded gathers from the source: one int64 index tensor of the tile
        for each dim of the source."""
        cdef pt_view[5] views
        cdef int k
        cdef Tensor out, t
        if not planning() or len(indices) != self.source.rank:
            raise ValueError("at: no plan is recorded, or there is not an index for each dim")
        for k, x in enumerate(indices):
            t = <Tensor?>x
            if t.dt != PT_INT64 or t.rank != 2 or t.dims[0] != PT_TILE_KEYS:
                raise ValueError("at: an index is no int64 tensor of the tile")
            fill_view(t, &views[1 + k])
        out = new_tensor(self.source.dt, 2, t.dims, DEVICE_CPU, -1)
        fill_view(out, &views[0])
        loops_run(pt_take_loops(self.source.itemsize), PT_INT64, self.source.dt, &views[0], &views[1],
                  self.source.rank, &self.t, sizeof(self.t))
        return out

    def check(self):
        """Raises IndexError if an index was out of range since the last check."""
        if self.wrong:
            self.wrong = 0
            raise IndexError("flex_attention: an index is out of range of a tensor of shape "
                             f"{list(self.source.shape)} of which score_mod or mask_mod takes an element")


@cython.binding(False)
cdef class Program:
    """A recorded plan as a program for tiles.

    Parameters
    ----------
    plan : Plan
        The recorded plan of a tile of KEYS rows of queries. Its inputs: scores, the gradient if any, ``tables``.
    result : Spot
    tables : list of Tensor
        4-d, over batches, heads, queries and keys; a dim of size 1 is broadcast.
    has_grad : bool
    taken : list of Taken
        The tensors that the program gathers elements from.

    Raises
    ------
    ValueError
        If the plan is not one group.
    """
    cdef pt_score_program f
    cdef pt_score_operand *operands
    cdef object plan, tables
    cdef readonly list taken

    def __cinit__(self, Plan plan not None, Spot result not None, list tables not None, bint has_grad,
                  list taken not None):
        cdef int k, d, first = 2 if has_grad else 1
        cdef Tensor t
        if plan.n_inputs != first + len(tables) or not pt_plan_make_tile(plan.p) or result.place.offset:
            raise ValueError("Program: the plan is not one group over its tile")
        if plan.n_buffers > PT_TILE_BUFFERS or result.place.buffer < 0:
            raise ValueError("Program: the plan has too many buffers, or none for its result")
        self.operands = <pt_score_operand *>PyMem_Calloc(len(tables) + 1, sizeof(pt_score_operand))
        if self.operands == NULL:
            raise MemoryError()
        for k in range(<int>len(tables)):
            t = <Tensor?>tables[k]
            self.operands[k].data = address(t)
            self.operands[k].buffer = plan.inputs[first + k].buffer
            for d in range(4):
                self.operands[k].step[d] = 0 if t.dims[d] == 1 else t.dims[4 + d] * t.itemsize
        self.f.plan, self.f.run = plan.p, pt_plan_run_tile
        self.f.operands, self.f.count = self.operands, <int>len(tables)
        self.f.score = plan.inputs[0].buffer
        self.f.grad = plan.inputs[1].buffer if has_grad else -1
        self.f.result = result.place.buffer
        self.plan, self.tables, self.taken = plan, tables, taken

    def __dealloc__(self):
        PyMem_Free(self.operands)


cdef int set_program(pt_score_program *f, Program p) noexcept:
    if p is not None:
        f[0] = p.f
    return 0


@cython.binding(False)
cdef class Tiles:
    """Attention over spans of keys, with scores that programs modify.

    Parameters
    ----------
    first, spans : Tensor
        int64. ``first``: for each row of blocks of each head and batch its first span, and one entry more. ``spans``:
        first key, number of keys, and 0 or 1, the entry of ``programs`` that modifies the scores of the span.
    height, width, rows : int
        The queries of a tile, the room for queries in a tile, and the queries of a row of blocks.
    by_batch, by_head : int
        The distance in rows of blocks from one batch, or head, to the next; 0: all share the same rows.
    programs : list
        Two Programs or None for the scores, and one for the gradient of scores from that of modified scores.
    """
    cdef pt_attention_tiles f
    cdef object kept
    cdef list programs

    def __cinit__(self, Tensor first not None, Tensor spans not None, int64_t height, int64_t width, int64_t rows,
                  int64_t by_batch, int64_t by_head, list programs not None):
        self.f.first, self.f.spans = <const int64_t *>address(first), <const int64_t *>address(spans)
        self.f.height, self.f.width, self.f.rows = height, width, rows
        self.f.by_batch, self.f.by_head = by_batch, by_head
        set_program(&self.f.score[0], programs[0])
        set_program(&self.f.score[1], programs[1])
        set_program(&self.f.slope, programs[2])
        self.kept, self.programs = (first, spans), programs

    cdef int run(self, bytes op, list inputs, list outputs, double scale, int nparams) except -1:
        cdef pt_view[16] views
        cdef pt_param[5] params
        cdef pt_call c
        cdef int k, nin = <int>len(inputs), nout = <int>len(outputs)
        cdef pt_kernel kernel = kernel_of(op_id(op.decode()), DEVICE_CPU)
        memset(views, 0, sizeof(views))
        memset(params, 0, sizeof(params))
        memset(&c, 0, sizeof(c))
        for k in range(nout + nin):
            t = outputs[k] if k < nout else inputs[k - nout]
            if t is None:
                views[k].dtype = PT_NONE
            else:
                fill_view(<Tensor?>t, &views[k])
        for k in range(nparams + 1):
            params[k].kind = PT_PARAM_INT
        params[1].kind, params[1].d = PT_PARAM_FLOAT, scale
        params[2].kind = PT_PARAM_FLOAT
        params[nparams].i = <int64_t><size_t>&self.f
        c.op, c.nin, c.nout, c.nparams = -1, nin, nout, nparams + 1
        (<const pt_view **>&c.inputs)[0] = views + nout
        c.out = views
        (<const pt_param **>&c.params)[0] = params
        run_kernel(kernel, &c, b"flex_attention", True)
        for program in self.programs:
            if program is not None:
                for t in (<Program>program).taken:
                    t.check()
        return 0

    def forward(self, Tensor query not None, Tensor key not None, Tensor value not None, double scale):
        """(output, log-sum-exp, greatest scores)"""
        cdef int64_t[4] sizes
        cdef int dt = PT_FLOAT64 if query.dt == PT_FLOAT64 else PT_FLOAT32
        sizes[0], sizes[1], sizes[2], sizes[3] = query.dims[0], query.dims[1], query.dims[2], value.dims[3]
        cdef list outputs = [new_tensor(query.dt, 4, sizes, DEVICE_CPU, -1), new_tensor(dt, 3, sizes, DEVICE_CPU, -1),
                             new_tensor(dt, 3, sizes, DEVICE_CPU, -1)]
        self.run(b"attention_stats", [query, key, value, None, None, None], outputs, scale, 3)
        return outputs

    def backward(self, Tensor g not None, Tensor query not None, Tensor key not None, Tensor value not None,
                 Tensor out not None, Tensor lse not None, Tensor g_lse, double scale):
        """The gradients of query, key and value."""
        cdef int64_t none = 0
        cdef list outputs = [new_contiguous(query), new_contiguous(key), new_contiguous(value),
                             new_tensor(query.dt, 1, &none, DEVICE_CPU, -1)]
        self.run(b"attention_backward", [g, query, key, value, None, None, None, out, lse, g_lse], outputs, scale, 4)
        return outputs[:3]


cdef Tensor new_contiguous(Tensor x):
    return new_tensor(x.dt, x.rank, x.dims, DEVICE_CPU, -1)
