"""Shape rules of convolution, pooling, padding and resampling in C; see shape.pyx. Their errors: window_shapes.py.

What a rule does not take for granted, such as a window that does not fit, it leaves to its Python form.
"""
from ptcore._types cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.call.call cimport *

cdef int64_t LARGE = <int64_t>1 << 40           # sums of a few such numbers fit in 64 bits


cdef inline bint numbers(Call *c, int k, int count, int64_t least) noexcept:
    """Parameter k has a number for each dim, none below ``least``."""
    cdef int j
    if c.params[k].kind != PT_PARAM_INTS or c.params[k].count != count:
        return False
    for j in range(count):
        if c.params[k].list[j] < least:
            return False
    return True


cdef inline bint spatial(Call *c, int64_t n, int64_t channels, int size) noexcept:
    """The first output is (n, channels) with the sizes of a parameter."""
    cdef Out *out = &c.outs[0]
    cdef int j
    out.ndim, out.dt, out.laid = c.params[size].count + 2, c.inputs[0].dtype, False
    out.sizes[0], out.sizes[1] = n, channels
    for j in range(c.params[size].count):
        out.sizes[j + 2] = c.params[size].list[j]
    return True


cdef bint convolved(Call *c, int rule) noexcept:
    """Parameters: stride, padding, dilation, groups, size."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *y = &c.inputs[1]
    cdef int n = x.ndim - 2
    cdef int64_t groups = c.params[3].i, channels
    if not 1 <= n <= 3 or y.ndim != x.ndim or groups < 1:
        return False
    if not (numbers(c, 0, n, 1) and numbers(c, 1, n, 0) and numbers(c, 2, n, 1) and numbers(c, 4, n, 0)):
        return False
    if rule == RULE_CONVOLVED_WEIGHT:
        if x.sizes[0] != y.sizes[0] or x.sizes[1] % groups or y.sizes[1] % groups:
            return False
        return spatial(c, y.sizes[1], x.sizes[1] // groups, 4)
    if rule == RULE_CONVOLVED:
        channels = y.sizes[0]
        if x.sizes[1] % groups or x.sizes[1] // groups != y.sizes[1] or channels % groups:
            return False
    else:
        if x.sizes[1] != y.sizes[0] or x.sizes[1] % groups or groups > LARGE:
            return False
        channels = groups * y.sizes[1]
    if c.inputs[2].dtype != PT_NONE and (c.inputs[2].ndim != 1 or c.inputs[2].sizes[0] != channels):
        return False
    return spatial(c, x.sizes[0], channels, 4)


cdef bint pooled(Call *c, int size) noexcept:
    """Parameters: kernel, stride, padding, (dilation,) size; no kernel for adaptive windows."""
    cdef const pt_view *x = &c.inputs[0]
    cdef int n = x.ndim - 2, k = n if c.params[0].count else 0, j
    if not 1 <= n <= 3 or not numbers(c, size, n, 0):
        return False
    if not (numbers(c, 0, k, 1) and numbers(c, 1, k, 1) and numbers(c, 2, k, 0)) or (
            size > 3 and not numbers(c, 3, k, 1)):
        return False
    spatial(c, x.sizes[0], x.sizes[1], size)
    if size > 3:
        for j in range(n):
            if x.sizes[j + 2] == 0:
                return False
        c.outs[1] = c.outs[0]
        c.outs[1].dt = PT_INT64
        c.nout = 2
    return True


cdef bint padded(Call *c, int rule) noexcept:
    """Parameters: pad, and for edges the mode: reflect, replicate, circular."""
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_param *pad = &c.params[0]
    cdef Out *out = &c.outs[0]
    cdef int64_t before, after, n, most
    cdef int j
    if pad.kind != PT_PARAM_INTS or pad.count % 2 or pad.count > 2 * x.ndim:
        return False
    out.ndim, out.dt, out.laid = x.ndim, x.dtype, False
    for j in range(x.ndim):
        n = x.sizes[x.ndim - 1 - j]
        before = after = 0
        if 2 * j < pad.count:
            before, after = pad.list[2 * j], pad.list[2 * j + 1]
        if not (-LARGE < before < LARGE and -LARGE < after < LARGE):
            return False
        if rule == RULE_EDGE_UNPADDED:
            before, after = -before, -after
        elif rule == RULE_EDGE_PADDED and (before or after):
            most = n if c.params[1].i == 2 else n - 1
            if before < 0 or after < 0 or n == 0 or (c.params[1].i != 1 and (before > most or after > most)):
                return False
        if n + before + after < 0 or before < -n or after < -n:
            return False
        out.sizes[x.ndim - 1 - j] = n + before + after
    return True


cdef bint window_shape(Call *c) noexcept:
    cdef int rule = c.o.rule
    cdef const pt_view *x = &c.inputs[0]
    cdef const pt_view *grid = &c.inputs[1]
    cdef Out *out = &c.outs[0]
    cdef int j
    if rule <= RULE_CONVOLVED_WEIGHT:
        return convolved(c, rule)
    if rule == RULE_POOLED:
        return pooled(c, 3)
    if rule == RULE_POOLED_PAIR:
        return pooled(c, 4)
    if rule <= RULE_EDGE_UNPADDED:
        return padded(c, rule)
    out.ndim, out.dt, out.laid = x.ndim, x.dtype, False
    if rule == RULE_RESAMPLED:          # parameters: dim, size
        if x.ndim == 0 or c.params[1].i < 1 or x.sizes[c.params[0].i] == 0:
            return False
        for j in range(x.ndim):
            out.sizes[j] = x.sizes[j]
        out.sizes[c.params[0].i] = c.params[1].i
        return True
    # RULE_SAMPLED_AT: input and grid
    if not 4 <= x.ndim <= 5 or grid.ndim != x.ndim or grid.sizes[0] != x.sizes[0] or (
            grid.sizes[x.ndim - 1] != x.ndim - 2):
        return False
    out.sizes[0], out.sizes[1] = x.sizes[0], x.sizes[1]
    for j in range(2, x.ndim):
        if x.sizes[j] == 0:
            return False
        out.sizes[j] = grid.sizes[j - 1]
    return True
