"""Rows: convolution, its transpose and the gradient of its weight.

The three are one sum over (input, weight, output): each is linear in two of them, and the derivative
of each is the two others. Their shapes are (N, groups * C, ...), (groups * F, C, ...) and
(N, groups * F, ...); position o of the output meets o * stride - padding + k * dilation of the
input for tap k of the weight. The sizes of the result are an argument, so that any are possible.
"""
from ptcore._ops.table.schema import NUMERIC, structured

_SETTINGS = "stride: Sizes, padding: Sizes, dilation: Sizes, groups: Int, size: Sizes"
_GIVEN = "stride, padding, dilation, groups"

structured(
    f"convolve(input, weight, bias: OptTensor, {_SETTINGS})", types=NUMERIC, promote="none",
    kernel="convolve", internal=True, called="conv2d", node="ConvolutionBackward0",
    out="convolved",
    vjp=[f"convolve_transposed(g, conj_of(y), None, {_GIVEN}, x.shape[2:])",
         f"convolve_weight(conj_of(x), g, {_GIVEN}, y.shape[2:])", "sum_of_channels(g)"],
    jvp=[f"convolve(t, y, None, {_GIVEN}, size)", f"convolve(x, t, None, {_GIVEN}, size)",
         "spread_channels(t, out.shape)"],
    batch="convolution", autocast="low",
    reference="_convolve(x, weight, bias, stride, padding, dilation, groups, size)",
    doc="The sum of products of windows of the input and the weight, plus the bias.")

structured(
    f"convolve_transposed(input, weight, bias: OptTensor, {_SETTINGS})", types=NUMERIC, promote="none",
    kernel="convolve_transposed", internal=True, called="conv_transpose2d",
    node="ConvolutionBackward0",
    out="convolved_transposed",
    vjp=[f"convolve(g, conj_of(y), None, {_GIVEN}, x.shape[2:])",
         f"convolve_weight(g, conj_of(x), {_GIVEN}, y.shape[2:])", "sum_of_channels(g)"],
    jvp=[f"convolve_transposed(t, y, None, {_GIVEN}, size)",
         f"convolve_transposed(x, t, None, {_GIVEN}, size)", "spread_channels(t, out.shape)"],
    batch="convolution", autocast="low",
    reference="_convolve_transposed(x, weight, bias, stride, padding, dilation, groups, size)",
    doc="What ``convolve`` gets as a gradient sent back to its input, plus a bias.")

structured(
    f"convolve_weight(input, grad, {_SETTINGS})", types=NUMERIC, promote="none",
    kernel="convolve_weight", internal=True, called="conv2d",
    out="convolved_weight",
    vjp=[f"convolve_transposed(conj_of(y), g, None, {_GIVEN}, x.shape[2:])",
         f"convolve(conj_of(x), g, None, {_GIVEN}, y.shape[2:])"],
    jvp=[f"convolve_weight(t, y, {_GIVEN}, size)", f"convolve_weight(x, t, {_GIVEN}, size)"],
    batch="convolution", autocast="low",
    reference="_convolve_weight(x, grad, stride, padding, dilation, groups, size)",
    doc="What ``convolve`` sends back to its weight.")
