"""Bodies: convolution, its transpose, and windows as columns."""
import math

from cython.cimports.ptcore._ops._spatial import _batched, _numbers, _unbatched

from ptcore._errors import DTypeError, ShapeError
from ptcore._ops.call.run import check_sizes
from ptcore._ops.functions import convolve, convolve_transposed, fold_windows, linear, permute, reshape, unfold_windows
from ptcore._ops.table.ids import op_id
from ptcore._tensor import Tensor

_CONVOLVE = op_id("convolve")


# -- convolution --------------------------------------------------------------------------------
def _operand(op, name, t, x):
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}: {name} must be a Tensor, got {type(t).__name__}")
    if t.dtype is not x.dtype:
        raise DTypeError(f"{op}: {name} must have input's dtype {x.dtype.name}, got {t.dtype.name}")


def _operands(op, n, x, weight, bias, groups):
    _operand(op, "weight", weight, x)
    if bias is not None:
        _operand(op, "bias", bias, x)
    if weight.ndim != n + 2 or (weight.numel() == 0 and 0 in weight.shape[2:]):
        raise ShapeError(f"{op}: weight must have {n + 2} dimensions, none of the last {n} empty, got "
                         f"shape {list(weight.shape)}")
    if groups < 1:
        raise ShapeError(f"{op}: groups must be positive, got {groups}")


def _convolution(op, n, input, weight, bias, stride, padding, dilation, groups):
    x, batched = _batched(op, input, n)
    _operands(op, n, x, weight, bias, groups)
    stride = _numbers(op, "stride", stride, n, 1)
    dilation = _numbers(op, "dilation", dilation, n, 1)
    shape, kernel = x.shape, weight.shape
    reach = [dilation[i] * (kernel[i + 2] - 1) for i in range(n)]
    if isinstance(padding, str):
        if padding == "same":
            if max(stride) != 1:
                raise ShapeError(f"{op}: padding='same' needs a stride of 1, got {list(stride)}")
            padding, size = tuple([r // 2 for r in reach]), tuple(shape[2:])
        elif padding == "valid":
            padding, size = (0,) * n, None
        else:
            raise ShapeError(f"{op}: padding must be ints, 'same' or 'valid', got {padding!r}")
    else:
        padding, size = _numbers(op, "padding", padding, n, 0), None
    if size is None:
        size = tuple([(shape[i + 2] + 2 * padding[i] - reach[i] - 1) // stride[i] + 1 for i in range(n)])
        if any([n < 1 for n in size]):
            raise ShapeError(f"{op}: the kernel must not be larger than the padded input, got kernel "
                             f"{list(kernel[2:])} with dilation {list(dilation)} for sizes {list(shape[2:])} with "
                             f"padding {list(padding)}")
    if kernel[0] == 0:
        check_sizes(_CONVOLVE, (x, weight, bias, stride, padding, dilation, groups, size))
        raise ShapeError(f"{op}: weight must have at least one filter, got shape {list(kernel)}")
    if (groups == 1 and kernel[1:] == shape[1:] and max(reach) > 0 and max(padding) == 0 and max(size) == 1
            and x.dtype.is_floating_point):
        # One output, to which all elements of the input contribute: a product of matrices. Padding "same" of a kernel
        # of size 2 has no padding in front either, but gives 2 outputs.
        check_sizes(_CONVOLVE, (x, weight, bias, stride, padding, dilation, groups, size))
        length = math.prod(shape[1:])
        product = linear(reshape(x, (shape[0], length)), reshape(weight, (kernel[0], length)), bias)
        return _unbatched(reshape(product, (shape[0], kernel[0]) + (1,) * n), batched)
    return _unbatched(convolve(x, weight, bias, stride, padding, dilation, groups, size), batched)


def conv1d(input, weight, bias, stride, padding, dilation, groups):
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias, stride, padding, dilation, groups):
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias, stride, padding, dilation, groups):
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input, weight, bias, pad):
    op = "conv_tbc"
    for name, t, ndim in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        if t.ndim != ndim:
            raise ShapeError(f"{op}: {name} must have {ndim} dimensions, got shape {list(t.shape)}")
    pad = _numbers(op, "pad", pad, 1, 0)
    x = permute(input, (1, 2, 0))
    return permute(_convolution(op, 1, x, permute(weight, (2, 1, 0)), bias, 1, pad, 1, 1), (2, 0, 1)).contiguous()


def _transposed(op, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    x, batched = _batched(op, input, n)
    _operands(op, n, x, weight, bias, groups)
    stride = _numbers(op, "stride", stride, n, 1)
    padding = _numbers(op, "padding", padding, n, 0)
    extra = _numbers(op, "output_padding", output_padding, n, 0)
    dilation = _numbers(op, "dilation", dilation, n, 1)
    for e, s, d in zip(extra, stride, dilation):
        if e >= s and e >= d:
            raise ShapeError(f"{op}: output_padding must be smaller than stride or dilation, got "
                             f"{list(extra)} with stride {list(stride)}, dilation {list(dilation)}")
    size = tuple([(m - 1) * s - 2 * p + d * (k - 1) + e + 1 for m, s, p, d, k, e in zip(
        x.shape[2:], stride, padding, dilation, weight.shape[2:], extra)])
    if any([n < 1 for n in size]):
        raise ShapeError(f"{op}: the sizes of the output must be at least 1, got {list(size)}")
    return _unbatched(convolve_transposed(x, weight, bias, stride, padding, dilation, groups, size), batched)


def conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _sliding(op, kernel_size, dilation, padding, stride):
    return (_numbers(op, "kernel_size", kernel_size, 2, 1), _numbers(op, "dilation", dilation, 2, 1),
            _numbers(op, "padding", padding, 2, 0), _numbers(op, "stride", stride, 2, 1))


def _blocks(op, size, kernel, dilation, padding, stride):
    blocks = tuple([(m + 2 * p - d * (k - 1) - 1) // s + 1
                    for m, k, d, p, s in zip(size, kernel, dilation, padding, stride)])
    if any([n < 1 for n in blocks]):
        raise ShapeError(f"{op}: windows must fit in the padded input, got windows of {list(kernel)} for sizes "
                         f"{list(size)} with padding {list(padding)}")
    return blocks


def im2col(input, kernel_size, dilation, padding, stride):
    settings = _sliding("unfold", kernel_size, dilation, padding, stride)
    x, batched = _batched("unfold", input, 2)
    return _unbatched(unfold_windows(x, *settings, _blocks("unfold", x.shape[2:], *settings)), batched)


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    settings = _sliding("fold", kernel_size, dilation, padding, stride)
    size = _numbers("fold", "output_size", output_size, 2, 1)
    x, batched = _batched("fold", input, 1)
    return _unbatched(fold_windows(x, *settings, _blocks("fold", size, *settings), size), batched)
