"""Bodies: products of matrices and vectors."""
import cython
from cython.cimports.cpython.mem import PyMem_Calloc, PyMem_Free
from cython.cimports.ptcore._ops._common import wrap_dim
from cython.cimports.ptcore._tensor import same_shape

from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import checked, results
from ptcore._ops.call.operands import promoted
from ptcore._ops.creation.creation import eye, ones_like, zeros
from ptcore._ops.functions import (
    bmm,
    clone,
    cross_of,
    diagonal,
    dot,
    expand,
    masked_fill,
    mm,
    mul,
    mv,
    permute,
    reshape,
    sum,
    transpose,
    unsqueeze,
    where,
)
from ptcore._ops.history import has_values
from ptcore._ops.product.einsum import einsum  # noqa: F401
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._tensor import Tensor

BOOL = as_dtype("bool")


def _matmul_error(x, y):
    return ShapeError(f"matmul: inner sizes must agree and batches broadcast, got shapes "
                      f"{list(x.shape)} and {list(y.shape)}")


def matmul(x, y, out=None):
    if x.ndim == 2 and y.ndim == 2:
        return mm(x, y) if out is None else mm(x, y, out=results.fitting(out, (x.shape[0], y.shape[1])))
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"matmul: both arguments need at least one dimension, got shapes "
                         f"{list(x.shape)} and {list(y.shape)}")
    if x.ndim == 1 and y.ndim == 1:
        return dot(x, y) if out is None else dot(x, y, out=results.fitting(out, ()))
    if x.ndim == 2 and y.ndim == 1:
        return mv(x, y) if out is None else mv(x, y, out=results.fitting(out, x.shape[:1]))
    if x.ndim == 1:
        if y.ndim == 2:
            return mv(transpose(y, 0, 1), x)
        return reshape(matmul(unsqueeze(x, 0), y), y.shape[:-2] + y.shape[-1:])
    if y.ndim == 1:
        return reshape(mv(reshape(x, (-1, x.shape[-1])), y), x.shape[:-1]) if x.numel() else \
            matmul(x, unsqueeze(y, 1)).squeeze(-1)
    if x.shape[-1] != y.shape[-2]:
        raise _matmul_error(x, y)
    if y.ndim == 2 and x.numel():       # one matrix for all batches: one large product
        return reshape(mm(reshape(x, (-1, x.shape[-1])), y), x.shape[:-1] + y.shape[-1:])
    batch = _broadcast("matmul", x.shape[:-2], y.shape[:-2])
    n = 1
    for size in batch:
        n *= size
    x3 = reshape(expand(x, (*batch, *x.shape[-2:])), (n, *x.shape[-2:]))
    y3 = reshape(expand(y, (*batch, *y.shape[-2:])), (n, *y.shape[-2:]))
    return reshape(bmm(x3, y3), (*batch, x.shape[-2], y.shape[-1]))


def _broadcast(op, a, b):
    result = []
    for i in range(-builtin_max(len(a), len(b)), 0):
        m = a[i] if -i <= len(a) else 1
        n = b[i] if -i <= len(b) else 1
        if m != n and m != 1 and n != 1:
            raise ShapeError(f"{op}: batch shapes must broadcast, got {list(a)} and {list(b)}")
        result.append(n if m == 1 else m)
    return tuple(result)


def builtin_max(a, b):
    return a if a > b else b


def _conj(x):
    return x.conj() if x.dtype.is_complex else x


def _vectors(op, a, b):
    for x in (a, b):
        if x.ndim != 1:
            raise ShapeError(f"{op}: both arguments must be vectors, got shapes {list(a.shape)} and {list(b.shape)}")


# -- sums with products ---------------------------------------------------------------------------
def outer(input, vec2, out=None):
    _vectors("outer", input, vec2)
    if out is not None:
        out = results.fitting(out, (input.shape[0], vec2.shape[0]))
    return mul(unsqueeze(input, 1), unsqueeze(vec2, 0), out=out)


def _real_factor(op, name, dtype, value):
    """A factor beside tensors of a real dtype; beside integers its fraction is cut off, as in PyTorch."""
    if type(value) is complex or (type(value) is float and not dtype.is_floating_point):
        checked.holds(op, name, dtype, value)
        return value.real if dtype.is_floating_point else int(value.real)
    return value


def _added(op, input, product, beta, alpha):
    """``beta * input + alpha * product``; a factor of 0 does not read what it stands at."""
    if input.dtype is not product.dtype:
        raise DTypeError(f"{op}: all tensors must have one dtype, got {input.dtype.name} and {product.dtype.name}")
    if not product.dtype.is_complex:
        beta, alpha = _real_factor(op, "beta", product.dtype, beta), _real_factor(op, "alpha", product.dtype, alpha)
    if not same_shape(input, product) and broadcast_shapes(op, input.shape, product.shape) != tuple(product.shape):
        raise ShapeError(f"{op}: input of shape {list(input.shape)} does not broadcast to {list(product.shape)}")
    if alpha == 0 and op != "addr":
        product = masked_fill(product, ones_like(product, dtype=BOOL), 0)
    elif alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (input if beta == 1 else input * beta)


def addmv(input, mat, vec, beta, alpha):
    return _added("addmv", input, mv(mat, vec), beta, alpha)


def addr(input, vec1, vec2, beta, alpha):
    _vectors("addr", vec1, vec2)
    dtype = promoted((input, vec1, vec2))
    for name, value in (("beta", beta), ("alpha", alpha)):
        if isinstance(value, (float, complex)) and dtype.kind not in "fc":
            raise RuntimeError(f"addr: For integral input tensors, argument {name} must not be a floating point "
                               f"number, got {value}")
        if isinstance(value, complex) and dtype.kind != "c":
            raise RuntimeError(f"addr: For non-complex input tensors, argument {name} must not be a complex number, "
                               f"got {value}")
        if isinstance(value, bool) and dtype.kind != "b":
            raise RuntimeError(f"addr: Boolean {name} only supported for Boolean results, got {value} for {dtype.name}")
    if input.dtype.kind == vec1.dtype.kind == vec2.dtype.kind == "b":      # the product is an "or" of "and"s
        shape = (vec1.shape[0], vec2.shape[0])
        broadcast_shapes("addr", input.shape, shape)
        return (input & bool(beta)) | (outer(vec1, vec2) & bool(alpha))
    input, vec1, vec2 = input.to(dtype), vec1.to(dtype), vec2.to(dtype)
    return _added("addr", input, outer(vec1, vec2), beta, alpha)


def baddbmm(input, batch1, batch2, beta, alpha):
    return _added("baddbmm", input, bmm(batch1, batch2), beta, alpha)


def addbmm(input, batch1, batch2, beta, alpha):
    """The sum over the batch is part of one long product."""
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0] or batch1.shape[2] != batch2.shape[1]:
        raise ShapeError(f"addbmm: batch1 and batch2 must be batches of matrices that multiply, got shapes "
                         f"{list(batch1.shape)} and {list(batch2.shape)}")
    b, n, k = batch1.shape
    product = mm(reshape(transpose(batch1, 0, 1), (n, b * k)), reshape(batch2, (b * k, batch2.shape[2])))
    return _added("addbmm", input, product, beta, alpha)


# -- products --------------------------------------------------------------------------------------
def vdot(input, other):
    _vectors("vdot", input, other)
    return dot(_conj(input), other)


def inner(input, other, out=None):
    if not input.ndim or not other.ndim:
        return input * other if out is None else mul(input, other, out=out)
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(f"inner: the last sizes must agree, got shapes {list(input.shape)} and {list(other.shape)}")
    size = (*input.shape[:-1], *other.shape[:-1])
    # An out= that does not fit is handled by the function, which has the body's name.
    out = results.fitting(out, size) if out is not None and out.dtype is input.dtype else None
    if input.ndim == 1 and other.ndim == 1:
        return dot(input, other) if out is None else dot(input, other, out=out)
    if input.ndim == 2 and other.ndim == 2:
        other = transpose(other, 0, 1)
        return mm(input, other) if out is None else mm(input, other, out=out)
    return tensordot(input, other, ([-1], [-1]))


def tensordot(a, b, dims):
    op = "tensordot"
    if isinstance(dims, Tensor):
        if not has_values(dims):
            raise TypeError(f"{op}: dims must be a number or two lists of dims, got a tensor on {dims.device}")
        dims = dims.tolist()
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise RuntimeError(f"{op}: dims must be a number or two lists of dims, got {dims!r}")
        left, right = [checked.integers(op, "dims", d) for d in dims]
    else:
        n = checked.integer(op, "dims", dims)
        if n < 0 or n > min_of(a.ndim, b.ndim):
            raise RuntimeError(f"{op}: dims must be in [0, {min_of(a.ndim, b.ndim)}], got {n}")
        left, right = list(range(a.ndim - n, a.ndim)), list(range(n))
    left = [wrap_dim(op, d, a.ndim, "dims") for d in left]
    right = [wrap_dim(op, d, b.ndim, "dims") for d in right]
    if len(left) != len(right) or len(set(left)) < len(left) or len(set(right)) < len(right):
        raise RuntimeError(f"{op}: both lists of dims must have one length and no dim twice, got {left} and {right}")
    n = 1
    for p, q in zip(left, right):
        if not a.ndim or not b.ndim or (a.shape[p] != b.shape[q] and 1 not in (a.shape[p], b.shape[q])):
            raise ShapeError(f"{op}: dims {left} of shape {list(a.shape)} and {right} of {list(b.shape)} must agree")
        if a.shape[p] != b.shape[q]:            # one element is broadcast to the size of the other dim
            a, b = (a, sum(b, q, True, dtype=b.dtype)) if a.shape[p] == 1 else (sum(a, p, True, dtype=a.dtype), b)
        n *= a.shape[p]
    rest_a = [d for d in range(a.ndim) if d not in left]
    rest_b = [d for d in range(b.ndim) if d not in right]
    shape_a, shape_b = [a.shape[d] for d in rest_a], [b.shape[d] for d in rest_b]
    x = reshape(permute(a, rest_a + left), (product_of(shape_a), n))
    y = reshape(permute(b, right + rest_b), (n, product_of(shape_b)))
    return reshape(mm(x, y), shape_a + shape_b)


def min_of(a, b):
    return a if a < b else b


def product_of(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def kron(input, other):
    ndim = input.ndim if input.ndim > other.ndim else other.ndim
    a = [1] * (ndim - input.ndim) + list(input.shape)
    b = [1] * (ndim - other.ndim) + list(other.shape)
    spread_a, spread_b, sizes = [], [], []
    for m, n in zip(a, b):
        spread_a.append(m)
        spread_a.append(1)
        spread_b.append(1)
        spread_b.append(n)
        sizes.append(m * n)
    x, y = reshape(input, spread_a), reshape(other, spread_b)
    if ndim > 1 and 1 < b[-1] < 64 and 1 < a[-1] and product_of(sizes[:-1]) >= 8 * (
            product_of(a[:-1]) + product_of(b[:-1])):
        # Rows of both operands as long as those of the result cost less than many short rows.
        pair = (a[-1], b[-1])
        x = reshape(expand(x, (*spread_a[:-2], *pair)), (*spread_a[:-2], sizes[-1]))
        y = reshape(expand(y, (*spread_b[:-2], *pair)), (*spread_b[:-2], sizes[-1]))
    return reshape(mul(x, y), sizes)


def linalg_multi_dot(tensors):
    """Multiplies in the order with the fewest multiplications, by dynamic programming."""
    op = "linalg_multi_dot"
    tensors = list(checked.tensors(op, "tensors", tensors))
    if len(tensors) < 2:
        raise ShapeError(f"{op}: expected at least 2 tensors, got {len(tensors)}")
    shapes = [t.shape for t in tensors]
    row, column = len(shapes[0]) == 1, len(shapes[-1]) == 1
    if row:
        tensors[0] = unsqueeze(tensors[0], 0)
        shapes[0] = (1, *shapes[0])
    if column:
        tensors[-1] = unsqueeze(tensors[-1], 1)
        shapes[-1] = (*shapes[-1], 1)
    for shape in shapes:
        if len(shape) != 2:
            raise ShapeError(f"{op}: tensors must be matrices, the first and last possibly vectors, got shape "
                             f"{list(shape)}")
    sizes, last = [shapes[0][0]], None
    for shape in shapes:
        if last is not None and last[1] != shape[0]:
            raise ShapeError(f"{op}: inner sizes must agree, got shapes {list(last)} and {list(shape)}")
        sizes.append(shape[1])
        last = shape
    result = _in_order(tensors, sizes)
    if row:
        result = result.squeeze(0)
    return result.squeeze(-1) if column else result


def _in_order(tensors, p):
    n = len(tensors)
    if n == 2:
        return mm(tensors[0], tensors[1])
    if n == 3:
        a, b, c, d = p
        if a * c * (b + d) <= b * d * (a + c):
            return mm(mm(tensors[0], tensors[1]), tensors[2])
        return mm(tensors[0], mm(tensors[1], tensors[2]))
    cut = [[0] * n for _ in range(n)]
    _fewest(n, p, cut)
    return _multiplied(tensors, cut, 0, n - 1)


@cython.cfunc
def _fewest(n: cython.Py_ssize_t, p: list, cut: list):
    """The best place to split the product of tensors i to j, for all i and j: n**3 / 6 steps in C."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    at: cython.Py_ssize_t
    length: cython.Py_ssize_t
    c: cython.double
    best: cython.double
    cost: cython.p_double = cython.cast(cython.p_double, PyMem_Calloc(n * n + n + 1, cython.sizeof(cython.double)))
    size: cython.p_double = cost + n * n
    if cost == cython.NULL:
        raise MemoryError
    for i in range(n + 1):
        size[i] = p[i]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            at = i
            best = cost[(i + 1) * n + j] + size[i] * size[i + 1] * size[j + 1]
            for k in range(i + 1, j):
                c = cost[i * n + k] + cost[(k + 1) * n + j] + size[i] * size[k + 1] * size[j + 1]
                if c < best:
                    best, at = c, k
            cost[i * n + j] = best
            cut[i][j] = at
    PyMem_Free(cost)


def _multiplied(tensors, cut, i, j):
    if i == j:
        return tensors[i]
    k = cut[i][j]
    return mm(_multiplied(tensors, cut, i, k), _multiplied(tensors, cut, k + 1, j))


def chain_matmul(matrices):
    if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = matrices[0]
    matrices = checked.tensors("chain_matmul", "matrices", matrices)
    for m in matrices:
        if m.ndim != 2:
            raise ShapeError(f"chain_matmul: matrices must have 2 dimensions, got shape {list(m.shape)}")
    return clone(matrices[0]) if len(matrices) == 1 else linalg_multi_dot(matrices)


def _square(op, x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{op}: matrices must be square, got shape {list(x.shape)}")


def matrix_power(input, n):
    _square("matrix_power", input)
    if n < 0:
        input, n = input.inverse(), -n
    if n == 0:
        one = eye(input.shape[-1], dtype=input.dtype, device=input.device)
        return where(zeros(input.shape, dtype=BOOL, device=input.device), input, one)       # with a gradient of 0
    if n == 3:                              # PyTorch's order of the factors
        return matmul(matmul(input, input), input)
    result = None
    while True:
        if n & 1:
            result = input if result is None else matmul(result, input)
        n >>= 1
        if not n:
            return clone(result) if result is input else result
        input = matmul(input, input)


def linalg_vecdot(x, y, dim):
    op = "linalg_vecdot"
    shape = x.shape if same_shape(x, y) else broadcast_shapes(op, x.shape, y.shape)
    for v in (x, y):
        if v.dtype.kind not in "fc":
            raise DTypeError(f"{op}: both arguments must be floating-point or complex, got {v.dtype.name}")
    if x.dtype is not y.dtype:
        raise DTypeError(f"{op}: both arguments must have one dtype, got {x.dtype.name} and {y.dtype.name}")
    dim = wrap_dim(op, dim, len(shape))
    if not shape:
        return _conj(x) * y
    if len(shape) == 1 and x.shape == y.shape:
        return dot(_conj(x), y)
    return sum(_conj(x) * y, dim)


def _crossed(op, input, other, dim):
    shape = input.shape if same_shape(input, other) else broadcast_shapes(op, input.shape, other.shape)
    if not shape:
        raise ShapeError(f"{op}: both arguments need at least one dimension, got shape []")
    dim = wrap_dim(op, dim, len(shape))
    if shape[dim] != 3:
        raise ShapeError(f"{op}: dim {dim} must have size 3, got shapes {list(input.shape)} and {list(other.shape)}")
    if same_shape(input, other):
        return cross_of(input, other, dim)
    a = input if input.shape == shape else expand(input, shape)
    return cross_of(a, other if other.shape == shape else expand(other, shape), dim)


def cross(input, other, dim):
    if dim is None:
        shape = input.shape if same_shape(input, other) else broadcast_shapes("cross", input.shape, other.shape)
        if 3 not in shape:
            raise ShapeError(f"cross: no dim has size 3, got shapes {list(input.shape)} and {list(other.shape)}")
        dim = shape.index(3)
    return _crossed("cross", input, other, dim)


def linalg_cross(input, other, dim):
    if input.ndim != other.ndim:
        raise ShapeError(f"linalg_cross: both arguments must have equally many dimensions, got shapes "
                         f"{list(input.shape)} and {list(other.shape)}")
    if input.ndim and (input.shape[wrap_dim("linalg_cross", dim, input.ndim)] != 3 or other.shape[dim] != 3):
        raise ShapeError(f"linalg_cross: dim {dim} of both must have size 3, got shapes {list(input.shape)} and "
                         f"{list(other.shape)}")
    return _crossed("linalg_cross", input, other, dim)


def linalg_diagonal(A, offset, dim1, dim2):
    return diagonal(A, offset, wrap_dim("linalg_diagonal", dim1, A.ndim, "dim1"),
                    wrap_dim("linalg_diagonal", dim2, A.ndim, "dim2"))


def bilinear(input1, input2, weight, bias):
    op = "bilinear"
    if weight.ndim != 3:
        raise ShapeError(f"{op}: weight must have 3 dimensions (out, in1, in2), got shape {list(weight.shape)}")
    k, n, m = weight.shape
    if input1.ndim != input2.ndim or input1.shape[:-1] != input2.shape[:-1] or not input1.ndim:
        raise ShapeError(f"{op}: input1 and input2 must have the same sizes but the last, got shapes "
                         f"{list(input1.shape)} and {list(input2.shape)}")
    if (input1.shape[-1], input2.shape[-1]) != (n, m):
        raise ShapeError(f"{op}: the last sizes of input1 and input2 must be {n} and {m} for weight of shape "
                         f"{list(weight.shape)}, got {input1.shape[-1]} and {input2.shape[-1]}")
    if bias is not None and not isinstance(bias, Tensor):
        checked.tensor(op, "bias", bias)
    if bias is not None and tuple(bias.shape) != (k,):
        raise ShapeError(f"{op}: bias must have shape {[k]}, got {list(bias.shape)}")
    for name, t in (("input2", input2), ("weight", weight), ("bias", bias)):
        if t is not None and t.dtype is not input1.dtype:
            raise DTypeError(f"{op}: {name} must have input1's dtype {input1.dtype.name}, got {t.dtype.name}")
    lead = tuple(input1.shape[:-1])
    rows = 1
    for size in lead:
        rows *= size
    left = matmul(reshape(input1, (rows, n)), reshape(permute(weight, (1, 0, 2)), (n, k * m)))
    out = matmul(reshape(left, (rows, k, m)), reshape(input2, (rows, m, 1)))
    out = reshape(out, (*lead, k))
    return out if bias is None else out + bias
