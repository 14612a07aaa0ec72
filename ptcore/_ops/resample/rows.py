"""Rows: padding with a number, sliding windows as columns, resampling along a dim and at positions."""
from ptcore._ops.table.schema import REAL, functional, linear, made, nondifferentiable, structured

_MODES = {"resample": "nearest|nearest-exact|linear|cubic", "filtered": "linear|cubic|linear-taps|cubic-taps"}

for _name, _other in (("resample", "resample_transposed"), ("resample_transposed", "resample"),
                      ("filtered", "filtered_transposed"), ("filtered_transposed", "filtered")):
    linear(
        f"{_name}(input, dim: Dim, size: Int, mode: {_MODES[_name.removesuffix('_transposed')]!r}, "
        "align_corners: Bool, scale: Float)", types=("uint8", *REAL), kernel=_name, internal=True,
        called="interpolate", node="UpsampleBackward0", layout="contiguous",
        out="resampled", keeps="channels_last",
        vjp=[f"{_other}(g, dim, x.shape[dim], mode, align_corners, scale)"],
        reference=f"_{_name}(x, dim, size, mode, align_corners, scale)",
        doc="``size`` numbers along a dim from those that are there"
            + (", by windows that are as wide as the step; bytes by weights of 16 bits, also by taps as in resample"
               if "filtered" in _name else "")
            + (" (the transpose)." if "transposed" in _name else "; scale 0: that of the sizes."))

_HOW = "mode: 'bilinear|nearest|bicubic', padding_mode: 'zeros|border|reflection', align_corners: Bool"

structured(
    f"grid_sampled(input, grid, {_HOW})", types=REAL, promote="none", kernel="grid_sample", internal=True,
    called="grid_sample", node="GridSampler2DBackward0", batch="merge", jvp="decompose", autocast=("high", "widest"),
    out="sampled_at",
    reference="_grid_sample(input, grid, mode, padding_mode, align_corners)",
    doc="``input`` (N, C, ...) at the positions of ``grid`` (N, ..., dims), which are in [-1, 1].")

nondifferentiable(
    f"grid_sample_backward(g, input, grid, {_HOW})", types=REAL, promote="none", kernel="grid_sample_backward",
    internal=True, called="grid_sample", layout="contiguous", fields=("input", "grid"), batch="merge",
    out="sampled_slopes",
    reference="_grid_sample_backward(g, input, grid, mode, padding_mode, align_corners)",
    doc="The fused gradient of sampling at positions for a backward that is not recorded.")

functional(
     "pixel_shuffle(input, upscale_factor: Int)",
     """Channels moved to space: (*, C * r**2, H, W) to (*, C, H * r, W * r).

>>> import ptcore
>>> ptcore.pixel_shuffle(ptcore.ones(1, 8, 2, 3), 2).shape
ptcore.Size([1, 2, 4, 6])
""", "_pixel_shuffle(x, upscale_factor)")

functional(
     "pixel_unshuffle(input, downscale_factor: Int)",
     """Space moved to channels: (*, C, H * r, W * r) to (*, C * r**2, H, W).

>>> import ptcore
>>> ptcore.pixel_unshuffle(ptcore.ones(1, 2, 4, 6), 2).shape
ptcore.Size([1, 8, 2, 3])
""", "_pixel_unshuffle(x, downscale_factor)")

functional(
     "channel_shuffle(input, groups: Int)",
     """Channels dealt out from groups: (N, groups, C / groups, ...) with the two swapped.

>>> import ptcore
>>> ptcore.channel_shuffle(ptcore.arange(4).reshape(1, 4, 1), 2).flatten()
tensor([0, 2, 1, 3])
""", "_channel_shuffle(x, groups)", public=["channel_shuffle", "native_channel_shuffle",
                                         "nn.functional.channel_shuffle", "nn.functional.native_channel_shuffle"])

functional(
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

functional(
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

functional(
     "affine_grid(theta, size: Obj, align_corners: Obj = None)",
     """Positions for grid_sample: those of an image of ``size`` (N, C, [D,] H, W) under the maps ``theta``.

``theta`` is (N, 2, 3), or (N, 3, 4) for three dims: a matrix and a shift for each sample.

>>> import ptcore
>>> ptcore.nn.functional.affine_grid(ptcore.tensor([[[1., 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), True)
tensor([[[[-1.,  0.],
          [ 1.,  0.]]]])
""", "_affine_grid(x, size, bool(align_corners))", also_top=False, wide=True)

for _name, _what in (("grid_sampler", "4 or 5"), ("grid_sampler_2d", "4"), ("grid_sampler_3d", "5")):
    made(f"{_name}(input, grid, interpolation_mode: Int, padding_mode: Int, align_corners: Bool)",
         "_grid_sample(x, y, ('bilinear', 'nearest', 'bicubic')[interpolation_mode], "
         "('zeros', 'border', 'reflection')[padding_mode], align_corners)",
         f"""``nn.functional.grid_sample`` of an input of {_what} dimensions with its words as numbers: 0, 1 and 2 are
"bilinear", "nearest" and "bicubic", and "zeros", "border" and "reflection".""",
         f"ptcore.{_name}(ptcore.ones({'1, 1, 1, 1, 1' if _name[-2:] == '3d' else '1, 1, 1, 1'}), "
         f"ptcore.zeros({'1, 1, 1, 1, 3' if _name[-2:] == '3d' else '1, 1, 1, 2'}), 0, 0, False).item()", "1.0",
         method=False, autocast=("high", "widest"))
