"""Equations and factors of matrices."""
from ptcore._errors import DTypeError, ShapeError
from ptcore._sizes.language import (
    COMPLEX_OF,
    INT32,
    INT64,
    REAL_OF,
    Bool,
    Call,
    Int,
    Out,
    Text,
    View,
    Words,
    dtype_name,
    least,
    like,
    output,
)
from ptcore._sizes.rules.products import nothing

# -- parts of rules ---------------------------------------------------------------------------------------------------

def check_square(call: Call, x: View):
    """A stack of square matrices."""
    if x.ndim < 2 or x.sizes[x.ndim - 1] != x.sizes[x.ndim - 2]:
        raise ShapeError(f"{call.name}: matrices must be square, got shape {x.shape}")


def check_matrices(call: Call, x: View, name: Text):
    if x.ndim < 2:
        raise ShapeError(f"{call.name}: {name} must have at least 2 dimensions, got shape {x.shape}")


def stack(call: Call, k: Int, x: View, ndim: Int, dtype: Int) -> Out:
    """Output k has the batch dims of a stack of matrices, and dims behind them that are to be filled."""
    out = output(call, k, x.ndim - 2 + ndim, dtype)
    for j in range(x.ndim - 2):
        out.sizes[j] = x.sizes[j]
    return out


def stack_of_vectors(call: Call, k: Int, x: View, n: Int, dtype: Int):
    out = stack(call, k, x, 1, dtype)
    out.sizes[x.ndim - 2] = n


def stack_of_matrices(call: Call, k: Int, x: View, rows: Int, columns: Int, dtype: Int):
    out = stack(call, k, x, 2, dtype)
    out.sizes[x.ndim - 2] = rows
    out.sizes[x.ndim - 1] = columns


def check_right_side(call: Call, A: View, B: View):
    if B.ndim != A.ndim:
        raise ShapeError(right_side_error(call, A, B))
    for j in range(A.ndim - 1):
        if B.sizes[j] != A.sizes[j]:
            raise ShapeError(right_side_error(call, A, B))


def right_side_error(call, A, B):
    return (f"{call.name}: A and B must have equally many rows and one batch shape, got shapes {A.shape} and "
            f"{B.shape}")


# -- rules ------------------------------------------------------------------------------------------------------------

def solve(call: Call, A: View, B: View):
    check_square(call, A)
    check_right_side(call, A, B)
    like(call, 0, B, B.dtype)


def solve_ex(call: Call, A: View, B: View):
    check_square(call, A)
    check_right_side(call, A, B)
    like(call, 0, B, B.dtype)
    stack(call, 1, A, 0, INT32)


def ldl_solve(call: Call, LD: View, pivots: View, B: View):
    check_square(call, LD)
    if pivots.dtype != INT32:
        raise DTypeError(f"{call.name}: pivots must be int32, got {dtype_name(pivots.dtype)}")
    if pivots.ndim != LD.ndim - 1:
        raise ShapeError(f"{call.name}: pivots must have shape {LD.shape[:-1]}, got {pivots.shape}")
    for j in range(pivots.ndim):
        if pivots.sizes[j] != LD.sizes[j]:
            raise ShapeError(f"{call.name}: pivots must have shape {LD.shape[:-1]}, got {pivots.shape}")
    check_right_side(call, LD, B)
    like(call, 0, B, B.dtype)


def square(call: Call, A: View):
    check_square(call, A)
    like(call, 0, A, A.dtype)


def square_with_infos(call: Call, A: View):
    """A factor or an inverse, and how LAPACK fared for each matrix."""
    check_square(call, A)
    like(call, 0, A, A.dtype)
    stack(call, 1, A, 0, INT32)


def det(call: Call, A: View):
    check_square(call, A)
    stack(call, 0, A, 0, A.dtype)


def slogdet(call: Call, A: View):
    check_square(call, A)
    stack(call, 0, A, 0, A.dtype)
    stack(call, 1, A, 0, REAL_OF[A.dtype])


def eigh(call: Call, A: View, vectors: Bool):
    check_square(call, A)
    stack_of_vectors(call, 0, A, A.sizes[A.ndim - 2], REAL_OF[A.dtype])
    if vectors:
        like(call, 1, A, A.dtype)
    else:
        nothing(call, 1, A.dtype)


def eig(call: Call, A: View, vectors: Bool):
    check_square(call, A)
    stack_of_vectors(call, 0, A, A.sizes[A.ndim - 2], COMPLEX_OF[A.dtype])
    if vectors:
        like(call, 1, A, COMPLEX_OF[A.dtype])
    else:
        nothing(call, 1, COMPLEX_OF[A.dtype])


def svd(call: Call, A: View, full_matrices: Bool, compute_uv: Bool):
    check_matrices(call, A, "A")
    m = A.sizes[A.ndim - 2]
    n = A.sizes[A.ndim - 1]
    k = least(m, n)
    if compute_uv:
        stack_of_matrices(call, 0, A, m, m if full_matrices else k, A.dtype)
        stack_of_matrices(call, 2, A, n if full_matrices else k, n, A.dtype)
    else:
        nothing(call, 0, A.dtype)
        nothing(call, 2, A.dtype)
    stack_of_vectors(call, 1, A, k, REAL_OF[A.dtype])


def qr(call: Call, A: View, mode: Words("reduced|complete|r")):
    check_matrices(call, A, "A")
    m = A.sizes[A.ndim - 2]
    n = A.sizes[A.ndim - 1]
    k = m if mode == "complete" else least(m, n)
    if mode == "r":
        nothing(call, 0, A.dtype)
    else:
        stack_of_matrices(call, 0, A, m, k, A.dtype)
    stack_of_matrices(call, 1, A, k, n, A.dtype)


def pinv(call: Call, P: View, A: View):
    """The sizes of a pseudo-inverse, in the dtype of what it is one of."""
    like(call, 0, P, A.dtype)


def lu_factor(call: Call, A: View):
    check_matrices(call, A, "input")
    like(call, 0, A, A.dtype)
    stack_of_vectors(call, 1, A, least(A.sizes[A.ndim - 2], A.sizes[A.ndim - 1]), INT32)
    stack(call, 2, A, 0, INT32)


def pivot_order(call: Call, pivots: View, rows: Int):
    """The order of rows that pivots bring about."""
    if pivots.ndim == 0:
        raise ShapeError(f"{call.name}: pivots must have at least one dimension, got shape []")
    out = like(call, 0, pivots, INT64)
    out.sizes[pivots.ndim - 1] = rows


def ldl_factor(call: Call, A: View):
    check_square(call, A)
    like(call, 0, A, A.dtype)
    stack_of_vectors(call, 1, A, A.sizes[A.ndim - 2], INT32)
    stack(call, 2, A, 0, INT32)


def geqrf(call: Call, input: View):
    check_matrices(call, input, "input")
    like(call, 0, input, input.dtype)
    stack_of_vectors(call, 1, input, least(input.sizes[input.ndim - 2], input.sizes[input.ndim - 1]), input.dtype)


def householder(call: Call, input: View, tau: View):
    check_matrices(call, input, "input")
    n = input.sizes[input.ndim - 1]
    if n > input.sizes[input.ndim - 2]:
        raise ShapeError(f"{call.name}: input must not have more columns than rows, got shape {input.shape}")
    if tau.ndim != input.ndim - 1 or tau.sizes[tau.ndim - 1] > n:
        raise tau_error(call, input, tau)
    for j in range(tau.ndim - 1):
        if tau.sizes[j] != input.sizes[j]:
            raise tau_error(call, input, tau)
    if tau.dtype != input.dtype:
        raise DTypeError(f"{call.name}: input and tau must have one dtype, got {dtype_name(input.dtype)} and "
                         f"{dtype_name(tau.dtype)}")
    like(call, 0, input, input.dtype)


def tau_error(call, input, tau):
    return ShapeError(f"{call.name}: tau must have the batch shape {input.shape[:-2]} and at most {input.shape[-1]} "
                      f"elements each, got shape {tau.shape}")
