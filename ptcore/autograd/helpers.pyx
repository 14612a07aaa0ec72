"""Small functions that derivative texts and rules call."""
import sys
from importlib import import_module

from cpython.sequence cimport PySequence_Fast_ITEMS

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY
from ptcore._node cimport Node
from ptcore._shape cimport is_symbolic_number
from ptcore._shape import overlaps
from ptcore._tensor cimport Tensor, TensorExtras, shape_of, shape_seen
from ptcore._state import enable_grad, inference_mode
from ptcore._interpret cimport Payload, is_differentiated
from ptcore._interpret import transformed
from ptcore._subclass import own_leaf
from ptcore._ops.history import unchanged       # no-cython-lint: derivative texts call it
from ptcore._ops.halves cimport half_type, narrowed, widened
from ptcore._ops.call.run cimport call_with, over_first
from ptcore._ops.creation.creation import full, ones_like, zeros
from ptcore._ops.functions import abs, masked_fill, where
from ptcore._ops.functions import any as any_of
from ptcore._ops.functions import logical_and
from ptcore._ops.functions import cat
from ptcore._ops.functions import mm
from ptcore._ops.functions import pair_distances_slope, row_distances_slope
from ptcore._ops.functions import sum
from ptcore._ops.functions import (as_strided_of, diagonal, expand, permute, put, reshape, select, slice, transpose,
                                   unsqueeze)
from ptcore._ops.table.ids cimport VJPS, info
from ptcore._ops.table.ids import op_id, op_name


cpdef object conj_of(object d):
    """The conjugate of a factor; real factors are their own."""
    if isinstance(d, Tensor) and CATEGORY[(<Tensor>d).dt] < 3:
        return d
    return d.conjugate() if isinstance(d, complex) else d.conj() if isinstance(d, Tensor) else d


cdef bint is_real(object x):
    return isinstance(x, Tensor) and CATEGORY[(<Tensor>x).dt] == 2


cdef bint fusible(object g):
    """Whether the fused gradient may run: g is real and the backward is not differentiated. An interpreter is offered
    the fused op like any other."""
    cdef Tensor t = <Tensor>g
    cdef uint32_t key = (t.flags | pt_tls.mode) & (PT_SLOW & ~PT_NON_CPU)
    if pt_tls.grad_enabled or CATEGORY[t.dt] != 2:
        return False
    return not key or (key == PT_INTERPOSED and not differentiated())


def differentiated():
    """Whether the backward pass is itself differentiated: it is recorded, or in forward mode.

    A rule is then made of ops that have derivatives. An interpreter that only batches or traces is offered the
    fused op like any other.
    """
    return pt_tls.grad_enabled or is_differentiated()


def fused(by_ops, bint wide=True):
    """Decorator of a gradient that a fused op computes. If the backward is itself differentiated, ``by_ops`` is called
    instead, with the same arguments: a function, or the name of one in ``_ops/<topic>/decompositions.py``. It gets half
    types in float32, unless ``wide`` is False: then its results have dtypes of their own."""
    def choose(function):
        cdef object smaller = by_ops

        def slope(*args):
            nonlocal smaller
            if not differentiated():
                return function(*args)
            if isinstance(smaller, str):
                topic, name = smaller.split(".")
                smaller = getattr(import_module(f"ptcore._ops.{topic}.decompositions"), name)
            return call_in_float32(smaller, args) if wide else smaller(*args)
        return slope
    return choose


cdef object form_of_smaller_ops(str name, bint decomposed):
    cdef int op = op_id(name)
    family = info(op).family.decode()

    def form(*args):
        """A fused gradient, as ops that have derivatives. It is called in place of the op where the call is recorded:
        in a graph of a backward that is differentiated, since another backward chooses such ops itself."""
        if decomposed:
            made = getattr(import_module(f"ptcore._ops.{family}.decompositions"), name)
        else:
            made = import_module(f"ptcore.autograd.rules.{family}").SMALLER[name]
        return call_in_float32(made, args)
    VJPS[op] = form


# Fused gradients whose rows have no derivative of their own: those that are what they decompose into, and others.
for _name in ("grid_sample_backward", "max_pool_backward", "multi_margin_slope", "pair_distances_slope",
              "products_slope", "row_distances_slope"):
    form_of_smaller_ops(_name, True)
for _name in ("_linalg_householder", "attention_backward", "batch_norm_backward", "cross_entropy_backward",
              "ctc_loss_backward", "group_norm_backward", "layer_norm_backward", "log_softmax_backward",
              "logcumsumexp_slope", "recurrent_layer_backward", "rms_norm_backward", "segments_slope",
              "softmax_backward"):
    form_of_smaller_ops(_name, False)


def smaller_form(op):
    """The form of smaller ops that a fused gradient has; None for other ops."""
    cdef int number = op if isinstance(op, int) else op_id(op)
    return None if info(number).differentiable else VJPS[number]


def in_float32(rule):
    """Decorator of a rule that is made of ops: with half types it is called in float32, so that each gradient is
    rounded once, and does not overflow where the result does not."""
    def wide(*args):
        return call_in_float32(rule, args)
    wide.__wrapped__ = rule
    return wide


def again(op):
    """Decorator of a rule ``(g, input, out, parameters...)`` that computes with the output of an op, given by its name.
    With half types it is called in float32, and the output, which a node then does not save, is computed again."""
    cdef int number = op_id(op), n = <int>len(info(number).letters)

    def mark(rule):
        def wide(g, input, out, *params):
            if out is not None:
                return rule(g, input, out, *params)
            dtype = half_type(input)
            input = widened(input)
            given = (input, *params, *(None,) * (n - 1 - len(params)))      # a dtype that rules do not ask for
            return narrowed(rule(widened(g), input, call_with(number, given, None), *params), dtype)
        wide.__wrapped__ = rule
        return wide
    return mark


cdef object call_in_float32(object rule, tuple args):
    cdef object dtype = half_type(args[0])
    if dtype is None:
        return rule(*args)
    return narrowed(rule(*[widened(x) for x in args]), dtype)


cdef object summed(Node node, int k, object g):
    """A gradient of an elementwise call in float32, if what operand k gets of it is still to be summed or cast: this is
    rounded once. Otherwise the gradient itself."""
    if node.spec is None or node.spec[k] is None:
        return g
    return widened(g)


cdef object once(Node node, int k, object gradient, object g):
    """A gradient for operand k that was computed in float32, in the half type of g unless it is still to be summed."""
    if node.spec is not None and node.spec[k] is not None:
        return gradient
    cdef object dtype = half_type(g)
    return gradient if dtype is None else narrowed(gradient, dtype)


cdef int NOBODY = 0x7fffffff        # a number that no call of a transformation has


def formula_rule(int op):
    """The derivative rule of a fused gradient."""
    cdef str name = op_name(op)
    cdef int n = info(op).ntensors

    def rule(node, g, needs):
        args = (*[node.saved(k) for k in range(n)], *(node.params or ()))
        return tuple([slope_of(name, k, g, args) if needs >> k & 1 else None for k in range(n)])
    return rule


def slope_of(str op, int k, g, tuple args):
    """g, which has the shape of the result, times the partial of an elementwise op by its argument k.

    The row has no text of its partials: its formula, evaluated by ops, is differentiated."""
    from ptcore._ops import row
    from ptcore._ops.table.evaluate import evaluated
    from ptcore._ops.table.expr import TENSOR_NAMES
    from ptcore.autograd.engine import run_backward
    from ptcore.autograd.levels import has_history
    own = row(op)
    cdef int n = len(own.tensors)
    cdef list values = [lift(v, g).to(g.dtype) for v in args[:n]]
    x = expand(values[k], g.shape)
    recorded = pt_tls.grad_enabled and any([has_history(v) for v in (g, *values)])
    with inference_mode(False), enable_grad():
        x = x.view_as(x) if recorded and x.requires_grad else own_leaf(x, NOBODY)
        values[k] = x
        scope = {a.name: v for a, v in zip(own.params, args[n:])}
        scope.update(zip(TENSOR_NAMES, values), t=values[0])
        y = evaluated(own.formula, tuple([a.name for a in own.params]), scope, sys.modules[__name__])
    found = run_backward([y], [g], recorded, recorded, [x], False)[0] if y.requires_grad else None
    return zeros_for(g, g.shape) if found is None else found


def interposed():
    """Whether an interpreter sees the backward: then a rule may not write in place, even to its own tensors."""
    return (pt_tls.mode & PT_INTERPOSED) != 0


def known(x):
    """Whether a tensor's values can be read: those of a batch cannot, as samples may differ."""
    cdef Tensor t = <Tensor?>x
    cdef Payload payload
    while t.flags & PT_INTERPOSED:
        payload = (<TensorExtras>t.extras).payload
        if not payload.known:
            return False
        t = <Tensor?>payload.tensor
    return t.storage.device != DEVICE_META


def zeros_among(zero):
    """Whether a mask is true anywhere; None if it may not be read: its values are not known, or an interpreter that
    does not differentiate sees the backward."""
    if not known(zero) or interposed() and not differentiated():
        return None
    return bool(any_of(zero))


cpdef object lift(object value, object g):
    """A number that was given in the place of a tensor, as a 0-d tensor on the device of g."""
    if isinstance(value, Tensor):
        return value
    if is_symbolic_number(value):
        return zeros((), dtype=g.dtype, device=g.device) + value
    return full((), value, dtype=g.dtype, device=g.device)


def sum_to(g, shape):
    """g summed over the dims by which ``shape`` was broadcast to it."""
    cdef Tensor t = <Tensor>g
    cdef int extra = t.rank - len(shape), i
    cdef tuple sizes = tuple(shape_seen(t) if t.flags & PT_INTERPOSED else shape_of(t))
    if extra == 0 and sizes == tuple(shape):
        return g
    dims = list(range(extra))
    for i in range(len(shape)):
        if shape[i] == 1 and sizes[extra + i] != 1:
            dims.append(extra + i)
    if dims:
        g = sum(g, tuple(dims), True)
    return reshape(g, shape) if extra else g


def reduce_to(g, spec):
    """g, summed and cast to the shape and dtype of an operand that was broadcast or promoted, and moved to the
    operand's device if ``spec`` has it as a third item."""
    shape, dtype = spec[0], spec[1]
    if g.dtype is not dtype:
        if g.dtype.is_complex and not dtype.is_complex:
            g = g.real
        if g.dtype is not dtype and dtype.itemsize > 2:
            g = g.to(dtype)
    g = sum_to(g, shape)
    if g.dtype is not dtype:            # a half type: the sum is rounded once
        g = g.to(dtype)
    return g if len(spec) == 2 else g.to(spec[2])


def zeros_for(g, shape):
    """Zeros of a shape with g's dtype and device, for g to be written to.

    If g stands for a batch they are made from g, so that there are zeros for each sample."""
    if (<Tensor>g).flags & PT_INTERPOSED and transformed():
        return expand(logical_and(sum(g), False).to(g.dtype), shape).clone()
    return zeros(shape, dtype=g.dtype, device=g.device)


def adjoint_of(x):
    """The conjugate transpose of the last two dims."""
    return conj_of(transpose(x, -2, -1))


adjoint = adjoint_of             # the name of it in pickles


def outer_conj(g, y):
    return unsqueeze(g, 1) * unsqueeze(conj_of(y), 0)


def inverse_permutation(dims):
    result = [0] * len(dims)
    for i, d in enumerate(dims):
        result[d] = i
    return tuple(result)


def select_backward(g, shape, dim, index):
    z = zeros_for(g, shape)
    select(z, dim, index).copy_(g)
    return z


def onto_zeros(op, g, shape, *args):
    """An op, by its name, whose kernel may update its first argument; here that is zeros of a shape. The zeros become
    the result, unless the call is recorded or an interpreter sees it."""
    cdef int number = op_id(op)
    cdef tuple given = (zeros_for(g, shape), *args)
    if not differentiated() and not interposed() and over_first(number, PySequence_Fast_ITEMS(given), <int>len(given)):
        return given[0]
    return call_with(number, given, None)


def ungathered(g, shape, dim, index):
    """Zeros of a shape, with g added at the places that its elements were gathered from."""
    return onto_zeros("scatter_add", g, shape, dim, index, g)


# The gradients of distances by x1 for the rows of x1 and x2 (g, x1, x2, dist, p), and by x for all pairs of rows of
# x (g, x, dist, p).
pair_slope = fused(by_ops="norm.pair_distances_slope")(pair_distances_slope)
row_slope = fused(by_ops="norm.row_distances_slope")(row_distances_slope)


def kept_by_put(g, index, accumulate):
    """The gradient of the tensor that ``put`` writes to."""
    return g if accumulate else put(g, index, zeros_for(g, index.shape))


def slice_backward(g, shape, dim, start, end, step):
    z = zeros_for(g, shape)
    slice(z, dim, start, end, step).copy_(g)
    return z


def unbind_backward(grads, shape, dim):
    """The gradient from the gradients of all slices along a dim, some of which may be None."""
    given = (grads,) if isinstance(grads, Tensor) else grads
    return split_backward([None if g is None else unsqueeze(g, dim) for g in given], shape, [1] * len(given), dim)


def split_backward(grads, shape, sizes, dim):
    """The gradient from those of consecutive parts of a dim: zeros for a part without a gradient."""
    cdef list parts = []
    given = (grads,) if isinstance(grads, Tensor) else grads
    some = next(g for g in given if g is not None)
    missing = 0                         # size of adjacent parts without a gradient, which share one array of zeros
    for g, n in zip(given, sizes):
        if g is None:
            missing += n
            continue
        if missing:
            parts.append(zeros_for(some, (*shape[:dim], missing, *shape[dim + 1:])))
            missing = 0
        parts.append(g)
    if missing:
        parts.append(zeros_for(some, (*shape[:dim], missing, *shape[dim + 1:])))
    return parts[0] if len(parts) == 1 else cat(parts, dim)


def diagonal_backward(g, shape, offset, dim1, dim2):
    z = zeros_for(g, shape)
    diagonal(z, offset, dim1, dim2).copy_(g)
    return z


def unfold_backward(g, shape, dimension, size, step):
    """The gradient of each window, added at the window's place."""
    from ptcore._ops.creation.creation import arange
    if not shape:
        return reshape(sum(g, (0,)), ())
    n, count = len(shape), g.shape[dimension]
    places = unsqueeze(arange(count, device=g.device) * step, 1) + arange(size, device=g.device)
    order = (*range(dimension + 1), n, *range(dimension + 1, n))
    rows = reshape(permute(g, order), (*shape[:dimension], count * size, *shape[dimension + 1:]))
    return onto_zeros("index_add", g, shape, dimension, reshape(places, (-1,)), rows, 1)


def corner_of(g, shape):
    """Zeros of a shape that is no smaller than g's, with g in the first elements along each dim."""
    if g.shape == tuple(shape):
        return g
    z = window = zeros_for(g, shape)
    for dim, n in enumerate(g.shape):
        window = slice(window, dim, 0, n, 1)
    window.copy_(g)
    return z


def sgn_backward(g, x, out):
    """Backward of ``x / abs(x)``: the part of g that turns the direction of a complex x; zero for real x."""
    if CATEGORY[(<Tensor>x).dt] < 3:
        return zeros_for(g, x.shape)
    size = abs(x)
    along = (g * conj_of(out)).real
    return (g - along * out) / masked_fill(size, size == 0, float("inf"))


def angle_backward(g, x):
    """Backward of the angle of a complex x, which turns by ``1j * x / abs(x)**2``; zero for real x."""
    if CATEGORY[(<Tensor>x).dt] < 3:
        return zeros_for(g, x.shape)
    size = abs(x)                       # divided by twice: its square may leave the dtype's range
    size = masked_fill(size, size == 0, float("inf"))
    return g * (x / size * 1j / size)


def not_implemented(op, argument):
    """The function in place of an unknown partial; raises."""
    raise NotImplementedError(f"{op}: the derivative by {argument} is not implemented")


@in_float32
def gamma_slope(g, x, y):
    """The gradient of igamma by its second argument."""
    from ptcore._ops.functions import exp, lgamma, log
    return sum_to(g * exp((x - 1) * log(y) - y - lgamma(x)), y.shape)


def no_gamma_derivative(g):
    raise NotImplementedError("igamma: the derivative by the exponent, the first argument, is not implemented")


def angle_forward(t, x):
    if CATEGORY[(<Tensor>x).dt] < 3:
        return t * 0
    size = abs(x)
    size = masked_fill(size, size == 0, float("inf"))
    return (conj_of(x / size) * t).imag / size


def pointwise(t, factor):
    """The product of ``factor`` and the corner of t with factor's shape."""
    for dim, n in enumerate(factor.shape):
        t = slice(t, dim, 0, n, 1)
    return t * factor.to(t.dtype)


def seen_by(index, z):
    """The corner of z that an index covers."""
    for dim, n in enumerate(index.shape):
        z = slice(z, dim, 0, n, 1)
    return z


def factors_of(x, dim, index, z):
    """The factor that each element of x was multiplied by."""
    from ptcore._ops.functions import scatter_prod
    return scatter_prod(zeros_for(x, x.shape) + 1, dim, index, z)


def other_factors(x, dim, index, z, out):
    """For each element of z that was multiplied into ``out``, the product of all other factors there."""
    from ptcore._ops.functions import gather, scatter_add, scatter_prod
    dtype = half_type(x)
    if dtype is not None:               # ``out`` was rounded
        x, z = widened(x), widened(z)
        return narrowed(other_factors(x, dim, index, z, scatter_prod(x, dim, index, z)), dtype)
    z = seen_by(index, z)
    zero = z == 0
    count = gather(scatter_add(zeros_for(x, x.shape), dim, index, zero.to(x.dtype)), dim, index)
    lonely = logical_and(zero, count == 1)
    without = gather(scatter_prod(x, dim, index, masked_fill(z, lonely, 1)), dim, index)
    plain = gather(out, dim, index) / masked_fill(z, zero, 1)
    return slope_refused(where(lonely, without, plain), count.real, "scatter_reduce")


def slope_refused(x, count, op):
    """x, a product of all but one of several factors. If more than one factor is 0 (``count``), the recorded ops do not
    give the derivative of x: asking for it raises, as in PyTorch. Where values are not read, as in a batch or in a
    graph that may be differentiated later, it is NaN there."""
    cdef bint again = differentiated()
    if x.is_meta or not again and not interposed():
        return x
    if not again or not known(count):
        from ptcore._ops.functions import sqrt, where
        several = count > 1
        # 1, whose derivative by x is 0 times infinity where there are several, and 0 elsewhere
        return x * (sqrt(where(several, x * 0, 1)) + where(several, 1, 0).to(x.dtype))
    if (count > 1).any().item():
        from ptcore.autograd.function import _Underived
        why = f"{op}: the second derivative of a product is not known where several of its factors are 0"
        return _Underived.apply(x, why)
    return x


def is_winner(dim, index, z, out):
    """Which elements of z equal the extreme at their place of ``out``."""
    from ptcore._ops.functions import gather
    return seen_by(index, z) == gather(out, dim, index)


def winners(x, dim, index, z, out, own):
    """How many elements share each extreme of a scatter; at least 1. Those of x count at the places of the scatter only
    if they are its ``own``: else they are infinities with which it begins, and so may be the extreme of z."""
    from ptcore._ops.functions import scatter_add, scatter_src
    count = (x == out).to(x.dtype)
    if not own:
        count = scatter_src(count, dim, index, zeros_for(count, index.shape))
    count = scatter_add(count, dim, index, is_winner(dim, index, z, out).to(x.dtype))
    return masked_fill(count, count == 0, 1)


def as_strided_backward(g, shape, size, stride, storage_offset, input_stride, input_offset):
    """Adds g at the places of the window's elements, then reads the input's elements."""
    from ptcore._ops.creation.creation import arange
    from ptcore._ops.functions import index_add
    from ptcore._ops.view.bodies import window_of
    low, high = extent(size, stride, storage_offset)
    low2, high2 = extent(shape, input_stride, input_offset)
    low, high = min(low, low2), max(high, high2)
    n = high - low + 1
    if overlaps(size, stride):
        places = as_strided_of(arange(n, device=g.device), size, stride, storage_offset - low, (n,), 0)
        flat = onto_zeros("index_add", g, (n,), 0, reshape(places, (-1,)), reshape(g, (-1,)), 1)
    else:
        flat = onto_zeros("overwritten", g, (n,), g, stride, storage_offset - low)
    if overlaps(shape, input_stride):   # elements that share memory share the gradient of that place
        places = as_strided_of(arange(n, device=g.device), shape, input_stride, input_offset - low, (n,), 0)
        places = reshape(places, (-1,))
        times = index_add(zeros(n, dtype=g.dtype, device=g.device), 0, places, ones_like(places, dtype=g.dtype))
        flat = flat / where(times == 0, ones_like(times), times)
    return window_of(flat, shape, input_stride, input_offset - low)


def extent(size, stride, offset):
    low = high = offset
    for n, s in zip(size, stride):
        if n == 0:
            return offset, offset
        if s > 0:
            high += (n - 1) * s
        else:
            low += (n - 1) * s
    return low, high


def _rows(x):
    """(..., n) as (rows, n). The number of rows is computed, as -1 is ambiguous if n is 0."""
    if x.ndim == 2:
        return x
    count = 1
    for size in x.shape[:-1]:
        count *= size
    return reshape(x, (count, x.shape[-1]))


def linear_input(g, weight):
    """Gradient of linear for its input, from weight (out_features, in_features)."""
    if weight.ndim == 1:
        return unsqueeze(g, -1) * conj_of(weight)
    r = mm(_rows(g), conj_of(weight))
    return r if g.ndim == 2 else reshape(r, g.shape[:-1] + weight.shape[1:])


def linear_weight(g, x):
    """Gradient of linear for its weight, whose values and sizes it does not need: a vector takes a dim off x."""
    rows = _rows(x)
    if g.ndim < x.ndim:
        return reshape(mm(reshape(g, (1, -1)), conj_of(rows)), x.shape[-1:])
    return mm(transpose(_rows(g), 0, 1), conj_of(rows))


def sum_of_channels(g):
    """g (N, C, ...) summed to (C,)."""
    return sum(g, (0, *range(2, g.ndim)))


def spread_channels(t, shape):
    """A vector with one number for each channel, expanded to all places of (N, C, ...)."""
    return expand(reshape(t, (1, -1) + (1,) * (len(shape) - 2)), shape)


def negated(values):
    return tuple([-v for v in values])


def triangular_forward(t, x, out, upper, unitriangular):
    """The change of a triangular system's solution for a change of the triangular matrix."""
    from ptcore._ops.functions import matmul
    from ptcore._ops.functions import tril, triu
    from ptcore._ops.functions import _linalg_solve_triangular
    off = 1 if unitriangular else 0
    t = triu(t, off) if upper else tril(t, -off)
    return -_linalg_solve_triangular(x, matmul(t, out), upper, unitriangular)


def pinv_backward(g, y, out):
    """Backward of the pseudoinverse P of y: -P^H g P^H + (1 - y P) g^H P P^H + P^H P g^H (1 - P y)."""
    from ptcore._ops.functions import matmul
    h, back = adjoint_of(out), adjoint_of(g)
    left, right = matmul(matmul(back, out), h), matmul(matmul(h, out), back)
    return (left - matmul(y, matmul(out, left))) + (right - matmul(matmul(right, out), y)) - matmul(matmul(h, g), h)


def pinv_forward(t, y, out):
    """-P t P + P P^H t^H (1 - y P) + (1 - P y) t^H P^H P."""
    from ptcore._ops.functions import matmul
    h, back = adjoint_of(out), adjoint_of(t)
    left, right = matmul(matmul(out, h), back), matmul(matmul(back, h), out)
    return (left - matmul(matmul(left, y), out)) + (right - matmul(out, matmul(y, right))) - matmul(matmul(out, t), out)
