"""Shape and dtype rules of structured ops: what the outputs of a call are, before anything is allocated.

A row names a rule (``out="reduced"``) or writes an expression of table/shapes.py. Each named rule has its C
form here and a Python form of the same name in table/shapes.py, which says what is wrong where the C form gives up;
tests/ops/test_meta.py holds both to one answer.
"""
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._device cimport as_device, device
from ptcore._dtype cimport CATEGORY, ITEMSIZE, as_code
from ptcore._shape cimport read_sizes, same_sizes, strides_like
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.call.call cimport *
from ptcore._ops.call.shape_window cimport window_shape


cdef inline void like(Call *c, int k, const pt_view *x, int dt) noexcept:
    """Output k has the sizes of x."""
    cdef Out *out = &c.outs[k]
    out.ndim, out.dt, out.laid = x.ndim, dt, False
    memcpy(out.sizes, x.sizes, x.ndim * sizeof(int64_t))


cdef inline void laid(Call *c) noexcept:
    """The first output keeps the strides of the first tensor if its elements fill their memory, else their order."""
    cdef const pt_view *x = &c.inputs[0]
    if not x.contiguous:
        c.outs[0].laid = True
        strides_like(x.ndim, x.sizes, x.strides, c.outs[0].strides)


cdef inline void reduced(Call *c, int k, int dt) noexcept:
    """Output k has the sizes of the first tensor without the dims that are named."""
    cdef const pt_view *x = &c.inputs[0]
    cdef Out *out = &c.outs[k]
    cdef int j
    out.ndim, out.dt, out.laid = 0, dt, False
    for j in range(x.ndim):
        if c.dims & (<uint64_t>1 << j):
            if c.keepdim:
                out.sizes[out.ndim] = 1
                out.ndim += 1
        else:
            out.sizes[out.ndim] = x.sizes[j]
            out.ndim += 1


cdef bint replaced(Call *c, const pt_view *x, int64_t dim, int64_t n) noexcept:
    """The first output has the sizes of x with n in the place of one."""
    like(c, 0, x, x.dtype)
    if x.ndim:
        c.outs[0].sizes[dim] = n
    return True


cdef bint is_index(const pt_view *x) noexcept:
    return x.dtype == PT_INT64 or x.dtype == PT_INT32 or CATEGORY[x.dtype] == 1


cdef bint gathered(Call *c) noexcept:
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *index = &c.inputs[1]
    cdef int j
    if index.ndim != x.ndim or not is_index(index):
        return False
    for j in range(x.ndim):
        if j != c.params[0].i and index.sizes[j] > x.sizes[j]:
            return False
    like(c, 0, index, x.dtype)
    return True


cdef bint scattered(Call *c) noexcept:
    cdef const pt_view *index = &c.inputs[1]
    cdef const pt_view *src = &c.inputs[2]
    cdef int j
    if src.ndim != index.ndim or not gathered(c):
        return False
    for j in range(index.ndim):
        if index.sizes[j] > src.sizes[j]:
            return False
    like(c, 0, &c.inputs[0], c.inputs[0].dtype)
    return True


cdef bint shaped(Call *c) noexcept:
    """The sizes that are the last list of ints among the parameters."""
    cdef Out *out = &c.outs[0]
    cdef int k, j
    for k in range(c.nparams - 1, -1, -1):
        if c.params[k].kind == PT_PARAM_INTS:
            break
    else:
        return False
    for j in range(c.params[k].count):
        if c.params[k].list[j] < 0:
            return False
        out.sizes[j] = c.params[k].list[j]
    out.ndim, out.dt, out.laid = c.params[k].count, c.inputs[0].dtype, False
    return True


cdef bint joined(Call *c) noexcept:
    """``cat`` of tensors that differ in one dim at most."""
    cdef const pt_view *x = &c.inputs[0]
    cdef int64_t dim = c.params[0].i, total = 0
    cdef int i, j
    if x.ndim == 0:
        return False
    for i in range(c.nin):
        if c.inputs[i].ndim != x.ndim:
            return False
        for j in range(x.ndim):
            if j != dim and c.inputs[i].sizes[j] != x.sizes[j]:
                return False
        total += c.inputs[i].sizes[dim]
    return replaced(c, x, dim, total)


cdef bint multiplied(Call *c, int batch) noexcept:
    """Matrices, or with batch = 1 stacks of them."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *y = &c.inputs[1]
    cdef Out *out = &c.outs[0]
    if x.ndim != 2 + batch or y.ndim != 2 + batch or x.sizes[batch + 1] != y.sizes[batch]:
        return False
    if batch and x.sizes[0] != y.sizes[0]:
        return False
    out.ndim, out.dt, out.laid = 2 + batch, c.dt, False
    out.sizes[0] = x.sizes[0]
    out.sizes[batch], out.sizes[batch + 1] = x.sizes[batch], y.sizes[batch + 1]
    return True


cdef bint transformed(Call *c) noexcept:
    """``linear``: (..., in) by (out, in), and a bias (out)."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *weight = &c.inputs[1]
    cdef const pt_view *bias = &c.inputs[2]
    if x.ndim == 0 or weight.ndim != 2 or x.sizes[x.ndim - 1] != weight.sizes[1]:
        return False
    if bias.dtype != PT_NONE and (bias.ndim != 1 or bias.sizes[0] != weight.sizes[0]):
        return False
    return replaced(c, x, x.ndim - 1, weight.sizes[0])


cdef inline bint is_vector(const pt_view *x, int64_t n) noexcept:
    """Whether an optional tensor is absent or a vector of n numbers."""
    return x.dtype == PT_NONE or (x.ndim == 1 and x.sizes[0] == n)


cdef inline int stat_dt(int dt) noexcept:
    """Statistics kept beside half-precision data are float32."""
    return PT_FLOAT32 if ITEMSIZE[dt] == 2 else dt


cdef inline void sized(Call *c, int k, int ndim, const int64_t *sizes, int dt) noexcept:
    """Output k has these sizes."""
    cdef Out *out = &c.outs[k]
    out.ndim, out.dt, out.laid = ndim, dt, False
    memcpy(out.sizes, sizes, ndim * sizeof(int64_t))


cdef bint filled(Call *c) noexcept:
    """The output has the sizes and the dtype that arguments say."""
    cdef int j, k, n = 0, dt = -1
    for k in range(c.n):
        if c.o.letters[k] == c't' and c.params[n].kind == PT_PARAM_INT:
            dt = <int>c.params[n].i
        elif c.o.letters[k] == c'z':
            for j in range(c.params[n].count):
                if c.params[n].list[j] < 0:
                    return False
            sized(c, 0, c.params[n].count, c.params[n].list, dt)
        n += 1
    c.outs[0].dt = dt
    return dt >= 0


cdef bint layer_normalized(Call *c) noexcept:
    """``layer_norm``: the input's sizes, and twice those without the last dims, kept as 1."""
    cdef const pt_view *x = &c.inputs[0]
    cdef int64_t n = c.params[0].i
    cdef int i, k, outer
    if n < 1 or n > x.ndim:
        return False
    outer = x.ndim - <int>n
    for k in range(1, 3):
        if c.inputs[k].dtype != PT_NONE and (
                c.inputs[k].ndim != n or not same_sizes(<int>n, c.inputs[k].sizes, x.sizes + outer)):
            return False
    like(c, 0, x, x.dtype)
    for k in range(1, 3):
        like(c, k, x, stat_dt(x.dtype))
        for i in range(outer, x.ndim):
            c.outs[k].sizes[i] = 1
    c.nout = 3
    return True


cdef bint layer_gradients(Call *c) noexcept:
    """Those of the input, the second tensor, and of weight and bias, which have its last sizes (the mean has 1)."""
    cdef const pt_view *x = &c.inputs[1]
    cdef const pt_view *mean = &c.inputs[2]
    cdef int n = x.ndim, k
    if mean.ndim != n:
        return False
    while n and mean.sizes[n - 1] == 1:
        n -= 1
    like(c, 0, x, x.dtype)
    for k in range(1, 3):
        sized(c, k, x.ndim - n, x.sizes + n, x.dtype)
    c.nout = 3
    return True


cdef bint channels_normalized(Call *c, bint groups) noexcept:
    """``batch_norm`` and ``group_norm`` of (N, C, ...), with two statistics of each channel, or of each group of each
    sample."""
    cdef const pt_view *x = &c.inputs[0]
    cdef int64_t[2] sizes
    cdef int k
    if x.ndim < 2 or not is_vector(&c.inputs[1], x.sizes[1]) or not is_vector(&c.inputs[2], x.sizes[1]):
        return False
    sizes[0], sizes[1] = x.sizes[0], c.params[0].i
    if groups and (sizes[1] < 1 or x.sizes[1] % sizes[1]):
        return False
    like(c, 0, x, x.dtype)
    if not groups:
        sizes[0] = x.sizes[1]
    for k in range(1, 3):
        sized(c, k, 1 + groups, sizes, stat_dt(x.dtype))
    c.nout = 3
    return True


cdef bint channel_gradients(Call *c) noexcept:
    """Those of the input, the second tensor, and of weight and bias."""
    cdef const pt_view *x = &c.inputs[1]
    if x.ndim < 2:
        return False
    like(c, 0, x, x.dtype)
    sized(c, 1, 1, x.sizes + 1, x.dtype)
    sized(c, 2, 1, x.sizes + 1, x.dtype)
    c.nout = 3
    return True


cdef bint classified(Call *c, bint with_lse) noexcept:
    """Losses of class indices: the loss, [the log-sum-exp,] the total weight."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *target = &c.inputs[1]
    cdef int64_t[64] sizes
    cdef int i, n = 0, dt = stat_dt(x.dtype) if with_lse else x.dtype
    if x.ndim == 0 or not is_index(target) or not is_vector(&c.inputs[2], x.sizes[0 if x.ndim == 1 else 1]):
        return False
    for i in range(x.ndim):
        if i != 1 and x.ndim > 1:
            sizes[n] = x.sizes[i]
            n += 1
    if target.ndim != n or not same_sizes(n, target.sizes, sizes):
        return False
    sized(c, 0, 0 if c.params[0].i else n, sizes, x.dtype)         # "none" is the first word
    if with_lse:
        sized(c, 1, n, sizes, dt)
    sized(c, 1 + with_lse, 0, sizes, dt)
    c.nout = 2 + with_lse
    return True


cdef bint added_product(Call *c) noexcept:
    """``addmm``: a matrix product, to which the first tensor broadcasts."""
    cdef const pt_view *input = &c.inputs[0]
    cdef const pt_view *x = &c.inputs[1]
    cdef const pt_view *y = &c.inputs[2]
    cdef int64_t[2] sizes
    cdef int i
    if x.ndim != 2 or y.ndim != 2 or x.sizes[1] != y.sizes[0] or input.ndim > 2:
        return False
    sizes[0], sizes[1] = x.sizes[0], y.sizes[1]
    for i in range(input.ndim):
        if input.sizes[i] != 1 and input.sizes[i] != sizes[2 - input.ndim + i]:
            return False
    sized(c, 0, 2, sizes, c.dt)
    return True


cdef bint added_at(Call *c) noexcept:
    """``index_add``: the sizes of the input; the source has as many of one dim as there are indices."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *source = &c.inputs[2]
    cdef int i
    if c.inputs[1].ndim > 1 or not is_index(&c.inputs[1]) or source.ndim != x.ndim:
        return False
    if x.ndim == 0 and c.inputs[1].numel != 1:
        return False
    for i in range(x.ndim):
        if source.sizes[i] != (c.inputs[1].numel if i == c.params[0].i else x.sizes[i]):
            return False
    like(c, 0, x, x.dtype)
    return True


cdef bint spectral(Call *c, int rule) noexcept:
    """Fourier transforms along dims: half of the last one is what stands for real numbers."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_param *dims = &c.params[0]
    cdef Out *out = &c.outs[0]
    cdef int64_t last
    cdef int j
    if x.ndim == 0 or dims.count == 0:
        return False
    for j in range(dims.count):
        if x.sizes[dims.list[j]] < 1:
            return False
    like(c, 0, x, x.dtype)
    last = dims.list[dims.count - 1]
    if rule == RULE_FFT_R2C:
        out.dt = PT_COMPLEX64 if x.dtype == PT_FLOAT32 else PT_COMPLEX128
        if c.params[2].i:
            out.sizes[last] = x.sizes[last] // 2 + 1
    elif rule == RULE_FFT_C2R:
        out.dt = PT_FLOAT32 if x.dtype == PT_COMPLEX64 else PT_FLOAT64
        if c.params[2].i < 1 or x.sizes[last] != c.params[2].i // 2 + 1:
            return False
        out.sizes[last] = c.params[2].i
    return True


cdef bint shape(Call *c) noexcept:
    """Fills ``c.outs`` by the rule that the row names. False: its Python form has to say."""
    cdef int rule = c.o.rule
    cdef const pt_view *x = &c.inputs[0]
    cdef int k
    if rule == RULE_SPEC:
        return False
    c.nout = 1
    if rule == RULE_FILLED:
        return filled(c)
    if c.nin == 0 or x.dtype == PT_NONE:
        return False
    if rule == RULE_LIKE:
        like(c, 0, x, x.dtype)
    elif rule == RULE_LAID:
        like(c, 0, x, x.dtype)
        laid(c)
    elif rule == RULE_CAST or rule == RULE_LAID_CAST:
        if c.params[0].kind != PT_PARAM_INT:
            return False
        like(c, 0, x, <int>c.params[0].i)
        if rule == RULE_LAID_CAST:
            laid(c)
    elif rule == RULE_SUMMED:
        like(c, 0, x, PT_INT64 if CATEGORY[x.dtype] < 2 and c.params[c.nparams - 1].kind == PT_PARAM_NONE else x.dtype)
    elif rule == RULE_LIKE_PAIR:
        like(c, 0, x, x.dtype)
        like(c, 1, x, PT_INT64)
        c.nout = 2
    elif rule == RULE_REDUCED:
        reduced(c, 0, x.dtype)
    elif rule == RULE_REDUCED_SUM:
        reduced(c, 0, PT_INT64 if CATEGORY[x.dtype] < 2 and c.params[2].kind == PT_PARAM_NONE else x.dtype)
    elif rule == RULE_REDUCED_NONEMPTY:
        if x.numel == 0:
            return False
        reduced(c, 0, x.dtype)
    elif rule == RULE_REDUCED_BOOL:
        reduced(c, 0, PT_BOOL)
    elif rule == RULE_REDUCED_PAIR or rule == RULE_KTH_PAIR:
        if x.numel == 0:
            return False
        if rule == RULE_KTH_PAIR and not 1 <= c.params[0].i <= (x.sizes[c.params[1].i] if x.ndim else 1):
            return False
        reduced(c, 0, x.dtype)
        reduced(c, 1, PT_INT64)
        c.nout = 2
    elif rule == RULE_REDUCED_INDEX:
        if x.numel == 0:
            return False
        if c.params[0].kind == PT_PARAM_NONE:
            c.dims = <uint64_t>0xFFFFFFFFFFFFFFFF
        reduced(c, 0, PT_INT64)
    elif rule == RULE_MM:
        return multiplied(c, 0)
    elif rule == RULE_BMM:
        return multiplied(c, 1)
    elif rule == RULE_LINEAR:
        return transformed(c)
    elif rule == RULE_CAT:
        return joined(c)
    elif rule == RULE_GATHER:
        return gathered(c)
    elif rule == RULE_SCATTER:
        return scattered(c)
    elif rule == RULE_INDEX_SELECT:
        if c.inputs[1].ndim > 1 or not is_index(&c.inputs[1]):
            return False
        return replaced(c, x, c.params[0].i, c.inputs[1].numel)
    elif rule == RULE_LIKE_SECOND:
        like(c, 0, &c.inputs[1], c.inputs[1].dtype)
    elif rule == RULE_LIKE_MASK:
        like(c, 0, x, x.dtype)
        like(c, 1, x, PT_BOOL)
        c.nout = 2
    elif rule == RULE_LIKE_MATRIX:
        if x.ndim < 2:
            return False
        like(c, 0, x, x.dtype)
    elif rule == RULE_COUNTED:
        reduced(c, 0, PT_INT64)
    elif rule == RULE_MV:
        if x.ndim != 2 or not is_vector(&c.inputs[1], x.sizes[1]):
            return False
        sized(c, 0, 1, x.sizes, x.dtype)
    elif rule == RULE_DOT:
        if x.ndim != 1 or not is_vector(&c.inputs[1], x.sizes[0]):
            return False
        sized(c, 0, 0, x.sizes, x.dtype)
    elif rule == RULE_ADDMM:
        return added_product(c)
    elif rule == RULE_INDEX_ADD or rule == RULE_INDEX_COPY:
        return added_at(c)
    elif rule == RULE_FFT_C2C or rule == RULE_FFT_R2C or rule == RULE_FFT_C2R:
        return spectral(c, rule)
    elif rule == RULE_LAYER_NORM:
        return layer_normalized(c)
    elif rule == RULE_LAYER_NORM_BACKWARD:
        return layer_gradients(c)
    elif rule == RULE_BATCH_NORM:
        return channels_normalized(c, False)
    elif rule == RULE_GROUP_NORM:
        return channels_normalized(c, True)
    elif rule == RULE_CHANNELS_BACKWARD:
        return channel_gradients(c)
    elif rule == RULE_CROSS_ENTROPY:
        return classified(c, True)
    elif rule == RULE_NLL_LOSS:
        return classified(c, False)
    elif rule == RULE_SHAPED:
        return shaped(c)
    elif rule == RULE_LIKE_EACH:
        for k in range(c.nin):
            like(c, k, &c.inputs[k], c.inputs[k].dtype)
        c.nout = c.nin
    elif rule == RULE_TAKEN:
        if c.inputs[1].dtype != PT_INT64:
            return False
        like(c, 0, &c.inputs[1], x.dtype)
    elif rule == RULE_OF_ROWS:
        if x.ndim == 0:
            return False
        like(c, 0, x, x.dtype)
        c.outs[0].ndim -= 1
    elif rule == RULE_PUT:
        if c.inputs[1].dtype != PT_INT64 or c.inputs[1].numel != c.inputs[2].numel:
            return False
        like(c, 0, x, x.dtype)
    elif rule >= RULE_CONVOLVED:
        return window_shape(c)
    else:
        return False
    return True


# -- rules in Python -----------------------------------------------------------------------------

cdef int shape_by_spec(Call *c, tuple args) except -1:
    """Fills ``c.outs`` by the op's rule in Python, which raises for what does not fit."""
    cdef Out *out
    cdef device onto
    cdef int k
    specs = SPECS[c.op](*args)
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
        out.laid = len(spec) == 4 and len(spec[3]) == out.ndim          # it keeps its input's layout
        if out.laid:
            read_sizes(spec[3], out.strides, c.o.name, b"stride")
        if len(spec) == 3:              # the op moves its input to that device
            onto = as_device(spec[2], c.o.name)
            c.onto = c.column = onto.column
            c.number = onto.number
    return 0
