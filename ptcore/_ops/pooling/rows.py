"""Rows: windows of the spatial dims reduced to their maximum or mean.

``kernel``, ``stride``, ``padding``, ``dilation`` have a number for each dim behind (N, C), ``size``
is that of the result. Without a kernel the windows are adaptive: window o of ``size`` covers
floor(o * n / size) up to ceil((o + 1) * n / size).
"""
from ptcore._ops.table.schema import HALF, INTEGRAL, REAL, linear, structured

structured(
    "max_pool_windows(input, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, size: Sizes)",
    types=(*INTEGRAL, *REAL), kernel="max_pool", internal=True, called="max_pool2d", fields=("values", "indices"),
    node="MaxPoolWithIndicesBackward0", jvp="rule", batch="merge",
    out="pooled_pair",
    reference="_max_pool(x, kernel, stride, padding, dilation, size)",
    doc="The largest element of each window, and where it stands in the flattened spatial dims.")

_MEAN = "kernel: Sizes, stride: Sizes, padding: Sizes, size: Sizes, include_pad: Bool, divisor: OptInt"
for _name, _other, _doc in (
        ("mean_pool", "mean_pool_transposed", "The mean of each window."),
        ("mean_pool_transposed", "mean_pool", "What ``mean_pool`` sends back to its input.")):
    linear(
        f"{_name}(input, {_MEAN})", types=("int64", *HALF, "float32", "float64"), kernel=_name, internal=True,
        called="avg_pool2d", node="AvgPoolBackward0", batch="merge",
        out="pooled",
        vjp=[f"{_other}(g, kernel, stride, padding, x.shape[2:], include_pad, divisor)"],
        reference=f"_{_name}(x, kernel, stride, padding, size, include_pad, divisor)", doc=_doc)

structured(
    "fractional_windows(input, samples, kernel: Sizes, size: Sizes)", types=REAL, promote="none",
    kernel="fractional_max", internal=True, called="fractional_max_pool2d", fields=("values", "indices"),
    node="FractionalMaxPoolBackward0", jvp="rule", batch="merge",
    out="fractional_windows(input, samples, kernel, size)",
    reference="_fractional_windows(x, samples, kernel, size)",
    doc="The largest element of windows at places that ``samples`` (N, C, dims) decide, and where it stands.")
