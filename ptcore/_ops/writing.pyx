"""Writing to existing memory: copies, and results that are written to the user's ``out=``.

A kernel writes to ``out=`` itself if it is like a new tensor to the kernel: dtype, sizes and layout are those of
the result, and no argument shares its memory. Otherwise a new result is made and copied.
"""
from ptcore._types cimport *
from ptcore._memory.allocate cimport allocate_pinned
from ptcore._device cimport BACKENDS, backend_error, memory_failure
from ptcore._dtype cimport CATEGORY, ITEMSIZE, dtype_of
from ptcore._gil cimport SMALL, PyThreadState, release_gil, restore_gil
from ptcore._shape cimport channels_dim, channels_last_strides, same_sizes
from ptcore._tensor cimport *
from ptcore._ops.history cimport check_inplace
from ptcore._ops.plan.hooks cimport copy_run, dry, planning, spoil
from ptcore._ops.table.ids cimport *

cdef extern from "loops.h" nogil:
    int pt_copy(const pt_view *dst, const pt_view *src)


cdef int copy_into(Tensor dst, Tensor src, bint non_blocking=False) except -1:
    """dst[...] = src without history; sizes must be equal, dtypes and strides may differ.

    ``non_blocking``: may return while page-locked memory of the host is still being read or written.
    """
    cdef pt_view a, b
    cdef int64_t[4 * 64] room
    cdef int status, column = dst.storage.device or src.storage.device
    cdef int (*copy)(const pt_view *, const pt_view *) noexcept nogil
    cdef bint apart, released = column != DEVICE_CPU or dst.count > SMALL
    cdef PyThreadState *held
    if (dst.flags | src.flags) & PT_INTERPOSED:
        raise RuntimeError("copy: a traced or batched tensor is met where values are copied that no interpreter sees")
    if dst.storage.device == DEVICE_META or dst.count == 0:
        return 0
    if src.storage.device == DEVICE_META:
        raise NotImplementedError(f"copy: a meta tensor has no values to copy to {dst.device}")
    fill_view(dst, &a)
    fill_view(src, &b)
    if column != DEVICE_CPU and a.device and b.device and a.device != b.device:
        return copy_into(dst, host_copy(src))
    if released:
        own_dims(&b, own_dims(&a, room))
    if column != DEVICE_CPU:
        if pt_is(a.dtype, PT_KIND_STORED) or pt_is(b.dtype, PT_KIND_STORED):
            as_bits(&a, &b, dst, src)
        apart = non_blocking and BACKENDS[column].copy_async != NULL
        copy = BACKENDS[column].copy_async if apart else BACKENDS[column].copy
        held = release_gil(True)
        status = copy(&a, &b)
        restore_gil(held)
    elif dry():
        status = 0
    else:
        held = release_gil(released)
        status = pt_copy(&a, &b)
        restore_gil(held)
    if status:
        reason = backend_error(column) if column != DEVICE_CPU else ""
        text = f"{src.device} to {dst.device} failed{reason}".encode()
        if status == PT_MEMORY_ERROR and column != DEVICE_CPU:
            status = memory_failure(column, a.device_index if a.device else b.device_index)
        raise_status(status, b"copy", text)
    if planning():
        if column != DEVICE_CPU:
            spoil(b"it copies to or from another device")
        else:
            copy_run(&a, &b)
    return 0


cdef int as_bits(pt_view *a, pt_view *b, Tensor dst, Tensor src) except -1:
    """Makes a copy of a stored dtype to or from a device one of integers: devices have no casts of stored dtypes."""
    if dst.dt != src.dt:
        raise NotImplementedError(f"copy: there is no cast from {dtype_of(src.dt).name} on {src.device} to "
                                  f"{dtype_of(dst.dt).name} on {dst.device}")
    a.dtype = b.dtype = PT_UINT8 if ITEMSIZE[dst.dt] == 1 else PT_INT32
    return 0


cdef Tensor landing(Tensor r, int column):
    """Page-locked memory in the place of r, for an asynchronous copy from a device."""
    if BACKENDS[column] == NULL or BACKENDS[column].allocate_host == NULL:
        return r
    return wrap_storage(allocate_pinned(r.storage.nbytes, column), 0, r.dt, r.rank, r.dims, r.dims + r.rank)


cdef Tensor host_copy(Tensor x):
    cdef Tensor r = new_tensor(x.dt, x.rank, x.dims, DEVICE_CPU, -1)
    copy_into(r, x)
    return r


cdef Tensor contiguous(Tensor x):
    """x's values in row-major order, without history."""
    cdef Tensor r
    if not x.flags & PT_NONCONTIGUOUS:
        return x
    r = new_like(x, x.dt)
    copy_into(r, x)
    return r


cdef bint dense_channels_last(Tensor x) noexcept:
    """Whether the elements of four or five dims follow each other in channels-last order."""
    cdef int64_t step = 1
    cdef int i, d
    for i in range(x.rank):
        d = channels_dim(i, x.rank)
        if x.dims[d] != 1 and x.dims[x.rank + d] != step:
            return False
        step *= x.dims[d]
    return True


cdef Tensor in_channels_last(Tensor x):
    """x's values in channels-last order, without history."""
    cdef int64_t[64] strides
    cdef Tensor r
    channels_last_strides(x.rank, x.dims, strides)
    r = new_strided(x.dt, x.rank, x.dims, strides, x.storage.device, x.storage.device_index)
    copy_into(r, x)
    return r


# -- out= ------------------------------------------------------------------------------------------

cdef bint same_window(Tensor a, Tensor b) noexcept:
    """Whether each element of a is the same element of b."""
    return (a is b or (a.storage.data + a.offset == b.storage.data + b.offset and a.dt == b.dt and a.rank == b.rank
                       and same_sizes(2 * a.rank, a.dims, b.dims)))


cdef bint repeats_itself(Tensor x) noexcept:
    """Whether several elements of x share one place in memory (a stride of 0)."""
    cdef int i
    for i in range(x.rank):
        if x.count and x.dims[i] > 1 and x.dims[x.rank + i] == 0:
            return True
    return False


cdef bint overlaps_itself(Tensor x) except -1:
    """Whether several elements of x share one place in memory, such as those of windows that overlap."""
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int64_t[64] at
    cdef int64_t n, step, reach = 0, place = 0
    cdef int rank = 0, i, k
    cdef bytearray seen
    if not x.flags & PT_NONCONTIGUOUS:
        return False
    for i in range(x.rank):             # sorted by their strides
        n, step = x.dims[i], abs(x.dims[x.rank + i])
        if n == 0:
            return False
        if n == 1:
            continue
        k = rank
        while k and strides[k - 1] > step:
            sizes[k], strides[k] = sizes[k - 1], strides[k - 1]
            k -= 1
        sizes[k], strides[k] = n, step
        rank += 1
    for i in range(rank):
        if strides[i] <= reach:
            break
        reach += (sizes[i] - 1) * strides[i]
    else:
        return False
    for i in range(i, rank):            # a dim begins within those before it: look at every place
        reach += (sizes[i] - 1) * strides[i]
    if reach + 1 < x.count:
        return True
    seen = bytearray(reach + 1)
    for i in range(rank):
        at[i] = 0
    while True:
        if seen[place]:
            return True
        seen[place] = 1
        for i in range(rank):
            at[i] += 1
            place += strides[i]
            if at[i] < sizes[i]:
                break
            place -= at[i] * strides[i]
            at[i] = 0
        else:
            return False


def check_dirty(Tensor t, int n_outputs):
    """Raises for an in-place write by a custom function under the same conditions as for an op.

    A view besides must be the only output: the base gets the function's history with one gradient, that of its window.
    Elements of a view that share memory have no such gradient.
    """
    check_inplace(t, b"mark_dirty", pt_tls.grad_enabled and needs_grad(t))
    if t.flags & PT_VIEW and n_outputs > 1:
        raise RuntimeError("mark_dirty: a function that writes to a view of another tensor must return the view "
                           f"alone, got {n_outputs} outputs; clone() the input, or do not write to it")
    if t.flags & PT_VIEW and overlaps_itself(t):
        raise RuntimeError("mark_dirty: elements of the written-to view overlap in memory, so that the write has no "
                           "derivative; write to a clone()")


cdef bint lies_in(Tensor out, object x) noexcept:
    """Whether an argument shares memory with out."""
    if isinstance(x, Tensor):
        return same_memory(out, <Tensor>x)
    if isinstance(x, (tuple, list)):
        for item in x:
            if isinstance(item, Tensor) and same_memory(out, <Tensor>item):
                return True
    return False


cdef bint can_be_written(Tensor out, const char *name, int ndim, const int64_t *sizes, int column,
                         int number) except -1:
    """Whether results of these sizes can be written to out; raises if out can never be written to."""
    if (out.rank != ndim or not same_sizes(ndim, out.dims, sizes) or out.storage.device != column
            or (number >= 0 and out.storage.device_index != number) or out.storage.data == NULL
            or out.flags & (PT_INTERPOSED | PT_TANGENT) or (pt_tls.grad_enabled and needs_grad(out))):
        return False
    check_inplace(out, name, False)
    return True


cdef Tensor place_for(object out, int dt, int ndim, const int64_t *sizes, int column, int number, tuple args,
                      const char *name):
    """An alias of the user's tensor, if a kernel may write its result there as to a new tensor; or None."""
    cdef Tensor t
    if not isinstance(out, Tensor):
        return None
    t = <Tensor>out
    if t.dt != dt or t.flags & PT_NONCONTIGUOUS or (column != DEVICE_CPU and t.offset % 16):
        return None
    if not can_be_written(t, name, ndim, sizes, column, number):
        return None
    for x in args:
        if lies_in(t, x):
            return None
    return alias(t)


cdef Tensor readable(tuple given, Tensor value):
    """The value; a copy if a write to one of the given tensors would change it first."""
    for t in given:
        if same_memory(<Tensor>t, value) and not same_window(<Tensor>t, value):
            if value.flags & PT_INTERPOSED:
                return <Tensor>value.clone()
            r = new_like(value, value.dt)
            copy_into(r, value)
            return r
    return value


cdef object write_outs(int op, object out, object results, list placed=None):
    """Copies results to the user's out= and returns it; raises for results with history. ``placed``: already there."""
    cdef pt_opinfo *o = info(op)
    cdef int i, rule
    cdef tuple given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    cdef tuple values = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    if len(given) != len(values):
        raise TypeError(f"{o.name.decode()}: out must hold {len(values)} tensors, got {len(given)}")
    for i in range(len(values)):
        if not isinstance(given[i], Tensor):
            raise TypeError(f"{o.name.decode()}: out must be a Tensor, got {type(given[i]).__name__}")
        if (<Tensor>values[i]).flags & PT_REQUIRES_GRAD:
            raise RuntimeError(f"{o.name.decode()}: out= does not support automatic "
                               "differentiation, but one of the arguments requires grad")
    if placed is None:
        values = tuple([readable(given, <Tensor>t) for t in values])
    for i in range(len(values)):
        if placed is not None and placed[i]:
            count_write(<Tensor>given[i])
        else:
            rule = o.out_rule
            if rule == PT_OUT_CAST_ONE:
                rule = PT_OUT_EXACT if len(values) > 1 else PT_OUT_CAST
            write_out(<Tensor>given[i], <Tensor>values[i], o.name, rule)
    if len(values) == 1:
        return out
    return given if type(results) is list else type(results)(given)


cdef bint on_two_devices(Tensor a, Tensor b) noexcept:
    """Whether two tensors are on different devices."""
    return (a.storage.device != b.storage.device
            or (a.storage.device != DEVICE_CPU and a.storage.device_index != b.storage.device_index))


cdef Tensor beside(Tensor value, Tensor x):
    """value on x's device: ``copy_`` takes values from any device."""
    if not on_two_devices(value, x) or (value.flags | x.flags) & PT_INTERPOSED:
        return value
    return <Tensor>value.to(x.device)


cdef int write_out(Tensor out, Tensor value, const char *name, int rule=PT_OUT_CAST) except -1:
    """Copies a result to the user's out=, which gets the result's shape. ``rule``: the dtype that out must have."""
    if pt_tls.grad_enabled and needs_grad(out):
        raise RuntimeError(f"{name.decode()}: out= does not support automatic differentiation, "
                           "but out requires grad")
    if value.dt != out.dt and (rule == PT_OUT_EXACT or rule == PT_OUT_OWN):
        from ptcore._errors import DTypeError
        raise DTypeError(f"{name.decode()}: out must have dtype {dtype_of(value.dt).name}, "
                         f"got {dtype_of(out.dt).name}")
    if CATEGORY[value.dt] > CATEGORY[out.dt] and rule != PT_OUT_ANY:
        from ptcore._errors import DTypeError
        raise DTypeError(f"{name.decode()}: result dtype {dtype_of(value.dt).name} can't be "
                         f"cast to out's dtype {dtype_of(out.dt).name}")
    if (out.flags | value.flags | pt_tls.mode) & PT_INTERPOSED:
        if tuple(out.shape) != tuple(value.shape):
            raise RuntimeError(f"{name.decode()}: out must have shape {list(value.shape)} inside a transformation, got "
                               f"{list(out.shape)}")
        out.copy_(value)
        return 0
    if on_two_devices(out, value):
        from ptcore._errors import DeviceError
        raise DeviceError(f"{name.decode()}: out must be on {value.device}, got one on {out.device}")
    if shape_of(out) != shape_of(value):
        resize_out(out, value, name)
    check_inplace(out, name, False)
    if repeats_itself(out):
        raise RuntimeError(f"{name.decode()}: more than one element of out refers to a single memory location")
    copy_into(out, value)
    count_write(out)
    return 0


# Creations give their out= the asked sizes: nothing was expected of it.
cdef frozenset RESIZE_IN_SILENCE = frozenset((
    "bernoulli", "empty", "eye", "full", "linspace", "logspace", "multinomial", "normal", "ones", "rand", "randint",
    "randn", "randperm", "zeros"))


cdef int resize_out(Tensor out, Tensor value, const char *name) except -1:
    """Gives out= the result's shape, as PyTorch does: without a warning if out was empty."""
    if out.count != 0 and name.decode() not in RESIZE_IN_SILENCE:
        import warnings
        warnings.warn("An output with one or more elements was resized since it had shape "
                      f"{list(shape_of(out))}, which does not match the required output shape {list(shape_of(value))} "
                      f"of {name.decode()}; give an empty tensor, or one of that shape", UserWarning, stacklevel=2)
    if out.storage.device == DEVICE_CPU:
        from ptcore._untyped_storage import resize_
        try:
            resize_(out, shape_of(value))
        except BufferError as e:
            raise type(e)(f"{name.decode()}: out must have shape {list(shape_of(value))}, as its memory can't be moved"
                          f", got {list(shape_of(out))}; {e}") from None
    else:
        from ptcore._subclass import set_data
        set_data(out, new_tensor(out.dt, value.rank, value.dims, out.storage.device, out.storage.device_index))
    return 0
