"""Rows: convolution, its transpose, and windows as columns."""
from ptcore._ops.table.schema import BOOL, COMPLEX, NUMERIC, REAL, functional, linear, structured

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
    batch="convolution", autocast="low", keeps="channels_last",
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
    batch="convolution", autocast="low", keeps="channels_last",
    reference="_convolve_transposed(x, weight, bias, stride, padding, dilation, groups, size)",
    doc="What ``convolve`` gets as a gradient sent back to its input, plus a bias.")

structured(
    f"convolve_weight(input, grad, {_SETTINGS})", types=NUMERIC, promote="none",
    kernel="convolve_weight", internal=True, called="conv2d",
    out="convolved_weight",
    vjp=[f"convolve_transposed(conj_of(y), g, None, {_GIVEN}, x.shape[2:])",
         f"convolve(conj_of(x), g, None, {_GIVEN}, y.shape[2:])"],
    jvp=[f"convolve_weight(t, y, {_GIVEN}, size)", f"convolve_weight(x, t, {_GIVEN}, size)"],
    batch="convolution", autocast="low", keeps="channels_last",
    reference="_convolve_weight(x, grad, stride, padding, dilation, groups, size)",
    doc="What ``convolve`` sends back to its weight.")

_WINDOWS = "kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes, blocks: Sizes"
_BLOCKS = "kernel, dilation, padding, stride, blocks"

linear(
    f"unfold_windows(input, {_WINDOWS})", types=(*BOOL, *REAL, *COMPLEX), kernel="unfold_windows", internal=True,
    called="unfold", node="Im2ColBackward0", layout="contiguous", batch="merge",
    out="unfolded", vjp=[f"fold_windows(g, {_BLOCKS}, x.shape[2:])"],
    reference="_unfold_windows(x, kernel, dilation, padding, stride, blocks)",
    doc="The windows of (N, C, H, W) as columns (N, C * kernel, blocks).")

linear(
    f"fold_windows(input, {_WINDOWS}, size: Sizes)", types=(*BOOL, *REAL, *COMPLEX), kernel="fold_windows",
    internal=True, called="fold", node="Col2ImBackward0", layout="contiguous", batch="merge",
    out="folded", vjp=[f"unfold_windows(g, {_BLOCKS})"],
    reference="_fold_windows(x, kernel, dilation, padding, stride, blocks, size)",
    doc="Columns added up where their windows stood.")

_ORDINARY = "one number, or one for each spatial dim"

for _n, _shape, _in, _kernel, _out in (
        (1, "(N, C, L)", "1, 1, 4", "1, 1, 3", "1, 1, 2"),
        (2, "(N, C, H, W)", "1, 2, 5, 5", "3, 2, 3, 3", "1, 3, 3, 3"),
        (3, "(N, C, D, H, W)", "1, 1, 4, 4, 4", "2, 1, 3, 3, 3", "1, 2, 2, 2, 2")):
    functional(
         f"conv{_n}d(input, weight, bias: OptTensor = None, stride: Obj = 1, padding: Obj = 0, "
         "dilation: Obj = 1, groups=1)",
         f"""Windows of ``input`` {_shape} times ``weight``, summed (no flip of the kernel).

``weight`` has shape (filters, C / groups, ...), ``bias`` (filters); ``stride``, ``padding`` and
``dilation`` are {_ORDINARY}. ``padding`` may be "valid" (none) or "same" (so much that the
sizes stay; only with a stride of 1). The batch dim may be absent.

>>> import ptcore
>>> F = ptcore.nn.functional
>>> F.conv{_n}d(ptcore.ones({_in}), ptcore.ones({_kernel})).shape
ptcore.Size([{_out}])
""", "_conv(x, weight, bias, stride, padding, dilation, groups)", autocast="low")
    functional(
         f"conv_transpose{_n}d(input, weight, bias: OptTensor = None, stride: Obj = 1, padding: Obj = 0, "
         "output_padding: Obj = 0, groups=1, dilation: Obj = 1)",
         f"""The transpose of ``conv{_n}d``: each number of ``input`` spread over a window.

``weight`` has shape (C, filters / groups, ...). The sizes of the result are ``(n - 1) * stride - 2 *
padding + dilation * (kernel - 1) + output_padding + 1``.

>>> import ptcore
>>> F = ptcore.nn.functional
>>> F.conv_transpose{_n}d(ptcore.ones({_out}), ptcore.ones({_kernel})).shape
ptcore.Size([{", ".join([_in.split(", ")[0], _kernel.split(", ")[1], *_in.split(", ")[2:]])}])
""", "_conv_transposed(x, weight, bias, stride, padding, output_padding, groups, dilation)", autocast="low")

functional(
     "im2col(input, kernel_size: Obj, dilation: Obj = 1, padding: Obj = 0, stride: Obj = 1)",
     """The windows of (N, C, H, W) as columns (N, C * kernel, windows).

>>> import ptcore
>>> ptcore.nn.functional.unfold(ptcore.ones(1, 3, 4, 4), 2).shape
ptcore.Size([1, 12, 9])
""", "_im2col(x, kernel_size, dilation, padding, stride)", public=["nn.functional.unfold"], called="unfold")

functional(
     "col2im(input, output_size: Obj, kernel_size: Obj, dilation: Obj = 1, padding: Obj = 0, stride: Obj = 1)",
     """Columns (N, C * kernel, windows) added up where the windows stand in (N, C, H, W).

>>> import ptcore
>>> ptcore.nn.functional.fold(ptcore.ones(1, 12, 9), (4, 4), 2).shape
ptcore.Size([1, 3, 4, 4])
""", "_col2im(x, output_size, kernel_size, dilation, padding, stride)", public=["nn.functional.fold"], called="fold")

functional(
     "conv_tbc(input, weight, bias, pad: Int = 0)",
     """``conv1d`` of (time, N, C) with a weight (kernel, C, filters), padded by ``pad`` zeros on both sides.

>>> import ptcore
>>> ptcore.conv_tbc(ptcore.ones(5, 2, 3), ptcore.ones(2, 3, 4), ptcore.zeros(4)).shape
ptcore.Size([4, 2, 4])
""", "_conv_tbc(x, weight, bias, pad)", autocast="low")
