"""Rows: windows of the spatial dims reduced to their maximum or mean.

``kernel``, ``stride``, ``padding``, ``dilation`` have a number for each dim behind (N, C), ``size``
is that of the result. Without a kernel the windows are adaptive: window o of ``size`` covers
floor(o * n / size) up to ceil((o + 1) * n / size).
"""
from ptcore._ops._schema import HALF, INTEGRAL, REAL, linear, structured

structured(
    "max_pool_windows(input, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, size: Sizes)",
    types=(*INTEGRAL, *REAL), kernel="max_pool", internal=True, called="max_pool2d", fields=("values", "indices"),
    node="MaxPoolWithIndicesBackward0", jvp="rule", batch="merge",
    out="max_pooled('max_pool_windows', input, kernel, stride, padding, dilation, size, INT64)",
    reference="_max_pool(x, kernel, stride, padding, dilation, size)",
    doc="The largest element of each window, and where it stands in the flattened spatial dims.")

_MEAN = "kernel: Sizes, stride: Sizes, padding: Sizes, size: Sizes, include_pad: Bool, divisor: OptInt"
for _name, _other, _doc in (
        ("mean_pool", "mean_pool_transposed", "The mean of each window."),
        ("mean_pool_transposed", "mean_pool", "What ``mean_pool`` sends back to its input.")):
    linear(
        f"{_name}(input, {_MEAN})", types=("int64", *HALF, "float32", "float64"), kernel=_name, internal=True,
        called="avg_pool2d", node="AvgPoolBackward0", batch="merge",
        out=f"mean_pooled('{_name}', input, kernel, stride, padding, size)",
        vjp=[f"{_other}(g, kernel, stride, padding, x.shape[2:], include_pad, divisor)"],
        reference=f"_{_name}(x, kernel, stride, padding, size, include_pad, divisor)", doc=_doc)
