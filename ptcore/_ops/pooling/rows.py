"""Rows: windows of the spatial dims reduced to their maximum or mean.

``kernel``, ``stride``, ``padding``, ``dilation`` have a number for each dim after (N, C); ``size``
has the sizes of the result. Without a kernel the windows are adaptive: window o of ``size`` covers
floor(o * n / size) up to ceil((o + 1) * n / size).
"""
from ptcore._ops.table.schema import (
    HALF,
    INTEGRAL,
    REAL,
    draw,
    functional,
    linear,
    nondifferentiable,
    spelling,
    structured,
)

structured(
    "max_pool_windows(input, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, size: Sizes)",
    types=(*INTEGRAL, *REAL), kernel="max_pool", internal=True, called="max_pool2d", fields=("values", "indices"),
    node="MaxPoolWithIndicesBackward0", jvp="rule", batch="merge",
    out="pooled_pair", keeps="channels_last",
    reference="_max_pool(x, kernel, stride, padding, dilation, size)",
    doc="The largest element of each window, and where it stands in the flattened spatial dims.")

nondifferentiable(
    "max_pool_backward(g, indices: Index, size: Sizes)", types=REAL, promote="none", kernel="max_pool_backward",
    layout="contiguous", keeps="channels_last", internal=True, called="max_pool2d", batch="merge",
    out="max_pool_backward", reference="_max_pool_backward(g, indices, size)",
    doc="The fused gradient of windows' maxima for a backward that is not recorded.")

_MEAN = "kernel: Sizes, stride: Sizes, padding: Sizes, size: Sizes, include_pad: Bool, divisor: OptInt"

for _name, _other, _doc in (
        ("mean_pool", "mean_pool_transposed", "The mean of each window."),
        ("mean_pool_transposed", "mean_pool", "What ``mean_pool`` sends back to its input.")):
    linear(
        f"{_name}(input, {_MEAN})", types=("int64", *HALF, "float32", "float64"), kernel=_name, internal=True,
        called="avg_pool2d", node="AvgPoolBackward0", batch="merge",
        out="pooled", keeps="channels_last",
        vjp=[f"{_other}(g, kernel, stride, padding, x.shape[2:], include_pad, divisor)"],
        reference=f"_{_name}(x, kernel, stride, padding, size, include_pad, divisor)", doc=_doc)

structured(
    "fractional_windows(input, samples, kernel: Sizes, size: Sizes)", types=REAL, promote="none",
    kernel="fractional_max", internal=True, called="fractional_max_pool2d", fields=("values", "indices"),
    node="FractionalMaxPoolBackward0", jvp="rule", batch="merge",
    out="fractional_windows",
    reference="_fractional_windows(x, samples, kernel, size)",
    doc="The largest element of windows at places that ``samples`` (N, C, dims) decide, and where it stands.")

_ORDINARY = "one number, or one for each spatial dim"
_WINDOW = "kernel_size: Obj, stride: Obj = None, padding: Obj = 0"

_HIGH = ("high", None)                  # autocast's lists are PyTorch's, which differ by device

for _n, _data, _largest, _mean in (
        (1, "[[1., 5., 2., 4.]]", "[[5., 4.]]", "[[3., 3.]]"), (2, "[[[1., 5.], [2., 4.]]]", "[[[5.]]]", "[[[3.]]]"),
        (3, "[[[[1., 5.], [2., 4.]], [[0., 0.], [0., 12.]]]]", "[[[[12.]]]]", "[[[[3.]]]]")):
    functional(
         f"max_pool{_n}d(input, {_WINDOW}, dilation: Obj = 1, ceil_mode=False, return_indices=False)",
         f"""The largest number of each window; with ``return_indices`` also where it stands in the
flattened spatial dims.

Settings are {_ORDINARY}; ``stride`` is the kernel's size unless
given. ``ceil_mode`` adds a last window that begins inside the input and ends outside.

>>> import ptcore
>>> ptcore.nn.functional.max_pool{_n}d(ptcore.tensor({_data}), 2)
tensor({_largest})
""", f"_max_pool_of[{_n}](x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)",
         autocast=_HIGH if _n == 3 else None)
    _divisor = "" if _n == 1 else ", divisor_override: Obj = None"
    functional(
         f"avg_pool{_n}d(input, {_WINDOW}, ceil_mode=False, count_include_pad=True{_divisor})",
         f"""The mean of each window; settings as in ``max_pool{_n}d``.

Padding counts as zeros unless ``count_include_pad=False``, which divides by the numbers inside
alone.

>>> import ptcore
>>> ptcore.nn.functional.avg_pool{_n}d(ptcore.tensor({_data}), 2)
tensor({_mean})
""", f"_avg_pool_of[{_n}](x, kernel_size, stride, padding, ceil_mode, count_include_pad, "
         + ("divisor_override)" if _divisor else "None)"), also_top=_n == 1, out_argument=_n > 1,
         autocast=_HIGH if _n == 3 else None)
    for _kind, _more, _word, _result in (("avg", "", "mean", _mean),
                                         ("max", ", return_indices=False", "largest number", _largest)):
        _size = 2 if _n == 1 else 1
        functional(
             f"adaptive_{_kind}_pool{_n}d(input, output_size: Obj{_more})",
             f"""The {_word} of each of ``output_size`` windows that cover the input evenly.

A size of None stays as it is.

>>> import ptcore
>>> ptcore.nn.functional.adaptive_{_kind}_pool{_n}d(ptcore.tensor({_data}), {_size})
tensor({_result})
""", f"_adaptive_{_kind}[{_n}](x, output_size{_more.partition('=')[0]})", also_top=_kind == "avg" and _n == 1,
             autocast=_HIGH if _n == 3 else None)
    functional(
         f"lp_pool{_n}d(input, norm_type: Float, kernel_size: Obj, stride: Obj = None, ceil_mode=False)",
         f"""``(sum of x**norm_type)**(1 / norm_type)`` of each window.

>>> import ptcore
>>> ptcore.nn.functional.lp_pool{_n}d(ptcore.ones({", ".join(["1"] + ["4"] * _n)}), 1, 4)
tensor({"[" * (_n + 1)}{4.0**_n:.0f}.{"]" * (_n + 1)})
""", f"_lp_pool_of[{_n}](x, norm_type, kernel_size, stride, ceil_mode)", also_top=False)
    functional(
         f"max_unpool{_n}d(input, indices: Index, kernel_size: Obj, stride: Obj = None, padding: Obj = 0, "
         "output_size: Obj = None)",
         f"""Numbers put back where ``max_pool{_n}d`` with ``return_indices=True`` found them, zeros elsewhere.

>>> import ptcore
>>> F = ptcore.nn.functional
>>> values, indices = F.max_pool{_n}d(ptcore.tensor({_data}), 2, return_indices=True)
>>> F.max_unpool{_n}d(values, indices, 2).shape
ptcore.Size([{", ".join(["1", "4"] if _n == 1 else ["1"] + ["2"] * _n)}])
""", f"_max_unpool[{_n}](x, indices, kernel_size, stride, padding, output_size)", also_top=False,
         autocast=_HIGH)

for _k, _size, _out in ((2, "4, 4", "2, 2"), (3, "4, 4, 4", "2, 2, 2")):
    for _with, _text in (("", "; with ``return_indices`` also where it stands in the flattened spatial dims"),
                         ("_with_indices", ", and where it stands in the flattened spatial dims")):
        draw(f"fractional_max_pool{_k}d{_with}(input, kernel_size: Obj, output_size: Obj = None, "
             "output_ratio: Obj = None, return_indices=False, _random_samples: OptIndex = None)",
             f"""The largest number of each of ``output_size`` windows of ``kernel_size``, at places that are as far
apart as the sizes ask for and else random{_text}.

``output_ratio`` times the input's sizes may be given in place of ``output_size``. ``_random_samples``, numbers in
[0, 1) of shape (N, C, {_k}), decide the places.""",
             f"ptcore.nn.functional.fractional_max_pool{_k}d{_with}(ptcore.ones(1, {_size}), 2, 2)"
             + ("[0].shape" if _with else ".shape"), f"ptcore.Size([1, {_out}])",
             public=[f"nn.functional.fractional_max_pool{_k}d{_with}"], method=False, autocast=_HIGH)

# -- values and positions, by a name of their own ---------------------------------------------------
_PAIR = "tuple[Tensor, Tensor]"
for _n in (1, 2, 3):
    spelling(f"max_pool{_n}d", f"max_pool{_n}d_with_indices(input, kernel_size: Obj, stride: Obj = None, "
             f"padding: Obj = 0, dilation: Obj = 1, ceil_mode=False, return_indices=False) -> {_PAIR}", "nn.functional",
             return_indices="True")
    spelling(f"adaptive_max_pool{_n}d", f"adaptive_max_pool{_n}d_with_indices(input, output_size: Obj, "
             f"return_indices=False) -> {_PAIR}", "nn.functional", return_indices="True")
spelling("adaptive_max_pool1d", f"adaptive_max_pool1d(input, output_size: Obj) -> {_PAIR}", return_indices="True")
spelling("max_pool1d", "max_pool1d_with_indices(input, kernel_size: Obj, stride: Obj = (), padding: Obj = 0, "
         f"dilation: Obj = 1, ceil_mode=False) -> {_PAIR}", stride="stride or None", return_indices="True")
