"""Shape and dtype rules: what the ``out`` column of a row names or calls.

Plain Python over ints and tuples, so that the same rule runs on real tensors, on meta
tensors and on symbolic ints. Dims arrive wrapped and sorted out by dispatch; a rule returns
``(shape, dtype)`` or a list of those, and raises for shapes that do not fit. Rules that rows name
(``NAMED``, at the end) get the op's name and its arguments; call/shape.pyx has them in C as well.
"""
from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, OutOfRangeError, ShapeError
from ptcore._ops.table.window_shapes import *  # noqa: F403
from ptcore._shape import laid_strides

_INFINITY = float("inf")

BOOL = as_dtype("bool")
INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
FLOAT32 = as_dtype("float32")
REAL_OF = {as_dtype("complex64"): FLOAT32, as_dtype("complex128"): as_dtype("float64")}
COMPLEX_OF = {real: dtype for dtype, real in REAL_OF.items()}


def like(x, dtype=None):
    return (x.shape, x.dtype if dtype is None else dtype)


def laid_like(x, dtype=None):
    """Like x, in its strides as well if its elements fill their memory without gaps, else in their order."""
    spec = like(x, dtype)
    return spec if x.is_contiguous() else (*spec, None, laid_strides(x.shape, x.stride()))


def reduced_shape(shape, dim, keepdim):
    if type(dim) is int:
        dim = (dim,)
    if len(dim) == len(shape):
        return (1,) * len(shape) if keepdim else ()
    if keepdim:
        return tuple([1 if i in dim else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in dim])


def reduced(x, dim, keepdim, dtype=None):
    return (reduced_shape(x.shape, dim, keepdim), x.dtype if dtype is None else dtype)


def nonempty(op, x, dim):
    """A reduction without identity needs elements along the reduced dims."""
    if x.numel() == 0:
        for d in ((dim,) if type(dim) is int else dim):
            if x.ndim and x.shape[d] == 0:
                raise OutOfRangeError(f"{op}: dim {d} has size 0, but a value for it is needed")
        if not x.ndim:
            raise ShapeError(f"{op}: input must not be empty")
    return True


def summed_dtype(x, dtype):
    """Sums and products of integers and bools are int64."""
    if dtype is not None:
        return dtype
    return INT64 if x.dtype.kind in "biu" else x.dtype


def stat_dtype(x):
    """Statistics kept beside half-precision data are float32."""
    return FLOAT32 if x.dtype.itemsize == 2 else x.dtype


def broadcast_shapes(op, *shapes):
    if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]) and shapes[0] == shapes[1]:
        return tuple(shapes[0])
    ndim = max([len(s) for s in shapes])
    result = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if type(result[i]) is int and result[i] == 1:
                result[i] = n           # whatever it is: a symbol is asked nothing
            elif n != result[i] and n != 1:
                if result[i] != 1:
                    raise ShapeError(f"{op}: shapes must broadcast, got "
                                     f"{' and '.join([str(list(s)) for s in shapes])}")
                result[i] = n
    return tuple(result)


def matrix(op, name, x, ndim=2):
    if x.ndim != ndim:
        raise ShapeError(f"{op}: {name} must have {ndim} dimensions, got shape {list(x.shape)}")


def mm_spec(op, x, y):
    matrix(op, "input", x)
    matrix(op, "mat2", y)
    if x.shape[1] != y.shape[0]:
        raise ShapeError(f"{op}: inner sizes must agree, got shapes {list(x.shape)} and "
                         f"{list(y.shape)}")
    return ((x.shape[0], y.shape[1]), x.dtype)


def bmm_spec(op, x, y):
    matrix(op, "input", x, 3)
    matrix(op, "mat2", y, 3)
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise ShapeError(f"{op}: batch and inner sizes must agree, got shapes {list(x.shape)} "
                         f"and {list(y.shape)}")
    return ((x.shape[0], x.shape[1], y.shape[2]), x.dtype)


def mv_spec(op, x, v):
    matrix(op, "input", x)
    matrix(op, "vec", v, 1)
    if x.shape[1] != v.shape[0]:
        raise ShapeError(f"{op}: sizes must agree, got shapes {list(x.shape)} and "
                         f"{list(v.shape)}")
    return ((x.shape[0],), x.dtype)


def dot_spec(op, x, y):
    matrix(op, "input", x, 1)
    matrix(op, "tensor", y, 1)
    if x.shape != y.shape:
        raise ShapeError(f"{op}: sizes must agree, got shapes {list(x.shape)} and "
                         f"{list(y.shape)}")
    return ((), x.dtype)


def addmm_spec(op, c, x, y):
    shape, dtype = mm_spec(op, x, y)
    if broadcast_shapes(op, c.shape, shape) != shape:
        raise ShapeError(f"{op}: input of shape {list(c.shape)} does not broadcast to "
                         f"{list(shape)}")
    return (shape, dtype)


def linear_spec(x, weight, bias):
    if weight.ndim not in (1, 2):
        raise ShapeError(f"linear: weight must have 2 dimensions (out_features, in_features), "
                         f"got shape {list(weight.shape)}")
    if x.ndim == 0 or x.shape[-1] != weight.shape[-1]:
        raise ShapeError(f"linear: the last size of input must equal in_features of weight, got "
                         f"shapes {list(x.shape)} and {list(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ShapeError(f"linear: bias must have shape {list(weight.shape[:-1])}, got "
                         f"{list(bias.shape)}")
    return (tuple(x.shape[:-1]) + tuple(weight.shape[:-1]), x.dtype)


def svd_spec(x, full_matrices, compute_uv):
    if x.ndim < 2:
        raise ShapeError(f"linalg_svd: A must have at least 2 dimensions, got shape "
                         f"{list(x.shape)}")
    batch, m, n = tuple(x.shape[:-2]), x.shape[-2], x.shape[-1]
    k = min(m, n)
    values = (batch + (k,), REAL_OF.get(x.dtype, x.dtype))
    if not compute_uv:
        return [((0,), x.dtype), values, ((0,), x.dtype)]
    return [(batch + (m, m if full_matrices else k), x.dtype), values,
            (batch + (n if full_matrices else k, n), x.dtype)]


def complex_pair_spec(real, imag):
    if tuple(real.shape) != tuple(imag.shape):
        raise ShapeError(f"complex: real and imag must have one shape, got {list(real.shape)} and {list(imag.shape)}")
    return laid_like(real, COMPLEX_OF[real.dtype])


def cat_spec(op, tensors, dim):
    rest = [t for t in tensors if not (t.ndim == 1 and t.shape[0] == 0)] or [tensors[0]]
    first = rest[0]
    if first.ndim == 0:
        raise ShapeError(f"{op}: zero-dimensional tensors cannot be concatenated")
    total = 0
    for t in rest:
        if t.ndim != first.ndim or any([a != b for i, (a, b) in enumerate(
                zip(t.shape, first.shape)) if i != dim]):
            raise ShapeError(f"{op}: sizes must match except in dim {dim}, got shapes "
                             f"{list(first.shape)} and {list(t.shape)}")
        total += t.shape[dim]
    return (tuple(first.shape[:dim]) + (total,) + tuple(first.shape[dim + 1:]), first.dtype)


def index_dtype(op, index, name="index"):
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{op}: {name} must be an integer tensor, got {index.dtype.name}")


def gather_spec(op, x, dim, index):
    index_dtype(op, index)
    if not index.numel():
        return (index.shape, x.dtype)
    if (index.ndim or 1) != (x.ndim or 1):
        raise ShapeError(f"{op}: index must have as many dimensions as input, got shapes "
                         f"{list(index.shape)} and {list(x.shape)}")
    for i, n in enumerate(index.shape):
        if i != dim and x.ndim and n > x.shape[i]:
            raise ShapeError(f"{op}: index of shape {list(index.shape)} is larger than input of "
                             f"shape {list(x.shape)} apart from dim {dim}")
    return (index.shape, x.dtype)


def take_spec(op, x, index, *rest):
    if index.dtype is not INT64:
        raise DTypeError(f"{op}: index must be int64, got {index.dtype.name}")
    return (index.shape, x.dtype)


def put_spec(op, x, index, source, accumulate):
    take_spec(op, x, index)
    if source.numel() != index.numel():
        raise OutOfRangeError(f"{op}: source must have as many elements as index, got shapes {list(source.shape)} "
                              f"and {list(index.shape)}")
    return like(x)


def scatter_spec(op, x, dim, index, src):
    gather_spec(op, x, dim, index)
    if index.numel() and ((src.ndim or 1) != (index.ndim or 1) or any([n > m for n, m in zip(index.shape, src.shape)])):
        raise ShapeError(f"{op}: index of shape {list(index.shape)} is larger than src of shape "
                         f"{list(src.shape)}")
    return like(x)


def index_select_spec(op, x, dim, index):
    index_dtype(op, index)
    if index.ndim > 1:
        raise ShapeError(f"{op}: index must be a vector, got shape {list(index.shape)}")
    n = index.numel()
    if x.ndim == 0:
        return ((), x.dtype)
    return (tuple(x.shape[:dim]) + (n,) + tuple(x.shape[dim + 1:]), x.dtype)


def index_add_spec(op, x, dim, index, source, error=ShapeError):
    expected, _ = index_select_spec(op, x, dim, index)
    if x.ndim == 0 and index.numel() != 1:
        raise error(f"{op}: index must have one element for an input without dimensions, got {index.numel()}")
    if tuple(source.shape) != tuple(expected):
        raise error(f"{op}: source must have shape {list(expected)}, got {list(source.shape)}")
    return like(x)


def topk_spec(op, x, k, dim):
    n = x.shape[dim] if x.ndim else 1
    if not 0 <= k <= n:
        raise OutOfRangeError(f"{op}: k must be in [0, {n}], got {k}")
    shape = tuple([k if i == dim else m for i, m in enumerate(x.shape)])
    return [(shape, x.dtype), (shape, INT64)]


def normalized(op, x, normalized_shape, weight, bias):
    n = len(normalized_shape)
    if n == 0 or tuple(x.shape[x.ndim - n:]) != tuple(normalized_shape):
        raise ShapeError(f"{op}: the last sizes of input must be normalized_shape "
                         f"{list(normalized_shape)}, got shape {list(x.shape)}")
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and tuple(t.shape) != tuple(normalized_shape):
            raise ShapeError(f"{op}: {name} must have shape {list(normalized_shape)}, got "
                             f"{list(t.shape)}")
    outer = tuple(x.shape[:x.ndim - n])
    stat = stat_dtype(x)
    return [like(x), (outer + (1,) * n, stat), (outer + (1,) * n, stat)]


def layer_norm_gradients(x, mean):
    """Input's gradient, and weight's and bias's in the normalised shape."""
    n = x.ndim
    while n and mean.shape[n - 1] == 1:
        n -= 1
    inner = tuple(x.shape[n:])
    return [like(x), (inner, x.dtype), (inner, x.dtype)]


def _per_channel(op, x, **tensors):
    """Checks tensors of one number for each channel of (N, C, ...)."""
    if x.ndim < 2:
        raise ShapeError(f"{op}: input must have shape (N, C, ...), got {list(x.shape)}")
    for name, t in tensors.items():
        if t is not None and tuple(t.shape) != (x.shape[1],):
            raise ShapeError(f"{op}: {name} must have shape {[x.shape[1]]} for input of shape "
                             f"{list(x.shape)}, got {list(t.shape)}")


def batch_normalized(x, weight, bias):
    _per_channel("batch_norm", x, weight=weight, bias=bias)
    stat = ((x.shape[1],), stat_dtype(x))
    return [like(x), stat, stat]


def group_normalized(x, weight, bias, num_groups):
    _per_channel("group_norm", x, weight=weight, bias=bias)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise RuntimeError(f"group_norm: num_groups must be positive and divide the number of channels, "
                           f"{x.shape[1]}, got {num_groups}")
    stat = ((x.shape[0], num_groups), stat_dtype(x))
    return [like(x), stat, stat]


def channel_gradients(x):
    channels = ((x.shape[1],), x.dtype)
    return [like(x), channels, channels]


def loss_spec(op, x, target, weight, reduction):
    """(shape of the unreduced loss) of a classification loss with class indices."""
    if x.ndim == 0:
        raise ShapeError(f"{op}: input must have shape (C), (N, C) or (N, C, ...), got []")
    expected = tuple(x.shape[:1][:0]) if x.ndim == 1 else (x.shape[0],) + tuple(x.shape[2:])
    if tuple(target.shape) != expected:
        raise ShapeError(f"{op}: target must have shape {list(expected)} for input of shape "
                         f"{list(x.shape)}, got {list(target.shape)}")
    index_dtype(op, target, "target")
    classes = x.shape[0] if x.ndim == 1 else x.shape[1]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"{op}: weight must have shape [{classes}], got {list(weight.shape)}")
    return expected


def nll_spec(x, target, weight, reduction):
    shape = loss_spec("nll_loss", x, target, weight, reduction)
    return [(shape if reduction == "none" else (), x.dtype), ((), x.dtype)]


def attended(query, key, value, mask, keep):
    """Output and log-sum-exp of attention over (N, H, L, E), (N, G, S, E) and (N, G, S, V)."""
    op = "scaled_dot_product_attention"
    if not query.ndim == key.ndim == value.ndim == 4:
        for name, t in (("query", query), ("key", key), ("value", value)):
            matrix(op, name, t, 4)
    n, heads, length, size = query.shape
    m, held, keys, depth = key.shape
    k, groups, rows, width = value.shape
    if not n == m == k or held != groups or keys != rows or size != depth or (heads % held if held else heads):
        raise ShapeError(f"{op}: shapes of query, key and value must agree, got {list(query.shape)}, {list(key.shape)} "
                         f"and {list(value.shape)}")
    for name, t in (("mask", mask), ("keep", keep)):
        if t is not None and tuple(t.shape) != (n, heads, length, keys):
            raise ShapeError(f"{op}: {name} must have shape {[n, heads, length, keys]}, got {list(t.shape)}")
    return [((n, heads, length, width), query.dtype), ((n, heads, length), stat_dtype(query))]


def attention_gradients(query, key, value, scores):
    shape = (*query.shape[:3], key.shape[2]) if scores else (0,)
    return [like(query), like(key), like(value), (shape, query.dtype)]


def arange_length(start, end, step):
    if step == 0:
        raise RuntimeError("arange: step must not be zero")
    if not all(-_INFINITY < x < _INFINITY for x in (start, end, step)):
        raise RuntimeError(f"arange: start, end and step must be finite, got {start}, {end} and {step}")
    if (end - start) * step < 0:
        raise RuntimeError(f"arange: the range from {start} to {end} does not agree with the "
                           f"sign of step {step}")
    whole = all([hasattr(x, "__index__") for x in (start, end, step)])      # ints, of which some may be symbolic
    n = -((start - end) // step) if whole else -int(-((end - start) / step) // 1)
    return n if n > 0 else 0


# -- recurrent layers -------------------------------------------------------------------------

def _sized(op, name, x, shape):
    if tuple(x.shape) != tuple(shape):
        raise ShapeError(f"{op}: {name} must have shape {list(shape)}, got {list(x.shape)}")


def recurrent_spec(gates, hx, cx, weight, bias, projection, batch_sizes, mode):
    matrix("rnn", "hx", hx)
    matrix("rnn", "weight_hh", weight)
    batch, size = hx.shape
    n = size
    if projection is not None:
        if mode != "lstm":
            raise ShapeError(f"rnn: an LSTM, and nothing else, has weight_hr, got mode {mode!r}")
        matrix("rnn", "weight_hr", projection)
        n = projection.shape[1]
        _sized("rnn", "weight_hr", projection, (size, n))
    width = n * {"lstm": 4, "gru": 3}.get(mode, 1)
    _sized("rnn", "weight_hh", weight, (width, size))
    _sized("rnn", "the product of input and weight_ih", gates, (sum(batch_sizes), width))
    if bias is not None:
        _sized("rnn", "bias_hh", bias, (width,))
    if (cx is not None) != (mode == "lstm"):
        raise ShapeError(f"rnn: an LSTM, and nothing else, has cx, got mode {mode!r}")
    if cx is not None:
        _sized("rnn", "cx", cx, (batch, n))
    last = batch
    for active in batch_sizes:
        if not 0 <= active <= last:
            raise ShapeError(f"rnn: batch_sizes must not rise and be at most {batch}, got {list(batch_sizes)}")
        last = active
    rows = gates.shape[0]
    return [((rows, size), gates.dtype), ((rows, n) if mode == "lstm" else (0,), gates.dtype),
            ((rows, 4 * n) if mode in ("lstm", "gru") else (0,), gates.dtype)]


def recurrent_gradients(g, hx, weight, projection, mode):
    for name, x in (("g", g), ("hx", hx), ("weight_hh", weight)):
        matrix("rnn", name, x)
    rows, size = g.shape
    width = weight.shape[0]
    return [((rows, width), g.dtype), ((rows, width) if mode == "gru" else (0,), g.dtype),
            ((rows, size), g.dtype), (tuple(hx.shape), g.dtype),
            ((hx.shape[0], width // 4) if mode == "lstm" else (0,), g.dtype),
            ((0,) if projection is None else (rows, size), g.dtype)]


# -- equations and factors --------------------------------------------------------------------

def square(op, x):
    """The shape of a stack of square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op}: matrices must be square, got shape {list(x.shape)}")
    return tuple(x.shape)


def solve_spec(op, A, B):
    shape = square(op, A)
    if B.ndim != A.ndim or tuple(B.shape[:-1]) != shape[:-1]:
        raise ShapeError(f"{op}: A and B must have equally many rows and one batch shape, got shapes "
                         f"{list(A.shape)} and {list(B.shape)}")
    return like(B)


def cholesky_spec(A):
    shape = square("linalg_cholesky", A)
    return [(shape, A.dtype), (shape[:-2], INT32)]


def qr_spec(A, mode):
    if A.ndim < 2:
        raise ShapeError(f"linalg_qr: A must have at least 2 dimensions, got shape {list(A.shape)}")
    batch, m, n = tuple(A.shape[:-2]), A.shape[-2], A.shape[-1]
    wide = m if mode == "complete" else min(m, n)
    return [((0,) if mode == "r" else (*batch, m, wide), A.dtype), ((*batch, wide, n), A.dtype)]


def segments_spec(data, offsets, axis):
    if offsets.ndim != axis + 1 or not offsets.shape[axis]:
        raise ShapeError(f"segment_reduce: offsets must have axis {axis} as their last dim, got shape "
                         f"{list(offsets.shape)}")
    return (*data.shape[:axis], offsets.shape[axis] - 1, *data.shape[axis + 1:]), data.dtype


def ctc_spec(log_probs, labels):
    """The losses, and a state for each label, and for each blank around them, after each step."""
    steps, n = log_probs.shape[:2]
    return [((n,), log_probs.dtype), ((n, steps, 2 * labels.shape[1] + 1), stat_dtype(log_probs))]


def eigh_spec(A, vectors):
    shape = square("linalg_eigh", A)
    return [(shape[:-1], REAL_OF.get(A.dtype, A.dtype)), (shape if vectors else (0,), A.dtype)]


def solve_ex_spec(A, B):
    return [solve_spec("linalg_solve_ex", A, B), (tuple(A.shape[:-2]), INT32)]


def inv_spec(A):
    shape = square("linalg_inv", A)
    return [(shape, A.dtype), (shape[:-2], INT32)]


def eig_spec(A, vectors):
    shape = square("linalg_eig", A)
    dtype = COMPLEX_OF.get(A.dtype, A.dtype)
    return [(shape[:-1], dtype), (shape if vectors else (0,), dtype)]


def _matrices(op, A):
    if A.ndim < 2:
        raise ShapeError(f"{op}: input must have at least 2 dimensions, got shape {list(A.shape)}")
    return tuple(A.shape[:-2]), min(A.shape[-2], A.shape[-1])


def lu_spec(A):
    batch, k = _matrices("linalg_lu_factor", A)
    return [like(A), ((*batch, k), INT32), (batch, INT32)]


def ldl_spec(A):
    shape = square("linalg_ldl_factor", A)
    return [like(A), (shape[:-1], INT32), (shape[:-2], INT32)]


def ldl_solve_spec(LD, pivots, B):
    shape = square("linalg_ldl_solve", LD)
    if pivots.dtype is not INT32:
        raise DTypeError(f"linalg_ldl_solve: pivots must be int32, got {pivots.dtype.name}")
    if tuple(pivots.shape) != shape[:-1]:
        raise ShapeError(f"linalg_ldl_solve: pivots must have shape {list(shape[:-1])}, got {list(pivots.shape)}")
    return solve_spec("linalg_ldl_solve", LD, B)


def geqrf_spec(x):
    batch, k = _matrices("geqrf", x)
    return [like(x), ((*batch, k), x.dtype)]


def householder_spec(x, tau):
    op = "linalg_householder_product"
    batch, _ = _matrices(op, x)
    m, n = x.shape[-2:]
    if n > m:
        raise ShapeError(f"{op}: input must not have more columns than rows, got shape {list(x.shape)}")
    if tuple(tau.shape[:-1]) != batch or tau.ndim != x.ndim - 1 or tau.shape[-1] > n:
        raise ShapeError(f"{op}: tau must have the batch shape {list(batch)} and at most {n} elements each, got shape "
                         f"{list(tau.shape)}")
    if tau.dtype is not x.dtype:
        raise DTypeError(f"{op}: input and tau must have one dtype, got {x.dtype.name} and {tau.dtype.name}")
    return like(x)


def slogdet_spec(A):
    shape = square("linalg_slogdet", A)
    return [(shape[:-2], A.dtype), (shape[:-2], REAL_OF.get(A.dtype, A.dtype))]


# -- rules that rows name ---------------------------------------------------------------------

def _reduction(rest):
    """The dims and whether they are kept, among other settings."""
    dim = next((a for a in rest if type(a) is tuple), None)
    return next(a for a in rest if type(a) is int) if dim is None else dim, next(a for a in rest if type(a) is bool)


def _reduced_nonempty(op, x, dim, keepdim):
    nonempty(op, x, dim)
    return reduced(x, dim, keepdim)


def _reduced_pair(op, x, dim, keepdim):
    nonempty(op, x, dim)
    return [reduced(x, dim, keepdim), reduced(x, dim, keepdim, INT64)]


def _kth_pair(op, x, k, dim, keepdim):
    nonempty(op, x, dim)
    n = x.shape[dim] if x.ndim else 1
    if not 1 <= k <= n:
        raise RuntimeError(f"{op}: k must be in [1, {n}], got {k}")
    return _reduced_pair(op, x, dim, keepdim)


def _reduced_index(op, x, dim, keepdim):
    dim = tuple(range(x.ndim)) if dim is None else dim
    nonempty(op, x, dim)
    return reduced(x, dim, keepdim, INT64)


def _filled(op, *args):
    """The sizes that an argument says, in the dtype that another one does."""
    return (next(a for a in args if type(a) is tuple), next((a for a in args if type(a) is type(BOOL)), None))


def _cross_entropy(op, x, target, weight, reduction, *rest):
    shape, stat = loss_spec(op, x, target, weight, reduction), stat_dtype(x)
    return [(shape if reduction == "none" else (), x.dtype), (shape, stat), ((), stat)]


def spectral(op, x, dim):
    """A Fourier transform along dims, as a tuple: the sizes of x as a list, and the last of the dims."""
    if not x.ndim:
        raise OutOfRangeError(f"{op}: input must have at least one dimension, got shape []")
    for d in dim:
        if x.shape[d] < 1:
            raise ShapeError(f"{op}: the number of data points must be positive, got {x.shape[d]}")
    if not dim:
        raise ShapeError(f"{op}: at least one dim must be transformed, got none")
    return list(x.shape), dim[-1]


def fft_r2c_spec(op, x, dim, normalization, onesided, forward):
    sizes, last = spectral(op, x, dim)
    if onesided:
        sizes[last] = sizes[last] // 2 + 1
    return (tuple(sizes), COMPLEX_OF[x.dtype])


def fft_c2r_spec(op, x, dim, normalization, size, forward):
    sizes, last = spectral(op, x, dim)
    if size < 1 or sizes[last] != size // 2 + 1:
        raise ShapeError(f"{op}: a result of size {size} needs {size // 2 + 1} entries along dim {last}, got shape "
                         f"{list(x.shape)}")
    sizes[last] = size
    return (tuple(sizes), REAL_OF[x.dtype])


NAMED = {
    "like": lambda op, x, *rest: like(x),
    "laid": lambda op, x, *rest: laid_like(x),
    "cast": lambda op, x, dtype: like(x, dtype),
    "laid_cast": lambda op, x, dtype: laid_like(x, dtype),
    "summed": lambda op, x, *rest: like(x, summed_dtype(x, rest[-1])),
    "like_pair": lambda op, x, *rest: [like(x), like(x, INT64)],
    "reduced": lambda op, x, *rest: reduced(x, *_reduction(rest)),
    "reduced_sum": lambda op, x, dim, keepdim, dtype: reduced(x, dim, keepdim, summed_dtype(x, dtype)),
    "reduced_nonempty": _reduced_nonempty,
    "reduced_bool": lambda op, x, dim, keepdim: reduced(x, dim, keepdim, BOOL),
    "reduced_pair": lambda op, x, *rest: _reduced_pair(op, x, *rest[-2:]),
    "kth_pair": _kth_pair,
    "reduced_index": _reduced_index,
    "mm": mm_spec,
    "bmm": bmm_spec,
    "linear": lambda op, x, weight, bias: linear_spec(x, weight, bias),
    "cat": cat_spec,
    "gather": gather_spec,
    "scatter": lambda op, x, dim, index, src, *rest: scatter_spec(op, x, dim, index, src),
    "index_select": index_select_spec,
    "filled": _filled,
    "like_second": lambda op, x, y, *rest: like(y),
    "like_mask": lambda op, x, *rest: [like(x), like(x, BOOL)],
    "like_matrix": lambda op, x, *rest: like(x) if x.ndim >= 2 else matrix(op, "input", x),
    "counted": lambda op, x, dim: reduced(x, dim, False, INT64),
    "mv": mv_spec,
    "dot": dot_spec,
    "addmm": lambda op, c, x, y, *rest: addmm_spec(op, c, x, y),
    "index_add": lambda op, x, dim, index, source, alpha: index_add_spec(op, x, dim, index, source),
    "index_copy": lambda op, x, dim, index, source: index_add_spec(op, x, dim, index, source, OutOfRangeError),
    "fft_c2c": lambda op, x, dim, *rest: (tuple(spectral(op, x, dim)[0]), x.dtype),
    "fft_r2c": fft_r2c_spec,
    "fft_c2r": fft_c2r_spec,
    "layer_norm": lambda op, x, weight, bias, n, eps: normalized(op, x, x.shape[x.ndim - n:], weight, bias),
    "layer_norm_backward": lambda op, g, x, mean, *rest: layer_norm_gradients(x, mean),
    "batch_norm": lambda op, x, weight, bias, eps: batch_normalized(x, weight, bias),
    "group_norm": lambda op, x, weight, bias, groups, eps: group_normalized(x, weight, bias, groups),
    "channels_backward": lambda op, g, x, *rest: channel_gradients(x),
    "cross_entropy": _cross_entropy,
    "nll_loss": lambda op, x, target, weight, reduction, *rest: nll_spec(x, target, weight, reduction),
    "taken": take_spec,
    "of_rows": lambda op, x, *rest: (x.shape[:-1], x.dtype),
    "put": put_spec,
    "shaped": lambda op, x, *rest: (rest[-1], x.dtype),
    "like_each": lambda op, *tensors: [like(t) for t in tensors],
    **WINDOWS,  # noqa: F405
}

__all__ = [_n for _n in dir() if not _n.startswith("_")]
