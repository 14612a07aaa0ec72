"""Outputs that have the sizes of an argument, or those that a parameter says."""
from ptcore._errors import ShapeError
from ptcore._sizes.language import (
    BOOL,
    CATEGORY,
    COMPLEX_OF,
    FLOAT32,
    INT64,
    ITEMSIZE,
    Call,
    Device,
    DType,
    Int,
    Ints,
    Text,
    View,
    fits,
    given,
    keep_strides,
    like,
    output,
    place,
)

# -- parts of rules ---------------------------------------------------------------------------------------------------

def stat_dtype(x: View) -> Int:
    """Statistics kept beside half-precision data are float32."""
    return FLOAT32 if ITEMSIZE[x.dtype] == 2 else x.dtype


def summed_dtype(x: View, dtype: DType) -> Int:
    """Sums and products of integers and bools are int64."""
    if dtype >= 0:
        return dtype
    return INT64 if CATEGORY[x.dtype] < 2 else x.dtype


def check_ndim(call: Call, x: View, name: Text, ndim: Int):
    if x.ndim != ndim:
        raise ShapeError(f"{call.name}: {name} must have {ndim} dimensions, got shape {x.shape}")


def check_vector(call: Call, x: View, name: Text, n: Int):
    """An optional tensor is absent or has one number for each of n."""
    if given(x) and (x.ndim != 1 or x.sizes[0] != n):
        raise ShapeError(f"{call.name}: {name} must have shape {[n]}, got {x.shape}")


# -- rules ------------------------------------------------------------------------------------------------------------

def as_input(call: Call, input: View):
    like(call, 0, input, input.dtype)


def as_laid(call: Call, input: View):
    """As the input, whose strides are kept."""
    like(call, 0, input, input.dtype)
    keep_strides(call, input)


def cast(call: Call, input: View, dtype: DType):
    like(call, 0, input, dtype if dtype >= 0 else input.dtype)


def laid_cast(call: Call, input: View, dtype: DType):
    like(call, 0, input, dtype if dtype >= 0 else input.dtype)
    keep_strides(call, input)


def moved(call: Call, input: View, device: Device):
    """As the input, on another device."""
    like(call, 0, input, input.dtype)
    place(call, device)


def summed(call: Call, input: View, dtype: DType):
    like(call, 0, input, summed_dtype(input, dtype))


def with_indices(call: Call, input: View):
    """Two outputs of the sizes of the input: its values, and positions."""
    like(call, 0, input, input.dtype)
    like(call, 1, input, INT64)


def with_mask(call: Call, input: View):
    like(call, 0, input, input.dtype)
    like(call, 1, input, BOOL)


def matrices(call: Call, input: View):
    """As the input, a stack of matrices."""
    if input.ndim < 2:
        raise ShapeError(f"{call.name}: input must have 2 dimensions, got shape {input.shape}")
    like(call, 0, input, input.dtype)


def complex_pair(call: Call, real: View, imag: View):
    if real.ndim != imag.ndim:
        raise ShapeError(f"{call.name}: real and imag must have one shape, got {real.shape} and {imag.shape}")
    for j in range(real.ndim):
        if real.sizes[j] != imag.sizes[j]:
            raise ShapeError(f"{call.name}: real and imag must have one shape, got {real.shape} and {imag.shape}")
    like(call, 0, real, COMPLEX_OF[real.dtype])
    keep_strides(call, real)


def of_sizes(call: Call, shape: Ints, dtype: DType):
    """The sizes and the dtype that parameters say."""
    if dtype < 0:
        raise TypeError(f"{call.name}: dtype must be given, got None")
    fits(shape.count, 6)                # at most 63 dims
    out = output(call, 0, shape.count, dtype)
    for j in range(shape.count):
        out.sizes[j] = shape.list[j]


def sized(call: Call, input: View, shape: Ints):
    """The dtype of the input, and the sizes that a parameter says."""
    fits(shape.count, 6)
    out = output(call, 0, shape.count, input.dtype)
    for j in range(shape.count):
        out.sizes[j] = shape.list[j]
