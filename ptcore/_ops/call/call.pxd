# Call: the data that the steps of one call share. It lives on the C stack of `call` in run.pyx or of
# `elementwise` in elementwise.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._dtype cimport REAL_OF
from ptcore._tensor cimport Tensor
from ptcore._ops.table.ids cimport *

cdef enum:
    INLINE_TENSORS = 8          # a call with more tensors, or more ints, keeps them in `room`
    INLINE_INTS = 128
    MAX_ARGS = 20
    MAX_OUTS = 8
    NO_ARGUMENT = 255

cdef struct Out:                # one output, as the shape rule wants it
    int ndim, dt
    bint laid                   # with these strides; else row-major
    int64_t[64] sizes
    int64_t[64] strides

cdef struct Call:
    int op, n
    pt_opinfo *o
    PyObject **args             # in the order of the row; borrowed
    PyObject *lead              # the first tensor
    uint32_t key                # flags of all tensors and of the thread
    bint taken                  # an interpreter has run the call: symbolic numbers count by their hints and are kept
    bint normal                 # the arguments are of plain types (`plain_arguments`), not as the user gave them
    int nin, nparams, nout
    int dt                      # of the tensors that promote; -1: no tensor does
    int column, number          # the device of the outputs
    uint64_t dims               # a bit for each dim that a parameter names
    bint keepdim
    void *room
    pt_view *inputs
    PyObject **tensors          # borrowed; NULL: absent
    uint8_t *argument           # which tensor argument each tensor belongs to, or NO_ARGUMENT
    int64_t *ints               # the ints of parameters with several of them
    int nints
    bint last                   # the call runs in the channels-last memory format
    int onto                    # the output goes to another device: a copy in place of a kernel
    (PyObject *)[20] plain      # the other arguments; NULL: a dim or dims, kept in params
    pt_param[20] params
    pt_view[8] inline_inputs
    (PyObject *)[8] inline_tensors
    uint8_t[8] inline_argument
    int64_t[128] inline_ints
    Out[8] outs
    PyObject *written           # in place: the tensor written to; and its old value if the rule needs it, or NULL
    PyObject *before
    # of elementwise calls
    int compute                 # the dtype that the loops compute in
    (PyObject *)[5] operands    # tensors and numbers; borrowed
    PyObject *made              # made by the call and borrowed: a list or NULL; freed by whoever began the call


cdef inline void begin(Call *c, int op, PyObject **args, int n) noexcept:
    """A call before anything of it is read."""
    c.op, c.n, c.o, c.args = op, n, info(op), args
    c.normal = c.taken = c.last = False
    c.room = NULL
    c.inputs, c.tensors, c.argument, c.ints = c.inline_inputs, c.inline_tensors, c.inline_argument, c.inline_ints
    c.onto = -1
    c.made = c.written = c.before = NULL


cdef inline void begin_new(Call *c, int op, int dt, int column, int number) noexcept:
    """A call without tensors: what it makes has this dtype, and lies on this device. Its sizes and numbers are not read
    yet."""
    begin(c, op, NULL, 0)
    c.key = 0
    c.nin = c.nparams = 0
    c.nout = 1
    c.column, c.number = column, number
    c.outs[0].dt = dt
    c.outs[0].laid = False


cdef inline int out_dtype(int op, int dt) noexcept:
    """The result dtype of an elementwise loop that computes in dtype dt."""
    cdef int rule = info(op).out
    if rule == PT_OUT_SAME:
        return dt
    return PT_BOOL if rule == PT_OUT_BOOL else REAL_OF[dt]


cdef inline bint is_wide(Call *c, int k) noexcept:
    """Whether operand k of an elementwise call in a half type is a number, or a 0-d tensor of another dtype, that is
    taken in float32: float16 does not hold 100,000. An op that gives back its operands takes numbers of the dtype, and
    so do comparisons, for which ``x == 0.1`` holds where x was made from 0.1."""
    cdef Tensor t
    if c.compute != PT_FLOAT16 and c.compute != PT_BFLOAT16 or c.o.selects or c.o.out != PT_OUT_SAME:
        return False
    if c.tensors[k] == NULL:
        return True
    t = <Tensor>c.tensors[k]
    return t.rank == 0 and t.dt != c.compute and k != c.o.condition - 1


cdef inline int saved_code(Call *c, int k) noexcept:
    """What slot k of the call's node saves, as in pt_opinfo.saved, or -1. A rule that computes with the output gets the
    inputs instead in half types, and computes the output again: as it was saved it would be rounded, or infinite."""
    cdef int dt, code = c.o.saved[k]
    if not code & BY_TYPE:
        return code
    dt = c.compute if c.o.kind == PT_ELEMENTWISE else c.dt
    if code < PT_SAVE_META and c.o.kind == PT_ELEMENTWISE:
        code &= ~KEPT
    return code & ~BY_TYPE if (dt == PT_FLOAT16 or dt == PT_BFLOAT16) != (code >= PT_SAVE_OUT) else -1


cdef inline bint is_kept(object x) noexcept:
    """Whether a node saves an operand beside the output from which its rule can do without it. The output has no digits
    left where tanh is near 1; the operand has, but may cost memory that PyTorch does not take, unless it is a leaf,
    which lives anyway, or small."""
    cdef Tensor t
    if not isinstance(x, Tensor):
        return False
    t = <Tensor>x
    return ((t.dt == PT_FLOAT32 or t.dt == PT_FLOAT64) and not t.flags & PT_INFERENCE
            and (t.count <= 1024 or (t.node is None and t.flags & PT_REQUIRES_GRAD)))


cdef inline int lower(int column) noexcept:
    """The lower precision of autocast on a device."""
    if pt_tls.autocast_dtype[column]:
        return pt_tls.autocast_dtype[column]
    return PT_BFLOAT16 if column == DEVICE_CPU else PT_FLOAT16
