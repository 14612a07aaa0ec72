# cython: language_level=3
"""A package outside ptcore: an op whose kernel is Cython, an op whose kernel is C++."""
from libc.stdint cimport int64_t
from ptcore.cython_ops cimport PT_OK, as_capsule, binary, op_id, pt_call
from ptcore.cython_tensor cimport (PT_FLOAT64, Tensor, data_ptr, dtype, is_contiguous, mutable_data_ptr, ndim,
                                   new_empty, numel, sizes, strides, wrap)

import ptcore

cdef extern from *:
    """
    #include "ptcore/kernel.h"
    extern "C" int hypot_kernel(pt_call *);
    """
    int hypot_kernel(pt_call *) noexcept nogil

cdef int MUL = op_id("mul")


def total(Tensor t):
    """The sum of a float64 tensor of any strides, by its memory."""
    if dtype(t) != PT_FLOAT64 or ndim(t) != 2:
        raise TypeError("total: t must be float64[m, n]")
    cdef double *p = <double *>data_ptr(t)
    cdef int64_t i, j
    cdef double s = 0
    for i in range(sizes(t)[0]):
        for j in range(sizes(t)[1]):
            s += p[i * strides(t)[0] + j * strides(t)[1]]
    return s


def ramp(int64_t n):
    """0, 1, ..., n - 1 in new memory."""
    cdef Tensor t = new_empty(1, &n, PT_FLOAT64)
    cdef double *p = <double *>mutable_data_ptr(t)
    cdef int64_t i
    for i in range(n):
        p[i] = i
    return t


def add_one_(Tensor t):
    cdef double *p = <double *>mutable_data_ptr(t)
    cdef int64_t i
    assert is_contiguous(t)
    for i in range(numel(t)):
        p[i] += 1
    return t


def over(double[::1] memory, bint reverse=False):
    """A tensor over a memoryview's memory, forwards or backwards."""
    cdef int64_t n = memory.shape[0], step = -1
    if reverse:
        return wrap(&memory[n - 1], 1, &n, &step, PT_FLOAT64, memory, False)
    return wrap(&memory[0], 1, &n, NULL, PT_FLOAT64, memory, False)


def product(x, y):
    return binary(MUL, x, y)


def call_binary(str name, x, y):
    return binary(op_id(name), x, y)


# -- an op in Cython: y = x^3 ----------------------------------------------------------------------

cdef int cube_kernel(pt_call *c) noexcept nogil:
    cdef const double *x = <const double *>c.inputs[0].data
    cdef double *y = <double *>c.out[0].data
    cdef int64_t i, step = c.inputs[0].strides[0] if c.inputs[0].ndim else 0
    for i in range(c.inputs[0].numel):
        y[i] = x[i * step] ** 3
    return PT_OK


def same(input):
    if input.ndim > 1:
        raise RuntimeError(f"outside_cube: input must have at most one dim, got {input.ndim}")
    return input.shape, input.dtype


cube = ptcore.ops.register(
    "outside_cube(input)", spec=same, kernels={"cpu": as_capsule(cube_kernel)},
    types=("float64",), vjp=lambda g, saved, params, needs: (3 * saved["input"] ** 2 * g,),
    saves=("input",), doc="The third power.")


# -- an op in C++: out = hypot(x, y) -----------------------------------------------------------------

def hypot_spec(x, y):
    if x.shape != y.shape:
        raise RuntimeError(f"outside_hypot: shapes must agree, got {list(x.shape)} and {list(y.shape)}")
    return x.shape, x.dtype


def hypot_vjp(g, saved, params, needs):
    scaled = g / saved["out"]
    return tuple([scaled * saved[name] if need else None for name, need in zip(("x", "y"), needs)])


hypot = ptcore.ops.register(
    "outside_hypot(x, y)", spec=hypot_spec, kernels={"cpu": as_capsule(hypot_kernel)},
    types=("float64",), vjp=hypot_vjp, saves=("x", "y", "out"), doc="sqrt(x**2 + y**2).")
