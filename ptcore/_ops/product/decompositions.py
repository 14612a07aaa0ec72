"""Products as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import mm, transpose
from ptcore._ops.product.bodies import matmul


def addmm(input, mat1, mat2, beta=1, alpha=1):
    product = mm(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    if beta == 0:                       # input is not read
        return product
    return product + (input if beta == 1 else input * beta)


def linear(input, weight, bias=None):
    result = matmul(input, weight if weight.ndim == 1 else transpose(weight, 0, 1))
    return result if bias is None else result + bias


def cross_of(input, other, dim):
    # (1, 2, 0) and (2, 0, 1)
    return input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)


FUNCTIONS = {f.__name__: f for f in (addmm, linear, cross_of)}
