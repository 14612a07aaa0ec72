"""Rows: convolution, pooling, padding and resampling as users call them, in bodies.py."""
from ptcore._ops.table.schema import composite

_ORDINARY = "one number, or one for each spatial dim"


def _function(signature, doc, reference, also_top=True, **columns):
    name = signature.partition("(")[0]
    where = [f"nn.functional.{name}"] + ([name] if also_top else [])
    columns.setdefault("public", where)
    composite(signature, method=False, reference=reference, doc=doc, **columns)


for _n, _shape, _in, _kernel, _out in (
        (1, "(N, C, L)", "1, 1, 4", "1, 1, 3", "1, 1, 2"),
        (2, "(N, C, H, W)", "1, 2, 5, 5", "3, 2, 3, 3", "1, 3, 3, 3"),
        (3, "(N, C, D, H, W)", "1, 1, 4, 4, 4", "2, 1, 3, 3, 3", "1, 2, 2, 2, 2")):
    _function(
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
    _function(
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

_WINDOW = "kernel_size: Obj, stride: Obj = None, padding: Obj = 0"
for _n, _data, _largest, _mean in (
        (1, "[[1., 5., 2., 4.]]", "[[5., 4.]]", "[[3., 3.]]"), (2, "[[[1., 5.], [2., 4.]]]", "[[[5.]]]", "[[[3.]]]"),
        (3, "[[[[1., 5.], [2., 4.]], [[0., 0.], [0., 12.]]]]", "[[[[12.]]]]", "[[[[3.]]]]")):
    _function(
        f"max_pool{_n}d(input, {_WINDOW}, dilation: Obj = 1, ceil_mode=False, return_indices=False)",
        f"""The largest number of each window; with ``return_indices`` also where it stands in the
flattened spatial dims.

Settings are {_ORDINARY}; ``stride`` is the kernel's size unless
given. ``ceil_mode`` adds a last window that begins inside the input and ends outside.

>>> import ptcore
>>> ptcore.nn.functional.max_pool{_n}d(ptcore.tensor({_data}), 2)
tensor({_largest})
""", f"_max_pool_of[{_n}](x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)")
    _divisor = "" if _n == 1 else ", divisor_override: Obj = None"
    _function(
        f"avg_pool{_n}d(input, {_WINDOW}, ceil_mode=False, count_include_pad=True{_divisor})",
        f"""The mean of each window; settings as in ``max_pool{_n}d``.

Padding counts as zeros unless ``count_include_pad=False``, which divides by the numbers inside
alone.

>>> import ptcore
>>> ptcore.nn.functional.avg_pool{_n}d(ptcore.tensor({_data}), 2)
tensor({_mean})
""", f"_avg_pool_of[{_n}](x, kernel_size, stride, padding, ceil_mode, count_include_pad, "
        + ("divisor_override)" if _divisor else "None)"), also_top=_n == 1)
    for _kind, _more, _word, _result in (("avg", "", "mean", _mean),
                                         ("max", ", return_indices=False", "largest number", _largest)):
        _size = 2 if _n == 1 else 1
        _function(
            f"adaptive_{_kind}_pool{_n}d(input, output_size: Obj{_more})",
            f"""The {_word} of each of ``output_size`` windows that cover the input evenly.

A size of None stays as it is.

>>> import ptcore
>>> ptcore.nn.functional.adaptive_{_kind}_pool{_n}d(ptcore.tensor({_data}), {_size})
tensor({_result})
""", f"_adaptive_{_kind}[{_n}](x, output_size{_more.partition('=')[0]})", also_top=_kind == "avg" and _n == 1)
    _function(
        f"lp_pool{_n}d(input, norm_type: Float, kernel_size: Obj, stride: Obj = None, ceil_mode=False)",
        f"""``(sum of x**norm_type)**(1 / norm_type)`` of each window.

>>> import ptcore
>>> ptcore.nn.functional.lp_pool{_n}d(ptcore.ones({", ".join(["1"] + ["4"] * _n)}), 1, 4)
tensor({"[" * (_n + 1)}{4.0**_n:.0f}.{"]" * (_n + 1)})
""", f"_lp_pool_of[{_n}](x, norm_type, kernel_size, stride, ceil_mode)", also_top=False)
    _function(
        f"max_unpool{_n}d(input, indices: Index, kernel_size: Obj, stride: Obj = None, padding: Obj = 0, "
        "output_size: Obj = None)",
        f"""Numbers put back where ``max_pool{_n}d`` with ``return_indices=True`` found them, zeros elsewhere.

>>> import ptcore
>>> F = ptcore.nn.functional
>>> values, indices = F.max_pool{_n}d(ptcore.tensor({_data}), 2, return_indices=True)
>>> F.max_unpool{_n}d(values, indices, 2).shape
ptcore.Size([{", ".join(["1", "4"] if _n == 1 else ["1"] + ["2"] * _n)}])
""", f"_max_unpool[{_n}](x, indices, kernel_size, stride, padding, output_size)", also_top=False)

_function(
    "pad(input, pad: Obj, mode: Obj = 'constant', value: Obj = None)",
    """``input`` made larger, or smaller by negative numbers, at the ends of its last dims.

``pad`` holds pairs (before, after), that of the last dim first. ``mode`` is "constant" (``value``, 0
unless given), "reflect" (mirrored without the edge), "replicate" (the edge again) or "circular"; the
last three take 1 to 3 dims of (C, ...) or (N, C, ...).

>>> import ptcore
>>> ptcore.nn.functional.pad(ptcore.tensor([[1, 2, 3]]), (2, 1), "reflect")
tensor([[3, 2, 1, 2, 3, 2]])
""", "_pad(x, pad, mode, value)", also_top=False)

_function(
    "im2col(input, kernel_size: Obj, dilation: Obj = 1, padding: Obj = 0, stride: Obj = 1)",
    """The windows of (N, C, H, W) as columns (N, C * kernel, windows).

>>> import ptcore
>>> ptcore.nn.functional.unfold(ptcore.ones(1, 3, 4, 4), 2).shape
ptcore.Size([1, 12, 9])
""", "_im2col(x, kernel_size, dilation, padding, stride)", public=["nn.functional.unfold"], called="unfold")

_function(
    "col2im(input, output_size: Obj, kernel_size: Obj, dilation: Obj = 1, padding: Obj = 0, stride: Obj = 1)",
    """Columns (N, C * kernel, windows) added up where the windows stand in (N, C, H, W).

>>> import ptcore
>>> ptcore.nn.functional.fold(ptcore.ones(1, 12, 9), (4, 4), 2).shape
ptcore.Size([1, 3, 4, 4])
""", "_col2im(x, output_size, kernel_size, dilation, padding, stride)", public=["nn.functional.fold"], called="fold")

_function(
    "pixel_shuffle(input, upscale_factor: Int)",
    """Channels moved to space: (*, C * r**2, H, W) to (*, C, H * r, W * r).

>>> import ptcore
>>> ptcore.pixel_shuffle(ptcore.ones(1, 8, 2, 3), 2).shape
ptcore.Size([1, 2, 4, 6])
""", "_pixel_shuffle(x, upscale_factor)")

_function(
    "pixel_unshuffle(input, downscale_factor: Int)",
    """Space moved to channels: (*, C, H * r, W * r) to (*, C * r**2, H, W).

>>> import ptcore
>>> ptcore.pixel_unshuffle(ptcore.ones(1, 2, 4, 6), 2).shape
ptcore.Size([1, 8, 2, 3])
""", "_pixel_unshuffle(x, downscale_factor)")

_function(
    "channel_shuffle(input, groups: Int)",
    """Channels dealt out from groups: (N, groups, C / groups, ...) with the two swapped.

>>> import ptcore
>>> ptcore.channel_shuffle(ptcore.arange(4).reshape(1, 4, 1), 2).flatten()
tensor([0, 2, 1, 3])
""", "_channel_shuffle(x, groups)", public=["channel_shuffle", "native_channel_shuffle",
                                        "nn.functional.channel_shuffle", "nn.functional.native_channel_shuffle"])

_function(
    "conv_tbc(input, weight, bias, pad: Int = 0)",
    """``conv1d`` of (time, N, C) with a weight (kernel, C, filters), padded by ``pad`` zeros on both sides.

>>> import ptcore
>>> ptcore.conv_tbc(ptcore.ones(5, 2, 3), ptcore.ones(2, 3, 4), ptcore.zeros(4)).shape
ptcore.Size([4, 2, 4])
""", "_conv_tbc(x, weight, bias, pad)", autocast="low")

_function(
    "interpolate(input, size: Obj = None, scale_factor: Obj = None, mode: Obj = 'nearest', align_corners: Obj = None, "
    "recompute_scale_factor: Obj = None, antialias=False)",
    """``input`` (N, C, ...) resampled to other sizes: ``size``, or ``scale_factor`` times its own.

``mode`` is "nearest", "nearest-exact" or "area" for 1 to 3 spatial dims, "linear" for one, "bilinear" or
"bicubic" for two, "trilinear" for three. With ``align_corners`` the numbers at the corners stay
where they are; else numbers stand at the centres of their places.

>>> import ptcore
>>> F = ptcore.nn.functional
>>> F.interpolate(ptcore.tensor([[[1., 3.]]]), scale_factor=2, mode="linear")
tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
""", "_interpolate(x, size, scale_factor, mode, align_corners)", also_top=False)

_function(
    "grid_sample(input, grid, mode: Obj = 'bilinear', padding_mode: Obj = 'zeros', align_corners: Obj = None)",
    """``input`` (N, C, [D,] H, W) at the positions in ``grid`` (N, ..., 2 or 3).

A position (x, y) or (x, y, z) is in [-1, 1]: the corners of the input, or with ``align_corners`` the
centres of its corner elements. ``mode`` is "bilinear", "nearest" or, in two dims, "bicubic"; beyond the
input are zeros, its edge ("border") or its mirror image ("reflection").

>>> import ptcore
>>> F = ptcore.nn.functional
>>> F.grid_sample(ptcore.tensor([[[[1., 3.]]]]), ptcore.zeros(1, 1, 1, 2))
tensor([[[[2.]]]])
""", "_grid_sample(x, y, mode, padding_mode, bool(align_corners))", also_top=False)

_function(
    "affine_grid(theta, size: Obj, align_corners: Obj = None)",
    """Positions for grid_sample: those of an image of ``size`` (N, C, [D,] H, W) under the maps ``theta``.

``theta`` is (N, 2, 3), or (N, 3, 4) for three dims: a matrix and a shift for each sample.

>>> import ptcore
>>> ptcore.nn.functional.affine_grid(ptcore.tensor([[[1., 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), True)
tensor([[[[-1.,  0.],
          [ 1.,  0.]]]])
""", "_affine_grid(x, size, bool(align_corners))", also_top=False)
