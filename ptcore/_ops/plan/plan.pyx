"""Plan: calls that were recorded as kernels, to be run again on other tensors without Python.

    begin(inputs) -> ops run as ever, and dispatch tells the plan -> end(outputs) -> run(inputs), run(inputs), ...

While a thread records, its ops leave the fast paths of elementwise calls, so that all work on data comes through
three places: the kernels of structured ops, the loops of elementwise ops, and copies. Memory is identified by address:
inputs are named at the beginning, and memory allocated during the recording is kept until the end, so that no address
is used twice. Other ways of working on data spoil the plan, or at least this part of it: see ``spoilt``, ``cut`` and
``pause``.
"""
cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_New
from libc.string cimport memcpy, memset

from ptcore._types cimport *
from ptcore._dtype cimport default_float, dtype_of
from ptcore._gil cimport SMALL, PyThreadState, release_gil, restore_gil
from ptcore._memory.allocate cimport allocate
from ptcore._shape cimport same_sizes
from ptcore._tensor cimport *
from ptcore._random cimport next_random
from ptcore._ops.plan.hooks cimport *
from ptcore._ops.table.ids cimport raise_status

cdef extern from "_state.h":
    void (*pt_on_storage)(pt_storage *) noexcept

cdef enum:
    FEW = 64                    # up to this size a table of storages needs no memory of its own
    FEW_INPUTS = 6              # up to this many inputs are compared with each other without a table

cdef uint64_t MIX = 0x9E3779B97F4A7C15       # a literal of this size would be an int of Python


@cython.binding(False)                  # so that methods check their self
cdef class Spot:
    """Where a tensor of the recording lies in the memory of a plan."""
    def __repr__(self):
        sizes = [self.place.sizes[k] for k in range(self.place.ndim)]
        return f"Spot(buffer {self.place.buffer} + {self.place.offset}, {dtype_of(self.place.dt)}, {sizes})"


cdef inline bint seen_before(void **seen, size_t mask, void *x) noexcept:
    """Adds a pointer to a table of storages; returns whether the table had it already."""
    cdef size_t at = (<size_t>x >> 6) * MIX >> 20 & mask
    while seen[at] != NULL:
        if seen[at] == x:
            return True
        at = (at + 1) & mask
    seen[at] = x
    return False


class SharedMemory(RuntimeError):
    """Raised for inputs without a plan: addresses do not tell which of the inputs is read or written."""


cdef inline bint is_plain(Tensor t) noexcept:
    return not t.flags & (PT_NON_CPU | PT_INTERPOSED | PT_LAYOUT | PT_TANGENT | PT_SUBCLASS)


def can_plan(list tensors):
    """Whether a plan of calls on these tensors can be recorded and run in this thread now."""
    return not pt_tls.mode & PT_SLOW and all([isinstance(t, Tensor) and is_plain(<Tensor>t) for t in tensors])


cdef int check_ready(Plan plan, list inputs) except -1:
    """Raises where a run would have no memory for its inputs; what they may be is for ``fits`` to say."""
    if plan.bound == NULL:
        raise RuntimeError("run: the plan has not been recorded")
    if len(inputs) != plan.n_inputs:
        raise RuntimeError(f"run: the plan was recorded with {plan.n_inputs} inputs, got {len(inputs)}")
    return 0


@cython.binding(False)                  # so that methods check their self
cdef class Plan:
    """A recorded program.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore._ops.plan.plan import Plan
    >>> plan, x = Plan(), ptcore.ones(3)
    >>> plan.begin([x])
    >>> y = (x + 1) * 2
    >>> plan.end([y])
    >>> plan([ptcore.tensor([1., 2., 3.])])
    [tensor([4., 6., 8.])]
    """

    def __cinit__(self):
        self.p = pt_plan_new()
        if self.p == NULL:
            raise MemoryError()

    def __dealloc__(self):
        cdef int k
        self.release()
        self.drop_bound()
        for k in range(self.n_inputs):
            PyMem_Free(self.inputs[k].dims)
        PyMem_Free(self.inputs)
        PyMem_Free(self.bound)
        PyMem_Free(self.bytes_of)
        PyMem_Free(self.fresh)
        PyMem_Free(self.seen)
        pt_plan_delete(self.p)

    cdef void release(self) noexcept:
        cdef int64_t k
        for k in range(self.n_kept):
            pt_storage_decref(self.kept[k])
        self.n_kept = self.room = 0
        PyMem_Free(self.kept)
        self.kept = NULL

    cdef void drop_bound(self) noexcept:
        cdef int k
        if self.bound == NULL:
            return
        for k in range(self.n_buffers):
            if self.bound[k] != NULL:
                pt_storage_decref(self.bound[k])
                self.bound[k] = NULL

    cdef int keep(self, pt_storage *s, char *data, int64_t nbytes) noexcept:
        """Keeps a storage until the recording ends, and names its memory or a part of it. -1: the plan is spoilt."""
        cdef pt_storage **more
        if self.n_kept == self.room:
            more = <pt_storage **>PyMem_Realloc(self.kept, 2 * (self.room + 32) * sizeof(pt_storage *))
            if more == NULL:
                pt_plan_spoil(self.p, b"there is no memory left")
                return -1
            self.kept = more
            self.room = 2 * (self.room + 32)
        pt_storage_incref(s)
        self.kept[self.n_kept] = s
        self.n_kept += 1
        return pt_plan_add_buffer(self.p, data, nbytes)

    # -- recording ---------------------------------------------------------------------------------

    def begin(self, inputs, bint dry=False):
        """Starts to record this thread's calls. Inputs are plain tensors on the CPU; they may share memory.

        ``dry``: no kernel runs, and no memory is touched; reading values raises, or spoils the plan.
        """
        cdef int k
        cdef Tensor t
        cdef list given = list(inputs)
        cdef dict firsts = {}           # address of a storage -> the first input that it belongs to
        cdef set several = set()        # the first inputs of storages that others belong to
        if pt_tls.plan != NULL or self.inputs != NULL:
            raise RuntimeError("begin: this thread records a plan already, or the plan has been recorded")
        self.inputs = <Input *>PyMem_Calloc(len(given) + 1, sizeof(Input))
        if self.inputs == NULL:
            raise MemoryError()
        for k in range(<int>len(given)):
            t = <Tensor?>given[k]
            if not is_plain(t):
                raise RuntimeError(f"begin: input {k} must be a plain tensor on the CPU")
            self.inputs[k].dims = <int64_t *>PyMem_Realloc(NULL, (2 * t.rank + 1) * sizeof(int64_t))
            if self.inputs[k].dims == NULL:
                raise MemoryError()
            self.n_inputs = k + 1
            memcpy(self.inputs[k].dims, t.dims, 2 * t.rank * sizeof(int64_t))
            self.inputs[k].dt, self.inputs[k].ndim = t.dt, t.rank
            self.inputs[k].needs_grad = needs_grad(t)
            self.inputs[k].same = <int>firsts.setdefault(<size_t>t.storage, k)
            if self.inputs[k].same != k:
                several.add(self.inputs[k].same)
        for k in range(self.n_inputs):
            self.name_input(k, <Tensor>given[k], self.inputs[k].same in several)
        if self.overlaps(PySequence_Fast_ITEMS(given)):
            raise SharedMemory("begin: two inputs share memory through storages of their own")
        self.seen_mask = FEW
        while self.seen_mask < <size_t>(2 * self.n_inputs):
            self.seen_mask *= 2
        self.seen = <void **>PyMem_Malloc(self.seen_mask * sizeof(void *))
        self.seen_mask -= 1
        if self.seen == NULL:
            raise MemoryError()
        self.recording = True
        self.default_dtype = default_float()
        pt_plan_set_dry(self.p, dry)
        # A dry recording notes writes without doing them: they are not to be counted.
        self.versions = [(t, version_of(<Tensor>t)) for t in given] if dry else None
        pt_tls.value_read = 0
        pt_tls.planner, pt_tls.plan = <void *>self, <void *>self.p
        set_planning(True)

    cdef int name_input(self, int k, Tensor t, bint shared) except -1:
        """The buffer of an input: the memory of its elements, or the whole storage if inputs share the storage."""
        cdef Input *x = &self.inputs[k]
        cdef int64_t low = 0, high = 0, size = dtype_of(t.dt).itemsize
        cdef int d
        x.buffer = x.offset = -1
        if t.count == 0:
            return 0
        for d in range(t.rank):
            if t.dims[t.rank + d] < 0:
                low += (t.dims[d] - 1) * t.dims[t.rank + d] * size
            else:
                high += (t.dims[d] - 1) * t.dims[t.rank + d] * size
        x.low, x.span = low, high - low + size
        if shared:
            x.offset = t.offset
            if x.same != k:
                x.buffer = self.inputs[x.same].buffer
                return 0
            x.buffer = self.keep(t.storage, t.storage.data, t.storage.nbytes)
        else:
            x.buffer = self.keep(t.storage, address(t) + low, x.span)
        if x.buffer >= 0:
            pt_plan_set_kind(self.p, x.buffer, PT_BUFFER_BOUND)
        return 0

    def stop(self):
        """Ends the recording, with or without a result."""
        cdef Tensor t
        if self.recording:
            self.recording = False
            for t, version in self.versions or ():
                if version_of(t) != <uint64_t>version:
                    if t.flags & PT_DATA and t.extras is not None:
                        (<TensorExtras>t.extras).counter.value = version
                    else:
                        t.storage.version = version
            self.versions = None
            pt_tls.planner = pt_tls.plan = NULL
            set_planning(False)

    @property
    def spoilt(self):
        """Why the calls so far cannot be run again, or None."""
        cdef const char *why
        if pt_tls.value_read and pt_tls.planner == <void *>self:
            pt_tls.value_read = 0
            pt_plan_spoil(self.p, b"it reads a value")
        why = pt_plan_spoilt(self.p)
        return None if why == NULL else why.decode()

    def __len__(self):
        return pt_plan_length(self.p)

    def cut(self, int64_t length):
        """Forgets the steps from ``length`` on, and that one of them has spoilt the plan."""
        if not 0 <= length <= pt_plan_length(self.p):
            raise IndexError(f"cut: the plan has {pt_plan_length(self.p)} steps, got {length}")
        pt_plan_cut(self.p, length)

    def pause(self, spots=()):
        """Adds a pause, where a run returns to the caller; the caller's work there reads the tensors at ``spots``."""
        cdef Spot s
        pt_plan_add_pause(self.p)
        for s in spots:
            if s.place.buffer >= 0:
                pt_plan_pause_reads(self.p, s.place.buffer)

    def lend(self, Tensor t not None):
        """Registers a tensor that the caller, not a step, made since the last pause: each run is told of its memory."""
        cdef int k = self.buffer_of(t)
        if k < 0 and t.storage.nbytes:
            k = self.keep(t.storage, t.storage.data, t.storage.nbytes)
        if k >= 0:
            pt_plan_set_kind(self.p, k, PT_BUFFER_BOUND)
        return k

    cdef bint overlaps(self, PyObject **inputs) except -1:
        """Whether inputs of different storages overlap. Only foreign memory and memory with an exported address can."""
        cdef Tensor t
        cdef Input *x
        cdef int k
        cdef list spans = []
        for k in range(self.n_inputs):
            t = <Tensor>inputs[k]
            x = &self.inputs[k]
            if x.span and x.same == k and (t.storage.deleter != NULL or t.storage.flags & PT_STORAGE_EXPORTED):
                if x.offset >= 0:           # the whole storage is its buffer
                    spans.append((<uint64_t>t.storage.data, <uint64_t>t.storage.nbytes))
                else:
                    spans.append((<uint64_t>(address(t) + x.low), <uint64_t>x.span))
        spans.sort()
        return any([spans[k][0] + spans[k][1] > spans[k + 1][0] for k in range(len(spans) - 1)])

    cdef int buffer_of(self, Tensor t) noexcept:
        return pt_plan_buffer_of(self.p, address(t)) if t.count else -1

    def spot(self, Tensor t not None):
        """The place of a tensor."""
        cdef Spot s = Spot.__new__(Spot)
        cdef int b = self.buffer_of(t)
        if b < 0 and t.count:
            raise RuntimeError("spot: the tensor's memory is none of the plan's")
        s.place.buffer, s.place.dt, s.place.ndim = b, t.dt, t.rank
        s.place.offset = address(t) - pt_plan_address(self.p, b) if b >= 0 else 0
        memcpy(s.place.sizes, t.dims, t.rank * sizeof(int64_t))
        memcpy(s.place.strides, t.dims + t.rank, t.rank * sizeof(int64_t))
        s.of_input = -1
        return s

    def end(self, outputs, list given=None, bint fuse=True, bint is_inner=False):
        """Ends the recording. The memory of results is new at each run, unless it is that of inputs.

        ``given``: the inputs, so that an output that is an input is returned as the input of a run. ``is_inner``:
        whether no user gets the outputs. Otherwise a run refuses leaves that an output shows: a view of one is a leaf.
        """
        cdef int64_t k
        cdef int b
        cdef Spot s
        cdef set taken = set(), shown = set()       # buffers that outputs show
        self.outputs = []
        for x in outputs:
            if isinstance(x, Tensor):
                s = self.spot(<Tensor>x)
                for b in range(self.n_inputs if given is not None else 0):
                    if given[b] is x:
                        s.of_input = b
                        break
                self.outputs.append(s)
            else:
                self.outputs.append(x)
        self.n_outputs = <int>len(self.outputs)
        why = self.spoilt
        self.stop()
        if why is not None:
            raise RuntimeError(f"a part of the program cannot be recorded: {why}")
        self.n_buffers = <int>self.n_kept
        self.bytes_of = <int64_t *>PyMem_Realloc(NULL, (self.n_kept + 1) * sizeof(int64_t))
        self.bound = <pt_storage **>PyMem_Realloc(NULL, (self.n_kept + 1) * sizeof(pt_storage *))
        if self.bytes_of == NULL or self.bound == NULL:
            raise MemoryError()
        for k in range(self.n_kept):
            self.bytes_of[k] = self.kept[k].nbytes
            self.bound[k] = NULL
        self.fresh = <int *>PyMem_Realloc(NULL, (len(self.outputs) + 1) * sizeof(int))
        if self.fresh == NULL:
            raise MemoryError()
        for x in self.outputs:
            if not isinstance(x, Spot):
                continue
            b = (<Spot>x).place.buffer
            if b >= 0 and (<Spot>x).of_input < 0 and not is_inner:
                shown.add(b)
            if b >= 0 and b not in taken and pt_plan_kind(self.p, b) != PT_BUFFER_BOUND:
                taken.add(b)
                self.fresh[self.n_fresh] = b
                self.n_fresh += 1
                pt_plan_set_kind(self.p, b, PT_BUFFER_RESULT)
        for b in range(self.n_inputs):
            self.inputs[b].written = self.inputs[b].buffer >= 0 and pt_plan_writes(self.p, self.inputs[b].buffer)
            self.writes_inputs |= self.inputs[b].written
            self.inputs[b].shown = self.inputs[b].buffer in shown
            self.shows_inputs |= self.inputs[b].shown
        pt_plan_finish(self.p, fuse)
        self.release()

    @property
    def writes(self):
        """The places of the inputs that a run writes to."""
        return tuple([k for k in range(self.n_inputs) if self.inputs[k].written])

    # -- runs --------------------------------------------------------------------------------------

    def fits(self, list inputs not None, bint grads=False):
        """Whether a run can take these inputs: they have the recording's dtypes, sizes and strides, share memory in
        the same way, and written inputs are writable; the default dtype is unchanged. ``grads``: the same inputs ask
        for gradients, too."""
        return self.may_take(PySequence_Fast_ITEMS(inputs), len(inputs), grads)

    cdef bint may_take(self, PyObject **inputs, Py_ssize_t n, bint grads) except -1:
        cdef Tensor t
        cdef Input *x
        cdef int k
        if (n != self.n_inputs or self.busy or pt_tls.mode & PT_SLOW or default_float() != self.default_dtype):
            return False
        for k in range(self.n_inputs):
            if not isinstance(<object>inputs[k], Tensor):
                return False
            t = <Tensor>inputs[k]
            x = &self.inputs[k]
            if (t.dt != x.dt or t.rank != x.ndim or not same_sizes(2 * t.rank, t.dims, x.dims)
                    or not is_plain(t)
                    or (grads and ((t.flags & PT_REQUIRES_GRAD) != 0 if not t.flags & PT_VIEW else needs_grad(t))
                        != x.needs_grad)
                    or (x.written and t.storage.flags & PT_STORAGE_READONLY)
                    or (x.shown and t.flags & PT_REQUIRES_GRAD)):
                return False
            if x.offset >= 0 and (t.offset != x.offset or t.storage.nbytes < self.bytes_of[x.buffer]):
                return False
        # Whether a view asks for gradients may run Python code, and meanwhile another thread may begin a run.
        return self.share_alike(inputs) and not (self.writes_inputs and self.overlaps(inputs)) and not self.busy

    cdef bint share_alike(self, PyObject **inputs) noexcept:
        """Whether inputs share a storage exactly where they did in the recording."""
        cdef (void *)[FEW] few
        cdef void **seen = few
        cdef size_t mask = FEW - 1
        cdef pt_storage *storage
        cdef int k, j
        if self.n_inputs > FEW_INPUTS:
            if 2 * self.n_inputs > FEW:
                seen, mask = self.seen, self.seen_mask
            memset(seen, 0, (mask + 1) * sizeof(void *))
        for k in range(self.n_inputs):
            storage = (<Tensor>inputs[k]).storage
            if self.inputs[k].same != k:
                if (<Tensor>inputs[self.inputs[k].same]).storage != storage:
                    return False
            elif self.n_inputs > FEW_INPUTS:
                if seen_before(seen, mask, storage):
                    return False
            else:
                for j in range(k):
                    if (<Tensor>inputs[j]).storage == storage:
                        return False
        return True

    def __call__(self, list inputs not None, object others=None):
        """The results of the program for other inputs, which must pass ``fits``.

        ``others`` is called at each pause.
        """
        check_ready(self, inputs)
        return list(self.results_of(PySequence_Fast_ITEMS(inputs), others))

    def attempt(self, list inputs not None, object others=None):
        """The results, or None if a run cannot take these inputs now. No other thread begins a run in between."""
        if not self.may_take(PySequence_Fast_ITEMS(inputs), len(inputs), False):
            return None
        return list(self.results_of(PySequence_Fast_ITEMS(inputs), others))

    cdef tuple results_of(self, PyObject **inputs, object others):
        cdef tuple made = PyTuple_New(self.n_outputs)
        self.fill(inputs, others, PySequence_Fast_ITEMS(made))
        return made

    cdef int fill(self, PyObject **inputs, object others, PyObject **results) except -1:
        """Puts new references to the results into an array of NULLs. The caller drops them, also after an error."""
        cdef int k
        cdef Spot s
        self.execute(inputs, others)
        try:
            for k in range(self.n_outputs):
                x = self.outputs[k]
                if type(x) is Spot:
                    s = <Spot>x
                    x = <object>inputs[s.of_input] if s.of_input >= 0 else self.tensor_at(s)
                Py_INCREF(x)
                results[k] = <PyObject *>x
        finally:
            self.done()
        return 0

    def run(self, list inputs not None, object others=None):
        """Runs the program. ``tensor`` gives its results until ``finish``."""
        check_ready(self, inputs)
        self.execute(PySequence_Fast_ITEMS(inputs), others)

    cdef int execute(self, PyObject **inputs, object others) except -1:
        cdef int64_t at = 0
        cdef int status
        cdef uint64_t seed = 0, offset = 0, unused
        cdef void *twister = NULL
        cdef int64_t draws
        cdef const char *error = NULL
        cdef bint released = pt_plan_work(self.p) > SMALL
        cdef PyThreadState *held
        if self.busy:
            raise RuntimeError("run: another thread runs the plan")
        self.busy = True
        try:
            self.bind(inputs)
            while at != PT_PLAN_DONE:
                draws = pt_plan_draws(self.p, at)
                if draws:
                    next_random(None, DEVICE_CPU, -1, &seed, &offset, &twister)
                    for _ in range(draws - 1):
                        next_random(None, DEVICE_CPU, -1, &unused, &unused, &twister)
                held = release_gil(released)
                status = pt_plan_run(self.p, &at, seed, offset, twister, &error)
                restore_gil(held)
                if status == PT_NEED_BLAS:
                    from ptcore._ops.product import blas
                    blas.load()
                elif status != PT_OK:
                    raise_status(status, pt_plan_step_name(self.p, at), error)
                elif at != PT_PLAN_DONE:
                    others()
        except BaseException:
            self.done()
            raise
        return 0

    cdef int bind(self, PyObject **inputs) except -1:
        cdef Tensor t
        cdef Input *x
        cdef int k
        cdef int64_t need = pt_plan_arena_bytes(self.p)
        for k in range(self.n_inputs):
            t = <Tensor?><object>inputs[k]
            x = &self.inputs[k]
            if x.buffer >= 0:
                self.bind_storage(x.buffer, t.storage, t.storage.data if x.offset >= 0 else address(t) + x.low)
            if x.written:
                count_write(t)
        for k in range(self.n_fresh):
            self.bind_new(self.fresh[k])
        if need and (self.arena is None or (<Tensor>self.arena).storage.refs > 1):
            self.arena = new_tensor(PT_UINT8, 1, &need, DEVICE_CPU, -1)
            pt_plan_set_arena(self.p, (<Tensor>self.arena).storage.data)
        return 0

    cdef void bind_storage(self, int k, pt_storage *s, char *data) noexcept:
        if self.bound[k] != s:
            if self.bound[k] != NULL:
                pt_storage_decref(self.bound[k])
            pt_storage_incref(s)
            self.bound[k] = s
        if pt_plan_address(self.p, k) != data:
            pt_plan_bind(self.p, k, data)

    cdef int bind_new(self, int k) except -1:
        cdef pt_storage *s = allocate(self.bytes_of[k], DEVICE_CPU, -1)
        if self.bound[k] != NULL:
            pt_storage_decref(self.bound[k])
        self.bound[k] = s
        pt_plan_bind(self.p, k, s.data)
        return 0

    def bind_tensor(self, int k, Tensor t not None):
        """Sets the memory of a tensor registered by ``lend`` for this run."""
        if k >= (self.n_buffers if self.bound != NULL else 0):
            raise IndexError(f"bind_tensor: the plan has no memory {k}")
        if k >= 0:
            self.bind_storage(k, t.storage, t.storage.data)

    def tensor(self, Spot spot not None):
        """The tensor at a place, in this run."""
        if not self.busy or spot.place.buffer >= self.n_buffers:
            raise RuntimeError("tensor: the plan does not run, or the place is none of it")
        return self.tensor_at(spot)

    cdef Tensor tensor_at(self, Spot spot):
        cdef Place *s = &spot.place
        cdef pt_storage *storage
        cdef int64_t offset = s.offset
        if s.buffer < 0:
            return new_strided(s.dt, s.ndim, s.sizes, s.strides, DEVICE_CPU, -1)
        storage = self.bound[s.buffer]
        if storage == NULL and pt_plan_host(self.p, s.buffer) >= 0:
            storage = self.bound[pt_plan_host(self.p, s.buffer)]
        if storage == NULL:
            storage = (<Tensor>self.arena).storage
        offset += pt_plan_address(self.p, s.buffer) - storage.data
        pt_storage_incref(storage)
        return wrap_storage(storage, offset, s.dt, s.ndim, s.sizes, s.strides)

    def finish(self):
        """Ends a run after its results have been taken; the next run may start."""
        self.done()

    cdef void done(self) noexcept:
        self.drop_bound()
        self.busy = False

    # -- what it is --------------------------------------------------------------------------------

    @property
    def steps(self):
        """The names of the steps."""
        return [pt_plan_step_name(self.p, k).decode() for k in range(pt_plan_length(self.p))]

    @property
    def arena_bytes(self):
        return pt_plan_arena_bytes(self.p)

    @property
    def work(self):
        """The elements that the largest recorded step reads and writes: above a limit, runs release the GIL."""
        return pt_plan_work(self.p)


cdef void set_planning(bint on):
    global pt_modes_seen
    if on:
        pt_modes_seen |= PT_MODE_PLANNING
        pt_tls.mode |= PT_MODE_PLANNING
    else:
        pt_tls.mode &= ~<uint32_t>PT_MODE_PLANNING


# -- what dispatch tells -----------------------------------------------------------------------------

cdef void storage_made(pt_storage *s) noexcept:
    if s.nbytes:
        (<Plan>pt_tls.planner).keep(s, s.data, s.nbytes)


pt_on_storage = storage_made
