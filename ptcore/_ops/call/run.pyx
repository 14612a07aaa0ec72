"""Running: structured ops, from bound arguments to recorded results.

    bind (op_function.cpp) -> read -> [offer, plain arguments, read again] -> shape -> allocate -> launch -> record

The steps in brackets are for arguments that are not plain. A call with plain arguments takes only the other steps.
"""
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from ptcore._types cimport *
from ptcore._device cimport BACKENDS, PT_DECOMPOSE, as_device, device, device_of, memory_failure
from ptcore._dtype cimport as_code, dtype_of
from ptcore._gil cimport SMALL, PyThreadState, release_gil, restore_gil
from ptcore._random cimport next_random
from ptcore._shape cimport channels_last_strides, is_channels_last, read_sizes, same_sizes, strides_like
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import _python_kernels, called_as, n_ops, op_id
from ptcore._ops.writing cimport *
from ptcore._ops.call.call cimport *
from ptcore._ops.call.offer cimport before_call, flags_of_all
from ptcore._ops.call.read cimport cast, read, read_plain, set_cast, unsupported
from ptcore._ops.call.record cimport record
from ptcore._ops.plan.hooks cimport copy_run, dry, kernel_run, planning, spoil
from ptcore._ops.history cimport check_inplace, finish_inplace
from ptcore._state import no_grad

cdef enum:
    ROW_MAJOR = 1               # bits of pt_opinfo.contiguous: how the kernel wants its inputs
    KEEPS = 6                   # a mask of memory formats: results keep at most one of the next two from the inputs
    CHANNELS_LAST = 2
    LAYOUT = 4

cdef int OP_TO_DTYPE = op_id("to_dtype")


def call_op(int op, tuple args, out=None):
    """Calls any structured op by id with its arguments in signature order."""
    if not 0 <= op < n_ops() or info(op).kind != PT_STRUCTURED:
        raise IndexError(f"call_op: {op} is no structured op")
    if len(args) != <Py_ssize_t>len(info(op).letters):
        raise TypeError(f"{info(op).name.decode()}: takes {len(info(op).letters)} arguments, got {len(args)}")
    return call_with(op, args, out)


cdef object call_with(int op, tuple args, object out):
    return call(op, PySequence_Fast_ITEMS(args), <int>len(args), out)


cdef bint has_recorded_form(int op, PyObject **args, int n) except -1:
    """Whether a recorded call of a fused gradient is made of smaller ops."""
    cdef int k
    if VJPS[op] is None:
        return False
    for k in range(n):
        if isinstance(<object>args[k], Tensor) and needs_grad(<Tensor>args[k]):
            return True
    return False


cdef list list_of(PyObject **args, int n):
    return [<object>args[k] for k in range(n)]


cdef object call(int op, PyObject **args, int n, object out):
    """Runs a structured op on its arguments in the order of the row."""
    cdef Call c
    if out is not None and info(op).out_rule == PT_OUT_OWN and isinstance(out, Tensor):
        asked = asked_dtype(op, args, n, (<Tensor>out).dtype)
        args = PySequence_Fast_ITEMS(asked)
    begin(&c, op, args, n)
    if not c.o.differentiable and pt_tls.grad_enabled and out is None and has_recorded_form(op, args, n):
        return VJPS[op](*list_of(args, n))
    if read(&c):
        return complete(&c, out)
    return call_of_any(&c, out)


cdef tuple asked_dtype(int op, PyObject **args, int n, object of_out):
    """The arguments with the dtype of out= in the place of a dtype that is not given."""
    cdef int k
    return tuple([of_out if info(op).letters[k] == PT_ARG_DTYPE and <object>args[k] is None else <object>args[k]
                  for k in range(n)])


cdef object call_of_any(Call *c, object out):
    """A call with arguments that are not plain: offered, made plain, and read again."""
    cdef tuple args
    cdef PyObject **given = c.args
    cdef uint32_t key
    if c.o.lists:                       # another thread may change a list while a kernel runs: a tuple replaces it
        args = tuple([tuple(<object>given[k]) if type(<object>given[k]) is list else <object>given[k]
                      for k in range(c.n)])
        c.args = PySequence_Fast_ITEMS(args)
        if read(c):
            return complete(c, out)
        c.args = given
    key = flags_of_all(c.args, c.n)
    if key & PT_INTERPOSED and c.o.mutates and writes(c):
        return with_writes_apart(c)
    if key & PT_SLOW:
        result = before_call(call, c.op, c.args, c.n, key, out)
        if result is not NotImplemented:
            return result
    try:
        args = read_plain(c, key)
        return complete(c, out)
    finally:
        PyMem_Free(c.room)


def check_sizes(int op, tuple args):
    """Raises the errors of a call of a structured op with these arguments; runs no kernel."""
    cdef Call c
    begin(&c, op, PySequence_Fast_ITEMS(args), <int>len(args))
    try:
        if not read(&c):
            args = read_plain(&c, flags_of_all(c.args, c.n))
        if not c.o.shape(&c):
            shape_in_python(&c)
    finally:
        PyMem_Free(c.room)


cdef inline object complete(Call *c, object out):
    """Shapes, allocates, runs and records a call that has been read."""
    cdef (PyObject *)[8] results
    cdef Tensor r
    if not c.o.shape(c):
        shape_in_python(c)
    if out is not None or c.onto >= 0:
        return complete_rest(c, out)
    if c.o.contiguous & CHANNELS_LAST:
        lay_channels_last(c)
    if c.nout > 1:
        return complete_several(c)
    r = allocated(c, &c.outs[0])
    results[0] = <PyObject *>r
    launch(c, results)
    if c.o.contiguous & KEEPS:
        r = in_format(c, r)
        results[0] = <PyObject *>r
    if c.key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled and c.o.differentiable:
        record(c, results)
    return r


cdef Tensor complete_new(Call *c):
    """The result of a call without tensors that ``begin_new`` has begun; such a call has no history."""
    cdef Tensor r = new_tensor(c.outs[0].dt, c.outs[0].ndim, c.outs[0].sizes, c.column, c.number)
    launch_over(c, r)
    return r


cdef int launch_over(Call *c, Tensor x) except -1:
    """Runs the kernel of a call without tensors over x, which is one plain run of memory."""
    cdef (PyObject *)[8] results
    results[0] = <PyObject *>x
    return launch(c, results)


cdef tuple complete_several(Call *c):
    """Several new outputs."""
    cdef (PyObject *)[8] results
    cdef tuple made = PyTuple_New(c.nout)
    cdef Tensor r
    cdef int k
    for k in range(c.nout):
        r = allocated(c, &c.outs[k])
        results[k] = <PyObject *>r
        Py_INCREF(r)
        PyTuple_SET_ITEM(made, k, r)
    if c.o.mutates:
        launch_writing(c, results)
    else:
        launch(c, results)
    if c.o.contiguous & KEEPS:
        made = tuple([in_format(c, r) for r in made])
        for k in range(c.nout):
            results[k] = <PyObject *>made[k]
    if c.key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled and c.o.differentiable:
        record(c, results)
    return made


cdef object complete_rest(Call *c, object out):
    """Runs a call with the user's out=, or with a result on another device."""
    cdef (PyObject *)[8] results
    cdef list made = [], placed = None
    cdef tuple given, others
    cdef bint recorded = (c.key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled and c.o.differentiable)
    cdef uint64_t seen = geometry(c) if out is not None else 0
    cdef Tensor r
    cdef Out *o
    cdef int k
    if out is not None:                 # a subclass of list or tuple may iterate in its own way
        given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(given) == c.nout and c.onto < 0 and not (recorded and any_needs_grad(c)):
            placed = []
            others = tuple([<object>c.tensors[k] for k in range(c.nin) if c.tensors[k] != NULL])
    if c.onto >= 0:                     # the copy keeps the strides of a source without gaps
        o = &c.outs[0]
        r = <Tensor>c.lead
        if r.flags & PT_NONCONTIGUOUS and not o.laid:
            strides_like(r.rank, r.dims, r.dims + r.rank, o.strides)
            o.laid = True
    for k in range(c.nout):
        o = &c.outs[k]
        r = None
        if placed is not None and not o.laid:           # results must not overlap with each other either
            r = place_for(given[k], o.dt, o.ndim, o.sizes, c.column, c.number, (*others, made), c.o.name)
        if placed is not None:
            placed.append(r is not None)
        made.append(r if r is not None else allocated(c, o))
    if out is not None:
        look_again(c, seen)
    if c.onto >= 0:
        apart = <object>c.args[2] is True       # to_device(input, device, non_blocking)
        if apart and c.column == DEVICE_CPU:
            made = [landing(<Tensor>made[0], (<Tensor>c.lead).storage.device)]
        copy_into(<Tensor>made[0], <Tensor>c.lead, apart)
    for k in range(c.nout):
        results[k] = <PyObject *>made[k]
    if c.onto < 0:
        launch(c, results)
    if c.o.contiguous & KEEPS and out is None:
        made = [in_format(c, r) for r in made]
        for k in range(c.nout):
            results[k] = <PyObject *>made[k]
    if recorded:
        record(c, results)
    if out is not None:                 # write_outs refuses results with history
        return write_outs(c.op, out, made, placed)
    return made[0] if c.nout == 1 else tuple(made)


cdef bint any_needs_grad(Call *c):
    cdef int k
    for k in range(c.nin):
        if c.tensors[k] != NULL and needs_grad(<Tensor>c.tensors[k]):
            return True
    return False


cdef bint args_need_grad(object args):
    for x in args:
        if isinstance(x, Tensor):
            if needs_grad(<Tensor>x):
                return True
        elif isinstance(x, (tuple, list)) and args_need_grad(x):
            return True
    return False


cdef bint asks_for_channels_last(Call *c, int rank) noexcept:
    """Whether a tensor of the call with this many dims has the channels-last memory format; of a list all."""
    cdef Tensor t
    cdef bint found = False
    cdef int k
    for k in range(c.nin):
        if c.tensors[k] == NULL:
            continue
        t = <Tensor>c.tensors[k]
        if t.rank == rank and is_channels_last(rank, t.dims, t.dims + rank):
            found = True
        elif c.o.lists:
            return False
    return found


cdef void lay_channels_last(Call *c) noexcept:
    """Decides whether a call runs in the channels-last memory format. Then results with as many dims as the first are
    laid so, and the kernel writes them (kernel.h, (b))."""
    cdef Out *o
    cdef int k, rank = c.outs[0].ndim
    if rank < 4 or rank > 5 or (c.column != DEVICE_CPU and c.column != DEVICE_META):
        return
    if not asks_for_channels_last(c, rank):
        return
    c.last = True
    for k in range(c.nout):
        o = &c.outs[k]
        if o.ndim == rank and not o.laid:
            channels_last_strides(rank, o.sizes, o.strides)
            o.laid = True


cdef inline Tensor allocated(Call *c, Out *o):
    cdef Tensor r
    if o.laid:
        r = new_strided(o.dt, o.ndim, o.sizes, o.strides, c.column, c.number)
    else:
        r = new_tensor(o.dt, o.ndim, o.sizes, c.column, c.number)
    r.flags |= c.key & PT_STANDARD
    return r


cdef Tensor in_format(Call *c, Tensor x):
    """A result that a kernel has written row-major, in the memory format that the op keeps from its inputs."""
    cdef Tensor lead = <Tensor>c.lead
    cdef int64_t[64] strides
    if c.o.contiguous & LAYOUT:
        if lead.flags & PT_NONCONTIGUOUS and x.rank == lead.rank and same_sizes(x.rank, x.dims, lead.dims):
            strides_like(x.rank, x.dims, lead.dims + x.rank, strides)
            return laid(c, x, strides)
        return x
    if x.rank < 4 or x.rank > 5 or x.rank != lead.rank or is_channels_last(x.rank, x.dims, x.dims + x.rank):
        return x
    if not asks_for_channels_last(c, x.rank):
        return x
    channels_last_strides(x.rank, x.dims, strides)
    return laid(c, x, strides)


cdef Tensor laid(Call *c, Tensor x, const int64_t *strides):
    cdef Tensor made = new_strided(x.dt, x.rank, x.dims, strides, c.column, c.number)
    made.flags |= c.key & PT_STANDARD
    if c.column != DEVICE_META:
        copy_into(made, x)
    return made


# -- other threads ---------------------------------------------------------------------------------

cdef uint64_t MIX = 0x9E3779B97F4A7C15


cdef uint64_t geometry(Call *c) noexcept:
    """A hash of the sizes and strides of all tensors. A kernel must get the geometry that its shape rule saw, though
    Python code of other threads may have run in between."""
    cdef uint64_t h = 0
    cdef Tensor t
    cdef int i, k
    for k in range(c.nin):
        if c.tensors[k] == NULL:
            continue
        t = <Tensor>c.tensors[k]
        h = (h ^ <uint64_t>t.count ^ (<uint64_t>t.rank << 56)) * MIX
        for i in range(2 * t.rank):
            h = (h ^ <uint64_t>t.dims[i]) * MIX
        h ^= h >> 32
    return h


cdef int look_again(Call *c, uint64_t seen) except -1:
    """After Python code has run: checks that the geometry is unchanged and fills the views again."""
    cdef int k
    if geometry(c) != seen:
        raise RuntimeError(f"{c.o.name.decode()}: another thread has changed the sizes of an argument meanwhile")
    for k in range(c.nin):
        if c.tensors[k] != NULL:
            fill_view(<Tensor>c.tensors[k], &c.inputs[k])
    return 0


cdef int shape_by_spec(Call *c, tuple args) except -1:
    """Fills ``c.outs`` by the op's rule in Python; the rule raises for arguments that do not fit."""
    cdef Out *out
    cdef device onto
    cdef int k
    rule = SPECS[c.op]
    if rule is None:
        from ptcore._ops.table.rules import rule as rule_by_id
        rule = rule_by_id(c.op)
    specs = rule(*args)
    if type(specs) is not list:
        specs = [specs]
    if len(specs) != c.o.nout:
        raise RuntimeError(f"{c.o.name.decode()}: the shape rule must describe {c.o.nout} outputs, got {len(specs)}")
    c.nout = <int>len(specs)
    for k in range(c.nout):
        spec = <tuple?>specs[k]
        out = &c.outs[k]
        out.ndim = read_sizes(spec[0], out.sizes, c.o.name, b"shape")
        out.dt = as_code(spec[1], c.o.name, b"dtype")
        out.laid = len(spec) == 4 and len(spec[3]) == out.ndim          # the output keeps the layout of the input
        if out.laid:
            read_sizes(spec[3], out.strides, c.o.name, b"stride")
        if len(spec) == 3:              # the op moves its input to this device
            onto = as_device(spec[2], c.o.name)
            c.onto = c.column = onto.column
            c.number = onto.number
    return 0


cdef int shape_in_python(Call *c) except -1:
    cdef uint64_t seen = geometry(c)
    shape_by_spec(c, plain_args(c))
    return look_again(c, seen)


cdef tuple with_dims(Call *c, tuple args):
    """The arguments with dims as rules expect them: non-negative, several dims as a tuple."""
    cdef list result = list(args)
    cdef int k, n = 0
    for k in range(c.n):
        if is_of_tensors(c.o.letters[k]):
            continue
        if c.plain[n] == NULL:
            result[k] = c.params[n].i if c.params[n].kind == PT_PARAM_INT else tuple(
                [c.params[n].list[j] for j in range(c.params[n].count)])
        n += 1
    return tuple(result)


# -- kernels -------------------------------------------------------------------------------------

cdef int64_t *own_all(pt_view *views, int nin, pt_view *outs, int nout) except NULL:
    """Gives all views sizes and strides of their own, in memory that the caller frees."""
    cdef int64_t total = 1
    cdef int64_t *room
    cdef int64_t *at
    cdef int i
    for i in range(nin):
        total += 2 * views[i].ndim
    for i in range(nout):
        total += 2 * outs[i].ndim
    room = at = <int64_t *>PyMem_Malloc(total * sizeof(int64_t))
    if room == NULL:
        raise MemoryError()
    for i in range(nin):
        at = own_dims(&views[i], at)
    for i in range(nout):
        at = own_dims(&outs[i], at)
    return room


cdef int launch(Call *c, PyObject **results) except -1:
    """Runs the op's kernel for the device of the outputs."""
    cdef pt_call k
    cdef pt_view[8] outs
    cdef pt_kernel kernel
    cdef PyThreadState *held
    cdef int64_t *room = NULL
    cdef int64_t work = 0
    cdef list copies = None
    cdef int i, status
    if c.column == DEVICE_META:
        return 0
    if c.o.wide and takes_stored(c):
        return launch_wide(c, results)
    kernel = kernel_of(c.op, c.column)
    if kernel == NULL:
        return without_kernel(c, results)
    if c.column != DEVICE_CPU and (takes_stored(c) or pt_is(c.outs[0].dt, PT_KIND_STORED)):
        if c.o.kernel != NULL and <bytes>c.o.kernel == b"copy":
            return copy_into(<Tensor>results[0], <Tensor>c.lead)
        raise NotImplementedError(f"{c.o.name.decode()}: there is no kernel for float8 and complex32 on "
                                  f"{device_of(c.column, c.number)}")
    k.stream = NULL
    if c.o.random and not c.nin:            # Python code that runs here can change no tensor of the call
        take_numbers(c, results, &k)
    elif c.o.prefill or c.o.random or (c.o.contiguous & ROW_MAJOR and (c.last or c.key & PT_NONCONTIGUOUS)):
        copies = []
        prepare(c, results, copies, &k)
    for i in range(c.nin):
        if c.inputs[i].dtype != PT_NONE:
            work += c.inputs[i].numel
    for i in range(c.nout):
        fill_view(<Tensor>results[i], &outs[i])
        work += outs[i].numel
    k.op = c.op
    k.nin, k.nout, k.nparams = c.nin, c.nout, c.nparams
    if c.o.mutates and writes(c):
        for i in range(c.nin):
            if c.o.mutates >> c.argument[i] & 1:
                outs[k.nout] = c.inputs[i]
                k.nout += 1
    (<const pt_view **>&k.inputs)[0] = c.inputs
    k.out = outs
    (<const pt_param **>&k.params)[0] = c.params
    if c.column != DEVICE_CPU and BACKENDS[c.column] != NULL and BACKENDS[c.column].stream != NULL:
        k.stream = BACKENDS[c.column].stream(outs[0].device_index)
    k.error[0] = 0
    if dry():
        planned(c, &k, kernel)
        return 0
    if work > SMALL:
        room = own_all(c.inputs, c.nin, outs, k.nout)
    held = release_gil(work > SMALL)
    status = kernel(&k)
    restore_gil(held)
    if status != PT_OK:
        return not_done(c, &k, kernel, results, room, status)
    if planning():
        planned(c, &k, kernel)
    if room != NULL:
        PyMem_Free(room)
    return 0


# -- stored types ----------------------------------------------------------------------------------

cdef bint takes_stored(Call *c) noexcept:
    """Whether a tensor of the call has a stored dtype."""
    cdef int k
    cdef uint32_t seen = 0
    for k in range(c.nin):
        seen |= <uint32_t>PT_KIND_STORED >> (c.inputs[k].dtype & 31)    # no bit is PT_NONE's
    return seen & 1


cdef int launch_wide(Call *c, PyObject **results) except -1:
    """Runs a kernel that has no stored types: on the arguments in the dtype of their loops. The results are rounded to
    their own dtypes."""
    cdef (PyObject *)[8] wide
    cdef uint64_t seen = geometry(c)
    cdef list given = [], made = []
    cdef bint pairs = False, last = c.last
    cdef Tensor x, t
    cdef int k, dt
    c.last = False                      # what is made here is row-major
    for k in range(c.nin):
        x = <Tensor>c.tensors[k] if c.tensors[k] != NULL else None
        given.append(x)
        if x is not None and pt_is(x.dt, PT_KIND_STORED):
            pairs = pairs or x.dt == PT_COMPLEX32
            t = new_tensor(pt_loop_dtype(x.dt), x.rank, x.dims, c.column, c.number)
            copy_into(t, x)
            made.append((k, t))
    look_again(c, seen)
    for k, t in made:
        c.tensors[k] = <PyObject *>t
        fill_view(t, &c.inputs[k])
    try:
        outs = []
        for k in range(c.nout):
            x = <Tensor>results[k]
            dt = PT_FLOAT32 if pairs and x.dt == PT_FLOAT16 else pt_loop_dtype(x.dt)
            t = new_tensor(dt, x.rank, x.dims, c.column, c.number)
            outs.append(t)
            wide[k] = <PyObject *>t
        launch(c, wide)
        for k in range(c.nout):
            copy_into(<Tensor>results[k], <Tensor>outs[k])
    finally:
        c.last = last
        for k, _ in made:
            c.tensors[k] = <PyObject *>given[k]
            fill_view(<Tensor>given[k], &c.inputs[k])
    return 0


# -- what a row mutates ----------------------------------------------------------------------------

cdef bint writes(Call *c) noexcept:
    """Whether a call of a row that mutates arguments gets one of those arguments."""
    cdef int k, argument = 0
    for k in range(c.n):
        if is_of_tensors(c.o.letters[k]):
            if c.o.mutates >> argument & 1 and c.args[k] != <PyObject *>None:
                return True
            argument += 1
    return False


cdef object with_writes_apart(Call *c):
    """The call as interpreters see it: first the op without the mutated arguments, then the writes as ops."""
    from ptcore._ops import decompositions
    cdef int k, argument = 0
    cdef list args = [<object>c.args[k] for k in range(c.n)]
    cdef list given = list(args)                # for the writes, which have no derivative
    write = decompositions.writes(c.o.row.decode())
    for k in range(c.n):
        if is_of_tensors(c.o.letters[k]):
            if c.o.mutates >> argument & 1:
                args[k] = None
            elif given[k] is not None:
                given[k] = given[k].detach()
            argument += 1
    if pt_tls.mode & PT_MODE_SAVED_HOOKS:       # a hook may end the recorded call early, as in a checkpoint
        with no_grad():
            write(call_with(c.op, tuple(args), None), *given)
        return call_with(c.op, tuple(args), None)
    made = call_with(c.op, tuple(args), None)
    with no_grad():
        write(tuple([x.detach() for x in made]), *given)
    return made


cdef int launch_writing(Call *c, PyObject **results) except -1:
    """Runs a kernel that also writes to arguments, and counts these writes. The writes have no history."""
    cdef list apart = []
    cdef uint64_t seen = 0
    cdef Tensor x, dense
    cdef int i
    for i in range(c.nin):
        if c.tensors[i] == NULL or not c.o.mutates >> c.argument[i] & 1:
            continue
        x = <Tensor>c.tensors[i]
        check_inplace(x, c.o.name, False)
        if repeats_itself(x):
            raise RuntimeError(f"{c.o.name.decode()}: more than one element of the written-to tensor refers to a "
                               "single memory location; clone() it first")
        if x.flags & PT_NONCONTIGUOUS and c.column != DEVICE_META:
            seen = geometry(c) if not apart else seen
            apart.append((i, x, contiguous(x)))
    if apart:
        look_again(c, seen)
    for i, _, dense in apart:                       # the kernel writes row-major
        c.tensors[i] = <PyObject *>dense
        fill_view(dense, &c.inputs[i])
    launch(c, results)
    for i, x, dense in apart:
        c.tensors[i] = <PyObject *>x
        copy_into(x, dense)
    for i in range(c.nin):
        if c.tensors[i] != NULL and c.o.mutates >> c.argument[i] & 1:
            finish_inplace(<Tensor>c.tensors[i], None)
    return 0


cdef void planned(Call *c, pt_call *k, pt_kernel kernel) noexcept:
    """Adds a call of a kernel to the plan that is being recorded."""
    if c.column != DEVICE_CPU:
        spoil(b"it runs on another device than the CPU")
    elif c.o.random and <object>c.args[c.n - 1] is not None:
        spoil(b"it draws from a generator of its own")
    elif kernel == kernel_of(OP_TO_DTYPE, DEVICE_CPU):  # copies and casts can be fused into groups
        copy_run(&k.out[0], &k.inputs[0])
    else:
        kernel_run(c.o.name, kernel, k, c.o.random)


cdef int not_done(Call *c, pt_call *k, pt_kernel kernel, PyObject **results, int64_t *room, int status) except -1:
    """Handles a kernel that needs the BLAS or a decomposition, or has failed. Frees ``room``."""
    cdef PyThreadState *held
    try:
        if status == PT_NEED_BLAS:
            if room == NULL:
                room = own_all(c.inputs, c.nin, k.out, k.nout)
            pt_kernels_enter()          # before the import, which lets other threads run
            try:
                from ptcore._ops.product import blas
                blas.load()
                held = release_gil(True)
                status = kernel(k)
                restore_gil(held)
            finally:
                pt_kernels_leave()
            if status == PT_OK and planning():
                planned(c, k, kernel)
        if status == PT_DECOMPOSE:
            if not by_smaller_ops(c, results):
                raise NotImplementedError(f"{c.o.name.decode()}: a kernel leaves these sizes to a decomposition, which "
                                          "there is none of")
        elif status != PT_OK:
            if pt_is(k.out[0].dtype, PT_KIND_STORED) and (<bytes>k.error).startswith(
                    (b"not implemented", b"dtype must be")):
                raise unsupported(c.o, k.out[0].dtype, "")
            if status == PT_MEMORY_ERROR and c.column != DEVICE_CPU:
                status = memory_failure(c.column, k.out[0].device_index)
            raise_status(status, c.o.name, k.error)
    finally:
        PyMem_Free(room)
    return 0


cdef int prepare(Call *c, PyObject **results, list copies, pt_call *k) except -1:
    """Prepares what some kernels need: an output that starts as a copy of the input, inputs in the order of the call, a
    position in the stream of random numbers. Python code may run here."""
    cdef uint64_t seen = geometry(c)
    cdef int i
    cdef Tensor t
    if c.o.prefill and results[0] != c.tensors[0]:
        copy_into(<Tensor>results[0], <Tensor>c.tensors[0])
    if c.o.contiguous & ROW_MAJOR:
        for i in range(c.nin):
            t = <Tensor>c.tensors[i] if c.tensors[i] != NULL else None
            if t is not None and c.last and t.rank == c.outs[0].ndim:
                if not dense_channels_last(t):
                    copies.append((i, in_channels_last(t)))
            elif t is not None and t.flags & PT_NONCONTIGUOUS:
                copies.append((i, contiguous(t)))
    if c.o.random:
        take_numbers(c, results, k)
    look_again(c, seen)
    for i, t in copies:
        fill_view(t, &c.inputs[i])
    return 0


cdef int take_numbers(Call *c, PyObject **results, pt_call *k) except -1:
    """The call's part of the stream of random numbers. The generator is the last argument."""
    return next_random(<object>c.args[c.n - 1], c.column, (<Tensor>results[0]).storage.device_index, &k.seed,
                       &k.offset, &k.stream)


cdef tuple plain_args(Call *c):
    """The arguments as Python rules and kernels expect them."""
    cdef tuple args = tuple([<object>c.args[k] for k in range(c.n)])
    return args if c.normal else with_dims(c, args)


cdef int without_kernel(Call *c, PyObject **results) except -1:
    """Fills the results of an op that has no compiled kernel for the device."""
    cdef tuple made
    if (c.op, c.column) in _python_kernels:
        # A kernel sees data without history.
        made = tuple([<object>results[k] for k in range(c.nout)])
        if planning():
            spoil(b"its kernel is written in Python")
            if dry():
                raise RuntimeError(f"{c.o.name.decode()}: a kernel in Python is not run in a recording without values")
        _python_kernels[(c.op, c.column)](*[without_history(x) for x in plain_args(c)],
                                          out=made[0] if c.nout == 1 else made)
        return 0
    if c.column == DEVICE_CPU and read_kernel(c.op):
        return launch(c, results)
    if c.o.kernel != NULL and <bytes>c.o.kernel == b"copy" and BACKENDS[c.column] != NULL:
        return copy_into(<Tensor>results[0], <Tensor>c.lead)
    if not by_smaller_ops(c, results):
        raise NotImplementedError(f"{c.o.name.decode()}: there is no kernel for device {device_of(c.column, -1)}")
    return 0


cdef bint by_smaller_ops(Call *c, PyObject **results) except -1:
    """Fills the results of an op without a kernel for the device by its decomposition, if it has one. Half types are
    computed in float32, as in a kernel."""
    from ptcore._ops import decompositions
    try:
        function = decompositions.function(c.o.row.decode())
    except KeyError:
        return False
    try:
        made = function(*[widened(without_history(x)) for x in plain_args(c)])
        if c.o.mutates:
            decompositions.writes(c.o.row.decode())(made, *[without_history(x) for x in plain_args(c)])
    except Exception as e:
        called_as(e, c.o.name.decode())
        raise
    if c.nout == 1:
        made = (made,)
    for k in range(c.nout):
        copy_into(<Tensor>results[k], <Tensor?>made[k])
    return True


cdef object widened(object x):
    if isinstance(x, Tensor) and ((<Tensor>x).dt == PT_FLOAT16 or (<Tensor>x).dt == PT_BFLOAT16):
        return cast(<Tensor>x, PT_FLOAT32)
    return tuple([widened(item) for item in x]) if type(x) is tuple else x


cdef object without_history(object x):
    if type(x) is tuple and x and isinstance(x[0], Tensor):
        return tuple([without_history(item) for item in x])
    return alias(<Tensor>x) if isinstance(x, Tensor) else x


cdef Tensor cast_by_op(Tensor x, int dt):
    cdef (PyObject *)[2] args
    cdef object target = dtype_of(dt)
    args[0], args[1] = <PyObject *>x, <PyObject *>target
    return <Tensor>call(OP_TO_DTYPE, args, 2, None)


set_cast(cast_by_op)


cdef bint over_first(int op, PyObject **args, int n) except -1:
    """Runs a structured op with a kernel that may change its first input in place. False, with nothing
    done, if the result needs memory of its own."""
    cdef uint32_t key = flags_of_all(args, n)
    cdef (PyObject *)[8] results
    cdef tuple given
    cdef Tensor x
    cdef Call c
    if key & PT_SLOW or not isinstance(<object>args[0], Tensor):
        return False
    given = tuple([<object>args[k] for k in range(n)])
    if key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and args_need_grad(given):
        return False
    x = <Tensor>args[0]
    if x.flags & (PT_NONCONTIGUOUS | PT_DATA):
        return False
    begin(&c, op, args, n)
    try:
        given = read_plain(&c, key)
        if c.tensors[0] != <PyObject *>x:
            return False
        for k in range(1, c.nin):
            if c.tensors[k] != NULL and same_memory(<Tensor>c.tensors[k], x):
                return False
        if not c.o.shape(&c):
            shape_in_python(&c)
        if c.outs[0].dt != x.dt or c.outs[0].ndim != x.rank or not same_sizes(x.rank, c.outs[0].sizes, x.dims):
            return False
        check_inplace(x, c.o.name, False)
        results[0] = <PyObject *>x
        launch(&c, results)
    finally:
        PyMem_Free(c.room)
    finish_inplace(x, None)
    return True
