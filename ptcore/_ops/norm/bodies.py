"""Bodies: norms, condition numbers and distances."""
from cython.cimports.ptcore._ops._common import wrap_dim, wrap_dims

from ptcore._dtype import get_default_dtype
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import checked
from ptcore._ops.call.operands import promoted
from ptcore._ops.creation.creation import zeros
from ptcore._ops.functions import (
    _linalg_inv,
    abs,
    amax,
    amin,
    cat,
    clamp_min,
    exp2,
    expand,
    floor,
    log2,
    masked_fill,
    maximum,
    pair_distances,
    reshape,
    root_of_variance,
    row_distances,
    select,
    sum,
    transpose,
    unsqueeze,
    vector_norm,
    where,
)
from ptcore._ops.history import has_values
from ptcore._ops.linalg.bodies import _identity, _matrices, _numbers, linalg_inv, linalg_svdvals
from ptcore._ops.product.bodies import _square, matmul
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._ops.view.bodies import movedim

_INFINITY = float("inf")
# -- norms -------------------------------------------------------------------------------------------
_NORMS = {"fro": 2.0, None: 2.0, "inf": _INFINITY, "-inf": -_INFINITY}


def _measured(op, input, dtype):
    """The data that a norm is computed from: real floating-point, after a cast; of complex numbers the magnitudes."""
    if dtype is not None:
        if dtype.kind not in "fc":
            raise DTypeError(f"{op}: dtype must be floating-point or complex, got {dtype.name}")
        input = input.to(dtype)
    if input.dtype.kind not in "fc":
        raise DTypeError(f"{op}: dtype must be floating-point or complex, got {input.dtype.name}")
    return abs(input) if input.dtype.is_complex else input


def norm(input, p, dim, keepdim, dtype):
    if isinstance(p, str) and p == "nuc":
        return _matrix_norm("norm", input, "nuc", (0, 1) if dim is None else dim, keepdim, dtype)
    if p is None or isinstance(p, str):
        if p not in _NORMS:
            raise RuntimeError(f"norm: p must be a number, 'fro', 'nuc', 'inf' or '-inf', got {p!r}")
        order = _NORMS[p]
    else:
        order = checked.real("norm", "p", p)
    return _vector_norm("norm", input, order, dim, keepdim, dtype)


def _vector_norm(op, input, order, dim, keepdim, dtype):
    input = _measured(op, input, dtype)
    dims = wrap_dims(op, dim, input.ndim)
    empty = input.numel() == 0 if not dims else 0 in [input.shape[d] for d in dims] if input.ndim else False
    if empty and (order < 0 or order == _INFINITY) and order != 0:
        raise RuntimeError(f"{op}: the norm of order {order} needs elements, got shape {list(input.shape)}")
    return vector_norm(input, order, dims, keepdim)


def linalg_vector_norm(x, ord, dim, keepdim, dtype):
    return _vector_norm("linalg_vector_norm", x, ord, dim, keepdim, dtype)


def _two(op, dim, ndim):
    dims = checked.integers(op, "dim", dim)
    if len(dims) != 2:
        raise RuntimeError(f"{op}: dim must be two dims, got {dim!r}")
    a, b = [wrap_dim(op, d, ndim) for d in dims]
    if a == b:
        raise RuntimeError(f"{op}: the two dims must differ, got {dim!r}")
    return a, b


def _extreme(order, size):
    """The reduction to the largest or smallest of ``size`` values; the largest of no values is 0."""
    return amin if order < 0 else amax if size else sum


def _matrix_norm(op, A, order, dim, keepdim, dtype):
    if A.ndim < 2:
        raise ShapeError(f"{op}: A must have at least 2 dimensions, got shape {list(A.shape)}")
    a, b = _two(op, dim, A.ndim)
    if isinstance(order, str):
        if order not in ("fro", "nuc"):
            raise RuntimeError(f"{op}: ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {order!r}")
    else:
        order = checked.real(op, "ord", order)
        if order not in (1, -1, 2, -2, _INFINITY, -_INFINITY):
            raise RuntimeError(f"{op}: ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {order}")
    if order == "fro":
        return _vector_norm(op, A, 2.0, (a, b), keepdim, dtype)
    if order == "nuc" or order in (2, -2):
        if dtype is not None:
            A = A.to(dtype)
        _measured(op, A, None)
        s = linalg_svdvals(movedim(A, (a, b), (-2, -1)), None)
        result = sum(s, -1) if order == "nuc" else _extreme(order, s.shape[-1])(s, -1)
        if not keepdim:
            return result
        return reshape(result, [1 if d in (a, b) else n for d, n in enumerate(A.shape)])
    x = abs(_measured(op, A, dtype))
    along, over = (a, b) if order in (1, -1) else (b, a)
    extreme = _extreme(order, A.shape[over])
    if keepdim:
        return extreme(sum(x, along, True), over, True)
    return extreme(sum(x, along), over - (1 if over > along else 0))


def linalg_matrix_norm(A, ord, dim, keepdim, dtype):
    return _matrix_norm("linalg_matrix_norm", A, ord, dim, keepdim, dtype)


def linalg_norm(A, ord, dim, keepdim, dtype):
    op = "linalg_norm"
    several = dim is not None and len(checked.integers(op, "dim", dim)) == 2
    if ord is None:
        return _vector_norm(op, A, 2.0, dim, keepdim, dtype)
    if several or (dim is None and A.ndim == 2):
        return _matrix_norm(op, A, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    if dim is None and A.ndim != 1:
        raise ShapeError(f"{op}: input must be a vector or a matrix when dim is None and ord is given, got shape "
                         f"{list(A.shape)}")
    if isinstance(ord, str):
        raise RuntimeError(f"{op}: the order {ord!r} is one of matrices, which two dims must name, got dim={dim!r}")
    return _vector_norm(op, A, checked.real(op, "ord", ord), dim, keepdim, dtype)


def dist(input, other, p):
    return _vector_norm("dist", input - other, p, None, False, None)


# -- distances ---------------------------------------------------------------------------------------
def pairwise_distance(x1, x2, p, eps, keepdim):
    broadcast_shapes("pairwise_distance", x1.shape, x2.shape)
    gap = x1 - x2 + eps
    return _vector_norm("pairwise_distance", gap, p, -1, keepdim, None)


def cosine_similarity(x1, x2, dim, eps):
    op = "cosine_similarity"
    shape = broadcast_shapes(op, x1.shape, x2.shape)
    for x in (x1, x2):
        if x.dtype.is_complex or x.dtype.kind == "b":
            raise DTypeError(f"{op}: both arguments must be real, got {x.dtype.name}")
    if not eps >= 0:
        raise RuntimeError(f"{op}: eps must not be negative, got {eps}")
    dim = wrap_dim(op, dim, len(shape))
    dtype = promoted((x1, x2))
    dtype = dtype if dtype.kind == "f" else get_default_dtype()
    a, b = [expand(x.to(dtype), shape) for x in (x1, x2)]
    a, b = [x / _held(vector_norm(x, 2.0, dim, True), eps) for x in (a, b)]
    return sum(a * b, dim)


def _held(norm, eps):
    """A norm raised to at least eps. Its gradient is that of the norm even then, as in PyTorch."""
    return norm + clamp_min(eps - norm.detach(), 0)


def normalize(input, p, dim, eps):
    length = _vector_norm("normalize", input, p, dim, True, None)
    return input / clamp_min(length, eps)


def cdist(x1, x2, p, compute_mode):
    op = "cdist"
    for x in (x1, x2):
        if x.ndim < 2:
            raise ShapeError(f"{op}: both arguments must be batches of rows, got shapes {list(x1.shape)} and "
                             f"{list(x2.shape)}")
        if x.dtype.kind != "f":
            raise DTypeError(f"{op}: both arguments must be real floating-point, got {x.dtype.name}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"{op}: rows must have one length, got shapes {list(x1.shape)} and {list(x2.shape)}")
    if p < 0:
        raise RuntimeError(f"{op}: p must not be negative, got {p}")
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    checked.word(op, "compute_mode", compute_mode, modes)
    m, n = x1.shape[-2], x2.shape[-2]
    batch = broadcast_shapes(op, x1.shape[:-2], x2.shape[:-2])
    if p == 2 and (compute_mode == modes[1] or (compute_mode == modes[0] and (m > 25 or n > 25))) and (
            _squares_fit(x1) and _squares_fit(x2)):
        return _euclidean(x1, x2) if x1.is_cpu or x1.is_meta else _scaled_euclidean(x1, x2)
    if x1.ndim != 2 or x2.ndim != 2:
        x1, x2 = expand(x1, (*batch, *x1.shape[-2:])), expand(x2, (*batch, *x2.shape[-2:]))
    return pair_distances(x1, x2, p)


def _squares_fit(x):
    """Whether the squares of the largest numbers are within x's dtype. Not asked where that would wait for a device."""
    if not x.numel() or not x.is_cpu or not has_values(x):
        return True
    low, high = (1e-15, 1e15) if x.dtype.name != "float64" else (1e-140, 1e140)
    largest = vector_norm(x.detach(), _INFINITY, (), False).item()
    return not (0 < largest < low or high < largest < _INFINITY)


def _euclidean(x1, x2):
    """Distances by ``|a|^2 - 2 a b + |b|^2``, as one product of rows (-2 a, |a|^2, 1) and (b, 1, |b|^2)."""
    a2, b2 = sum(x1 * x1, -1, True), sum(x2 * x2, -1, True)
    left = cat([x1 * -2, a2, a2 * 0 + 1], -1)
    right = cat([x2, b2 * 0 + 1, b2], -1)
    return root_of_variance(matmul(left, transpose(right, -2, -1)))


def _scaled_euclidean(x1, x2):
    """``_euclidean`` of rows over a power of two near the largest number, whose squares are within the dtype.

    (A device is not waited for, to ask about them.)
    """
    if not x1.numel() or not x2.numel():
        return _euclidean(x1, x2)
    largest = maximum(vector_norm(x1.detach(), _INFINITY, (), False), vector_norm(x2.detach(), _INFINITY, (), False))
    scale = where((largest > 0) & (largest < _INFINITY), exp2(floor(log2(largest))), 1)
    return _euclidean(x1 / scale, x2 / scale) * scale


def pdist(input, p):
    if input.ndim != 2:
        raise ShapeError(f"pdist: input must be a matrix, got shape {list(input.shape)}")
    if input.dtype.kind != "f":
        raise DTypeError(f"pdist: input must be real floating-point, got {input.dtype.name}")
    if p < 0:
        raise RuntimeError(f"pdist: p must not be negative, got {p}")
    return row_distances(input, p)


def linalg_cond(A, p):
    op = "linalg_cond"
    _matrices(op, "A", A)
    _numbers(op, A)
    if p is not None and not isinstance(p, str):
        p = checked.real(op, "p", p)
    if p is None or p in (2, -2):
        s = linalg_svdvals(A, None)
        if s.shape[-1] == 0:
            return zeros(s.shape[:-1], dtype=s.dtype, device=s.device)
        largest, smallest = select(s, -1, 0), select(s, -1, s.shape[-1] - 1)
        return smallest / largest if p == -2 else largest / smallest
    if p not in ("fro", "nuc", 1, -1, _INFINITY, -_INFINITY):
        raise RuntimeError(f"{op}: p must be None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {p!r}")
    _square(op, A)
    if A.numel() == 0:
        return zeros(A.shape[:-2], dtype=abs(A).dtype, device=A.device)
    # The factors tell whether A is singular. Its determinant would not: that of a regular matrix can underflow to 0.
    singular = _linalg_inv(A.detach(), False)[1] != 0
    safe = where(unsqueeze(unsqueeze(singular, -1), -1), _identity(A), A)
    size = _matrix_norm(op, A, p, (-2, -1), False, None)
    return masked_fill(size * _matrix_norm(op, linalg_inv(safe), p, (-2, -1), False, None), singular, _INFINITY)


def norm_except_dim(v, pow, dim):
    if dim == -1:
        return v.norm(pow)
    if not 0 <= dim < v.ndim:
        raise IndexError(f"norm_except_dim: dim must be -1 or in [0, {v.ndim - 1}], got {dim}")
    others = [d for d in range(v.ndim) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.abs()
