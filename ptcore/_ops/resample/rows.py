"""Rows: padding with a number, sliding windows as columns, resampling along a dim and at positions."""
from ptcore._ops.table.schema import ALL, BOOL, COMPLEX, REAL, linear, nondifferentiable, structured

structured(
    "pad_constant(input, pad: Ints, value: Scalar)", kernel="pad_constant", internal=True, called="pad",
    node="ConstantPadNdBackward0", out="padded",
    vjp=["pad_constant(g, negated(pad), 0)"], jvp=["pad_constant(t, pad, 0)"],
    reference="_pad_constant(x, pad, value)",
    doc="``input`` with ``value`` around it: pairs for the last dims, the last dim first.")

for _name, _other, _spec in (("pad_edges", "pad_edges_transposed", "edge_padded"),
                             ("pad_edges_transposed", "pad_edges", "edge_unpadded")):
    linear(
        f"{_name}(input, pad: Ints, mode: 'reflect|replicate|circular')",
        types=ALL if _name == "pad_edges" else (*REAL, *COMPLEX), kernel=_name, internal=True, called="pad",
        node="PadEdgesBackward0", out=_spec, vjp=[f"{_other}(g, pad, mode)"],
        layout="any" if _name == "pad_edges" else "contiguous", reference=f"_{_name}(x, pad, mode)",
        doc="``input`` with its own elements around it: pairs for the last dims, the last dim first."
            if _name == "pad_edges" else "Elements added up where those of ``pad_edges`` came from.")

_WINDOWS = "kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes, blocks: Sizes"
_GIVEN = "kernel, dilation, padding, stride, blocks"
linear(
    f"unfold_windows(input, {_WINDOWS})", types=(*BOOL, *REAL, *COMPLEX), kernel="unfold_windows", internal=True,
    called="unfold", node="Im2ColBackward0", layout="contiguous", batch="merge",
    out=f"unfolded('unfold', input, {_GIVEN})", vjp=[f"fold_windows(g, {_GIVEN}, x.shape[2:])"],
    reference="_unfold_windows(x, kernel, dilation, padding, stride, blocks)",
    doc="The windows of (N, C, H, W) as columns (N, C * kernel, blocks).")

linear(
    f"fold_windows(input, {_WINDOWS}, size: Sizes)", types=(*BOOL, *REAL, *COMPLEX), kernel="fold_windows",
    internal=True, called="fold", node="Col2ImBackward0", layout="contiguous", batch="merge",
    out=f"folded('fold', input, {_GIVEN}, size)", vjp=[f"unfold_windows(g, {_GIVEN})"],
    reference="_fold_windows(x, kernel, dilation, padding, stride, blocks, size)",
    doc="Columns added up where their windows stood.")

_HOW = "dim: Dim, size: Int, mode: 'nearest|nearest-exact|linear|cubic', align_corners: Bool, scale: Float"
for _name, _other in (("resample", "resample_transposed"), ("resample_transposed", "resample")):
    linear(
        f"{_name}(input, {_HOW})", types=("uint8", *REAL), kernel=_name, internal=True,
        called="interpolate", node="UpsampleBackward0", layout="contiguous",
        out="resampled",
        vjp=[f"{_other}(g, dim, x.shape[dim], mode, align_corners, scale)"],
        reference=f"_{_name}(x, dim, size, mode, align_corners, scale)",
        doc="``size`` numbers along a dim from those that are there"
            + (" (the transpose)." if _name != "resample" else "; scale 0: that of the sizes."))

_HOW = "mode: 'bilinear|nearest|bicubic', padding_mode: 'zeros|border|reflection', align_corners: Bool"
structured(
    f"grid_sampled(input, grid, {_HOW})", types=REAL, promote="none", kernel="grid_sample", internal=True,
    called="grid_sample", node="GridSampler2DBackward0", batch="merge", jvp="decompose", autocast="widest",
    out="sampled_at",
    reference="_grid_sample(input, grid, mode, padding_mode, align_corners)",
    doc="``input`` (N, C, ...) at the positions of ``grid`` (N, ..., dims), which are in [-1, 1].")

nondifferentiable(
    f"grid_sample_backward(g, input, grid, {_HOW})", types=REAL, promote="none", kernel="grid_sample_backward",
    internal=True, called="grid_sample", layout="contiguous", fields=("input", "grid"), batch="merge",
    out="[like(input), like(grid)]",
    reference="_grid_sample_backward(g, input, grid, mode, padding_mode, align_corners)",
    doc="The fused gradient of sampling at positions for a backward that is not recorded.")
